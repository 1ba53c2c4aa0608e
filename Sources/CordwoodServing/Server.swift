// A server that listens: its socket, its event loops, its connections and its refusals, from the
// start to the end. Its owner handles the traffic of a connection. Made once, listens once, stopped
// once; any thread.

import NIOCore
import NIOHTTP1
import NIOPosix
import Synchronization

package final class Server: Sendable {
    package struct Options: Sendable {
        package var loops = 1
        /// The limit of all header fields of one request together.
        package var headerBytesMax: Int
        package var limits: ConnectionLimits
        /// Receives a line for each refusal, few at a time.
        package var notice: (@Sendable (String) -> Bool)?
        package var buffers: any RecvByteBufferAllocator
        /// Handlers ask for each read, and go on after the client has ended its half.
        package var readsOnDemand = false

        package init(
            headerBytesMax: Int, limits: ConnectionLimits,
            notice: (@Sendable (String) -> Bool)?, buffers: any RecvByteBufferAllocator
        ) {
            self.headerBytesMax = headerBytesMax
            self.limits = limits
            self.notice = notice
            self.buffers = buffers
        }
    }

    private let options: Options
    package let connections: Connections
    package let log: RefusalLog
    private let group: MultiThreadedEventLoopGroup
    private let socket = Mutex<(any Channel)?>(nil)

    package init(_ options: Options) {
        self.options = options
        connections = Connections(options.limits)
        log = RefusalLog(options.notice)
        group = MultiThreadedEventLoopGroup(numberOfThreads: options.loops)
    }

    /// If it cannot listen, it is stopped.
    /// - Parameter makeHandler: makes the handler of a connection's requests.
    /// - Returns: the port; nil for a Unix socket.
    package func listen(
        on address: SocketAddress,
        _ makeHandler: @escaping @Sendable (Connections.Place) -> any ChannelInboundHandler
    ) throws(ListenFailure) -> Int? {
        let made: any Channel
        do {
            made = try bootstrap(makeHandler, isUnix: address.port == nil).bind(to: address).wait()
        } catch {
            try? group.syncShutdownGracefully()
            throw ListenFailure("\(address): \(error)")
        }
        group.next().scheduleRepeatedTask(
            initialDelay: RefusalLog.window, delay: RefusalLog.window
        ) { [log] _ in log.flush() }
        socket.withLock { $0 = made }
        return made.localAddress?.port
    }

    /// Runs a blocking job on that pool until the server stops, so long after the last has ended.
    package func each(ms: Int64, on pool: NIOThreadPool, _ job: @escaping @Sendable () -> Void) {
        let loop = group.next()
        loop.scheduleRepeatedAsyncTask(
            initialDelay: .milliseconds(ms), delay: .milliseconds(ms)
        ) { _ in pool.runIfActive(eventLoop: loop, job) }
    }

    /// Accepts no new connections; requests that are being served may end within that time.
    /// - Parameter endWork: ends the work for connections, once these are gone.
    package func stop(timeoutMs: Int64, endWork: () -> Void) {
        try? socket.withLock { $0 }?.close().wait()
        connections.drain(timeoutMs: timeoutMs)
        endWork()
        try? group.syncShutdownGracefully()
        log.flush(isLast: true)
    }

    private func bootstrap(
        _ makeHandler: @escaping @Sendable (Connections.Place) -> any ChannelInboundHandler,
        isUnix: Bool
    ) -> ServerBootstrap {
        let (connections, log) = (connections, log)
        let headerBytesMax = options.headerBytesMax
        var bootstrap = ServerBootstrap(group: group)
            .serverChannelOption(.backlog, value: 128)
            .childChannelOption(.maxMessagesPerRead, value: 2)
            .childChannelOption(.recvAllocator, value: options.buffers)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let pipeline = channel.pipeline.syncOperations
                    let peer = Peer(channel.remoteAddress)
                    if let refusal = connections.add(channel, peer: peer) {
                        return try pipeline.addHandler(
                            RefusedConnection(refusal, connections, log))
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
                        makeHandler(Connections.Place(channel)),
                    ])
                }
            }
        if !isUnix {
            bootstrap = bootstrap.serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
        }
        guard options.readsOnDemand else { return bootstrap }
        return
            bootstrap
            .childChannelOption(.autoRead, value: false)
            .childChannelOption(.allowRemoteHalfClosure, value: true)
    }
}

/// It cannot listen there; the text says why.
package struct ListenFailure: Error {
    package let text: String

    package init(_ text: String) { self.text = text }
}

/// The life of something that is started once and stopped once. Any thread.
package final class Lifetime<Running: Sendable>: Sendable {
    private enum State {
        case fresh
        case running(Running)
        case stopped
    }

    private let state = Mutex(State.fresh)

    package init() {}

    /// False: it was started before. Until `run` it counts as stopped.
    package func begin() -> Bool {
        state.withLock { state in
            guard case .fresh = state else { return false }
            state = .stopped
            return true
        }
    }

    package func run(_ running: Running) { state.withLock { $0 = .running(running) } }

    package var running: Running? {
        state.withLock { if case .running(let running) = $0 { running } else { nil } }
    }

    /// Nil: it is not running.
    package func end() -> Running? {
        state.withLock { state in
            defer { state = .stopped }
            if case .running(let running) = state { return running }
            return nil
        }
    }
}
