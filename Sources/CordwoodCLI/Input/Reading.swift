// A verb's pass over records: opens stores, hands over each record, reports damage on stderr as it
// is met and continues after it, and determines the exit code at the end.

import Cordwood
import Glibc

final class Reading {
    /// The number of damaged places reported one by one; the rest is counted.
    private static let toldMax = 20

    private let reader: StoreReader
    private var count: UInt64 = 0
    private var problemCount = 0
    private var encryptedCount = 0
    private var isUnreadable = false

    init(paths: [String], options: ReaderOptions) throws(Failure) {
        do throws(ReadProblem) {
            reader = try StoreReader(paths: paths, options: options)
        } catch {
            throw Failure(.cannotOpen, Reading.text(error))
        }
    }

    /// Nil at the end, or while following for now. The record is valid until the next call.
    func next() -> RecordRef? {
        while true {
            do throws(ReadProblem) {
                let record = try reader.advance()
                count &+= 1
                if count % ReadProgress.step == 0 { ReadProgress.update(count) }
                return record
            } catch {
                tell(error)
            }
        }
    }

    private func tell(_ problem: ReadProblem) {
        if case .locked = problem {
            encryptedCount += 1
            if encryptedCount <= Reading.toldMax { Complaint.tell(Reading.text(problem)) }
            return
        }
        if case .system = problem { isUnreadable = true }
        problemCount += 1
        if problemCount <= Reading.toldMax { Complaint.tell(Reading.text(problem)) }
    }

    /// The command's exit code.
    func end() throws(Failure) {
        ReadProgress.clear()
        Output.standard.flush()
        if reader.unverifiedCount > 0 {
            Complaint.tell("\(reader.unverifiedCount) records are unverified (unclean boot)")
        }
        let closed = encryptedCount - Reading.toldMax
        if closed > 0 { Complaint.tell("\(closed) more encrypted archives") }
        guard problemCount > 0 else {
            if encryptedCount > 0 { throw Failure(.cannotOpen) }
            return
        }
        let more = problemCount - Reading.toldMax
        throw Failure(
            isUnreadable || encryptedCount > 0 ? .cannotOpen : .damaged,
            more > 0 ? "\(more) more damaged places" : "")
    }

    static func text(_ problem: ReadProblem) -> String {
        switch problem {
        case .damaged(let text): "damaged: \(text)"
        case .version(let text): "newer format: \(text)"
        case .system(let text, let number): unsafe "\(text): \(String(cString: strerror(number)))"
        case .locked(let text): text
        }
    }
}

/// A record as a line on standard output.
struct LineStyle {
    private let isJSON: Bool
    private let isUTC: Bool
    private let form: TextForm

    init(_ selection: Selection, _ text: TextOption) {
        self.init(isJSON: selection.json, isUTC: selection.utc, text)
    }

    init(isJSON: Bool, isUTC: Bool, _ text: TextOption) {
        self.isJSON = isJSON
        self.isUTC = isUTC
        form = text.rawControl ? .raw : .lines
        Output.standard.isExact = text.rawControl
    }

    func append(_ record: RecordRef, to bytes: inout [UInt8]) {
        if isJSON {
            JSONLine.append(record, to: &bytes)
        } else if record.kind == LineStyle.exchange {
            appendExchange(record, to: &bytes)
        } else {
            appendText(record, to: &bytes)
        }
    }

    private func appendText(_ record: RecordRef, to bytes: inout [UInt8]) {
        let hasColor = Output.standard.hasColor
        TextLine.append(record, to: &bytes, utc: isUTC, color: hasColor, form: form)
    }

    /// CW_KIND_HTTP
    private static let exchange: UInt8 = 4

    /// Its message, and the id for `http show`; headers and bodies would fill pages.
    private func appendExchange(_ record: RecordRef, to bytes: inout [UInt8]) {
        let id = CapturedExchange(record, bodies: false)?.id ?? ""
        var line = record
        unsafe line.sections = UnsafeRawBufferPointer(start: nil, count: 0)
        appendText(line, to: &bytes)
        if id.isEmpty || bytes.last != 0x0a { return }
        bytes.removeLast()
        bytes += Array(" http.id=\(PlainText.oneLine(id))\n".utf8)
    }

    func print(_ record: RecordRef) {
        append(record, to: &Output.standard.bytes)
        Output.standard.settle()
    }
}
