// Makes a directory a store (FORMAT §2): the folders, and the identity file where there is none.
// What is there already is left as it is. Blocking; before the collector serves.

import Glibc

enum StoreFolder {
    static func make(_ directory: String) throws(FileProblem) {
        try makeParents(of: directory)
        for folder in [directory, "\(directory)/lanes", "\(directory)/archives"] {
            try Files.makeDirectory(folder)
        }
        let identity = "\(directory)/store"
        guard !Files.exists(identity) else { return }
        let fresh = "\(directory)/.store.new"
        unlink(fresh)
        let file = try Files.open(fresh, O_WRONLY | O_CREAT | O_EXCL)
        defer { close(file) }
        let text = Array(identityText().utf8)
        try text.withUnsafeBufferPointer { (bytes) throws(FileProblem) in
            try Files.writeAll(file, UnsafeRawBufferPointer(bytes))
        }
        try Files.sync(file)
        try Files.move(fresh, to: identity)
        try Files.syncDirectory(directory)
    }

    /// FORMAT §2.1.
    private static func identityText() -> String {
        var now = time(nil)
        var parts = tm()
        gmtime_r(&now, &parts)
        let year = parts.tm_year + 1900
        let date = "\(year)-\(two(parts.tm_mon + 1))-\(two(parts.tm_mday))"
        let clock = "\(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec))"
        return """
            cordwood store
            format 1
            compat 0
            incompat 0
            id \(Files.randomName())\(Files.randomName())
            created \(date)T\(clock)Z
            consent granted

            """
    }

    private static func two(_ value: Int32) -> String { value < 10 ? "0\(value)" : "\(value)" }

    private static func makeParents(of path: String) throws(FileProblem) {
        let parts = path.split(separator: "/").dropLast()
        var parent = path.hasPrefix("/") ? "" : "."
        for part in parts {
            parent += "/\(part)"
            if !Files.exists(parent) { try Files.makeDirectory(parent) }
        }
    }
}
