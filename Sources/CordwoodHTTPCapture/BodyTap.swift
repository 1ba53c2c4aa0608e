// Wraps the stream of a request's body and observes the bytes read from it. URLSession reads it on
// the task's work queue, one reader at a time; bytes are looked at, not held.
// SAFETY: `recording` is set before the first read, on the queue that reads.

import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

final class BodyTap: InputStream {
    private let source: InputStream
    /// Number of bytes read so far.
    private var position = 0
    /// Receives the bytes and their position in the body.
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
