// Who we say we are, and who is asked for more when a server no longer believes it. A target has
// one CredentialKeeper, which all its requests share: where several are refused at once the host is
// asked once. Nothing here is logged, stored or shown.

import Glibc
import Synchronization

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

    var isEmpty: Bool { token == nil && user == nil && password == nil }

    /// `Bearer`, else `Basic`, else none.
    var authorization: RequestHeader? {
        if let token { return RequestHeader(name: "Authorization", value: "Bearer \(token)") }
        guard let user else { return nil }
        let pair = Base64.text(Array("\(user):\(password ?? "")".utf8))
        return RequestHeader(name: "Authorization", value: "Basic \(pair)")
    }

    /// Empty words are none. Throws what cannot be sent, naming it and not showing it.
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

/// What a server refused.
public struct CredentialsQuery: Sendable {
    /// The target's name.
    public var target: String
    /// The answer's WWW-Authenticate; the server's own words.
    public var challenge: String?
}

/// Called on a thread of the engine's, may block. nil, or what was refused: the target rests until
/// somebody adds it anew or uploads explicitly.
public typealias AskCredentials = @Sendable (CredentialsQuery) throws -> Credentials?

/// SAFETY: all is guarded by the lock, which is never held while the host is asked.
final class CredentialKeeper: Sendable {
    private struct State {
        var current: Credentials
        /// Questions that were answered.
        var rounds: UInt64 = 0
        /// The process that asks right now; a child inherits no asking thread.
        var asking: pid_t = 0
    }

    private let state: Mutex<State>
    private let target: String
    private let ask: AskCredentials?
    private static let restMicroseconds: UInt32 = 20_000

    init(_ credentials: Credentials, target: String, ask: AskCredentials?) {
        state = Mutex(State(current: credentials))
        self.target = target
        self.ask = ask
    }

    var current: Credentials { state.withLock { $0.current } }

    enum Renewal: Equatable {
        /// `isAsked`: the host was asked for these now, rather than by another request before.
        case renewed(Credentials, isAsked: Bool)
        /// The host has no others; `cause` says why where that is worth knowing.
        case none(cause: String?)
    }

    /// Others than those that were refused. While another request of the target asks the host, this
    /// waits for that answer, unless `isStopped`.
    func renew(
        _ refused: Credentials, challenge: String?, isStopped: () -> Bool
    ) -> Renewal {
        guard let ask else { return .none(cause: nil) }
        let me = getpid()
        let seen = state.withLock { $0.rounds }
        while true {
            let (isMine, answer) = state.withLock { state -> (Bool, Renewal?) in
                if state.current != refused {
                    return (false, .renewed(state.current, isAsked: false))
                }
                if state.asking == me { return (false, nil) }
                if state.rounds != seen { return (false, Renewal.none(cause: nil)) }
                state.asking = me
                return (true, nil)
            }
            if let answer { return answer }
            if isMine { return put(ask, challenge) }
            if isStopped() { return .none(cause: nil) }
            usleep(CredentialKeeper.restMicroseconds)
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
        return state.withLock { state in
            state.asking = 0
            state.rounds &+= 1
            guard let fresh, !fresh.isEmpty, fresh != state.current else {
                return .none(cause: cause)
            }
            state.current = fresh
            return .renewed(fresh, isAsked: true)
        }
    }
}
