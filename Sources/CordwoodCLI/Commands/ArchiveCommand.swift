// `cordwood archive`: makes archives of segments that dead processes left.

import ArgumentParser
import Cordwood

struct ArchiveCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "archive",
        abstract: "Compress what finished and dead processes left behind into archives.",
        usage: "cordwood archive [options] [DIR]",
        discussion: """
            Running programs archive their own records, and what dead processes left in their \
            store. Run this where no program will open the store soon. It does not touch what \
            living processes write, nor archives that exist. It removes a dead process's files \
            only once their archive is safely on the disk.

            zstd -d shows the messages of archives that are plain (--method plain, and the codecs \
            lz4 and none) as lines, for zstdgrep and the like.

            If a child of a dead process still holds its files, archive waits ten seconds to see \
            whether it writes. On a network file system it leaves the files of other machines \
            alone: their locks may be visible only there.

            Example:
              cordwood archive logs --codec zstd --level 9
            """)

    @Option(help: "zstd, lz4 or none.")
    var codec = "zstd"

    @Option(help: "1 to 19 for zstd, default 3; 1 to 12 for lz4, default 1.")
    var level: Int32?

    @Option(
        help: ArgumentHelp(
            "plain: zstd -d shows the lines. dense: about half the size; only cordwood reads the "
                + "text, and the codec is zstd. Default: dense for zstd."))
    var method: String?

    @Option(help: "Round times down to a multiple of so many ns, 1 to 10000.")
    var timeStep: UInt32 = 1

    @OptionGroup var encryption: EncryptionOption

    @Flag(help: "Also archive what other machines left. Only if their programs have ended.")
    var foreign = false

    @Flag(help: "Print one JSON object.")
    var json = false

    @Argument(help: "The store's directory. Default: CORDWOOD_DIR.", completion: .directory)
    var directory: String?

    func run() throws {
        let codecs: [String: Codec] = ["zstd": .zstd, "lz4": .lz4, "none": .none]
        guard let chosen = codecs[codec] else {
            throw Failure(.usage, "--codec takes zstd, lz4 or none")
        }
        let (level, most): (Int32, Int32) = (self.level ?? 0, chosen == .zstd ? 19 : 12)
        guard (0...most).contains(level) else {
            throw Failure(.usage, "--level takes 1 to \(most) for this codec")
        }
        guard let method = ArchiveMethod(rawValue: self.method ?? "dense") else {
            throw Failure(.usage, "--method takes dense or plain")
        }
        guard self.method != "dense" || chosen == .zstd else {
            throw Failure(.usage, "--method dense takes no other codec than zstd")
        }
        guard (1...StoreArchiver.timeStepNsMax).contains(timeStep) else {
            throw Failure(.usage, "--time-step takes 1 to \(StoreArchiver.timeStepNsMax)")
        }
        let recipients = try encryption.recipients()
        let store = try Sources.resolved(directory.map { [$0] } ?? [])[0]
        var summary = ArchivingSummary()
        let witness = AdoptionWitness(adoptsForeign: foreign)
        let opened = FilePath(opening: store)
        do throws(CordwoodError) {
            summary = try StoreArchiver.archiveDead(
                directory: opened, codec: chosen, level: level, method: method,
                timeStepNs: UInt64(timeStep), recipients: recipients, witness: witness,
                progress: ReadProgress.add)
            if witness.waiting > 0 {
                // Their processes are gone; a child still holds their locks.
                ThreadIdentity.pause(microseconds: UInt32(AdoptionWitness.quietNs / 1_000))
                let (live, foreign) = (summary.lanesLive, summary.lanesForeign)
                summary.add(
                    try StoreArchiver.archiveDead(
                        directory: opened, codec: chosen, level: level, method: method,
                        timeStepNs: UInt64(timeStep), recipients: recipients, witness: witness,
                        progress: ReadProgress.add))
                summary.lanesLive -= live
                summary.lanesForeign -= foreign
            }
        } catch {
            throw Failure(.cannotOpen, error.text)
        }
        ReadProgress.clear()
        Output.standard.append(json ? asJSON(summary) : asText(summary))
        Output.standard.flush()
        for problem in summary.damage { Complaint.tell("damaged: \(problem)") }
        if !summary.damage.isEmpty { throw Failure(.damaged) }
    }

    private func asText(_ summary: ArchivingSummary) -> String {
        var text = Counted.text(summary.archives, "archive")
        text += " of " + Counted.text(summary.lanes, "lane")
        text += ", " + Counted.text(summary.records, "record")
        text += ", " + Counted.text(summary.bytesIn, "byte") + " to \(summary.bytesOut)\n"
        if summary.lanesLive > 0 {
            text += Counted.text(summary.lanesLive, "live lane") + " left alone\n"
        }
        if summary.lanesForeign > 0 {
            text += Counted.text(summary.lanesForeign, "lane") + " of other machines left alone ("
            text += summary.foreignHosts.sorted().map(PlainText.oneLine).joined(separator: ", ")
            text += "); once their programs have ended, --foreign adopts them\n"
        }
        return text
    }

    private func asJSON(_ summary: ArchivingSummary) -> String {
        var object = JSONObject()
        object.add("archives", UInt64(summary.archives))
        object.add("lanes", UInt64(summary.lanes))
        object.add("lanes_live", UInt64(summary.lanesLive))
        object.add("lanes_foreign", UInt64(summary.lanesForeign))
        object.add("foreign_hosts", summary.foreignHosts.sorted())
        object.add("segments", UInt64(summary.segments))
        object.add("records", summary.records)
        object.add("bytes_in", summary.bytesIn)
        object.add("bytes_out", summary.bytesOut)
        object.add("problems", summary.damage)
        return object.text + "\n"
    }
}
