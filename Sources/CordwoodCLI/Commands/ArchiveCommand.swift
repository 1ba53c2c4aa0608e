// `cordwood archive`: makes archives of segments that dead processes left.

import ArgumentParser
import Cordwood
import Glibc

struct ArchiveCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "archive",
        abstract: "Compress what finished and dead processes left behind into archives.",
        discussion: """
            Leaves lanes of living processes alone: they archive themselves. Removes segments once \
            the archive is safely on the disk. If a child of a dead process still holds its files, \
            it takes ten seconds to see that nothing writes any more. On a network file system it \
            leaves lanes of other machines alone, because their locks may be visible only there; \
            --foreign says that their programs have ended.

            Example:
              cordwood archive logs --codec zstd --level 9
              cordwood archive logs --encrypt-to age1…
            """)

    @Option(help: "zstd, lz4 or none.")
    var codec = "zstd"

    @Option(help: "The codec's level; 0: its default.")
    var level: Int32 = 0

    @OptionGroup var encryption: EncryptionOption

    @Flag(help: "Also adopt what programs of other machines left: none may still run.")
    var foreign = false

    @Flag(help: "One JSON object.")
    var json = false

    @Argument(help: "The store's directory. Default: CORDWOOD_DIR.", completion: .directory)
    var directory: String?

    func run() throws {
        let codecs: [String: Codec] = ["zstd": .zstd, "lz4": .lz4, "none": .none]
        guard let chosen = codecs[codec] else {
            throw Failure(.usage, "--codec takes zstd, lz4 or none")
        }
        guard level >= 0, level <= (chosen == .zstd ? 19 : 12) else {
            throw Failure(.usage, "--level is out of the codec's range")
        }
        let store = try Sources.resolved(directory.map { [$0] } ?? [])[0]
        let recipients = try encryption.recipients()
        var summary = ArchivingSummary()
        let witness = AdoptionWitness(adoptsForeign: foreign)
        do throws(CordwoodError) {
            summary = try StoreArchiver.archiveDead(
                directory: store, codec: chosen, level: level, recipients: recipients,
                witness: witness)
            if witness.waiting > 0 {
                // Their processes are gone; a child still holds their locks.
                usleep(UInt32(AdoptionWitness.quietNs / 1_000))
                let (live, foreign) = (summary.lanesLive, summary.lanesForeign)
                summary.add(
                    try StoreArchiver.archiveDead(
                        directory: store, codec: chosen, level: level, recipients: recipients,
                        witness: witness))
                summary.lanesLive -= live
                summary.lanesForeign -= foreign
            }
        } catch {
            throw Failure(.cannotOpen, error.text)
        }
        Output.standard.append(json ? asJSON(summary) : asText(summary))
        Output.standard.flush()
        for problem in summary.damage { Complaint.tell("damaged: \(problem)") }
        if !summary.damage.isEmpty { throw Failure(.damaged) }
    }

    private func asText(_ summary: ArchivingSummary) -> String {
        var text = "\(summary.archives) archives of \(summary.lanes) lanes"
        text += ", \(summary.records) records, \(summary.bytesIn) bytes to \(summary.bytesOut)\n"
        if summary.lanesLive > 0 { text += "\(summary.lanesLive) live lanes left alone\n" }
        if summary.lanesForeign > 0 {
            text += "\(summary.lanesForeign) lanes of other machines left alone ("
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
