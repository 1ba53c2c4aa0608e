// How long a LogMessage lives and where: messages that outlive their call, are logged inside
// another call's expression, find no memory, or end with their thread; and calls in which one place
// makes many kinds of records. A message that is gone becomes a remark, never another's bytes.

import CShims
import CordwoodStore
import CordwoodTestSupport
import Foundation
import XCTest

@testable import Cordwood
@testable import CordwoodCore

final class MessageLifeTests: MessageCase {
    private static let gone =
        "(this LogMessage was kept beyond its log call, and its text is gone)"
    private static let noMemory = "(there was no memory for this LogMessage)"

    /// One call, so that its frame has one address on the stack.
    @inline(never)
    private func call(_ message: () -> LogMessage) -> Int32 { log.info(message()) }

    @inline(never)
    private func callWithFields(_ message: () -> LogMessage) -> Int32 {
        log.info(message(), fields: ["a": 1])
    }

    /// Another message uses the frame, at the same address.
    func testKeptMessageIsNotAnothers() throws {
        let short = "s", long = String(repeating: "ß", count: 5_000)
        var (same, sameHeap) = (0, 0)
        for round in 0..<100 {
            let call = round % 2 == 0 ? self.call : callWithFields
            var kept: LogMessage = "x"
            let first = call {
                kept = "\(round) \(2) \(3) \(short) \(long.prefix(40)) end"
                return kept
            }
            let second = call {
                let other: LogMessage = "other \(short)"
                same += cwi_frame_slot().pointee == kept.frame.base ? 1 : 0
                _ = other
                return kept
            }
            expected += ["\(round) 2 3 s \(long.prefix(40)) end", Self.gone]
            // Also with blocks on the heap, where the allocator returns the same one again.
            let third = call {
                kept = "\(round) \(long) end"
                return kept
            }
            let fourth = call {
                let other: LogMessage = "\(true) \(long) \(short)"
                sameHeap += other.frame.base == kept.frame.base ? 1 : 0
                return kept
            }
            expected += ["\(round) \(long) end", Self.gone]
            XCTAssertEqual(
                [first, second, third, fourth], [0, Status.argument, 0, Status.argument])
        }
        XCTAssertGreaterThan(same, 0, "not tried")
        XCTAssertGreaterThan(sameHeap, 0, "not tried")
        try check()
    }

    /// Made and logged while another call collects its message.
    func testMessagesLoggedInsideACall() throws {
        let long = String(repeating: "l", count: 3_000)
        func text(_ number: Int) -> String {
            let inner: LogMessage = "inner \(number)"
            XCTAssertEqual(log.info(inner), 0)
            return "text \(number)"
        }
        func message(_ number: Int) -> LogMessage {
            let inner: LogMessage = "inner \(number)"
            XCTAssertEqual(log.info(inner), 0)
            XCTAssertEqual(log.info(inner, fields: ["a": 1]), 0)
            return "outer \(number)"
        }
        func longMessage() -> LogMessage {
            let inner: LogMessage = "inner \(long)"
            XCTAssertEqual(log.info(inner), 0)
            return "outer \(long) \(1)"
        }
        func deep() -> LogMessage {
            let inner: LogMessage = "deep \(1) \("text")"
            func middle() -> LogMessage {
                XCTAssertEqual(log.info(inner), 0)
                return "middle \(2)"
            }
            XCTAssertEqual(log.info(middle()), 0)
            return "outer"
        }
        log.info(text(1))
        log.info(text(2), fields: ["a": 1])
        log.log(.info, text(3), fields: ["a": .int(1)])
        log.info(message(4))
        log.info(message(5), fields: ["a": 1])
        log.info(longMessage())
        log.info(deep())
        expected = [
            "inner 1", "text 1", "inner 2", "text 2", "inner 3", "text 3",
            "inner 4", "inner 4", "outer 4", "inner 5", "inner 5", "outer 5",
            "inner \(long)", "outer \(long) 1", "deep 1 text", "middle 2", "outer",
        ]
        try check()
    }

    /// Each kind is found again without the lock: the table gets every one, and each once.
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

    /// The heap memory of a thread's messages goes with the thread.
    func testThreadsThatEndLeaveNothing() throws {
        try full()
        func resident() throws -> Int {
            let text = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8)
            return Int(text.split(separator: " ")[1])! * 4_096
        }
        func run(_ threads: Int) {
            for _ in 0..<threads {
                var thread = pthread_t()
                let body: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? = {
                    _ in
                    let text = String(repeating: "k", count: 900_000)
                    for _ in 0..<3 {
                        let kept: LogMessage = "kept \(text)"
                        _ = kept
                    }
                    return nil
                }
                XCTAssertEqual(pthread_create(&thread, nil, body, nil), 0)
                pthread_join(thread, nil)
            }
        }
        run(10)
        let before = try resident()
        run(100)
        // 270 MB if they stayed.
        XCTAssertLessThan(try resident() - before, 64 << 20)
    }

    /// Longer than 32 bits can count, after as many arguments as a record can have.
    func testRestOfFiveGibibytes() throws {
        let bytes = 5 << 30
        let memory = mmap(
            nil, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)!
        defer { munmap(memory, bytes) }
        try XCTSkipIf(memory == MAP_FAILED, "no room for it in this address space")
        let text = UnsafeRawBufferPointer(start: memory, count: bytes), i = 7
        XCTAssertEqual(
            log.info(
                """
                \(i)\(i)\(i)\(i)\(i)\(i)\(i)\(i)\(i)\(i)\(i)\(i)\(i)\(i)\(i)\(i)\(i)\(i)\(i)\(i)\
                \(i)\(i)\(i)\(i)\(i)\(i)\(i)\(i)\(i)\(i)\(i)<\(utf8: text)>
                """), 0)
        let record = try XCTUnwrap(try records().last)
        XCTAssertTrue(record.flags.contains(.truncated))
        // As much as one argument can have; what follows it is cut off.
        XCTAssertEqual(record.messageBytes.count, 31 + 1 + (1 << 20))
        XCTAssertTrue(record.message.hasPrefix(String(repeating: "7", count: 31) + "<\0\0"))
    }

    /// A thread's first message outside a log call, and a frame that cannot grow.
    func testNoMemoryIsARemark() throws {
        let text = String(repeating: "t", count: 2_000)
        let log = self.log!
        let done = XCTestExpectation(description: "thread")
        let thread = Thread {
            defer { done.fulfill() }
            var serial: UInt64 = 0
            let base = MessageKeep.take(&serial, keepBytes: .max / 2)
            XCTAssertNil(cwi_keep_slot().pointee)
            let end = base + Int(CWI_SPARE_BYTES)
            var message: LogMessage = "x"
            var interpolation = LogMessage.StringInterpolation(
                literalCapacity: 0, interpolationCount: 0)
            interpolation.frame = MessageFrame(base)
            interpolation.serial = serial
            for index in 0..<100 {
                interpolation.appendLiteral("literal")
                interpolation.appendInterpolation(index)
                interpolation.appendInterpolation(text)
                interpolation.appendInterpolation(nil as Int?)
                XCTAssertGreaterThanOrEqual(interpolation.frame.at, base)
                XCTAssertLessThanOrEqual(interpolation.frame.at, interpolation.frame.low)
                XCTAssertLessThanOrEqual(interpolation.frame.low, end)
            }
            message = LogMessage(stringInterpolation: interpolation)
            XCTAssertEqual(log.info(message), Status.memory)
        }
        thread.start()
        wait(for: [done], timeout: 60)
        expected.append(Self.noMemory)

        func interrupted(_ count: Int, _ first: String) -> LogMessage {
            var interpolation = LogMessage.StringInterpolation(
                literalCapacity: 0, interpolationCount: 0)
            interpolation.appendInterpolation(first)
            interpolation.frame = interpolation.frame.grown(more: 1 << 60)
            for index in 0..<count {
                interpolation.appendInterpolation(index)
                interpolation.appendInterpolation(text)
            }
            return LogMessage(stringInterpolation: interpolation)
        }
        for first in ["on the stack", text] {
            XCTAssertEqual(log.info(interrupted(3, first)), Status.memory)
            XCTAssertEqual(log.info(interrupted(40, first), fields: ["a": 1]), Status.memory)
            let kept = interrupted(40, first)
            XCTAssertEqual(log.info(kept), Status.argument)
            expected += [Self.noMemory, Self.noMemory, Self.gone]
        }
        log.info("after \(1)")
        expected.append("after 1")
        try check()
    }
}
