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
    static func uploadText(_ result: UploadResult) -> String {
        "\(result.failed) not sent, \(result.waiting) waiting; "
            + "last HTTP status \(result.lastHTTPStatus)"
    }
}
