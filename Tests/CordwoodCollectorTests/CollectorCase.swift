// A collector on a fresh directory with a stand-in for archives: text `id lane first last state`,
// so that tests can make any archive, even impossible ones, and hold one while it is verified.

import Cordwood
import CordwoodStore
import CordwoodTestSupport
import Foundation
import Glibc
import XCTest

@testable import CordwoodCollector

class CollectorCase: XCTestCase {
    static let lane = "20261121T081530Z-812-9f3c5a0de1b27788"
    static let id = "0f8fad5b-d9cb-469f-a165-70867728950e"
    static let name = "\(lane).00000001-00000002.0f8fad5bd9cb469f.cwa"

    var directory = ""
    var collector: Collector?

    override func setUpWithError() throws {
        directory = StorePlace.path("collector")
    }

    override func tearDownWithError() throws {
        collector?.stop()
        try? FileManager.default.removeItem(atPath: directory)
    }

    func start(
        inspector: ArchiveInspector = .text, _ change: (inout CollectorOptions) -> Void = { _ in }
    ) throws -> Int {
        var options = CollectorOptions(directory: directory)
        options.stopTimeoutMs = 500
        change(&options)
        let collector = Collector(options: options, inspector: inspector)
        self.collector = collector
        return try collector.start()
    }

    func post(
        _ body: String, key: String? = nil, headers: [String] = [], length: Int? = nil
    ) -> String {
        var lines = ["POST /v1/archives HTTP/1.1", "Host: test"]
        lines.append("Content-Length: \(length ?? body.utf8.count)")
        if let key { lines.append("Idempotency-Key: \"\(key)\"") }
        lines += headers
        return lines.joined(separator: "\r\n") + "\r\n\r\n" + body
    }

    func archive(
        id: String = CollectorCase.id, lane: String = CollectorCase.lane, first: Int = 1,
        last: Int = 2, padding: Int = 0
    ) -> String {
        "\(id) \(lane) \(first) \(last) whole\n" + String(repeating: "x", count: padding)
    }

    /// Everything below `archives/`.
    func stored() -> [String] {
        let all = (try? FileManager.default.contentsOfDirectory(atPath: directory + "/archives"))
        return (all ?? []).sorted()
    }

    /// The size of one of them; nil: it is gone.
    func size(of name: String) -> Int? {
        let path = "\(directory)/archives/\(name)"
        return try? FileManager.default.attributesOfItem(atPath: path)[.size] as? Int
    }

    /// Waits: a collector notices a lost client in its own time.
    func eventually(_ what: String, _ condition: () -> Bool) {
        for _ in 0..<3_000 {
            if condition() { return }
            usleep(10_000)
        }
        XCTFail(what)
    }
}

extension LaneRanges {
    init(_ lane: LaneID, _ ranges: [ClosedRange<UInt64>]) {
        self.init(
            ranges.map {
                ArchiveCover(laneID: lane, first: $0.lowerBound, last: $0.upperBound, laneName: "")
            })
    }
}

extension ArchiveInspector {
    static let text = ArchiveInspector(
        verify: parse, identify: parse, relate: relate,
        fingerprint: { try String(Text($0).line.utf8.reduce(1 << 60) { $0 &* 31 &+ UInt64($1) }) })

    /// Checks an archive once the gate opens; each signal lets one archive through.
    static func waiting(for gate: DispatchSemaphore) -> ArchiveInspector {
        var inspector = text
        inspector.verify = {
            gate.wait()
            return try parse($0)
        }
        return inspector
    }

    @Sendable static func parse(_ path: String) throws -> ArchiveFacts { try Text(path).facts }

    private struct Text {
        var line: Substring
        var facts: ArchiveFacts
        var replaced: [String] = []

        init(_ path: String) throws {
            let text = try String(contentsOfFile: path, encoding: .utf8)
            line = text.prefix { $0 != "\n" }
            let parts = line.split(separator: " ")
            guard parts.count >= 5, parts[4] == "whole", let first = UInt64(parts[2]),
                let last = UInt64(parts[3])
            else { throw ArchiveRefused(reason: "damaged") }
            facts = ArchiveFacts(
                id: String(parts[0]), laneName: String(parts[1]), first: first, last: last)
            facts.recordCount = 7
            let lane = parts[1].utf8.reduce(0) { $0 &* 31 &+ UInt64($1) }
            facts.segments = LaneRanges(LaneID(high: lane, low: 1), [first...max(first, last)])
            // `+n`, then the ids of the archives that it replaces.
            if parts.count > 5 { facts.others = Int(parts[5].dropFirst()) ?? 0 }
            replaced = parts.dropFirst(6).map(String.init)
        }
    }

    /// Archives of one id are the same; one has what it says that it replaces.
    @Sendable private static func relate(
        _ path: String, _ stored: String
    ) throws -> StoredArchive.Relation {
        let (new, old) = (try Text(path), try Text(stored))
        return old.facts.id == new.facts.id || old.replaced.contains(new.facts.id) ? .known : .other
    }
}
