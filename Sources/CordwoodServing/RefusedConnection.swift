// A client that gets no connection is sent 503 with the time to come back. Its bytes are discarded
// until it closes or the time is up, because closing over unread bytes would reset the connection
// and take the answer with it. Lives on one event loop.

import NIOCore

package final class RefusedConnection: ChannelInboundHandler {
    package typealias InboundIn = ByteBuffer
    package typealias OutboundOut = ByteBuffer

    private let refusal: Connections.ConnectionRefusal
    private let connections: Connections
    private let log: RefusalLog
    private var deadline = Deadline()
    private var isCounted = false

    package init(
        _ refusal: Connections.ConnectionRefusal, _ connections: Connections, _ log: RefusalLog
    ) {
        self.refusal = refusal
        self.connections = connections
        self.log = log
    }

    package func channelActive(context: ChannelHandlerContext) {
        log.tell(context.channel.clientAddress, "503 \(refusal.reason)")
        isCounted = connections.beginRefusal()
        guard isCounted else { return context.close(promise: nil) }
        let text =
            "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n"
            + "Retry-After: \(refusal.retryAfterSeconds)\r\nContent-Length: 0\r\n\r\n"
        let bytes = context.channel.allocator.buffer(string: text)
        deadline.arm(context.eventLoop, ms: Connections.lingerMs) { context.close(promise: nil) }
        context.writeAndFlush(wrapOutboundOut(bytes)).assumeIsolated().whenSuccess { _ in
            context.close(mode: .output, promise: nil)
        }
        context.read()
    }

    package func channelRead(context: ChannelHandlerContext, data: NIOAny) {}

    package func channelReadComplete(context: ChannelHandlerContext) { context.read() }

    package func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case ChannelEvent.inputClosed = event { context.close(promise: nil) }
    }

    package func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }

    package func channelInactive(context: ChannelHandlerContext) {
        deadline.cancel()
        if isCounted { connections.endRefusal() }
    }
}
