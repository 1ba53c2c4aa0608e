// `cordwood stats`: a store's contents, in numbers.

import ArgumentParser
import Cordwood

struct StatsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stats",
        abstract: "Show what a store holds: lanes, archives, times, who logged how much.",
        discussion: """
            Counts records, all or those that the options select. The counts of an archive are \
            remembered (cordwood help says where). A lane is what one process \
            wrote: live while the process runs; ended without closing if it was killed or crashed. \
            The records of such a lane are safe, and the next program that opens the store, or \
            `cordwood archive`, archives them. `not kept` counts records that a full disk or a \
            limit refused. `not sent` counts records of archives that a limit, or denied consent, \
            deleted before every target had them. `limits` are those of the store's policy, and \
            of programs that set none. Sizes are bytes on the disk; times are UTC.

            Shows the ten loggers and processes with the most records, and the last 24 hours. \
            Services and hosts are the programs' service.name and host.name, five at most. --json \
            has all of them.

            Example:
              cordwood stats logs --since 1d
            """)

    @OptionGroup var selection: Selection
    @OptionGroup var sources: Sources

    func run() throws {
        var code = Exit.fine
        var options = try selection.readerOptions()
        options.readsAhead = true
        options.facts = Reading.facts
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
                Complaint.tell(error.line)
                code = .cannotOpen
            }
        }
        Reading.facts?.save()
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
            \(Limits(path).text)
            """
        text += names("services", services(stats))
        text += names("hosts   ", hosts(stats))
        for (level, count) in levels(stats) { text += "  \(level): \(count)\n" }
        text += counts("logger", stats.loggers) { $0.isEmpty ? "-" : $0 }
        text += counts("process", stats.processes) { "\($0.name)[\($0.id)]" }
        text += hours(stats.hours)
        if stats.refused > 0 {
            let causes = stats.refusedCauses.map(PlainText.oneLine).joined(separator: ", ")
            text += "not kept  " + Counted.text(stats.refused, "record")
            text += "\(causes.isEmpty ? "" : ": \(causes)")\n"
        }
        for removed in stats.removed {
            text += "not sent  " + Counted.text(removed.records, "record") + " of "
            text += Counted.text(removed.archives, "archive") + ", deleted: \(removed.reason.word)"
            text += "; \(timeText(removed.timeMin)) to \(timeText(removed.timeMax))\n"
        }
        let aside = StatsCommand.aside(path)
        if aside > 0 {
            text += "aside     " + Counted.text(aside, "archive") + " in quarantine/\n"
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
            text += "left alone: " + Counted.text(stats.lanesElsewhere, "lane")
            text += " of other machines ("
            text += stats.hostsElsewhere.map(PlainText.oneLine).joined(separator: ", ")
            text += "); once their programs have ended, cordwood archive --foreign adopts them\n"
        }
        return text
    }

    /// Archives that contradict those of a collector's store (UPLOADS, collector).
    private static func aside(_ path: String) -> Int {
        DirectoryListing(FilePath("\(path)/quarantine")).names.count { $0.hasSuffix(".cwa") }
    }

    private func services(_ stats: StoreStats) -> RecordCounts<String> {
        stats.processes.by { $0.service }
    }

    private func hosts(_ stats: StoreStats) -> RecordCounts<String> {
        stats.processes.by { $0.host }
    }

    /// The number of services and hosts named; the rest is counted.
    private static let originsMax = 5

    private func names(_ what: String, _ counts: RecordCounts<String>) -> String {
        let known = counts.records.map { PlainText.oneLine($0.key) }
        guard !known.isEmpty else { return "" }
        let more = known.count - StatsCommand.originsMax
        return "\(what)  " + known.prefix(StatsCommand.originsMax).joined(separator: ", ")
            + (more > 0 ? " and \(more) more\n" : "\n")
    }

    /// The number of loggers and processes named, and of hours; the rest is counted.
    private static let namedMax = 10
    private static let hoursMax = 24

    private func counts<Key>(
        _ what: String, _ counts: RecordCounts<Key>, _ name: (Key) -> String
    ) -> String {
        guard !counts.records.isEmpty else { return "" }
        var text = "by \(what):\n"
        for (key, count) in counts.records.prefix(StatsCommand.namedMax) {
            text += "  \(PlainText.oneLine(name(key))): \(count)\n"
        }
        let rest = counts.records.dropFirst(StatsCommand.namedMax)
        let more = rest.reduce(counts.others) { $0 &+ $1.count }
        if more > 0 {
            let names = counts.others > 0 ? "over \(rest.count)" : "\(rest.count)"
            text += "  and \(names) more: \(more)\n"
        }
        return text
    }

    private func hours(_ hours: RecordCounts<UInt64>) -> String {
        let all = hours.records
        guard all.count > 1 else { return "" }
        var text = "by hour, UTC:\n"
        let earlier = all.dropLast(StatsCommand.hoursMax)
        if !earlier.isEmpty {
            text += "  \(earlier.count) earlier: \(earlier.reduce(0) { $0 &+ $1.count })\n"
        }
        for (hour, count) in all.suffix(StatsCommand.hoursMax) {
            // 2026-11-21T08:00:00.000000000Z
            let words = Times.text(hour).prefix(16).split(separator: "T")
            text += "  \(words.joined(separator: " ")): \(count)\n"
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
        object.add("loggers", members(stats.loggers) { $0 })
        object.add(
            "processes",
            stats.processes.records.map { process, count in
                var entry = JSONObject()
                entry.add("process", process.name)
                entry.add("pid", UInt64(process.id))
                if !process.service.isEmpty { entry.add("service", process.service) }
                if !process.host.isEmpty { entry.add("host", process.host) }
                entry.add("records", count)
                return entry
            })
        object.add("services", members(services(stats)) { $0 })
        object.add("hosts", members(hosts(stats)) { $0 })
        object.add("hours", members(stats.hours, timeText))
        let others = stats.loggers.others &+ stats.processes.others &+ stats.hours.others
        if others > 0 { object.add("not_told_apart", others) }
        object.add("not_kept", stats.refused)
        object.add("not_kept_causes", stats.refusedCauses)
        object.add(
            "not_sent",
            stats.removed.map { removed in
                var entry = JSONObject()
                entry.add("reason", removed.reason.word)
                entry.add("archives", removed.archives)
                entry.add("records", removed.records)
                entry.add("first", timeText(removed.timeMin))
                entry.add("last", timeText(removed.timeMax))
                return entry
            })
        object.add("aside", UInt64(StatsCommand.aside(path)))
        object.add("limits", Limits(path).object)
        object.add("problems", stats.problems)
        object.add("encrypted", stats.encrypted)
        return object.text + "\n"
    }

    private func members<Key>(
        _ counts: RecordCounts<Key>, _ name: (Key) -> String
    ) -> JSONObject {
        var object = JSONObject()
        for (key, count) in counts.records { object.add(name(key), count) }
        return object
    }

    private func closed(_ stats: StoreStats) -> String {
        stats.encrypted.isEmpty ? "" : ", \(stats.encrypted.count) encrypted and not opened"
    }

    private func written(_ stats: StoreStats) -> String {
        stats.lanesWritten == 0
            ? ""
            : ", " + Counted.text(stats.lanesWritten, "lane")
                + " by pwrite: no mappings on this file system"
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

/// What a store's archives are deleted for, sent or not, by programs that set nothing else.
private struct Limits {
    private let policy: PolicyDocument?
    private let standard = EngineOptions()

    /// - Parameter path: of a store; of any other file there is no policy.
    init(_ path: String) {
        policy = (try? StoreSettings.policy(directory: path))?.binding()
    }

    private var quota: UInt64 { policy?.quotaBytes ?? standard.quotaBytes }
    private var days: UInt32 { policy?.expirationDays ?? standard.expirationDays }
    private var count: UInt32 { policy?.filesMax ?? standard.archivesMax }

    var text: String {
        let parts = [
            part(UInt64(days), "day", policy?.expirationDays != nil),
            part(quota, "byte", policy?.quotaBytes != nil),
            part(UInt64(count), "archive", policy?.filesMax != nil),
        ].compactMap { $0 }
        let limits = parts.isEmpty ? "none" : parts.joined(separator: ", ")
        let what = "; beyond them the oldest archives are deleted, sent or not"
        return "limits    \(limits)\(parts.isEmpty ? "" : what)\n"
    }

    /// nil: there is no such limit.
    private func part(_ value: UInt64, _ unit: String, _ isPolicy: Bool) -> String? {
        guard value > 0 else { return nil }
        return Counted.text(value, unit) + (isPolicy ? " (policy)" : " (default)")
    }

    /// 0: unlimited.
    var object: JSONObject {
        var object = JSONObject()
        object.add("quota_bytes", quota)
        object.add("expiration_days", UInt64(days))
        object.add("archives_max", UInt64(count))
        object.add("policy", policy != nil)
        return object
    }
}
