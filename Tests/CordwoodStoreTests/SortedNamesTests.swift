// The paths of a store's archives come in the order of the bytes of their names, whatever they are:
// remembered facts are looked up in that order.

import CordwoodTestSupport
import Glibc
import XCTest

@testable import CordwoodCore

final class SortedNamesTests: XCTestCase {
    private let scratch = Scratch()

    func testPathsAreSortedByTheBytesOfTheirNames() throws {
        var random = SplitMix(7)
        for round in 0..<40 {
            let folder = "\(scratch.path)/list\(round)"
            XCTAssertEqual(mkdir(folder, 0o700), 0)
            let shared = String(repeating: "20261121T08-", count: random.below(3))
            var wanted: Set<String> = []
            // Few are compared, many are sorted byte by byte.
            for _ in 0..<random.below(round % 8 == 0 ? 900 : 60) {
                let size = random.below(14)
                let letters = (0..<size).map { _ in Array("ab0é.-")[random.below(6)] }
                let begin = random.chance(3) ? shared + "bbbbaaaa" : shared
                let name = begin + String(letters) + (random.chance(8) ? ".cwb" : ".cwa")
                writeAll([], "\(folder)/\(name)")
                if name.hasSuffix(".cwa"), !name.hasPrefix(".") { wanted.insert(name) }
            }
            let sorted = wanted.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
            let listing = SortedNames(in: FilePath(folder), suffix: ".cwa")
            XCTAssertEqual(listing.names, sorted)
            XCTAssertEqual(listing.error, 0)
        }
        XCTAssertEqual(
            SortedNames(in: FilePath(scratch.path + "/none"), suffix: ".cwa").error, ENOENT)
    }
}
