// The outcome of a transfer, in words for people: one sentence for each case (B-NET-5), and a
// longer text with the details of a failure. English and German; other languages get English. Pure.
// Causes and the server's own message stay in their original language.

import CordwoodFormats

public enum OutcomeLanguage: String, CaseIterable, Sendable {
    case english = "en"
    case german = "de"

    /// `de`, `de-AT`, `de_DE.UTF-8`; nil and unknown tags: English.
    public init(_ tag: String?) {
        let word = (tag ?? "").prefix { $0 != "-" && $0 != "_" && $0 != "." && $0 != "@" }
        self = OutcomeLanguage(rawValue: word.lowercased()) ?? .english
    }
}

extension OutcomeKind {
    /// The word in logs and in Python.
    public var word: String {
        switch self {
        case .none: "none"
        case .success: "success"
        case .requestFailed: "request_failed"
        case .redirection: "redirection"
        case .client: "client"
        case .server: "server"
        case .unknown: "unknown"
        }
    }

    /// One sentence.
    public func sentence(_ language: OutcomeLanguage) -> StaticString {
        switch (language, self) {
        case (.english, .none): "Nothing was transferred."
        case (.english, .success): "The server took what was sent."
        case (.english, .requestFailed): "The server could not be reached, or did not answer."
        case (.english, .redirection): "The server points to another address."
        case (.english, .client): "The server refused what was sent."
        case (.english, .server): "The server had an error of its own."
        case (.english, .unknown): "The server gave an answer that is not understood."
        case (.german, .none): "Es wurde nichts übertragen."
        case (.german, .success): "Der Server hat die Daten angenommen."
        case (.german, .requestFailed):
            "Der Server war nicht zu erreichen oder hat nicht geantwortet."
        case (.german, .redirection): "Der Server verweist auf eine andere Adresse."
        case (.german, .client): "Der Server hat die Daten abgelehnt."
        case (.german, .server): "Auf dem Server ist ein Fehler aufgetreten."
        case (.german, .unknown): "Die Antwort des Servers ist nicht zu verstehen."
        }
    }
}

extension FailureDetail {
    /// The case's sentence and further details, including the server's own message. No secrets.
    public func text(_ language: OutcomeLanguage) -> String {
        let isGerman = language == .german
        var text = "\(kind.sentence(language))"
        // The status of an incomplete answer means nothing.
        if httpStatus != 0, kind != .requestFailed {
            text += " HTTP \(httpStatus)"
            text += FailureDetail.reason(httpStatus, language).map { ": \($0)." } ?? "."
        } else if !cause.isEmpty {
            text += isGerman ? " Ursache: \(cause)." : " Cause: \(cause)."
        }
        if !location.isEmpty {
            text += isGerman ? " Adresse: \(location)." : " Address: \(location)."
        }
        if let odata {
            let words = odata.message.isEmpty ? odata.code : odata.message
            text += isGerman ? " Der Server meldet: „\(words)“" : " The server says: “\(words)”"
            var marks: [String] = []
            if !odata.message.isEmpty, !odata.code.isEmpty {
                marks.append((isGerman ? "Code " : "code ") + odata.code)
            }
            if !odata.transactionID.isEmpty {
                marks.append((isGerman ? "Transaktion " : "transaction ") + odata.transactionID)
            }
            text += marks.isEmpty ? "." : " (\(marks.joined(separator: ", ")))."
        }
        if let seconds = retryAfterSeconds {
            text +=
                isGerman
                ? " Er bittet, \(seconds) s zu warten." : " It asks to wait \(seconds) s."
        }
        return text
    }

    /// The usual meaning of a status; nil: nothing more than its class.
    private static func reason(_ httpStatus: Int32, _ language: OutcomeLanguage) -> StaticString? {
        let isGerman = language == .german
        switch httpStatus {
        case 401: return isGerman ? "die Anmeldung fehlt oder gilt nicht" : "not authenticated"
        case 403: return isGerman ? "keine Berechtigung" : "not allowed"
        case 404: return isGerman ? "die Adresse gibt es dort nicht" : "no such address there"
        case 407: return isGerman ? "der Proxy verlangt eine Anmeldung" : "the proxy wants a login"
        case 408: return isGerman ? "dem Server ging es zu langsam" : "too slow for the server"
        case 413: return isGerman ? "die Daten sind zu groß" : "too large"
        case 415:
            return isGerman ? "dieses Format nimmt er nicht" : "not in this format or encoding"
        case 429: return isGerman ? "zu viele Anfragen" : "too many requests"
        case 503: return isGerman ? "vorübergehend nicht verfügbar" : "unavailable for the moment"
        case 507: return isGerman ? "der Speicher des Servers ist voll" : "the server is full"
        default: return nil
        }
    }
}
