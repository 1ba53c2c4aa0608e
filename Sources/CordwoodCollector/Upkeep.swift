// What a collector looks after every second, whoever comes: the file of its tokens, and whether its
// disk takes archives again. Says once what went wrong, and once that it is well. Blocking: file
// pool only, one round at a time.

import Synchronization

final class Upkeep: Sendable {
    static let intervalMs: Int64 = 1_000

    private let tokens: Tokens
    private let depot: Depot
    private let notice: (@Sendable (String) -> Bool)?
    private let told = Mutex<String?>(nil)

    init(tokens: Tokens, depot: Depot, notice: (@Sendable (String) -> Bool)?) {
        self.tokens = tokens
        self.depot = depot
        self.notice = notice
    }

    func look() {
        depot.tryAgain()
        let problem = tokens.lookAgain(depot.senders)
        guard let notice, told.withLock({ $0 }) != problem else { return }
        let text = problem.map { "\($0): those read last still count" } ?? "tokens read again"
        if notice(text) { told.withLock { $0 = problem } }
    }
}
