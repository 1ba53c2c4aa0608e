// The file `clock` of a store: what the clocks were when somebody looked whether archives are too
// old (FORMAT §2.5). Text, replaced as a whole, read and written under the lock of archives/. Where
// it is missing or damaged the newest record alone tells whether the clock jumped.

import CordwoodCore
import CordwoodFormats
import Glibc

package enum ClockFile {
    static let fileName = "clock"
    static let temporaryName = ".clock.new"
    private static let firstLine = "cordwood clock"

    /// nil: it is a later version's, and is to be left alone, or it cannot be read now.
    package static func read(storeDirectory: String) -> AgeTrust? {
        do throws(UploadError) {
            guard let bytes = try Files.read(storeDirectory + "/" + fileName) else {
                return AgeTrust()
            }
            return parse(bytes)
        } catch {
            switch error {
            case .damaged: return AgeTrust()
            // Not a file of ours: another one takes its place.
            case .system(_, _, EACCES), .system(_, _, EPERM), .system(_, _, ELOOP),
                .system(_, _, ENXIO):
                return AgeTrust()
            default: return nil
            }
        }
    }

    package static func write(_ trust: AgeTrust, storeDirectory: String) throws(UploadError) {
        // The store's own directory may be a link (StoreFile).
        try Files.replace(
            storeDirectory + "/" + fileName, temporary: storeDirectory + "/" + temporaryName,
            directory: storeDirectory + "/.", with: Array(text(trust).utf8))
    }

    static func text(_ trust: AgeTrust) -> String {
        var text = "\(firstLine)\nformat 1\n"
        for anchor in trust.anchors {
            let look = anchor.look
            text += "seen \(Hex.text(look.boot.bytes)) \(look.boottimeNs) \(look.realtimeNs)"
            text += " \(anchor.waitsUntilNs)\n"
        }
        return text
    }

    static func parse(_ bytes: [UInt8]) -> AgeTrust? {
        var lines = bytes.split(separator: 0x0A).map { String(decoding: $0, as: UTF8.self) }[...]
        guard lines.popFirst() == firstLine else { return AgeTrust() }
        var trust = AgeTrust()
        for line in lines {
            let words = line.split(separator: " ")
            if words.first == "format", words.count == 2, words[1] != "1" { return nil }
            guard words.first == "seen", words.count >= 5, let boot = LaneID(hex: words[1]),
                let boottime = UInt64(words[2]),
                let realtime = UInt64(words[3]), let until = UInt64(words[4]),
                trust.anchors.count < AgeTrust.anchorsMax
            else { continue }
            let look = ClockLook(boot: boot, boottimeNs: boottime, realtimeNs: realtime)
            // Nobody waits for longer than a day: a number that says so is damage.
            let left = until - min(boottime, until)
            trust.anchors.append(
                AgeTrust.Anchor(
                    look: look, waitsUntilNs: left > AgeTrust.waitNs ? 0 : until))
        }
        return trust
    }
}
