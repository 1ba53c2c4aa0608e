// An answer that a reader's thread makes piece by piece. The thread waits while the client does not
// accept what was made, so memory stays bounded however slow the client is. A client that accepts
// nothing for too long loses its connection. `send`, and `isOver`, which readers check now and
// then, tell the thread that the client has gone.
// SAFETY: `@unchecked Sendable`: the variables are used only with the monitor's lock held.

import Cordwood
import NIOCore
import NIOHTTP1
import Synchronization

/// The viewer is asked to stop. Any thread.
final class Stop: Sendable {
    private let flag = Mutex(false)

    var isAsked: Bool { flag.withLock { $0 } }

    func ask() { flag.withLock { $0 = true } }
}

final class LineStream: @unchecked Sendable {
    /// Above this, `send` waits: bytes made and not accepted.
    static let bytesMax = 256 << 10

    private let channel: any Channel
    private var head: HTTPResponseHead
    private let stallTimeoutMs: UInt64
    private let stop: Stop
    private let monitor = Monitor()
    private var waiting = 0
    private var isClosed = false

    private var begun = false

    init(_ channel: any Channel, head: HTTPResponseHead, stallTimeoutMs: UInt64, stop: Stop) {
        self.channel = channel
        self.head = head
        self.stallTimeoutMs = stallTimeoutMs
        self.stop = stop
    }

    /// The client has gone, or the viewer stops.
    var isOver: Bool { stop.isAsked || monitor.locked { isClosed } }

    /// The head is on its way: the answer can no longer be replaced.
    var hasBegun: Bool { monitor.locked { begun } }

    /// Makes the answer `reply`, without its body, instead of lines of JSON. Before the first
    /// piece.
    func begin(as reply: Reply) {
        monitor.locked {
            let keepAlive = !head.headers.contains(name: "Connection")
            head = reply.head(keepAlive: keepAlive, isStream: true)
        }
    }

    func close() {
        monitor.locked {
            isClosed = true
            monitor.notify()
        }
    }

    /// Blocks while too much waits. Empties `bytes`. False: the answer is over.
    func send(_ bytes: inout [UInt8]) -> Bool {
        let count = bytes.count
        if count == 0 { return !isOver }
        guard let isFirst = waitForRoom(count) else { return false }
        if isFirst {
            let head = monitor.locked { self.head }
            channel.write(HTTPServerResponsePart.head(head), promise: nil)
        }
        let piece = HTTPServerResponsePart.body(.byteBuffer(ByteBuffer(bytes: bytes)))
        bytes.removeAll(keepingCapacity: true)
        channel.writeAndFlush(piece).whenComplete { result in
            self.monitor.locked {
                self.waiting -= count
                if case .failure = result { self.isClosed = true }
                self.monitor.notify()
            }
        }
        return true
    }

    /// Nil: over. True: nothing was sent before.
    private func waitForRoom(_ count: Int) -> Bool? {
        monitor.locked {
            while waiting > LineStream.bytesMax, !isClosed, !stop.isAsked {
                let before = waiting
                let isWoken = monitor.wait(until: .init(afterMs: stallTimeoutMs))
                if !isWoken, waiting == before {
                    isClosed = true
                    channel.close(promise: nil)
                }
            }
            if isClosed || stop.isAsked { return nil }
            waiting += count
            defer { begun = true }
            return !begun
        }
    }

    /// Sleeps; false: over.
    func pause(ms: UInt64) -> Bool {
        monitor.locked {
            if !isClosed { _ = monitor.wait(until: .init(afterMs: ms)) }
            return !isClosed
        }
    }
}
