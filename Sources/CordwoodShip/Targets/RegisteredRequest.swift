// A target's requests as its registration describes them (FORMAT §2.6), and a target rebuilt from
// that, which makes the same bodies as the registered one. Both know only that secrets exist, so
// the rebuilt target can send nothing. Values: any thread.

import CordwoodStore

extension Target {
    var registration: RegisteredTarget {
        var bodies = RegisteredBodies()
        bodies.level = filter.level
        bodies.loggers = filter.loggersText
        bodies.bytesMax = dialect.limits.bytes
        bodies.recordsMax = dialect.limits.entries
        bodies.method = dialect.method
        bodies.parameters = toldParameters
        bodies.headers = headers.map(\.name)
        let credentials = keeper.current
        bodies.credentials =
            credentials.token != nil ? "token" : credentials.user != nil ? "user" : ""
        return RegisteredTarget(
            key: key, name: name, kind: kind.rawValue, format: format.rawValue,
            encoding: encoding.rawValue, origin: origin, bodies: bodies)
    }

    /// - Parameter registered: as a store keeps it; its contents are not trusted.
    init(registered: RegisteredTarget) throws(UploadError) {
        guard let bodies = registered.bodies else {
            throw UploadError.unsupported(
                "the registration of target \(registered.name) lacks level, loggers, limits and "
                    + "parameters, since another version wrote it: the next program that adds "
                    + "the target completes it")
        }
        // No body depends on the URL's path, which a registration omits.
        let path =
            switch TargetKind(rawValue: registered.kind) {
            case .s3: "/bucket"
            case .sap: "/logs"
            case .clickhouse: "/?query=INSERT"
            default: ""
            }
        var options = TargetOptions(url: registered.origin + path)
        options.name = registered.name
        options.kind = registered.kind
        options.format = registered.format
        options.encoding = registered.encoding
        options.level = UInt32(bodies.level)
        options.loggers = bodies.loggers
        options.bodyBytesMax = bodies.bytesMax
        options.bodyRecordsMax = bodies.recordsMax
        options.method = bodies.method.isEmpty ? nil : bodies.method
        options.parameters = bodies.parameters.joined(separator: "\n")
        options.headers = bodies.headers.map { "\($0): \(SentSecrets.mark)" }
            .joined(separator: "\n")
        switch bodies.credentials {
        case "token": options.authToken = SentSecrets.mark
        case "user": (options.authUser, options.authPassword) = (SentSecrets.mark, SentSecrets.mark)
        default: break
        }
        try self.init(options)
    }
}

extension TargetKind {
    /// `parameters`: those that bodies or content types depend on. `hidden`: those that only
    /// headers depend on; their values may be secrets.
    var told: (parameters: [String], hidden: [String]) {
        switch self {
        case .loki: (["service", "labels", "metadata"], ["tenant"])
        case .elasticsearch: (["index", "index_in", "service", "host"], [])
        case .splunk: (["host", "source", "sourcetype", "index", "service"], ["channel"])
        case .datadog: (["ddsource", "ddtags", "hostname", "service"], [])
        case .clickhouse: (["service", "host"], [])
        case .transactions:
            (
                [
                    "prefix", "version", "scheme", "param", "device_make", "device_os",
                    "device_os_version",
                ], []
            )
        case .http, .s3: (["fields"], [])
        case .collector, .sap, .loggly, .otlp: ([], [])
        }
    }
}
