// A record of a call site: the site's id and the raw arguments, appended as in AppendPath; the
// reader makes the text (FORMAT §8.7). The first record of a site registers it. Every unusual case
// goes through AppendSlow with a SiteBody.
// SAFETY: as AppendPath. `arguments` has an entry for each step of the plan that is not errno, as
// the site's list of classes promises; strings are measured within their bound before a byte is
// copied, and exactly that many bytes are copied.

import CCordwood
import CShims
import Glibc

public enum DeferredPath {
    @inlinable @inline(__always)
    public static func write(
        _ logger: LoggerBlock, _ level: UInt32, _ site: UnsafeMutablePointer<cw_site>,
        _ arguments: UnsafePointer<cw_arg>
    ) -> Int32 {
        // ORDER: relaxed. As in AppendPath (A16).
        let word = unsafe cwa_load_relaxed_u32(logger)
        // ORDER: acquire. The plan is complete, and every open lane has the site (A21).
        let address = unsafe cwa_load_acquire_u64(UnsafeMutableRawPointer(site))
        guard level &+ word > 255, level &- 1 < 24, let plan = SitePlan(word: address)
        else { return unsafe DeferredSlow.unusual(logger, level, site, arguments) }
        return unsafe append(logger, level, plan, site, arguments)
    }

    /// A record of a call site that has no object of its own.
    public static func place(
        _ logger: LoggerBlock, _ level: UInt32, _ place: UnsafePointer<cw_site>,
        _ arguments: UnsafePointer<cw_arg>
    ) -> Int32 {
        let word = unsafe cwa_load_relaxed_u32(logger)
        guard level &+ word > 255, level &- 1 < 24 else {
            return unsafe AppendSlow.refusal(logger, level)
        }
        if let plan = unsafe Sites.known(place) {
            return unsafe append(logger, level, plan, place, arguments)
        }
        return unsafe DeferredSlow.first(logger, level, place, arguments)
    }

    @inlinable @inline(__always)
    static func append(
        _ logger: LoggerBlock, _ level: UInt32, _ plan: SitePlan,
        _ site: UnsafePointer<cw_site>, _ arguments: UnsafePointer<cw_arg>
    ) -> Int32 {
        guard plan.isPlain,
            let record = unsafe AppendPath.begin(logger, level | 3 << 8, 4 &+ plan.fixedBytes)
        else { return unsafe DeferredSlow.write(logger, level, plan, site, arguments) }
        var left = unsafe record.left
        let start = unsafe record.start
        unsafe start.storeBytes(of: plan.identifier, toByteOffset: 16, as: UInt32.self)
        var at = unsafe start + 20
        let count = plan.count
        var index = 0
        while index < count {
            let argument = unsafe UnsafeRawPointer(arguments + index)
            switch plan.type(index) {
            case ArgumentType.int, ArgumentType.uint:
                unsafe at.storeBytes(of: argument.load(as: UInt32.self), as: UInt32.self)
                unsafe at += 4
            case ArgumentType.bool, ArgumentType.char:
                unsafe at.storeBytes(of: argument.load(as: UInt8.self), as: UInt8.self)
                unsafe at += 1
            case ArgumentType.float:
                unsafe at.storeBytes(of: Float(argument.load(as: Double.self)), as: Float.self)
                unsafe at += 4
            case ArgumentType.text:
                let start = unsafe argument.load(as: UnsafePointer<CChar>?.self)
                let isPassed = plan.bound(index) == SitePlan.boundPassed
                guard let text = unsafe start else {
                    // An empty C++ string may have no address.
                    unsafe at.storeBytes(of: isPassed ? 0 : LengthWord.null, as: UInt32.self)
                    unsafe at += 4
                    break
                }
                let bytes =
                    unsafe isPassed
                    ? Int(min(argument.load(fromByteOffset: 8, as: UInt.self), UInt(CW_STRING_MAX)))
                    : strnlen(text, plan.most(index, arguments))
                left &-= bytes
                guard left >= 0, bytes < Int(CW_STRING_MAX) else {
                    unsafe AppendPath.giveUp(record)
                    return unsafe DeferredSlow.write(logger, level, plan, site, arguments)
                }
                unsafe at.storeBytes(of: UInt32(truncatingIfNeeded: bytes), as: UInt32.self)
                unsafe (at + 4).copyMemory(from: text, byteCount: bytes)
                unsafe at += bytes &+ 4
            default:
                unsafe at.storeBytes(of: argument.load(as: UInt64.self), as: UInt64.self)
                unsafe at += 8
            }
            index &+= 1
        }
        return unsafe AppendPath.commit(record, at - start &- 16)
            ? Status.ok : DeferredSlow.write(logger, level, plan, site, arguments)
    }
}

public enum DeferredSlow {
    /// A refusal, or the first record of a site.
    @inline(never)
    public static func unusual(
        _ logger: LoggerBlock, _ level: UInt32, _ site: UnsafeMutablePointer<cw_site>,
        _ arguments: UnsafePointer<cw_arg>
    ) -> Int32 {
        let refusal = unsafe AppendSlow.refusal(logger, level)
        guard refusal == Status.ok else { return refusal }
        Abandoned.reclaimFromEntry()
        return AppendSlow.keepingErrno { error in
            guard let plan = unsafe Sites.register(site) else {
                return unsafe described(logger, level, site, arguments, error)
            }
            return unsafe write(logger, level, plan, site, arguments, error)
        }
    }

    /// The first record of a call site. `argument` if its format does not fit; it is then kept as
    /// text.
    @inline(never)
    static func first(
        _ logger: LoggerBlock, _ level: UInt32, _ place: UnsafePointer<cw_site>,
        _ arguments: UnsafePointer<cw_arg>
    ) -> Int32 {
        Abandoned.reclaimFromEntry()
        return AppendSlow.keepingErrno { error in
            guard let plan = unsafe Sites.placeSlow(place) else {
                return unsafe described(logger, level, place, arguments, error)
            }
            let status = unsafe write(logger, level, plan, place, arguments, error)
            return status == Status.ok && plan.isRefused ? Status.argument : status
        }
    }

    /// Writes a record that carries its definition, because the site cannot be registered now.
    private static func described(
        _ logger: LoggerBlock, _ level: UInt32, _ site: UnsafePointer<cw_site>,
        _ arguments: UnsafePointer<cw_arg>, _ error: Int32
    ) -> Int32 {
        guard unsafe site.pointee.format != nil, let classes = unsafe site.pointee.arguments
        else { return Status.argument }
        return unsafe withUnsafeTemporaryAllocation(byteCount: SitePlan.bytesMax, alignment: 8) {
            let plan = unsafe SitePlan($0.baseAddress!)
            unsafe plan.make(
                format: SiteDefinition(site).format, style: site.pointee.style, classes: classes)
            return unsafe write(logger, level, plan, site, arguments, error)
        }
    }

    /// Writes a record of a registered site.
    @inline(never)
    public static func write(
        _ logger: LoggerBlock, _ level: UInt32, _ plan: SitePlan,
        _ site: UnsafePointer<cw_site>, _ arguments: UnsafePointer<cw_arg>
    ) -> Int32 {
        Abandoned.reclaimFromEntry()
        return unsafe write(logger, level, plan, site, arguments, errno)
    }

    private static func write(
        _ logger: LoggerBlock, _ level: UInt32, _ plan: SitePlan,
        _ site: UnsafePointer<cw_site>, _ arguments: UnsafePointer<cw_arg>, _ error: Int32
    ) -> Int32 {
        unsafe withUnsafeTemporaryAllocation(of: UInt32.self, capacity: SitePlan.argumentsMax + 1) {
            let body = unsafe SiteBody(plan, site, arguments, error, lengths: $0.baseAddress!)
            return unsafe AppendSlow.append(logger, UInt8(level), body)
        }
    }

    /// True if the site's format does not fit its arguments; its records then show the raw format.
    public static func isRefused(_ site: UnsafePointer<cw_site>) -> Bool {
        // ORDER: acquire. A visible plan is complete; another thread may have made it (A21).
        let word = unsafe cwa_load_acquire_u64(UnsafeRawPointer(site))
        return SitePlan(word: word)?.isRefused ?? false
    }
}

/// A record of a site (FORMAT §8, types 3 and 9). Its strings are measured once, here.
@safe private struct SiteBody: RecordBody {
    private let plan: SitePlan
    private let arguments: UnsafePointer<cw_arg>
    private let error: Int32
    /// For each string step, its length word.
    private let lengths: UnsafeMutablePointer<UInt32>
    /// nil: the record names its site by number.
    private let definition: SiteDefinition?
    private var content = 0
    private var isCut = false

    init(
        _ plan: SitePlan, _ site: UnsafePointer<cw_site>,
        _ arguments: UnsafePointer<cw_arg>, _ error: Int32, lengths: UnsafeMutablePointer<UInt32>
    ) {
        self.plan = plan
        unsafe self.arguments = unsafe arguments
        self.error = error
        unsafe self.lengths = unsafe lengths
        definition =
            unsafe plan.identifier == SitePlan.described ? SiteDefinition(site) : nil
        for index in 0..<plan.count {
            let isPassed = plan.bound(index) == SitePlan.boundPassed
            unsafe lengths[index] = isPassed ? 0 : LengthWord.null
            guard let start = unsafe arguments[index].p, isString(index) else { continue }
            let most = unsafe isPassed ? Int(CW_STRING_MAX) : plan.most(index, arguments)
            let count =
                unsafe isPassed
                ? min(max(0, arguments[index].s.length), most)
                : plan.type(index) == ArgumentType.wide
                    ? cwi_wcsnlen(start, most)
                    : strnlen(start.assumingMemoryBound(to: CChar.self), most)
            // A precision is the format's own bound; anything shorter is a cut of ours.
            let cut =
                unsafe isPassed
                ? arguments[index].s.length != count
                : count == Int(CW_STRING_MAX) / unit(index)
            unsafe lengths[index] = UInt32(count) | (cut ? LengthWord.cut : 0)
            isCut = isCut || cut
            content += count * unit(index)
        }
    }

    private func isString(_ index: Int) -> Bool {
        plan.type(index) == ArgumentType.text || plan.type(index) == ArgumentType.wide
    }

    private func unit(_ index: Int) -> Int { plan.type(index) == ArgumentType.wide ? 4 : 1 }

    var type: UInt8 { definition == nil ? RecordType.site : RecordType.described }
    var flags: UInt16 { isCut ? RecordHeader.flagTruncated : 0 }
    var bytes: Int {
        4 + (definition?.bytes(plan) ?? 0) + plan.fixedBytes + content
    }

    /// Cuts the last strings first.
    func truncated(to limit: Int) -> SiteBody? {
        var cut = self
        var excess = bytes - limit
        for index in (0..<plan.count).reversed() where excess > 0 && isString(index) {
            let word = unsafe lengths[index]
            guard word != LengthWord.null else { continue }
            let count = Int(word & ~LengthWord.cut)
            let drop = min(count, (excess + unit(index) - 1) / unit(index))
            unsafe cut.lengths[index] = UInt32(count - drop) | LengthWord.cut
            cut.content -= drop * unit(index)
            excess -= drop * unit(index)
            cut.isCut = true
        }
        return excess <= 0 ? cut : nil
    }

    func write(to start: UnsafeMutableRawPointer) {
        var at = unsafe start
        if let definition = definition {
            unsafe at.storeBytes(of: UInt32(definition.bytes(plan)), as: UInt32.self)
            unsafe at += 4 + definition.write(plan, to: at + 4)
        } else {
            unsafe at.storeBytes(of: plan.identifier, as: UInt32.self)
            unsafe at += 4
        }
        for index in 0..<plan.count {
            let argument = unsafe UnsafeRawPointer(arguments + index)
            switch plan.type(index) {
            case ArgumentType.text, ArgumentType.wide:
                let word = unsafe lengths[index]
                unsafe at.storeBytes(of: word, as: UInt32.self)
                unsafe at += 4
                guard word != LengthWord.null, let text = unsafe arguments[index].p else {
                    continue
                }
                let count = Int(word & ~LengthWord.cut) * unit(index)
                unsafe at.copyMemory(from: UnsafeRawPointer(text), byteCount: count)
                unsafe at += count
            case ArgumentType.error:
                unsafe at.storeBytes(of: error, as: Int32.self)
                unsafe at += 4
            case ArgumentType.float:
                unsafe at.storeBytes(of: Float(arguments[index].d), as: Float.self)
                unsafe at += 4
            default:
                let count = ArgumentType.fixedBytes(plan.type(index))
                unsafe at.copyMemory(from: argument, byteCount: count)
                unsafe at += count
            }
        }
    }
}
