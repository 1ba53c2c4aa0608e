// A record of a Swift log call: the site's id and the frame's arguments, appended as in AppendPath.
// Records with more than a message (fields, an error, the context of a task), the first record of a
// site and every unusual case go through MessageSlow.
// SAFETY: as AppendPath. A frame belongs to the calling thread, and its block stays valid during
// the call; exactly the bytes between its start and `at` are copied.

import CCordwood
import CShims

/// The part of a Swift record beyond its message. The memory is the caller's.
@safe package struct MessageExtras {
    /// FORMAT §8.2 without the count.
    @safe package var fields = unsafe UnsafeRawBufferPointer(start: nil, count: 0)
    package var fieldCount = 0
    @safe package var errorType = unsafe UnsafeRawBufferPointer(start: nil, count: 0)
    @safe package var errorText = unsafe UnsafeRawBufferPointer(start: nil, count: 0)

    package init() {}
}

public enum MessagePath {
    // The path of a log call: MessageSites.quick finds the site within the call's own code, and
    // `append` stores the record. If either fails, `write` does the work.

    /// Appends a record of that site with `count` bytes of arguments. False: `write` must do it.
    @inline(never)
    public static func append(
        _ logger: LoggerBlock, _ kind: UInt32, _ site: UInt32, _ from: UnsafeMutableRawPointer,
        _ count: Int
    ) -> Bool {
        guard count <= 64 else { return unsafe appendLong(logger, kind, site, from, count) }
        guard let record = unsafe AppendPath.begin(logger, kind, count &+ 4, anyClock: false)
        else { return false }
        unsafe record.start.storeBytes(of: site, toByteOffset: 16, as: UInt32.self)
        unsafe FewBytes.copy(record.start + 20, from, count)
        return unsafe AppendPath.commit(record, count &+ 4)
    }

    @inline(never)
    private static func appendLong(
        _ logger: LoggerBlock, _ kind: UInt32, _ site: UInt32, _ from: UnsafeMutableRawPointer,
        _ count: Int
    ) -> Bool {
        guard let record = unsafe AppendPath.begin(logger, kind, count &+ 4) else { return false }
        unsafe record.start.storeBytes(of: site, toByteOffset: 16, as: UInt32.self)
        unsafe (record.start + 20).copyMemory(from: from, byteCount: count)
        return unsafe AppendPath.commit(record, count &+ 4)
    }

    /// Writes the record of any frame. The caller has checked that the level is enabled and has
    /// stored the place in the frame's last words.
    @inline(never)
    public static func write(
        _ logger: LoggerBlock, _ level: UInt32, _ frame: MessageFrame
    ) -> Int32 {
        guard level &- 1 < 24, !frame.isCut, unsafe cwi_context_taker() == nil,
            let site = unsafe MessageSites.known(frame.low, frame.base + frame.blockBytes)
        else { return unsafe MessageSlow.write(logger, level, frame) }
        let content = unsafe frame.content
        return unsafe appendLong(
            logger, level | kind, site.identifier, frame.base + MessageFrame.headerBytes,
            content.count) ? Status.ok : MessageSlow.write(logger, level, frame)
    }

    /// Appends a record of a String alone. False: nothing is written, and a frame must be made. The
    /// level is enabled and between 1 and 24; the words are the place's.
    @_effects(releasenone) @inline(never)
    public static func text(
        _ logger: LoggerBlock, _ level: UInt32, _ text: String, _ file: UInt64,
        _ function: UInt64, _ position: UInt64
    ) -> Bool {
        unsafe text.utf8.withContiguousStorageIfAvailable {
            let count = $0.count
            guard count < MessageFrame.stringMax,
                let site = MessageSites.quickText(file, function, position),
                let record = unsafe AppendPath.begin(logger, level | kind, count &+ 8)
            else { return false }
            unsafe record.start.storeBytes(of: site, toByteOffset: 16, as: UInt32.self)
            unsafe record.start.storeBytes(
                of: UInt32(truncatingIfNeeded: count), toByteOffset: 20, as: UInt32.self)
            // A string's storage has an address, even if it is empty.
            unsafe FewBytes.copy(record.start + 24, $0.baseAddress.unsafelyUnwrapped, count)
            return unsafe AppendPath.commit(record, count &+ 8)
        } ?? false
    }

    /// The type of a site's record, in the bits above the level.
    @inlinable @inline(__always)
    public static var kind: UInt32 { 3 << 8 }
}

package enum MessageSlow {
    @inline(never)
    static func write(_ logger: LoggerBlock, _ level: UInt32, _ frame: MessageFrame) -> Int32 {
        unsafe write(logger, level, frame, MessageExtras())
    }

    /// As MessagePath.write, with the record's extras.
    @inline(never)
    package static func write(
        _ logger: LoggerBlock, _ level: UInt32, _ frame: MessageFrame, _ extras: MessageExtras
    ) -> Int32 {
        let refusal = unsafe AppendSlow.refusal(logger, level)
        guard refusal == Status.ok else { return refusal }
        guard let engine = unsafe logger.pointee.engine else { return Status.closed }
        Abandoned.reclaimFromEntry()
        return AppendSlow.keepingErrno { _ in
            var body = MessageBody(extras)
            var owner: UnsafeMutableRawPointer?
            var view = unsafe cwi_context_view()
            if let take = unsafe cwi_context_taker() { unsafe owner = take(&view) }
            defer { if let owner = unsafe owner { unsafe cwi_context_let_go(owner) } }
            // A record's own field overrides the context's field of that key.
            var rest: UnsafeMutableRawPointer?
            defer { unsafe rest?.deallocate() }
            if unsafe owner != nil {
                unsafe rest = ContextFields.withoutKeys(of: extras, &view)
                unsafe body.add(view)
            }
            guard body.fieldCount <= FieldType.countMax else { return Status.limit }

            // Strings are cut here, where it is known which bytes belong to one.
            let most = unsafe AppendSlow.recordBytesMax(engine) - body.extraBytes
            var frame = frame
            if unsafe frame.content.count + 4 > most, !frame.shorten(to: max(0, most - 4)) {
                return Status.limit
            }
            body.set(frame)
            let plan =
                unsafe MessageSites.known(frame.low, frame.base + frame.blockBytes).map {
                    unsafe SitePlan(
                        $0.memory.load(fromByteOffset: 8, as: UnsafeMutableRawPointer.self))
                } ?? MessageSites.registerSlow(frame)
            if let plan, plan.identifier != SitePlan.described {
                body.site = plan.identifier
                return unsafe AppendSlow.append(logger, UInt8(level), body)
            }
            return unsafe described(logger, engine, level, frame, body)
        }
    }

    /// Writes a record that carries its definition, because the site cannot be registered now.
    private static func described(
        _ logger: LoggerBlock, _ engine: EngineBlock, _ level: UInt32, _ frame: MessageFrame,
        _ body: MessageBody
    ) -> Int32 {
        unsafe MessageSites.described(frame) { definition, classes in
            unsafe withUnsafeTemporaryAllocation(byteCount: SitePlan.bytesMax, alignment: 8) {
                let plan = unsafe SitePlan($0.baseAddress!)
                unsafe plan.make(
                    format: definition.format, style: definition.style, classes: classes)
                var (body, frame) = (body, frame)
                body.set(definition, plan)
                let excess = unsafe body.bytes - AppendSlow.recordBytesMax(engine)
                if excess > 0 {
                    guard unsafe frame.shorten(to: max(0, frame.content.count - excess)) else {
                        return Status.limit
                    }
                    body.set(frame)
                }
                return unsafe AppendSlow.append(logger, UInt8(level), body)
            }
        }
    }
}

/// A record of a site with its extras (FORMAT §8, types 3 and 9; with extras, type 2).
@safe private struct MessageBody: RecordBody {
    var site: UInt32 = 0
    /// Instead of the number.
    private var definition: SiteDefinition?
    private var plan: SitePlan?
    @safe private var arguments = unsafe UnsafeRawBufferPointer(start: nil, count: 0)
    private var isCut = false
    /// Recomputed whenever something is set.
    private(set) var bytes = 0
    private var definitionBytes = 0
    private let extras: MessageExtras
    private var context = unsafe cwi_context_view()
    private var hasContext = false

    init(_ extras: MessageExtras) { self.extras = extras }

    mutating func add(_ view: cwi_context_view) {
        unsafe context = unsafe view
        hasContext = true
    }

    var fieldCount: Int {
        unsafe extras.fieldCount + (hasContext ? Int(context.field_count) : 0)
    }

    private var fieldBytes: Int {
        unsafe 2 + extras.fields.count + (hasContext ? Int(context.field_bytes) : 0)
    }

    private var hasTrace: Bool { unsafe hasContext && context.has_trace != 0 }
    private var hasError: Bool { extras.errorType.count + extras.errorText.count > 0 }
    private var isRich: Bool { fieldCount > 0 || hasTrace || hasError }

    /// Bytes of the sections, except site and arguments.
    var extraBytes: Int {
        guard isRich else { return definitionBytes }
        var sum = 3 * SectionKind.headerBytes + definitionBytes
        if fieldCount > 0 { sum += SectionKind.headerBytes + fieldBytes }
        if hasTrace { sum += SectionKind.headerBytes + TraceLayout.bytes }
        if hasError {
            sum += SectionKind.headerBytes + 12 + extras.errorType.count + extras.errorText.count
        }
        return sum
    }

    mutating func set(_ definition: SiteDefinition, _ plan: SitePlan) {
        self.definition = definition
        self.plan = plan
        definitionBytes = definition.bytes(plan)
        count()
    }

    mutating func set(_ frame: MessageFrame) {
        arguments = unsafe frame.content
        isCut = frame.isCut
        count()
    }

    private mutating func count() {
        guard isRich else {
            bytes = 4 + definitionBytes + arguments.count
            return
        }
        // Without a definition, one of the three headers counted is spare.
        bytes =
            extraBytes + arguments.count
            - (definitionBytes == 0 ? SectionKind.headerBytes - 4 : SectionKind.headerBytes)
    }

    var type: UInt8 {
        isRich
            ? RecordType.rich : definition == nil ? RecordType.site : RecordType.described
    }
    var flags: UInt16 { isCut ? RecordHeader.flagTruncated : 0 }

    func truncated(to limit: Int) -> MessageBody? { nil }

    func write(to start: UnsafeMutableRawPointer) {
        var cursor = unsafe BodyCursor(at: start)
        guard isRich else {
            if let definition = definition, let plan = plan {
                cursor.put(UInt32(definitionBytes))
                unsafe cursor.at += definition.write(plan, to: cursor.at)
            } else {
                cursor.put(site)
            }
            cursor.bytes(arguments)
            return
        }
        if let definition = definition, let plan = plan {
            cursor.section(SectionKind.definition, definitionBytes)
            unsafe cursor.at += definition.write(plan, to: cursor.at)
        } else {
            cursor.section(SectionKind.site, 4)
            cursor.put(site)
        }
        cursor.section(SectionKind.arguments, arguments.count)
        cursor.bytes(arguments)
        if fieldCount > 0 {
            cursor.section(SectionKind.fields, fieldBytes)
            cursor.put(UInt16(fieldCount))
            cursor.bytes(extras.fields)
            if hasContext {
                unsafe cursor.bytes(
                    UnsafeRawBufferPointer(
                        start: context.fields, count: Int(context.field_bytes)))
            }
        }
        if hasTrace {
            cursor.section(SectionKind.trace, TraceLayout.bytes)
            unsafe cursor.bytes(
                UnsafeRawBufferPointer(start: context.trace, count: TraceLayout.bytes))
        }
        if hasError {
            cursor.section(
                SectionKind.exception, 12 + extras.errorType.count + extras.errorText.count)
            cursor.put(UInt32(extras.errorType.count))
            cursor.put(UInt32(extras.errorText.count))
            cursor.put(UInt32(0))
            cursor.bytes(extras.errorType)
            cursor.bytes(extras.errorText)
        }
    }
}

/// The fields of a context (FORMAT §8.2 without the count).
private enum ContextFields {
    /// Leaves out the keys that the record itself has. If there are any, the view is set to a copy,
    /// which the caller owns.
    static func withoutKeys(
        of extras: MessageExtras, _ view: inout cwi_context_view
    ) -> UnsafeMutableRawPointer? {
        let all = unsafe UnsafeRawBufferPointer(
            start: view.fields, count: Int(view.field_bytes))
        guard extras.fieldCount > 0, unsafe !all.isEmpty else { return nil }
        let copy = UnsafeMutableRawPointer.allocate(byteCount: all.count, alignment: 1)
        var (at, kept) = (0, 0)
        var count: UInt32 = 0
        while at < all.count {
            let size = bytes(all, at)
            if !has(extras.fields, key(all, at)) {
                unsafe (copy + kept).copyMemory(from: all.baseAddress! + at, byteCount: size)
                kept += size
                count += 1
            }
            at += size
        }
        unsafe view.fields = UnsafeRawPointer(copy)
        unsafe view.field_bytes = UInt64(kept)
        unsafe view.field_count = count
        return unsafe copy
    }

    @safe private static func key(
        _ fields: UnsafeRawBufferPointer, _ at: Int
    ) -> UnsafeRawBufferPointer {
        unsafe Bytes.slice(fields, at + 4, Int(Bytes.u16(fields, at + 2))) ?? Bytes.none
    }

    @safe private static func bytes(_ fields: UnsafeRawBufferPointer, _ at: Int) -> Int {
        let value = at + 4 + Int(Bytes.u16(fields, at + 2))
        switch Bytes.u8(fields, at) {
        case FieldType.bool: return value + 1 - at
        case FieldType.string: return value + 4 + Int(Bytes.u32(fields, value)) - at
        default: return value + 8 - at
        }
    }

    @safe private static func has(
        _ fields: UnsafeRawBufferPointer, _ wanted: UnsafeRawBufferPointer
    ) -> Bool {
        var at = 0
        while at < fields.count {
            if Bytes.equal(key(fields, at), wanted) { return true }
            at += bytes(fields, at)
        }
        return false
    }
}
