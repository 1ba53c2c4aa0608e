// A client that gets no connection: it gets 503 with the time to come back. Its bytes are discarded
// until it closes or the time is up, because closing over unread bytes would reset the connection
// and take the answer with it. Lives on one event loop.

import NIOCore

final class RefusedConnection: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let refusal: Connections.ConnectionRefusal
    private let service: Service
    private var deadline = Deadline()
    private var isCounted = false

    init(_ refusal: Connections.ConnectionRefusal, _ service: Service) {
        self.refusal = refusal
        self.service = service
    }

    func channelActive(context: ChannelHandlerContext) {
        service.log.tell(context.channel.clientAddress, "503 \(refusal.reason)")
        isCounted = service.connections.beginRefusal()
        guard isCounted else { return context.close(promise: nil) }
        let text =
            "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n"
            + "Retry-After: \(refusal.retryAfterSeconds)\r\nContent-Length: 0\r\n\r\n"
        let bytes = context.channel.allocator.buffer(string: text)
        deadline.arm(context.eventLoop, ms: Connection.lingerMs) { context.close(promise: nil) }
        context.writeAndFlush(wrapOutboundOut(bytes)).assumeIsolated().whenSuccess { _ in
            context.close(mode: .output, promise: nil)
        }
        context.read()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {}

    func channelReadComplete(context: ChannelHandlerContext) { context.read() }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case ChannelEvent.inputClosed = event { context.close(promise: nil) }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        deadline.cancel()
        if isCounted { service.connections.endRefusal() }
    }
}
