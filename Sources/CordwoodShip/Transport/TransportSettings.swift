// How to reach a target's server: the same for all its requests. Checked when a target is added, so
// that a misspelt path is the host's error and not an endless retry. A value: it holds secrets and
// is never written anywhere; error texts name options and files, never contents.

import CSodium
import CordwoodCore
import CordwoodStore

struct TransportSettings: Equatable, Sendable {
    var connectTimeoutMs: UInt32 = 10_000
    /// The body's size raises it.
    var requestTimeoutMs: UInt32 = 60_000
    /// PEM files. nil: the system's certificates; no client certificate.
    var caFile: String?
    var clientCertificateFile: String?
    /// nil: the certificate's file has the key.
    var clientKeyFile: String?
    var clientKeyPassword: String?
    /// `http://host:port`, `https://…`, `socks5h://…`; nil: the environment's (http_proxy and the
    /// like); empty: none.
    var proxy: String?
    /// `user:password`.
    var proxyAuthentication: String?
    var httpVersion = HTTPVersion.automatic
    /// A transfer slower than this for that long is aborted.
    var stallBytesPerSecond: UInt32 = 1
    var stallSeconds: UInt32 = 60
    /// The amount libcurl reads and sends at a time: one system call each, and a transfer's memory
    /// (16 KiB to 2 MiB).
    var uploadBufferBytes = 512 << 10

    /// A certificate bundle has a few hundred KiB.
    static let pemBytesMax = 4 << 20
    static let textBytesMax = 4096
    static let proxySchemes = ["http", "https", "socks5h"]

    /// An option that only libcurl supports; a host's own transport would silently ignore it.
    var needsCurl: String? {
        if caFile != nil { return "ca_file" }
        if clientCertificateFile != nil { return "client_certificate_file" }
        if clientKeyFile != nil { return "client_key_file" }
        if clientKeyPassword != nil { return "client_key_password" }
        if proxy != nil { return "proxy" }
        if proxyAuthentication != nil { return "proxy_auth" }
        return httpVersion == .automatic ? nil : "http_version"
    }

    /// The settings with full paths, since hosts change their directory. Reads the files. Throws if
    /// a setting is wrong.
    func checked() throws(UploadError) -> TransportSettings {
        var result = self
        // An empty value means the same as a missing one, except for the proxy.
        result.caFile = try TransportSettings.path(caFile, "ca_file")
        result.clientCertificateFile = try TransportSettings.path(
            clientCertificateFile, "client_certificate_file")
        result.clientKeyFile = try TransportSettings.path(clientKeyFile, "client_key_file")
        result.clientKeyPassword = try TransportSettings.word(
            clientKeyPassword, "client_key_password")
        result.proxyAuthentication = try TransportSettings.word(proxyAuthentication, "proxy_auth")
        try result.checkFiles()
        try result.checkProxy()
        return result
    }

    private func checkFiles() throws(UploadError) {
        let certificate = "CERTIFICATE-----"
        let key = "PRIVATE KEY-----"
        if let caFile {
            try TransportSettings.requirePEM(caFile, "ca_file", certificate, "a certificate")
        }
        guard let clientCertificateFile else {
            guard clientKeyFile == nil, clientKeyPassword == nil else {
                throw UploadError.argument(
                    "client_key_file and client_key_password need client_certificate_file")
            }
            return
        }
        try TransportSettings.requirePEM(
            clientCertificateFile, "client_certificate_file", certificate, "a certificate")
        if let clientKeyFile {
            try TransportSettings.requirePEM(
                clientKeyFile, "client_key_file", key, "a private key")
        } else {
            try TransportSettings.requirePEM(
                clientCertificateFile, "client_certificate_file (there is no client_key_file)", key,
                "a private key")
        }
    }

    private func checkProxy() throws(UploadError) {
        if let proxyAuthentication {
            guard proxy != "" else {
                throw UploadError.argument("proxy_auth is given, but proxy is empty: none")
            }
            guard let colon = proxyAuthentication.utf8.firstIndex(of: 0x3A),
                colon > proxyAuthentication.utf8.startIndex
            else { throw UploadError.argument("proxy_auth is not user:password") }
        }
        guard let proxy, !proxy.isEmpty else { return }
        let mark = proxy.utf8.firstIndex(of: 0x3A) ?? proxy.utf8.endIndex
        let scheme = (String(proxy.utf8[..<mark]) ?? "").lowercased()
        let rest = proxy.utf8[mark...]
        guard TransportSettings.proxySchemes.contains(scheme), rest.starts(with: "://".utf8) else {
            let list = TransportSettings.proxySchemes.joined(separator: ", ")
            throw UploadError.argument("proxy is not SCHEME://HOST:PORT with one of \(list)")
        }
        let authority = String(rest.dropFirst(3)) ?? ""
        // Hosts and ports follow the rules of any URL, and so do error texts, except for the name.
        do throws(UploadError) {
            let address = try WebAddress("http://" + authority)
            guard !address.hasPathOrQuery || authority.hasSuffix("/") else {
                throw UploadError.argument("it has a path")
            }
        } catch {
            throw UploadError.argument(
                "proxy is not SCHEME://HOST:PORT, with user and password in proxy_auth")
        }
    }

    /// `proxyAuthentication` at its first colon.
    var proxyUser: (name: String, password: String)? {
        guard let proxyAuthentication, let colon = proxyAuthentication.firstIndex(of: ":") else {
            return nil
        }
        let password = proxyAuthentication[proxyAuthentication.index(after: colon)...]
        return (String(proxyAuthentication[..<colon]), String(password))
    }

    private static func word(_ text: String?, _ option: String) throws(UploadError) -> String? {
        guard let text, !text.isEmpty else { return nil }
        guard text.utf8.count <= textBytesMax,
            text.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F })
        else {
            throw UploadError.argument(
                "\(option) is over \(textBytesMax) bytes or holds a control character")
        }
        return text
    }

    private static func path(_ text: String?, _ option: String) throws(UploadError) -> String? {
        guard let text = try word(text, option) else { return nil }
        guard !text.hasPrefix("/") else { return text }
        guard let here = Files.workingDirectory() else {
            throw UploadError.argument(
                "\(option) '\(text)' is relative, and the working directory is gone")
        }
        return here + "/" + text
    }

    /// libcurl would report it only at the first request, and not for every file.
    private static func requirePEM(
        _ path: String, _ option: String, _ mark: String, _ what: String
    ) throws(UploadError) {
        var bytes = try read(path, option)
        // A private key.
        defer { unsafe sodium_memzero(&bytes, bytes.count) }
        guard find("-----BEGIN ", in: bytes), find(mark, in: bytes) else {
            throw UploadError.argument("\(option) '\(path)' holds no PEM of \(what)")
        }
    }

    private static func read(_ path: String, _ option: String) throws(UploadError) -> [UInt8] {
        func refuse(_ cause: String) -> UploadError {
            .argument("\(option) '\(path)': \(cause)")
        }
        // Links are followed: certificates are often replaced by switching a link.
        let descriptor = Files.openFollowing(FilePath(path), [.read, .nonBlocking, .noTerminal])
        guard descriptor >= 0 else { throw refuse(Errno.text(Errno.last)) }
        defer { FileCalls.close(descriptor) }
        guard StoreFiles.isRegular(descriptor) else { throw refuse("is not a regular file") }
        let size = Files.seekEnd(descriptor)
        guard size <= pemBytesMax else { throw refuse("is over \(pemBytesMax) bytes") }
        var bytes = [UInt8](repeating: 0, count: Int(max(size, 0)))
        let got = unsafe bytes.withUnsafeMutableBytes {
            unsafe Files.read(descriptor, into: $0, at: 0)
        }
        guard got >= 0 else { throw refuse(Errno.text(Errno.last)) }
        return bytes
    }

    private static func find(_ mark: String, in bytes: [UInt8]) -> Bool {
        let mark = Array(mark.utf8)
        guard bytes.count >= mark.count else { return false }
        return (0...(bytes.count - mark.count)).contains { start in
            bytes[start] == mark[0] && bytes[start..<(start + mark.count)].elementsEqual(mark)
        }
    }
}

enum HTTPVersion: UInt32, Sendable {
    /// HTTP/2 if TLS agrees on it, otherwise 1.1.
    case automatic = 0
    case http1 = 1
    /// Like `automatic`, but without TLS uses HTTP/2 from the first byte.
    case http2 = 2
}
