// What a request is, and who sends it: libcurl (CurlTransport) or the host itself (HostTransport).
// A transport knows nothing of archives, targets or retries: it makes one exchange and says how
// that ended. One thread at a time.

import CShims
import CordwoodStore
import Glibc

protocol Transport: AnyObject {
    /// One exchange that follows nothing. Throws nothing: what fails is an outcome. `tick` is asked
    /// at least every 50 ms, on the calling thread.
    func performOnce(_ request: TransferRequest, tick: () -> TransferTick) -> TransferOutcome
}

extension Transport {
    /// One exchange, which follows 307 and 308 within the origin.
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

/// What a running transfer is told when it asks.
enum TransferTick {
    case go
    /// Go on without a byte rate: somebody waits for it.
    case goUnlimited
    case stop
}

/// A request body in memory, for a few bytes.
struct MemoryBody: ~Copyable {
    let descriptor: Int32
    let count: UInt64

    init(_ bytes: [UInt8]) throws(UploadError) {
        count = UInt64(bytes.count)
        descriptor = cwi_file_memory()
        guard descriptor >= 0 else {
            throw UploadError.system(call: "memfd_create", path: "cordwood", errno: errno)
        }
        try unsafe bytes.withUnsafeBufferPointer { (buffer) throws(UploadError) in
            try StoreFiles.write(
                descriptor, UnsafeRawBufferPointer(buffer), path: "a request's body")
        }
    }

    var whole: RequestBody { RequestBody(descriptor: descriptor, count: count) }

    deinit { cwi_file_close(descriptor) }
}
