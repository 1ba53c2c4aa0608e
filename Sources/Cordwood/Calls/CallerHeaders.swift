// The facts in a request's headers about its caller: trace, transaction, conversation. Malformed
// values are ignored, since hosts pass headers unchecked. Pure.

import CordwoodStore
import CordwoodTrace

struct CallerHeaders {
    /// The header as it came; its users parse it.
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

    /// The id goes unchanged into every record, so nothing that may be a secret (a JWT) is
    /// accepted.
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
