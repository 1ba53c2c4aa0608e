// Facts about a record that several encoders need: its id, its origin, its fields with each key
// once, names that a server's rules allow. Pure. Nothing depends on the machine, so the same
// archive gives the same bytes everywhere.
// SAFETY: a record's views hold while it is encoded; nothing here outlives that.

import CordwoodCore
import CordwoodFormats
import CordwoodStore

enum Numbers {
    /// Accepts only digits without leading zeros; nil: anything else, or more than 64 bits.
    static func decimal(_ digits: ArraySlice<UInt8>) -> UInt64? {
        digits.first == 0x30 && digits.count > 1 ? nil : Digits.number(digits)
    }
}

/// The origin of a record: as the host configured the target, otherwise the process's resource
/// attributes.
struct Origin: Sendable {
    var service: String?
    var host: String?

    /// The attributes that it shows.
    static let keys = [ProcessOrigin.serviceKey, ProcessOrigin.hostKey]

    func service(of record: borrowing RecordRef) -> String {
        if let service { return service }
        let process = record.thread.process
        if !process.origin.service.isEmpty { return process.origin.service }
        return process.name.isEmpty ? "unknown_service" : process.name
    }

    func host(of record: borrowing RecordRef) -> String? {
        if let host { return host }
        let known = record.thread.process.origin.host
        return known.isEmpty ? nil : known
    }
}

/// A record's fields, each key once: its own override the context's; of equal keys the last counts.
@safe struct UniqueFields {
    @safe struct Field {
        @safe var key: UnsafeRawBufferPointer
        var value: FieldValue
        var part: RecordFields.Part
    }

    static func of(_ record: borrowing RecordRef) -> [Field] {
        if record.sections.count == 0 && record.context.count == 0 { return [] }
        var all: [Field] = []
        var fields = RecordFields(record)
        while let (key, value) = fields.next() {
            unsafe all.append(Field(key: key, value: value, part: fields.part))
        }
        if all.count < 2 { return all }
        var seen: Set<[UInt8]> = []
        var isKept = [Bool](repeating: false, count: all.count)
        for isOwn in [true, false] {
            for index in all.indices.reversed() where (all[index].part == .own) == isOwn {
                isKept[index] = seen.insert(unsafe [UInt8](all[index].key)).inserted
            }
        }
        return all.indices.filter { isKept[$0] }.map { all[$0] }
    }

    /// The value of the exception's field of that name; empty: none.
    @safe static func exception(
        _ name: StaticString, in fields: [Field]
    ) -> UnsafeRawBufferPointer {
        for field in fields where field.part == .exception {
            guard case .string(let text) = field.value else { continue }
            if Bytes.equal(field.key, Bytes.literal(name)) { return unsafe text }
        }
        return Bytes.none
    }
}

/// The names of one record's fields under a server's rules. If two become equal, or one equals a
/// name of the server's, the later one gets `_2`, `_3`, ….
struct FieldNames: Sendable {
    enum Rule: Sendable {
        /// Letters, digits and `_`; does not start with a digit.
        case identifier
        /// The same, but starts with a letter.
        case letterFirst
        /// Any characters except `.`, which some servers take for a path.
        case dotless
        /// Any characters, any length.
        case any
    }

    static let bytesMax = 255
    private let rule: Rule
    /// Maps a name to the number of its next namesake.
    private var taken: [[UInt8]: Int] = [:]

    /// - Parameter own: names reserved by the server or by us.
    init(_ rule: Rule, own: [String] = []) {
        self.rule = rule
        for name in own { taken[Array(name.utf8)] = 2 }
    }

    @safe mutating func name(_ key: UnsafeRawBufferPointer) -> [UInt8] {
        var name = allowed(key)
        let first = name.first ?? 0
        switch rule {
        case .identifier where first <= 0x39: name.insert(0x5f, at: 0)
        case .letterFirst where first <= 0x39 || first == 0x5f:
            name.insert(contentsOf: "f_".utf8, at: 0)
        case .dotless where !name.contains(where: { $0 > 0x20 }): name = [0x5f]
        default: break
        }
        guard var number = taken[name] else {
            taken[name] = 2
            return name
        }
        while true {
            let next = name + Array("_\(number)".utf8)
            number += 1
            guard taken[next] != nil else {
                taken[name] = number
                taken[next] = 2
                return next
            }
        }
    }

    /// Replaces invalid UTF-8 by U+FFFD here, not only on output: two such keys may become the
    /// same.
    @safe private func allowed(_ key: UnsafeRawBufferPointer) -> [UInt8] {
        var name: [UInt8] = []
        let end = rule == .any ? key.count : UTF8Scan.end(of: key, at: FieldNames.bytesMax)
        var at = 0
        while at < end {
            let byte = Bytes.u8(key, at)
            let size = byte < 0x80 ? 1 : UTF8Scan.length(key, at)
            switch rule {
            case .identifier, .letterFirst:
                name.append(ASCII.isWordByte(byte) ? byte : 0x5f)
            case .dotless where byte == 0x2e: name.append(0x5f)
            case .dotless, .any:
                if size < 0 { name.append(contentsOf: "\u{FFFD}".utf8) }
                for index in 0..<max(0, size) { name.append(Bytes.u8(key, at &+ index)) }
            }
            at &+= abs(size)
        }
        return name
    }
}
