// Applies a query to a record. If a record's text has not been made yet, the result may stay open:
// an archive makes the text only of records that this does not exclude.
// SAFETY: views are those of the record being tested, and are not kept.

import CordwoodCore
import CordwoodFormats

package enum QueryTest {
    package enum Verdict: UInt8 {
        case no
        /// The record's text decides.
        case open
        case yes

        @inline(__always)
        init(_ isTrue: Bool) { self = isTrue ? .yes : .no }

        var inverted: Verdict { Verdict(rawValue: 2 &- rawValue)! }
    }

    /// - Parameter hasText: false: the message of a deferred record has not been made.
    package static func verdict(
        _ node: QueryNode, _ record: borrowing RecordRef, hasText: Bool
    ) -> Verdict {
        switch node {
        case .all(let parts):
            var least = Verdict.yes
            for part in parts {
                let found = verdict(part, record, hasText: hasText)
                if found == .no { return .no }
                if found == .open { least = .open }
            }
            return least
        case .any(let parts):
            var most = Verdict.no
            for part in parts {
                let found = verdict(part, record, hasText: hasText)
                if found == .yes { return .yes }
                if found == .open { most = .open }
            }
            return most
        case .not(let part): return verdict(part, record, hasText: hasText).inverted
        case .text(let pattern):
            let isKnown = hasText || !record.isDeferred
            if isKnown, pattern.isIn(record.message) { return .yes }
            if isInFields(pattern, record) { return .yes }
            return isKnown ? .no : .open
        case .compare(let name, let operation, let value):
            if case .message = name, !hasText, record.isDeferred { return .open }
            return Verdict(compare(name, operation, value, record))
        }
    }

    /// In a field as `key=value`, without quotes and escapes.
    private static func isInFields(
        _ pattern: TextPattern, _ record: borrowing RecordRef
    ) -> Bool {
        if record.sections.count == 0 && record.context.count == 0 { return false }
        var fields = RecordFields(record)
        var text: [UInt8] = []
        while let (key, value) = fields.next() {
            text.removeAll(keepingCapacity: true)
            unsafe text.append(contentsOf: key)
            text.append(0x3D)
            FieldText.append(value, to: &text)
            let isIn = unsafe text.withUnsafeBytes { pattern.isIn($0) }
            if isIn { return true }
        }
        return false
    }

    private static func compare(
        _ name: QueryName, _ operation: QueryOperator, _ value: QueryValue,
        _ record: borrowing RecordRef
    ) -> Bool {
        switch name {
        case .time:
            guard case .time(let time) = value else { return false }
            return isTrue(operation, record.timeNs, time)
        case .level:
            guard case .level(let level) = value else { return false }
            return isTrue(operation, record.level, level)
        case .kind:
            guard case .kind(let kind) = value else { return false }
            return isTrue(operation, record.kind, kind)
        case .logger: return isTrue(operation, value, record.logger)
        case .message: return isTrue(operation, value, record.message)
        case .field(let key):
            var test = ValuesTest(operation, value)
            RecordNames.fields(key, of: record) { test.take($0) }
            return test.isTrue
        case .any(let key, let column):
            var test = ValuesTest(operation, value)
            RecordNames.values(key, column, of: record) { test.take($0) }
            return test.isTrue
        }
    }

    @safe private static func isTrue(
        _ operation: QueryOperator, _ value: QueryValue, _ text: UnsafeRawBufferPointer
    ) -> Bool {
        if case .anything = value { return text.count > 0 }
        guard case .text(let pattern) = value else { return false }
        guard operation == .below, case .literal(let prefix) = pattern else {
            return isTrue(operation, pattern, text)
        }
        return covers(prefix, text)
    }

    /// This name and those below it: "app.db" covers app.db.pool, never app.dbx.
    @safe package static func covers(_ prefix: [UInt8], _ name: UnsafeRawBufferPointer) -> Bool {
        if prefix.isEmpty { return true }
        guard name.count >= prefix.count, let start = name.baseAddress,
            unsafe prefix.withUnsafeBytes({
                unsafe Memory.isSame($0.baseAddress!, start, prefix.count)
            })
        else { return false }
        return name.count == prefix.count || Bytes.u8(name, prefix.count) == 0x2e
    }

    private static func isTrue<Number: Comparable>(
        _ operation: QueryOperator, _ left: Number, _ right: Number
    ) -> Bool {
        switch operation {
        case .equal: left == right
        case .unequal: left != right
        case .less: left < right
        case .atMost: left <= right
        case .more: left > right
        case .atLeast: left >= right
        case .written, .like, .contains, .begins, .below: false
        }
    }

    @safe fileprivate static func isTrue(
        _ operation: QueryOperator, _ pattern: TextPattern, _ text: UnsafeRawBufferPointer
    ) -> Bool {
        switch operation {
        case .equal, .written: return pattern.isEqual(text)
        case .unequal: return !pattern.isEqual(text)
        case .like, .contains: return pattern.isIn(text)
        case .begins: return pattern.hasPrefix(text)
        case .less, .atMost, .more, .atLeast, .below:
            guard case .literal(let bytes) = pattern else { return false }
            let isLess = unsafe text.lexicographicallyPrecedes(bytes)
            let isEqual = pattern.isEqual(text)
            switch operation {
            case .less: return isLess
            case .atMost: return isLess || isEqual
            case .more: return !isLess && !isEqual
            default: return !isLess
            }
        }
    }

    /// Compares the values of one name. If one has the type of the query's value, values of other
    /// types do not count; otherwise text is compared with text.
    struct ValuesTest {
        let operation: QueryOperator
        let value: QueryValue
        var hasAny = false
        var hasSame = false
        /// Whether a value of the same type matches; `isOther`: a value of another type.
        var isSame = false
        var isOther = false

        init(_ operation: QueryOperator, _ value: QueryValue) {
            self.operation = operation
            self.value = value
        }

        var isTrue: Bool {
            if case .anything = value { return hasAny }
            let isFound = hasSame ? isSame : isOther
            return operation == .unequal ? hasAny && !isFound : isFound
        }

        mutating func take(_ found: FieldValue) {
            hasAny = true
            switch (value, found) {
            case (.anything, _): break
            case (.text(let pattern), _) where Self.isTextual(operation):
                let isTrue = unsafe Self.asText(found) { Self.isTrue(operation, pattern, $0) }
                isOther = isOther || isTrue
            case (.number(let number), .int), (.number(let number), .uint),
                (.number(let number), .double):
                hasSame = true
                isSame = isSame || isTrue(found, number)
            case (.number(let number), .json(let text)):
                guard let other = JSONWalk.number(text) else { break }
                hasSame = true
                isSame = isSame || isTrue(other, number)
            case (.number(let number), .string(let text)):
                guard let other = QueryNumber(text) else { break }
                isOther = isOther || isTrue(other, number)
            case (.bool(let flag), .bool(let other)):
                hasSame = true
                isSame = isSame || isEquality && flag == other
            case (.bool(let flag), .string(let text)):
                let word: StaticString = flag ? "true" : "false"
                isOther = isOther || isEquality && Bytes.equal(text, Bytes.literal(word))
            case (.text(let pattern), .string(let text)):
                hasSame = true
                isSame = isSame || Self.isTrue(equality, pattern, text)
            case (.text(let pattern), _):
                isOther = unsafe isOther || isEquality && Self.asText(found) { pattern.isEqual($0) }
            default: break
            }
        }

        private var isEquality: Bool { operation == .equal || operation == .unequal }

        /// For `!=`, tests whether any value is equal; none may be.
        private var equality: QueryOperator { operation == .unequal ? .equal : operation }

        private func isTrue(_ found: FieldValue, _ number: QueryNumber) -> Bool {
            guard let other = QueryNumber(found) else { return false }
            return isTrue(other, number)
        }

        private func isTrue(_ found: QueryNumber, _ number: QueryNumber) -> Bool {
            guard let order = found.order(to: number) else { return false }
            return QueryTest.isTrue(equality, order, 0)
        }

        private static func isTextual(_ operation: QueryOperator) -> Bool {
            [.written, .like, .contains, .begins].contains(operation)
        }

        @safe private static func isTrue(
            _ operation: QueryOperator, _ pattern: TextPattern, _ text: UnsafeRawBufferPointer
        ) -> Bool { QueryTest.isTrue(operation, pattern, text) }

        private static func asText(
            _ value: FieldValue, _ body: (UnsafeRawBufferPointer) -> Bool
        ) -> Bool {
            if case .string(let text) = value { return unsafe body(text) }
            var text: [UInt8] = []
            FieldText.append(value, to: &text)
            return unsafe text.withUnsafeBytes { unsafe body($0) }
        }
    }
}
