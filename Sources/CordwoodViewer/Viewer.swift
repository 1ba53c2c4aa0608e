// The viewer's server: owns the listening socket, its event loop, the readers' threads and every
// connection. Made once, started once, stopped once; any thread.

import Cordwood
import CordwoodServing
import NIOCore
import NIOPosix
import Synchronization

public final class Viewer: Sendable {
    private struct Running {
        var server: Server
        var service: ViewerService
    }

    private let options: ViewerOptions
    private let keys: Keys
    private let activity = Activity()
    private let lifetime = Lifetime<Running>()

    public init(options: ViewerOptions) {
        self.options = options
        keys = Keys(linkTimeoutMs: options.linkTimeoutMs)
    }

    /// Checks that the stores can be opened, then listens. Returns the port; 0 for a socket.
    @discardableResult
    public func start() throws(ViewerError) -> Int {
        let address = try listenAddress()
        guard lifetime.begin() else { throw .started }
        for path in options.paths {
            guard FileFacts(following: FilePath(path)) != nil else {
                throw .store("\(path): \(Errno.text(Errno.last))")
            }
        }
        let server = Server(
            Server.Options(
                headerBytesMax: options.headerBytesMax, limits: options.limits,
                notice: options.notice,
                buffers: FixedSizeRecvByteBufferAllocator(capacity: 16 << 10)))
        let service = makeService(server)
        let port: Int
        do {
            let found = try Files.privately {
                try server.listen(on: address) { ViewerConnection(service, place: $0) }
            }
            port = found ?? 0
        } catch {
            service.end()
            throw .listen((error as? ListenFailure)?.text ?? "\(error)")
        }
        keys.setPort(port)
        lifetime.run(Running(server: server, service: service))
        return port
    }

    private func makeService(_ server: Server) -> ViewerService {
        let files = NIOThreadPool(numberOfThreads: 2)
        let seats = ViewerSeats(options)
        files.start()
        seats.start()
        let pages = PageFiles(directory: options.pageDirectory)
        return ViewerService(
            options: options,
            check: ViewerCheck(
                keys: keys, pageNames: pages.names, bodyBytesMax: options.bodyBytesMax,
                mayChange: !options.isReadOnly),
            pages: pages, api: ViewerAPI(options), seats: seats, files: files,
            connections: server.connections, log: server.log, activity: activity, stop: Stop())
    }

    /// The path of a new link, which works once and for a minute.
    public func makeLink() -> String {
        activity.touch()
        return ViewerCheck.linkPath + keys.makeLink()
    }

    /// The time since the last request; zero while an answer is under way.
    public var idle: Duration {
        if let running = lifetime.running, running.service.seats.areTaken { return .zero }
        return activity.idle
    }

    /// Accepts no new connections; answers that are under way end. Calls after the first do
    /// nothing.
    public func stop() {
        guard let running = lifetime.end() else { return }
        running.service.stop.ask()
        running.server.stop(timeoutMs: options.stopTimeoutMs) { running.service.end() }
        if let path = options.socketPath { Files.remove(FilePath(path)) }
    }

    private func listenAddress() throws(ViewerError) -> SocketAddress {
        if let path = options.socketPath {
            guard let address = try? SocketAddress(unixDomainSocketPath: path) else {
                throw .listen("\(path) is too long for a socket")
            }
            return address
        }
        let found: SocketAddress
        do throws(ListenFailure) {
            found = try ListenAddress(host: options.host, port: options.port).socketAddress()
        } catch {
            throw .listen(error.text)
        }
        guard Peer(found).isLoopback else { throw .notLoopback(options.host) }
        return found
    }
}

/// The time of the last request. Any thread.
final class Activity: Sendable {
    private let last = Mutex(NIODeadline.now())

    func touch() { last.withLock { $0 = .now() } }

    var idle: Duration { .nanoseconds(last.withLock { NIODeadline.now() - $0 }.nanoseconds) }
}

/// The seats of queries, and those of followed ones, each with its own thread. Any thread.
final class ViewerSeats: Sendable {
    enum Kind { case query, tail }

    struct Seat: Sendable {
        let pool: NIOThreadPool
        let leave: @Sendable () -> Void
    }

    private let queriesMax: Int
    private let tailsMax: Int
    private let queries: NIOThreadPool
    private let tails: NIOThreadPool
    private let taken = Mutex(Taken())

    private struct Taken {
        var queries = 0
        var tails = 0
    }

    init(_ options: ViewerOptions) {
        queriesMax = options.queriesMax
        tailsMax = options.tailsMax
        queries = NIOThreadPool(numberOfThreads: max(queriesMax, 1))
        tails = NIOThreadPool(numberOfThreads: max(tailsMax, 1))
    }

    func start() {
        queries.start()
        tails.start()
    }

    func stop() {
        try? queries.syncShutdownGracefully()
        try? tails.syncShutdownGracefully()
    }

    var areTaken: Bool { taken.withLock { $0.queries > 0 || $0.tails > 0 } }

    /// Nil: all are taken.
    func take(_ kind: Kind) -> Seat? {
        switch kind {
        case .query: take(queries, \.queries, queriesMax)
        case .tail: take(tails, \.tails, tailsMax)
        }
    }

    private func take(
        _ pool: NIOThreadPool, _ count: WritableKeyPath<Taken, Int> & Sendable, _ max: Int
    ) -> Seat? {
        let isFree = taken.withLock { taken in
            guard taken[keyPath: count] < max else { return false }
            taken[keyPath: count] += 1
            return true
        }
        return isFree
            ? Seat(pool: pool) { self.taken.withLock { $0[keyPath: count] -= 1 } } : nil
    }
}
