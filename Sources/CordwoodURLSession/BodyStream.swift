// A request's body as the InputStream that URLSession wants: reads from the archive's file on
// demand and keeps nothing. The session reads it on one thread at a time. Reads after the end of
// the request get an error.

import Cordwood
import Foundation

final class BodyStream: InputStream {
    private let request: UploadRequest
    private var offset: UInt64 = 0
    private var status = Stream.Status.notOpen
    private var failure: (any Error)?
    private weak var listener: (any StreamDelegate)?

    init(_ request: UploadRequest) {
        self.request = request
        super.init(data: Data())
    }

    override func open() { status = .open }
    override func close() { status = .closed }
    override var streamStatus: Stream.Status { status }
    override var streamError: (any Error)? { failure }
    override var hasBytesAvailable: Bool { status == .open && offset < request.bodyBytes }

    override var delegate: (any StreamDelegate)? {
        get { listener }
        set { listener = newValue }
    }

    /// SAFETY: the session's buffer has room for `count` bytes.
    override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength count: Int) -> Int {
        guard status == .open, count > 0 else { return status == .atEnd ? 0 : -1 }
        do {
            let room = unsafe UnsafeMutableRawBufferPointer(start: buffer, count: count)
            let got = try unsafe request.readBody(at: offset, into: room)
            offset += UInt64(got)
            if got == 0 || offset >= request.bodyBytes { status = .atEnd }
            return got
        } catch {
            failure = error
            status = .error
            return -1
        }
    }

    override func getBuffer(
        _ buffer: UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>,
        length: UnsafeMutablePointer<Int>
    ) -> Bool { false }

    override func schedule(in loop: RunLoop, forMode mode: RunLoop.Mode) {}
    override func remove(from loop: RunLoop, forMode mode: RunLoop.Mode) {}
}
