// B-NET-2: errors of OData services and SAP Gateway in every form they come in, and other bodies,
// which give none. The bodies here follow the services' documentation.

import Foundation
import XCTest

@testable import CordwoodFormats

final class ODataTests: XCTestCase {
    private func read(_ text: String, language: String = "") -> ODataError? {
        ODataError(body: Array(text.utf8), contentLanguage: language)
    }

    /// The CPU time of this thread.
    private func threadCPUNs() -> UInt64 {
        var now = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now)
        return UInt64(now.tv_sec) * 1_000_000_000 + UInt64(now.tv_nsec)
    }

    private func detail(
        _ code: String, _ message: String, _ property: String, _ severity: String
    ) -> ODataError.Detail {
        var detail = ODataError.Detail()
        detail.code = code
        detail.message = message
        detail.property = property
        detail.severity = severity
        return detail
    }

    func testB_NET_2_version2() throws {
        let error = try XCTUnwrap(
            read(
                """
                {"error": {"code": "SY/530", "message": {"lang": "de", "value": "Kein Objekt «7»"},
                 "innererror": {"application": {"component_id": "X"},
                  "transactionid": "4FDF3748112322F4E10000000A420C41",
                  "timestamp": "20261122082515.9921880",
                  "errordetails": [
                   {"code": "ZX/001", "message": "falsch", "propertyref": "Team/Id",
                    "severity": "error", "target": "ignored"},
                   {"code": "ZX/002", "message": "vielleicht", "target": "Team/Name",
                    "severity": "warning"}, 7]}}}
                """))
        XCTAssertEqual(error.code, "SY/530")
        XCTAssertEqual(error.message, "Kein Objekt «7»")
        XCTAssertEqual(error.language, "de")
        XCTAssertEqual(error.transactionID, "4FDF3748112322F4E10000000A420C41")
        XCTAssertEqual(
            error.details,
            [
                detail("ZX/001", "falsch", "Team/Id", "error"),
                detail("ZX/002", "vielleicht", "Team/Name", "warning"),
            ])
    }

    /// A code that is a number, details inside an object, the name that version 3 uses.
    func testB_NET_2_departures() throws {
        let number = read(#"{"error": {"code": -5002, "message": {"value": "no"}}}"#)
        XCTAssertEqual(number?.code, "-5002")
        let inside = read(
            #"{"odata.error": {"code": "", "message": {"value": "m"}, "innererror":"#
                + #" {"transactionid": "T", "errordetails": {"errordetail": {"code": "c"}}}}}"#)
        XCTAssertEqual(inside?.transactionID, "T")
        XCTAssertEqual(inside?.details, [detail("c", "", "", "")])
        let list = read(
            #"{"error": {"code": "a", "innererror": {"errordetails": {"errordetail":"#
                + #" [{"code": "c"}, {"code": "d"}]}}}}"#)
        XCTAssertEqual(list?.details.map(\.code), ["c", "d"])
    }

    func testB_NET_2_version4() throws {
        let error = try XCTUnwrap(
            read(
                """
                {"error": {"code": "M/011", "message": "Not clear",
                 "@SAP__common.ExceptionCategory": "Provider_Application_Error",
                 "details": [{"code": "M/012", "message": "At 3", "target": "Items(3)/Price",
                  "@SAP__common.numericSeverity": 4},
                  {"code": "M/013", "message": "By the way", "@Common.numericSeverity": 2}],
                 "innererror": {"ErrorDetails": {
                  "@SAP__common.Application": {"ComponentId": "BC"},
                  "@SAP__common.TransactionId": "F14022DB810C0090E00693874FE4DDEF"}}}}
                """, language: "en"))
        XCTAssertEqual(error.message, "Not clear")
        XCTAssertEqual(error.language, "en")
        XCTAssertEqual(error.transactionID, "F14022DB810C0090E00693874FE4DDEF")
        XCTAssertEqual(
            error.details,
            [
                detail("M/012", "At 3", "Items(3)/Price", "error"),
                detail("M/013", "By the way", "", "info"),
            ])
        let long = read(
            #"{"error": {"code": "x", "message": "m", "innererror":"#
                + #" {"@com.sap.vocabularies.Common.v1.TransactionId": "T9"}}}"#)
        XCTAssertEqual(long?.transactionID, "T9")
    }

    /// What SAP Gateway answers unless JSON is asked for.
    func testB_NET_2_xml() throws {
        let text = """
            \u{FEFF}<?xml version="1.0" encoding="utf-8"?>
            <m:error xmlns:m="http://schemas.microsoft.com/ado/2007/08/dataservices/metadata">
             <code>/IWBEP/CM_TEA/004</code>
             <message xml:lang="en">'TEAM &amp; CO' is not in the defined range.</message>
             <innererror><application><component_id/></application>
              <transactionid>4FE1D144B9AD22F2E10000000A420C41</transactionid>
              <errordetails><errordetail><code>/IWBEP/CM_TEA/002</code>
               <message>'TEAM' is not a valid ID.</message>
               <propertyref>Team/Team_Identifier</propertyref><severity>error</severity>
              </errordetail><errordetail><code>B</code><message>b</message><propertyref/>
               <severity>info</severity></errordetail></errordetails>
             </innererror></m:error>
            """
        let error = try XCTUnwrap(read(text))
        XCTAssertEqual(error.code, "/IWBEP/CM_TEA/004")
        XCTAssertEqual(error.message, "'TEAM & CO' is not in the defined range.")
        XCTAssertEqual(error.language, "en")
        XCTAssertEqual(error.transactionID, "4FE1D144B9AD22F2E10000000A420C41")
        XCTAssertEqual(
            error.details,
            [
                detail(
                    "/IWBEP/CM_TEA/002", "'TEAM' is not a valid ID.", "Team/Team_Identifier",
                    "error"),
                detail("B", "b", "", "info"),
            ])
        for end in 0..<(text.utf8.count - 1) {
            XCTAssertNil(
                ODataError(body: Array(text.utf8.prefix(end)), contentLanguage: ""), "cut at \(end)"
            )
        }
    }

    /// In XML as in JSON: propertyref counts; without one, target does.
    func testB_NET_2_whatOfTheRequestIsMeant() {
        let cases = [
            ("<propertyref>P</propertyref><target/>", "P"),
            ("<target/><propertyref>P</propertyref>", "P"),
            ("<propertyref>P</propertyref><target>T</target>", "P"),
            ("<target>T</target><propertyref>P</propertyref>", "P"),
            ("<propertyref/><target>T</target>", "T"), ("<target>T</target><propertyref/>", "T"),
        ]
        for (inside, property) in cases {
            let error = read(
                "<error><code>a</code><innererror><errordetails><errordetail>\(inside)"
                    + "</errordetail></errordetails></innererror></error>")
            XCTAssertEqual(error?.details.first?.property, property, inside)
        }
    }

    /// Reading ends where a document type begins: no entity is expanded.
    func testB_NET_2_entitiesCostNothing() {
        let names = Array("abcdefgh")
        var entities = "<!ENTITY a \"\(String(repeating: "x", count: 64))\">"
        for (name, next) in zip(names, names.dropFirst()) {
            entities += "<!ENTITY \(next) \"\(String(repeating: "&\(name);", count: 10))\">"
        }
        let bomb = Array("<!DOCTYPE error [\(entities)]><error><code>&h;</code></error>".utf8)
        let plain = Array(
            "<error><code>\(String(repeating: "x", count: bomb.count))</code></error>".utf8)
        func spent(_ body: [UInt8]) -> UInt64 {
            let begun = threadCPUNs()
            for _ in 0..<20 { _ = ODataError(body: body, contentLanguage: "") }
            return threadCPUNs() - begun
        }
        XCTAssertLessThan(bomb.count, 1_024)
        XCTAssertNil(ODataError(body: bomb, contentLanguage: ""))
        XCTAssertNotNil(ODataError(body: plain, contentLanguage: ""))
        // CPU time, not wall-clock time; an expansion would take a thousand times that.
        XCTAssertLessThan(spent(bomb), 20 * spent(plain) + 1_000_000)
    }

    func testB_NET_2_otherBodiesGiveNone() {
        let others = [
            "", "   ", "no", "<html><body>404</body></html>", "<error/>", "<error><x/></error>",
            "{}", "[]", "{\"error\": \"text\"}", "{\"error\": {}}", "{\"error\": []}",
            "{\"error\": {\"status\": 1}}", "{\"error\": {\"code\": {}, \"message\": []}}",
            "{\"error\": {\"code\": \"a\"}", "<error><code>a</code>", "\u{0}",
            "<!DOCTYPE error [<!ENTITY a \"x\">]><error><code>&a;</code></error>",
            "<!DOCTYPE error SYSTEM \"file:///etc/passwd\"><error><code>a</code></error>",
            "{\"error\": {\"code\": \"" + String(repeating: "x", count: 300_000) + "\"}}",
            String(repeating: "<error>", count: 5_000),
            String(repeating: "{\"error\":", count: 5_000),
        ]
        for text in others { XCTAssertNil(read(text), String(text.prefix(60))) }
        XCTAssertNil(ODataError(body: [0x7B, 0x22, 0xFF, 0xFE], contentLanguage: ""))
    }

    func testB_NET_2_bounds() throws {
        let long = String(repeating: "é", count: 5_000)
        let many = (0..<200).map { "{\"code\": \"\($0)\"}" }.joined(separator: ",")
        let error = try XCTUnwrap(
            read("{\"error\": {\"code\": \"a\", \"message\": \"\(long)\", \"details\": [\(many)]}}")
        )
        XCTAssertEqual(error.message.utf8.count, 4096)
        XCTAssertTrue(long.hasPrefix(error.message))
        XCTAssertEqual(error.details.count, ODataError.detailsMax)
        let deep = String(repeating: "<a>", count: 40) + String(repeating: "</a>", count: 40)
        XCTAssertNil(read("<error><code>a</code>\(deep)</error>"))
    }
}
