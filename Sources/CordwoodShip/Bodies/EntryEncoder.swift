// Bodies that consist only of entries: a sequence in which each ends with a separator (lines,
// concatenated objects), or the elements of one JSON array. Each form has a function, in its own
// file, that makes the entry of a record. Buffers nothing. One thread at a time.

import CordwoodFormats
import CordwoodStore

struct EntryEncoder: RecordEncoder {
    enum Frame {
        /// Entries end themselves.
        case none
        /// `[`, entries with a comma and a newline between them, `]`.
        case array
    }

    private let frame: Frame
    private let render: RenderEntry
    let isAnsweredByID: Bool
    private var isFirst = true

    init(_ frame: Frame, isAnsweredByID: Bool = false, _ render: @escaping RenderEntry) {
        self.frame = frame
        self.isAnsweredByID = isAnsweredByID
        self.render = render
    }

    var frameBytes: Int { frame == .array ? 3 : 0 }

    mutating func begin(_ out: inout [UInt8]) {
        isFirst = true
        if frame == .array { out.append(0x5b) }
    }

    func makeEntry(
        _ record: RecordRef, distinctNs: UInt64, messageBytesMax: Int, _ out: inout [UInt8]
    ) {
        render(Cut.message(of: record, to: messageBytesMax), &out)
    }

    func cost(_ entry: [UInt8], _ record: RecordRef) -> Int {
        entry.count + (frame == .array ? 2 : 0)
    }

    mutating func take(_ entry: [UInt8], _ record: RecordRef, _ out: inout [UInt8]) {
        if frame == .array, !isFirst { Literal.append(",\n", &out) }
        isFirst = false
        out += entry
    }

    mutating func end(_ out: inout [UInt8]) {
        if frame == .array { Literal.append("]\n", &out) }
    }
}

/// Entries that need no files of their own.
enum CommonEntries {
    /// A JSON line's object, without its newline.
    static let json: RenderEntry = { record, out in
        out.append(0x7b)
        appendMembers(record, &out)
        out.append(0x7d)
    }

    /// The members of a JSON line, with a mark if the message was cut; no key appears twice.
    static func appendMembers(_ record: RecordRef, _ out: inout [UInt8]) {
        JSONLine.appendHead(record, mark: Cut.mark(of: record), to: &out)
        let fields = UniqueFields.of(record)
        if !fields.isEmpty {
            Literal.append(",\"fields\":", &out)
            JSONMembers.object(of: fields, &out)
        }
        JSONLine.appendTail(record, to: &out)
    }

    /// B-SAP-4: only logs, as `cordwood export --format sap`.
    static let sap: RenderEntry = { record, out in
        guard record.kind == 0 else { return }
        SAPLine.append(record, mark: Cut.mark(of: record), to: &out)
    }
}
