// A printf format that was read once: what to print for it, piece by piece. Readers keep one for
// each format that they meet (FORMAT §8.7), because a store has few formats and many records. One
// printer owns it.
// SAFETY: views are compared, not kept: the plan has its own bytes.

import CordwoodCore

final class PrintfPlan {
    enum Step {
        /// From, up to.
        case literal(Int, Int)
        /// An int or long without flags, width and precision: its argument and type.
        case signed(Int, UInt8)
        case unsigned(Int, UInt8)
        /// A string, likewise.
        case text(Int)
        /// A double in fixed notation: its argument, its digits, and the directive's index.
        case fixed(Int, digits: Int, Int)
        /// The index of a directive.
        case other(Int)
        /// The text is the format.
        case invalid

        /// The argument that the step prints by itself, and its type.
        fileprivate var argument: (index: Int, type: UInt8)? {
            switch self {
            case .signed(let index, let type), .unsigned(let index, let type): (index, type)
            case .text(let index): (index, ArgumentType.text)
            case .fixed(let index, _, _): (index, ArgumentType.double)
            case .literal, .other, .invalid: nil
            }
        }
    }

    private let format: [UInt8]
    private let types: [UInt8]
    /// Both, if they are short: compared without counting references.
    private let short: (format: ReadyBytes, types: ReadyBytes)?
    let steps: [Step]
    let directives: [PrintfFormat.Directive]
    /// Without a directive, the format itself is the text.
    let isPlain: Bool
    /// The steps print all arguments in order.
    let isInOrder: Bool

    /// For arguments of these types.
    @safe init(_ text: UnsafeRawBufferPointer, types: UnsafeRawBufferPointer) {
        unsafe format = Array(text)
        unsafe self.types = Array(types)
        if let format = ReadyBytes(text), let types = ReadyBytes(types) {
            short = (format, types)
        } else {
            short = nil
        }
        var pieces = PrintfFormat(text)
        var steps: [Step] = []
        var directives: [PrintfFormat.Directive] = []
        var isPlain = true
        reading: while true {
            switch pieces.piece() {
            case .end: break reading
            case .invalid:
                steps.append(.invalid)
                break reading
            case .literal(let from, let to):
                steps.append(.literal(from, to))
                // Two percent signs, or one byte: copied.
                if to &- from == 1 { isPlain = false }
            case .directive(let directive):
                isPlain = false
                steps.append(Self.step(directive, at: directives.count))
                directives.append(directive)
            }
        }
        self.steps = steps
        self.directives = directives
        self.isPlain = isPlain
        isInOrder = PrintfPlan.areInOrder(steps, self.types)
    }

    private static func areInOrder(_ steps: [Step], _ types: [UInt8]) -> Bool {
        var next = 0
        for step in steps {
            if case .literal = step { continue }
            guard let (index, type) = step.argument, index == next, next < types.count,
                types[next] == type
            else { return false }
            next += 1
        }
        return next == types.count
    }

    @safe @inline(__always)
    func isOf(_ text: UnsafeRawBufferPointer, _ types: UnsafeRawBufferPointer) -> Bool {
        if let short { return short.format.isSame(as: text) && short.types.isSame(as: types) }
        return isOfLong(text, types)
    }

    @safe private func isOfLong(
        _ text: UnsafeRawBufferPointer, _ types: UnsafeRawBufferPointer
    ) -> Bool {
        PrintfPlan.isSame(format, text) && PrintfPlan.isSame(self.types, types)
    }

    @safe private static func isSame(_ known: [UInt8], _ text: UnsafeRawBufferPointer) -> Bool {
        guard text.count == known.count, let start = text.baseAddress else {
            return text.count == known.count
        }
        return unsafe known.withUnsafeBytes {
            unsafe Memory.isSame($0.baseAddress!, start, text.count)
        }
    }

    private static func step(_ directive: PrintfFormat.Directive, at place: Int) -> Step {
        let index = directive.argument
        guard directive.flagsStart == directive.flagsEnd, directive.width == .none, index >= 0
        else { return .other(place) }
        // After the flags: a precision, a modifier, the conversion.
        let isBare = directive.end &- directive.flagsEnd == 1
        switch directive.conversion {
        case 0x64, 0x69, 0x75:  // d i u
            // `h` truncates an int; the modifiers of a long change nothing.
            guard directive.precision == .none, isBare || directive.type == ArgumentType.long else {
                return .other(place)
            }
            return directive.conversion == 0x75
                ? .unsigned(index, directive.type) : .signed(index, directive.type)
        case 0x73 where isBare && directive.type == ArgumentType.text:  // s
            return .text(index)
        case 0x66 where directive.type == ArgumentType.double:  // f
            switch directive.precision {
            case .none: return .fixed(index, digits: 6, place)
            case .value(let digits): return .fixed(index, digits: digits, place)
            case .argument: return .other(place)
            }
        default: return .other(place)
        }
    }
}
