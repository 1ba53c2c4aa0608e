// The rules for capturing an engine's exchanges, from one cw_http_options_set to the next: how much
// is kept, of which hosts, and whose values are secrets. Built once and never changed; exchanges
// under way keep the rules that were in force when they began. Any thread.
// SAFETY: `logger` lies in the engine's memory, which is never unmapped; `conversation` and
// `jsonNames.pairs` lie in `memory`.

import CordwoodFormats
import CShims
import CordwoodCore

/// The host's wishes; HTTPRules checks them.
public struct HTTPCaptureOptions: Sendable {
    public static let bodyBytesDefault: UInt64 = 64 << 10
    public static let bodyBytesMax: UInt64 = 16 << 20
    public static let conversationHeaderDefault = "X-Conversation-Id"

    /// The control file overrides it.
    public var isEnabled = false
    /// The bytes kept of each body; at most 16 MiB. 0: none.
    public var bodyBytesMax = HTTPCaptureOptions.bodyBytesDefault
    /// The share of exchanges to capture.
    public var samplePerMillion: UInt32 = 1_000_000
    /// Captures only these: `api.example.com`, `*.example.com`, `example.com:8443`; empty: all.
    public var hosts: [String] = []
    public var hostsExcluded: [String] = []
    /// The header that ties exchanges together; empty: none.
    public var conversationHeader = HTTPCaptureOptions.conversationHeaderDefault
    /// Headers to redact besides those of docs/HTTP.md.
    public var redactHeaders: [String] = []
    public var redactKeys: [String] = []
    /// Extended regular expressions.
    public var redactPatterns: [String] = []
    /// Bodies to keep although they have none of the parsed forms, by host and type:
    /// `api.example.com text/plain`, `*.example.com text/*`, `* */*`; `* errors` means plain text
    /// of answers of 4xx and 5xx.
    public var keepText: [String] = []
    /// Names that are no secrets, everywhere or for one address: `name`, `host/path:name`.
    public var keepKeys: [String] = []

    public init() {}
}

@safe package final class HTTPRules: @unchecked Sendable {
    // SAFETY: nothing in it changes.
    let logger: LoggerBlock
    let bodyBytesMax: Int
    let samplePerMillion: UInt64
    let hosts: [HostRule]
    let hostsExcluded: [HostRule]
    /// In lower case; empty: none. Plain memory, so that reads count no references.
    let conversation: ByteText
    /// Looking up a name counts no references: `owned` has the tables' memory.
    let headerNames: NameTable
    let keys: NameTable
    /// Names of JSON members: `keys`, default headers and `values`.
    let members: NameTable
    /// Members and attributes that hold the value of a name beside them, and those names.
    let values: NameTable
    let namings: NameTable
    /// The names that json.c looks up.
    /// SAFETY: all but `pairs` belong to the tables, which live as long as the rules.
    let jsonNames: cwi_json_names
    /// Names of items of URLs and forms.
    let items: NameTable
    private let owned: [SecretNames]
    private let memory: ZeroedMemory
    let keep: KeepRules
    /// The entries of `keep_keys` without an address.
    let kept: NameTable
    let keepsByAddress: Bool
    let patterns: [BytePattern]
    let hasPatterns: Bool
    /// The seed of ids.
    let seed: UInt64

    static let patternsMax = 64
    /// The limit of all patterns together: it bounds the work for each byte of a text.
    static let stepsMax = 4_000

    package init(logger: LoggerBlock, _ options: HTTPCaptureOptions) throws(CordwoodError) {
        unsafe self.logger = logger
        guard options.bodyBytesMax <= HTTPCaptureOptions.bodyBytesMax else {
            throw CordwoodError(
                Status.limit, "body_bytes_max \(options.bodyBytesMax) is over 16 MiB")
        }
        guard options.samplePerMillion <= 1_000_000 else {
            throw CordwoodError(
                Status.argument, "sample_per_million \(options.samplePerMillion) is over 1,000,000")
        }
        bodyBytesMax = Int(options.bodyBytesMax)
        samplePerMillion = UInt64(options.samplePerMillion)
        hosts = try HTTPRules.hosts(options.hosts, "hosts")
        hostsExcluded = try HTTPRules.hosts(options.hostsExcluded, "hosts_excluded")
        let header = try HTTPRules.header(options.conversationHeader)
        let headers = try HTTPRules.names(options.redactHeaders, "redact_headers")
        let own = try HTTPRules.names(options.redactKeys, "redact_keys")
        let endings = SecretDefaults.endings
        let (listed, wholes) = (SecretDefaults.keys + own, SecretDefaults.wholes)
        let told = SecretDefaults.headers + NamedMembers.values + NamedMembers.contexts
        owned = [
            try SecretNames(SecretDefaults.headers + headers, keys: listed, endings: endings),
            try SecretNames(keys: listed, endings: endings, wholes: wholes),
            try SecretNames(told, keys: listed, endings: endings, wholes: wholes),
            try SecretNames(NamedMembers.values), try SecretNames(NamedMembers.names),
            try SecretNames(keys: listed, endings: endings, wholes: wholes + SecretDefaults.items),
        ]
        (headerNames, keys, members) = (owned[0].table, owned[1].table, owned[2].table)
        (values, namings, items) = (owned[3].table, owned[4].table, owned[5].table)
        keep = try KeepRules(texts: options.keepText, keys: options.keepKeys)
        kept = keep.everywhere.table
        keepsByAddress = keep.hasPlaces
        patterns = try HTTPRules.patterns(options.redactPatterns)
        hasPatterns = !patterns.isEmpty
        seed = .random(in: 1 ... .max)
        memory = try ZeroedMemory(Int(CWI_PAIRS) * 8 + header.count)
        let pairs = unsafe memory.start.bindMemory(to: UInt64.self, capacity: Int(CWI_PAIRS))
        let text = unsafe memory.start + Int(CWI_PAIRS) * 8
        for (index, byte) in header.enumerated() {
            unsafe text.storeBytes(of: byte, toByteOffset: index, as: UInt8.self)
        }
        conversation = unsafe ByteText(text.assumingMemoryBound(to: UInt8.self), header.count)
        unsafe jsonNames = cwi_json_names(
            members: members.endings, namings: namings.endings, named: headerNames.endings,
            pairs: pairs)
        unsafe withUnsafePointer(to: jsonNames) { unsafe cwi_json_pairs($0, pairs) }
    }

    private static func header(_ name: String) throws(CordwoodError) -> [UInt8] {
        guard name.utf8.count <= SecretNames.nameBytesMax else {
            throw CordwoodError(Status.limit, "conversation_header has over 255 bytes")
        }
        guard name.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != 0x3A }) else {
            throw CordwoodError(
                Status.argument, "conversation_header '\(name)' is no header's name")
        }
        return name.utf8.map { ASCII.lower($0) }
    }

    private static func names(
        _ names: [String], _ option: String
    ) throws(CordwoodError) -> [String] {
        guard names.count <= SecretNames.namesMax else {
            throw CordwoodError(Status.limit, "\(option): over \(SecretNames.namesMax) names")
        }
        for name in names {
            guard name.utf8.count <= SecretNames.nameBytesMax else {
                throw CordwoodError(
                    Status.limit, "\(option): '\(name.prefix(40))…' has over 255 bytes")
            }
            guard name.utf8.contains(where: { ASCII.isNameByte($0) }) else {
                throw CordwoodError(
                    Status.argument, "\(option): '\(name)' has neither letter nor digit")
            }
        }
        return names
    }

    private static func patterns(_ texts: [String]) throws(CordwoodError) -> [BytePattern] {
        guard texts.count <= patternsMax else {
            throw CordwoodError(Status.limit, "redact_patterns: over \(patternsMax) patterns")
        }
        var patterns: [BytePattern] = []
        var steps = 0
        for (index, text) in texts.enumerated() {
            guard text.utf8.count <= PatternParser.bytesMax else {
                throw CordwoodError(
                    Status.limit, "redact_patterns: pattern \(index + 1) has over 1,024 bytes")
            }
            do throws(PatternError) {
                patterns.append(try BytePattern(Array(text.utf8)))
            } catch {
                throw CordwoodError(
                    Status.argument,
                    "redact_patterns: pattern \(index + 1) '\(text.prefix(80))', byte "
                        + "\(error.offset): \(error.text)")
            }
            steps += patterns[index].stepCount
            guard steps <= stepsMax else {
                throw CordwoodError(
                    Status.limit,
                    "redact_patterns: pattern \(index + 1) '\(text.prefix(80))': over "
                        + "\(stepsMax) steps together")
            }
        }
        return patterns
    }

    private static func hosts(
        _ texts: [String], _ option: String
    ) throws(CordwoodError) -> [HostRule] {
        guard texts.count <= SecretNames.namesMax else {
            throw CordwoodError(Status.limit, "\(option): over \(SecretNames.namesMax) hosts")
        }
        var rules: [HostRule] = []
        for text in texts {
            guard let rule = HostRule(text) else {
                throw CordwoodError(
                    Status.argument,
                    "\(option): '\(text.prefix(80))' is no host: name, *.name, name:port")
            }
            rules.append(rule)
        }
        return rules
    }

    func takes(_ url: URLParts) -> Bool {
        if !hostsExcluded.isEmpty, hostsExcluded.contains(where: { $0.matches(url) }) {
            return false
        }
        return hosts.isEmpty || hosts.contains { $0.matches(url) }
    }
}

/// `api.example.com`, `*.example.com` (and example.com itself), each with `:port` or without.
struct HostRule: Sendable {
    private let name: [UInt8]
    private let isWild: Bool
    private let port: UInt32

    init?(_ text: String) {
        var bytes = text.utf8.map { ASCII.lower($0) }[...]
        isWild = bytes.starts(with: "*.".utf8)
        if isWild { bytes = bytes.dropFirst(2) }
        var number: UInt32 = 0
        let isBracketed = bytes.first == UInt8(ascii: "[")
        if let colon = bytes.lastIndex(of: UInt8(ascii: ":")),
            !isBracketed || bytes[bytes.index(before: colon)] == UInt8(ascii: "]")
        {
            guard let port = UInt32(String(decoding: bytes[(colon + 1)...], as: UTF8.self)),
                (1...65_535).contains(port)
            else { return nil }
            number = port
            bytes = bytes[..<colon]
        }
        if isBracketed {
            guard bytes.last == UInt8(ascii: "]") else { return nil }
            bytes = bytes.dropFirst().dropLast()
        }
        let isName = bytes.allSatisfy {
            ASCII.isNameByte($0) || $0 == 0x2E || $0 == 0x2D || $0 == 0x5F || $0 == 0x3A
        }
        guard !bytes.isEmpty, bytes.count <= 255, isName else { return nil }
        name = Array(bytes)
        port = number
    }

    func matches(_ url: URLParts) -> Bool {
        guard port == 0 || port == url.portOrDefault else { return false }
        let host = url.host
        guard host.count >= name.count, ends(host) else { return false }
        return host.count == name.count
            || isWild && host[host.count &- name.count &- 1] == UInt8(ascii: ".")
    }

    private func ends(_ host: ByteText) -> Bool {
        let offset = host.count &- name.count
        for i in 0..<name.count where ASCII.lower(host[offset &+ i]) != name[i] { return false }
        return true
    }
}

/// The places of an address's parts. Checks nothing: the host asked for it.
struct URLParts {
    let host: ByteText
    /// 0: the address has none.
    let port: UInt32
    let isSecure: Bool

    init(_ url: ByteText) {
        var start = 0
        while start < url.count, start < 32, ASCII.isNameByte(url[start]) || url[start] == 0x2B {
            start &+= 1
        }
        isSecure = url.has("https:", at: 0) || url.has("wss:", at: 0)
        if url.has("://", at: start) {
            start &+= 3
        } else if url.has("//", at: 0) {
            start = 2
        } else {
            host = ByteText.empty
            port = 0
            return
        }
        var end = start
        loop: while end < url.count {
            let byte = url[end]
            switch byte {
            case _ where ASCII.isNameByte(byte): break
            case UInt8(ascii: "/"), UInt8(ascii: "?"), UInt8(ascii: "#"), UInt8(ascii: "\\"):
                break loop
            case UInt8(ascii: "@"): start = end &+ 1
            default: break
            }
            end &+= 1
        }
        (host, port) = URLParts.authority(url.slice(start, end))
    }

    private static func authority(_ text: ByteText) -> (ByteText, UInt32) {
        var nameEnd = text.next(UInt8(ascii: ":"), from: 0)
        var name = text.slice(0, nameEnd)
        if text[0] == UInt8(ascii: "[") {
            let close = text.next(UInt8(ascii: "]"), from: 0)
            name = text.slice(1, close)
            nameEnd = text[close &+ 1] == UInt8(ascii: ":") ? close &+ 1 : text.count
        }
        var port: UInt32 = 0
        for index in min(nameEnd &+ 1, text.count)..<text.count {
            guard ASCII.isDigit(text[index]), port < 65_536 else { return (name, 0) }
            port = port &* 10 &+ UInt32(text[index] &- 0x30)
        }
        return (name, port < 65_536 ? port : 0)
    }

    var portOrDefault: UInt32 { port != 0 ? port : isSecure ? 443 : 80 }
}
