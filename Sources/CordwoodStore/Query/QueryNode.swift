// A query as a tree (docs/QUERY.md). The parser makes it; the printer writes it as text that parses
// to the same tree; the test applies it to a record. Values; any thread.

package indirect enum QueryNode: Sendable, Equatable {
    /// All of at least two.
    case all([QueryNode])
    /// One of at least two.
    case any([QueryNode])
    case not(QueryNode)
    /// In the message, or in a field as `key=value`.
    case text(TextPattern)
    case compare(QueryName, QueryOperator, QueryValue)
}

package enum QueryOperator: Sendable, Equatable, CaseIterable {
    case equal, unequal, less, atMost, more, atLeast
    /// Equal as text, whatever the types.
    case written
    /// A regular expression matches.
    case like
    /// The meaning of `:` for names that give it one of their own.
    case contains, begins, below

    var sign: StaticString {
        switch self {
        case .equal: "="
        case .unequal: "!="
        case .less: "<"
        case .atMost: "<="
        case .more: ">"
        case .atLeast: ">="
        case .written: "=="
        case .like: "~"
        case .contains, .begins, .below: ":"
        }
    }

    var isOrder: Bool {
        switch self {
        case .less, .atMost, .more, .atLeast: true
        default: false
        }
    }
}

package enum QueryValue: Sendable, Equatable {
    /// `*`: any value.
    case anything
    case number(QueryNumber)
    case bool(Bool)
    case text(TextPattern)
    /// UTC ns.
    case time(UInt64)
    /// 0: none.
    case level(UInt8)
    /// CW_KIND_….
    case kind(UInt8)

    static func text(_ bytes: [UInt8]) -> QueryValue { .text(.literal(bytes)) }
}

/// What a name means. Time, level, kind, logger and message are columns even if a record has such
/// fields, so they can be decided without looking into records.
package enum QueryName: Sendable, Equatable {
    case time, level, kind, logger, message
    /// `fields.NAME`: only a field.
    case field([UInt8])
    /// Fields of that name come first, then the column, then the resource's attribute.
    case any([UInt8], QueryColumn?)

    package init(_ name: [UInt8]) {
        switch String(decoding: name, as: UTF8.self) {
        case "time": self = .time
        case "level": self = .level
        case "kind": self = .kind
        case "logger": self = .logger
        case "message": self = .message
        case let text:
            let prefix = Array(QueryName.fieldsPrefix.utf8)
            if name.starts(with: prefix), name.count > prefix.count {
                self = .field(Array(name[prefix.count...]))
            } else {
                self = .any(name, QueryColumn(name: text))
            }
        }
    }

    static let fieldsPrefix = "fields."

    var bytes: [UInt8] {
        switch self {
        case .time: Array("time".utf8)
        case .level: Array("level".utf8)
        case .kind: Array("kind".utf8)
        case .logger: Array("logger".utf8)
        case .message: Array("message".utf8)
        case .field(let key): Array(QueryName.fieldsPrefix.utf8) + key
        case .any(let name, _): name
        }
    }
}

/// What records have besides fields, by the names in `cat --json`.
package enum QueryColumn: String, Sendable, CaseIterable {
    case file, line, function, thread, tid, process, pid, trace, span, service, host
    case recordID = "record_id"
    /// Of captured exchanges.
    case method, url, path, status
    /// Of application transactions.
    case txn, usecase

    init?(name: String) {
        switch name {
        case "trace_id": self = .trace
        case "span_id": self = .span
        default: self.init(rawValue: name)
        }
    }

    /// The meaning of `:`.
    var isOperator: QueryOperator {
        switch self {
        case .file, .function, .url, .path: .contains
        case .trace, .span, .recordID, .txn: .begins
        default: .equal
        }
    }

    /// Ids: letters match in either case.
    var isFolded: Bool { isOperator == .begins }

    /// Values are texts, even if they look like numbers.
    var isText: Bool { isOperator != .equal }
}
