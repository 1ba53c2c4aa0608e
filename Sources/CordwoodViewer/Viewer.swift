// The viewer's server: owns the listening socket, its event loop, the readers' threads and every
// connection. Made once, started once, stopped once; any thread.

import Cordwood
import CordwoodServing
import NIOCore
import NIOHTTP1
import NIOPosix
import Synchronization

public final class Viewer: Sendable {
    private struct Running {
        var group: MultiThreadedEventLoopGroup
        var server: any Channel
        var service: ViewerService
    }

    private enum State {
        case fresh
        case running(Running)
        case stopped
    }

    private let options: ViewerOptions
    private let keys: Keys
    private let activity = Activity()
    private let state = Mutex(State.fresh)

    public init(options: ViewerOptions) {
        self.options = options
        keys = Keys(linkTimeoutMs: options.linkTimeoutMs)
    }

    /// Looks whether the stores can be opened, then listens. Returns the port; 0 for a socket.
    @discardableResult
    public func start() throws(ViewerError) -> Int {
        let address = try listenAddress()
        let isFresh = state.withLock { state in
            guard case .fresh = state else { return false }
            state = .stopped
            return true
        }
        guard isFresh else { throw .started }
        for path in options.paths {
            guard FileFacts(following: path) != nil else {
                throw .store("\(path): \(Errno.text(Errno.last))")
            }
        }
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let files = NIOThreadPool(numberOfThreads: 2)
        let seats = ViewerSeats(options)
        files.start()
        seats.start()
        let log = RefusalLog(options.notice)
        let pages = PageFiles(directory: options.pageDirectory)
        let service = ViewerService(
            options: options,
            check: ViewerCheck(
                keys: keys, pageNames: pages.names, bodyBytesMax: options.bodyBytesMax,
                mayChange: !options.isReadOnly),
            pages: pages, api: ViewerAPI(options), seats: seats, files: files,
            connections: Connections(options.limits), log: log, activity: activity, stop: Stop())
        let server: any Channel
        do {
            let bootstrap = bootstrap(group, service)
            server = try Files.privately { try bootstrap.bind(to: address).wait() }
        } catch {
            seats.stop()
            try? files.syncShutdownGracefully()
            try? group.syncShutdownGracefully()
            throw .listen("\(address): \(error)")
        }
        let port = server.localAddress?.port ?? 0
        keys.setPort(port)
        group.next().scheduleRepeatedTask(
            initialDelay: RefusalLog.window, delay: RefusalLog.window
        ) { _ in log.flush() }
        let running = Running(group: group, server: server, service: service)
        state.withLock { $0 = .running(running) }
        return port
    }

    /// The path of a new link, which works once and for a minute.
    public func makeLink() -> String {
        activity.touch()
        return ViewerCheck.linkPath + keys.makeLink()
    }

    /// For how long nobody has asked anything; zero while an answer is under way.
    public var idle: Duration {
        let running = state.withLock { state -> Running? in
            if case .running(let running) = state { running } else { nil }
        }
        if let running, running.service.seats.areTaken { return .zero }
        return activity.idle
    }

    /// Accepts no new connections; answers that are under way end. Calls after the first do
    /// nothing.
    public func stop() {
        let running = state.withLock { state -> Running? in
            defer { state = .stopped }
            if case .running(let running) = state { return running }
            return nil
        }
        guard let running else { return }
        let service = running.service
        service.stop.ask()
        try? running.server.close().wait()
        service.connections.drain(timeoutMs: options.stopTimeoutMs)
        service.seats.stop()
        try? service.files.syncShutdownGracefully()
        try? running.group.syncShutdownGracefully()
        if let path = options.socketPath { Files.remove(path) }
        service.log.flush(isLast: true)
    }

    private func listenAddress() throws(ViewerError) -> SocketAddress {
        if let path = options.socketPath {
            guard let address = try? SocketAddress(unixDomainSocketPath: path) else {
                throw .listen("\(path) is too long for a socket")
            }
            return address
        }
        let address = ListenAddress(host: options.host, port: options.port)
        guard let found = address.socketAddress else {
            throw .listen("\(options.host) is not an IP address")
        }
        guard Peer(found).isLoopback else { throw .notLoopback(options.host) }
        return found
    }

    private func bootstrap(
        _ group: MultiThreadedEventLoopGroup, _ service: ViewerService
    ) -> ServerBootstrap {
        let headerBytesMax = options.headerBytesMax
        let bootstrap = ServerBootstrap(group: group)
            .serverChannelOption(.backlog, value: 128)
            .childChannelOption(.maxMessagesPerRead, value: 2)
            .childChannelOption(
                .recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: 16 << 10)
            )
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let pipeline = channel.pipeline.syncOperations
                    let peer = Peer(channel.remoteAddress)
                    if let refusal = service.connections.add(channel, peer: peer) {
                        return try pipeline.addHandler(
                            RefusedConnection(refusal, service.connections, service.log))
                    }
                    var limits = NIOHTTPDecoderLimitConfiguration()
                    limits.maxHeaderFieldSize = headerBytesMax
                    limits.maxHeaderListSize = headerBytesMax
                    let decoder = HTTPRequestDecoder(limitConfiguration: limits)
                    let bytes = ByteToMessageHandler(
                        decoder, maximumBufferSize: 2 * headerBytesMax)
                    try pipeline.addHandlers([
                        HTTPResponseEncoder(), bytes, HTTPServerPipelineHandler(),
                        ViewerConnection(service, place: Connections.Place(channel)),
                    ])
                }
            }
        guard options.socketPath == nil else { return bootstrap }
        return bootstrap.serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
    }
}

/// When somebody last asked something. Any thread.
final class Activity: Sendable {
    private let last = Mutex(NIODeadline.now())

    func touch() { last.withLock { $0 = .now() } }

    var idle: Duration { .nanoseconds(last.withLock { NIODeadline.now() - $0 }.nanoseconds) }
}

/// The places of queries, and those of followed ones, each with a thread of its own. Any thread.
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
    private let taken = Mutex((queries: 0, tails: 0))

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
        case .query:
            let isFree = taken.withLock { taken in
                guard taken.queries < queriesMax else { return false }
                taken.queries += 1
                return true
            }
            guard isFree else { return nil }
            return Seat(pool: queries) { self.taken.withLock { $0.queries -= 1 } }
        case .tail:
            let isFree = taken.withLock { taken in
                guard taken.tails < tailsMax else { return false }
                taken.tails += 1
                return true
            }
            guard isFree else { return nil }
            return Seat(pool: tails) { self.taken.withLock { $0.tails -= 1 } }
        }
    }
}
