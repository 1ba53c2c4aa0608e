// Arrays and dictionaries as fields: stored through every one of Swift's own calls, read live and
// from the archive, and queried by path.

import Cordwood
import CordwoodCore
import CordwoodStore
import XCTest

final class StructuredValueTests: MessageCase {
    private func found(_ query: String) throws -> [String] {
        var options = ReaderOptions()
        options.query = try Query(query)
        let reader = try StoreReader(paths: [store], options: options)
        var found: [String] = []
        while let record = reader.nextRecord() { found.append(record.message) }
        return found
    }

    func testArraysAndDictionaries() throws {
        let order: FieldInput = [
            "id": 7, "items": [["sku": "x", "n": 2.5], ["sku": "grün"]], "none": .null,
            "ok": true, "id": 8, "infinite": .double(.infinity), "\"": .json("{broken"),
        ]
        let names = ["b": [1, 2], "a": []]
        log.info("first", fields: ["order": order, "list": [1, 2, 3], "names": names])
        Context.with(["tags": ["a", "b"]]) { log.info("in \(1)", fields: ["n": 1]) }
        for _ in 0..<2 {
            let records = try self.records()
            XCTAssertEqual(records.map(\.message), ["first", "in 1"])
            XCTAssertEqual(
                records[0].fields.map(\.value),
                [
                    .json(
                        #"{"id":7,"items":[{"sku":"x","n":2.5},{"sku":"grün"}],"none":null,"#
                            + #""ok":true,"infinite":"Infinity","\"":"{broken"}"#),
                    .json("[1,2,3]"), .json(#"{"a":[],"b":[1,2]}"#),
                ])
            XCTAssertEqual(records[1].fields.map(\.value), [.int(1), .json(#"["a","b"]"#)])
            for (query, expected) in [
                ("order.items.0.sku==x", ["first"]), ("order.items.n>=2.5", ["first"]),
                ("order.id=7 names.b.1=2", ["first"]), ("order.id=8", []),
                ("tags.1:b OR list.0=1", ["first", "in 1"]), ("order.none=*", ["first"]),
                ("fields.order.ok=true", ["first"]), ("order.items.0.sku.x=*", []),
                ("order.it=*", []), (#"list="[1,2,3]""#, ["first"]),
                ("-order.ok=true logger:message", ["in 1"]), (#""order={""#, ["first"]),
            ] {
                XCTAssertEqual(try found(query), expected, query)
            }
            try engine.roll()
            try engine.archiveWait()
        }
    }

    func testAFieldsOwnNameComesFirst() throws {
        log.info("both", fields: ["a": ["b": 1] as FieldInput, "a.b": 2])
        log.info("inside", fields: ["a": ["b": 2] as FieldInput])
        log.info("outside", fields: ["a.b": 1])
        XCTAssertEqual(try found("a.b=1"), ["outside"])
        XCTAssertEqual(try found("a.b=2"), ["both", "inside"])
        XCTAssertEqual(try found("a.b!=2"), ["outside"])
    }

    func testTextThatIsNotJSON() throws {
        log.info(
            "x",
            fields: [
                "all": ["a": .json("[1"), "b": .json(" [1] ")] as FieldInput,
                "own": FieldInput.json("[1"),
            ])
        let values = try XCTUnwrap(try records().first).fields.map(\.value)
        XCTAssertEqual(values, [.json(#"{"a":"[1","b": [1] }"#), .string("[1")])
    }
}
