// Reads a store from Swift as an asynchronous sequence, even while other processes write. Blocking
// file access happens on the task's own thread in small steps. A following reader that has nothing
// waits without a thread (FollowEvents).

import CordwoodCore
import CordwoodEngine
import CordwoodStore

/// The records of stores or single files, merged by time; within a thread the order is exact. The
/// reader skips damaged places and collects them in `problems` of the underlying StoreReader.
public struct Reader: AsyncSequence, Sendable {
    public typealias Element = Record

    private let paths: [String]
    private var options: ReaderOptions

    public init(_ paths: [String], options: ReaderOptions = ReaderOptions()) {
        self.paths = paths
        self.options = options
    }

    public init(_ path: String, options: ReaderOptions = ReaderOptions()) {
        self.init([path], options: options)
    }

    /// The same reader with a narrower selection; parameters left out keep their value, and a
    /// query is one more that must be true.
    public func filter(
        level: Level? = nil, logger: String? = nil, since: UInt64? = nil, until: UInt64? = nil,
        query: Query? = nil
    ) -> Reader {
        var reader = self
        if let level { reader.options.level = level.number }
        if let logger { reader.options.logger = logger }
        if let since { reader.options.since = since }
        if let until { reader.options.until = until }
        if let query { reader.options.require(query) }
        return reader
    }

    public func makeAsyncIterator() -> Iterator { Iterator(paths: paths, options: options) }

    public struct Iterator: AsyncIteratorProtocol {
        private let paths: [String]
        private let options: ReaderOptions
        private var reader: StoreReader?
        private var events: FollowEvents?

        init(paths: [String], options: ReaderOptions) {
            self.paths = paths
            self.options = options
        }

        /// nil at the end. A following reader waits for more, and throws CancellationError once
        /// the task is cancelled.
        public mutating func next() async throws -> Record? {
            do {
                let reader = try self.reader ?? StoreReader(paths: paths, options: options)
                self.reader = reader
                while true {
                    if let record = reader.nextRecord() { return record }
                    guard options.follow else { return nil }
                    let events = self.events ?? FollowEvents(reader.makeWatch())
                    self.events = events
                    try await events.wait(reader.followWait())
                }
            } catch let problem as ReadProblem {
                throw CordwoodError(problem)
            }
        }
    }
}

extension Engine {
    public enum ReadMode: Sendable { case all, follow }

    /// The records of this engine's store; `.follow` continues with records written later.
    public func reader(_ mode: ReadMode = .all) -> Reader {
        var options = ReaderOptions()
        options.follow = mode == .follow
        return Reader(directory, options: options)
    }
}
