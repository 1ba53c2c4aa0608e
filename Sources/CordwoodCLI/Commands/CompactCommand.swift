// `cordwood compact`: turns many archives into few and smaller ones.

import ArgumentParser
import Cordwood

struct CompactCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "compact",
        abstract: "Make archives smaller and fewer.",
        discussion: """
            Writes archives again with dense blocks of 4 MiB, and makes one of those that belong \
            together: of programs of one name with the same resource attributes, up to 64 MiB of \
            records each, whose newest records are less than a day apart. Records keep their \
            order, times and ids. An archive is replaced only by a smaller one, or by one of \
            several.

            An encrypted archive stays as it is, unless --identity names the keys of all its \
            recipients: it is encrypted to them again, and merged only with archives of the same \
            recipients.

            It leaves alone what is damaged, what is being sent, and archives whose segments still \
            exist. It merges only archives that every target has, or none has \
            begun with. It is safe beside running programs, uploads and readers, and may be \
            killed at any time.

            Example:
              cordwood compact logs --hours 48
            """)

    @Option(help: "Only archives whose records are all older than so many hours.")
    var hours: UInt32 = 24

    @Option(help: "1 to 19, as zstd counts; default 3.")
    var level: Int32?

    @OptionGroup var keys: IdentityOption

    @Flag(help: "One JSON object.")
    var json = false

    @Argument(help: "The store's directory. Default: CORDWOOD_DIR.", completion: .directory)
    var directory: String?

    func run() throws {
        let level = self.level ?? 0
        guard (0...19).contains(level) else { throw Failure(.usage, "--level takes 1 to 19") }
        let identities = try keys.identities()
        let store = try Sources.resolved(directory.map { [$0] } ?? [])[0]
        let summary: CompactingSummary
        do throws(CordwoodError) {
            summary = try StoreCompactor.compact(
                directory: FilePath(opening: store), ageSeconds: UInt64(hours) * 3_600,
                level: level,
                identities: identities, progress: ReadProgress.add)
        } catch {
            throw Failure(.cannotOpen, error.text)
        }
        ReadProgress.clear()
        Output.standard.append(json ? asJSON(summary) : asText(summary))
        Output.standard.flush()
        for problem in summary.damage { Complaint.tell("damaged: \(problem)") }
        if !summary.damage.isEmpty { throw Failure(.damaged) }
    }

    private func asText(_ summary: CompactingSummary) -> String {
        Counted.text(summary.archivesIn, "archive") + " to \(summary.archivesOut), "
            + Counted.text(summary.records, "record") + ", "
            + Counted.text(summary.bytesIn, "byte") + " to \(summary.bytesOut)"
            + (summary.archivesLocked == 0
                ? "\n"
                : ", " + Counted.text(summary.archivesLocked, "encrypted archive")
                    + " left: --identity must name all of their keys\n")
    }

    private func asJSON(_ summary: CompactingSummary) -> String {
        var object = JSONObject()
        object.add("archives_in", UInt64(summary.archivesIn))
        object.add("archives_out", UInt64(summary.archivesOut))
        object.add("archives_left", UInt64(summary.archivesLeft))
        object.add("archives_locked", UInt64(summary.archivesLocked))
        object.add("records", summary.records)
        object.add("bytes_in", summary.bytesIn)
        object.add("bytes_out", summary.bytesOut)
        object.add("problems", summary.damage)
        return object.text + "\n"
    }
}
