// Transactions with a closure: begun before it and ended after it. Every record that Swift's
// loggers write inside carries the transaction's id and trace ids, in the task, its child tasks,
// and across suspension points (Context).
//
//     try await engine.transaction(Shop.checkout) { checkout in
//         try await pay()
//         checkout.event(Shop.Event.paid)
//     }

import CordwoodCore
import CordwoodEngine
import CordwoodTrace

extension Transaction {
    /// Runs the body with the transaction's ids in every record.
    @discardableResult
    public func with<Result, Failure: Error>(
        _ body: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try Context.withTrace(traceIDs) { () throws(Failure) -> Result in
            try Context.with(["txn.id": id], body)
        }
    }

    @discardableResult
    public func with<Result: Sendable>(
        isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> Result
    ) async rethrows -> Result {
        try await Context.withTrace(traceIDs, isolation: isolation) {
            try await Context.with(["txn.id": id], isolation: isolation, body)
        }
    }

    /// The trace of its records, and its span.
    public var traceIDs: TraceIDs {
        // A transaction's ids are never zero.
        TraceIDs(traceparent: traceparent)!
    }
}

extension Context {
    /// For servers: runs the body with the ids from the request's headers in force. Records and
    /// requests made inside belong to the caller's trace (`traceparent`, otherwise that of the
    /// transaction), transaction (`X-Transaction-Id`) and conversation. Malformed values are
    /// ignored, so hosts can pass headers unchecked.
    @discardableResult
    public static func withCaller<Result: Sendable>(
        _ headers: [(String, String)],
        conversationHeader: String = HTTPCaptureOptions.conversationHeaderDefault,
        isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> Result
    ) async rethrows -> Result {
        let told = CallerHeaders(headers, conversationHeader: conversationHeader)
        var inside = box
        if let id = told.transaction { inside = ContextBox(inside, adding: ["txn.id": id]) }
        if let id = told.conversation {
            inside = ContextBox(inside, adding: [conversationField: id])
        }
        let trace =
            told.traceparent.flatMap { TraceIDs(traceparent: $0) }
            ?? told.transactionTrace.flatMap { TraceIDs(traceID: $0, flags: 1) }
        if let trace { inside = ContextBox(inside, trace: trace) }
        return try await run(inside, isolation: isolation, body)
    }
}

extension Engine {
    /// Begins a transaction, runs the body inside it, and ends it however the body returns.
    @discardableResult
    public func transaction<Result>(
        _ usecase: Int32, _ body: (Transaction) throws -> Result
    ) throws -> Result {
        let transaction = try self.transaction(usecase)
        defer { transaction.end() }
        return try transaction.with { () throws(any Error) in try body(transaction) }
    }

    @discardableResult
    public func transaction<UseCase: TransactionUseCase, Result>(
        _ usecase: UseCase, _ body: (Transaction) throws -> Result
    ) throws -> Result {
        try registerTransactions(UseCase.self)
        return try transaction(usecase.rawValue, body)
    }

    @discardableResult
    public func transaction<Result: Sendable>(
        _ usecase: Int32, isolation: isolated (any Actor)? = #isolation,
        _ body: (Transaction) async throws -> Result
    ) async throws -> Result {
        let transaction = try self.transaction(usecase)
        defer { transaction.end() }
        return try await transaction.with(isolation: isolation) { try await body(transaction) }
    }

    @discardableResult
    public func transaction<UseCase: TransactionUseCase, Result: Sendable>(
        _ usecase: UseCase, isolation: isolated (any Actor)? = #isolation,
        _ body: (Transaction) async throws -> Result
    ) async throws -> Result {
        try registerTransactions(UseCase.self)
        return try await transaction(usecase.rawValue, isolation: isolation, body)
    }

    /// Like flushTransactions, but off the caller's thread: it never blocks the task's thread.
    @discardableResult
    public func flushTransactions() async throws -> UInt64 {
        let engine = self
        return try await withCheckedThrowingContinuation { continuation in
            let isStarted = EngineThread.start("cordwood-flush") {
                continuation.resume(
                    with: Swift.Result { try engine.flushTransactions(timeout: nil) })
            }
            if !isStarted {
                continuation.resume(
                    throwing: CordwoodError(Status.memory, "the system gave no thread"))
            }
        }
    }
}
