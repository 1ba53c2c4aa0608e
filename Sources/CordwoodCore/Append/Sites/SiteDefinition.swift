// A call site as catalogs define it (FORMAT §5), and how its payload is written and compared.
// SAFETY: views of the host's strings during the call; `write` fills exactly the bytes that `bytes`
// counts, into room that the caller made. Nothing here allocates from the heap: a signal handler
// may write the first record.

import CCordwood
import CShims

/// A site's definition for the catalogs (FORMAT §5), before it is written.
@safe struct SiteDefinition {
    let line: UInt32
    let file: UnsafeRawBufferPointer
    let function: UnsafeRawBufferPointer
    let format: UnsafeRawBufferPointer
    let style: UInt32
    /// The most bytes that the strings of a catalog entry may have in all.
    private static let stringMax = 65_535

    init(_ site: UnsafePointer<cw_site>) {
        style = unsafe site.pointee.style
        unsafe line = site.pointee.line
        unsafe file = SiteDefinition.text(site.pointee.file)
        unsafe function = SiteDefinition.text(site.pointee.function)
        unsafe format = SiteDefinition.text(site.pointee.format)
    }

    init(
        line: UInt32, file: UnsafeRawBufferPointer, function: UnsafeRawBufferPointer,
        format: UnsafeRawBufferPointer, style: UInt32
    ) {
        self.line = line
        unsafe self.file = unsafe file
        unsafe self.function = unsafe function
        unsafe self.format = unsafe format
        self.style = style
    }

    private static func text(_ start: UnsafePointer<CChar>?) -> UnsafeRawBufferPointer {
        unsafe UnsafeRawBufferPointer(
            start: start, count: start.map { unsafe strnlen($0, stringMax) } ?? 0)
    }

    /// Also covers a rewritten format together with the original one.
    var bytesMax: Int {
        unsafe SiteLayout.strings + 12 + SitePlan.argumentsMax + 1 + stringBytes
            + 2 * format.count + 4 * SitePlan.argumentsMax + 3
    }

    /// A std::format string that does not fit its arguments is kept in a form that does, and that
    /// shows both: `{:d}` with a text becomes `{{:d}} ({})`.
    func isRewritten(_ plan: SitePlan) -> Bool { plan.isRefused && plan.count > 0 }

    /// Runs the body with each byte of the format that the definition keeps.
    private func forEachKept(_ plan: SitePlan, _ body: (UInt8) -> Void) {
        let isRewritten = isRewritten(plan)
        for index in unsafe 0..<format.count {
            let byte = unsafe Bytes.u8(format, index)
            body(byte)
            if isRewritten, byte == 0x7B || byte == 0x7D { body(byte) }
        }
        guard isRewritten else { return }
        body(0x20)
        body(0x28)
        for index in 0..<plan.count {
            if index > 0 {
                body(0x2C)
                body(0x20)
            }
            body(0x7B)
            body(0x7D)
        }
        body(0x29)
    }

    private func keptFormatBytes(_ plan: SitePlan) -> Int {
        guard isRewritten(plan) else { return unsafe format.count }
        var count = 0
        forEachKept(plan) { _ in count += 1 }
        return count
    }

    private func isKept(_ plan: SitePlan, as kept: UnsafeRawBufferPointer) -> Bool {
        guard isRewritten(plan) else { return unsafe Bytes.equal(kept, format) }
        guard keptFormatBytes(plan) == kept.count else { return false }
        var at = 0
        var isSame = true
        forEachKept(plan) { byte in
            isSame = isSame && Bytes.u8(kept, at) == byte
            at += 1
        }
        return isSame
    }

    private var stringBytes: Int { unsafe file.count + function.count + format.count }

    var hash: UInt32 {
        var crc = unsafe cwi_crc32c(line, format.baseAddress, format.count)
        unsafe crc = cwi_crc32c(crc, file.baseAddress, file.count)
        unsafe crc = cwi_crc32c(crc, function.baseAddress, function.count)
        return crc
    }

    /// Offset of the format in the payload.
    var formatOffset: Int {
        unsafe SiteLayout.strings + Self.prefixBytes(file.count) + file.count
            + Self.prefixBytes(function.count) + function.count + Self.prefixBytes(format.count)
    }

    /// Size of the payload that `write` makes.
    func bytes(_ plan: SitePlan) -> Int {
        let formatBytes = keptFormatBytes(plan)
        return unsafe SiteLayout.strings + plan.count + Self.prefixBytes(file.count)
            + Self.prefixBytes(function.count) + Self.prefixBytes(formatBytes) + file.count
            + function.count + formatBytes
    }

    @inline(__always)
    static func prefixBytes(_ count: Int) -> Int { count < 128 ? 1 : count < 16_384 ? 2 : 3 }

    /// Writes the payload and returns its size.
    func write(_ plan: SitePlan, to start: UnsafeMutableRawPointer) -> Int {
        unsafe start.storeBytes(of: line, as: UInt32.self)
        unsafe start.storeBytes(of: 0, toByteOffset: SiteLayout.level, as: UInt8.self)
        unsafe start.storeBytes(
            of: UInt8(plan.count), toByteOffset: SiteLayout.argumentCount, as: UInt8.self)
        let isText = plan.isRefused && !isRewritten(plan)
        unsafe start.storeBytes(
            of: UInt16(isText ? SiteLayout.styleText : UInt8(truncatingIfNeeded: style)),
            toByteOffset: SiteLayout.style, as: UInt16.self)
        var at = unsafe start + SiteLayout.strings
        unsafe put(file, &at)
        unsafe put(function, &at)
        if isRewritten(plan) {
            unsafe put(count: keptFormatBytes(plan), &at)
            forEachKept(plan) { byte in
                unsafe at.storeBytes(of: byte, as: UInt8.self)
                unsafe at += 1
            }
        } else {
            unsafe put(format, &at)
        }
        for index in 0..<plan.count {
            unsafe at.storeBytes(of: plan.type(index), as: UInt8.self)
            unsafe at += 1
        }
        return unsafe at - start
    }

    /// True if a kept payload and plan match this definition.
    func isSame(
        _ kept: UnsafeRawBufferPointer, _ plan: SitePlan, _ classes: UnsafePointer<UInt8>
    ) -> Bool {
        guard Bytes.u32(kept, SiteLayout.line) == line,
            plan.isRefused || UInt32(Bytes.u8(kept, SiteLayout.style)) == style
        else { return false }
        var at = SiteLayout.strings
        // Avoids an array of the three: nothing here may allocate from the heap.
        guard let first = Bytes.str(kept, &at), unsafe Bytes.equal(first, file),
            let second = Bytes.str(kept, &at), unsafe Bytes.equal(second, function),
            let third = Bytes.str(kept, &at), unsafe isKept(plan, as: third)
        else { return false }
        return unsafe withUnsafeTemporaryAllocation(byteCount: SitePlan.bytesMax, alignment: 8) {
            let other = unsafe SitePlan($0.baseAddress!)
            unsafe other.make(format: format, style: style, classes: classes)
            return unsafe other.bytes == plan.bytes
                && Memory.isSame(other.memory + 4, plan.memory + 4, plan.bytes - 4)
        }
    }

    /// `str`: varint length, bytes.
    private func put(_ text: UnsafeRawBufferPointer, _ at: inout UnsafeMutableRawPointer) {
        unsafe put(count: text.count, &at)
        guard let source = text.baseAddress, text.count > 0 else { return }
        unsafe at.copyMemory(from: source, byteCount: text.count)
        unsafe at += text.count
    }

    private func put(count: Int, _ at: inout UnsafeMutableRawPointer) {
        var count = count
        while count >= 128 {
            unsafe at.storeBytes(of: UInt8(count & 127) | 128, as: UInt8.self)
            unsafe at += 1
            count >>= 7
        }
        unsafe at.storeBytes(of: UInt8(count), as: UInt8.self)
        unsafe at += 1
    }
}
