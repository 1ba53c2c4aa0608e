// Uploading from a task. A file of its own, as Reader.swift is, for the C libraries leave both
// out: with them the whole runtime of tasks would come along (tools/build.sh). Not to be the room's
// first file: the compiler puts there what the module shares.

import CordwoodEngine
import CordwoodShip

extension Engine {
    /// As the other, off the caller's thread: nothing of the task's is blocked.
    public func upload() async throws -> UploadResult {
        let engine = self
        return try await withCheckedThrowingContinuation { continuation in
            do throws(CordwoodError) {
                try engine.uploadAsync { status, result in
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
