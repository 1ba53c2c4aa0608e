// The server: owns the listening socket, two event loops, the file pool and every connection. Made
// once, started once, stopped once; any thread. While it runs it holds a lock on its directory.

import CordwoodServing
import NIOCore

public final class Collector: Sendable {
    private static let loops = 2

    private struct Running {
        var server: Server
        var pools: Pools
        /// Keeps the directory's lock.
        var depot: Depot
    }

    private let options: CollectorOptions
    private let inspector: ArchiveInspector
    private let lifetime = Lifetime<Running>()

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
        let address: SocketAddress
        do throws(ListenFailure) {
            address = try ListenAddress(host: options.host, port: options.port).socketAddress()
        } catch {
            throw .listen(error.text)
        }
        guard lifetime.begin() else { throw .started }
        let tokens = try Tokens(options)
        let depot = try Depot(options, inspector: inspector)
        do throws(FileProblem) {
            try tokens.begin(depot.senders)
        } catch {
            throw .directory(error.operation, errno: error.errno)
        }
        let upkeep = Upkeep(tokens: tokens, depot: depot, notice: options.notice)
        var serving = Server.Options(
            headerBytesMax: options.headerBytesMax, limits: options.limits,
            notice: options.notice,
            buffers: AdaptiveRecvByteBufferAllocator(
                minimum: 4 << 10, initial: 64 << 10, maximum: 128 << 10))
        serving.loops = Collector.loops
        serving.readsOnDemand = true
        let server = Server(serving)
        let pools = Pools()
        pools.start()
        let service = Service(
            options: options, check: RequestCheck(options, tokens: tokens), depot: depot,
            pools: pools,
            connections: server.connections, largeChecks: LargeChecks(options), log: server.log)
        do throws(ListenFailure) {
            let port = try server.listen(on: address) { Connection(service, place: $0) }
            server.each(ms: Upkeep.intervalMs, on: pools.files) { upkeep.look() }
            lifetime.run(Running(server: server, pools: pools, depot: depot))
            return port ?? options.port
        } catch {
            pools.stop()
            throw .listen(error.text)
        }
    }

    /// Accepts no new connections; requests being served finish within the time limit of the
    /// options. Calls after the first do nothing.
    public func stop() {
        guard let running = lifetime.end() else { return }
        running.server.stop(timeoutMs: options.stopTimeoutMs) { running.pools.stop() }
    }
}
