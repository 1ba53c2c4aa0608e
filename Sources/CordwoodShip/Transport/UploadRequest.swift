// A request for the host's own transport. Valid for the length of one call; later use gets errors,
// because the file is closed by then and its number may belong to another. Reading is paced to the
// target's byte rate. Any thread. Only the call's own thread asks the engine whether to stop; other
// threads get its last answer.

import CShims
import CordwoodCore
import CordwoodStore
import Synchronization

/// SAFETY: `tick` and its last answer are used on `owner` only, except for `isToldToStop` and
/// `isUnlimited`, which are atomic; the descriptor is read under the lock, which `end` takes, too.
public final class UploadRequest: @unchecked Sendable {
    /// Usually `POST` or `PUT`.
    public let method: String
    /// May hold secrets, as may headers: not for logs.
    public let url: String
    /// Complete except for Host and Content-Length.
    public let headers: [(name: String, value: String)]
    public let bodyBytes: UInt64
    public let connectTimeout: Duration
    /// The limit of the whole exchange.
    public let timeout: Duration

    private let body: RequestBody?
    private let bytesPerSecond: UInt64
    private let begunNs = cw_monotonic_ns()
    private let owner = ThreadIdentity.current
    private var tick: (() -> TransferTick)?
    private let isToldToStop = Atomic(false)
    private let isUnlimited = Atomic(false)
    private let bytesRead = Atomic<UInt64>(0)
    private let isOver = Mutex(false)

    private static let over = UploadTransportError("the request is over")
    private static let burstBytes: UInt64 = 128 << 10
    private static let restMicroseconds: UInt32 = 10_000

    init(
        _ request: TransferRequest, mark: UploadMark?, timeoutMs: UInt64,
        tick: @escaping () -> TransferTick
    ) {
        method = request.method
        url = request.url
        // Added after the request was signed: no signature covers it.
        headers =
            request.headers.map { ($0.name, $0.value) }
            + (mark.map { [(UploadMark.header, $0.value)] } ?? [])
        bodyBytes = request.body?.count ?? 0
        connectTimeout = .milliseconds(Int64(request.settings.connectTimeoutMs))
        timeout = .milliseconds(Int64(clamping: timeoutMs))
        body = request.body
        bytesPerSecond = request.bytesPerSecond
        self.tick = tick
    }

    /// Whether to give up: the engine is closed, the target removed, the time is over. Ask at least
    /// ten times a second, on the thread of the call.
    public var isStopped: Bool {
        if owner == .current, let tick {
            switch tick() {
            case .go: break
            // ORDER: relaxed. A hint; it publishes nothing.
            case .goUnlimited: isUnlimited.store(true, ordering: .relaxed)
            // ORDER: relaxed. As above.
            case .stop: isToldToStop.store(true, ordering: .relaxed)
            }
        }
        // ORDER: relaxed. As above.
        return isToldToStop.load(ordering: .relaxed)
    }

    /// Copies bytes of the body from `offset` on; every read gives the same bytes. Blocks if the
    /// target has a byte rate.
    /// - Returns: the number of bytes; 0: the body has no more.
    public func readBody(
        at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer
    ) throws(UploadTransportError) -> Int {
        guard let body, offset < body.count, unsafe !buffer.isEmpty else { return 0 }
        let left = Int(clamping: body.count - offset)
        let wanted = min(buffer.count, left, Int(UploadRequest.burstBytes))
        guard pace() else { throw UploadRequest.over }
        let got = locked { isOver in
            unsafe isOver ? -Int(Errno.EBADF) : UploadRequest.read(body, offset, buffer, wanted)
        }
        switch got {
        case 1...:
            // ORDER: relaxed. A sum that paces.
            bytesRead.wrappingAdd(UInt64(got), ordering: .relaxed)
            return got
        case 0: throw UploadTransportError("the body is shorter than announced")
        case -Int(Errno.EBADF): throw UploadRequest.over
        default: throw UploadTransportError("reading the body: error \(-got)")
        }
    }

    /// After this, nothing of the caller's is used.
    func end() {
        locked { $0 = true }
        // ORDER: relaxed. A hint; the lock keeps out threads that still read.
        isToldToStop.store(true, ordering: .relaxed)
        tick = nil
    }

    /// Disables cancellation: a thread cancelled in here would leave the lock taken.
    private func locked<T: Sendable>(_ body: (inout Bool) -> T) -> T {
        let cancel = cwi_disable_cancel()
        defer { cwi_restore_cancel(cancel) }
        return isOver.withLock { body(&$0) }
    }

    /// SAFETY: `wanted` is no more than the buffer holds.
    private static func read(
        _ body: RequestBody, _ offset: UInt64, _ buffer: UnsafeMutableRawBufferPointer,
        _ wanted: Int
    ) -> Int {
        unsafe body.read(
            into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<wanted]), at: offset)
    }

    /// Waits until the byte rate allows more; false: aborted.
    private func pace() -> Bool {
        while true {
            if isStopped { return false }
            // ORDER: relaxed, both. Hints, as above.
            guard bytesPerSecond > 0, !isUnlimited.load(ordering: .relaxed) else { return true }
            let seconds = Double(cw_monotonic_ns() &- begunNs) / 1e9
            let allowed = seconds * Double(bytesPerSecond) + Double(UploadRequest.burstBytes)
            if Double(bytesRead.load(ordering: .relaxed)) < allowed { return true }
            ThreadIdentity.pause(microseconds: UploadRequest.restMicroseconds)
        }
    }
}
