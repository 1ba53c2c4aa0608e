// Locations in a store (FORMAT §2), as far as uploading needs them, and the mapping between an
// archive's file name and its name in the queue. Pure.

import CordwoodCore

package struct StorePaths: Sendable {
    package let root: FilePath
    package var lanes: FilePath { root + "/lanes" }
    package var archives: FilePath { root + "/archives" }
    package var queue: FilePath { root + "/queue" }
    package var targets: FilePath { root + "/targets" }

    package init(_ root: FilePath) {
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

    package func archive(_ stem: String) -> FilePath {
        archives + "/" + StorePaths.file(ofStem: stem)
    }

    package func makeDirectories() throws(UploadError) {
        try StoreFiles.makeDirectory(archives)
        try StoreFiles.makeDirectory(queue)
        try StoreFiles.makeDirectory(targets)
    }
}
