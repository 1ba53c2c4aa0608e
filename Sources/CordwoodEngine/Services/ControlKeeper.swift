// Follows the control file of an engine's store (FORMAT §2.4). Every 500 ms the supply thread
// checks for a new file and applies it. Its settings override the host and a policy until it drops
// them. An unreadable file changes nothing and is reported once.

import CordwoodCore
import CordwoodShip
import CordwoodStore
import CordwoodTrace

/// Only the supply thread uses it, except for the first look, which precedes that thread.
struct ControlKeeper {
    private static let intervalNs: UInt64 = 500_000_000

    private var next: UInt64 = 0
    private var stamp: ControlFile.Stamp?
    private var file = ControlFile()

    /// The changes to make; nil: none.
    /// - Parameter complain: gets the reason a file cannot be read; nil: the file is checked again,
    ///   and one that another user may have written throws.
    mutating func look(
        _ directory: FilePath, now: UInt64, complain: ((String) -> Void)?
    ) throws(UploadError) -> ControlFile? {
        guard now >= next else { return nil }
        next = now &+ ControlKeeper.intervalNs
        let found = ControlFile.stamp(storeDirectory: directory)
        guard found != stamp else { return nil }
        stamp = found
        do throws(UploadError) {
            let said = try ControlFile.read(storeDirectory: directory) ?? ControlFile()
            guard said != file else { return nil }
            file = said
            return said
        } catch {
            if let complain { complain(error.text) } else { (stamp, next) = (nil, 0) }
            if case .notOurs = error, complain == nil { throw error }
            return nil
        }
    }
}

extension Services {
    /// Called while an engine is being opened, before its first record.
    func beginControl(_ keeper: inout ControlKeeper) throws(UploadError) {
        if let said = try keeper.look(directory, now: 0, complain: nil) { follow(said) }
    }

    func followControl(_ keeper: inout ControlKeeper, now: UInt64) {
        let said = try? keeper.look(directory, now: now) { [self] cause in
            report(
                UploadDiagnostic(
                    level: 13, message: "the control file cannot be read; nothing was changed",
                    fields: [("cause", .text(cause))]))
        }
        if let said { follow(said) }
    }

    private func follow(_ said: ControlFile) {
        monitor.locked { unsafe HTTPSwitch.set(engine, control: .some(said.http)) }
        _ = changeLevels {
            $0.controlled(said.levels.map { (prefix: $0.prefix, level: $0.number) })
        }
    }
}
