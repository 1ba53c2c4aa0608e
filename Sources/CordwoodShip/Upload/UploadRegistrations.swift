// Which targets a store's archives wait for: those that are registered, and those of this process
// that a full disk has no room to register. Tells of registered targets that nobody may send to any
// more. Any thread.

import CordwoodCore
import CordwoodFormats
import CordwoodStore

extension UploadService {
    /// Registers a target. On a full disk it is registered later, because sending to it is what
    /// makes room.
    func register(_ target: RegisteredTarget) throws(UploadError) {
        do throws(UploadError) {
            try registry.register(target)
        } catch {
            guard error.status == .full else { throw error }
            owe(target)
            report(
                UploadDiagnostic.warn,
                "the disk has no room to register a target; others may delete what it lacks",
                [("target", .text(target.name)), ("cause", .text(error.text))])
        }
    }

    /// Registers what the disk may have room for by now.
    func registerOwed() {
        for target in owed where (try? registry.register(target)) != nil {
            settleOwed(target.key)
        }
    }

    func registeredKeys() throws(UploadError) -> [TargetKey] {
        let listed = try listedKeys()
        return listed + owed.map(\.key).filter { !listed.contains($0) }
    }

    /// True if a target gets all records. A target that gets only transactions' events does not
    /// have the rest, which is then kept under retention, as if there were no target.
    func takesArchives() throws(UploadError) -> Bool {
        (try listedTargets() + owed).contains { $0.kind != TargetKind.transactions.rawValue }
    }

    // ── Forsaken targets ──

    /// Tells once of each target that this process does not have, whose name follows from its
    /// address, and for which archives wait that this process has sent: most likely the address
    /// was mistyped, or has changed.
    func tellForsaken(_ work: UploadWork) {
        let own = Set(currentRunners.map(\.target.key))
        guard !own.isEmpty, let listed = try? listedTargets() else { return }
        let nowNs = clock.realtimeMs() &* 1_000_000
        for target in listed where !own.contains(target.key) && target.isNamedByAddress {
            var (count, sinceNs): (Int64, UInt64) = (0, .max)
            for archive in work.archives {
                let states = work.snapshot.pairs[archive.stem] ?? [:]
                guard own.allSatisfy({ states[$0]?.isDone == true }),
                    !(states[target.key] ?? .waiting).isFinal
                else { continue }
                count += 1
                sinceNs = min(sinceNs, archive.summary?.writtenNs ?? .max)
            }
            guard count > 0, sinceNs == .max || sinceNs <= nowNs,
                sinceNs == .max || nowNs - sinceNs >= forsakenMs &* 1_000_000,
                isNews("forsaken \(target.key.text)")
            else { continue }
            let words = ["\(paths.root)", target.name].map { ShellWord.quoted(Array($0.utf8)) }
            var fields: [(key: String, value: DiagnosticValue)] = [
                ("target", .text(target.name)), ("origin", .text(target.origin)),
                ("archives", .number(count)),
            ]
            if sinceNs != .max {
                let seconds = Int64(clamping: sinceNs / 1_000_000_000)
                fields.append(("since", .text(Times.text(seconds: seconds))))
            }
            fields.append(
                ("to_remove", .text("cordwood target \(words[0]) remove \(words[1])")))
            report(
                UploadDiagnostic.warn, "archives still wait for a target that is not sent to here",
                fields)
        }
    }
}

extension RegisteredTarget {
    /// `<kind>-<host>-<format>-<12 hex digits>` (`Target.checkedName`).
    var isNamedByAddress: Bool {
        let hash = name.utf8.suffix(12)
        return name.hasPrefix("\(kind)-") && hash.count == 12
            && hash.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
            && name.dropLast(12).hasSuffix("-\(format)-")
    }
}
