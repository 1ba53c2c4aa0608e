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

/// Bytes [offset, offset + count) of an open file, whose own position is not used, or of what a
/// reader copies. SAFETY: a reader writes into the buffer of its call, at most as much as it holds.
@safe struct RequestBody {
    /// Copies bytes from an offset on; returns their number, or a negative errno.
    typealias Reader = (_ into: UnsafeMutableRawBufferPointer, _ at: UInt64) -> Int

    /// Ignored if there is a reader.
    var descriptor: Int32
    var offset: UInt64 = 0
    var count: UInt64
    private let reader: Reader?

    init(descriptor: Int32, offset: UInt64 = 0, count: UInt64) {
        self.descriptor = descriptor
        self.offset = offset
        self.count = count
        unsafe reader = nil
    }

    init(offset: UInt64, count: UInt64, reader: @escaping Reader) {
        descriptor = -1
        self.offset = offset
        self.count = count
        unsafe self.reader = reader
    }

    /// Copies bytes from `at` on, which count from `offset`. Returns their number, or a negative
    /// errno. SAFETY: writes into the buffer alone, at most as much as it holds.
    func read(into buffer: UnsafeMutableRawBufferPointer, at: UInt64) -> Int {
        if let reader = unsafe reader { return unsafe reader(buffer, offset &+ at) }
        let got = unsafe Files.readOnce(descriptor, into: buffer, at: offset &+ at)
        return got >= 0 ? got : -Int(Errno.last)
    }
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
