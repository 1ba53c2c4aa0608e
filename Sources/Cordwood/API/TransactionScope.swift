// Transactions with a closure: begun before it, ended behind it, and every record that Swift's
// loggers write inside carries the id and the trace ids, in the task, its child tasks, and across
// suspension points (Context). The C libraries leave this file out, as TaskContext.swift, so
// nothing else may refer to it. Not to be the room's first file: see UploadTask.swift.
//
//     try await engine.transaction(Shop.checkout) { checkout in
//         try await pay()
//         checkout.event(Shop.Event.paid)
//     }

import CordwoodCore

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
        // A transaction's are never zero.
        TraceIDs(traceparent: traceparent)!
    }
}

extension Context {
    /// For a server: runs the body with what the request's headers say in force, so that what is
    /// logged and asked inside belongs to the caller's trace (`traceparent`, else that of the
    /// transaction), transaction (`X-Transaction-Id`) and conversation. What is not spelled as it
    /// must be is passed over: headers are taken unread.
    @discardableResult
    public static func withCaller<Result: Sendable>(
        _ headers: [(String, String)],
        conversationHeader: String = HTTPCaptureOptions.conversationHeaderDefault,
        isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> Result
    ) async rethrows -> Result {
        func told(_ name: String) -> String? {
            headers.first { $0.0.lowercased() == name.lowercased() }?.1
        }
        var fields = Self.fields
        func put(_ key: String, _ value: String) {
            fields.removeAll { $0.key == key }
            fields.append((key, .string(value)))
        }
        var trace = told("traceparent").flatMap { TraceIDs(traceparent: $0) }
        if let id = told(Transaction.header), TransactionID(id) != nil {
            put("txn.id", id)
            let digits = id.suffix(36).lowercased().filter { $0 != "-" }
            trace = trace ?? TraceIDs(traceID: digits, flags: 1)
        }
        if let id = told(conversationHeader), isConversation(id) { put(conversationField, id) }
        return try await with(fields, trace ?? Self.trace, isolation: isolation, body)
    }

    /// It stands as it is in every record: nothing that may be a secret (a JWT) is taken.
    private static func isConversation(_ id: String) -> Bool {
        let id = id.utf8
        guard (1...128).contains(id.count), !id.starts(with: "eyJ".utf8) else { return false }
        return id.allSatisfy {
            switch $0 {
            case 0x30...0x3a, 0x41...0x5a, 0x61...0x7a, 0x2d, 0x2e, 0x5f: true
            default: false
            }
        }
    }
}

extension Engine {
    /// Begins a transaction, runs the body inside, and ends it, whatever the body does.
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

    /// As flushTransactions, off the caller's thread: nothing of the task's is blocked.
    @discardableResult
    public func flushTransactions() async throws -> UInt64 {
        let engine = self
        return try await withCheckedThrowingContinuation { continuation in
            let isStarted = EngineThread.start("cordwood-flush") {
                continuation.resume(
                    with: Swift.Result { try engine.flushTransactions(timeoutMs: .max) })
            }
            if !isStarted {
                continuation.resume(
                    throwing: CordwoodError(Status.memory, "the system gave no thread"))
            }
        }
    }
}
