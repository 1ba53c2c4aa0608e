// One client: judges heads, hands bodies to the file pool piece by piece, returns answers. It reads
// from the socket only while none of its data is on its way to the disk and the client accepts its
// answers, so a slow disk slows the client and memory stays bounded. Lives on one event loop; NIO's
// pipelining handler in front of it holds back the next request until this one is answered.

import NIOCore
import NIOHTTP1
import NIOPosix
import CordwoodServing

final class Connection: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private enum State {
        case idle
        case receiving(Upload)
        /// Discards the rest of the body, then sends this answer.
        case draining(Answer)
        /// The request is complete; the answer is sent in the event loop's next turn. NIO delivers
        /// the next request of a pipeline from within the write of an answer: immediate answers
        /// would nest until the stack overflows.
        case answering(Answer)
        /// The file pool has the whole body.
        case storing(Upload)
        /// The last answer was sent. Further bytes are discarded until the client closes, because
        /// closing over unread bytes would reset the connection and take the answer with
        /// it.
        case closing
    }

    /// The connection does not wait for larger bodies that it will not use.
    private static let drainBytesMax: UInt64 = 8 << 20

    private let service: Service
    private let place: Connections.Place
    private var options: CollectorOptions { service.options }
    private var depot: Depot { service.depot }

    private var state = State.idle
    private var client = "?"
    private var deadline = Deadline()
    private var pace = Pace(now: .now())
    private var hasAnswered = false
    /// Reset by requests that upload something. Requests that anyone may send do not count: one now
    /// and then would keep a connection from clients that upload archives.
    private var waitingSince = NIODeadline.now()
    private var version = HTTPVersion.http1_1
    private var isHeadAsked = false
    private var keepAlive = true
    private var isReadWanted = false
    private var isGone = false

    init(_ service: Service, place: Connections.Place) {
        self.service = service
        self.place = place
    }

    // MARK: Events

    func channelActive(context: ChannelHandlerContext) {
        client = context.channel.clientAddress
        awaitHead(context)
        context.read()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch (unwrapInboundIn(data), state) {
        case (.head(let head), .idle): begin(context, head)
        case (.body(let bytes), .receiving(let upload)):
            pace.add(bytes.readableBytes)
            upload.pending.writeImmutableBuffer(bytes)
            pump(context, upload)
        case (.body(let bytes), .draining): pace.add(bytes.readableBytes)
        case (.end, .receiving(let upload)):
            upload.isComplete = true
            pump(context, upload)
        case (.end, .draining(let answer)):
            state = .answering(answer)
            context.eventLoop.assumeIsolated().execute {
                if case .answering(let answer) = self.state { self.respond(context, answer) }
            }
        default: break
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        isReadWanted = true
        readOn(context)
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) { readOn(context) }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if event is GiveWay { return giveWay(context) }
        guard case ChannelEvent.inputClosed = event else {
            return context.fireUserInboundEventTriggered(event)
        }
        keepAlive = false
        switch state {
        case .idle, .closing: context.close(promise: nil)
        case .receiving(let upload) where upload.isComplete: break
        case .receiving, .draining: fail(context, .error(.badRequest, "the body ended early"))
        case .answering, .storing: break
        }
    }

    /// Another client gets this connection's place.
    private func giveWay(_ context: ChannelHandlerContext) {
        switch state {
        case .idle:
            if !hasAnswered { service.log.tell(client, "no request while connections are short") }
            context.close(promise: nil)
        case .receiving(let upload) where upload.isComplete: keepAlive = false
        case .receiving, .draining:
            let seconds = service.connections.retryAfterSeconds()
            let reason = "all connections are taken, and this body comes too slowly"
            fail(context, .crowded(reason, retryAfterSeconds: seconds))
        case .answering, .storing, .closing: keepAlive = false
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // For a closed connection the parser reports an unexpected end.
        guard context.channel.isActive else { return }
        guard let problem = error as? HTTPParserError else { return context.close(promise: nil) }
        if case .closing = state { return context.close(promise: nil) }
        let answer =
            problem == .headerOverflow
            ? Answer.error(.requestHeaderFieldsTooLarge, "headers are too large")
            : Answer.error(.badRequest, "not a valid HTTP request")
        fail(context, answer)
    }

    func channelInactive(context: ChannelHandlerContext) {
        isGone = true
        deadline.cancel()
        service.connections.set(.busy, of: place)
        if case .receiving(let upload) = state, !upload.isJobRunning { abandon(upload) }
        state = .closing
    }

    // MARK: A request

    private func begin(_ context: ChannelHandlerContext, _ head: HTTPRequestHead) {
        version = head.version
        isHeadAsked = head.method == .HEAD
        // After these, nothing is read as HTTP any more.
        let isUpgrade = head.method == .CONNECT || head.headers.contains(name: "Upgrade")
        keepAlive = head.isKeepAlive && !isUpgrade
        let expects = head.headers["Expect"].contains { $0.lowercased() == "100-continue" }
        pace = Pace(now: .now())
        service.connections.set(.busy, of: place)
        watch(context)
        switch service.check.decide(head, problem: depot.problem) {
        case .answer(let answer, let isTrusted):
            let lengths = head.headers[canonicalForm: "Content-Length"]
            let length = lengths.first.map { UInt64($0) ?? .max } ?? 0
            let isChunked = head.headers.contains(name: "Transfer-Encoding")
            let lengthMax = isTrusted ? Connection.drainBytesMax : 0
            if expects || isChunked || length > lengthMax {
                fail(context, answer)
            } else {
                state = .draining(answer)
            }
        case .receive(let key, let length, var sender):
            sender.address = client
            let upload = Upload(
                key: key, length: length, sender: sender, expectsContinue: expects)
            state = .receiving(upload)
            admit(context, upload)
        }
    }

    private func admit(_ context: ChannelHandlerContext, _ upload: Upload) {
        run(context, upload, { [depot] in try depot.admit() }) { file in
            upload.file = file
            guard self.isCurrent(upload) else { return self.abandon(upload) }
            if upload.expectsContinue { self.writeContinue(context) }
            self.pump(context, upload)
        }
    }

    /// Starts the next step of an upload if none is under way.
    private func pump(_ context: ChannelHandlerContext, _ upload: Upload) {
        guard isCurrent(upload), !upload.isJobRunning, let file = upload.file else { return }
        if upload.pending.readableBytes > 0 {
            let bytes = upload.pending
            upload.pending = ByteBuffer()
            let append: @Sendable () throws -> Void = { [depot] in
                // SAFETY: the closure holds `bytes` until `append` has written them.
                try unsafe bytes.withUnsafeReadableBytes { try depot.append($0, to: file) }
            }
            run(context, upload, append) { _ in
                if self.isCurrent(upload) {
                    self.pump(context, upload)
                } else {
                    self.abandon(upload)
                }
            }
        } else if upload.isComplete {
            store(context, upload, file)
        } else {
            readOn(context)
        }
    }

    private var isAtWork: Bool {
        switch state {
        case .receiving(let upload), .storing(let upload): upload.isJobRunning
        case .answering: true
        case .idle, .draining, .closing: false
        }
    }

    /// Continues reading if no job of ours is under way and answers do not pile up.
    private func readOn(_ context: ChannelHandlerContext) {
        guard isReadWanted, !isAtWork, context.channel.isWritable else { return }
        isReadWanted = false
        context.read()
    }

    private func store(_ context: ChannelHandlerContext, _ upload: Upload, _ file: IncomingFile) {
        state = .storing(upload)
        deadline.cancel()
        service.connections.set(.busy, of: place)
        let (key, sender) = (upload.key, upload.sender)
        let largeChecks = service.largeChecks
        // Even if the client has gone by now: it learns the result when it comes again.
        run(context, upload, { [depot] in depot.isLarge(file) }) { isLarge in
            guard !isLarge || largeChecks.begin() else {
                let seconds = self.service.connections.retryAfterSeconds()
                let reason = "too many large archives wait for their check"
                let answer = Answer.crowded(reason, retryAfterSeconds: seconds)
                return self.reject(context, upload, answer)
            }
            let pool = self.service.pools.checks(isLarge: isLarge)
            self.run(
                context, upload, on: pool,
                { [depot = self.depot] in
                    defer { if isLarge { largeChecks.end() } }
                    return depot.take(file, key: key, from: sender)
                }
            ) { outcome in
                if self.isCurrent(upload) { self.respond(context, Answer(outcome)) }
            }
        }
    }

    /// Runs a blocking job of this upload; a job that throws rejects the upload. The connection
    /// counts until the job has ended, even if the client has gone.
    private func run<Result: Sendable>(
        _ context: ChannelHandlerContext, _ upload: Upload, on pool: NIOThreadPool? = nil,
        _ job: @escaping @Sendable () throws -> Result, _ then: @escaping (Result) -> Void
    ) {
        upload.isJobRunning = true
        pace.jobBegins(now: .now())
        service.connections.hold(place)
        let done = (pool ?? service.pools.files).runIfActive(eventLoop: context.eventLoop, job)
        done.assumeIsolated().whenComplete {
            defer { self.service.connections.release(self.place) }
            upload.isJobRunning = false
            self.pace.jobEnds(now: .now())
            switch $0 {
            case .success(let result): then(result)
            case .failure(let error as FileProblem): self.reject(context, upload, Answer(error))
            case .failure:
                self.reject(context, upload, .error(.serviceUnavailable, "shutting down"))
            }
        }
    }

    private func reject(_ context: ChannelHandlerContext, _ upload: Upload, _ answer: Answer) {
        abandon(upload)
        guard isCurrent(upload) else { return }
        if upload.isComplete {
            respond(context, answer)
        } else if upload.expectsContinue || upload.length > Connection.drainBytesMax,
            answer.status != .ok
        {
            fail(context, answer)
        } else {
            state = .draining(answer)
            readOn(context)
        }
    }

    /// False once the connection is closed or has another answer; a job may end after that.
    private func isCurrent(_ upload: Upload) -> Bool {
        switch state {
        case .receiving(let current), .storing(let current): current === upload
        default: false
        }
    }

    private func abandon(_ upload: Upload) {
        guard let file = upload.file else { return }
        upload.file = nil
        service.connections.hold(place)
        service.pools.files.submit { [connections = service.connections, place] _ in
            file.discard()
            connections.release(place)
        }
    }

    // MARK: Answers

    /// Sends an answer before the request has ended, and ends the connection.
    private func fail(_ context: ChannelHandlerContext, _ answer: Answer) {
        if case .receiving(let upload) = state, !upload.isJobRunning { abandon(upload) }
        keepAlive = false
        respond(context, answer)
    }

    private func respond(_ context: ChannelHandlerContext, _ answer: Answer) {
        if case .closing = state { return }
        if answer.status.code >= 400 {
            service.log.tell(client, "\(answer.status.code) \(answer.reason)")
        } else if let reason = answer.asideFor {
            service.log.tell(client, reason, did: "put aside what came from")
        }
        hasAnswered = true
        if case .storing = state { waitingSince = .now() }
        let isLast = !keepAlive
        // Set before the writes, which may deliver the next request at once.
        state = isLast ? .closing : .idle
        if isLast {
            service.connections.set(.busy, of: place)
        } else {
            awaitHead(context)
        }
        let hasBody = !isHeadAsked
        // What comes next may not even be HTTP.
        isHeadAsked = false
        let head = answer.head(version: version, keepAlive: keepAlive)
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        if hasBody {
            let body = context.channel.allocator.buffer(string: answer.body)
            context.write(wrapOutboundOut(.body(.byteBuffer(body))), promise: nil)
        }
        let sent = context.writeAndFlush(wrapOutboundOut(.end(nil)))
        readOn(context)
        guard isLast else { return }
        deadline.arm(context.eventLoop, ms: Connections.lingerMs) { context.close(promise: nil) }
        sent.assumeIsolated().whenComplete { _ in
            if !self.isGone {
                context.close(mode: .output, promise: nil)
                context.read()
            }
        }
    }

    private func writeContinue(_ context: ChannelHandlerContext) {
        let head = HTTPResponseHead(version: .http1_1, status: .continue)
        context.writeAndFlush(wrapOutboundOut(.head(head)), promise: nil)
    }

    // MARK: Time

    private func awaitHead(_ context: ChannelHandlerContext) {
        service.connections.set(.waiting(since: waitingSince), of: place)
        deadline.arm(context.eventLoop, ms: options.headTimeoutMs) {
            if !self.hasAnswered {
                let seconds = self.options.headTimeoutMs / 1_000
                self.service.log.tell(self.client, "no request within \(seconds) s")
            }
            context.close(promise: nil)
        }
    }

    private func watch(_ context: ChannelHandlerContext) {
        deadline.arm(context.eventLoop, ms: options.stallTimeoutMs) {
            let rate = self.pace.endStep(now: .now())
            let isTooSlow = rate.map { $0 < self.options.bodyBytesPerSecondMin } ?? false
            switch self.state {
            case .receiving where isTooSlow:
                return self.fail(context, .error(.requestTimeout, "the body comes too slowly"))
            case .draining(let answer) where isTooSlow: return self.fail(context, answer)
            case .receiving, .draining: break
            case .idle, .answering, .storing, .closing: return
            }
            if let rate {
                self.service.connections.set(.receiving(bytesPerSecond: rate), of: self.place)
            }
            self.watch(context)
        }
    }
}

/// Shared by all connections of a collector.
struct Service: Sendable {
    let options: CollectorOptions
    let check: RequestCheck
    let depot: Depot
    let pools: Pools
    let connections: Connections
    let largeChecks: LargeChecks
    let log: RefusalLog
}
