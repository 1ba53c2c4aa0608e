// What the collector asks of an archive file: which one it is, and whether all of it is whole. The
// file's name is made from these facts alone, after their form was checked, so nothing a client
// sends can reach a path. Pure, but for the two functions that are handed in.

import Cordwood

struct ArchiveFacts: Sendable {
    /// 8-4-4-4-12 lowercase hex digits.
    var id: String
    var laneName: String
    var first: UInt64
    var last: UInt64
    /// Inflated; 0 where that is not known.
    var rawBytes: UInt64 = 0
}

/// Why a file is not taken; the text goes to the client.
struct ArchiveRefused: Error {
    let reason: String
}

struct ArchiveInspector: Sendable {
    /// Header, every block's checksums and footer.
    var verify: @Sendable (_ path: String) throws -> ArchiveFacts
    /// The header alone.
    var identify: @Sendable (_ path: String) throws -> ArchiveFacts
}

enum StoredName {
    /// FORMAT §2: `<lane>.<first>-<last>.cwa`; nil where the lane's name is not of the one form.
    static func make(_ facts: ArchiveFacts) -> String? {
        guard isLane(facts.laneName), facts.first <= facts.last else { return nil }
        let (first, last) = (facts.first, facts.last)
        return
            "\(facts.laneName).\(Digits.text(first, width: 8))-\(Digits.text(last, width: 8)).cwa"
    }

    /// `YYYYMMDDThhmmssZ-<pid>-<16 hex digits>`, nothing else.
    static func isLane(_ name: String) -> Bool {
        let parts = name.utf8.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
        guard parts.count == 3, name.utf8.count <= 64 else { return false }
        let start = Array(parts[0])
        guard start.count == 16, start[8] == UInt8(ascii: "T"), start[15] == UInt8(ascii: "Z"),
            start[0..<8].allSatisfy(isDigit), start[9..<15].allSatisfy(isDigit)
        else { return false }
        guard (1...10).contains(parts[1].count), parts[1].allSatisfy(isDigit) else { return false }
        return parts[2].count == 16
            && parts[2].allSatisfy {
                isDigit($0) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains($0)
            }
    }

    private static func isDigit(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
    }
}
