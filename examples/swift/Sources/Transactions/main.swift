// Like examples/transactions/transactions.c, in Swift: names come from the enums' cases, and
// records of the tasks inside carry the id. Transactions STORE URL

import Cordwood
import Foundation

enum Shop: Int32, TransactionUseCase {
    case checkout = 17
    enum Event: Int32, CaseIterable {
        case begun = 0
        case paid
    }
}

guard CommandLine.arguments.count == 3 else {
    print("usage: Transactions STORE URL")
    exit(2)
}
let engine = try Engine(directory: CommandLine.arguments[1])
var target = TargetOptions.transactions(CommandLine.arguments[2], token: "token")
target.name = "transactions"
try engine.addTarget(target)

try await engine.transaction(Shop.checkout) { checkout in
    checkout.event(Shop.Event.begun)
    print("\(Transaction.header): \(checkout.id)")
    print("traceparent: \(checkout.traceparent)")
    await Task.yield()
    checkout.event(Shop.Event.paid, error: "42", description: "the card was refused")
}

print(try engine.flushTransactions(), "events sent")
try engine.close()
