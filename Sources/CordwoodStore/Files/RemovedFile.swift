// The file `removed` of a store: what its limits or denied consent removed before every target had
// it (FORMAT §2.7). An archive's line is written before the archive is unlinked, and counts once
// the archive is gone: a process that dies in between has claimed nothing. The line names those who
// have not been told yet; without such a name it becomes part of its reason's sum. Any thread, any
// process; writers hold the lock of the store's directory. On a full disk there may be no line.

import CordwoodCore
import CordwoodFormats

/// Why an archive left the disk unsent (CW_REMOVED_…).
public enum RemovalReason: UInt32, Sendable, CaseIterable {
    case quota = 1
    case count = 2
    case expired = 3
    case consent = 4

    public var word: String {
        switch self {
        case .quota: "quota"
        case .count: "count"
        case .expired: "expired"
        case .consent: "consent"
        }
    }

    init?(word: Substring) {
        guard let found = RemovalReason.allCases.first(where: { $0.word == word }) else {
            return nil
        }
        self = found
    }
}

/// Records that were removed unsent, for one reason.
public struct RemovedSum: Equatable, Sendable {
    public var reason: RemovalReason
    public var archives: UInt64 = 0
    public var records: UInt64 = 0
    /// UTC ns of the first and the last record in these archives; 0: not known.
    public var timeMin: UInt64 = 0
    public var timeMax: UInt64 = 0

    package init(
        _ reason: RemovalReason, archives: UInt64 = 0, records: UInt64 = 0, timeMin: UInt64 = 0,
        timeMax: UInt64 = 0
    ) {
        self.reason = reason
        self.archives = archives
        self.records = records
        self.timeMin = timeMin
        self.timeMax = timeMax
    }

    /// Numbers from a file may be anything.
    fileprivate mutating func add(_ other: RemovedSum) {
        func sum(_ a: UInt64, _ b: UInt64) -> UInt64 {
            let (sum, overflow) = a.addingReportingOverflow(b)
            return overflow ? .max : sum
        }
        archives = sum(archives, other.archives)
        records = sum(records, other.records)
        if timeMin == 0 || other.timeMin != 0 && other.timeMin < timeMin { timeMin = other.timeMin }
        timeMax = max(timeMax, other.timeMax)
    }

    fileprivate var numbers: String { "\(records) \(timeMin) \(timeMax)" }
}

/// One archive that was removed unsent.
package struct RemovedArchive: Equatable, Sendable {
    package var stem: String
    package var sum: RemovedSum
    /// Keys of targets whose programs were not told; `host`: no program's `archive_removed` was.
    package var untold: Set<String>

    /// No target's key.
    package static let host = "@"

    package init(stem: String, sum: RemovedSum, untold: Set<String>) {
        self.stem = stem
        self.sum = sum
        self.untold = untold
    }
}

package struct RemovedFile: Equatable, Sendable {
    package static let fileName = "removed"
    private static let firstLine = "cordwood removed"
    package static let bytesMax = 256 << 10

    /// At most one for each reason.
    private(set) var sums: [RemovedSum] = []
    /// Reasons that a record in the store has named.
    private(set) var named: Set<RemovalReason> = []
    /// In the order of removal, each once. Those that exist were not removed.
    private(set) var archives: [RemovedArchive] = []

    /// What was removed, with the lines of archives that are gone. Empty if that is not known.
    package static func sums(storeDirectory: FilePath) -> [RemovedSum] {
        guard var file = try? read(storeDirectory), let stems = try? stems(in: storeDirectory)
        else { return [] }
        file.settle(existing: stems)
        for archive in file.archives { file.add(archive.sum) }
        return file.sums.sorted { $0.reason.rawValue < $1.reason.rawValue }
    }

    /// Runs `remove`, which unlinks the archive, with its line written.
    /// - Parameter unsent: nil: nothing is lost with it. A line that a process left when it died
    ///   before the unlink must not outlive the archive then.
    /// - Returns: whether its line is in the file.
    /// CRASH: after the line, the archive exists, and the line counts for nothing.
    @discardableResult
    static func noting<Failure: Error>(
        _ unsent: RemovedArchive?, stem: String, storeDirectory: FilePath,
        _ remove: () throws(Failure) -> Void
    ) throws(Failure) -> Bool {
        guard unsent != nil || hasLine(stem, storeDirectory),
            let lock = try? StoreFiles.lockStore(storeDirectory, waitNs: lockWaitNs)
        else {
            try remove()
            return false
        }
        defer { _ = lock.number }
        let isNoted = note(unsent, stem, storeDirectory)
        try remove()
        // The disk may have been full.
        return isNoted || note(unsent, stem, storeDirectory)
    }

    /// A process that was stopped in these few calls holds up no removal for long.
    private static let lockWaitNs: UInt64 = 1_000_000_000

    /// Takes the archives of which these have not been told: nobody else gets them from now on.
    /// CRASH: after this, the caller's host is never told.
    package static func claim(
        for askers: Set<String>, storeDirectory: FilePath
    ) -> [RemovedArchive] {
        guard let seen = try? read(storeDirectory),
            seen.archives.contains(where: { !$0.untold.isDisjoint(with: askers) }),
            let lock = try? StoreFiles.lockStore(storeDirectory)
        else { return [] }
        defer { _ = lock.number }
        guard var file = try? read(storeDirectory), let stems = try? stems(in: storeDirectory)
        else { return [] }
        file.settle(existing: stems)
        let claimed = file.take(askers)
        guard !claimed.isEmpty, file.write(storeDirectory) else { return [] }
        return claimed
    }

    /// True once in a store for each reason; more often if it cannot be written down.
    package static func names(_ reason: RemovalReason, storeDirectory: FilePath) -> Bool {
        guard let lock = try? StoreFiles.lockStore(storeDirectory, waitNs: lockWaitNs) else {
            return true
        }
        defer { _ = lock.number }
        guard var file = try? read(storeDirectory), let stems = try? stems(in: storeDirectory)
        else { return true }
        guard file.named.insert(reason).inserted else { return false }
        file.settle(existing: stems)
        _ = file.write(storeDirectory)
        return true
    }

    // ── Under the lock of the store's directory ──

    /// False: the line could not be written, or taken away.
    private static func note(
        _ unsent: RemovedArchive?, _ stem: String, _ directory: FilePath
    ) -> Bool {
        if let unsent {
            guard let line = unsent.line else { return false }  // not a name of ours
            if append(line, directory) { return true }
        }
        guard var file = try? read(directory), let stems = try? stems(in: directory) else {
            return false
        }
        file.archives.removeAll { $0.stem == stem }
        file.settle(existing: stems)
        if let unsent { file.archives.append(unsent) }
        return file.write(directory)
    }

    /// False: the file is missing, full, torn, or cannot be written.
    private static func append(_ line: String, _ directory: FilePath) -> Bool {
        let path = directory + "/" + fileName
        let bytes = Array(line.utf8) + [0x0A]
        guard let old = try? StoreFiles.read(path, bytesMax: bytesMax),
            old.starts(with: RemovedFile().bytes), old.last == 0x0A,
            old.count + bytes.count < bytesMax,
            let file = try? FileDescriptor(path: path, flags: [.write, .nonBlocking, .noTerminal]),
            Files.seekEnd(file.number) == old.count
        else { return false }
        let error = unsafe bytes.withUnsafeBytes { unsafe Files.write(file.number, $0) }
        return error == 0 && Files.syncData(file.number)
    }

    /// Leaves out archives that exist: whoever was to remove them died or failed, because it would
    /// hold the lock. Lines of which everybody was told become sums.
    mutating func settle(existing stems: Set<String>) {
        archives.removeAll { stems.contains($0.stem) }
        for archive in archives where archive.untold.isEmpty { add(archive.sum) }
        archives.removeAll { $0.untold.isEmpty }
    }

    mutating func take(_ askers: Set<String>) -> [RemovedArchive] {
        var taken: [RemovedArchive] = []
        for index in archives.indices {
            var one = archives[index]
            one.untold.formIntersection(askers)
            guard !one.untold.isEmpty else { continue }
            archives[index].untold.subtract(askers)
            taken.append(one)
        }
        return taken
    }

    private mutating func add(_ sum: RemovedSum) {
        guard let index = sums.firstIndex(where: { $0.reason == sum.reason }) else {
            return sums.append(sum)
        }
        sums[index].add(sum)
    }

    private func write(_ directory: FilePath) -> Bool {
        var file = self
        file.shorten()
        let bytes = file.bytes
        return (try? StoreFiles.replace(RemovedFile.fileName, inStore: directory, with: bytes))
            != nil
    }

    /// The oldest lines become sums, whoever was not told: half of the file stays free.
    private mutating func shorten() {
        var bytes = archives.reduce(0) { $0 + ($1.line?.utf8.count ?? 0) + 1 }
        var count = 0
        // The last one may be about to be removed.
        while bytes > RemovedFile.bytesMax / 2, count < archives.count - 1 {
            bytes -= (archives[count].line?.utf8.count ?? 0) + 1
            add(archives[count].sum)
            count += 1
        }
        archives.removeFirst(count)
    }

    // ── The form ──

    var bytes: [UInt8] {
        KeyValueFile.bytes(
            RemovedFile.firstLine,
            named.map { "named \($0.word)" }.sorted()
                + sums.map { "sum \($0.reason.word) \($0.archives) \($0.numbers)" }
                + archives.compactMap(\.line))
    }

    /// Throws if it cannot be read now or is of a later version. What is not such a file is empty.
    static func read(_ directory: FilePath) throws(UploadError) -> RemovedFile {
        do throws(UploadError) {
            let path = directory + "/" + fileName
            guard let bytes = try StoreFiles.read(path, bytesMax: bytesMax) else {
                return RemovedFile()
            }
            return try parse(bytes)
        } catch .damaged {
            return RemovedFile()
        } catch .system(_, _, Errno.ELOOP) {
            return RemovedFile()
        }
    }

    /// A last line that does not end was torn. Skips unknown keys and what is no line of ours.
    static func parse(_ bytes: [UInt8]) throws(UploadError) -> RemovedFile {
        var file = RemovedFile()
        var places: [String: Int] = [:]
        let whole = bytes[..<(bytes.lastIndex(of: 0x0A) ?? 0)]
        let read = try KeyValueFile(whole, firstLine: firstLine, path: FilePath(fileName))
        for line in read.lines {
            let words = line.value.split(separator: " ")
            guard let reason = words.first.flatMap({ RemovalReason(word: $0) }) else { continue }
            if line.key == "named" { file.named.insert(reason) }
            guard words.count >= 5 else { continue }
            let isSum = line.key == "sum"
            let numbers = words[(isSum ? 1 : 2)...].prefix(isSum ? 4 : 3).compactMap { UInt64($0) }
            if isSum, numbers.count == 4 {
                file.add(
                    RemovedSum(
                        reason, archives: numbers[0], records: numbers[1], timeMin: numbers[2],
                        timeMax: numbers[3]))
            } else if line.key == "archive", numbers.count == 3, !words[1].contains("/") {
                let archive = RemovedArchive(
                    stem: String(words[1]),
                    sum: RemovedSum(
                        reason, archives: 1, records: numbers[0], timeMin: numbers[1],
                        timeMax: numbers[2]),
                    untold: Set(words[5...].map(String.init)))
                if let place = places[archive.stem] {
                    file.archives[place] = archive
                } else {
                    places[archive.stem] = file.archives.count
                    file.archives.append(archive)
                }
            }
        }
        return file
    }

    private static func hasLine(_ stem: String, _ directory: FilePath) -> Bool {
        guard let file = try? read(directory) else { return false }
        return file.archives.contains { $0.stem == stem }
    }

    private static func stems(in directory: FilePath) throws(UploadError) -> Set<String> {
        let names = try StoreFiles.list(StorePaths(directory).archives)
        return Set(names.compactMap { StorePaths.stem(ofFile: $0) })
    }
}

extension RemovedArchive {
    /// nil: its name does not fit into one.
    fileprivate var line: String? {
        func isWord(_ text: String) -> Bool {
            !text.isEmpty && text.utf8.allSatisfy { $0 > 0x20 && $0 != 0x7F }
        }
        guard isWord(stem) else { return nil }
        let words =
            ["archive", sum.reason.word, stem, sum.numbers] + untold.sorted().filter(isWord)
        return words.joined(separator: " ")
    }
}
