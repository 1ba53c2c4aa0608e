// Selects the records that a reader wants to see. Cheap tests come first, fields last.
// SAFETY: views are those of the record being tested, and are not kept.

import CordwoodCore

package struct RecordFilter: Sendable {
    /// Lowest level; 0: all, including records without one.
    package var level: UInt8 = 0
    /// Set of 1 << kind; 0: all.
    package var kinds: UInt32 = 0
    /// UTC ns, inclusive; 0: open.
    package var since: UInt64 = 0
    /// UTC ns, exclusive; 0: open.
    package var until: UInt64 = 0
    /// This name and those below it: "app.db" covers app.db.pool, never app.dbx. Empty: all.
    package var logger: [UInt8] = []
    /// All must hold: a field of that key has that value, as text.
    package var conditions: [(key: [UInt8], value: [UInt8])] = []

    package init() {}

    package func matches(_ record: borrowing RecordRef) -> Bool {
        if record.level < level { return false }
        if kinds != 0, record.kind > 31 || kinds & (1 << UInt32(record.kind)) == 0 { return false }
        if since != 0, record.timeNs < since { return false }
        if until != 0, record.timeNs >= until { return false }
        if !logger.isEmpty, !RecordFilter.covers(logger, record.logger) { return false }
        for condition in conditions where !holds(condition, record) { return false }
        return true
    }

    @safe package static func covers(_ prefix: [UInt8], _ name: UnsafeRawBufferPointer) -> Bool {
        guard name.count >= prefix.count, unsafe name.starts(with: prefix) else { return false }
        return name.count == prefix.count || Bytes.u8(name, prefix.count) == 0x2e
    }

    private func holds(
        _ condition: (key: [UInt8], value: [UInt8]), _ record: borrowing RecordRef
    ) -> Bool {
        var fields = RecordFields(record)
        while let (key, value) = fields.next() {
            guard key.count == condition.key.count, unsafe key.elementsEqual(condition.key) else {
                continue
            }
            if case .string(let text) = value {
                if unsafe text.elementsEqual(condition.value) { return true }
            } else {
                var text: [UInt8] = []
                FieldText.append(value, to: &text)
                if text == condition.value { return true }
            }
        }
        return false
    }
}
