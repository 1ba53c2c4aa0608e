// How long a LogMessage lives and where: messages that outlive their call, are logged inside
// another call's expression, find no memory, or end with their thread; and calls of which one place
// makes many kinds of records. A message that is gone is a remark, never another's bytes.

import CShims
import Foundation
import XCTest

@testable import Cordwood
@testable import CordwoodCore

final class MessageLifeTests: MessageCase {
    /// Each is found again without the lock: the table gets every one, and each once.
    func testOnePlaceWithManyKinds() throws {
        func write(_ bits: Int) {
            func value(_ index: Int) -> Int? { bits >> index & 1 == 1 ? index : nil }
            log.info("\(value(0)) \(value(1)) \(value(2)) \(value(3)) \(value(4)) \(value(5))")
            let values = (0..<6).map { value($0) }
            expected.append(values.map { String(describing: $0) }.joined(separator: " "))
        }
        let before = cwi_message_table_get()!.pointee.count
        for _ in 0..<3 {
            for bits in 0..<64 { write(bits) }
            XCTAssertEqual(cwi_message_table_get()!.pointee.count, before + 64)
        }
        try check()
    }
}
