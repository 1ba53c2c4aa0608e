// What to look for in a text: exact bytes, bytes with ASCII letters of either case, or a regular
// expression. A value; any thread.
// SAFETY: views are the caller's, read below their count and not kept.

import CordwoodCore
import CordwoodFormats

package enum TextPattern: Sendable, Equatable {
    case literal([UInt8])
    /// In lower case.
    case folded([UInt8])
    case expression(SearchExpression)

    package static func bytes(_ bytes: [UInt8], ignoresCase: Bool) -> TextPattern {
        ignoresCase ? .folded(bytes.map(ASCII.lower)) : .literal(bytes)
    }

    /// A grep pattern: an expression, unless it is declared plain or contains nothing special.
    package init(
        _ text: String, isFixed: Bool, ignoresCase: Bool
    ) throws(ExpressionError) {
        let bytes = Array(text.utf8)
        if isFixed || !bytes.contains(where: { TextPattern.special.contains($0) }) {
            self = .bytes(bytes, ignoresCase: ignoresCase)
        } else {
            self = .expression(try SearchExpression(text, ignoresCase: ignoresCase))
        }
    }

    private static let special = Set(".[]()*+?{}|^$\\".utf8)

    @safe package func isIn(_ text: UnsafeRawBufferPointer) -> Bool {
        switch self {
        case .literal(let wanted): TextSearch.has(text, wanted)
        case .folded(let wanted): TextPattern.findFolded(text, wanted, from: 0) != nil
        case .expression(let expression): expression.find(text, from: 0) != nil
        }
    }

    /// The same for a text whose first `known` bytes do not contain it.
    @safe package func isIn(_ text: UnsafeRawBufferPointer, beyond known: Int) -> Bool {
        // A match of an expression may have any length.
        if case .expression = self { return isIn(text) }
        return find(text, from: min(max(0, known &- count &+ 1), text.count)) != nil
    }

    /// The first match from `start` on.
    @safe package func find(_ text: UnsafeRawBufferPointer, from start: Int) -> Range<Int>? {
        switch self {
        case .literal(let wanted):
            if wanted.isEmpty { return start..<start }
            let rest = unsafe UnsafeRawBufferPointer(rebasing: text[start...])
            return TextSearch(wanted).first(in: rest).map {
                start &+ $0..<start &+ $0 &+ wanted.count
            }
        case .folded(let wanted):
            return TextPattern.findFolded(text, wanted, from: start).map {
                $0..<$0 &+ wanted.count
            }
        case .expression(let expression): return expression.find(text, from: start)
        }
    }

    /// Searches the first byte in both cases and compares the rest.
    @safe private static func findFolded(
        _ text: UnsafeRawBufferPointer, _ wanted: [UInt8], from start: Int
    ) -> Int? {
        guard let first = wanted.first else { return start }
        guard text.count &- start >= wanted.count else { return nil }
        for at in start...(text.count &- wanted.count) where lower(text, at) == first {
            var index = 1
            while index < wanted.count, lower(text, at &+ index) == wanted[index] { index &+= 1 }
            if index == wanted.count { return at }
        }
        return nil
    }

    @safe @inline(__always)
    private static func lower(_ text: UnsafeRawBufferPointer, _ at: Int) -> UInt8 {
        ASCII.lower(Bytes.u8(text, at))
    }

    /// The whole text, with exact case or in any.
    @safe package func isEqual(_ text: UnsafeRawBufferPointer) -> Bool {
        hasPrefix(text) && text.count == count
    }

    /// Whether the text begins with it.
    @safe package func hasPrefix(_ text: UnsafeRawBufferPointer) -> Bool {
        switch self {
        case .literal(let wanted): return unsafe text.starts(with: wanted)
        case .folded(let wanted):
            guard text.count >= wanted.count else { return false }
            return wanted.indices.allSatisfy { Self.lower(text, $0) == wanted[$0] }
        case .expression: return false
        }
    }

    private var count: Int {
        switch self {
        case .literal(let wanted), .folded(let wanted): wanted.count
        case .expression: 0
        }
    }
}
