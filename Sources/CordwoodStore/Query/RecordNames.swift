// The values of a record under a name: first its fields, then what it has besides them, then the
// resource of its process. The only place that knows the names of records. No state.
// SAFETY: views are those of the record, or of a string held meanwhile; valid in `body`.

import CordwoodCore
import CordwoodFormats

package enum RecordNames {
    /// Passes each value of that name to `body`.
    static func values(
        _ name: [UInt8], _ column: QueryColumn?, of record: borrowing RecordRef,
        _ body: (FieldValue) -> Void
    ) {
        if fields(name, of: record, body) { return }
        if let column, give(column, of: record, body) { return }
        attribute(String(decoding: name, as: UTF8.self), of: record, body)
    }

    /// The record's own fields, the context's and the exception's. If none has that name, the
    /// values that the name finds inside fields that are JSON. True: there is a value.
    @discardableResult
    static func fields(
        _ name: [UInt8], of record: borrowing RecordRef, _ body: (FieldValue) -> Void
    ) -> Bool {
        if record.sections.count == 0 && record.context.count == 0 { return false }
        var isFound = false
        var hasJSON = false
        var all = RecordFields(record)
        while let (key, value) = all.next() {
            guard key.count == name.count, unsafe key.elementsEqual(name) else {
                if case .json = value { hasJSON = true }
                continue
            }
            isFound = true
            give(value, body)
        }
        return isFound || hasJSON && parts(name, of: record, body)
    }

    private static func give(_ value: FieldValue, _ body: (FieldValue) -> Void) {
        guard case .json(let text) = value else { return body(value) }
        JSONWalk.value(text, body)
    }

    /// docs/QUERY.md, "Paths".
    private static func parts(
        _ name: [UInt8], of record: borrowing RecordRef, _ body: (FieldValue) -> Void
    ) -> Bool {
        var isFound = false
        var all = RecordFields(record)
        while let (key, value) = all.next() {
            guard case .json(let text) = value,
                let path = unsafe JSONWalk.rest(of: name[...], after: Array(key))
            else { continue }
            JSONWalk.values(at: path, in: text) {
                isFound = true
                body($0)
            }
        }
        return isFound
    }

    private static func fields(
        _ name: StaticString, of record: borrowing RecordRef, _ body: (FieldValue) -> Void
    ) -> Bool {
        let name = name.withUTF8Buffer { unsafe Array($0) }
        return fields(name, of: record, body)
    }

    private static let exchange: UInt8 = 4

    private static func give(
        _ column: QueryColumn, of record: borrowing RecordRef, _ body: (FieldValue) -> Void
    ) -> Bool {
        switch column {
        case .file: return give(record.file, body)
        case .function: return give(record.function, body)
        case .line: return give(UInt64(record.line), isThere: record.line > 0, body)
        case .thread: return give(record.thread.name, body)
        case .process: return give(record.thread.process.name, body)
        case .tid: return give(UInt64(record.thread.threadID), isThere: true, body)
        case .pid: return give(UInt64(record.thread.process.processID), isThere: true, body)
        case .trace: return give(id: record.traceID, body)
        case .span: return give(id: record.spanID, body)
        case .recordID:
            var text: [UInt8] = []
            record.id.append(to: &text)
            unsafe text.withUnsafeBytes { unsafe body(.string($0)) }
            return true
        case .service: return attribute("service.name", of: record, body)
        case .host:
            if record.kind == exchange { return fields("server.address", of: record, body) }
            return attribute("host.name", of: record, body)
        case .method: return fields("http.request.method", of: record, body)
        case .url: return fields("url.full", of: record, body)
        case .path:
            return fields("url.full", of: record) { value in
                if case .string(let url) = value { unsafe body(.string(path(of: url))) }
            }
        case .status: return fields("http.response.status_code", of: record, body)
        case .txn: return fields("txn.id", of: record, body)
        case .usecase: return fields("txn.usecase", of: record, body)
        }
    }

    /// `/a/b` of `https://host/a/b?c#d`; `/` for a URL without a path.
    @safe private static func path(of url: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        var from = 0
        for at in 0..<url.count where Bytes.u8(url, at) == 0x3A {
            // "://" begins the host.
            if Bytes.u8(url, at &+ 1) == 0x2F, Bytes.u8(url, at &+ 2) == 0x2F { from = at &+ 3 }
            break
        }
        func isEnd(_ at: Int) -> Bool {
            at >= url.count || Bytes.u8(url, at) == 0x3F || Bytes.u8(url, at) == 0x23
        }
        if from > 0 { while !isEnd(from), Bytes.u8(url, from) != 0x2F { from &+= 1 } }
        var end = from
        while !isEnd(end) { end &+= 1 }
        guard end > from else { return Bytes.literal("/") }
        return unsafe Bytes.slice(url, from, end &- from) ?? Bytes.none
    }

    @safe private static func give(
        _ text: UnsafeRawBufferPointer, _ body: (FieldValue) -> Void
    ) -> Bool {
        if text.count == 0 { return false }
        unsafe body(.string(text))
        return true
    }

    private static func give(_ text: String, _ body: (FieldValue) -> Void) -> Bool {
        if text.isEmpty { return false }
        var text = text
        text.withUTF8 { unsafe body(.string(UnsafeRawBufferPointer($0))) }
        return true
    }

    private static func give(
        _ number: UInt64, isThere: Bool, _ body: (FieldValue) -> Void
    ) -> Bool {
        if isThere { body(.uint(number)) }
        return isThere
    }

    /// In hex.
    @safe private static func give(
        id: UnsafeRawBufferPointer, _ body: (FieldValue) -> Void
    ) -> Bool {
        if id.count == 0 { return false }
        var text: [UInt8] = []
        Hex.append(id, to: &text)
        unsafe text.withUnsafeBytes { unsafe body(.string($0)) }
        return true
    }

    @discardableResult
    private static func attribute(
        _ name: String, of record: borrowing RecordRef, _ body: (FieldValue) -> Void
    ) -> Bool {
        guard let value = record.thread.process.attribute(name) else { return false }
        return give(value, body)
    }
}
