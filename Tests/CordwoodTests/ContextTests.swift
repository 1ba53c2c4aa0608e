// Fields and trace ids follow the task: into child tasks, across suspension points and from thread
// to thread, and nowhere else.

import Cordwood
import CordwoodCore
import CordwoodEngine
import CordwoodStore
import CordwoodTestSupport
import Foundation
import XCTest

final class ContextTests: MessageCase {
    func testSynchronous() throws {
        let ids = try XCTUnwrap(
            TraceIDs(traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"))
        log.info("before")
        Context.with(["request": 7, "user": "anna"]) {
            log.info("in \(1)")
            Context.with(["request": 8]) {
                Context.withTrace(ids) { log.info("inner", fields: ["user": "own", "a": 1]) }
            }
            log.info("out")
        }
        log.info("after")
        XCTAssertThrowsError(
            try Context.with(["a": 1]) { () throws(CordwoodError) in
                throw CordwoodError(Status.io, "x")
            })
        for _ in 0..<2 {
            let found = try records()
            XCTAssertEqual(found.map(\.message), ["before", "in 1", "inner", "out", "after"])
            XCTAssertTrue(found[0].fields.isEmpty)
            XCTAssertEqual(found[1].fields.map(\.key), ["request", "user"])
            XCTAssertEqual(found[1].fields.map(\.value), [.int(7), .string("anna")])
            XCTAssertNil(found[1].traceID)
            XCTAssertEqual(found[2].fields.map(\.key), ["user", "a", "request"])
            XCTAssertEqual(found[2].fields.map(\.value), [.string("own"), .int(1), .int(8)])
            XCTAssertEqual(found[2].traceID, "4bf92f3577b34da6a3ce929d0e0e4736")
            XCTAssertEqual(found[2].spanID, "00f067aa0ba902b7")
            XCTAssertEqual(found[3].fields.map(\.value), [.int(7), .string("anna")])
            XCTAssertNil(found[3].traceID)
            XCTAssertTrue(found[4].fields.isEmpty)
            try engine.roll()
            try engine.archiveWait()
        }
    }

    func testTraceIDsAreChecked() {
        XCTAssertNil(TraceIDs(traceID: String(repeating: "0", count: 32)))
        XCTAssertNil(TraceIDs(traceID: "4bf9"))
        XCTAssertNil(TraceIDs(traceID: String(repeating: "g", count: 32)))
        XCTAssertNil(TraceIDs(traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736"))
        let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
        XCTAssertEqual(TraceIDs(traceparent: good)?.traceparent, good)
        XCTAssertNil(TraceIDs(traceparent: good.uppercased()))
        XCTAssertNil(TraceIDs(traceparent: "\(good.prefix(36))0000000000000000-01"))
        XCTAssertNil(TraceIDs(traceID: [UInt8](repeating: 1, count: 16), spanID: [1]))
        XCTAssertNotNil(TraceIDs(traceID: String(repeating: "A", count: 32)))
    }

    /// 10,000 tasks, each suspended several times and resumed on any free thread.
    func testTenThousandTasksKeepTheirOwn() async throws {
        try full()
        let log = self.log!
        await withTaskGroup(of: Void.self) { group in
            for task in 0..<10_000 {
                group.addTask {
                    let ids = TraceIDs(
                        traceID: [UInt8](repeating: UInt8(task % 255) + 1, count: 16))!
                    await Context.with(["task": task]) {
                        await Context.withTrace(ids) {
                            for step in 0..<3 {
                                log.info("task \(task) step \(step)")
                                await Task.yield()
                            }
                            async let child: Void = Context.with(["child": true]) {
                                await Task.yield()
                                log.info("task \(task) step \(3)")
                            }
                            await child
                        }
                    }
                    log.info("task \(task) step \(4)")
                }
            }
        }
        var steps: [Int: Int] = [:]
        var threads: Set<UInt32> = []
        for record in try records() {
            let words = record.message.split(separator: " ")
            let task = try XCTUnwrap(Int(words[1])), step = try XCTUnwrap(Int(words[3]))
            steps[task, default: 0] += 1
            threads.insert(record.threadID)
            let byte = String(UInt8(task % 255) + 1, radix: 16)
            let trace = String(repeating: byte.count == 1 ? "0" + byte : byte, count: 16)
            let fields = Dictionary(uniqueKeysWithValues: record.fields)
            if step == 4 {
                XCTAssertTrue(fields.isEmpty)
                XCTAssertNil(record.traceID)
            } else {
                XCTAssertEqual(fields["task"], .int(Int64(task)))
                XCTAssertEqual(fields["child"], step == 3 ? .bool(true) : nil)
                XCTAssertEqual(record.traceID, trace)
            }
        }
        XCTAssertEqual(steps.count, 10_000)
        XCTAssertTrue(steps.values.allSatisfy { $0 == 5 })
        XCTAssertGreaterThan(threads.count, 1)
    }

    func testASnapshotIsInForceOnAnotherThread() throws {
        let inside = Context.with(["shop": 7]) { Context.Snapshot() }
        let log = self.log!
        let thread = Thread {
            _ = inside.run { log.info("inside") }
            log.info("outside")
        }
        thread.start()
        let until = Date().addingTimeInterval(20)
        while !thread.isFinished, Date() < until { usleep(1_000) }
        let found = try records()
        XCTAssertEqual(found.map(\.message), ["inside", "outside"])
        XCTAssertEqual(found[0].fields.map(\.key), ["shop"])
        XCTAssertTrue(found[1].fields.isEmpty)
        Context.with(["shop": 8]) { Context.Snapshot().run { log.info("same") } }
        XCTAssertEqual(try records().last?.fields.map(\.value), [.int(8)])
    }

    func testConversations() async throws {
        XCTAssertNil(Context.conversation)
        Context.withConversation("a") { id in
            XCTAssertEqual(Context.conversation, "a")
            XCTAssertEqual(id, "a")
            log.info("in a")
        }
        await Context.withConversation { id in
            await Task.yield()
            XCTAssertEqual(id.count, 32)
            XCTAssertEqual(Context.conversation, id)
        }
        XCTAssertNil(Context.conversation)
        XCTAssertEqual(try records()[0].fields.map(\.key), ["http.conversation"])
    }

    /// What a client's headers put in force, and what is ignored.
    func testACallersHeaders() async throws {
        let uuid = "586AB00B-0A2C-4E61-9C53-3F4C59D1A0F7"
        let ids = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
        await Context.withCaller([
            ("Traceparent", ids), ("x-transaction-id", "TXN17-" + uuid),
            ("X-Conversation-Id", "talk:1"),
        ]) {
            XCTAssertEqual(Context.trace?.traceparent, ids)
            XCTAssertEqual(Context.transactionID, "TXN17-" + uuid)
            XCTAssertEqual(Context.conversation, "talk:1")
        }
        await Context.withCaller([("X-Transaction-Id", "TXN17-" + uuid)]) {
            let digits = uuid.lowercased().filter { $0 != "-" }
            XCTAssertEqual(Context.trace?.traceparent.contains("-\(digits)-"), true)
        }
        await Context.with(["shop": 7]) {
            await Context.withCaller([
                ("traceparent", "00-0-0-01"), ("X-Transaction-Id", "TXN17"),
                ("X-Conversation-Id", "eyJhbGciOiJIUzI1NiJ9.e30.x"),
            ]) {
                XCTAssertNil(Context.trace)
                XCTAssertNil(Context.transactionID)
                XCTAssertNil(Context.conversation)
                XCTAssertEqual(Context.fields.map(\.key), ["shop"])
            }
        }
        for said in ["", "a b", "a\n", String(repeating: "x", count: 129), "é"] {
            await Context.withCaller([("X-Conversation-Id", said)]) {
                XCTAssertNil(Context.conversation, said)
            }
        }
    }

    /// The documentation's examples work as written.
    func testReaderAndUploadFromTasks() async throws {
        log.warn("kept \(1)")
        log.info("passed over")
        for try await record in engine.reader(.follow).filter(level: .warn) {
            XCTAssertEqual(record.message, "kept 1")
            break
        }
        let url = "http://127.0.0.1:9/none"
        try engine.addTarget(.http(url))
        do {
            let result = try await engine.upload()
            XCTFail("\(result)")
        } catch let error as CordwoodError {
            XCTAssertEqual(error.status, Status.upload)
        }
    }
}
