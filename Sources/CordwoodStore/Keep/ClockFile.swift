// The file `clock` of a store: the clocks at the last check for archives that are too old (FORMAT
// §2.5). Text, replaced as a whole, read and written under the lock of archives/. If it is missing
// or damaged, only the newest record can tell whether the clock jumped.

import CordwoodCore
import CordwoodFormats

package enum ClockFile {
    static let fileName = "clock"
    private static let firstLine = "cordwood clock"

    /// nil: it belongs to a later version and must be left alone, or it cannot be read now.
    package static func read(storeDirectory: FilePath) -> AgeTrust? {
        do throws(UploadError) {
            guard let bytes = try StoreFiles.read(storeDirectory + "/" + fileName) else {
                return AgeTrust()
            }
            return try parse(bytes)
        } catch {
            switch error {
            case .damaged: return AgeTrust()
            // Not one of our files: a new one replaces it.
            case .system(_, _, Errno.EACCES), .system(_, _, Errno.EPERM),
                .system(_, _, Errno.ELOOP),
                .system(_, _, Errno.ENXIO):
                return AgeTrust()
            default: return nil
            }
        }
    }

    package static func write(_ trust: AgeTrust, storeDirectory: FilePath) throws(UploadError) {
        try StoreFiles.replace(fileName, inStore: storeDirectory, with: bytes(trust))
    }

    static func bytes(_ trust: AgeTrust) -> [UInt8] {
        KeyValueFile.bytes(
            firstLine,
            trust.anchors.map { anchor in
                let look = anchor.look
                return "seen \(Hex.text(look.boot.bytes)) \(look.boottimeNs) \(look.realtimeNs)"
                    + " \(anchor.waitsUntilNs)"
            })
    }

    static func parse(_ bytes: [UInt8]) throws(UploadError) -> AgeTrust {
        var trust = AgeTrust()
        for line in try KeyValueFile(bytes, firstLine: firstLine, path: FilePath(fileName)).lines {
            let words = line.value.split(separator: " ")
            guard line.key == "seen", words.count >= 4, let boot = LaneID(hex: words[0]),
                let boottime = UInt64(words[1]), let realtime = UInt64(words[2]),
                let until = UInt64(words[3]), trust.anchors.count < AgeTrust.anchorsMax
            else { continue }
            let look = ClockLook(boot: boot, boottimeNs: boottime, realtimeNs: realtime)
            // No wait lasts longer than a day: a larger number is damage.
            let left = until - min(boottime, until)
            trust.anchors.append(
                AgeTrust.Anchor(
                    look: look, waitsUntilNs: left > AgeTrust.waitNs ? 0 : until))
        }
        return trust
    }
}
