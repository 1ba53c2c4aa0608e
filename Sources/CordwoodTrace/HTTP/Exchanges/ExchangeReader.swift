// The exchanges of stores, one after another: a StoreReader whose records go through an
// ExchangeGatherer. They come in the order in which they ended, those without an end last. While
// following, each comes as it begins and again as it ends. One thread at a time.

import CordwoodCore
import CordwoodStore

public final class ExchangeReader {
    /// Everything else that was met: `problems` and the like.
    public let records: StoreReader
    private var gatherer: ExchangeGatherer
    private var ready: [CapturedExchange] = []
    private var readyHead = 0
    private var isDrained = false

    /// - Parameter options: level and conditions select records: `level` INFO leaves out
    ///   beginnings. `kinds` is set here.
    public init(
        paths: [String], options: ReaderOptions = ReaderOptions(), bodies: Bool = true
    ) throws(ReadProblem) {
        var options = options
        options.kinds = ExchangeGatherer.kinds
        gatherer = ExchangeGatherer(bodies: bodies, watch: LaneWatch(paths: paths))
        records = try StoreReader(paths: paths, options: options)
    }

    public convenience init(
        path: String, options: ReaderOptions = ReaderOptions(), bodies: Bool = true
    ) throws(ReadProblem) {
        try self.init(paths: [path], options: options, bodies: bodies)
    }

    /// nil: the end, or while following when nothing is due: call again after `records.wait()`.
    /// Throws once for each damaged place: call again to continue after it.
    public func advance() throws(ReadProblem) -> CapturedExchange? {
        while true {
            if readyHead < ready.count {
                readyHead &+= 1
                return ready[readyHead &- 1]
            }
            ready.removeAll(keepingCapacity: true)
            readyHead = 0
            if let record = try records.advance() {
                gatherer.take(record) { ready.append($0) }
                continue
            }
            // Exchanges that were open when reading began are shown now; a following reader sees
            // their ends.
            if isDrained { return nil }
            isDrained = true
            gatherer.finish { ready.append($0) }
            gatherer.isLive = records.options.follow
        }
    }

    /// Like `advance`, but skips damage and collects it in `records.problems`.
    public func next() -> CapturedExchange? {
        while true {
            do throws(ReadProblem) { return try advance() } catch { continue }
        }
    }
}
