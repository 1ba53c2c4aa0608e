// The page's files: those built into the program, or in debug builds those of a directory, so that
// a change shows at the next reload. Any thread; the calling thread reads files of a directory.
// SAFETY: the program's files are constant data, copied once.

import CViewerPage
import Cordwood
import NIOCore

struct PageFile: Sendable {
    let bytes: ByteBuffer
    let type: String
    /// Identifies the content.
    let tag: String

    private static let types = [
        "js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8",
        "svg": "image/svg+xml",
    ]

    init(_ name: String, _ bytes: [UInt8]) {
        self.bytes = ByteBuffer(bytes: bytes)
        let ending = name.split(separator: ".").last ?? ""
        type = PageFile.types[String(ending)] ?? "text/html; charset=utf-8"
        // FNV-1a: only has to distinguish the contents of one file.
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        tag = "\"\(Hex.text(hash))-\(bytes.count)\""
    }
}

struct PageFiles: Sendable {
    private let files: [String: PageFile]
    private let directory: String?

    init(directory: String?) {
        var files: [String: PageFile] = [:]
        for index in 0..<cvp_count() {
            let file = unsafe cvp_at(index)
            let name = unsafe String(cString: file.name)
            let bytes = unsafe Array(UnsafeBufferPointer(start: file.bytes, count: file.count))
            files[name] = PageFile(name, bytes)
        }
        self.files = files
        self.directory = directory
    }

    var names: Set<String> { Set(files.keys) }

    /// Nil: no such file.
    func file(_ name: String) -> PageFile? {
        guard let directory, files[name] != nil else { return files[name] }
        return Files.content(FilePath("\(directory)/\(name)"), bytesMax: 1 << 20).map {
            PageFile(name, $0)
        }
    }
}
