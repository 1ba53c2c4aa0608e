// Follows 307 and 308 within one origin, for every transport: a body and a token must not go
// elsewhere, and the other redirections would drop the body. Resolves a Location; unusual ones lead
// nowhere. Pure.

enum Redirection {
    static let countMax = 5

    /// Makes exchanges until the answer is not a redirection that may be followed.
    static func follow(
        _ request: TransferRequest, _ exchange: (TransferRequest) -> TransferOutcome
    ) -> TransferOutcome {
        var current = request
        var followed = 0
        while true {
            var outcome = exchange(current)
            guard outcome.httpStatus == 307 || outcome.httpStatus == 308,
                let location = outcome.header("location"),
                let next = target(location, from: current.url)
            else { return outcome }
            guard followed < countMax else {
                outcome.cause = "HTTP \(outcome.httpStatus): more than \(countMax) redirections"
                return outcome
            }
            followed += 1
            current.url = next
        }
    }

    /// The URL of a Location on the same scheme, host and port; nil: it leads elsewhere or nowhere.
    static func target(_ location: String, from url: String) -> String? {
        guard let from = try? WebAddress(url) else { return nil }
        // The client keeps the fragment and never sends it.
        let there = location.prefix { $0 != "#" }
        let here = url.prefix { $0 != "#" }
        let next: String
        if hasScheme(there) {
            next = String(there)
        } else if there.hasPrefix("//") {
            next = "\(from.scheme):\(there)"
        } else {
            let rest = here.dropFirst(from.scheme.count + 3)
            let start = rest.firstIndex { $0 == "/" || $0 == "?" } ?? rest.endIndex
            let origin = here[..<start]
            let path = rest[start...].prefix { $0 != "?" }
            if there.isEmpty {
                return nil
            } else if there.hasPrefix("/") {
                next = "\(origin)\(there)"
            } else if there.hasPrefix("?") {
                next = "\(origin)\(path)\(there)"
            } else {
                let directory = path.lastIndex(of: "/").map { path[...$0] } ?? "/"
                next = "\(origin)\(directory)\(there)"
            }
        }
        guard let to = try? WebAddress(next), from.isSameOrigin(to) else { return nil }
        return next
    }

    /// True for a colon before any slash or question mark.
    private static func hasScheme(_ text: Substring) -> Bool {
        text.first { $0 == ":" || $0 == "/" || $0 == "?" } == ":"
    }
}
