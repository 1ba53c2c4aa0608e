// Looks for bytes in the text of records without making it: in a message in memory, or in what a
// format and its arguments can become (FORMAT §8.7). A value; any thread.
// SAFETY: views are the caller's and are not kept.

import CShims
import CordwoodCore

package struct TextSearch: Sendable, Equatable {
    let wanted: [UInt8]

    /// At least one byte.
    package init(_ wanted: [UInt8]) { self.wanted = wanted }

    /// The number of bytes looked for.
    package var count: Int { wanted.count }

    @safe package func isIn(_ text: UnsafeRawBufferPointer) -> Bool { first(in: text) != nil }

    @safe package static func has(_ text: UnsafeRawBufferPointer, _ wanted: [UInt8]) -> Bool {
        wanted.isEmpty || TextSearch(wanted).first(in: text) != nil
    }

    /// The first place of the bytes.
    @safe package func first(in text: UnsafeRawBufferPointer) -> Int? {
        guard let start = text.baseAddress, text.count >= wanted.count else { return nil }
        let bytes = unsafe start.assumingMemoryBound(to: UInt8.self)
        let at = unsafe cwi_find(bytes, 0, text.count, wanted, wanted.count)
        return at < text.count ? at : nil
    }

    /// Whether texts of a format may contain the bytes.
    enum Odds: Sendable {
        /// None of its texts contains the bytes.
        case never
        /// A text contains them only if its arguments contain one of these, or numbers that are
        /// needed.
        case with([TextSearch], [NumberNeed])
        case any

        var isPossible: Bool { if case .never = self { false } else { true } }
    }

    @safe func odds(
        of format: UnsafeRawBufferPointer, style: UInt8, types: UnsafeRawBufferPointer
    ) -> Odds {
        FormatSearch.odds(wanted, of: format, style: style, types: types)
    }

    /// Whether a text made with these arguments may contain the bytes.
    @safe static func isPossible(
        _ odds: Odds, _ types: UnsafeRawBufferPointer, _ arguments: UnsafeRawBufferPointer,
        _ printer: NumberPrinter
    ) -> Bool {
        switch odds {
        case .never: false
        case .any: true
        case .with(let pieces, let numbers):
            numbers.contains { $0.isMet(types, arguments, printer) }
                || pieces.contains { $0.isIn(arguments) }
        }
    }
}

/// Finds some texts in a column, which is searched once, in the order of its rows.
@safe struct ColumnHits {
    let searches: [TextSearch]
    /// For each text, the bytes from its next hit to the column's end; 0: no more hits.
    private var lefts: [Int]

    init(_ searches: [TextSearch]) {
        self.searches = searches
        lefts = Array(repeating: .max, count: searches.count)
    }

    /// Whether one lies whole within the first `size` bytes of the rest of the column.
    @safe mutating func areIn(_ rest: UnsafeRawBufferPointer, first size: Int) -> Bool {
        for index in searches.indices {
            if lefts[index] > rest.count {
                lefts[index] = searches[index].first(in: rest).map { rest.count &- $0 } ?? 0
            }
            if lefts[index] > 0,
                rest.count &- lefts[index] &+ searches[index].count <= size
            {
                return true
            }
        }
        return false
    }
}
