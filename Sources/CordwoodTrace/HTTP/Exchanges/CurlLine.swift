// A curl command that repeats a captured request, for any POSIX shell. Printable text is in single
// quotes. Other bytes go through printf in octal, so that the line itself is plain text: in
// `"$(printf …)"` for headers, through a pipe for bodies, which may hold NUL. Pure.

import CordwoodFormats
import CordwoodStore

package enum CurlLine {
    /// Longer bodies go through the pipe, too: the kernel limits an argument to 128 KiB.
    private static let argumentBytesMax = 65_536

    /// `complain` gets the parts that the command cannot express.
    package static func text(
        _ exchange: CapturedExchange, _ complain: (String) -> Void
    ) -> String {
        let request = exchange.request
        let body = request.body ?? []
        let method = exchange.method.isEmpty ? "GET" : exchange.method
        var words = ["curl", "--globoff", "--path-as-is"]
        switch (method, body.isEmpty) {
        case ("GET", true), ("POST", false): break
        case ("HEAD", true): words.append("--head")
        default: words += ["--request", ShellWord.quoted(Array(method.utf8))]
        }
        words += headers(exchange, hasBody: !body.isEmpty, complain)
        var pipe = ""
        if !body.isEmpty {
            if ShellWord.isPlain(body), body.count <= argumentBytesMax {
                // Unlike --data-binary, it gives @ no meaning.
                words += ["--data-raw", ShellWord.quoted(body)]
            } else {
                pipe = "printf \(ShellWord.format(body)) | "
                words += ["--data-binary", "@-"]
            }
        }
        if !request.headersNote.isEmpty {
            complain("the headers are not whole (\(request.headersNote))")
        }
        if !request.isBodyWhole {
            complain("the body is not whole: \(request.extent)")
        }
        let url = URLText.sendable(exchange.urlBytes)
        if !isWeb(url) {
            // Newer versions read `--url @FILE`, and all read file://.
            complain("the address is not http: the command will refuse it")
            words += ["--proto", "=http,https"]
        }
        words += ["--url", ShellWord.quoted(url.first == 0x40 ? Array("http://".utf8) + url : url)]
        return pipe + words.joined(separator: " ")
    }

    private static func isWeb(_ url: [UInt8]) -> Bool {
        let start = url.prefix(8).map { $0 | 0x20 }
        return start.starts(with: "http://".utf8.map { $0 | 0x20 })
            || start.starts(with: "https://".utf8.map { $0 | 0x20 })
    }

    // ── Headers ──

    /// Headers that curl makes itself, or that belong to one connection.
    private static let left: Set<String> = [
        "host", "content-length", "accept-encoding", "connection", "keep-alive",
        "proxy-connection", "proxy-authorization", "te", "trailer", "transfer-encoding", "upgrade",
        "http2-settings", "expect",
    ]

    private static func headers(
        _ exchange: CapturedExchange, hasBody: Bool, _ complain: (String) -> Void
    ) -> [String] {
        var words: [String] = []
        var out = left
        for header in exchange.request.headers where lower(header.name) == "connection" {
            for name in header.value.split(separator: ",") { out.insert(lower(String(name))) }
        }
        // It was unpacked when it was kept, and is sent unpacked.
        if exchange.request.isNoted("unpacked") { out.insert("content-encoding") }
        for header in exchange.request.headers where !out.contains(lower(header.name)) {
            guard !header.nameBytes.isEmpty, header.nameBytes.allSatisfy(isToken) else {
                // HTTP/2's own headers begin with a colon.
                if header.nameBytes.first != 0x3a {
                    complain("left out, for its name is none: header \(header.name)")
                }
                continue
            }
            var value = header.valueBytes
            if value.contains(where: { $0 == 0 || $0 == 0x0d }) {
                complain("NUL and CR are left out of header \(header.name)")
                value.removeAll { $0 == 0 || $0 == 0x0d }
            }
            let isEmpty = value.allSatisfy { $0 == 0x20 || $0 == 0x09 }
            let ending = isEmpty ? [0x3b] : [0x3a, 0x20] + value
            words += ["--header", ShellWord.quoted(header.nameBytes + ending)]
        }
        if hasBody, exchange.request.header("Content-Type") == nil {
            // Otherwise curl declares it a form.
            words += ["--header", "'Content-Type:'"]
        }
        if exchange.request.header("Accept-Encoding") != nil { words.append("--compressed") }
        return words
    }

    /// Without surrounding spaces.
    private static func lower(_ text: String) -> String {
        String(text.lowercased().filter { $0 != " " && $0 != "\t" })
    }

    private static func isToken(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5a, 0x61...0x7a: true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
    }

    // ── Quoting ──
}

private enum URLText {
    /// Percent-encodes bytes that no URL may hold: curl would refuse them.
    static func sendable(_ url: [UInt8]) -> [UInt8] {
        var out: [UInt8] = []
        for byte in url {
            if byte > 0x20, byte < 0x7f {
                out.append(byte)
            } else {
                out.append(0x25)
                Hex.append(byte, to: &out)
            }
        }
        return out
    }
}
