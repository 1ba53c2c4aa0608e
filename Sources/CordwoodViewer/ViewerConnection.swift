// One client: collects a whole request, has it judged, and sends one answer, at once or piece by
// piece from a reader's thread. Lives on one event loop; NIO's pipelining handler in front of it
// holds back the next request until this one is answered.

import Cordwood
import CordwoodServing
import NIOCore
import NIOHTTP1
import NIOPosix

final class ViewerConnection: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private enum State {
        case idle
        case receiving(HTTPRequestHead, body: [UInt8])
        /// The request is complete.
        case answering
        case streaming(LineStream)
        /// The last answer was sent. Further bytes are discarded until the client closes.
        case closing
    }

    private let service: ViewerService
    private let place: Connections.Place
    private var state = State.idle
    private var client = "?"
    private var deadline = Deadline()
    private var keepAlive = true
    /// Nil: not looked up yet.
    private var isOwnUser: Bool?

    init(_ service: ViewerService, place: Connections.Place) {
        self.service = service
        self.place = place
    }

    // MARK: Events

    func channelActive(context: ChannelHandlerContext) {
        client = context.channel.clientAddress
        awaitRequest(context)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch (unwrapInboundIn(data), state) {
        case (.head(let head), .idle):
            keepAlive = head.isKeepAlive
            state = .receiving(head, body: [])
            if head.headers.contains(name: "Upgrade") || head.method == .CONNECT {
                // After an upgrade, nothing more is read as HTTP.
                fail(context, .error(.notImplemented, "no upgrades"))
            } else if let refusal = service.check.lengthRefusal(head) {
                fail(context, .refused(refusal))
            }
        case (.body(let bytes), .receiving(let head, var body)):
            state = .answering
            body += bytes.readableBytesView
            state = .receiving(head, body: body)
            if body.count > service.options.bodyBytesMax {
                let limit = service.options.bodyBytesMax
                fail(context, .error(.payloadTooLarge, "the limit is \(limit) bytes"))
            }
        case (.end, .receiving(let head, let body)):
            state = .answering
            deadline.cancel()
            service.connections.set(.busy, of: place)
            service.activity.touch()
            // In the next turn: NIO would deliver the next request of a pipeline from within an
            // immediate answer, again and again.
            context.eventLoop.assumeIsolated().execute { self.knowUser(context, head, body) }
        default: break
        }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard event is GiveWay else { return context.fireUserInboundEventTriggered(event) }
        if case .idle = state { return context.close(promise: nil) }
        keepAlive = false
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard context.channel.isActive else { return }
        guard let problem = error as? HTTPParserError else { return context.close(promise: nil) }
        switch state {
        case .idle, .receiving: break
        case .answering, .streaming, .closing: return context.close(promise: nil)
        }
        fail(
            context,
            problem == .headerOverflow
                ? .error(.requestHeaderFieldsTooLarge, "headers are too large")
                : .error(.badRequest, "not a valid HTTP request"))
    }

    func channelInactive(context: ChannelHandlerContext) {
        deadline.cancel()
        if case .streaming(let stream) = state { stream.close() }
        state = .closing
    }

    // MARK: A request

    private func awaitRequest(_ context: ChannelHandlerContext) {
        state = .idle
        service.connections.set(.waiting(since: .now()), of: place)
        deadline.arm(context.eventLoop, ms: service.options.headTimeoutMs) {
            context.close(promise: nil)
        }
    }

    private func knowUser(
        _ context: ChannelHandlerContext, _ head: HTTPRequestHead, _ body: [UInt8]
    ) {
        guard case .answering = state else { return }
        if isOwnUser != nil { return answer(context, head, body) }
        let found: EventLoopFuture<UInt32?>
        let channel = context.channel
        if service.options.socketPath != nil, let socket = channel as? any SocketOptionProvider {
            let credentials: EventLoopFuture<PeerCredentials> = socket.unsafeGetSocketOption(
                level: .socket, name: PeerCredentials.option)
            found = credentials.map { $0.userID }
        } else {
            let (client, server) = (channel.remoteAddress, channel.localAddress)
            found = service.files.runIfActive(eventLoop: context.eventLoop) {
                guard let client, let server else { return nil }
                return PeerUser.id(client: client, server: server)
            }
        }
        found.assumeIsolated().whenComplete {
            guard case .answering = self.state else { return }
            let user: UInt32? = if case .success(let user) = $0 { user } else { nil }
            self.isOwnUser = user == self.service.options.userID ?? Machine.userID()
            self.answer(context, head, body)
        }
    }

    private func answer(
        _ context: ChannelHandlerContext, _ head: HTTPRequestHead, _ body: [UInt8]
    ) {
        switch service.check.decide(head, isOwnUser: isOwnUser ?? false) {
        case .refuse(let refusal):
            if !(isOwnUser ?? false) { keepAlive = false }
            reply(context, .refused(refusal))
        case .enter:
            let keys = service.check.keys
            reply(context, .enter(cookieName: keys.cookieName, value: keys.cookie))
        case .page(let name): page(context, head, name)
        case .api(let path, let query, let isChange):
            let found =
                isChange
                ? service.api.findChange(path, body) : service.api.find(path, query)
            switch found {
            case .refused(let refused): reply(context, refused)
            case .job(let kind, let job): run(context, kind, job)
            }
        }
    }

    private func page(_ context: ChannelHandlerContext, _ head: HTTPRequestHead, _ name: String) {
        let known = head.headers["If-None-Match"]
        let isHead = head.method == .HEAD
        let found = service.files.runIfActive(eventLoop: context.eventLoop) {
            [pages = service.pages] in pages.file(name)
        }
        found.assumeIsolated().whenComplete {
            guard case .answering = self.state else { return }
            if case .success(let file?) = $0 {
                self.reply(context, .page(file, isHead: isHead, known: known))
            } else {
                self.reply(context, .error(.notFound, "no such path"))
            }
        }
    }

    private func run(
        _ context: ChannelHandlerContext, _ kind: ViewerSeats.Kind,
        _ job: @escaping @Sendable (LineStream) -> Reply?
    ) {
        guard let seat = service.seats.take(kind) else {
            return reply(
                context,
                .error(
                    .serviceUnavailable, "as many queries run as may run at once", retryAfter: 1))
        }
        let stream = LineStream(
            context.channel, head: Reply.lines.head(keepAlive: keepAlive, isStream: true),
            stallTimeoutMs: service.options.stallTimeoutMs, stop: service.stop)
        state = .streaming(stream)
        service.connections.hold(place)
        let done = seat.pool.runIfActive(eventLoop: context.eventLoop) {
            // Leaves before the client learns that the answer is over, and asks again.
            defer { seat.leave() }
            defer { Memory.giveBack() }
            return job(stream)
        }
        done.assumeIsolated().whenComplete {
            self.service.connections.release(self.place)
            self.service.activity.touch()
            guard case .streaming = self.state else { return }
            self.state = .answering
            if stream.hasBegun { return self.end(context) }
            if case .success(let reply?) = $0 { return self.reply(context, reply) }
            self.reply(context, .error(.serviceUnavailable, "shutting down"))
        }
    }

    // MARK: Answers

    /// Answers before the request has ended, and ends the connection.
    private func fail(_ context: ChannelHandlerContext, _ answer: Reply) {
        keepAlive = false
        reply(context, answer)
    }

    private func reply(_ context: ChannelHandlerContext, _ answer: Reply) {
        if answer.status.code >= 400 {
            service.log.tell(client, "\(answer.status.code) \(answer.reason)")
        }
        let head = answer.head(keepAlive: keepAlive, isStream: false)
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        if answer.body.readableBytes > 0 {
            context.write(wrapOutboundOut(.body(.byteBuffer(answer.body))), promise: nil)
        }
        end(context)
    }

    private func end(_ context: ChannelHandlerContext) {
        let isLast = !keepAlive
        // Set before the write, which may deliver the next request at once.
        if isLast { state = .closing } else { awaitRequest(context) }
        let sent = context.writeAndFlush(wrapOutboundOut(.end(nil)))
        guard isLast else { return }
        service.connections.set(.busy, of: place)
        deadline.arm(context.eventLoop, ms: Connections.lingerMs) { context.close(promise: nil) }
        sent.assumeIsolated().whenComplete { _ in context.close(mode: .output, promise: nil) }
    }
}

/// Shared by all connections of a viewer.
struct ViewerService: Sendable {
    let options: ViewerOptions
    let check: ViewerCheck
    let pages: PageFiles
    let api: ViewerAPI
    let seats: ViewerSeats
    /// For short looks into files.
    let files: NIOThreadPool
    let connections: Connections
    let log: RefusalLog
    let activity: Activity
    let stop: Stop

    /// Ends its threads.
    func end() {
        seats.stop()
        try? files.syncShutdownGracefully()
    }
}
