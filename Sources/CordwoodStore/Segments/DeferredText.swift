// Makes the text of a deferred record (FORMAT §8.7) from its format and the copied arguments. The C
// library prints each directive, one at a time, in the C locale. The content of a damaged or
// hostile file is checked: missing arguments or absurd widths end the text.
// SAFETY: arguments are slices that were checked against their types; a directive's own format is
// built from parts that PrintfFormat has read, for exactly one value of that type.

import CShims
import CordwoodCore
import Glibc

package final class DeferredText {
    /// Larger widths and precisions are cut to this.
    static let numberMax = 1 << 20
    /// Longer text is cut.
    static let bytesMax = 64 << 20

    private let out = ReadBuffer()
    private var values: [Value] = []

    package init() {}

    private struct Value {
        var type: UInt8
        var at: Int
        /// Bytes of a string's content; -1: NULL.
        var count: Int
    }

    /// The size of the arguments at the start of these bytes; nil if they do not fit.
    @safe package static func size(
        _ types: UnsafeRawBufferPointer, _ bytes: UnsafeRawBufferPointer
    ) -> Int? {
        var at = 0
        for index in 0..<types.count {
            guard let value = value(Bytes.u8(types, index), bytes, &at) else { return nil }
            _ = value
        }
        return at
    }

    /// Reads the argument at `at` and moves past it.
    @safe private static func value(
        _ type: UInt8, _ bytes: UnsafeRawBufferPointer, _ at: inout Int
    ) -> Value? {
        let fixed = ArgumentType.fixedBytes(type)
        guard fixed > 0, bytes.count &- at >= fixed else { return nil }
        var value = Value(type: type, at: at, count: fixed)
        at &+= fixed
        guard type == ArgumentType.text || type == ArgumentType.wide else { return value }
        let word = Bytes.u32(bytes, value.at)
        value.at = at
        value.count = -1
        guard word != LengthWord.null else { return value }
        value.count =
            Int(word & ~LengthWord.cut) &* (type == ArgumentType.wide ? 4 : 1)
        guard bytes.count &- at >= value.count else { return nil }
        at &+= value.count
        return value
    }

    /// Sets the record's message, which stays valid until the next call.
    package func render(_ record: inout RecordRef) {
        guard record.isDeferred else { return }
        record.message = record.format
        defer { record.originalLength = UInt64(record.message.count) }
        if record.style == SiteLayout.styleText { return }
        guard parse(record) else { return }
        out.clear()
        if record.style == SiteLayout.styleBraces || record.style == SiteLayout.styleSwift {
            if let text = braces(record) {
                unsafe text.withUnsafeBytes { out.append($0) }
                record.message = unsafe out.bytes
            }
            return
        }
        var format = PrintfFormat(record.format)
        var isPlain = true
        while out.count < Self.bytesMax {
            switch format.piece() {
            case .end:
                // Without a directive, the format itself is the text.
                if !isPlain { record.message = unsafe out.bytes }
                return
            case .invalid: return
            case .literal(let from, let to):
                unsafe out.append(Bytes.slice(record.format, from, to &- from) ?? Bytes.none)
                if to &- from == 1 { isPlain = false }
            case .directive(let directive):
                isPlain = false
                guard print(directive, record) else { return }
            }
        }
        record.flags.insert(.truncated)
        record.message = unsafe out.bytes
    }

    /// Formats a std::format string; nil if it does not fit its arguments.
    private func braces(_ record: borrowing RecordRef) -> [UInt8]? {
        var text = BraceText(isSwift: record.style == SiteLayout.styleSwift)
        var format = BraceFormat(record.format)
        while text.out.count < Self.bytesMax {
            switch format.piece() {
            case .end: return text.out
            case .invalid: return nil
            case .literal(let from, let to):
                unsafe text.put(Bytes.slice(record.format, from, to &- from) ?? Bytes.none)
            case .field(let field):
                guard field.argument < values.count,
                    let width = braceNumber(field.width, record, none: 0),
                    let precision = braceNumber(field.precision, record, none: -1)
                else { return nil }
                let fill = unsafe Array(
                    unsafe Bytes.slice(
                        record.format, field.fillStart, field.fillEnd &- field.fillStart)
                        ?? Bytes.none)
                guard
                    text.put(
                        value(field.argument, record), field, fill: fill.isEmpty ? [0x20] : fill,
                        width: min(width, Self.numberMax),
                        precision: precision < 0 ? nil : min(precision, Self.numberMax))
                else { return nil }
            }
        }
        return text.out
    }

    private func braceNumber(
        _ number: BraceFormat.Number, _ record: borrowing RecordRef, none: Int
    ) -> Int? {
        switch number {
        case .none: return none
        case .value(let value): return value
        case .argument(let index):
            guard index < values.count else { return nil }
            switch value(index, record) {
            case .signed(let value) where value >= 0: return Int(value)
            case .unsigned(let value) where value <= UInt64(Int32.max): return Int(value)
            default: return nil
            }
        }
    }

    private func value(_ index: Int, _ record: borrowing RecordRef) -> BraceText.Value {
        let value = values[index]
        let at = value.at
        let bytes = record.arguments
        switch value.type {
        case ArgumentType.int:
            return .signed(Int64(Int32(bitPattern: Bytes.u32(bytes, at))))
        case ArgumentType.long: return .signed(Int64(bitPattern: Bytes.u64(bytes, at)))
        case ArgumentType.uint: return .unsigned(UInt64(Bytes.u32(bytes, at)))
        case ArgumentType.ulong: return .unsigned(Bytes.u64(bytes, at))
        case ArgumentType.bool: return .bool(Bytes.u8(bytes, at) != 0)
        case ArgumentType.char: return .char(Bytes.u8(bytes, at))
        case ArgumentType.double:
            let number = Double(bitPattern: Bytes.u64(bytes, at))
            return .double(number, "\(number)")
        case ArgumentType.float:
            let number = Float(bitPattern: Bytes.u32(bytes, at))
            return .double(Double(number), "\(number)")
        case ArgumentType.extended: return unsafe .extended(Array(slice(value, record)))
        case ArgumentType.pointer: return .pointer(Bytes.u64(bytes, at))
        default: return unsafe .text(value.count < 0 ? [] : Array(slice(value, record)))
        }
    }

    private func parse(_ record: borrowing RecordRef) -> Bool {
        values.removeAll(keepingCapacity: true)
        var at = 0
        for index in 0..<record.argumentTypes.count {
            guard
                let value = Self.value(Bytes.u8(record.argumentTypes, index), record.arguments, &at)
            else { return false }
            values.append(value)
        }
        return true
    }

    /// Prints one directive. False: the arguments do not fit it.
    private func print(
        _ directive: PrintfFormat.Directive, _ record: borrowing RecordRef
    ) -> Bool {
        var spec = Spec()
        for index in directive.flagsStart..<directive.flagsEnd {
            spec.add(flag: Bytes.u8(record.format, index))
        }
        switch directive.width {
        case .none: break
        case .value(let width): spec.width = width
        case .argument(let index):
            guard let width = number(index, record) else { return false }
            spec.width = abs(width)
            if width < 0 { spec.add(flag: 0x2D) }
        }
        switch directive.precision {
        case .none: break
        case .value(let precision): spec.precision = precision
        case .argument(let index):
            guard let precision = number(index, record) else { return false }
            spec.precision = precision < 0 ? nil : precision
        }
        spec.width = min(spec.width, Self.numberMax)
        spec.precision = spec.precision.map { min($0, Self.numberMax) }
        // errno follows the arguments.
        let index = directive.argument < 0 ? values.count &- 1 : directive.argument
        guard index >= 0, index < values.count, values[index].type == directive.type else {
            return false
        }
        let value = values[index]
        switch directive.type {
        case ArgumentType.text:
            put(spec, value.count < 0 ? nil : slice(value, record))
        case ArgumentType.error:
            unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
                let count = unsafe cwi_error_text(
                    Bytes.u32(record.arguments, value.at), buffer.baseAddress!, 256)
                unsafe put(spec, UnsafeRawBufferPointer(start: buffer.baseAddress!, count: count))
            }
        case ArgumentType.wide:
            putWide(spec, value, record)
        case ArgumentType.int where directive.conversion == 0x43 || isLong(directive, record):
            // %lc prints one character.
            let scalar = Unicode.Scalar(Bytes.u32(record.arguments, value.at)) ?? "\u{FFFD}"
            spec.precision = nil
            let bytes = Array(String(scalar).utf8)
            unsafe bytes.withUnsafeBytes { put(spec, $0) }
        default:
            putNumber(spec, directive, value, record)
        }
        return true
    }

    /// `%lc` is the one int whose modifier means another conversion.
    private func isLong(
        _ directive: PrintfFormat.Directive, _ record: borrowing RecordRef
    ) -> Bool {
        directive.conversion == 0x63
            && Bytes.u8(record.format, directive.end &- 2) == 0x6C
    }

    private func number(_ index: Int, _ record: borrowing RecordRef) -> Int? {
        guard index < values.count, values[index].type == ArgumentType.int else { return nil }
        return Int(Int32(bitPattern: Bytes.u32(record.arguments, values[index].at)))
    }

    @safe private func slice(
        _ value: Value, _ record: borrowing RecordRef
    ) -> UnsafeRawBufferPointer {
        unsafe Bytes.slice(record.arguments, value.at, value.count) ?? Bytes.none
    }

    // MARK: Output

    /// Prints a string in its width. nil means NULL, which the C library shows if there is room for
    /// six bytes.
    @safe private func put(_ spec: Spec, _ text: UnsafeRawBufferPointer?) {
        var text =
            unsafe text ?? (spec.precision ?? 6 >= 6 ? Bytes.literal("(null)") : Bytes.none)
        if let precision = spec.precision, precision < text.count {
            unsafe text = unsafe Bytes.slice(text, 0, precision) ?? Bytes.none
        }
        let pad = spec.width &- text.count
        if !spec.isLeft { spaces(pad) }
        out.append(text)
        if spec.isLeft { spaces(pad) }
    }

    /// Prints UTF-8. The precision counts bytes, and only whole characters are shown.
    private func putWide(_ spec: Spec, _ value: Value, _ record: borrowing RecordRef) {
        guard value.count >= 0 else { return put(spec, nil) }
        var bytes: [UInt8] = []
        let most = spec.precision ?? .max
        for at in stride(from: value.at, to: value.at &+ value.count, by: 4) {
            let scalar = Unicode.Scalar(Bytes.u32(record.arguments, at)) ?? "\u{FFFD}"
            let character = String(scalar).utf8
            if bytes.count &+ character.count > most { break }
            bytes.append(contentsOf: character)
        }
        unsafe bytes.withUnsafeBytes { put(spec, $0) }
    }

    private func spaces(_ count: Int) {
        var left = count
        while left > 0 {
            let part = min(left, 32)
            unsafe out.append(
                Bytes.slice(Bytes.literal("                                "), 0, part)
                    ?? Bytes.none)
            left &-= part
        }
    }

    private func putNumber(
        _ spec: Spec, _ directive: PrintfFormat.Directive, _ value: Value,
        _ record: borrowing RecordRef
    ) {
        var format = Array("%".utf8)
        format.append(contentsOf: spec.flags)
        if spec.width > 0 { format.append(contentsOf: String(spec.width).utf8) }
        if let precision = spec.precision {
            format.append(0x2E)
            format.append(contentsOf: String(precision).utf8)
        }
        var at = directive.end &- 2
        var modifier: [UInt8] = []
        while at > directive.start, Self.isModifier(Bytes.u8(record.format, at)) {
            modifier.insert(Bytes.u8(record.format, at), at: 0)
            at &-= 1
        }
        format.append(contentsOf: modifier)
        format.append(directive.conversion)
        format.append(0)
        unsafe format.withUnsafeBytes { format in
            unsafe withUnsafeTemporaryAllocation(byteCount: 512, alignment: 1) { buffer in
                let from = slice(value, record).baseAddress!
                let text = unsafe format.baseAddress!.assumingMemoryBound(to: CChar.self)
                let small = unsafe buffer.baseAddress!.assumingMemoryBound(to: CChar.self)
                let count = unsafe Int(cwi_print(small, 512, text, directive.type, from))
                if count < 512 {
                    unsafe out.append(UnsafeRawBufferPointer(start: small, count: max(0, count)))
                    return
                }
                // Exclude the terminating NUL.
                let large = UnsafeMutablePointer<CChar>.allocate(capacity: count + 1)
                unsafe cwi_print(large, count + 1, text, directive.type, from)
                unsafe out.append(UnsafeRawBufferPointer(start: large, count: count))
                unsafe large.deallocate()
            }
        }
    }

    private static func isModifier(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x68, 0x6C, 0x71, 0x6A, 0x7A, 0x5A, 0x74, 0x4C: true
        default: false
        }
    }

    private struct Spec {
        var flags: [UInt8] = []
        var width = 0
        var precision: Int?

        var isLeft: Bool { flags.contains(0x2D) }

        mutating func add(flag: UInt8) {
            if !flags.contains(flag) { flags.append(flag) }
        }
    }
}
