// An arena serves one block after another from the memory of the first, whatever the order of large
// and small pieces.

import CordwoodTestSupport
import XCTest

@testable import CordwoodStore

final class ArenaTests: XCTestCase {
    /// Sizes of a growing column, like those of the first block.
    private let sizes = (6...23).map { 1 << $0 }

    func testAnotherOrderFindsRoomInTheSameMemory() throws {
        var arena = Arena()
        for size in sizes { _ = unsafe try arena.allocate(size) }
        let first = arena.capacity
        for order in [Array(sizes.reversed()), sizes, [1 << 23, 64, 1 << 22, 128, 1 << 21]] {
            arena.clear(keeping: .max)
            for size in order { _ = unsafe try arena.allocate(size) }
            XCTAssertEqual(arena.capacity, first, "\(order)")
        }
    }

    func testPiecesDoNotOverlap() throws {
        var arena = Arena()
        var random = SplitMix(24)
        for _ in 0..<20 {
            var pieces: [Flat<UInt8>] = []
            let mark = arena.mark
            for index in 0..<40 {
                let size = Int.random(in: 1...(1 << Int.random(in: 1...22)), using: &random)
                let piece: Flat<UInt8> = try arena.flat(size, of: UInt8(index))
                pieces.append(piece)
            }
            for (index, piece) in pieces.enumerated() {
                for place in [0, piece.count / 2, piece.count - 1] {
                    XCTAssertEqual(piece[place], UInt8(index))
                }
            }
            if Bool.random(using: &random) {
                arena.release(to: mark)
            } else {
                arena.clear(keeping: 8 << 20)
            }
        }
    }
}
