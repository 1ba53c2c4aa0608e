// Locations in a store (FORMAT §2), as far as uploading needs them, and the mapping between an
// archive's file name and its name in the queue. Pure.

package struct StorePaths: Sendable {
    package let root: String
    package var lanes: String { root + "/lanes" }
    package var archives: String { root + "/archives" }
    package var queue: String { root + "/queue" }
    package var targets: String { root + "/targets" }

    package init(_ root: String) {
        self.root = root
    }

    static let archiveSuffix = ".cwa"
    /// A body in queue/ whose name will be removed: `.body-<archive>.<thread>`.
    static let bodyPrefix = ".body-"

    package static func body(of stem: String, thread: UInt32) -> String {
        "\(bodyPrefix)\(stem).\(thread)"
    }

    /// nil: not a body.
    static func stem(ofBody name: String) -> String? {
        guard name.hasPrefix(bodyPrefix) else { return nil }
        let rest = name.dropFirst(bodyPrefix.count)
        return String(rest[..<(rest.lastIndex(of: ".") ?? rest.endIndex)])
    }

    /// Parses `<lane>.<first>-<last>.cwa`; nil: not an archive.
    package static func stem(ofFile name: String) -> String? {
        guard name.hasSuffix(archiveSuffix), name.utf8.count > archiveSuffix.utf8.count else {
            return nil
        }
        return String(name.dropLast(archiveSuffix.count))
    }

    /// Callbacks and closures receive this name.
    package static func file(ofStem stem: String) -> String { stem + archiveSuffix }

    package func archive(_ stem: String) -> String {
        archives + "/" + StorePaths.file(ofStem: stem)
    }

    package func makeDirectories() throws(UploadError) {
        try StoreFiles.makeDirectory(archives)
        try StoreFiles.makeDirectory(queue)
        try StoreFiles.makeDirectory(targets)
    }
}
