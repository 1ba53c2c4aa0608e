// Golden blocks (Tests/Oracle/block_golden.py) are read as the oracle reads them, broken ones
// refused within bounds; and whatever their bytes become, reading them keeps its promises.

import CordwoodCore
import CordwoodTestSupport
import Foundation
import XCTest

@testable import CordwoodStore

final class BlockGoldenTests: XCTestCase {
    private static let oracle =
        URL(fileURLWithPath: #filePath).deletingLastPathComponent().path + "/../Oracle"

    /// The lists, by their names without `.list`.
    private func lists() throws -> [(name: String, list: BlockList)] {
        let folder = Self.oracle + "/golden/blocks"
        let names = try FileManager.default.contentsOfDirectory(atPath: folder).sorted()
        return names.filter { $0.hasSuffix(".list") }.map {
            (String($0.dropLast(5)), BlockList(readAll(folder + "/" + $0)))
        }
    }

    func testGoldenBlocks() throws {
        let scratch = Scratch()
        for (name, list) in try lists() {
            var (list, out) = (list, [UInt8]())
            while let (block, file) = list.next() {
                var decoder = BlockDecoder()
                var (lines, result) = ([UInt8](), "whole")
                do throws(BlockProblem) { lines = try file.lines(&decoder) } catch {
                    result = "\(error)"
                }
                // Limits are checked before memory is allocated.
                XCTAssertLessThan(decoder.arena.capacity, 24 << 20, "\(name): \(block)")
                out += Array("lines \(block) \(result) \(lines.count)\n".utf8) + lines
            }
            writeAll(out, "\(scratch.path)/\(name).lines")
        }
        let checked = shell(
            "python3 '\(Self.oracle)/block_golden.py' --check '\(scratch.path)' 2>&1")
        XCTAssertEqual(checked.status, 0)
        XCTAssertEqual(String(decoding: checked.output, as: UTF8.self), "")
    }

    /// The inputs of the fuzzer (Tests/Fuzz/block.swift), changed by seed.
    func testChangedBlocks() throws {
        var inputs: [[UInt8]] = []
        for (_, list) in try lists() {
            var list = list
            while let (_, file) = list.next() {
                // Behind the checks of frames only those that are not compressed are reached.
                if file.facts.codec == .none { inputs.append(BlockInput.of(file)) }
            }
        }
        var (random, whole) = (SplitMix(1), 0)
        for _ in 0..<sized(400, 10_000, 100_000) {
            var input = inputs[random.below(inputs.count)]
            for _ in 0..<1 + random.below(3) { Self.change(&input, inputs, &random) }
            if input.withUnsafeBytes(BlockInput.run) { whole += 1 }
        }
        XCTAssertGreaterThan(whole, sized(5, 100, 1_000))
    }

    private static func change(
        _ input: inout [UInt8], _ inputs: [[UInt8]], _ random: inout SplitMix
    ) {
        // Half of the changes are in the head, where most numbers lie.
        let at = random.below(random.chance(2) ? min(input.count, 150) : input.count)
        switch random.below(6) {
        case 0: input[at] ^= 1 << UInt8(random.below(8))
        case 1: input[at] = [0, 1, 0x7F, 0x80, 0xFF][random.below(5)]
        case 2: input[at] &+= UInt8(1 + random.below(4))
        case 3: input.removeSubrange(at..<min(input.count, at + 1 + random.below(9)))
        case 4: input.insert(contentsOf: random.bytes(1 + random.below(9)), at: at)
        default:
            let other = inputs[random.below(inputs.count)]
            let from = random.below(other.count)
            let piece = other[from..<min(other.count, from + 1 + random.below(64))]
            input.replaceSubrange(at..<min(input.count, at + piece.count), with: piece)
        }
        if input.isEmpty { input = [0] }
    }
}
