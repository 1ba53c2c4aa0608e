// The JSON of a set of application transactions (B-TXN-5): the events of each under its id, in
// order of arrival; the members in the order of the system that this replaces. Valid UTF-8 and
// valid JSON, whatever was logged. Used for bodies and exports. One thread at a time.

import CordwoodFormats

/// Facts about the machine; nil: use what the record's process said of itself.
package struct TransactionsDevice: Sendable {
    package var make: String?
    package var os: String?
    package var osVersion: String?

    package init(make: String? = nil, os: String? = nil, osVersion: String? = nil) {
        self.make = make
        self.os = os
        self.osVersion = osVersion
    }
}

package struct TransactionsDocument {
    /// Limit for each word about the device.
    package static let deviceBytesMax = 255

    private let device: TransactionsDevice
    private var transactions: [(head: [UInt8], events: [UInt8])] = []
    private var numbers: [[UInt8]: Int] = [:]

    package init(device: TransactionsDevice = TransactionsDevice()) { self.device = device }

    package var isEmpty: Bool { transactions.isEmpty }

    /// Adds an event; ignores other records.
    package mutating func add(_ record: RecordRef) {
        guard let fields = TransactionsDocument.event(record) else { return }
        var entry: [UInt8] = []
        TransactionsDocument.append(fields, record, &entry)
        take(entry, fields, record)
    }

    /// Appends the document and starts a new one.
    package mutating func end(_ out: inout [UInt8]) {
        Literal.append("{\"apptxns\":[", &out)
        for (index, one) in transactions.enumerated() {
            if index > 0 { out.append(0x2c) }
            out += one.head
            out += one.events
            Literal.append("]}", &out)
        }
        Literal.append("]}", &out)
        transactions = []
        numbers = [:]
    }

    // ── Parts ──

    /// nil: the record is not an event of a transaction.
    package static func event(_ record: borrowing RecordRef) -> TransactionFields? {
        guard let fields = TransactionFields(record), fields.isEvent,
            fields.transactionID != nil
        else { return nil }
        return fields
    }

    package func has(_ fields: TransactionFields) -> Bool {
        numbers[unsafe Array(fields.id)] != nil
    }

    package mutating func take(_ entry: [UInt8], _ fields: TransactionFields, _ record: RecordRef) {
        let id = unsafe Array(fields.id)
        let number = numbers[id] ?? transactions.count
        if number == transactions.count {
            numbers[id] = number
            transactions.append((head(fields, record), []))
        } else {
            transactions[number].events.append(0x2c)
        }
        transactions[number].events += entry
    }

    /// `{"apptxn/id":…,"apptxn/logs":[`
    package func head(_ fields: TransactionFields, _ record: borrowing RecordRef) -> [UInt8] {
        let process = record.thread.process
        var out: [UInt8] = []
        Literal.append("{\"apptxn/id\":", &out)
        _ = JSONText.string(fields.id, &out)
        Literal.append(",\"apptxn/usecase\":", &out)
        out.append(contentsOf: "\(fields.transactionID?.usecase ?? 0)".utf8)
        let words: [(StaticString, String?, String)] = [
            (",\"apptxn/user-agent-device-make\":", device.make, "device.manufacturer"),
            (",\"apptxn/user-agent-device-os\":", device.os, "os.type"),
            (",\"apptxn/user-agent-device-os-version\":", device.osVersion, "os.version"),
        ]
        for (name, given, attribute) in words {
            Literal.append(name, &out)
            var word = given ?? process.attribute(attribute) ?? ""
            word.withUTF8 {
                let text = UnsafeRawBufferPointer($0)
                let end = UTF8Scan.end(of: text, at: TransactionsDocument.deviceBytesMax)
                // SAFETY: a shorter view of the same bytes.
                _ = unsafe JSONText.string(UnsafeRawBufferPointer(rebasing: text[..<end]), &out)
            }
        }
        Literal.append(",\"apptxn/logs\":[", &out)
        return out
    }

    /// `{"apptxnlog/usecase-event":…}`
    /// - Parameters:
    ///   - textMax: bytes of the description at most.
    ///   - codeMax: of the error's code.
    package static func append(
        _ fields: TransactionFields, _ record: borrowing RecordRef, textMax: Int = .max,
        codeMax: Int = .max, _ out: inout [UInt8]
    ) {
        Literal.append("{\"apptxnlog/usecase-event\":", &out)
        out.append(contentsOf: "\(fields.event ?? 0)".utf8)
        Literal.append(",\"apptxnlog/timestamp\":\"", &out)
        let seconds = Int64(clamping: record.timeNs / 1_000_000_000)
        out.append(contentsOf: Times.httpDate(seconds).utf8)
        Literal.append("\",\"apptxnlog/in-ctx-err-code\":", &out)
        if fields.hasError {
            string(fields.errorCode, codeMax, &out)
        } else {
            Literal.append("null", &out)
        }
        if fields.hasDescription {
            Literal.append(",\"apptxnlog/in-ctx-err-desc\":", &out)
            string(fields.errorDescription, textMax, &out)
        }
        out.append(0x7d)
    }

    /// A truncated string ends in `…`.
    @safe private static func string(
        _ text: UnsafeRawBufferPointer, _ bytesMax: Int, _ out: inout [UInt8]
    ) {
        guard text.count > bytesMax else {
            _ = JSONText.string(text, &out)
            return
        }
        let end = UTF8Scan.end(of: text, at: bytesMax)
        // SAFETY: a shorter view of the same bytes.
        _ = unsafe JSONText.string(UnsafeRawBufferPointer(rebasing: text[..<end]), mark: "…", &out)
    }
}
