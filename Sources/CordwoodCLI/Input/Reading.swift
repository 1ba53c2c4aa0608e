// A verb's pass over records: opens stores, hands over each record, reports damage on stderr as it
// is met and continues after it, and determines the exit code at the end.

import Cordwood

final class Reading {
    /// The number of damaged places reported one by one; the rest is counted.
    private static let toldMax = 20

    /// Facts of archives that this user's commands remember.
    static let facts = FactsCache.find()

    private let reader: StoreReader
    private var problemCount = 0
    private var encryptedCount = 0
    private var isUnreadable = false

    init(paths: [String], options: ReaderOptions) throws(Failure) {
        var options = options
        options.readsAhead = true
        options.facts = Reading.facts
        do throws(ReadProblem) {
            reader = try StoreReader(paths: paths, options: options)
        } catch {
            throw Failure(.cannotOpen, error.line)
        }
        reader.onProgress = ReadProgress.update
    }

    /// Nil at the end, or while following when no record is due. The record is valid until the next
    /// call.
    func next() -> RecordRef? {
        var record = RecordRef()
        return next(&record) ? record : nil
    }

    /// The same, into the caller's record, which copies less. False: the end.
    func next(_ record: inout RecordRef) -> Bool {
        while true {
            do throws(ReadProblem) {
                return try reader.advance(into: &record)
            } catch {
                tell(error)
            }
        }
    }

    /// The messages of the next records, each followed by a newline, if these have no fields of
    /// their own; nil: `next` returns the next record. Valid until the next call.
    @safe func nextTexts() -> UnsafeRawBufferPointer? { reader.nextTexts() }

    /// While following, after `next` returned nil: calls `look` whenever there may be more.
    /// - Parameter until: UTC ns, when to stop; 0: never.
    func follow(until: UInt64, _ look: () -> Void) {
        Reading.facts?.save()
        while true {
            // Read before the last look, which must see everything that was written in time.
            let now = TimeArgument.now()
            let isLast = until > 0 && now >= until && now - until >= Reading.lateNs
            look()
            Output.standard.flush()
            if isLast || Output.standard.isAbandoned { return }
            reader.wait()
        }
    }

    /// Longer than a reader holds a record back for slower threads.
    private static let lateNs: UInt64 = 200_000_000

    private func tell(_ problem: ReadProblem) {
        if case .locked = problem {
            encryptedCount += 1
            if encryptedCount <= Reading.toldMax { Complaint.tell(problem.line) }
            return
        }
        if case .system = problem { isUnreadable = true }
        problemCount += 1
        if problemCount <= Reading.toldMax { Complaint.tell(problem.line) }
    }

    /// Ends without a look at problems.
    func leave() {
        ReadProgress.clear()
        Output.standard.flush()
        Reading.facts?.save()
    }

    /// The command's exit code.
    func end() throws(Failure) {
        leave()
        if reader.unverifiedCount > 0 {
            let (count, verb) = (reader.unverifiedCount, reader.unverifiedCount == 1 ? "is" : "are")
            Complaint.tell(Counted.text(count, "record") + " \(verb) unverified (unclean boot)")
        }
        let closed = encryptedCount - Reading.toldMax
        if closed > 0 { Complaint.tell(Counted.text(closed, "more encrypted archive")) }
        guard problemCount > 0 else {
            if encryptedCount > 0 { throw Failure(.cannotOpen) }
            return
        }
        let more = problemCount - Reading.toldMax
        throw Failure(
            isUnreadable || encryptedCount > 0 ? .cannotOpen : .damaged,
            more > 0 ? "\(more) more damaged places" : "")
    }
}

/// A record as a line on standard output.
struct LineStyle {
    let isJSON: Bool
    private let lines: TextLines
    private let json = JSONLines()
    private let form: TextForm
    /// The form of a part of a text that stands by itself.
    var piece: TextForm { form == .raw ? .raw : .oneLine }

    init(_ selection: Selection, _ text: TextOption) {
        self.init(isJSON: selection.json, isUTC: selection.utc, text)
    }

    init(isJSON: Bool, isUTC: Bool, _ text: TextOption) {
        self.isJSON = isJSON
        form = text.rawControl ? .raw : .lines
        lines = TextLines(
            utc: isUTC, color: Output.standard.hasColor, form: form,
            origin: text.origin ? .all : .elsewhere)
        Output.standard.isExact = text.rawControl
    }

    /// - Parameter marked: parts of `shown` that the text shows in another colour.
    func append(
        _ record: borrowing RecordRef, to bytes: inout GrowingBytes, marked: [Range<Int>] = []
    ) {
        if isJSON {
            json.append(record, to: &bytes)
        } else if record.kind == LineStyle.exchange {
            appendExchange(record, marked, to: &bytes)
        } else {
            lines.append(record, to: &bytes, marked: marked)
        }
    }

    /// The part of a text line after the logger's name.
    func shown(_ record: borrowing RecordRef) -> TextLine.Shown {
        guard record.kind == LineStyle.exchange else { return TextLine.Shown(record, form: form) }
        var text = TextLine.Shown(LineStyle.withoutParts(record), form: form)
        text.bytes += LineStyle.id(record)
        return text
    }

    /// CW_KIND_HTTP
    private static let exchange: UInt8 = 4

    /// Its message, and the id for `http show`; headers and bodies would fill pages.
    private func appendExchange(
        _ record: borrowing RecordRef, _ marked: [Range<Int>], to bytes: inout GrowingBytes
    ) {
        lines.append(LineStyle.withoutParts(record), to: &bytes, marked: marked)
        let end = bytes.count - 1
        guard end >= 0, unsafe bytes.bytes[end] == 0x0a else { return }
        bytes.resize(end)
        unsafe LineStyle.id(record).withUnsafeBytes { bytes.append($0) }
        bytes.append(0x0a)
    }

    private static func withoutParts(_ record: borrowing RecordRef) -> RecordRef {
        var line = copy record
        unsafe line.sections = UnsafeRawBufferPointer(start: nil, count: 0)
        return line
    }

    private static func id(_ record: borrowing RecordRef) -> [UInt8] {
        let id = CapturedExchange(record, bodies: false)?.id ?? ""
        return id.isEmpty ? [] : Array(" http.id=\(PlainText.oneLine(id))".utf8)
    }

    func print(_ record: borrowing RecordRef) {
        append(record, to: &Output.standard.bytes)
        Output.standard.settle()
    }
}
