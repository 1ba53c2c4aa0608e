// The server: owns the listening socket, two event loops, the file pool and every connection. Made
// once, started once, stopped once; any thread. While it runs it holds a lock on its directory.

import NIOCore
import NIOHTTP1
import NIOPosix
import CordwoodServing
import Synchronization

public final class Collector: Sendable {
    private static let loops = 2

    private struct Running {
        var group: MultiThreadedEventLoopGroup
        var pools: Pools
        var server: any Channel
        var connections: Connections
        var log: RefusalLog
        /// Keeps the directory's lock.
        var depot: Depot
    }

    private enum State {
        case fresh
        case running(Running)
        case stopped
    }

    private let options: CollectorOptions
    private let inspector: ArchiveInspector
    private let state = Mutex(State.fresh)

    public convenience init(options: CollectorOptions) {
        self.init(options: options, inspector: .cordwood)
    }

    /// For tests: replaces the inspection of archives.
    init(options: CollectorOptions, inspector: ArchiveInspector) {
        self.options = options
        self.inspector = inspector
    }

    /// Prepares the directory, then listens. Returns the port.
    @discardableResult
    public func start() throws(CollectorError) -> Int {
        let address = try listenAddress()
        let isFresh = state.withLock { state in
            guard case .fresh = state else { return false }
            state = .stopped
            return true
        }
        guard isFresh else { throw .started }
        let depot = try Depot(directory: options.directory, inspector: inspector)
        let group = MultiThreadedEventLoopGroup(numberOfThreads: Collector.loops)
        let pools = Pools()
        pools.start()
        let connections = Connections(options.limits)
        let log = RefusalLog(options.notice)
        let server: any Channel
        do {
            let service = Service(
                options: options, check: RequestCheck(options), depot: depot, pools: pools,
                connections: connections, largeChecks: LargeChecks(options), log: log)
            server = try bootstrap(group, service).bind(to: address).wait()
        } catch {
            pools.stop()
            try? group.syncShutdownGracefully()
            throw .listen("\(address): \(error)")
        }
        group.next().scheduleRepeatedTask(
            initialDelay: RefusalLog.window, delay: RefusalLog.window
        ) { _ in log.flush() }
        let running = Running(
            group: group, pools: pools, server: server, connections: connections, log: log,
            depot: depot)
        state.withLock { $0 = .running(running) }
        return server.localAddress?.port ?? options.port
    }

    /// Accepts no new connections; requests being served finish within the time limit of the
    /// options. Calls after the first do nothing.
    public func stop() {
        let running = state.withLock { state -> Running? in
            defer { state = .stopped }
            if case .running(let running) = state { return running }
            return nil
        }
        guard let running else { return }
        try? running.server.close().wait()
        running.connections.drain(timeoutMs: options.stopTimeoutMs)
        running.pools.stop()
        try? running.group.syncShutdownGracefully()
        running.log.flush(isLast: true)
    }

    private func listenAddress() throws(CollectorError) -> SocketAddress {
        let address = ListenAddress(host: options.host, port: options.port)
        guard let found = address.socketAddress else {
            throw .listen("\(options.host) is not an IP address")
        }
        return found
    }

    private func bootstrap(
        _ group: MultiThreadedEventLoopGroup, _ service: Service
    ) -> ServerBootstrap {
        let headerBytesMax = options.headerBytesMax
        return ServerBootstrap(group: group)
            .serverChannelOption(.backlog, value: 128)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelOption(.autoRead, value: false)
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            .childChannelOption(.maxMessagesPerRead, value: 2)
            .childChannelOption(
                .recvAllocator,
                value: AdaptiveRecvByteBufferAllocator(
                    minimum: 4 << 10, initial: 64 << 10, maximum: 128 << 10)
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
                    // After a request that asks for an upgrade, the decoder only collects.
                    let bytes = ByteToMessageHandler(
                        decoder, maximumBufferSize: 2 * headerBytesMax)
                    try pipeline.addHandlers([
                        HTTPResponseEncoder(), bytes, HTTPServerPipelineHandler(),
                        Connection(service, place: Connections.Place(channel)),
                    ])
                }
            }
    }
}
