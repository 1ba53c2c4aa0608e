// The exchanges of stores, one after another: a StoreReader whose records go through an
// ExchangeGatherer. In the order in which they ended, those without an end last; while following,
// each as it begins and again as it ends. One thread at a time.

import CordwoodCore
import CordwoodStore

public final class ExchangeReader {
    /// What was met besides records: `problems` and the like.
    public let records: StoreReader
    private var gatherer: ExchangeGatherer
    private var ready: [CapturedExchange] = []
    private var readyHead = 0
    private var isDrained = false

    /// - Parameter options: level and conditions choose among records: `level` INFO leaves out
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

    /// nil: the end, or while following nothing for now: call again after 5 ms or more. Throws once
    /// per damaged place: call again for what follows it.
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
            // Those that were open when reading began are shown now; whoever follows sees their
            // ends.
            if isDrained { return nil }
            isDrained = true
            gatherer.finish { ready.append($0) }
            gatherer.isLive = records.options.follow
        }
    }

    /// As `advance`; what is damaged goes to `records.problems` and is passed over.
    public func next() -> CapturedExchange? {
        while true {
            do throws(ReadProblem) { return try advance() } catch { continue }
        }
    }
}
