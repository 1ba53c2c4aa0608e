// Selects exchanges: by their end, host, method, status, duration, conversation. All conditions
// that are set must hold. Pure.

import CordwoodFormats

public struct ExchangeFilter: Sendable {
    /// No answer, an incomplete one, or 400 and above.
    public var failedOnly = false
    /// `api.example.com`, `*.example.com` (also example.com itself), with `:8443` only that port.
    public var hosts: [String] = []
    /// In any case.
    public var methods: [String] = []
    public var statuses: [ClosedRange<UInt64>] = []
    /// ns; for open exchanges: since they began.
    public var atLeast: UInt64 = 0
    public var conversation = ""

    public init() {}

    /// `404`, `5xx`, `400-499`; nil: any other text.
    public static func status(_ text: String) -> ClosedRange<UInt64>? {
        let bytes = Array(text.utf8)
        if bytes.count == 3, (0x31...0x39).contains(bytes[0]),
            bytes[1...].allSatisfy({ ASCII.lower($0) == 0x78 })
        {
            let first = UInt64(bytes[0] &- 0x30) &* 100
            return first...(first &+ 99)
        }
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count <= 2, let first: UInt64 = Digits.number(parts[0].utf8),
            let last: UInt64 = Digits.number(parts[parts.count - 1].utf8), first <= last
        else { return nil }
        return first...last
    }

    /// `now`: UTC, ns.
    public func matches(_ exchange: CapturedExchange, now: UInt64) -> Bool {
        if failedOnly, !exchange.isFailed { return false }
        if !hosts.isEmpty {
            let host = exchange.host.isEmpty ? CapturedURL(exchange.urlBytes).host : exchange.host
            let port = exchange.port ?? CapturedURL(exchange.urlBytes).effectivePort
            guard hosts.contains(where: { ExchangeFilter.isHost(host, port, $0) }) else {
                return false
            }
        }
        if !methods.isEmpty,
            !methods.contains(where: { ASCII.isSame(exchange.methodBytes, Array($0.utf8)) })
        {
            return false
        }
        if !statuses.isEmpty {
            guard let status = exchange.status, statuses.contains(where: { $0.contains(status) })
            else { return false }
        }
        if atLeast > 0 {
            let open = now > exchange.start ? now &- exchange.start : 0
            let taken = exchange.isOpen ? open : exchange.duration ?? 0
            if taken < atLeast { return false }
        }
        return conversation.isEmpty || conversation == exchange.conversation
    }

    static func isHost(_ host: String, _ port: UInt64?, _ pattern: String) -> Bool {
        var name = Array(pattern.utf8).map(ASCII.lower)[...]
        // Several colons are an IPv6 address, unless it is in brackets.
        if let colon = name.lastIndex(of: 0x3a),
            name.firstIndex(of: 0x3a) == colon || name[..<colon].last == 0x5d
        {
            guard let wanted = UInt64(String(decoding: name[(colon + 1)...], as: UTF8.self)),
                wanted == port
            else { return false }
            name = name[..<colon]
        }
        let host = unbracketed(Array(host.utf8).map(ASCII.lower)[...])
        guard name.starts(with: [0x2a, 0x2e]) else { return host == unbracketed(name) }
        let tail = name.dropFirst()
        return host == tail.dropFirst()
            || host.count > tail.count && host.suffix(tail.count) == tail
    }

    private static func unbracketed(_ host: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        host.first == 0x5b && host.last == 0x5d ? host.dropFirst().dropLast() : host
    }
}

/// The parts of an absolute URL; for reading, so it refuses nothing.
public struct CapturedURL {
    public var scheme = ""
    public var host = ""
    public var port: UInt64?
    /// Starts with the path, includes the question mark, and excludes the fragment.
    public var target: ArraySlice<UInt8> = []
    /// The part after the question mark.
    public var query: ArraySlice<UInt8>?

    public var effectivePort: UInt64? {
        port ?? (scheme == "https" ? 443 : scheme == "http" ? 80 : nil)
    }

    public init(_ url: [UInt8]) {
        var rest = url[...]
        if let colon = rest.firstIndex(of: 0x3a), rest[colon...].starts(with: [0x3a, 0x2f, 0x2f]) {
            scheme = String(
                decoding: rest[..<colon].map(ASCII.lower), as: UTF8.self)
            rest = rest[(colon + 3)...]
            let end = rest.firstIndex { [0x2f, 0x3f, 0x23].contains($0) } ?? rest.endIndex
            authority(rest[..<end])
            rest = rest[end...]
        }
        if let hash = rest.firstIndex(of: 0x23) { rest = rest[..<hash] }
        target = rest
        if let mark = rest.firstIndex(of: 0x3f) { query = rest[(mark + 1)...] }
    }

    private mutating func authority(_ text: ArraySlice<UInt8>) {
        var text = text
        if let at = text.lastIndex(of: 0x40) { text = text[(at + 1)...] }
        if let colon = text.lastIndex(of: 0x3a), colon > text.lastIndex(of: 0x5d) ?? -1 {
            port = UInt64(String(decoding: text[(colon + 1)...], as: UTF8.self))
            text = text[..<colon]
        }
        host = String(decoding: text, as: UTF8.self)
    }

    /// The items of a query or a form, decoded: `+` is a space.
    public static func items(
        _ text: ArraySlice<UInt8>
    ) -> [(name: [UInt8], value: [UInt8], hasValue: Bool)] {
        text.split(separator: 0x26).map { item in
            let parts = item.split(
                separator: 0x3d, maxSplits: 1, omittingEmptySubsequences: false)
            return (
                PercentCoding.decode(Array(parts[0])),
                parts.count > 1 ? PercentCoding.decode(Array(parts[1])) : [], parts.count > 1
            )
        }
    }
}
