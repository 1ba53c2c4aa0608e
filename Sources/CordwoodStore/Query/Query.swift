// A query about records, as docs/QUERY.md describes it: one language for every reader. A value;
// any thread.

import CordwoodCore
import CordwoodFormats

/// Why a text is not a query.
public struct QueryError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The position in characters; the first is 1.
    public var column: Int
    public var text: String

    public init(column: Int, text: String) {
        self.column = column
        self.text = text
    }

    public var description: String { "column \(column): \(text)" }
}

public struct Query: Sendable, Equatable, CustomStringConvertible {
    package let node: QueryNode

    package init(_ node: QueryNode) { self.node = node }

    /// `level>=warn logger:app.db "timed out"`.
    ///
    /// - Parameters:
    ///   - nowNs: UTC ns since 1970, for times as in `time>=2h`; 0: the clock's.
    ///   - utc: a time without a zone is UTC, not local time.
    public init(_ text: String, nowNs: UInt64 = 0, utc: Bool = false) throws(QueryError) {
        let now = nowNs == 0 ? Machine.realtimeNs() : nowNs
        node = try QueryParser.parse(text, nowNs: now, utc: utc)
    }

    /// The text of the same query; its times are in UTC.
    public var description: String { QueryPrinter.text(node) }

    /// Matches records that match both.
    public func and(_ other: Query) -> Query { Query(.all([node, other.node])) }

    /// Whether it matches a record whose text has been made.
    public func matches(_ record: borrowing RecordRef) -> Bool {
        QueryTest.verdict(node, record, hasText: true) == .yes
    }

    /// The message contains the pattern; inverted: it does not.
    package static func message(_ pattern: TextPattern, isInverted: Bool) -> Query {
        let node: QueryNode
        if case .expression = pattern {
            node = .compare(.message, .like, .text(pattern))
        } else {
            node = .compare(.message, .contains, .text(pattern))
        }
        return Query(isInverted ? .not(node) : node)
    }
}
