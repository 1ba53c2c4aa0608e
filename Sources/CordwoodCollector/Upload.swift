// One request body on its way to the disk: the bytes that have arrived and are not written, and
// whether one of its jobs runs on the file pool. State only; owned by its connection, on that
// connection's event loop.

import NIOCore

final class Upload {
    /// The id the client gave.
    let key: String?
    let length: UInt64
    let expectsContinue: Bool
    /// Nil until the depot has admitted the upload.
    var file: IncomingFile?
    /// Arrived but not handed to the file; bounded by one read cycle of the channel.
    var pending = ByteBuffer()
    /// INVARIANT: at most one job on the pool, so the file is never used by two threads.
    var isJobRunning = false
    var isComplete = false
    let sender: Sender

    init(key: String?, length: UInt64, sender: Sender, expectsContinue: Bool) {
        self.key = key
        self.sender = sender
        self.length = length
        self.expectsContinue = expectsContinue
    }
}
