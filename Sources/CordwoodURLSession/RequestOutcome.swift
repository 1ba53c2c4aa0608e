// Names an error of URLSession, for captured exchanges and NetworkError. Foundation on Linux has
// few codes of its own: it reports most libcurl errors as `unknown` with libcurl's text, which says
// more. Pure.

import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The result of an exchange; empty: success.
package struct RequestOutcome {
    package var error = ""
    package var errorType = ""
    package var isCancelled = false

    package init() {}

    /// at: the target of a redirection, if it was followed.
    package init(_ error: any Error, at url: String? = nil) {
        let whole = error as NSError
        var text = whole.userInfo[NSLocalizedDescriptionKey] as? String ?? ""
        guard let error = error as? URLError else {
            self.error = text.isEmpty ? "\(error)" : text
            errorType = "\(Swift.type(of: error))"
            return
        }
        let known = RequestOutcome.words(error.code)
        errorType = known?.type ?? RequestOutcome.kind(of: text)
        if text.isEmpty || RequestOutcome.saysNothing(text) {
            text = known?.text ?? "URLError \(error.code.rawValue)"
        }
        self.error = url.map { "\(text) (at \($0))" } ?? text
        isCancelled = error.code == .cancelled
    }

    /// Foundation's own text for a code, used if libcurl gave none.
    private static func saysNothing(_ text: String) -> Bool {
        text == "Completion failure" || text == "N/A" || text.hasPrefix("The operation could not")
    }

    private static func words(_ code: URLError.Code) -> (type: String, text: String)? {
        switch code {
        case .cancelled, .userCancelledAuthentication: ("cancelled", "cancelled")
        case .timedOut: ("timeout", "timed out")
        case .cannotFindHost, .dnsLookupFailed: ("dns", "cannot find the host")
        case .cannotConnectToHost: ("connect", "cannot connect to the host")
        case .networkConnectionLost: ("connection", "the connection was lost")
        case .badServerResponse: ("response", "no whole answer")
        case .httpTooManyRedirects: ("redirects", "too many redirections")
        case .secureConnectionFailed, .serverCertificateUntrusted, .serverCertificateHasBadDate,
            .serverCertificateHasUnknownRoot, .serverCertificateNotYetValid,
            .clientCertificateRejected, .clientCertificateRequired:
            ("tls", "no TLS with the host")
        default: nil
        }
    }

    /// Derived from libcurl's text, for the code `unknown`.
    private static func kind(of text: String) -> String {
        let text = text.lowercased()
        func has(_ words: String...) -> Bool { words.contains { text.contains($0) } }
        if has("ssl", "tls", "certificate") { return "tls" }
        if has("timed out", "timeout") { return "timeout" }
        if has("could not resolve", "couldn't resolve") { return "dns" }
        if has("failed to connect", "couldn't connect", "connection refused") { return "connect" }
        if has("transfer closed", "partial file", "chunk", "empty reply") { return "response" }
        if has("reset by peer", "recv failure", "send failure", "failed sending data") {
            return "connection"
        }
        return "URLError"
    }
}
