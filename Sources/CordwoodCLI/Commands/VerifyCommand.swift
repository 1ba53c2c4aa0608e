// `cordwood verify`: reads everything and reports damage. A process that died is reported, but does
// not count as damage.

import ArgumentParser
import Cordwood

struct VerifyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify",
        abstract: "Check every byte of stores and archives against its checksum.",
        discussion: """
            Reads everything and changes nothing, and may be used while programs write. There is \
            no repair; the reading verbs show all that is whole. Exit codes:
              0  everything is whole. A lane whose process died without closing it is
                 called unclean; that loses nothing
              3  something is damaged, or records are unverified: shown, but the machine
                 went down before they were synced, so they may not be what was written
              4  an archive is encrypted and no identity opens it: only its outside was
                 checked; or something could not be opened

            Example:
              cordwood verify logs && echo whole
            """)

    @Flag(help: "One JSON object a store or file.")
    var json = false

    @OptionGroup var keys: IdentityOption

    @Argument(
        help: "Stores, or single files of one (.cwa, .seg, .sealed). Default: CORDWOOD_DIR.",
        completion: .file())
    var paths: [String] = []

    func run() throws {
        var code = Exit.fine
        let identities = try keys.identities()
        for path in try Sources.resolved(paths) {
            do throws(ReadProblem) {
                let report = try look(path, identities)
                Output.standard.append(json ? asJSON(path, report) : asText(path, report))
                if !report.isWhole || report.unverified > 0, code == .fine { code = .damaged }
                Output.standard.flush()
                for text in report.encrypted { Complaint.tell(text) }
                if !report.encrypted.isEmpty { code = .cannotOpen }
            } catch {
                Output.standard.flush()
                Complaint.tell(error.line)
                // A file that should be an archive and is not one: damage, not absence.
                if case .damaged = error {
                    if code == .fine { code = .damaged }
                } else {
                    code = .cannotOpen
                }
            }
        }
        if code != .fine { throw Failure(code) }
    }

    private func look(
        _ path: String, _ identities: [AgeIdentity]
    ) throws(ReadProblem) -> VerifyReport {
        guard FileFacts(following: FilePath(path))?.isRegular == true else {
            return try StoreInspector.verify(
                directory: path, identities: identities, progress: ReadProgress.update(_:of:))
        }
        return try StoreInspector.verify(
            file: path, identities: identities, progress: ReadProgress.update(_:of:))
    }

    private func asText(_ path: String, _ report: VerifyReport) -> String {
        var text = ""
        for lane in report.lanes {
            let boot = lane.isOtherBoot ? ", another boot" : ""
            text += "lane \(PlainText.oneLine(lane.name)): \(lane.state.rawValue)"
            text += ", \(PlainText.oneLine(lane.processName))"
            text += "[\(lane.processID)]\(boot)\n"
        }
        for problem in report.problems { text += "damaged: \(PlainText.oneLine(problem))\n" }
        if report.unverified > 0 {
            text += Counted.text(report.unverified, "record")
            text += " unverified: written shortly before the machine"
            text += " went down\n"
        }
        var verdict = report.unverified > 0 ? "unverified" : "whole"
        if !report.isWhole { verdict = Counted.text(report.problems.count, "damaged place") }
        text += "\(PlainText.oneLine(path)): \(verdict)"
        text += ", " + Counted.text(report.records, "record")
        text += ", " + Counted.text(report.lanes.count, "lane")
        text += " (\(report.unclean.count) unclean), " + Counted.text(report.archives, "archive")
        if !report.encrypted.isEmpty {
            text += " (\(report.encrypted.count) encrypted and not looked into)"
        }
        text += "\n"
        return text
    }

    private func asJSON(_ path: String, _ report: VerifyReport) -> String {
        var object = JSONObject()
        object.add("path", path)
        object.add("whole", report.isWhole)
        object.add("records", report.records)
        object.add("unverified", report.unverified)
        object.add("archives", UInt64(report.archives))
        object.add(
            "lanes",
            report.lanes.map { lane in
                var entry = JSONObject()
                entry.add("name", lane.name)
                entry.add("state", lane.state.rawValue)
                entry.add("pid", UInt64(lane.processID))
                entry.add("process", lane.processName)
                return entry
            })
        object.add("problems", report.problems)
        object.add("encrypted", report.encrypted)
        return object.text + "\n"
    }
}
