// What to copy for each argument of a call site, derived once from its format. A plan takes 8 bytes
// plus 8 per step, lives in memory of the caller, and never changes once it is published.
// SAFETY: a plan has room for `argumentsMax` steps and one for errno; `make` stops there. Lists of
// argument classes end with CW_ARG_NONE.

import CCordwood
import CShims

@safe public struct SitePlan {
    public static let argumentsMax = 32
    public static let bytesMax = headerBytes + (argumentsMax + 1) * stepBytes
    public static let headerBytes = 16
    public static let stepBytes = 8
    /// The site id of records that carry their own definition.
    public static let described: UInt32 = 0xFFFF_FFFF
    public static let boundArgument: UInt32 = 0x8000_0000
    /// The caller passes the string's length (cw_arg.s).
    public static let boundPassed: UInt32 = 0x4000_0000

    // u32 site id · u32 fixed bytes · u16 steps · u8 plain · u8 refused · u32 …
    public let memory: UnsafeMutableRawPointer

    @inlinable
    public init(_ memory: UnsafeMutableRawPointer) { unsafe self.memory = unsafe memory }

    /// The plan that a site's word names. nil: none yet, or one of another copy of the library in
    /// this process, whose numbers mean other places. A static variable of an inline function is
    /// one object for all modules, whichever copy each is linked with.
    @inlinable @inline(__always)
    public init?(word: UInt64) {
        let table = unsafe UInt64(UInt(bitPattern: cwi_process_get().pointee.sites))
        guard word &- table &- 1 < SitePlan.tableBytes else { return nil }
        unsafe self.init(UnsafeMutableRawPointer(bitPattern: UInt(word)).unsafelyUnwrapped)
    }

    /// Bytes of the process's table of sites, in which all plans of this copy lie.
    @inlinable static var tableBytes: UInt64 { 16 << 20 }

    @inlinable
    public var identifier: UInt32 {
        get { unsafe memory.load(as: UInt32.self) }
        nonmutating set { unsafe memory.storeBytes(of: newValue, as: UInt32.self) }
    }

    /// Bytes of the arguments in a record, excluding the content of strings.
    @inlinable
    public var fixedBytes: Int {
        get { unsafe Int(memory.load(fromByteOffset: 4, as: UInt32.self)) }
        nonmutating set {
            unsafe memory.storeBytes(of: UInt32(newValue), toByteOffset: 4, as: UInt32.self)
        }
    }

    @inlinable
    public var count: Int {
        get { unsafe Int(memory.load(fromByteOffset: 8, as: UInt16.self)) }
        nonmutating set {
            unsafe memory.storeBytes(of: UInt16(newValue), toByteOffset: 8, as: UInt16.self)
        }
    }

    /// True if the hot path can write it: it has a number and no `long double`, wide string or
    /// errno.
    @inlinable
    public var isPlain: Bool {
        get { unsafe memory.load(fromByteOffset: 10, as: UInt8.self) != 0 }
        nonmutating set {
            unsafe memory.storeBytes(of: newValue ? 1 : 0, toByteOffset: 10, as: UInt8.self)
        }
    }

    /// A longer format that does not fit loses its arguments, because the format kept in its place
    /// is even longer.
    private static let keptFormatMax = 16_384

    /// The format does not fit the arguments: it is kept as text. For std::format, the arguments
    /// follow it.
    public var isRefused: Bool {
        get { unsafe memory.load(fromByteOffset: 11, as: UInt8.self) != 0 }
        nonmutating set {
            unsafe memory.storeBytes(of: newValue ? 1 : 0, toByteOffset: 11, as: UInt8.self)
        }
    }

    public var bytes: Int { SitePlan.headerBytes + count * SitePlan.stepBytes }

    @inlinable @inline(__always)
    public func type(_ index: Int) -> UInt8 {
        unsafe memory.load(
            fromByteOffset: SitePlan.headerBytes &+ index &* SitePlan.stepBytes, as: UInt8.self)
    }

    /// For a string, its most bytes (units, for wide strings), or boundArgument and the index of
    /// the argument that gives the bound.
    @inlinable @inline(__always)
    public func bound(_ index: Int) -> UInt32 {
        unsafe memory.load(
            fromByteOffset: SitePlan.headerBytes &+ index &* SitePlan.stepBytes &+ 4,
            as: UInt32.self)
    }

    private func set(_ index: Int, _ type: UInt8, _ bound: UInt32) {
        let step = unsafe memory + SitePlan.headerBytes + index * SitePlan.stepBytes
        unsafe step.storeBytes(of: UInt32(type), as: UInt32.self)
        unsafe step.storeBytes(of: bound, toByteOffset: 4, as: UInt32.self)
    }

    /// Makes the plan. classes: the CW_ARG_… of the caller's arguments.
    func make(format: UnsafeRawBufferPointer, style: UInt32, classes: UnsafePointer<UInt8>) {
        var passed = 0
        while passed < SitePlan.argumentsMax, unsafe classes[passed] != UInt8(CW_ARG_NONE) {
            passed += 1
        }
        unsafe memory.initializeMemory(as: UInt8.self, repeating: 0, count: SitePlan.bytesMax)
        identifier = SitePlan.described
        let isBraces =
            style == UInt32(CW_STYLE_BRACES) || style == UInt32(SiteLayout.styleSwift)
        let fits =
            unsafe isBraces
            ? braceSteps(format, classes, passed) : steps(format, classes, passed)
        isRefused = !fits
        isPlain = true
        if isRefused, !isBraces || format.count > SitePlan.keptFormatMax { count = 0 }
        for index in 0..<count {
            fixedBytes += ArgumentType.fixedBytes(type(index))
            switch type(index) {
            case ArgumentType.extended, ArgumentType.wide, ArgumentType.error: isPlain = false
            default: break
            }
        }
    }

    /// The most bytes or units of that string.
    @inlinable @inline(__always)
    public func most(_ index: Int, _ arguments: UnsafePointer<cw_arg>) -> Int {
        let bound = bound(index)
        guard bound & SitePlan.boundArgument != 0 else { return Int(bound) }
        let other = Int(bound & ~SitePlan.boundArgument)
        let precision = unsafe UnsafeRawPointer(arguments + other).load(as: Int32.self)
        let most = Int(CW_STRING_MAX) / (type(index) == ArgumentType.wide ? 4 : 1)
        return precision < 0 || precision > most ? most : Int(precision)
    }

    /// True if the classes alone say what a record of this plan holds: each argument in the size of
    /// its class, each string whole. The append in the header knows nothing else. A format may ask
    /// for more: `%.*s`, the address of a string by `%p`, an int as `%ld`.
    func isAsPassed(_ classes: UnsafePointer<UInt8>) -> Bool {
        guard isPlain, !isRefused, identifier < UInt32(CWI_SITES_MAX) else { return false }
        for index in 0..<count {
            let fits =
                switch unsafe UInt32(classes[index]) {
                case UInt32(CW_ARG_INT), UInt32(CW_ARG_UINT):
                    type(index) == ArgumentType.int || type(index) == ArgumentType.uint
                case UInt32(CW_ARG_LONG), UInt32(CW_ARG_ULONG):
                    type(index) == ArgumentType.long || type(index) == ArgumentType.ulong
                case UInt32(CW_ARG_DOUBLE): type(index) == ArgumentType.double
                case UInt32(CW_ARG_FLOAT): type(index) == ArgumentType.float
                case UInt32(CW_ARG_BOOL): type(index) == ArgumentType.bool
                case UInt32(CW_ARG_CHAR): type(index) == ArgumentType.char
                case UInt32(CW_ARG_POINTER): type(index) == ArgumentType.pointer
                case UInt32(CW_ARG_STRING):
                    type(index) == ArgumentType.text && bound(index) == UInt32(CW_STRING_MAX)
                case UInt32(CW_ARG_TEXT):
                    type(index) == ArgumentType.text && bound(index) == SitePlan.boundPassed
                default: false
                }
            guard fits else { return false }
        }
        return unsafe classes[count] == UInt8(CW_ARG_NONE)
    }

    /// Keeps every argument by its own type. The format must not refer to an argument that was not
    /// passed, and must show each by its type.
    private func braceSteps(
        _ text: UnsafeRawBufferPointer, _ classes: UnsafePointer<UInt8>, _ passed: Int
    ) -> Bool {
        for index in 0..<passed {
            guard let type = unsafe ArgumentType.of(class: classes[index]) else { return false }
            set(index, type, type == ArgumentType.text ? SitePlan.boundPassed : 0)
        }
        count = passed
        var format = BraceFormat(text)
        while true {
            switch format.piece() {
            case .literal: continue
            case .invalid: return false
            case .end: return true
            case .field(let field):
                guard field.argument < passed, field.shows(type(field.argument)) else {
                    return false
                }
                guard isNumber(field.width, passed), isNumber(field.precision, passed) else {
                    return false
                }
            }
        }
    }

    /// True if the argument that gives a width or precision is a whole number.
    private func isNumber(_ number: BraceFormat.Number, _ passed: Int) -> Bool {
        guard case .argument(let index) = number else { return true }
        return index < passed && ArgumentType.isInteger(type(index))
    }

    private func steps(
        _ text: UnsafeRawBufferPointer, _ classes: UnsafePointer<UInt8>, _ passed: Int
    ) -> Bool {
        var format = PrintfFormat(text)
        var wantsError = false
        while true {
            switch format.piece() {
            case .literal: continue
            case .invalid: return false
            case .end:
                if wantsError {
                    set(count, ArgumentType.error, 0)
                    count += 1
                }
                // Arguments that no directive refers to are skipped as numbers (numbered arguments
                // only).
                for index in 0..<count where type(index) == 0 {
                    guard unsafe classes[index] != UInt8(CW_ARG_LONG_DOUBLE) else { return false }
                    set(index, ArgumentType.long, 0)
                }
                return true
            case .directive(let directive):
                let unit: UInt32 = directive.type == ArgumentType.wide ? 4 : 1
                var bound = UInt32(CW_STRING_MAX) / unit
                switch directive.precision {
                case .none: break
                case .value(let most): bound = min(bound, UInt32(most))
                case .argument(let index):
                    guard unsafe take(index, ArgumentType.int, 0, classes, passed) else {
                        return false
                    }
                    bound = SitePlan.boundArgument | UInt32(index)
                }
                if case .argument(let index) = directive.width {
                    guard unsafe take(index, ArgumentType.int, 0, classes, passed) else {
                        return false
                    }
                }
                guard directive.argument >= 0 else {
                    wantsError = true
                    continue
                }
                let isString =
                    directive.type == ArgumentType.text || directive.type == ArgumentType.wide
                guard
                    unsafe take(
                        directive.argument, directive.type, isString ? bound : 0, classes, passed)
                else { return false }
            }
        }
    }

    /// Records that the argument of that index has that type. False: it was not passed, the
    /// conversion must not follow or take it, or an earlier directive used it as another type.
    private func take(
        _ index: Int, _ type: UInt8, _ bound: UInt32, _ classes: UnsafePointer<UInt8>, _ passed: Int
    ) -> Bool {
        guard index < passed else { return false }
        var given = unsafe UInt32(classes[index])
        if given == UInt32(CW_ARG_STRING) { given = UInt32(CW_ARG_POINTER) }
        guard given <= UInt32(CW_ARG_POINTER) else { return false }
        let fits =
            switch type {
            case ArgumentType.double: given == UInt32(CW_ARG_DOUBLE)
            case ArgumentType.extended: given == UInt32(CW_ARG_LONG_DOUBLE)
            case ArgumentType.text, ArgumentType.wide: given == UInt32(CW_ARG_POINTER)
            default: given != UInt32(CW_ARG_DOUBLE) && given != UInt32(CW_ARG_LONG_DOUBLE)
            }
        guard fits else { return false }
        if self.type(index) != 0, self.type(index) != type || self.bound(index) != bound {
            return false
        }
        set(index, type, bound)
        count = max(count, index + 1)
        return true
    }
}
