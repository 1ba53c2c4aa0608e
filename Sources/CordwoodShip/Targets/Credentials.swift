// Our credentials, and the host's callback for new ones when a server rejects them. A target has
// one CredentialKeeper, which all its requests share: if several are refused at once, the host is
// asked once. Nothing here is logged, stored or shown.

import CordwoodCore
import CordwoodFormats
import CordwoodStore

/// Never logged, stored or shown.
public struct Credentials: Equatable, Sendable {
    /// Bearer token, API key, Splunk token.
    public var token: String?
    /// Basic authentication; access key of S3.
    public var user: String?
    public var password: String?

    static let bytesMax = 16_384

    public init(token: String? = nil, user: String? = nil, password: String? = nil) {
        self.token = token
        self.user = user
        self.password = password
    }

    /// User names are not secret.
    var secrets: [String] { [token, password].compactMap { $0 } }

    var isEmpty: Bool { token == nil && user == nil && password == nil }

    /// `Bearer`, otherwise `Basic`, otherwise none.
    var authorization: RequestHeader? {
        if let token { return RequestHeader(name: "Authorization", value: "Bearer \(token)") }
        guard let user else { return nil }
        let pair = Base64.text(Array("\(user):\(password ?? "")".utf8))
        return RequestHeader(name: "Authorization", value: "Basic \(pair)")
    }

    /// Treats empty strings as missing. Throws for a value that cannot be sent, naming it without
    /// showing it.
    public func checked() throws(UploadError) -> Credentials {
        func checked(_ text: String?, _ what: String) throws(UploadError) -> String? {
            guard let text, !text.isEmpty else { return nil }
            guard text.utf8.count <= Credentials.bytesMax,
                text.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F })
            else {
                throw UploadError.argument(
                    "\(what) is over \(Credentials.bytesMax) bytes or holds a control character")
            }
            return text
        }
        let token = try checked(token, "auth_token")
        guard token?.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) ?? true else {
            throw UploadError.argument("auth_token is not printable ASCII")
        }
        let user = try checked(user, "auth_user")
        guard user?.utf8.contains(0x3A) != true else {
            throw UploadError.argument("auth_user holds a colon, which ends a user's name")
        }
        let password = try checked(password, "auth_password")
        guard password == nil || user != nil else {
            throw UploadError.argument("auth_password is given without auth_user")
        }
        return Credentials(token: token, user: user, password: password)
    }
}

/// The server's refusal.
public struct CredentialsQuery: Sendable {
    /// The target's name.
    public var target: String
    /// The answer's WWW-Authenticate, as the server sent it.
    public var challenge: String?
}

/// Called on an engine thread; may block. If it returns nil or the refused credentials, the target
/// rests until it is added anew or an explicit upload is requested.
public typealias AskCredentials = @Sendable (CredentialsQuery) throws -> Credentials?

/// SAFETY: the monitor guards the variables and is never held while the host is asked.
final class CredentialKeeper: @unchecked Sendable {
    private let target: String
    private let ask: AskCredentials?
    private let monitor = Monitor()
    private var held: Credentials
    /// Number of questions answered.
    private var rounds: UInt64 = 0
    private var isAsking = false

    /// The time within which a stop is noticed.
    private static let lookMs: UInt64 = 20

    init(_ credentials: Credentials, target: String, ask: AskCredentials?) {
        held = credentials
        self.target = target
        self.ask = ask
    }

    var current: Credentials { monitor.locked { held } }

    enum Renewal: Equatable {
        /// `isAsked`: the host was asked just now, not by another request before.
        case renewed(Credentials, isAsked: Bool)
        /// The host has no others; `cause` gives the reason if it is worth knowing.
        case none(cause: String?)
    }

    /// Credentials other than the refused ones. If another request of the target is asking the
    /// host, this waits for that answer, unless `isStopped`.
    func renew(
        _ refused: Credentials, challenge: String?, isStopped: () -> Bool
    ) -> Renewal {
        guard let ask else { return .none(cause: nil) }
        let seen = monitor.locked { rounds }
        while true {
            let (isMine, answer) = monitor.locked { () -> (Bool, Renewal?) in
                if held != refused { return (false, .renewed(held, isAsked: false)) }
                if rounds != seen { return (false, Renewal.none(cause: nil)) }
                guard isAsking else {
                    isAsking = true
                    return (true, nil)
                }
                _ = monitor.wait(until: Deadline(afterMs: CredentialKeeper.lookMs))
                return (false, nil)
            }
            if let answer { return answer }
            if isMine { return put(ask, challenge) }
            if isStopped() { return .none(cause: nil) }
        }
    }

    private func put(_ ask: AskCredentials, _ challenge: String?) -> Renewal {
        var fresh: Credentials?
        var cause: String?
        do {
            fresh = try ask(CredentialsQuery(target: target, challenge: challenge))?.checked()
        } catch let error as UploadError {
            cause = error.text
        } catch {
            cause = "the credentials callback threw \(type(of: error))"
        }
        return monitor.locked {
            isAsking = false
            rounds &+= 1
            monitor.notify()
            guard let fresh, !fresh.isEmpty, fresh != held else { return .none(cause: cause) }
            held = fresh
            return .renewed(fresh, isAsked: true)
        }
    }
}
