// The connections that are open: counts them against the limit and ends them when the collector
// stops. Any thread.

import NIOCore
import Synchronization

final class Connections: Sendable {
    private let limit: Int
    private let open = Mutex<[ObjectIdentifier: any Channel]>([:])

    init(limit: Int) { self.limit = limit }

    /// False where the limit is reached; the channel is then not counted.
    func add(_ channel: any Channel) -> Bool {
        let key = ObjectIdentifier(channel)
        let isAdded = open.withLock { open in
            guard open.count < limit else { return false }
            open[key] = channel
            return true
        }
        if isAdded {
            channel.closeFuture.whenComplete { _ in
                self.open.withLock { _ = $0.removeValue(forKey: key) }
            }
        }
        return isAdded
    }

    /// Idle connections close now, busy ones after their answer, the rest when time is up.
    func drain(timeoutMs: Int64) {
        let channels = open.withLock { Array($0.values) }
        guard let loop = channels.first?.eventLoop else { return }
        for channel in channels {
            channel.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())
        }
        let timeout = loop.scheduleTask(in: .milliseconds(timeoutMs)) {
            for channel in channels { channel.close(promise: nil) }
        }
        for channel in channels { try? channel.closeFuture.wait() }
        timeout.cancel()
    }
}

/// Says 503 and closes.
final class TooManyConnections: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    func channelActive(context: ChannelHandlerContext) {
        let text =
            "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\n"
            + "Content-Length: 0\r\n\r\n"
        let bytes = context.channel.allocator.buffer(string: text)
        context.writeAndFlush(wrapOutboundOut(bytes)).assumeIsolated().whenComplete { _ in
            context.close(promise: nil)
        }
    }
}
