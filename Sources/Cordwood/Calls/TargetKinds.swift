// The kinds of targets by name, for Swift hosts: `try engine.addTarget(.http(url))`. TargetOptions
// has the other options of a target; docs/UPLOADS.md has a recipe for each kind.

import CordwoodShip

extension TargetOptions {
    /// Our collector: sends archives unchanged to `url` + /v1/archives.
    public static func collector(_ url: String, token: String? = nil) -> TargetOptions {
        make("collector", url, token: token)
    }

    /// Any HTTP endpoint, with its complete address. `{id}` and `{name}` are replaced by the
    /// request's id and the archive's file name.
    public static func http(
        _ url: String, format: String = "archive", encoding: String = "none", token: String? = nil
    ) -> TargetOptions {
        var options = make("http", url, token: token)
        options.format = format
        options.encoding = encoding
        return options
    }

    /// SAP Mobile Services: the address of its log upload. `{app}`, `{appId}` and `{deviceId}` are
    /// filled in.
    public static func sap(
        _ url: String, application: String, applicationID: String, deviceID: String,
        token: String? = nil
    ) -> TargetOptions {
        make(
            "sap", url, token: token,
            [
                "application": application, "application_id": applicationID,
                "device_id": deviceID,
            ])
    }

    /// Loggly's bulk address.
    public static func loggly(_ url: String, token: String? = nil) -> TargetOptions {
        make("loggly", url, token: token)
    }

    /// A bucket, `https://host/bucket`.
    public static func s3(
        _ url: String, region: String, accessKey: String, secretKey: String, key: String? = nil
    ) -> TargetOptions {
        var parameters = ["region": region]
        parameters["key"] = key
        var options = make("s3", url, token: nil, parameters)
        options.authUser = accessKey
        options.authPassword = secretKey
        return options
    }

    /// An OpenTelemetry collector; /v1/logs is appended.
    public static func otlp(_ url: String, json: Bool = false, token: String? = nil)
        -> TargetOptions
    {
        var options = make("otlp", url, token: token)
        options.format = json ? "otlp-json" : "otlp-protobuf"
        return options
    }

    /// Grafana Loki; /loki/api/v1/push is appended.
    public static func loki(_ url: String, tenant: String? = nil) -> TargetOptions {
        make("loki", url, token: nil, tenant.map { ["tenant": $0] } ?? [:])
    }

    /// Elasticsearch or OpenSearch; /_bulk is appended.
    public static func elasticsearch(
        _ url: String, index: String, token: String? = nil
    ) -> TargetOptions {
        make("elasticsearch", url, token: token, ["index": index])
    }

    /// Splunk's HTTP event collector.
    public static func splunk(_ url: String, token: String) -> TargetOptions {
        make("splunk", url, token: token)
    }

    /// Datadog's intake.
    public static func datadog(_ url: String, apiKey: String) -> TargetOptions {
        make("datadog", url, token: apiKey)
    }

    /// ClickHouse, with the INSERT in the URL's query.
    public static func clickhouse(
        _ url: String, user: String? = nil, password: String? = nil
    ) -> TargetOptions {
        var options = make("clickhouse", url, token: nil)
        options.authUser = user
        options.authPassword = password
        return options
    }

    /// A server of application transactions; the address is complete.
    /// - Parameters:
    ///   - prefix: the part of the media type before `apptxnset`.
    ///   - scheme, parameter: make up `Authorization: <scheme> <parameter>="<token>"`.
    public static func transactions(
        _ url: String, token: String? = nil, prefix: String? = nil, version: String? = nil,
        scheme: String? = nil, parameter: String? = nil
    ) -> TargetOptions {
        var parameters: [String: String] = [:]
        parameters["prefix"] = prefix
        parameters["version"] = version
        parameters["scheme"] = scheme
        parameters["param"] = parameter
        return make("transactions", url, token: token, parameters)
    }

    private static func make(
        _ kind: String, _ url: String, token: String?, _ parameters: [String: String] = [:]
    ) -> TargetOptions {
        var options = TargetOptions(url: url)
        options.kind = kind
        options.authToken = token
        let lines = parameters.keys.sorted().map { "\($0)=\(inOneLine(parameters[$0] ?? ""))" }
        options.parameters = lines.isEmpty ? nil : lines.joined(separator: "\n")
        return options
    }

    /// Keeps a value from starting a second line: DEL replaces its newline, and addTarget refuses
    /// DEL.
    private static func inOneLine(_ value: String) -> String {
        String(decoding: value.utf8.map { $0 == 0x0A ? 0x7F : $0 }, as: UTF8.self)
    }
}
