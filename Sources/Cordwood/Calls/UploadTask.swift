// Uploading from a task. Only this module has `async` code. The C libraries do not link it, so they
// avoid the task runtime (0.8 MB on disk, 1.6 MiB resident in every host).

import CordwoodEngine
import CordwoodShip

extension Engine {
    /// Like the other `upload`, but off the caller's thread: it never blocks the task's thread.
    public func upload() async throws -> UploadResult {
        let engine = self
        return try await withCheckedThrowingContinuation { continuation in
            do throws(CordwoodError) {
                try engine.beginUpload { status, result in
                    if status >= 0 {
                        continuation.resume(returning: result)
                    } else {
                        continuation.resume(
                            throwing: engine.uploadError(status, result))
                    }
                }
            } catch {
                continuation.resume(throwing: error)
            }
        }
    }
}
