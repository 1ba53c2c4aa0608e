// The targets of a store: one small text file per target below targets/. It holds what a person
// needs to recognise the target, and no secret: of the URL only scheme, host and port. After upload
// an archive is deleted once all targets registered here have it. Any thread, any process.

public struct RegisteredTarget: Equatable, Sendable {
    public var key: TargetKey
    public var name: String
    public var kind: String
    public var format: String
    public var encoding: String
    /// `https://logs.example.com:8443`.
    public var origin: String

    package init(
        key: TargetKey, name: String, kind: String, format: String, encoding: String,
        origin: String
    ) {
        self.key = key
        self.name = name
        self.kind = kind
        self.format = format
        self.encoding = encoding
        self.origin = origin
    }
}

package struct TargetRegistry: Sendable {
    let paths: StorePaths
    private static let firstLine = "cordwood target"

    package init(storeDirectory: String) {
        paths = StorePaths(storeDirectory)
    }

    /// Sorted by key. A target whose file cannot be read still counts: it protects archives.
    package func list() throws(UploadError) -> [RegisteredTarget] {
        var targets: [RegisteredTarget] = []
        for fileName in try StoreFiles.list(paths.targets).sorted() {
            guard let bytes = try StoreFiles.read(paths.targets + "/" + fileName) else { continue }
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
        """
        \(firstLine)
        name \(target.name)
        kind \(target.kind)
        format \(target.format)
        encoding \(target.encoding)
        origin \(target.origin)

        """
    }

    private static func parse(_ bytes: [UInt8], key: TargetKey) -> RegisteredTarget {
        var target = RegisteredTarget(
            key: key, name: key.text, kind: "", format: "", encoding: "", origin: "")
        for line in KeyValueFile.lines(bytes) where !line.value.isEmpty {
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
