// Which client first sent each lane: the file `senders` in the collector's directory, and what of
// it is held in memory. A client is known by its tokens: those of one line are one client's, also
// once some of them are gone. The file has salted digests of tokens, never a token. It only grows,
// and nothing counts before its line is durable. Blocking where it reads and writes; any thread.

import Cordwood
import Synchronization

/// Who sends an archive.
struct Sender: Sendable {
    /// The client's number in the file; 0: the collector has no tokens.
    var client: UInt32
    /// For people.
    var address = "?"
    /// What the request says of the store that sends.
    var store = "-"
}

final class Senders: Sendable {
    enum Right {
        /// The lane is the client's, or there are no tokens by which clients differ.
        case own
        /// Nobody's, or that of a client without a token here, which was here before this one.
        case open
        case another
    }

    static let fileName = "senders"
    private static let head = ["cordwood senders", "format 1"]
    /// With the salt.
    private static let headBytes: UInt64 = 64

    private struct Token {
        var client: UInt32
        /// The change of the tokens with which it came.
        var round: UInt64
        var isHere: Bool
    }

    private struct Content {
        var salt = ""
        var tokens: [LaneID: Token] = [:]
        /// Clients that became one, because a line has tokens of both.
        var same: [UInt32: UInt32] = [:]
        /// Clients with a token here: the round with which the first of these tokens came.
        var here: [UInt32: UInt64] = [:]
        /// The round with which the last token of a client came.
        var latest: [UInt32: UInt64] = [:]
        var lastClient: UInt32 = 0
        var round: UInt64 = 0

        func client(_ number: UInt32) -> UInt32 {
            var number = number
            while let other = same[number] { number = other }
            return number
        }

        mutating func count() {
            (here, latest) = ([:], [:])
            for token in tokens.values {
                let client = client(token.client)
                latest[client] = max(latest[client] ?? 0, token.round)
                if token.isHere { here[client] = min(here[client] ?? .max, token.round) }
            }
        }
    }

    private let content: Mutex<Content>
    private let descriptor: Int32
    /// Whether the last line of the file lacks its end. Held while lines are written.
    private let isTorn: Mutex<Bool>

    /// - Parameter lane: called for each lane of the file; of several lines, the last one counts.
    init(
        directory: String, lane: (_ id: LaneID, _ client: UInt32) -> Void
    ) throws(CollectorError) {
        let path = "\(directory)/\(Senders.fileName)"
        var content = Content()
        do throws(FileProblem) {
            descriptor = try DepotFiles.open(path, [.readWrite, .create])
        } catch {
            throw .directory(error.operation, errno: error.errno)
        }
        var lines = LineReader(descriptor)
        var number = 0
        while let line = lines.next() {
            if number < Senders.head.count {
                guard line.elementsEqual(Senders.head[number].utf8) else { break }
            } else {
                Senders.take(line, &content, lane)
            }
            number += 1
        }
        isTorn = Mutex(lines.hasRest)
        // CRASH: a file without its salt has no other line.
        let isNew = content.salt.isEmpty && lines.bytes <= Senders.headBytes
        guard lines.errno == 0, isNew || !content.salt.isEmpty else {
            FileCalls.close(descriptor)
            if lines.errno != 0 { throw .directory("read \(path)", errno: lines.errno) }
            throw .store("\(path) is not a list of senders of format 1")
        }
        content.count()
        if isNew { content.salt = DepotFiles.randomName() + DepotFiles.randomName() }
        let salt = "salt \(content.salt)"
        self.content = Mutex(content)
        guard isNew else { return }
        do throws(FileProblem) {
            FileCalls.close(try DepotFiles.open(path, [.write, .empty]))
            isTorn.withLock { $0 = false }
            try write(Senders.head + [salt])
        } catch {
            throw .directory(error.operation, errno: error.errno)
        }
    }

    deinit { FileCalls.close(descriptor) }

    private static func take(
        _ line: ArraySlice<UInt8>, _ content: inout Content,
        _ lane: (_ id: LaneID, _ client: UInt32) -> Void
    ) {
        let words = line.split(separator: 0x20, omittingEmptySubsequences: false)
        switch (words[0], words.count) {
        case (LineWords.lane, 6...):
            guard let id = LaneID(hex: words[1]), let client: UInt32 = Digits.number(words[2])
            else { return }
            lane(id, client)
        case (LineWords.token, 5):
            guard let id = LaneID(hex: words[1]), let client: UInt32 = Digits.number(words[2]),
                let round: UInt64 = Digits.number(words[3])
            else { return }
            let isHere = words[4] == LineWords.here
            guard isHere || words[4] == LineWords.gone else { return }
            content.tokens[id] = Token(client: client, round: round, isHere: isHere)
            content.lastClient = max(content.lastClient, client)
            content.round = max(content.round, round)
        // A torn one may lack digits of the number, and then lacks the last word.
        case (LineWords.same, 4):
            guard let old: UInt32 = Digits.number(words[1]),
                let new: UInt32 = Digits.number(words[2]), content.client(new) != old
            else { return }
            content.same[old] = new
        case (LineWords.salt, 2): content.salt = String(decoding: words[1], as: UTF8.self)
        default: break
        }
    }

    // MARK: Clients

    /// The tokens that count from now on, those of a client together. Durable when it returns.
    /// - Returns: the client of each.
    func learn(_ clients: [[[UInt8]]]) throws(FileProblem) -> [UInt32] {
        var next = content.withLock { $0 }
        let round = next.round + 1
        var lines: [String] = []
        var here: Set<LaneID> = []
        var numbers: [UInt32] = []
        for tokens in clients {
            let digests = tokens.map { Senders.digest($0, next.salt) }
            let known = Set(digests.compactMap { next.tokens[$0].map { next.client($0.client) } })
            let number = known.min() ?? next.lastClient + 1
            for other in known where other != number {
                next.same[other] = number
                lines.append("same \(other) \(number) client")
            }
            next.lastClient = max(next.lastClient, number)
            for digest in digests where here.insert(digest).inserted {
                if let token = next.tokens[digest], token.isHere { continue }
                // One that comes back is no newcomer.
                let round = next.tokens[digest]?.round ?? round
                next.tokens[digest] = Token(client: number, round: round, isHere: true)
                lines.append("token \(digest.hex) \(number) \(round) here")
            }
            numbers.append(number)
        }
        let isNews = !lines.isEmpty
        for (digest, token) in next.tokens where token.isHere && !here.contains(digest) {
            next.tokens[digest]?.isHere = false
            lines.append("token \(digest.hex) \(token.client) \(token.round) gone")
        }
        // A later line may have made one of two clients.
        numbers = numbers.map { next.client($0) }
        if lines.isEmpty { return numbers }
        next.round = round
        next.count()
        do throws(FileProblem) {
            try write(lines)
        } catch {
            // Tokens that are gone are found to be gone again at the next start.
            if isNews { throw error }
        }
        content.withLock { $0 = next }
        return numbers
    }

    /// Whether clients can be told apart, and there is more than one.
    var areSeveral: Bool { content.withLock { $0.here.count > 1 } }

    /// Of numbers of clients as in the file, the sum of those that are this client.
    func sum(_ shares: [UInt32: Int], of client: UInt32) -> Int {
        content.withLock { content in
            shares.reduce(0) { $0 + (content.client($1.key) == client ? $1.value : 0) }
        }
    }

    /// - Parameter owner: as in the file; nil: nobody.
    func right(of client: UInt32, to owner: UInt32?) -> Right {
        guard let owner else { return .open }
        if client == 0 { return .own }
        return content.withLock { content in
            let owner = content.client(owner)
            if owner == client { return .own }
            // Also a lane that came when there were no tokens.
            guard content.here[owner] == nil, let came = content.here[client] else {
                return .another
            }
            return came > content.latest[owner] ?? 0 ? .open : .another
        }
    }

    /// The lanes are the sender's. Durable when it returns.
    func note(_ lanes: Set<LaneID>, _ sender: Sender) throws(FileProblem) {
        let seconds = Machine.realtimeNs() / 1_000_000_000
        let end = "\(sender.client) \(seconds) \(sender.address) \(sender.store)"
        try write(lanes.map { "lane \($0.hex) \(end)" })
    }

    private func write(_ lines: [String]) throws(FileProblem) {
        let problem: FileProblem? = isTorn.withLock { isTorn in
            var bytes: [UInt8] = isTorn ? [0x0a] : []
            for line in lines {
                bytes += line.utf8
                bytes.append(0x0a)
            }
            isTorn = true
            do throws(FileProblem) {
                _ = Files.seekEnd(descriptor)
                try DepotFiles.writeAll(descriptor, bytes)
                try DepotFiles.sync(descriptor)
                isTorn = false
                return nil
            } catch { return error }
        }
        if let problem { throw problem }
    }

    private static func digest(_ token: [UInt8], _ salt: String) -> LaneID {
        SHA256.first16(salt + " " + String(decoding: token, as: UTF8.self))
    }
}

private enum LineWords {
    static let lane = Array("lane".utf8)[...]
    static let token = Array("token".utf8)[...]
    static let same = Array("same".utf8)[...]
    static let salt = Array("salt".utf8)[...]
    static let here = Array("here".utf8)[...]
    static let gone = Array("gone".utf8)[...]
}

extension LaneID {
    var hex: String { Hex.text(bytes) }

    /// 32 hex digits.
    fileprivate init?(hex: ArraySlice<UInt8>) {
        guard hex.count == 32, let bytes = Hex.bytes(hex) else { return nil }
        self.init(bytes: bytes)
    }

    /// 16 bytes, as stored.
    fileprivate init(bytes: [UInt8]) {
        func word(_ bytes: ArraySlice<UInt8>) -> UInt64 {
            bytes.reversed().reduce(0) { $0 << 8 | UInt64($1) }
        }
        self.init(high: word(bytes[..<8]), low: word(bytes[8...]))
    }

    /// 8-4-4-4-12 hex digits; nil: the text has another form.
    init?(uuid: String) {
        guard let bytes = Hex.bytes(uuid.utf8.filter { $0 != 0x2d }), bytes.count == 16 else {
            return nil
        }
        self.init(bytes: bytes)
    }
}

/// The lines of a file, a piece of it in memory at a time.
private struct LineReader {
    private let descriptor: Int32
    private var piece = [UInt8](repeating: 0, count: 1 << 20)
    private var rest: [UInt8] = []
    private var start = 0
    private(set) var bytes: UInt64 = 0
    /// Of the failed read; 0: none failed.
    private(set) var errno: Int32 = 0

    init(_ descriptor: Int32) { self.descriptor = descriptor }

    /// After the last line: the file ends in one without its end.
    var hasRest: Bool { start < rest.count }

    mutating func next() -> ArraySlice<UInt8>? {
        var from = start
        while true {
            if let end = rest[from...].firstIndex(of: 0x0a) {
                defer { start = end + 1 }
                return rest[start..<end]
            }
            rest.removeFirst(start)
            start = 0
            from = rest.count
            let count = Files.readOnce(descriptor, into: &piece, piece.count, at: bytes)
            if count < 0 { errno = Errno.last }
            guard count > 0 else { return nil }
            rest += piece.prefix(count)
            bytes += UInt64(count)
        }
    }
}
