// Transactions for Swift hosts: handles and closures, names by enums, tasks that keep their ids,
// the list and what was deleted from it; and the table of names against a plain model.

import CordwoodEngine
import CordwoodStore
import CordwoodTestSupport
import Foundation
import XCTest

@testable import Cordwood
@testable import CordwoodCore
@testable import CordwoodTrace

private enum Shop: Int32, TransactionUseCase {
    case checkout = 17
    case signIn = -2
    enum Event: Int32, CaseIterable {
        case begun = 0
        case paid
    }
}

private enum Bare: Int32, TransactionUseCase { case only = 5 }

final class TransactionAPITests: MessageCase {
    private func transactionRecords() throws -> [Record] {
        var options = ReaderOptions()
        options.kinds = 1 << 3
        let reader = try StoreReader(path: store, options: options)
        var found: [Record] = []
        while let record = reader.nextRecord() { found.append(record) }
        return found
    }

    private func value(_ record: Record, _ key: String) -> Field? {
        record.fields.first { $0.key == key }?.value
    }

    func testHandle_B_TXN_1() throws {
        try engine.setLevel(.off)
        let one = try engine.transaction(Shop.checkout)
        XCTAssertEqual(one.event(Shop.Event.paid), Status.ok)
        XCTAssertEqual(one.event(1, error: "42", description: "Baad!"), Status.ok)
        XCTAssertEqual(one.event(7), Status.ok)
        XCTAssertEqual(one.event(7, description: "no code"), Status.argument)
        XCTAssertEqual(one.end(), Status.ok)
        XCTAssertEqual(one.end(), Status.ok)
        XCTAssertEqual(one.event(8), Status.closed)
        for place in ["live", "archive"] {
            let found = try transactionRecords()
            XCTAssertEqual(
                found.map(\.message),
                [
                    "\(one.id) begin", "\(one.id) paid", "\(one.id) paid: 42 Baad!",
                    "\(one.id) event 7", "\(one.id) end",
                ], place)
            XCTAssertEqual(found.map(\.level), [9, 9, 17, 9, 9], place)
            for record in found {
                XCTAssertEqual(record.traceID, String(one.traceparent.dropFirst(3).prefix(32)))
                XCTAssertEqual(record.spanID, String(one.traceparent.dropFirst(36).prefix(16)))
                XCTAssertEqual(record.kind, 3)
                XCTAssertEqual(value(record, "txn.usecase"), .int(17))
                XCTAssertEqual(value(record, "txn.usecase.name"), .string("checkout"))
            }
            XCTAssertEqual(value(found[1], "txn.event.name"), .string("paid"))
            XCTAssertNil(value(found[3], "txn.event.name"))
            guard case .uint(let ns) = value(found[4], "txn.duration_ns") else {
                return XCTFail("no duration")
            }
            XCTAssertGreaterThan(ns, 0)
            try engine.roll()
            try engine.archiveWait()
        }
    }

    /// A transaction without a holder has ended; after close nothing is written.
    func testEndsWithItsLastHolder() throws {
        var ids: [String] = []
        do { ids.append(try engine.transaction(1).id) }
        XCTAssertEqual(try engine.transactions().map(\.isEnded), [true])
        let kept = try engine.transaction(2)
        try engine.close()
        XCTAssertEqual(kept.event(1), Status.closed)
        XCTAssertEqual(kept.attachThread(), Status.closed)
        XCTAssertEqual(kept.end(), Status.closed)
        XCTAssertThrowsError(try engine.transaction(1))
    }

    func testClosures() async throws {
        let engine = self.engine!, log = self.log!
        var id = ""
        let answer = try engine.transaction(Shop.signIn) { one in
            id = one.id
            log.info("inside", fields: ["a": 1])
            one.event(Shop.Event.begun)
            return 42
        }
        XCTAssertEqual(answer, 42)
        log.info("outside")
        let other = try await engine.transaction(Bare.only) { one in
            await withTaskGroup(of: Void.self) { group in
                for number in 0..<50 {
                    group.addTask {
                        await Task.yield()
                        log.info("child \(number)")
                    }
                }
            }
            one.event(3, error: "1")
            return one.id
        }
        struct Failed: Error {}
        XCTAssertThrowsError(try engine.transaction(9) { _ in throw Failed() })
        let found = try records()
        XCTAssertEqual(found[0].fields.map(\.key), ["a", "txn.id"])
        XCTAssertEqual(value(found[0], "txn.id"), .string(id))
        XCTAssertTrue(found[1].fields.isEmpty)
        XCTAssertNil(found[1].traceID)
        XCTAssertEqual(found.count, 52)
        for record in found.dropFirst(2) {
            XCTAssertEqual(value(record, "txn.id"), .string(other))
            XCTAssertEqual(
                record.traceID, other.dropFirst(5).filter { $0 != "-" }.lowercased())
        }
        let list = try engine.transactions()
        XCTAssertEqual(list.map(\.usecase), [-2, 5, 9])
        XCTAssertEqual(list.map(\.usecaseName), ["signIn", "only", ""])
        XCTAssertEqual(list.map(\.events), [1, 1, 0])
        XCTAssertEqual(list.map(\.errors), [0, 1, 0])
        XCTAssertEqual(list.map(\.isEnded), [true, true, true])
    }

    // ── Threads ──

    /// Each detach brings back what was in force before, however deep.
    func testAttach() throws {
        func set(_ key: String, _ value: String?) {
            var key = key
            key.withUTF8 { key in
                guard var value else {
                    XCTAssertEqual(ThreadContext.set(key: key, value: nil), Status.ok)
                    return
                }
                value.withUTF8 { value in
                    XCTAssertEqual(ThreadContext.set(key: key, value: value), Status.ok)
                }
            }
        }
        defer {
            set("txn.id", nil)
            set("user", nil)
            _ = ThreadContext.setTrace(nil)
        }
        set("txn.id", "the host's own")
        let trace = (1...25).map { UInt8($0) }
        trace.withUnsafeBytes { _ = ThreadContext.setTrace($0.baseAddress) }
        let all = try (0..<17).map { try engine.transaction(Int32($0)) }
        for (number, one) in all.enumerated() {
            XCTAssertEqual(one.attachThread(), number < 16 ? Status.ok : Status.limit)
            log.info("depth \(number)")
        }
        set("user", "anna")
        XCTAssertEqual(all[3].detachThread(), Status.argument, "not the last one")
        for number in (0..<16).reversed() {
            log.info("depth \(number)")
            XCTAssertEqual(all[number].detachThread(), Status.ok)
        }
        XCTAssertEqual(all[0].detachThread(), Status.argument)
        log.info("own")
        let found = try records()
        XCTAssertEqual(found.count, 34)
        for record in found.dropLast() {
            let depth = min(15, Int(record.message.split(separator: " ")[1]) ?? 0)
            XCTAssertEqual(value(record, "txn.id"), .string(all[depth].id), record.message)
            XCTAssertEqual(record.spanID, String(all[depth].traceparent.dropFirst(36).prefix(16)))
        }
        let last = try XCTUnwrap(found.last)
        XCTAssertEqual(value(last, "txn.id"), .string("the host's own"))
        XCTAssertEqual(value(last, "user"), .string("anna"))
        XCTAssertEqual(last.traceID, "0102030405060708090a0b0c0d0e0f10")
    }

    /// A thread that ends with something attached leaks no memory, and no context that does not fit
    /// keeps another's.
    func testAttachAtItsLimits() throws {
        let one = try engine.transaction(1)
        let engine = self.engine!
        nonisolated(unsafe) var statuses: [Int32] = []
        let done = expectation(description: "thread")
        let thread = Thread {
            var key = "filling"
            var value = String(repeating: "x", count: 4_050)
            key.withUTF8 { key in
                value.withUTF8 { _ = ThreadContext.set(key: key, value: $0) }
            }
            statuses.append(one.attachThread())
            key.withUTF8 { _ = ThreadContext.set(key: $0, value: nil) }
            statuses.append(one.attachThread())
            engine.logger("message").info("attached")
            done.fulfill()
        }
        thread.start()
        wait(for: [done], timeout: 30)
        XCTAssertEqual(statuses, [Status.limit, Status.ok])
        XCTAssertEqual(value(try records()[0], "txn.id"), .string(one.id))
    }

    // ── Names ──

    func testNames() throws {
        try engine.setTransactionName(usecase: 1, "first")
        try engine.setTransactionName(usecase: 1, "second")
        try engine.setTransactionName(usecase: 1, event: 0, "event")
        XCTAssertThrowsError(
            try engine.setTransactionName(usecase: 1, String(repeating: "n", count: 256)))
        try engine.setTransactionName(usecase: 2, String(repeating: "n", count: 255))
        let one = try engine.transaction(1)
        one.event(0)
        try engine.setTransactionName(usecase: 1, event: 0, nil)
        one.event(0)
        _ = try engine.transaction(2)
        let found = try transactionRecords()
        XCTAssertEqual(value(found[0], "txn.usecase.name"), .string("second"))
        XCTAssertEqual(found[1].message, "\(one.id) event")
        XCTAssertEqual(found[2].message, "\(one.id) event 0")
        XCTAssertEqual(
            value(found[3], "txn.usecase.name"), .string(String(repeating: "n", count: 255)))
    }

    func testTableAgainstModel() {
        for seed in UInt64(1)...3 { checkTable(seed: seed) }
    }

    private func checkTable(seed: UInt64) {
        let table = TransactionTable()
        var model: [[Int32]: [UInt8]] = [:]
        var random = SplitMix(seed)
        var refused = 0
        for round in 0..<9_000 {
            let key = [Int32(round % 97) - 40, Int32(truncatingIfNeeded: random.next() % 61)]
            let name = (0..<Int(random.next() % 256)).map { _ in
                UInt8(truncatingIfNeeded: random.next())
            }
            if table.set(key[0], key[1], name) {
                if !name.isEmpty || model[key] != nil { model[key] = name }
            } else {
                refused += 1
                XCTAssertTrue(model[key]?.isEmpty ?? true, "seed \(seed) round \(round)")
                let named = model.values.count { !$0.isEmpty }
                XCTAssertEqual(named, TransactionTable.namesMax, "seed \(seed) round \(round)")
            }
        }
        XCTAssertGreaterThan(refused, 0, "seed \(seed)")
        for a in Int32(-40)..<57 {
            for b in Int32(0)..<61 {
                var room = [UInt8](repeating: 0, count: TransactionTable.nameRoom)
                let count = room.withUnsafeMutableBytes { table.name(a, b, into: $0.baseAddress!) }
                XCTAssertEqual(
                    Array(room[..<count]), model[[a, b]] ?? [], "seed \(seed): \(a) \(b)")
            }
        }
    }

    /// A name is always one of those that were set, never half of each.
    func testNamesAreWhole() {
        let table = TransactionTable()
        let names = (0..<2).map { [UInt8](repeating: UInt8(65 + $0), count: 200 + $0 * 55) }
        _ = table.set(1, 1, names[0])
        let stop = DispatchTime.now() + .milliseconds(300)
        let group = DispatchGroup()
        DispatchQueue.global().async(group: group) {
            var turn = 0
            while DispatchTime.now() < stop {
                turn += 1
                _ = table.set(1, 1, names[turn % 2])
            }
        }
        var wrong = 0
        var room = [UInt8](repeating: 0, count: TransactionTable.nameRoom)
        while DispatchTime.now() < stop {
            let count = room.withUnsafeMutableBytes { table.name(1, 1, into: $0.baseAddress!) }
            let seen = Array(room[..<count])
            if count > 0 && !names.contains(seen) { wrong += 1 }
        }
        group.wait()
        XCTAssertEqual(wrong, 0)
    }

    // ── The store's ──

    func testDelete_B_TXN_2() throws {
        let one = try engine.transaction(1)
        let two = try engine.transaction(2)
        for _ in 0..<20 {
            one.event(1)
            try engine.deleteTransactions(one.id)
            one.event(2)
            let found = try engine.transactions().first { $0.id == one.id }
            XCTAssertEqual(found?.events, 1, "what came behind it, and nothing before")
        }
        try engine.deleteTransactions()
        two.event(1)
        XCTAssertEqual(try engine.transactions().map(\.id), [two.id])
        XCTAssertThrowsError(try engine.deleteTransactions("TXN1"))
        let joined = try engine.joinTransaction(one.id)
        XCTAssertEqual(joined.id, one.id)
        XCTAssertNotEqual(joined.traceparent, one.traceparent)
        XCTAssertThrowsError(try engine.joinTransaction("TXN01-" + one.id.dropFirst(5)))
    }
}
