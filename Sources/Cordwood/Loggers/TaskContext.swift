// Fields and trace ids that belong to the running task: every record written inside carries them,
// in the task, its child tasks, and across suspension points. Task-local values hold them, and each
// record gets a copy, so threads that run many tasks never mix them up. Until the first use of a
// context, records pay one load for it.
// SAFETY: a box never changes. `take` returns it retained, and its memory lives as long as the box.

import CordwoodTrace
import CordwoodFormats
import CShims
import CordwoodCore

public enum Context {
    @TaskLocal static var box: ContextBox?

    /// Adds fields to every record written inside. An inner context overrides an outer one's field
    /// of the same key; a record's own field overrides both.
    @discardableResult
    public static func with<Result, Failure: Error>(
        _ fields: KeyValuePairs<String, any LogValue>,
        _ body: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try run(ContextBox(box, adding: fields), body)
    }

    @discardableResult
    public static func with<Result: Sendable>(
        _ fields: KeyValuePairs<String, any LogValue>,
        isolation: isolated (any Actor)? = #isolation,
        _ body: () async throws -> Result
    ) async rethrows -> Result {
        _ = Self.installed
        return try await $box.withValue(
            ContextBox(box, adding: fields), operation: body, isolation: isolation)
    }

    /// Puts W3C ids into every record written inside.
    @discardableResult
    public static func withTrace<Result, Failure: Error>(
        _ trace: TraceIDs, _ body: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try run(ContextBox(box, trace: trace), body)
    }

    @discardableResult
    public static func withTrace<Result: Sendable>(
        _ trace: TraceIDs, isolation: isolated (any Actor)? = #isolation,
        _ body: () async throws -> Result
    ) async rethrows -> Result {
        _ = Self.installed
        return try await $box.withValue(
            ContextBox(box, trace: trace), operation: body, isolation: isolation)
    }

    /// Puts the field `http.conversation` into records written inside, and the id into exchanges
    /// that have no header for it. Without an id, a new one is made.
    @discardableResult
    public static func withConversation<Result, Failure: Error>(
        _ id: String? = nil, _ body: (String) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        let id = id ?? newConversation()
        return try with([conversationField: id]) { () throws(Failure) -> Result in try body(id) }
    }

    @discardableResult
    public static func withConversation<Result: Sendable>(
        _ id: String? = nil, isolation: isolated (any Actor)? = #isolation,
        _ body: (String) async throws -> Result
    ) async rethrows -> Result {
        let id = id ?? newConversation()
        return try await with([conversationField: id], isolation: isolation) {
            try await body(id)
        }
    }

    /// Notes the ids of captured URLSession requests that are made inside.
    @discardableResult
    public static func with<Result: Sendable>(
        exchangeNote note: ExchangeNote, isolation: isolated (any Actor)? = #isolation,
        _ body: () async throws -> Result
    ) async rethrows -> Result {
        _ = Self.installed
        return try await $box.withValue(
            ContextBox(box, note: note), operation: body, isolation: isolation)
    }

    @discardableResult
    public static func with<Result, Failure: Error>(
        exchangeNote note: ExchangeNote, _ body: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try run(ContextBox(box, note: note), body)
    }

    /// The note in force here.
    package static var exchangeNote: ExchangeNote? { box?.note }

    static let conversationField = "http.conversation"

    /// Replaces the context in force by the box while the body runs.
    static func run<Result: Sendable>(
        _ box: ContextBox?, isolation: isolated (any Actor)?, _ body: () async throws -> Result
    ) async rethrows -> Result {
        _ = Self.installed
        return try await $box.withValue(box, operation: body, isolation: isolation)
    }

    private static func newConversation() -> String {
        Hex.text((0..<16).map { _ in UInt8.random(in: 0 ... .max) })
    }

    /// The conversation in force here.
    public static var conversation: String? { text(conversationField) }

    /// The id of the transaction in force here.
    public static var transactionID: String? { text("txn.id") }

    private static func text(_ key: String) -> String? {
        guard case .string(let value)? = fields.first(where: { $0.key == key })?.value else {
            return nil
        }
        return value
    }

    /// The context in force where the snapshot is made, to carry it to places that task-local
    /// values do not reach: a queue, a thread, a callback.
    public struct Snapshot: Sendable {
        private let box: ContextBox?

        public init() { box = Context.box }

        /// Runs the body with this context in place of the current one.
        public func run<Result, Failure: Error>(
            _ body: () throws(Failure) -> Result
        ) throws(Failure) -> Result {
            try Context.run(box, body)
        }
    }

    /// The fields in force here.
    public static var fields: [(key: String, value: FieldInput)] { box?.fields ?? [] }

    /// The trace ids in force here.
    public static var trace: TraceIDs? { box?.trace }

    private static func run<Result, Failure: Error>(
        _ box: ContextBox?, _ body: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        _ = installed
        let result: Swift.Result<Result, Failure> = $box.withValue(box) {
            do throws(Failure) { return .success(try body()) } catch { return .failure(error) }
        }
        return try result.get()
    }

    /// Installed once; from then on the append path asks for the context.
    private static let installed: Void = {
        unsafe cwi_context_install(
            { view in
                guard let view = unsafe view, let box = Context.box else { return nil }
                unsafe box.fill(view)
                return unsafe Unmanaged.passRetained(box).toOpaque()
            },
            { owner in
                guard let owner = unsafe owner else { return }
                unsafe Unmanaged<ContextBox>.fromOpaque(owner).release()
            })
    }()
}

/// The captured exchange of a request: the last one if there are several, as with redirections.
/// SAFETY: `last` is guarded by the lock.
@safe public final class ExchangeNote: @unchecked Sendable {
    private let monitor = Monitor()
    private var last: String?

    public init() {}

    /// 16 hex digits, the argument of `cordwood http show`; nil: none was captured.
    public var id: String? { monitor.locked { last } }

    package func put(_ id: String?) { monitor.locked { last = id } }
}

/// W3C ids: those of the trace and of the span in force, and the flags.
public struct TraceIDs: Sendable, Hashable {
    /// 16 bytes, not all zero.
    public let traceID: [UInt8]
    /// 8 bytes; empty: none.
    public let spanID: [UInt8]
    public let flags: UInt8

    /// nil for other lengths.
    public init?(traceID: [UInt8], spanID: [UInt8] = [], flags: UInt8 = 0) {
        guard traceID.count == 16, traceID.contains(where: { $0 != 0 }),
            spanID.isEmpty || spanID.count == 8
        else { return nil }
        self.traceID = traceID
        self.spanID = spanID
        self.flags = flags
    }

    /// 32 and 16 hex digits.
    public init?(traceID: String, spanID: String? = nil, flags: UInt8 = 0) {
        guard let trace = Hex.bytes(traceID.utf8), let span = Hex.bytes((spanID ?? "").utf8)
        else { return nil }
        self.init(traceID: trace, spanID: span, flags: flags)
    }

    /// A `traceparent` header: `00-<32 digits>-<16 digits>-<2 digits>`, in lower case.
    public init?(traceparent: String) {
        var ids = [UInt8](repeating: 0, count: TraceLayout.bytes)
        // SAFETY: `parse` fills exactly that many bytes.
        guard
            unsafe ids.withUnsafeMutableBytes({
                unsafe Traceparent.parse(traceparent, into: $0.baseAddress!)
            })
        else { return nil }
        self.init(traceID: Array(ids[..<16]), spanID: Array(ids[16..<24]), flags: ids[24])
    }

    /// The W3C header for a request made inside. If there is no span id, a new one is made.
    public var traceparent: String {
        var span = spanID
        while span.allSatisfy({ $0 == 0 }) { span = (0..<8).map { _ in .random(in: 0 ... .max) } }
        return "00-\(Hex.text(traceID))-\(Hex.text(span))-\(Hex.text([flags]))"
    }

}

/// The context in force, as values and in the form that records hold.
@safe final class ContextBox: @unchecked Sendable {
    let fields: [(key: String, value: FieldInput)]
    let trace: TraceIDs?
    let note: ExchangeNote?
    // SAFETY: allocated and filled in init, freed in deinit, never changed between.
    private let memory: UnsafeMutableRawBufferPointer

    private init(
        _ fields: [(key: String, value: FieldInput)], _ trace: TraceIDs?, _ note: ExchangeNote?
    ) {
        self.fields = fields
        self.trace = trace
        self.note = note
        var bytes: [UInt8] = []
        if let trace {
            bytes += trace.traceID
            bytes += trace.spanID.isEmpty ? Array(repeating: 0, count: 8) : trace.spanID
            bytes.append(trace.flags)
        } else {
            bytes += Array(repeating: 0, count: TraceLayout.bytes)
        }
        for (key, value) in fields { RecordWriter.put(key, value, &bytes) }
        unsafe memory = .allocate(byteCount: bytes.count, alignment: 8)
        unsafe memory.copyBytes(from: bytes)
    }

    convenience init(_ outer: ContextBox?, adding added: KeyValuePairs<String, any LogValue>) {
        var fields = outer?.fields ?? []
        for (key, value) in added {
            fields.removeAll { $0.key == key }
            fields.append((key, value.fieldInput))
        }
        self.init(fields, outer?.trace, outer?.note)
    }

    convenience init(_ outer: ContextBox?, trace: TraceIDs) {
        self.init(outer?.fields ?? [], trace, outer?.note)
    }

    convenience init(_ outer: ContextBox?, note: ExchangeNote) {
        self.init(outer?.fields ?? [], outer?.trace, note)
    }

    deinit { unsafe memory.deallocate() }

    func fill(_ view: UnsafeMutablePointer<cwi_context_view>) {
        let start = unsafe memory.baseAddress!
        unsafe view.pointee.trace = UnsafeRawPointer(start)
        unsafe view.pointee.has_trace = trace == nil ? 0 : 1
        unsafe view.pointee.fields = UnsafeRawPointer(start + TraceLayout.bytes)
        unsafe view.pointee.field_bytes = UInt64(memory.count - TraceLayout.bytes)
        unsafe view.pointee.field_count = UInt32(fields.count)
    }
}
