// Follows the control file of an engine's store (FORMAT §2.4): looks every 500 ms, from the supply
// thread, whether it is another file now, and does what it says. What it says goes before the host
// and a policy until it says so no more. One that cannot be read changes nothing and is told once.

import CordwoodCore
import CordwoodShip
import CordwoodStore
import CordwoodTrace

/// On the supply thread alone, but for the first look, before there is one.
struct ControlKeeper {
    private static let intervalNs: UInt64 = 500_000_000

    private var next: UInt64 = 0
    private var stamp: ControlFile.Stamp?
    private var file = ControlFile()

    /// What is to change; nil: nothing.
    /// - Parameter complain: gets why the file cannot be read; nil: it is looked at again.
    mutating func look(
        _ directory: String, now: UInt64, complain: ((String) -> Void)?
    ) -> ControlFile? {
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
            return nil
        }
    }
}

extension Services {
    /// In an engine that is being opened, before its first record.
    func beginControl(_ keeper: inout ControlKeeper) {
        if let said = keeper.look(directory, now: 0, complain: nil) { follow(said) }
    }

    func followControl(_ keeper: inout ControlKeeper, now: UInt64) {
        let said = keeper.look(directory, now: now) { [self] cause in
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
