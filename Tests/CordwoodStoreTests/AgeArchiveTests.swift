// Encrypted archives. With a key the same archive comes out, for us and for the age tool. Without
// one they say which archive they are and nothing else. Damage stays where it is. Seeds are printed
// on failure.

import CordwoodCore
import CordwoodTestSupport
import Glibc
import XCTest

@testable import CordwoodStore

final class AgeArchiveTests: XCTestCase {
    private let identity = AgeIdentity.generate()

    private func write(
        _ records: [Staged], in scratch: Scratch, to recipients: [AgeRecipient],
        codec: Codec = .zstd, name: String? = nil
    ) throws -> ArchiveInfo {
        try ArchiveWriter.write(
            source: FakeSource(records, problems: [:]), covers: [coverForTests],
            archivesDirectory: FilePath(scratch.path), name: name, codec: codec, level: 1, now: 42,
            recipients: recipients)
    }

    private func inside(_ path: String) throws -> [UInt8] {
        let file = try ArchiveFile(path: FilePath(path), identities: [identity])
        var buffer = GrowingBytes()
        XCTAssertTrue(try file.read(file.size, at: 0, into: &buffer))
        return Array(buffer.bytes)
    }

    private func keyFile(_ scratch: Scratch) -> String {
        let path = scratch.path + "/key.txt"
        writeAll(Array("# a test's\n\(identity.secretText)\n".utf8), path)
        return path
    }

    /// nil: the age tool is not installed.
    private func age(_ arguments: String) -> [UInt8]? {
        guard shell("command -v age").status == 0 else { return nil }
        let done = shell("age \(arguments)")
        XCTAssertEqual(done.status, 0, arguments)
        return done.output
    }

    private func records(_ seed: UInt64, _ count: Int) -> [Staged] {
        var maker = RecordMaker(seed: seed)
        return maker.records(count)
    }

    // ── With a key ──

    func testTheSameArchiveComesOut() throws {
        for codec in Codec.allCases {
            for count in [0, 1, 30, sized(2_000, 8_000, 8_000)] {
                let scratch = Scratch()
                let records = records(UInt64(count) + 1, count)
                let plain = try write(records, in: scratch, to: [], codec: codec, name: "plain.cwa")
                let sealed = try write(records, in: scratch, to: [identity.recipient], codec: codec)
                XCTAssertEqual(sealed.fileBytes, UInt64(readAll("\(sealed.path)").count))
                XCTAssertGreaterThan(sealed.fileBytes, plain.fileBytes)
                XCTAssertTrue(sealed.isEncrypted && !plain.isEncrypted)
                let expected = readAll("\(plain.path)")
                XCTAssertTrue(try inside("\(sealed.path)") == expected, "\(codec) \(count)")
                if let opened = age("-d -i \(keyFile(scratch)) \(sealed.path)") {
                    XCTAssertTrue(opened == expected, "age: \(codec) \(count)")
                }
                let source = try ArchiveSource.open(path: sealed.path, identities: [identity])
                let read = drain(source)
                XCTAssertEqual(read.problems.count, 0, "\(read.problems)")
                XCTAssertEqual(read.records, records.map(\.model), "\(codec) \(count)")
                let verified = try ArchiveVerifier.verify(
                    path: sealed.path, identities: [identity])
                XCTAssertTrue(verified.isWhole, "\(verified.problems)")
                XCTAssertNil(verified.locked)
                XCTAssertEqual(verified.recordCount, UInt64(count))
                XCTAssertEqual(scratch.names.filter { $0.hasSuffix(".part") }, [])
            }
        }
    }

    func testEveryRecipientOpensIt() throws {
        let scratch = Scratch()
        let others = (0..<3).map { _ in AgeIdentity.generate() }
        let records = records(2, 50)
        let info = try write(
            records, in: scratch, to: others.map(\.recipient) + [identity.recipient])
        for one in others + [identity] {
            let strangers = [AgeIdentity.generate(), one]
            let source = try ArchiveSource.open(path: info.path, identities: strangers)
            XCTAssertEqual(drain(source).records.count, 50)
        }
    }

    func testAPlainArchiveThatTheAgeToolEncryptedIsRead() throws {
        let scratch = Scratch()
        let records = records(3, 3_000)
        let plain = try write(records, in: scratch, to: [])
        let path = scratch.path + "/by-age.cwa"
        XCTAssertNotNil(
            age("-r \(identity.recipient.text) -o \(path) \(plain.path)"), "package age")
        let source = try ArchiveSource.open(path: FilePath(path), identities: [identity])
        XCTAssertEqual(drain(source).records, records.map(\.model))
        XCTAssertTrue(
            try ArchiveVerifier.verify(path: FilePath(path), identities: [identity]).isWhole)
        // Nothing says which archive it is.
        for attempt in [
            { _ = try ArchiveSource.open(path: FilePath(path)) },
            { _ = try ArchiveInfo.peek(path: FilePath(path)) },
        ] {
            XCTAssertThrowsError(try attempt()) {
                guard case .locked? = $0 as? ReadProblem else { return XCTFail("\($0)") }
            }
        }
    }

    // ── Without ──

    func testWithoutAKeyItSaysWhichArchiveItIs() throws {
        let scratch = Scratch()
        let records = records(4, 500)
        let plain = try write(records, in: scratch, to: [], name: "plain.cwa")
        let sealed = try write(
            records, in: scratch, to: [identity.recipient, AgeIdentity.generate().recipient])
        let info = try ArchiveInfo.peek(path: sealed.path)
        XCTAssertEqual(info.id, plain.id)
        XCTAssertEqual(info.covers, plain.covers)
        XCTAssertEqual(info.createdRealtime, plain.createdRealtime)
        XCTAssertEqual(info.recordCount, 500)
        XCTAssertEqual(info.timeMin, plain.timeMin)
        XCTAssertEqual(info.timeMax, plain.timeMax)
        XCTAssertEqual(info.fileBytes, sealed.fileBytes)
        XCTAssertTrue(info.isEncrypted)

        for (identities, reason) in [
            ([], "encrypted for 2 recipients, and no identity was given"),
            ([AgeIdentity.generate()], "none is an identity that was given"),
        ] {
            let source = try ArchiveSource.open(path: sealed.path, identities: identities)
            XCTAssertEqual(source.header.covers, plain.covers)
            XCTAssertNil(source.process)
            let read = drain(source)
            XCTAssertEqual(read.records.count, 0)
            guard read.problems.count == 1, case .locked(let text) = read.problems[0] else {
                return XCTFail("\(read.problems)")
            }
            XCTAssertTrue(text.hasSuffix(reason), text)
            let verified = try ArchiveVerifier.verify(path: sealed.path, identities: identities)
            XCTAssertTrue(verified.isWhole && verified.locked == text, "\(verified)")
        }
    }

    func testNothingOfTheRecordsStandsOutside() throws {
        let scratch = Scratch()
        var records = records(5, 3)
        let word = Array("entirely-secret-word".utf8)
        records[1].model.message = word
        records[1].model.originalLength = UInt64(word.count)
        records[1].model.logger = word
        let sealed = try write(records, in: scratch, to: [identity.recipient], codec: .none)
        func holds(_ bytes: [UInt8]) -> Bool {
            bytes.indices.dropLast(word.count).contains { bytes[$0...].starts(with: word) }
        }
        XCTAssertTrue(holds(try inside("\(sealed.path)")))
        XCTAssertFalse(holds(readAll("\(sealed.path)")))
    }

    // ── Damage ──

    /// What a reader gets from these bytes; nil: it refuses the file.
    private func look(
        _ bytes: [UInt8], _ path: String, _ identities: [AgeIdentity]
    ) -> (records: [ModelRecord], problems: [ReadProblem])? {
        writeAll(bytes, path)
        guard let source = try? ArchiveSource.open(path: FilePath(path), identities: identities)
        else {
            return nil
        }
        return drain(source, limit: 100_000)
    }

    func testAChangeAtAnyByteIsFound() throws {
        let scratch = Scratch()
        let info = try write(records(6, 2), in: scratch, to: [identity.recipient])
        let whole = readAll("\(info.path)")
        let path = scratch.path + "/changed"
        for index in whole.indices {
            var bytes = whole
            bytes[index] ^= 1
            if let read = look(bytes, path, [identity]) {
                XCTAssertFalse(read.problems.isEmpty, "byte \(index)")
                // All of them if the header's text alone is damaged, which no chunk depends on.
                XCTAssertTrue(
                    read.records.isEmpty || read.records == records(6, 2).map(\.model),
                    "byte \(index)")
            }
            // Also without a key: a collector must store nothing that is damaged.
            let verified = try? ArchiveVerifier.verify(path: FilePath(path))
            if let verified, verified.isWhole {
                let changed = String(decoding: bytes, as: UTF8.self)
                let isKeys = index < changed.utf8.count && isInKeys(whole, index)
                XCTAssertTrue(isKeys, "byte \(index) of \(whole.count)")
            }
        }
        for count in 0..<whole.count {
            if let read = look(Array(whole[..<count]), path, [identity]) {
                XCTAssertFalse(read.problems.isEmpty, "cut at \(count)")
            }
        }
    }

    /// True in the recipients' stanzas and the MAC, which cannot be checked without a key.
    private func isInKeys(_ whole: [UInt8], _ index: Int) -> Bool {
        let text = whole.withUnsafeBytes { bytes in
            let end = bytes.indices.first { bytes[$0...].starts(with: "\n--- ".utf8) } ?? 0
            let ours =
                bytes.indices.first {
                    bytes[$0...].starts(with: "-> cordwood".utf8)
                } ?? 0
            return (ours, end)
        }
        return index < text.0 || index > text.1 && index < text.1 + 50
    }

    func testBlocksBesideADamagedChunkAreRead() throws {
        let scratch = Scratch()
        let records = RecordMaker.largeBlocks(seed: 7, count: 4, others: 20)
        let info = try write(records, in: scratch, to: [identity.recipient])
        let whole = readAll("\(info.path)")
        let path = scratch.path + "/damaged"
        for place in stride(from: 4, to: 66, by: 12) {
            var bytes = whole
            bytes[place * AgeStreamKey.sealedBytes] ^= 0x40
            let read = try XCTUnwrap(look(bytes, path, [identity]))
            XCTAssertFalse(read.problems.isEmpty)
            XCTAssertGreaterThanOrEqual(read.records.count, records.count / 2, "\(place)")
            for record in read.records where !records.contains(where: { $0.model == record }) {
                XCTFail("invented: \(record)")
            }
        }
    }

    func testWhatStandsBeforeACutIsRead() throws {
        let scratch = Scratch()
        let records = RecordMaker.largeBlocks(seed: 8, count: 3, others: 20)
        let info = try write(records, in: scratch, to: [identity.recipient])
        let whole = readAll("\(info.path)")
        let path = scratch.path + "/cut"
        let read = try XCTUnwrap(look(Array(whole[..<(whole.count * 5 / 6)]), path, [identity]))
        XCTAssertFalse(read.problems.isEmpty)
        XCTAssertEqual(read.records, records[..<42].map(\.model))
        XCTAssertThrowsError(try ArchiveInfoWithKey.peek(path, identity))
        let verified = try ArchiveVerifier.verify(path: FilePath(path), identities: [identity])
        XCTAssertFalse(verified.isWhole)
    }

    func testTheOutsideMustBeThatOfTheInside() throws {
        let scratch = Scratch()
        let info = try write(records(9, 5), in: scratch, to: [])
        var facts = SealedFacts(info)
        facts.recordCount = 6
        let bytes = AgeFile.bytes(
            of: readAll("\(info.path)"), to: [identity.recipient],
            stanzas: [try XCTUnwrap(facts.stanza)])
        let path = scratch.path + "/other.cwa"
        writeAll(bytes, path)
        let verified = try ArchiveVerifier.verify(path: FilePath(path), identities: [identity])
        XCTAssertTrue(
            verified.problems.contains { $0.hasSuffix("described outside") }, "\(verified)")
    }

    /// A program without the key has judged the covers outside: those inside hide nothing.
    func testWhatItCoversInsideCountsForNothing() throws {
        let scratch = Scratch()
        var cover = coverForTests
        cover.seals = [SegmentSeal(number: 3, digest: LaneID(high: 1, low: 2))]
        let inside = try ArchiveWriter.write(
            source: FakeSource(records(9, 5)), covers: [cover],
            archivesDirectory: FilePath(scratch.path), codec: .none, level: 0, now: 1,
            replaced: [ReplacedArchive(id: LaneID(high: 3, low: 4), recordCount: 5)])
        for change in [
            { $0.covers[0].last += 1 }, { $0.covers[0].seals = [] },
            { $0.covers.append($0.covers[0]) }, { $0.replaced = [] },
            { $0.id = LaneID(high: 1, low: 1) },
        ] as [(inout SealedFacts) -> Void] {
            let honest = SealedFacts(inside)
            var other = honest
            change(&other)
            for (facts, isSame) in [(honest, true), (other, false)] {
                let path = scratch.path + "/other"
                writeAll(
                    AgeFile.bytes(
                        of: readAll("\(inside.path)"), to: [identity.recipient],
                        stanzas: [try XCTUnwrap(facts.stanza)]), path)
                let read = try ArchiveSource.open(path: FilePath(path), identities: [identity])
                XCTAssertEqual(read.header.covers.isEmpty, !isSame)
                XCTAssertEqual(read.header.replaced.isEmpty, !isSame)
                XCTAssertEqual(read.header.id, facts.id)
                XCTAssertEqual(read.header.recordCount, 5)
                let peeked = try? ArchiveInfo.peek(path: FilePath(path), identities: [identity])
                XCTAssertEqual(peeked != nil, isSame)
            }
        }
    }

    func testSummariesThatAreRefused() throws {
        let scratch = Scratch()
        let info = try write(records(10, 5), in: scratch, to: [])
        let good = try XCTUnwrap(SealedFacts(info).stanza)
        let path = scratch.path + "/summary.cwa"
        func refused(_ stanzas: [AgeStanza]) -> ReadProblem? {
            writeAll(AgeFile.bytes(of: [1], to: [identity.recipient], stanzas: stanzas), path)
            do throws(ReadProblem) {
                _ = try ArchiveInfo.peek(path: FilePath(path))
                return nil
            } catch {
                return error
            }
        }
        XCTAssertNil(refused([good]))
        guard case .locked? = refused([]) else { return XCTFail() }
        guard case .damaged? = refused([good, good]) else { return XCTFail() }
        for index in 0..<good.body.count {
            var bad = good
            bad.body[index] ^= 0x10
            switch refused([bad]) {
            case .damaged?, .version?: break
            case let other: XCTFail("byte \(index): \(String(describing: other))")
            }
        }
        for count in 0..<good.body.count {
            var cut = good
            cut.body = Array(good.body.prefix(count))
            guard case .damaged? = refused([cut]) else { return XCTFail("cut at \(count)") }
        }
    }

    func testRandomDamageNeverTraps() throws {
        let scratch = Scratch()
        let info = try write(records(11, 40), in: scratch, to: [identity.recipient])
        let whole = readAll("\(info.path)")
        let path = scratch.path + "/damaged"
        for seed in SplitMix.seeds(1_500, core: 100) {
            var random = SplitMix(seed)
            var bytes = whole
            for _ in 0..<(1 + random.below(3)) {
                bytes[random.below(random.chance(2) ? 600 : bytes.count)] ^= UInt8(
                    1 << random.below(8))
            }
            if random.chance(4) { bytes.removeLast(random.below(bytes.count)) }
            if random.chance(8) { bytes += random.bytes(random.below(64)) }
            for keys in [[], [identity]] {
                guard let read = look(bytes, path, keys), bytes != whole else { continue }
                XCTAssertFalse(read.problems.isEmpty, "seed \(seed)")
                _ = try? ArchiveVerifier.verify(path: FilePath(path), identities: keys)
            }
        }
    }

    func testAHeaderOfHugeLengthIsRefusedInLittleMemory() throws {
        let scratch = Scratch()
        let path = scratch.path + "/huge.cwa"
        let line = String(repeating: "A", count: 64) + "\n"
        writeAll(
            Array(("age-encryption.org/v1\n-> x\n" + String(repeating: line, count: 40_000)).utf8),
            path)
        XCTAssertThrowsError(try ArchiveInfo.peek(path: FilePath(path))) {
            guard case .damaged(let text)? = $0 as? ReadProblem, text.hasSuffix("too long") else {
                return XCTFail("\($0)")
            }
        }
    }
}

private enum ArchiveInfoWithKey {
    static func peek(_ path: String, _ identity: AgeIdentity) throws -> ArchiveInfo {
        let file = try ArchiveFile(path: FilePath(path), identities: [identity])
        return try ArchiveIndex.load(file, salvage: false).info
    }
}
