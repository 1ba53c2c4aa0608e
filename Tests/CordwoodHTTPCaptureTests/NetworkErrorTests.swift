// B-NET for URLSession's requests: each outcome is a typed error, thrown by an `async` request and
// logged, and belongs to the exchange that was captured. Against http_peer.py.

import Cordwood
import CordwoodHTTPCapture
import CordwoodURLSession
import Foundation
import XCTest

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

private struct Unexpected: Error { let description: String }

final class NetworkErrorTests: CaptureCase {
    /// The error that a request threw, its record, and the exchange that the record names.
    private func failure(
        _ session: URLSession, _ request: URLRequest
    ) async throws -> (error: NetworkError, record: [String: String], exchange: [String: String]?) {
        let logger = engine.logger("net")
        do throws(NetworkError) {
            _ = try await session.checkedData(for: request, log: logger)
        } catch {
            var last: (String, [String: String]) = ("", [:])
            var options = ReaderOptions()
            options.logger = "net"
            for try await record in Reader(store, options: options) {
                let pairs = record.fields.map { ($0.key, CaptureCase.text($0.value)) }
                last = (record.message, Dictionary(pairs, uniquingKeysWith: { $1 }))
            }
            XCTAssertTrue(last.0.hasSuffix(": \(error)"), last.0)
            let id = last.1["http.id"]
            var exchange: [String: String]?
            if let id {
                try await eventually("the exchange is recorded") {
                    exchange = try await exchanges().first { $0["http.id"] == id }
                    return exchange != nil
                }
            }
            return (error, last.1, exchange)
        }
        throw Unexpected(description: "the request succeeded")
    }

    func testB_NET_3_thrown_and_logged_with_its_exchange() async throws {
        let session = HTTPCapture.session(engine, configuration: configuration())
        var request = URLRequest(url: url("/odata?token=hush"))
        request.httpMethod = "POST"
        request.httpBody = Data("{}".utf8)
        let (error, record, exchange) = try await failure(session, request)
        guard case .client(let refused) = error else { return XCTFail("\(error)") }
        XCTAssertEqual(refused.detail.httpStatus, 403)
        XCTAssertEqual(refused.detail.odata?.code, "SY/530")
        XCTAssertEqual(error.transactionID, "T0123456789")
        XCTAssertEqual(refused.url, base + "/odata")
        XCTAssertEqual(
            error.localizedDescription(language: "de"),
            "Der Server hat die Daten abgelehnt. HTTP 403: keine Berechtigung. Der Server meldet: "
                + "„No right“ (Code SY/530, Transaktion T0123456789).")
        XCTAssertEqual(record["transaction.id"], "T0123456789")
        XCTAssertEqual(record["http.request.method"], "POST")
        XCTAssertEqual(record["http.status"], "403")
        XCTAssertEqual(exchange?["odata.transaction_id"], "T0123456789")
        XCTAssertEqual(exchange?["http.id"], refused.exchangeID)
    }

    func testB_NET_1_no_answer() async throws {
        let session = HTTPCapture.session(engine, configuration: configuration(timeoutS: 1))
        let cases = [
            (URL(string: "http://127.0.0.1:1/x?token=hush")!, "connect"), (url("/hang"), "timeout"),
            (url("/close"), "response"),
        ]
        for (address, type) in cases {
            let (error, record, exchange) = try await failure(session, URLRequest(url: address))
            guard case .requestFailed(let failed) = error else { return XCTFail("\(error)") }
            XCTAssertEqual(failed.detail.httpStatus, 0)
            XCTAssertEqual(failed.method, "GET")
            XCTAssertFalse(failed.detail.cause.contains("hush"), failed.detail.cause)
            XCTAssertEqual(record["cause"], failed.detail.cause)
            XCTAssertEqual(exchange?["error.type"], type)
        }
    }

    func testB_NET_1_the_last_hop_of_a_redirection() async throws {
        let session = HTTPCapture.session(engine, configuration: configuration())
        let (error, _, exchange) = try await failure(
            session, URLRequest(url: url("/redirect?to=/odata")))
        XCTAssertEqual(error.failure.url, base + "/odata")
        XCTAssertEqual(exchange?["url.full"], base + "/odata")
        XCTAssertNotNil(exchange?["http.redirected_from"])
    }

    func testB_NET_3_awaited_and_cancelled() async throws {
        let session = URLSession(configuration: configuration())
        let (data, _) = try await session.checkedData(from: url("/json"), log: engine.logger("net"))
        XCTAssertGreaterThan(data.count, 10)
        let hang = url("/hang")
        let task = Task { () -> NetworkError? in
            do throws(NetworkError) {
                _ = try await session.checkedData(from: hang)
                return nil
            } catch { return error }
        }
        let begun = url("/begun?of=/hang")
        try await eventually("the request is there") {
            String(decoding: try await session.data(from: begun).0, as: UTF8.self) != "0"
        }
        task.cancel()
        let error = await task.value
        XCTAssertEqual(error?.detail.kind, .requestFailed)
        XCTAssertEqual(error?.detail.cause, "cancelled")
    }

    func testB_NET_4_without_capture_there_is_no_exchange() async throws {
        let session = URLSession(configuration: configuration())
        let (error, record, exchange) = try await failure(session, URLRequest(url: url("/odata")))
        XCTAssertEqual(error.failure.exchangeID, "")
        XCTAssertNil(record["http.id"])
        XCTAssertNil(exchange)
    }

    /// A host with completion handlers: the note says which exchange it was.
    func testB_NET_4_a_completion_handler() async throws {
        let session = HTTPCapture.session(engine, configuration: configuration())
        let (note, request) = (ExchangeNote(), URLRequest(url: url("/odata")))
        let made: NetworkError? = await withCheckedContinuation { done in
            Context.with(exchangeNote: note) {
                session.dataTask(with: request) { data, response, error in
                    done.resume(
                        returning: NetworkError(
                            response: response, data: data, error: error, request: request,
                            exchangeID: note.id))
                }.resume()
            }
        }
        let id = try XCTUnwrap(made?.failure.exchangeID)
        XCTAssertEqual(id.count, 16)
        try await eventually("the exchange is recorded") {
            try await exchanges().contains { $0["http.id"] == id }
        }
        XCTAssertEqual(NetworkError(response: nil, data: nil, error: made), made)
    }

    func testB_NET_1_no_error() async throws {
        let session = URLSession(configuration: configuration())
        let (data, response) = try await session.data(from: url("/json"))
        XCTAssertNil(NetworkError(response: response, data: data, error: nil))
        let file = URLResponse(
            url: URL(fileURLWithPath: "/x"), mimeType: nil, expectedContentLength: 0,
            textEncodingName: nil)
        XCTAssertNil(NetworkError(response: file, data: nil, error: nil))
        let nothing = NetworkError(response: nil, data: nil, error: nil)
        XCTAssertEqual(nothing?.detail.kind, .requestFailed)
    }
}
