// What upload tests share: a store in a temporary directory with real archives, a clock that stands
// still unless moved, a real HTTP server with scripted answers (Tests/TestSupport/fault_server.py),
// a firewall that dislikes records, recorded callbacks.

import CordwoodTestSupport
import Foundation
import Glibc
import XCTest

@testable import CordwoodCore
@testable import CordwoodShip
@testable import CordwoodStore

/// SAFETY: guarded by its lock.
final class FakeClock: @unchecked Sendable {
    private let lock = NSLock()
    private var nowMs: UInt64 = 1_800_000_000_000
    private var bootMs: UInt64 = 1_000_000
    private var aheadMs: UInt64 = 0

    var unixMs: UInt64 { lock.withLock { nowMs } }
    var boottimeMs: UInt64 { lock.withLock { bootMs } }
    func advance(ms: UInt64) {
        lock.withLock {
            nowMs += ms
            bootMs += ms
        }
    }
    /// The monotonic clock runs by itself; this adds to it.
    func advanceMonotonic(ms: UInt64) { lock.withLock { aheadMs += ms } }
    /// Sets the wall clock.
    func jump(ms: Int64) { lock.withLock { nowMs = UInt64(Int64(nowMs) + ms) } }

    /// Deadlines use the real monotonic clock: transfers are real.
    var clock: UploadClock {
        UploadClock(
            realtimeMs: { self.unixMs },
            monotonicMs: { UploadClock.system.monotonicMs() + self.lock.withLock { self.aheadMs } },
            boottimeMs: { self.boottimeMs }, boot: { LaneID(high: 1, low: 2) })
    }
}

/// SAFETY: guarded by its lock.
final class Events: @unchecked Sendable {
    private let lock = NSLock()
    private var lines: [String] = []
    private var diagnosticLines: [String] = []

    func add(_ line: String) { lock.withLock { lines.append(line) } }
    func diagnose(_ line: String) { lock.withLock { diagnosticLines.append(line) } }
    var all: [String] { lock.withLock { lines } }
    var diagnostics: [String] { lock.withLock { diagnosticLines } }
}

/// Its services report to it as to an engine. SAFETY: a test changes it on one thread.
final class TestStore: UploadDelegate, @unchecked Sendable {
    let root: String
    let clock = FakeClock()
    let events = Events()
    /// The archives' files, by number.
    private(set) var files: [Int: [UInt8]] = [:]
    /// Their records.
    private var staged: [Int: [Staged]] = [:]
    var paths: StorePaths { StorePaths(FilePath(root)) }

    /// - Parameter inMemory: for thousands of stores, even if there is little room.
    init(consent: Consent = .granted, inMemory: Bool = false) throws {
        let place = inMemory ? "/dev/shm/" : StorePlace.folder
        var template = Array("\(place)cordwood-upload-XXXXXX".utf8CString)
        root = String(cString: mkdtemp(&template))
        _ = try StoreFile.open(
            storeDirectory: FilePath(root), consent: consent, idBytes: (1, 2), createdUnixSeconds: 0
        )
        try paths.makeDirectories()
    }

    deinit { try? FileManager.default.removeItem(atPath: root) }

    /// An archive with one record per line. `number` is the segment it covers, and so determines id
    /// and name; a larger one has younger records.
    func addArchive(_ number: Int, content: String? = nil) {
        let lines = (content ?? "dummy archive \(number)").utf8.split(separator: 10)
        let process = CordwoodStore.ProcessInfo(
            laneID: TestStore.cover(number).laneID, bootID: .zero, processID: 812, name: "test",
            createdRealtime: 0, createdMonotonic: 0, resource: [])
        let thread = ThreadInfo(process: process, serial: 1, threadID: 812, name: "main")
        let time = (clock.unixMs + UInt64(number)) * 1_000_000
        let records = lines.enumerated().map { index, line in
            var staged = Staged(thread: thread)
            staged.model.sequence = UInt64(number) << 32 | UInt64(index)
            staged.model.level = 9
            staged.model.time = time
            staged.model.written = time
            staged.model.message = Array(line)
            staged.model.originalLength = UInt64(line.count)
            return staged
        }
        addArchive(number, records: records)
    }

    func addArchive(
        _ number: Int, records: [Staged], effort: BlockEffort = .swift,
        recipients: [AgeRecipient] = []
    ) {
        do {
            let made = try makeArchive(
                records, in: "\(paths.archives)", covers: [TestStore.cover(number)],
                codec: effort == .dense ? .zstd : .none, effort: effort, recipients: recipients)
            files[number] = readAll("\(made.path)")
            staged[number] = records
        } catch {
            XCTFail("\(error)")
        }
    }

    /// Archives of one thread's records; each one's follow those of the one before.
    func addArchives(
        _ numbers: ClosedRange<Int>, records: Int, to recipients: [AgeRecipient] = []
    ) {
        let process = CordwoodStore.ProcessInfo(
            laneID: LaneID(high: 1, low: 2), bootID: .zero, processID: 812, name: "test",
            createdRealtime: 0, createdMonotonic: 0, resource: [])
        let thread = ThreadInfo(process: process, serial: 1, threadID: 812, name: "main")
        for number in numbers {
            addArchive(
                number,
                records: (0..<records).map { index in
                    var staged = Staged(thread: thread)
                    staged.model.sequence = UInt64(number) << 32 | UInt64(index)
                    staged.model.level = 9
                    staged.model.monotonic = UInt64(number * 1_000 + index)
                    staged.model.written = staged.model.monotonic
                    staged.model.time = staged.model.monotonic
                    staged.model.message = Array("record \(index) of \(number)".utf8)
                    staged.model.originalLength = UInt64(staged.model.message.count)
                    return staged
                }, recipients: recipients)
        }
    }

    /// Its files as they are now, in another store.
    func copy() throws -> TestStore {
        let other = try TestStore(inMemory: true)
        try FileManager.default.removeItem(atPath: other.root)
        try FileManager.default.copyItem(atPath: root, toPath: other.root)
        return other
    }

    /// Adds the segment that the archive covers.
    func addSegment(of number: Int) throws {
        try FileManager.default.createDirectory(
            atPath: "\(paths.lanes)", withIntermediateDirectories: true)
        let cover = TestStore.cover(number)
        writeAll([], "\(paths.lanes)/\(cover.laneName)" + String(format: ".%08d-0001.seg", number))
    }

    /// One archive that replaces them all, as a compacting program makes it; unless it covers
    /// other segments, or lacks records.
    @discardableResult
    func addContainer(
        _ numbers: ClosedRange<Int>, covering others: ClosedRange<Int>? = nil, lacking: Int = 0
    ) throws -> String {
        let covered = others ?? numbers
        var cover = TestStore.cover(covered.lowerBound)
        cover.last = UInt64(covered.upperBound)
        let members = numbers.map { staged[$0] ?? [] }
        let made = try ArchiveWriter.write(
            source: FakeSource(members.flatMap { $0 }.dropLast(lacking)), covers: [cover],
            archivesDirectory: paths.archives, codec: .none, level: 0, now: 42,
            replaced: zip(numbers, members).map { number, records in
                ReplacedArchive(
                    id: ArchiveIdentity.id([TestStore.cover(number)]),
                    recordCount: UInt64(records.count))
            })
        return made.idText
    }

    private static func cover(_ number: Int) -> ArchiveCover {
        let segment = UInt64(number)
        return ArchiveCover(
            laneID: LaneID(high: 1, low: 2), first: segment, last: segment,
            laneName: "20261121T081530Z-812-9f3c5a0de1b27788")
    }

    static func id(_ number: Int) -> String {
        ArchiveIdentity.text(ArchiveIdentity.id([cover(number)]))
    }

    func stem(_ number: Int) -> String {
        let covers = [TestStore.cover(number)]
        return String(
            ArchiveIdentity.fileName(of: covers, ArchiveIdentity.id(covers)).dropLast(4))
    }

    func hasArchive(_ number: Int) -> Bool { StoreFiles.exists(paths.archive(stem(number))) }

    var queue: [String] {
        ((try? StoreFiles.list(paths.queue)) ?? []).map { name in
            String(name[name.index(after: name.lastIndex(of: ".")!)...])
        }.sorted()
    }

    /// - Parameters:
    ///   - settleMs: with 0, its background begins at once.
    ///   - coveredMs: short where calls wait in vain for segments to go.
    func service(settleMs: UInt64 = 0, coveredMs: UInt64 = 1_000) throws -> UploadService {
        let service = try UploadService(
            storeDirectory: FilePath(root), clock: clock.clock, settleMs: settleMs,
            coveredMs: coveredMs,
            random: { UInt64.max })
        service.delegate = self
        return service
    }

    func report(_ diagnostic: UploadDiagnostic) {
        let fields = diagnostic.fields.map { "\($0.key)=\($0.value)" }
        events.diagnose(diagnostic.message + " " + fields.joined(separator: " "))
    }

    func archiveRemoved(_ archiveName: String, _ reason: RemovalReason) {
        events.add("removed \(reason)")
    }

    var hearsRemovals: Bool { true }

    /// False: one body after another, so that the answer to one never ends a run while another
    /// thread is about to send the next.
    var startsThreads = true

    func startUploadThread(_ body: @escaping @Sendable () -> Void) -> Bool {
        startsThreads && EngineThread.start("cordwood-upload", body)
    }

    func target(
        _ url: String, _ change: (inout TargetOptions) -> Void = { _ in }
    ) throws -> Target {
        var options = TargetOptions(url: url)
        change(&options)
        let events = self.events
        var callbacks = TargetCallbacks()
        callbacks.attempting = { _, attempt in events.add("attempt \(attempt)") }
        callbacks.completed = { _, status, http in events.add("completed \(status) \(http)") }
        return try Target(options, callbacks: callbacks)
    }
}

extension UploadService {
    func pass(explicit: Bool = true, seconds: Double = 20) -> (UploadStatus, UploadResult) {
        var result = UploadResult()
        let deadline = UploadClock.system.monotonicMs() + UInt64(seconds * 1_000)
        return (pass(explicit: explicit, deadlineMonotonicMs: deadline, result: &result), result)
    }
}

/// A process of fault_server.py, which serves one script after the other. SAFETY: one owner at a
/// time.
private final class FaultProcess: @unchecked Sendable {
    private(set) var port: Int
    private let process: pid_t
    private let input: Int32
    private let output: Int32

    init(_ words: [String]) throws {
        let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().appendingPathComponent("TestSupport/fault_server.py").path
        var toServer: [Int32] = [0, 0]
        var fromServer: [Int32] = [0, 0]
        // A socket, because a write to a pipe whose reader has died raises SIGPIPE.
        guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &toServer) == 0,
            pipe(&fromServer) == 0
        else { throw POSIXError(.EMFILE) }
        // A server started later must not hold this one's stdin open.
        for end in toServer + fromServer { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        posix_spawn_file_actions_adddup2(&actions, toServer[0], 0)
        posix_spawn_file_actions_adddup2(&actions, fromServer[1], 1)
        defer { posix_spawn_file_actions_destroy(&actions) }
        var arguments: [UnsafeMutablePointer<CChar>?] =
            (["python3", "-u", script] + words).map { strdup($0) } + [nil]
        defer { arguments.forEach { free($0) } }
        var started: pid_t = 0
        let code = posix_spawnp(&started, "python3", &actions, nil, &arguments, environ)
        close(toServer[0])
        close(fromServer[1])
        guard code == 0 else { throw POSIXError(.ENOENT) }
        process = started
        input = toServer[1]
        output = fromServer[0]
        guard let number = FaultProcess.number(output) else { throw POSIXError(.ECONNREFUSED) }
        port = number
    }

    deinit {
        close(input)
        close(output)
        waitpid(process, nil, 0)
    }

    /// Goes on with another script at another port, as if it had just started. False: the process
    /// has died.
    func begin(_ words: [String]) throws -> Bool {
        let line = try Array(JSONEncoder().encode(words)) + [10]
        guard line.withUnsafeBytes({ give($0) }), let number = FaultProcess.number(output) else {
            return false
        }
        port = number
        return true
    }

    private func give(_ line: UnsafeRawBufferPointer) -> Bool {
        var done = 0
        while done < line.count {
            let count = send(
                input, line.baseAddress! + done, line.count - done, Int32(MSG_NOSIGNAL))
            guard count > 0 else { return false }
            done += count
        }
        return true
    }

    /// The next line.
    private static func number(_ output: Int32) -> Int? {
        var text = ""
        var byte: UInt8 = 0
        while Glibc.read(output, &byte, 1) == 1, byte != 10 {
            text.unicodeScalars.append(Unicode.Scalar(byte))
        }
        return Int(text)
    }
}

/// The server serves as long as this object lives. Its process then serves the next one with the
/// same certificates: starting an interpreter takes longer than most tests.
final class FaultServer {
    struct Request: Decodable {
        var method: String
        var path: String
        var bytes: Int
        var number: Int
        var headers: [String: String]
    }
    struct Stored: Decodable {
        var times: Int
        var same: Bool
    }

    private static let lock = NSLock()
    /// By certificates. SAFETY: guarded by the lock.
    nonisolated(unsafe) private static var idle: [[String]: [FaultProcess]] = [:]

    let directory: String
    private let process: FaultProcess
    private let pems: [String]
    var port: Int { process.port }
    var url: String { (pems.isEmpty ? "http" : "https") + "://127.0.0.1:\(port)" }

    /// - Parameters:
    ///   - pem: path of key and certificate; nil: no TLS.
    ///   - authority: path of the certificate that clients' must be signed by; nil: they need none.
    ///   - rules: `NAME=VALUE` of fault_server.py.
    init(
        _ answers: String = "[]", pem: String? = nil, authority: String? = nil,
        rules: [String] = []
    ) throws {
        var template = Array("/tmp/cordwood-server-XXXXXX".utf8CString)
        directory = String(cString: mkdtemp(&template))
        let pems = [pem, authority].compactMap { $0 }
        self.pems = pems
        let words = [directory, answers] + pems + rules
        if let idle = FaultServer.takeIdle(pems), try idle.begin(words) {
            process = idle
        } else {
            process = try FaultProcess(words)
        }
    }

    private static func takeIdle(_ pems: [String]) -> FaultProcess? {
        lock.withLock { idle[pems]?.isEmpty == false ? idle[pems]?.removeFirst() : nil }
    }

    deinit {
        FaultServer.lock.withLock { FaultServer.idle[pems, default: []].append(process) }
        try? FileManager.default.removeItem(atPath: directory)
    }

    var requests: [Request] {
        decodedLines(directory + "/requests.jsonl").sorted { $0.number < $1.number }
    }

    var stored: [String: Stored] {
        guard let data = FileManager.default.contents(atPath: directory + "/stored.json") else {
            return [:]
        }
        return (try? JSONDecoder().decode([String: Stored].self, from: data)) ?? [:]
    }

    var connections: Int {
        FileManager.default.contents(atPath: directory + "/connections")?.count ?? 0
    }

    func body(_ number: Int) -> [UInt8] {
        Array(FileManager.default.contents(atPath: directory + "/body-\(number)") ?? Data())
    }

    /// How often it got each record, by sequence, with bodies of one id counted once.
    func taken(_ identity: AgeIdentity) throws -> [UInt64: Int] {
        var counts: [UInt64: Int] = [:]
        var keys: Set<String> = []
        for request in requests
        where keys.insert(request.headers["idempotency-key"] ?? "").inserted {
            let path = FilePath(directory + "/body-\(request.number)")
            let source = try ArchiveSource.open(path: path, identities: [identity])
            for record in drain(source).records { counts[record.sequence, default: 0] += 1 }
        }
        return counts
    }
}

/// Answers `status` to every body with a disliked record, and what its kind demands to others.
/// SAFETY: guarded by its lock.
final class Firewall: UploadTransport, @unchecked Sendable {
    let kind: String
    let status: Int
    private let lock = NSLock()
    private var dislikes: Set<String>
    private var bodies: [String: [String]] = [:]
    private var refusals = 0
    private var requests = 0
    /// Called within each request, before it is answered. True: the process dies in it.
    var dies: (Int) -> Bool = { _ in false }
    /// Whether the request in which the process dies reaches the server.
    var arrives = false
    private var isDead = false
    var headers: [(name: String, value: String)] = []

    init(_ kind: String, dislikes: Set<String>, status: Int = 403) {
        (self.kind, self.dislikes, self.status) = (kind, dislikes, status)
    }

    func revive() { lock.withLock { isDead = false } }
    func like(_ records: Set<String>) { lock.withLock { dislikes.subtract(records) } }
    var refused: Int { lock.withLock { refusals } }
    var asked: Int { lock.withLock { requests } }
    /// By record: the ids of the requests that brought it.
    var taken: [String: Set<String>] {
        lock.withLock {
            var taken: [String: Set<String>] = [:]
            for (id, records) in bodies {
                for one in records { taken[one, default: []].insert(id) }
            }
            return taken
        }
    }

    func send(_ request: UploadRequest) throws -> UploadResponse {
        let number = lock.withLock {
            requests += 1
            return requests
        }
        if lock.withLock({ isDead }) { throw UploadTransportError("dead", isUnreachable: true) }
        let isLast = dies(number)
        if isLast { lock.withLock { isDead = true } }
        if isLast, !arrives { throw UploadTransportError("dead") }
        let id = request.headers.first { $0.name == "Idempotency-Key" }?.value ?? ""
        let found = Firewall.records(try request.content())
        return try lock.withLock {
            guard dislikes.isDisjoint(with: found) else {
                refusals += 1
                return UploadResponse(
                    status: status, headers: headers, body: Array("Request blocked.".utf8))
            }
            // The same id brings the same records.
            if let before = bodies[id] { XCTAssertEqual(before, found, id) }
            bodies[id] = found
            if isLast { throw UploadTransportError("dead") }
            let answer: (Int, String) =
                switch kind {
                case "loki": (204, "")
                case "loggly": (200, #"{"response":"ok"}"#)
                case "splunk": (200, #"{"text":"Success","code":0}"#)
                case "datadog": (202, "{}")
                case "elasticsearch": (200, #"{"took":1,"errors":false}"#)
                default: (200, "")
                }
            return UploadResponse(
                status: answer.0, headers: kind == "s3" ? [("ETag", "\"e\"")] : [],
                body: Array(answer.1.utf8))
        }
    }

    /// `<archive>r<record>x`, in their order, each once.
    private static func records(_ body: [UInt8]) -> [String] {
        let text = String(decoding: body, as: UTF8.self)
        var seen: Set<String> = []
        return text.matches(of: #/[0-9]+r[0-9]+x/#).map { String($0.output) }
            .filter { seen.insert($0).inserted }
    }
}

/// One JSON value per line.
func decodedLines<Row: Decodable>(_ path: String) -> [Row] {
    let text = try? String(contentsOfFile: path, encoding: .utf8)
    return (text ?? "").split(separator: "\n").compactMap {
        try? JSONDecoder().decode(Row.self, from: Data($0.utf8))
    }
}

/// Polls for at most 20 s; fails the test if that is not enough.
func eventually(_ what: String, _ condition: () -> Bool) {
    for _ in 0..<20_000 {
        if condition() { return }
        usleep(1_000)
    }
    XCTFail("never: \(what)")
}
