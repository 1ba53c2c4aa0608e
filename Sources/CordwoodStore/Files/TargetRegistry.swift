// The targets of a store: one small text file per target below targets/. It holds what a person
// needs to recognise the target, and no secret: only scheme, host and port of the URL. After upload
// an archive is deleted once all targets registered here have it. Any thread, any process.

import CordwoodCore

public struct RegisteredTarget: Equatable, Sendable {
    public var key: TargetKey
    public var name: String
    public var kind: String
    public var format: String
    public var encoding: String
    /// `https://logs.example.com:8443`.
    public var origin: String
    /// nil: another version registered it.
    package var bodies: RegisteredBodies?

    package init(
        key: TargetKey, name: String, kind: String, format: String, encoding: String,
        origin: String, bodies: RegisteredBodies? = nil
    ) {
        self.key = key
        self.name = name
        self.kind = kind
        self.format = format
        self.encoding = encoding
        self.origin = origin
        self.bodies = bodies
    }
}

/// The settings, besides the form, that determine the bodies of a target's requests, so that others
/// can make the same ones (FORMAT §2.6). Of secrets it records only that they exist.
package struct RegisteredBodies: Equatable, Sendable {
    package var level: UInt8 = 0
    /// Names separated by commas.
    package var loggers = ""
    /// 0: no limit.
    package var bytesMax: UInt64 = 0
    package var recordsMax: UInt32 = 0
    package var method = ""
    /// `name=value`.
    package var parameters: [String] = []
    /// The names of the host's own headers.
    package var headers: [String] = []
    /// `token`, `user` or empty.
    package var credentials = ""

    package init() {}

    /// nil: a value does not fit a line.
    fileprivate var lines: [String]? {
        var lines = ["bodies 1"]
        func add(_ key: String, _ value: String) {
            if !value.isEmpty, value != "0" { lines.append("\(key) \(value)") }
        }
        add("level", String(level))
        add("loggers", loggers)
        add("body_bytes_max", String(bytesMax))
        add("body_records_max", String(recordsMax))
        add("method", method)
        for parameter in parameters { add("parameter", parameter) }
        for header in headers { add("header", header) }
        add("credentials", credentials)
        let isText = lines.allSatisfy { $0.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F } }
        return isText ? lines : nil
    }

    /// False: a value that this version does not understand.
    fileprivate mutating func take(_ line: KeyValueFile.Line) -> Bool {
        let value = String(line.value)
        func number<Number: FixedWidthInteger>(_ into: inout Number) -> Bool {
            guard let number = Number(value) else { return false }
            into = number
            return true
        }
        switch line.key {
        case "bodies": return value == "1"
        case "level": return number(&level)
        case "body_bytes_max": return number(&bytesMax)
        case "body_records_max": return number(&recordsMax)
        case "loggers": loggers = value
        case "method": method = value
        case "parameter": parameters.append(value)
        case "header": headers.append(value)
        case "credentials": credentials = value
        default: break
        }
        return true
    }
}

package struct TargetRegistry: Sendable {
    let paths: StorePaths
    private static let firstLine = "cordwood target"

    package init(storeDirectory: FilePath) {
        paths = StorePaths(storeDirectory)
    }

    /// Sorted by key. A target whose file cannot be read still counts: it protects archives.
    package func list() throws(UploadError) -> [RegisteredTarget] {
        var targets: [RegisteredTarget] = []
        for fileName in try StoreFiles.list(paths.targets).sorted() {
            let path = paths.targets + "/" + fileName
            guard let bytes = try StoreFiles.read(path, isObeyed: true) else { continue }
            targets.append(TargetRegistry.parse(bytes, key: TargetKey(fileName: fileName)))
        }
        return targets
    }

    package func keys() throws(UploadError) -> [TargetKey] {
        try StoreFiles.list(paths.targets).map { TargetKey(fileName: $0) }
    }

    package func register(_ target: RegisteredTarget) throws(UploadError) {
        let path = paths.targets + "/" + target.key.text
        let bytes = Array(TargetRegistry.text(target).utf8)
        if try StoreFiles.read(path) == bytes { return }
        let lock = try StoreFiles.lockDirectory(paths.targets)
        defer { _ = lock.number }
        try StoreFiles.replace(
            path, temporary: paths.targets + "/.new", directory: paths.targets, with: bytes)
    }

    /// Removes a registration, then forgets its states.
    /// CRASH: in between, states without a target remain; Outbox.removeOrphans removes them.
    package func remove(name: String) throws(UploadError) {
        let key = TargetKey(name: name)
        let path = paths.targets + "/" + key.text
        guard StoreFiles.exists(path) else {
            throw UploadError.notFound("no target is named \(name)")
        }
        try StoreFiles.remove(path)
        try StoreFiles.syncDirectory(paths.targets)
        try Outbox(paths: paths).removeAll(at: key)
    }

    private static func text(_ target: RegisteredTarget) -> String {
        let lines = [
            firstLine, "name \(target.name)", "kind \(target.kind)", "format \(target.format)",
            "encoding \(target.encoding)", "origin \(target.origin)",
        ]
        return (lines + (target.bodies?.lines ?? []) + [""]).joined(separator: "\n")
    }

    private static func parse(_ bytes: [UInt8], key: TargetKey) -> RegisteredTarget {
        var target = RegisteredTarget(
            key: key, name: key.text, kind: "", format: "", encoding: "", origin: "")
        let lines = KeyValueFile.lines(bytes)
        if lines.contains(where: { $0.key == "bodies" }) {
            var bodies = RegisteredBodies()
            if lines.allSatisfy({ bodies.take($0) }) { target.bodies = bodies }
        }
        for line in lines where !line.value.isEmpty {
            let value = String(line.value)
            switch line.key {
            case "name": target.name = value
            case "kind": target.kind = value
            case "format": target.format = value
            case "encoding": target.encoding = value
            case "origin": target.origin = value
            default: break
            }
        }
        return target
    }
}
