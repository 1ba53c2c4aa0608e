// The last records of a read outlive what they were read from: a kept record owns the bytes of all
// its views. They may come in any order, with their places.

import CordwoodTestSupport
import XCTest

@testable import CordwoodCore
@testable import CordwoodStore

final class KeptRecordsTests: XCTestCase {
    private let views: [WritableKeyPath<RecordRef, UnsafeRawBufferPointer>] = [
        \.logger, \.message, \.file, \.function, \.sections, \.context, \.format, \.argumentTypes,
        \.arguments, \.trace,
    ]

    func testAKeptRecordBorrowsNothing() {
        let source = UnsafeMutableRawBufferPointer.allocate(byteCount: 100, alignment: 1)
        defer { source.deallocate() }
        for index in source.indices { source[index] = UInt8(index) }
        var record = RecordRef()
        for (index, view) in views.enumerated() {
            record[keyPath: view] = UnsafeRawBufferPointer(
                rebasing: source[(10 * index)...(11 * index)])
        }
        let all = Mirror(reflecting: record).children.filter { $0.value is UnsafeRawBufferPointer }
        XCTAssertEqual(all.count, views.count, "a view that this test does not know")
        var kept = KeptRecords(limit: 1)
        kept.add(record)
        for index in source.indices { source[index] = 0xFF }
        var found = RecordRef()
        XCTAssertTrue(kept.take(&found))
        for (index, view) in views.enumerated() {
            XCTAssertEqual(
                Array(found[keyPath: view]), Array(UInt8(10 * index)...UInt8(11 * index)),
                "\(view)")
        }
        XCTAssertFalse(kept.take(&found))
    }

    /// Whatever the order of the sources, the greatest places are kept and come in order.
    func testRecordsWithPlacesComeAsASortGivesThem() {
        for seed in SplitMix.seeds(200) {
            var random = SplitMix(seed)
            var all: [(place: MergePlace, text: String)] = []
            for index in 0..<random.below(60) {
                all.append(
                    (
                        MergePlace(
                            time: UInt64(random.below(8)), order: UInt64(random.below(3))),
                        "\(index)"
                    ))
            }
            let limit = 1 + random.below(20)
            var kept = KeptRecords(limit: limit)
            for (place, text) in all {
                var text = text
                text.withUTF8 {
                    var record = RecordRef()
                    record.message = UnsafeRawBufferPointer($0)
                    kept.add(record, at: place)
                }
            }
            kept.settle()
            var found: [String] = []
            var record = RecordRef()
            while kept.take(&record) { found.append(Bytes.string(record.message)) }
            let sorted = all.indices.sorted {
                all[$0].place == all[$1].place ? $0 < $1 : all[$0].place < all[$1].place
            }
            XCTAssertEqual(
                found, sorted.suffix(limit).map { all[$0].text }, "seed \(seed), of \(limit)")
        }
    }

    /// The last ones of large records are kept, in order or with places, and at least one.
    func testTheirBytesAreBounded() {
        var cut = 0
        for seed in SplitMix.seeds(200) {
            var random = SplitMix(seed)
            let all = (0..<random.below(60)).map { index in
                (
                    place: MergePlace(time: UInt64(random.below(40)), order: 0),
                    size: 1 + random.below(300), number: UInt64(index)
                )
            }
            let limit = 1 + random.below(20)
            for hasPlaces in [false, true] {
                var kept = KeptRecords(limit: limit, bytesMax: 1_000)
                for (place, size, number) in all {
                    [UInt8](repeating: 7, count: size).withUnsafeBytes {
                        var record = RecordRef()
                        record.sequence = number
                        record.message = $0
                        if hasPlaces { kept.add(record, at: place) } else { kept.add(record) }
                    }
                }
                let isCut = kept.isCut
                kept.settle()
                var found: [UInt64] = []
                var bytes = 0
                var record = RecordRef()
                while kept.take(&record) {
                    found.append(record.sequence)
                    bytes += record.message.count
                }
                let order =
                    hasPlaces
                    ? all.sorted { ($0.place, $0.number) < ($1.place, $1.number) } : all
                let wanted = order.suffix(limit)
                XCTAssertEqual(found, wanted.suffix(found.count).map(\.number), "seed \(seed)")
                XCTAssertTrue(bytes <= 1_000 || found.count == 1)
                if !isCut { XCTAssertEqual(found.count, wanted.count) }
                // There was no room for one more.
                if isCut, found.count < limit, let before = order.dropLast(found.count).last {
                    cut += 1
                    XCTAssertGreaterThan(bytes + before.size, 1_000, "seed \(seed)")
                }
            }
        }
        XCTAssertGreaterThan(cut, 50)
    }
}
