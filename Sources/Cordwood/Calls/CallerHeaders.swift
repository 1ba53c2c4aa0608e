// What a request's headers say of its caller: trace, transaction, conversation. What is not spelled
// as it must be is passed over: headers are taken unread. Pure.

import CordwoodStore
import CordwoodTrace

struct CallerHeaders {
    /// As it came; who uses it parses it.
    private(set) var traceparent: String?
    private(set) var transaction: String?
    /// 32 hex digits: the trace of the transaction's records.
    private(set) var transactionTrace: String?
    private(set) var conversation: String?

    init(_ headers: [(String, String)], conversationHeader: String) {
        func told(_ name: String) -> String? {
            let name = name.lowercased()
            return headers.first { $0.0.lowercased() == name }?.1
        }
        traceparent = told("traceparent")
        if let id = told(Transaction.header), TransactionID(id) != nil {
            transaction = id
            transactionTrace = String(id.suffix(36).lowercased().filter { $0 != "-" })
        }
        if let id = told(conversationHeader), CallerHeaders.isConversation(id) {
            conversation = id
        }
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
