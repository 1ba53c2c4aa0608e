// Makes the text of a deferred record (FORMAT §8.7) from its format and the copied arguments. The C
// library prints each directive, one at a time, in the C locale. The content of a damaged or
// hostile file is checked: missing arguments or absurd widths end the text. Integers, strings and
// doubles in fixed notation, without flags and widths, are printed here: the same text in less
// time.
// SAFETY: arguments are slices that were checked against their types; a directive's own format is
// built from parts that PrintfFormat has read, for exactly one value of that type.

import CShims
import CordwoodCore

package final class DeferredText {
    /// Larger widths and precisions are cut to this.
    static let numberMax = 1 << 20
    /// Longer text is cut.
    static let bytesMax = 64 << 20
    /// Format and arguments up to this size never make that much text, unless there is a width.
    static let shortMax = 1 << 20

    /// One thread at a time, and printing never calls back: accesses need no check.
    @exclusivity(unchecked) private var printer = ArgumentPrinter()

    package init() {}

    /// Sets the record's message, which stays valid until the next call.
    package func render(_ record: inout RecordRef) {
        if record.isDeferred { unsafe printer.render(&record) }
    }

    /// The size of the arguments at the start of these bytes; nil if they do not fit.
    @safe package static func size(
        _ types: UnsafeRawBufferPointer, _ bytes: UnsafeRawBufferPointer
    ) -> Int? {
        var at = 0
        for index in 0..<types.count {
            guard ArgumentPrinter.value(Bytes.u8(types, index), bytes, &at) != nil else {
                return nil
            }
        }
        return at
    }
}

/// What a text is made from: views of the record's. The record itself would be copied when passed
/// on.
@safe private struct DeferredParts {
    let style: UInt8
    /// `RecordRef.formatNumber`
    let number: UInt64
    @safe let format: UnsafeRawBufferPointer
    @safe let argumentTypes: UnsafeRawBufferPointer
    @safe let arguments: UnsafeRawBufferPointer
}

/// The state of printing: the text, and what it is made from.
struct ArgumentPrinter: ~Copyable {
    private var out = GrowingBytes()
    private var brace = BraceText()
    private var values: [Value] = []
    /// By a hash of the format.
    private var plans = [PrintfPlan?](repeating: nil, count: ArgumentPrinter.plansMost)
    /// By the format's number; empty before the first format with a number.
    private var numbered: [NumberedPlan] = []
    private static let plansMost = 64
    /// The arguments are read as they are printed; `values` is then empty.
    private var isInOrder = false
    /// Offset of the next argument.
    private var argumentAt = 0

    init() {}

    private struct NumberedPlan {
        /// 0: no plan.
        var number: UInt64 = 0
        var plan: PrintfPlan?
    }

    fileprivate struct Value {
        var type: UInt8
        var at: Int
        /// Bytes of a string's content; -1: NULL.
        var count: Int
    }

    /// Reads the argument at `at` and moves past it.
    @safe fileprivate static func value(
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

    mutating func render(_ record: inout RecordRef) {
        out.clear(keeping: .max)
        record.message = record.format
        defer {
            record.originalLength = UInt64(record.message.count)
            if out.failed { record.flags.insert(.truncated) }
        }
        if record.style == SiteLayout.styleText { return }
        let parts = unsafe DeferredParts(
            style: record.style, number: record.formatNumber, format: record.format,
            argumentTypes: record.argumentTypes, arguments: record.arguments)
        if record.style == SiteLayout.styleBraces || record.style == SiteLayout.styleSwift {
            guard parse(parts) else { return }
            if braces(parts) { record.message = unsafe out.bytes }
            return
        }
        let plan = plan(parts)
        isInOrder =
            plan.isInOrder
            && parts.format.count &+ parts.arguments.count <= DeferredText.shortMax
        argumentAt = 0
        guard isInOrder || parse(parts) else { return }
        for index in 0..<plan.steps.count {
            guard out.count < DeferredText.bytesMax else { break }
            if case .literal(let from, let to) = plan.steps[index], to <= parts.format.count {
                unsafe out.append(text: UnsafeRawBufferPointer(rebasing: parts.format[from..<to]))
                continue
            }
            guard print(plan.steps[index], plan, parts) else { return }
        }
        if out.count >= DeferredText.bytesMax {
            record.flags.insert(.truncated)
        } else if plan.isPlain {
            return
        }
        record.message = unsafe out.bytes
    }

    /// A known plan, or a new one.
    @inline(__always)
    private mutating func plan(_ record: DeferredParts) -> PrintfPlan {
        let slot = Int(truncatingIfNeeded: record.number & UInt64(Self.plansMost - 1))
        if record.number > 0, slot < numbered.count, numbered[slot].number == record.number,
            let known = numbered[slot].plan
        {
            return known
        }
        let found = findPlan(record)
        if record.number == 0 { return found }
        if numbered.isEmpty {
            numbered = Array(repeating: NumberedPlan(), count: Self.plansMost)
        }
        numbered[slot] = NumberedPlan(number: record.number, plan: found)
        return found
    }

    /// Finds the plan by the format and its types.
    @inline(never)
    private mutating func findPlan(_ record: DeferredParts) -> PrintfPlan {
        let format = record.format
        let end = Bytes.u64(format, max(0, format.count &- 8))
        let slot = Int(truncatingIfNeeded: (end ^ end >> 23 ^ UInt64(format.count)) & 63)
        if let known = plans[slot], known.isOf(format, record.argumentTypes) { return known }
        let made = PrintfPlan(format, types: record.argumentTypes)
        plans[slot] = made
        return made
    }

    /// False: the arguments do not fit, so the text is the format.
    @inline(__always)
    private mutating func print(
        _ step: PrintfPlan.Step, _ plan: PrintfPlan, _ record: DeferredParts
    ) -> Bool {
        switch step {
        case .literal(let from, let to):
            unsafe out.append(text: Bytes.slice(record.format, from, to &- from) ?? Bytes.none)
        case .signed(let index, let type):
            let at = place(index, type, type == ArgumentType.int ? 4 : 8, record)
            guard at >= 0 else { return false }
            let number =
                type == ArgumentType.int
                ? Int64(Int32(bitPattern: Bytes.u32(record.arguments, at)))
                : Int64(bitPattern: Bytes.u64(record.arguments, at))
            if number < 0 { out.append(0x2D) }
            out.append(decimal: number.magnitude)
        case .unsigned(let index, let type):
            let at = place(index, type, type == ArgumentType.int ? 4 : 8, record)
            guard at >= 0 else { return false }
            out.append(
                decimal: type == ArgumentType.int
                    ? UInt64(Bytes.u32(record.arguments, at)) : Bytes.u64(record.arguments, at))
        case .text(let index):
            guard let value = takeText(index, record) else { return false }
            let isNull = value.count < 0
            out.append(text: isNull ? Bytes.literal("(null)") : slice(value, record))
        case .fixed(let index, let digits, let directive):
            let at = place(index, ArgumentType.double, 8, record)
            guard at >= 0 else { return false }
            let number = Double(bitPattern: Bytes.u64(record.arguments, at))
            if FixedText.append(number, digits: digits, to: &out) { return true }
            guard !isInOrder || parse(record) else { return false }
            return print(plan.directives[directive], record)
        case .other(let directive): return print(plan.directives[directive], record)
        case .invalid: return false
        }
        return true
    }

    /// The offset of an argument of this size and type; negative if it is missing.
    @inline(__always)
    private mutating func place(
        _ index: Int, _ type: UInt8, _ bytes: Int, _ record: DeferredParts
    ) -> Int {
        guard isInOrder else {
            return index < values.count && values[index].type == type ? values[index].at : -1
        }
        let at = argumentAt
        guard record.arguments.count &- at >= bytes else { return -1 }
        argumentAt = at &+ bytes
        return at
    }

    private mutating func takeText(_ index: Int, _ record: DeferredParts) -> Value? {
        if isInOrder { return Self.value(ArgumentType.text, record.arguments, &argumentAt) }
        let isThere = index < values.count && values[index].type == ArgumentType.text
        return isThere ? values[index] : nil
    }

    /// Formats a std::format string; false if it does not fit its arguments.
    private mutating func braces(_ record: DeferredParts) -> Bool {
        var format = BraceFormat(record.format)
        while out.count < DeferredText.bytesMax {
            switch format.piece() {
            case .end: return true
            case .invalid: return false
            case .literal(let from, let to):
                unsafe out.append(Bytes.slice(record.format, from, to &- from) ?? Bytes.none)
            case .field(let field):
                guard field.argument < values.count,
                    let width = braceNumber(field.width, record, none: 0),
                    let precision = braceNumber(field.precision, record, none: -1)
                else { return false }
                let chosen = field.fillEnd &- field.fillStart
                let fill =
                    chosen > 0 ? Bytes.slice(record.format, field.fillStart, chosen) : nil
                guard
                    brace.put(
                        value(field.argument, record), field,
                        isSwift: record.style == SiteLayout.styleSwift,
                        fill: unsafe fill ?? Bytes.literal(" "),
                        width: min(width, DeferredText.numberMax),
                        precision: precision < 0 ? nil : min(precision, DeferredText.numberMax),
                        into: &out)
                else { return false }
            }
        }
        return true
    }

    private func braceNumber(
        _ number: BraceFormat.Number, _ record: DeferredParts, none: Int
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

    private func value(_ index: Int, _ record: DeferredParts) -> BraceText.Value {
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
        default: return unsafe .text(value.count < 0 ? Bytes.none : slice(value, record))
        }
    }

    private mutating func parse(_ record: DeferredParts) -> Bool {
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
    private mutating func print(
        _ directive: PrintfFormat.Directive, _ record: DeferredParts
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
        spec.width = min(spec.width, DeferredText.numberMax)
        spec.precision = spec.precision.map { min($0, DeferredText.numberMax) }
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
        _ directive: PrintfFormat.Directive, _ record: DeferredParts
    ) -> Bool {
        directive.conversion == 0x63
            && Bytes.u8(record.format, directive.end &- 2) == 0x6C
    }

    private func number(_ index: Int, _ record: DeferredParts) -> Int? {
        guard index < values.count, values[index].type == ArgumentType.int else { return nil }
        return Int(Int32(bitPattern: Bytes.u32(record.arguments, values[index].at)))
    }

    @safe private func slice(
        _ value: Value, _ record: DeferredParts
    ) -> UnsafeRawBufferPointer {
        unsafe Bytes.slice(record.arguments, value.at, value.count) ?? Bytes.none
    }

    // MARK: Output

    /// Prints a string padded to its width. nil means NULL, which the C library shows if there is
    /// room for six bytes.
    @safe private mutating func put(_ spec: Spec, _ text: UnsafeRawBufferPointer?) {
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
    private mutating func putWide(_ spec: Spec, _ value: Value, _ record: DeferredParts) {
        guard value.count >= 0 else { return put(spec, nil) }
        var bytes = GrowingBytes()
        let most = spec.precision ?? .max
        for at in stride(from: value.at, to: value.at &+ value.count, by: 4) {
            let scalar = Unicode.Scalar(Bytes.u32(record.arguments, at)) ?? "\u{FFFD}"
            let character = UTF8.encode(scalar)!
            if bytes.count &+ character.count > most { break }
            for byte in character { bytes.append(byte) }
        }
        unsafe put(spec, bytes.bytes)
        if bytes.failed { out.fail() }
    }

    private mutating func spaces(_ count: Int) {
        var left = count
        while left > 0 {
            let part = min(left, 32)
            unsafe out.append(
                Bytes.slice(Bytes.literal("                                "), 0, part)
                    ?? Bytes.none)
            left &-= part
        }
    }

    private mutating func putNumber(
        _ spec: Spec, _ directive: PrintfFormat.Directive, _ value: Value,
        _ record: DeferredParts
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
            let text = unsafe format.baseAddress!.assumingMemoryBound(to: CChar.self)
            unsafe out.print(text, directive.type, slice(value, record).baseAddress!)
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

extension GrowingBytes {
    /// Appends what the C library prints for one value of that type.
    mutating func print(_ format: UnsafePointer<CChar>, _ type: UInt8, _ value: UnsafeRawPointer) {
        let start = count
        var room = 512
        while reserve(room) {
            let text = unsafe (base + start).assumingMemoryBound(to: CChar.self)
            let printed = unsafe Int(cwi_print(text, room, format, type, value))
            // The C library may also run out of memory.
            if printed < 0 { return fail() }
            // The text ends in a NUL.
            if printed < room { return resize(start &+ printed) }
            room = printed &+ 1
        }
    }
}
