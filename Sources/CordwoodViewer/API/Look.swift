// One reader of the viewer: returns records, collects what is damaged or locked, and ends when the
// client has gone. One thread.

import Cordwood

final class Look {
    /// The number of problems reported one by one; the rest is counted.
    private static let toldMax = 20

    let reader: StoreReader
    private static let progressMs: UInt64 = 200

    private let stream: LineStream
    private(set) var problems: [String] = []
    private(set) var problemCount = 0

    /// Reads all stores, or one of them. Throws if a store cannot be opened.
    init(
        _ options: ViewerOptions, _ asked: ReaderOptions, _ stream: LineStream, path: String? = nil
    ) throws(Rejection) {
        self.stream = stream
        do throws(ReadProblem) {
            reader = try StoreReader(paths: path.map { [$0] } ?? options.paths, options: asked)
        } catch {
            throw Rejection(.internalServerError, error.line)
        }
        reader.shouldStop = { stream.isOver }
    }

    /// From now on, lines report how much of the archives' records was read.
    func watch() {
        let all = reader.archives.opened.reduce(0) { $0 &+ $1.recordCount }
        var next = Machine.realtimeNs()
        reader.onProgress = { [stream] looked in
            let now = Machine.realtimeNs()
            guard all > 0, now >= next else { return }
            next = now &+ Look.progressMs * 1_000_000
            let share = min(looked &* 100 / max(all, looked), 99)
            var line = Array("{\"progress\":0.\(share < 10 ? "0" : "")\(share)}\n".utf8)
            _ = stream.send(&line)
        }
    }

    /// False: the end, or nothing now.
    func next(_ record: inout RecordRef) -> Bool {
        while true {
            do throws(ReadProblem) {
                return try reader.advance(into: &record)
            } catch {
                problemCount += 1
                if problems.count < Look.toldMax { problems.append(error.line) }
            }
        }
    }

    /// A line `{"problem":…}` for each problem that was not reported yet.
    func appendProblems(told: inout Set<String>, to out: inout [UInt8]) {
        func add(_ text: String) {
            guard told.insert(text).inserted else { return }
            out += "{\"problem\":".utf8
            JSONText.string(text, &out)
            out += "}\n".utf8
        }
        problems.forEach(add)
        if problemCount > problems.count { add("\(problemCount - problems.count) more problems") }
        problems = []
        problemCount = 0
    }

    /// Reads one record by its key: at the place of its time, otherwise in all archives of its
    /// process.
    static func find(
        _ key: RecordKey, _ options: ViewerOptions, _ facts: FactsCache?, _ stream: LineStream
    ) throws(Rejection) -> (record: RecordRef, look: Look) {
        let near: UInt64 = 1_000_000_000
        var asked = ReaderOptions()
        asked.identities = options.identities
        asked.facts = facts
        asked.isBrief = true
        asked.origin.beside = .record(key.id)
        asked.since = key.timeNs > near ? key.timeNs - near : 0
        asked.until = key.timeNs < .max - near ? key.timeNs + near : 0
        for attempt in 0..<2 {
            if attempt == 1 { (asked.since, asked.until) = (0, 0) }
            let look = try Look(options, asked, stream)
            var record = RecordRef()
            if look.next(&record) { return (record, look) }
        }
        throw Rejection(.notFound, "no record has this key")
    }
}
