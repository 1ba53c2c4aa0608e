// Application transactions for Swift hosts: a use case, its events, and one id that client and
// server share. TransactionScope.swift has the forms with a closure, whose records carry the id.
//
//     let checkout = try engine.transaction(17)
//     checkout.event(1, error: "42", description: "Baad!")
//     request.setValue(checkout.id, forHTTPHeaderField: Transaction.header)
//     checkout.end()

import CShims
import CordwoodCore
import CordwoodEngine
import CordwoodTrace

/// A program's use cases by name: an enum of Int32. The first transaction of a use case registers
/// the cases' names, which appear beside the numbers from then on.
public protocol TransactionUseCase: RawRepresentable, CaseIterable, Sendable
where RawValue == Int32 {
    /// The events of the use case: an enum of Int32; `Int32` if its events have no names.
    associatedtype Event: RawRepresentable & CaseIterable & Sendable = NoNamedEvents
    where Event.RawValue == Int32
}

/// For use cases whose events are only numbers.
public enum NoNamedEvents: Int32, CaseIterable, Sendable { case none = -2_147_483_648 }

extension Transaction {
    /// The header that carries the id unless the host names another.
    public static let header = "X-Transaction-Id"

    /// Logs an event like the call with a number, by its name.
    @discardableResult
    public func event<Code: RawRepresentable>(
        _ event: Code, error: String? = nil, description: String? = nil
    ) -> Int32 where Code.RawValue == Int32 {
        self.event(event.rawValue, error: error, description: description)
    }
}

extension Engine {
    /// Begins a transaction of a use case that is given by name.
    public func transaction<UseCase: TransactionUseCase>(
        _ usecase: UseCase
    ) throws(CordwoodError) -> Transaction {
        try registerTransactions(UseCase.self)
        return try transaction(usecase.rawValue)
    }

    /// Registers the names of an enum's cases; cases that already have a name keep it.
    public func registerTransactions<UseCase: TransactionUseCase>(
        _ type: UseCase.Type
    ) throws(CordwoodError) {
        for usecase in UseCase.allCases {
            try nameOnce(usecase.rawValue, TransactionTable.noEvent, "\(usecase)")
            guard UseCase.Event.self != NoNamedEvents.self else { continue }
            for event in UseCase.Event.allCases {
                try nameOnce(usecase.rawValue, event.rawValue, "\(event)")
            }
        }
    }

    private func nameOnce(
        _ usecase: Int32, _ event: Int32, _ name: String
    ) throws(CordwoodError) {
        let table = transactionTable
        let length = unsafe withUnsafeTemporaryAllocation(
            byteCount: TransactionTable.nameRoom, alignment: 8
        ) { unsafe table.name(usecase, event, into: $0.baseAddress.unsafelyUnwrapped) }
        guard length == 0 else { return }
        try setTransactionName(
            usecase: usecase, event: event == TransactionTable.noEvent ? nil : event, name)
    }
}
