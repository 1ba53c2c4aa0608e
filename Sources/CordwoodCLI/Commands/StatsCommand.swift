// `cordwood stats`: a store's contents, in numbers.

import ArgumentParser
import Cordwood

struct StatsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stats",
        abstract: "Show what a store holds: lanes, archives, records by level, times.",
        discussion: """
            Reads every record once; the options choose which records count. A lane that ended \
            without closing belongs to a process that was killed or crashed. Its records are \
            there, and the next program that opens the store archives them.

            Example:
              cordwood stats logs --json
            """)

    @OptionGroup var selection: Selection
    @OptionGroup var sources: Sources

    func run() throws {
        var code = Exit.fine
        let options = try selection.readerOptions()
        for path in try sources.resolved() {
            do throws(ReadProblem) {
                let stats = try StoreInspector.stats(
                    path: path, options: options, progress: ReadProgress.update)
                ReadProgress.clear()
                Output.standard.append(
                    selection.json ? asJSON(path, stats) : asText(path, stats))
                Output.standard.flush()
                for problem in stats.problems { Complaint.tell("damaged: \(problem)") }
                for text in stats.encrypted { Complaint.tell(text) }
                if !stats.problems.isEmpty, code == .fine { code = .damaged }
                if !stats.encrypted.isEmpty { code = .cannotOpen }
            } catch {
                Output.standard.flush()
                Complaint.tell(Reading.text(error))
                code = .cannotOpen
            }
        }
        if code != .fine { throw Failure(code) }
    }

    private func asText(_ path: String, _ stats: StoreStats) -> String {
        let live = stats.lanes.count { $0.state == .live }
        let unclean = StatsCommand.unclean(stats)
        var text = """
            store     \(PlainText.oneLine(path))
            records   \(stats.records)
            lanes     \(stats.lanes.count) (\(live) live, \(unclean.count) ended without closing)
            segments  \(stats.segments), \(stats.laneBytes) bytes\(written(stats))
            archives  \(stats.archives), \(stats.archiveBytes) bytes\(ratio(stats))\(closed(stats))
            first     \(timeText(stats.timeMin))
            last      \(timeText(stats.timeMax))

            """
        for (level, count) in levels(stats) { text += "  \(level): \(count)\n" }
        if stats.refused > 0 {
            let causes = stats.refusedCauses.map(PlainText.oneLine).joined(separator: ", ")
            text += "not kept  \(stats.refused) records\(causes.isEmpty ? "" : ": \(causes)")\n"
        }
        if !unclean.isEmpty {
            text += "ended without closing:\n"
            for lane in unclean.prefix(StatsCommand.uncleanMax) {
                text += "  \(PlainText.oneLine(lane.name)), \(PlainText.oneLine(lane.processName))"
                text += "[\(lane.processID)]\(lane.isOtherBoot ? ", another boot" : "")\n"
            }
            let more = unclean.count - StatsCommand.uncleanMax
            if more > 0 { text += "  and \(more) more: cordwood verify names all\n" }
        }
        if !stats.hostsElsewhere.isEmpty {
            text += "left alone: \(stats.lanesElsewhere) lanes of other machines ("
            text += stats.hostsElsewhere.map(PlainText.oneLine).joined(separator: ", ")
            text += "); once their programs have ended, cordwood archive --foreign adopts them\n"
        }
        return text
    }

    /// The number of lanes named; the rest is counted.
    private static let uncleanMax = 20

    private static func unclean(_ stats: StoreStats) -> [LaneStatus] {
        stats.lanes.filter { $0.state == .unclean }
    }

    private func asJSON(_ path: String, _ stats: StoreStats) -> String {
        var object = JSONObject()
        object.add("store", path)
        object.add("records", stats.records)
        object.add("lanes", UInt64(stats.lanes.count))
        object.add("lanes_live", UInt64(stats.lanes.count { $0.state == .live }))
        let unclean = StatsCommand.unclean(stats)
        object.add("lanes_unclean", UInt64(unclean.count))
        object.add(
            "unclean",
            unclean.map { lane in
                var entry = JSONObject()
                entry.add("name", lane.name)
                entry.add("pid", UInt64(lane.processID))
                entry.add("process", lane.processName)
                return entry
            })
        object.add("lanes_written", UInt64(stats.lanesWritten))
        object.add("lanes_foreign", UInt64(stats.lanesElsewhere))
        object.add("foreign_hosts", stats.hostsElsewhere)
        object.add("segments", UInt64(stats.segments))
        object.add("lane_bytes", stats.laneBytes)
        object.add("archives", UInt64(stats.archives))
        object.add("archive_bytes", stats.archiveBytes)
        object.add("archive_raw_bytes", stats.archiveRawBytes)
        if stats.records > 0 {
            object.add("first", timeText(stats.timeMin))
            object.add("last", timeText(stats.timeMax))
        }
        var byLevel = JSONObject()
        for (level, count) in levels(stats) { byLevel.add(level, count) }
        object.add("levels", byLevel)
        object.add("not_kept", stats.refused)
        object.add("not_kept_causes", stats.refusedCauses)
        object.add("problems", stats.problems)
        object.add("encrypted", stats.encrypted)
        return object.text + "\n"
    }

    private func closed(_ stats: StoreStats) -> String {
        stats.encrypted.isEmpty ? "" : ", \(stats.encrypted.count) encrypted and not opened"
    }

    private func written(_ stats: StoreStats) -> String {
        stats.lanesWritten == 0
            ? "" : ", \(stats.lanesWritten) lanes by pwrite: no mappings on this file system"
    }

    private func ratio(_ stats: StoreStats) -> String {
        guard stats.archiveBytes > 0, stats.archiveRawBytes > 0 else { return "" }
        // An archive may claim any number about itself.
        let (whole, rest) = stats.archiveRawBytes.quotientAndRemainder(
            dividingBy: stats.archiveBytes)
        return " (\(whole).\(min(rest / max(stats.archiveBytes / 10, 1), 9)) to 1)"
    }

    private func levels(_ stats: StoreStats) -> [(String, UInt64)] {
        stats.recordsByLevel.enumerated().reversed().compactMap { level, count in
            guard count > 0 else { return nil }
            return (Level(number: UInt8(level))?.description ?? "none", count)
        }
    }

    private func timeText(_ ns: UInt64) -> String { ns == 0 ? "-" : Times.text(ns) }
}
