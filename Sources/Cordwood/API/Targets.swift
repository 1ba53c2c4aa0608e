// The kinds of targets by name, for Swift hosts: `try engine.addTarget(.http(url))`.

import CordwoodShip

extension TargetOptions {
    /// Our collector: archives as they are, to `url` + /v1/archives.
    public static func collector(_ url: String, token: String? = nil) -> TargetOptions {
        var options = TargetOptions(url: url)
        options.kind = "collector"
        options.authToken = token
        return options
    }

    /// Any HTTP endpoint, complete; `{id}` and `{name}` stand for the archive's id and file name.
    public static func http(
        _ url: String, format: String = "archive", encoding: String = "none", token: String? = nil
    ) -> TargetOptions {
        var options = TargetOptions(url: url)
        options.kind = "http"
        options.format = format
        options.encoding = encoding
        options.authToken = token
        return options
    }
}

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
                            throwing: CordwoodError(status, Engine.uploadText(result)))
                    }
                }
            } catch {
                continuation.resume(throwing: error)
            }
        }
    }

    static func uploadText(_ result: UploadResult) -> String {
        "\(result.failed) not sent, \(result.waiting) waiting; "
            + "last HTTP status \(result.lastHTTPStatus)"
    }
}
