// A policy (B-SAP-9): the settings that an operator gives to many programs in one small JSON
// object. It is checked completely before any part of it is used, so a document that exists is
// valid. It replaces the previous policy; settings that it does not name keep the host's values. It
// also understands the settings that SAP Mobile Services gives its clients. Pure.

import CordwoodCore
import CordwoodFormats
import CordwoodStore

public struct PolicyDocument: Equatable, Sendable {
    public struct Level: Equatable, Sendable {
        /// A dotted name; "": the root.
        public var prefix: String
        /// 1…24, or 255: off.
        public var number: UInt8
    }

    public static let bytesMax = 64 << 10
    public static let levelsMax = 4_096
    public static let prefixBytesMax = 255
    /// Bounds of a segment's size (Settings).
    public static let fileBytes: ClosedRange<UInt64> = 65_536...1_073_741_824

    /// false: nothing is uploaded; waiting archives are kept.
    public var isEnabled: Bool?
    public var levels: [Level] = []
    public var expirationDays: UInt32?
    public var filesMax: UInt32?
    /// 0: the library's own size.
    public var fileBytesMax: UInt64?
    public var quotaBytes: UInt64?
    public var uploadIntervalSeconds: UInt32?
    public var archiveMethod: ArchiveMethod?
    /// Each new value of this word releases quarantined archives for another attempt, once.
    public var retryQuarantined: String?
    /// Keys that this version does not know.
    public var unknownKeys: [String] = []
    /// Also included in `levels`.
    private var sapLevel: UInt8?

    public static let keysShownMax = 20

    public init() {}

    /// The error names the wrong key and the reason.
    public init(json: [UInt8]) throws(UploadError) {
        guard json.count <= PolicyDocument.bytesMax else {
            throw .limit(
                "the policy has \(json.count) bytes, over \(PolicyDocument.bytesMax)")
        }
        let text: JSONValue
        do throws(JSONProblem) {
            text = try JSONValue.parse(json, bytesMax: PolicyDocument.bytesMax)
        } catch {
            throw .argument("the policy is no JSON: \(error.text)")
        }
        guard case .object(let members) = text else {
            throw .argument("the policy is \(text.kind), not an object")
        }
        var known = 0
        for member in members where try take(member.key, member.value) { known += 1 }
        try refuseTwice(members.map(\.key))
        if let sapLevel { levels.insert(Level(prefix: "", number: sapLevel), at: 0) }
        // Probably not meant for us: another service's answer, or an error sent as 200.
        guard known > 0 || members.isEmpty else {
            let keys = unknownKeys.prefix(PolicyDocument.keysShownMax).map { "'\($0)'" }
            let all = keys.joined(separator: ", ") + (unknownKeys.count > keys.count ? ", …" : "")
            throw .argument("the policy has no key that means anything here, but \(all)")
        }
    }

    /// False: the key is unknown.
    private mutating func take(_ key: String, _ value: JSONValue) throws(UploadError) -> Bool {
        switch key {
        case "enabled":
            guard case .bool(let flag) = value else {
                throw PolicyDocument.wrong(key, value, "true or false")
            }
            isEnabled = flag
        case "levels": levels = try PolicyDocument.levels(value)
        case "expiration_days": expirationDays = try PolicyDocument.number32(key, value)
        case "max_files": filesMax = try PolicyDocument.number32(key, value)
        case "max_file_size_bytes":
            let bytes = try PolicyDocument.number(key, value, max: UInt64(Int64.max))
            let bounds = PolicyDocument.fileBytes
            guard bytes == 0 || bounds.contains(bytes) else {
                throw .argument(
                    "policy key '\(key)' is \(bytes), outside \(bounds.lowerBound)"
                        + " … \(bounds.upperBound)")
            }
            fileBytesMax = bytes
        case "quota_bytes":
            quotaBytes = try PolicyDocument.number(key, value, max: UInt64(Int64.max))
        case "upload_interval_s": uploadIntervalSeconds = try PolicyDocument.number32(key, value)
        case "archive_method":
            guard let method = value.string.flatMap({ ArchiveMethod(rawValue: $0) }) else {
                throw PolicyDocument.wrong(key, value, "plain or dense")
            }
            archiveMethod = method
        case "retry_quarantined":
            let word = value.string ?? value.whole.map { "\($0)" }
            guard let word, !word.isEmpty, word.utf8.count <= PolicyDocument.prefixBytesMax else {
                throw PolicyDocument.wrong(
                    key, value,
                    "a whole number, or a word of 1 to \(PolicyDocument.prefixBytesMax) bytes")
            }
            retryQuarantined = word
        case "logUploadEnabled", "entryExpiry", "logLevel", "maxFileNum", "maxFileSize":
            try takeSAP(key, value)
        default:
            unknownKeys.append(PolicyDocument.shown(key))
            return false
        }
        return true
    }

    // ── What a program allows ──

    /// What stays even where a policy may erase.
    package static let floor = RetentionLimits(
        quotaBytes: 16 << 20, archivesMax: 10, expirationDays: 1)
    /// Smaller segments cut or refuse records that an application may well write.
    package static let fileBytesFloor: UInt64 = 1 << 20
    /// Fatal. Above it, as with off, nothing is logged.
    private static let levelMax: UInt8 = 21

    /// The part that takes effect in a program with these limits of its own (0: unlimited), and the
    /// keys that do not take effect in full. An archive that every target has is gone already, so
    /// what a smaller limit removes was not sent. A smaller segment cuts or refuses large records.
    package func allowed(
        by allow: PolicyAllowance, over own: RetentionLimits, segmentBytes: UInt64
    ) -> (policy: PolicyDocument, withheld: [String]) {
        var (policy, withheld) = (self, [String]())
        func limit<Number: FixedWidthInteger>(
            _ key: String, _ wanted: Number?, _ own: Number, _ floor: Number
        ) -> Number? {
            guard let wanted, wanted > 0, own == 0 || wanted < own else { return wanted }
            let least = own == 0 ? floor : min(floor, own)
            let erases = allow.contains(.erase)
            if erases, wanted >= least { return wanted }
            withheld.append(key)
            return erases ? least : nil
        }
        let floor = PolicyDocument.floor
        policy.quotaBytes = limit("quota_bytes", quotaBytes, own.quotaBytes, floor.quotaBytes)
        policy.filesMax = limit("max_files", filesMax, own.archivesMax, floor.archivesMax)
        policy.expirationDays = limit(
            "expiration_days", expirationDays, own.expirationDays, floor.expirationDays)
        policy.fileBytesMax = limit(
            "max_file_size_bytes", fileBytesMax, segmentBytes, PolicyDocument.fileBytesFloor)
        if !allow.contains(.off) {
            policy.levels.removeAll { $0.number > PolicyDocument.levelMax }
            if policy.levels.count < levels.count { withheld.append("levels") }
        }
        return (policy, withheld)
    }

    // ── SAP Mobile Services' client policies ──

    /// SAP's keys and ours for the same setting; SAP's `logLevel` is the root's entry in `levels`.
    private static let namesake = [
        "logUploadEnabled": "enabled", "entryExpiry": "expiration_days",
        "maxFileNum": "max_files", "maxFileSize": "max_file_size_bytes",
    ]
    /// Accepted besides our own words.
    private static let levelWords: [String: UInt8] = [
        "off": 255, "none": 255, "path": 1, "all": 1,
    ]

    /// SAP's settings may give numbers and booleans as text.
    private mutating func takeSAP(_ key: String, _ value: JSONValue) throws(UploadError) {
        switch key {
        case "logUploadEnabled":
            switch value {
            case .bool(let flag): isEnabled = flag
            case .string("true"): isEnabled = true
            case .string("false"): isEnabled = false
            default: throw PolicyDocument.wrong(key, value, "true or false")
            }
        case "logLevel":
            let word = value.string?.lowercased() ?? ""
            guard let number = PolicyDocument.levelWords[word] ?? parseLevel(word) else {
                throw PolicyDocument.wrong(key, value, "the name of a level")
            }
            sapLevel = number
        default:
            let digits = value.string.flatMap { Int64($0) }.map { JSONValue.integer($0) }
            let number = try PolicyDocument.number32(key, digits ?? value)
            switch key {
            case "entryExpiry": expirationDays = number
            case "maxFileNum": filesMax = number
            default:
                // In MB. SAP's 0 means no limit: the host's own size applies.
                let bytes = min(UInt64(number) << 20, PolicyDocument.fileBytes.upperBound)
                fileBytesMax = number == 0 ? nil : bytes
            }
        }
    }

    private func refuseTwice(_ keys: [String]) throws(UploadError) {
        for key in keys {
            if let ours = PolicyDocument.namesake[key], keys.contains(ours) {
                throw .argument("policy keys '\(ours)' and '\(key)' say the same")
            }
        }
        if sapLevel != nil, levels.contains(where: { $0.prefix.isEmpty }) {
            throw .argument("policy keys 'levels.' and 'logLevel' say the same")
        }
    }

    private static func levels(_ value: JSONValue) throws(UploadError) -> [Level] {
        guard case .object(let members) = value else {
            throw wrong("levels", value, "an object of prefixes and levels")
        }
        guard members.count <= levelsMax else {
            throw .limit("policy key 'levels' has over \(levelsMax) prefixes")
        }
        var levels: [Level] = []
        for member in members {
            let name = "levels.\(shown(member.key))"
            guard member.key.utf8.count <= prefixBytesMax else {
                throw .limit("policy key '\(name)' has a prefix of over \(prefixBytesMax) bytes")
            }
            guard let number = level(member.value) else {
                throw wrong(name, member.value, "the name of a level, 1 … 24, or 255")
            }
            levels.append(Level(prefix: member.key, number: number))
        }
        return levels
    }

    private static func level(_ value: JSONValue) -> UInt8? {
        if let text = value.string {
            return text.lowercased() == "off" ? 255 : parseLevel(text)
        }
        guard let number = value.whole, number > 0 else { return nil }
        return number == 255 ? 255 : Levels.number(UInt64(number))
    }

    private static func number32(_ key: String, _ value: JSONValue) throws(UploadError) -> UInt32 {
        UInt32(try number(key, value, max: UInt64(UInt32.max)))
    }

    private static func number(
        _ key: String, _ value: JSONValue, max: UInt64
    ) throws(UploadError) -> UInt64 {
        guard let number = value.whole, number >= 0, UInt64(number) <= max else {
            throw wrong(key, value, "a whole number from 0 to \(max)")
        }
        return UInt64(number)
    }

    private static func wrong(_ key: String, _ value: JSONValue, _ wanted: String) -> UploadError {
        let text = value.string.map { "\"\(shown($0))\"" } ?? value.kind
        return .argument("policy key '\(key)' is \(text), not \(wanted)")
    }

    /// The part of the document's own text that an error shows.
    private static func shown(_ text: String) -> String {
        let short = text.unicodeScalars.prefix(40).map { scalar in
            scalar.value < 0x20 || scalar.value == 0x7F ? "?" : Character(scalar)
        }
        return String(short)
    }
}
