// Statuses from 100 to 599 at every kind, with every form of answer, and every point at which the
// server or we may die. No record leaves the disk that its server has not confirmed in its own
// protocol, and once the server is well again all of them are there. What counts as a confirmation
// is defined here again, from the protocols (docs/UPLOADS.md), independently of the product. Kind
// `transactions` gives up nothing either: Tests/Behaviour/test_txn_trouble.py.

import CordwoodStore
import CordwoodTestSupport
import Foundation
import XCTest

@testable import CordwoodCore
@testable import CordwoodShip

final class StatusMatrixTests: XCTestCase {
    private static let kinds = [
        "collector", "http", "sap", "loggly", "s3", "otlp", "loki", "elasticsearch", "splunk",
        "datadog", "clickhouse",
    ]
    private static let records = (0..<4).map { "record-\($0)-of-the-matrix" }

    private enum Form: CaseIterable {
        case nothing, object, page, pageWithoutType, error, confirmation
    }

    private enum Death: CaseIterable {
        case none, beforeTheRequest, afterTheRequest, withinTheAnswer
    }

    /// Gives one answer to everything, until it is healed.
    private final class MatrixServer: UploadTransport, @unchecked Sendable {
        let kind: String
        private let lock = NSLock()
        private var answer: (status: Int, form: Form, death: Death)?
        private(set) var confirmed: Set<String> = []
        var atRequest: () -> Void = {}

        init(_ kind: String, _ status: Int, _ form: Form, _ death: Death) {
            self.kind = kind
            answer = (status, form, death)
        }

        func heal() { lock.withLock { answer = nil } }

        func send(_ request: UploadRequest) throws -> UploadResponse {
            atRequest()
            let (status, form, death) = lock.withLock { answer } ?? (well, .confirmation, .none)
            if death == .beforeTheRequest {
                throw UploadTransportError("no route", isUnreachable: true)
            }
            let text = String(decoding: try request.content(), as: UTF8.self)
            let found = StatusMatrixTests.records.filter(text.contains)
            if death == .afterTheRequest { throw UploadTransportError("connection reset") }
            var response = UploadResponse(status: status)
            var isConfirmed = false
            switch form {
            case .nothing: isConfirmed = isEmptyEnough(status)
            case .object:
                response.headers = [("Content-Type", "application/json")]
                response.body = Array("{}".utf8)
                isConfirmed = isObjectEnough(status)
            case .page:
                response.headers = [("Content-Type", "text/html")]
                response.body = Array("<html>Please sign in</html>".utf8)
            case .pageWithoutType:
                response.body = Array("<?xml version='1.0'?>\n<!DOCTYPE html><html/>".utf8)
            case .error:
                response.body = Array(#"{"error":"quota exceeded"}"#.utf8)
                isConfirmed = kind == "loki" && status == 204
            case .confirmation:
                let id = request.headers.first { $0.name == "Idempotency-Key" }?.value ?? ""
                (response.headers, response.body) = confirmation(id)
                isConfirmed = isAnswered(status)
            }
            // With `If-None-Match: *`, this says that S3 has the key.
            if kind == "s3", status == 412 { isConfirmed = true }
            if death == .withinTheAnswer {
                throw UploadTransportError("cut off at byte \(response.body.count / 2)")
            }
            if isConfirmed { lock.withLock { confirmed.formUnion(found) } }
            return response
        }

        private var well: Int { kind == "loki" ? 204 : kind == "datadog" ? 202 : 200 }

        private func confirmation(_ id: String) -> ([(name: String, value: String)], [UInt8]) {
            let json = [(name: "Content-Type", value: "application/json")]
            func object(_ text: String) -> ([(name: String, value: String)], [UInt8]) {
                (json, Array(text.utf8))
            }
            switch kind {
            case "collector":
                return object(
                    "{\"id\":\(id),\"stored\":true,\"records\":\(StatusMatrixTests.records.count)}")
            case "loggly": return object(#"{"response" : "ok"}"#)
            case "s3": return ([("ETag", "\"0cc175b9c0f1b6a8\"")], [])
            case "elasticsearch": return object(#"{"took":1,"errors":false}"#)
            case "splunk": return object(#"{"text":"Success","code":0}"#)
            case "datadog": return object("{}")
            default: return ([], [])
            }
        }

        /// Whether the kind's confirmation counts with that status.
        private func isAnswered(_ status: Int) -> Bool {
            switch kind {
            case "datadog": status == 200 || status == 202
            case "clickhouse": status == 200
            case "loki": status == 200 || status == 204
            default: (200...299).contains(status)
            }
        }

        private func isEmptyEnough(_ status: Int) -> Bool {
            switch kind {
            case "http", "sap", "otlp": (200...299).contains(status)
            case "loki": status == 200 || status == 204
            case "datadog": status == 200 || status == 202
            case "clickhouse": status == 200
            default: false
            }
        }

        private func isObjectEnough(_ status: Int) -> Bool {
            switch kind {
            case "http", "sap", "otlp": (200...299).contains(status)
            case "loki": status == 204
            case "datadog": status == 200 || status == 202
            default: false
            }
        }
    }

    private func service(_ store: TestStore, _ server: MatrixServer) throws -> UploadService {
        let service = try store.service()
        _ = try service.addTarget(
            store.target("http://127.0.0.1:9/matrix") {
                $0.name = "t"
                $0.kind = server.kind
                $0.transport = server
                switch server.kind {
                case "collector": break
                case "http": $0.format = "ndjson"
                case "s3":
                    $0.format = "ndjson"
                    $0.encoding = "none"
                case "otlp":
                    $0.format = "otlp-json"
                    $0.encoding = "none"
                case "clickhouse":
                    $0.parameters = "table=logs"
                    $0.encoding = "none"
                default: $0.encoding = "none"
                }
            })
        return service
    }

    /// Runs passes until nothing waits, with a server that is well; retries what was refused.
    private func finish(
        _ store: TestStore, _ server: MatrixServer, confirmed before: Set<String>, _ what: String
    ) throws {
        server.heal()
        let service = try self.service(store, server)
        for _ in 0..<6 where store.hasArchive(1) {
            store.clock.advance(ms: 86_400_000)
            _ = try service.retryQuarantined(target: nil)
            _ = service.pass()
        }
        XCTAssertFalse(store.hasArchive(1), "\(what): \(store.queue)")
        XCTAssertEqual(
            server.confirmed.union(before), Set(StatusMatrixTests.records), "\(what): lost")
    }

    /// - Parameter dies: the next process also goes on from the store as it is when we are killed
    ///   within each request.
    private func check(
        _ kind: String, _ status: Int, _ form: Form, _ death: Death, dies: Bool = false
    ) throws {
        let what = "\(kind) \(status) \(form) \(death)"
        let store = try TestStore(inMemory: true)
        store.addArchive(1, content: StatusMatrixTests.records.joined(separator: "\n"))
        let server = MatrixServer(kind, status, form, death)
        var killed: [(store: TestStore, confirmed: Set<String>)] = []
        if dies {
            server.atRequest = {
                guard killed.count < 4, let copy = try? store.copy() else { return }
                killed.append((copy, server.confirmed))
            }
        }
        let service = try self.service(store, server)
        for _ in 0..<2 {
            let (end, result) = service.pass()
            let isThere = server.confirmed == Set(StatusMatrixTests.records)
            XCTAssertEqual(store.hasArchive(1), !isThere, "\(what): \(store.queue)")
            if !isThere {
                XCTAssertEqual(end, .upload, what)
                XCTAssertEqual(result.uploaded, 0, what)
                XCTAssertGreaterThan(result.failed, 0, what)
            }
            store.clock.advance(ms: 86_400_000)
        }
        server.atRequest = {}
        if store.hasArchive(1) { try finish(store, server, confirmed: [], what) }
        for (index, one) in killed.enumerated() {
            let next = MatrixServer(kind, status, form, death)
            try finish(
                one.store, next, confirmed: one.confirmed, "\(what), killed in request \(index)")
        }
    }

    /// Registered statuses and 2xx at every kind, in the core at one kind each. The others, of
    /// which a client knows only the class: in the core at none, else at one kind each, in a run of
    /// all at every kind.
    private static let known =
        Set(100...103).union(200...299).union(300...308).union(400...431).union([451])
        .union(500...511)

    func testEveryStatusAtEveryKind() throws {
        for (index, kind) in StatusMatrixTests.kinds.enumerated() {
            for status in 100...599 {
                let isKnown = StatusMatrixTests.known.contains(status)
                let isItsTurn = status % StatusMatrixTests.kinds.count == index
                guard sized(isKnown && isItsTurn, isKnown || isItsTurn, true) else { continue }
                let forms: [Form] =
                    (200...206).contains(status) || status == 412
                    ? Form.allCases : (200...299).contains(status) ? [.confirmation] : [.object]
                for form in forms { try check(kind, status, form, .none) }
            }
        }
    }

    func testEveryDeathAtEveryKind() throws {
        let statuses = [200, 204, 302, 400, 401, 404, 409, 413, 415, 422, 429, 500, 503]
        let kinds = StatusMatrixTests.kinds
        for kind in sized(["collector", "elasticsearch"], kinds, kinds) {
            for death in Death.allCases {
                for status in death == .none ? statuses : [200] {
                    for form in [Form.object, .confirmation] {
                        try check(kind, status, form, death, dies: true)
                    }
                }
            }
        }
    }
}
