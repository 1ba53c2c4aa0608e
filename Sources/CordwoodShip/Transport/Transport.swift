// A request, and the interface that sends it: libcurl (CurlTransport) or the host itself
// (HostTransport). A transport knows nothing about archives, targets or retries: it makes one
// exchange and reports its end. One thread at a time.

import CordwoodCore
import CordwoodStore

protocol Transport: AnyObject {
    /// Makes one exchange and follows no redirection. Throws nothing: a failure is an outcome.
    /// Calls `tick` at least every 50 ms, on the calling thread.
    func performOnce(_ request: TransferRequest, tick: () -> TransferTick) -> TransferOutcome
}

extension Transport {
    /// Makes one exchange that follows 307 and 308 within the origin.
    func perform(_ request: TransferRequest, tick: () -> TransferTick) -> TransferOutcome {
        Redirection.follow(request) { performOnce($0, tick: tick) }
    }
}

struct TransferRequest {
    var method: String
    var url: String
    var headers: [RequestHeader]
    var body: RequestBody?
    var settings: TransportSettings
    /// 0: unlimited.
    var bytesPerSecond: UInt64 = 0
}

/// Bytes [offset, offset + count) of an open file; its own position is not used.
struct RequestBody {
    var descriptor: Int32
    var offset: UInt64 = 0
    var count: UInt64
}

/// The instruction for a running transfer.
enum TransferTick {
    case go
    /// Continue without a byte rate: a caller waits for it.
    case goUnlimited
    case stop
}

/// A request body in memory, for a few bytes.
struct MemoryBody: ~Copyable {
    let descriptor: Int32
    let count: UInt64

    init(_ bytes: [UInt8]) throws(UploadError) {
        count = UInt64(bytes.count)
        descriptor = Files.openMemory()
        guard descriptor >= 0 else {
            throw UploadError.system(call: "memfd_create", path: "cordwood", errno: Errno.last)
        }
        try unsafe bytes.withUnsafeBufferPointer { (buffer) throws(UploadError) in
            try StoreFiles.write(
                descriptor, UnsafeRawBufferPointer(buffer), path: "a request's body")
        }
    }

    var whole: RequestBody { RequestBody(descriptor: descriptor, count: count) }

    deinit { Files.close(descriptor) }
}
