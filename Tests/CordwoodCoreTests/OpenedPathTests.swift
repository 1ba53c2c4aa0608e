// Paths that start from an open directory, and from one that could not be opened.

import Foundation
import XCTest

@testable import CordwoodCore

final class OpenedPathTests: XCTestCase {
    private var folder = ""

    override func setUp() {
        folder = NSTemporaryDirectory() + "cordwood-paths-\(UUID().uuidString)"
        XCTAssertEqual(mkdir(folder, 0o700), 0)
    }

    override func tearDown() { try? FileManager.default.removeItem(atPath: folder) }

    /// What its owner puts there a moment later is not reached, and every call says why not.
    func testADirectoryThatCannotBeOpenedStaysClosed() {
        let missing = folder + "/missing", pipe = folder + "/pipe", file = folder + "/file"
        XCTAssertEqual(mkfifo(pipe, 0o600), 0)
        XCTAssertTrue(FileManager.default.createFile(atPath: file, contents: Data([1])))
        let paths = [(missing, ENOENT), (pipe, ENOTDIR)].map {
            (name: $0, path: FilePath(opening: $0), error: $1)
        }
        for (name, path, error) in paths {
            unlink(name)
            XCTAssertEqual(mkdir(name, 0o700), 0)
            XCTAssertTrue(FileManager.default.createFile(atPath: name + "/a", contents: nil))
            for below in [path, path + "/a", path + "/b/c"] {
                errno = E2BIG
                XCTAssertNil(FileFacts(at: below), "\(below)")
                XCTAssertEqual(Errno.last, error, "\(below)")
            }
            XCTAssertFalse(Files.makeDirectory(path + "/b"))
            XCTAssertEqual(Errno.last, error)
            XCTAssertEqual("\(path + "/a")", name + "/a")
        }
        XCTAssertEqual(FileFacts(at: FilePath(opening: file))?.bytes, 1)
    }

    func testAClosedDirectorySaysSo() throws {
        let directory = try XCTUnwrap(OpenDirectory(folder))
        directory.close()
        for name in ["/a", "/a/b"] {
            errno = E2BIG
            XCTAssertNil(FileFacts(at: FilePath(directory) + name))
            XCTAssertEqual(Errno.last, EBADF, name)
        }
    }
}
