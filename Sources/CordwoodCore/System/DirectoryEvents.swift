// Reports which names were added to one directory and which were removed from it, in order. Sees
// only this machine's changes, so it is not used for directories of network file systems. Owned by
// one object, which lets in one thread at a time.
// SAFETY: events are read into a buffer of this call; each one, and the name behind it, is checked
// against the bytes that were read.

import CShims
import Glibc

package struct DirectoryEvents: ~Copyable {
    package struct Change {
        package var name: String
        package var isAdded: Bool
    }

    private let descriptor: Int32

    private static let mask =
        IN_CREATE | IN_MOVED_TO | IN_DELETE | IN_MOVED_FROM | IN_DELETE_SELF | IN_MOVE_SELF
        | IN_ONLYDIR
    private static let bufferBytes = 64 << 10

    /// nil: the system provides no events here.
    package init?(_ path: FilePath) {
        let directory = unsafe path.lend {
            unsafe cwi_open_at($0, $1, O_RDONLY | O_DIRECTORY, 0)
        }
        guard directory >= 0 else { return nil }
        defer { close(directory) }
        guard FileSystem(directory).kind != .network else { return nil }
        let made = inotify_init1(Int32(IN_NONBLOCK | IN_CLOEXEC))
        guard made >= 0 else { return nil }
        // inotify takes no directory's descriptor, but its path in /proc.
        guard
            unsafe inotify_add_watch(
                made, "/proc/self/fd/\(directory)", UInt32(DirectoryEvents.mask)) >= 0
        else {
            close(made)
            return nil
        }
        descriptor = made
    }

    deinit { close(descriptor) }

    /// The changes since the last call; nil: some were lost, or the directory is gone.
    package func take() -> [Change]? {
        var changes: [Change] = []
        let size = MemoryLayout<inotify_event>.size
        var isWhole = true
        unsafe withUnsafeTemporaryAllocation(
            byteCount: DirectoryEvents.bufferBytes, alignment: 8
        ) { buffer in
            while isWhole {
                let count = unsafe read(descriptor, buffer.baseAddress, buffer.count)
                guard count > 0 else {
                    isWhole = count < 0 && errno == EAGAIN
                    return
                }
                var at = 0
                while at + size <= count {
                    let event = unsafe buffer.loadUnaligned(
                        fromByteOffset: at, as: inotify_event.self)
                    let (start, length) = (at + size, Int(event.len))
                    guard length <= count - start else { break }
                    at = start + length
                    if event.mask & UInt32(IN_Q_OVERFLOW | IN_DELETE_SELF | IN_MOVE_SELF) != 0
                        || event.mask & UInt32(IN_IGNORED | IN_UNMOUNT) != 0
                    {
                        isWhole = false
                        return
                    }
                    let bytes = unsafe Array(buffer[start..<at].prefix { $0 != 0 })
                    guard !bytes.isEmpty else { continue }
                    changes.append(
                        Change(
                            name: String(decoding: bytes, as: UTF8.self),
                            isAdded: event.mask & UInt32(IN_CREATE | IN_MOVED_TO) != 0))
                }
            }
        }
        return isWhole ? changes : nil
    }
}
