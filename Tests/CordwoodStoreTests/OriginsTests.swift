// What a query decides about a process before reading its records: only what is certain.

import XCTest

@testable import CordwoodStore

final class OriginsTests: XCTestCase {
    private func mayMatch(_ query: String, host: String?, service: String? = nil) throws -> Bool {
        var plan = QueryPlan()
        plan.require(try Query(query, nowNs: 0).node)
        return plan.mayMatch(OriginTest.Names(host: host, service: service))
    }

    func testOneDevice() throws {
        let table: [(query: String, host: String, wanted: Bool)] = [
            ("host.name:dev-7", "dev-7", true), ("host.name:dev-7", "dev-70", false),
            ("host.name=dev-7", "dev-8", false), ("host.name!=dev-7", "dev-7", false),
            ("host.name!=dev-7", "dev-8", true), ("-host.name=dev-7", "dev-7", false),
            ("-host.name=dev-7", "dev-8", true), ("host.name=*", "dev-8", true),
            ("host.name~/dev-[78]/", "dev-8", true), ("host.name~/dev-[78]/", "dev-9", false),
            ("host.name=a OR host.name=b", "b", true), ("host.name=a OR host.name=b", "c", false),
            ("host.name=a OR needle", "c", true), ("host.name=a needle", "c", false),
            ("-(host.name=a needle)", "a", true), ("order=7", "c", true),
            // Another name has another meaning for captured exchanges.
            ("host=dev-7", "dev-8", true), ("fields.host.name=dev-7", "dev-8", true),
        ]
        for (query, host, wanted) in table {
            XCTAssertEqual(try mayMatch(query, host: host), wanted, "\(query) of \(host)")
        }
        XCTAssertFalse(try mayMatch("service.name=a host.name=h", host: "h", service: "b"))
    }

    /// Records have fields of that name, which come first: the process decides nothing.
    func testFieldsComeFirst() throws {
        for query in ["host.name=dev-7", "host.name!=dev-7", "-host.name=dev-7", "host.name=*"] {
            XCTAssertTrue(try mayMatch(query, host: nil), query)
        }
    }

    func testPicturesLoseNoRecord() {
        for (first, last, records) in [(0, 99, 1_000), (5, 5, 7), (0, 0, 3), (90, 200, 11)] {
            var bins = [UInt64](repeating: 0, count: 8)
            TimeBins.spread(
                UInt64(records), from: UInt64(first), to: UInt64(last), over: 0...99, into: &bins)
            XCTAssertEqual(bins.reduce(0, +), UInt64(records))
        }
    }
}
