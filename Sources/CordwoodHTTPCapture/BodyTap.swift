// A request's body that is a stream: the host's stream, with a look at what is read from it. Read
// by URLSession on the task's work queue, by one reader at a time; bytes are looked at, not held.
// SAFETY: `recording` is set before the first read, on the queue that reads.

import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

final class BodyTap: InputStream {
    private let source: InputStream
    /// Bytes read until now.
    private var position = 0
    /// Told of bytes and where they begin in the body.
    weak var recording: Recording?

    init(_ source: InputStream) {
        self.source = source
        super.init(data: Data())
    }

    override var hasBytesAvailable: Bool { source.hasBytesAvailable }
    override var streamStatus: Stream.Status { source.streamStatus }
    override var streamError: (any Error)? { source.streamError }
    override var delegate: (any StreamDelegate)? {
        get { source.delegate }
        set { source.delegate = newValue }
    }

    override func open() { source.open() }

    override func close() { source.close() }

    override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength length: Int) -> Int {
        let count = unsafe source.read(buffer, maxLength: length)
        guard count > 0 else { return count }
        unsafe recording?.sent(UnsafeRawBufferPointer(start: buffer, count: count), at: position)
        position += count
        return count
    }

    override func property(forKey key: Stream.PropertyKey) -> AnyObject? {
        source.property(forKey: key)
    }

    override func setProperty(_ property: AnyObject?, forKey key: Stream.PropertyKey) -> Bool {
        source.setProperty(property, forKey: key)
    }

    override func schedule(in loop: RunLoop, forMode mode: RunLoop.Mode) {
        source.schedule(in: loop, forMode: mode)
    }

    override func remove(from loop: RunLoop, forMode mode: RunLoop.Mode) {
        source.remove(from: loop, forMode: mode)
    }
}
