// Finding one text in another, by bytes.

import XCTest

@testable import CordwoodFormats

final class TextSearchTests: XCTestCase {
    func testHolds() {
        let found = [
            ("a path: /x/y", "/x/y"), ("/x/y is gone", "/x/y"), ("aab", "ab"), ("same", "same"),
            ("anything", ""), ("", ""), ("größe", "ö"), ("lines\r\n", "\n"),
        ]
        for (text, part) in found { XCTAssertTrue(text.holds(part), "\(part) in \(text)") }
        for (text, part) in [("ab", "abc"), ("", "a"), ("aXb", "ab"), ("abab", "ba ")] {
            XCTAssertFalse(text.holds(part), "\(part) in \(text)")
        }
        XCTAssertTrue("a long text"[...].holds("text".suffix(2)))
    }
}
