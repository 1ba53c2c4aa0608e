// What the uploader needs of rooms that it does not see: archives, segments, and the host's
// callback.

import CordwoodCore
import CordwoodShip

enum UploadWiring {
    static func hooks(
        directory: String, diagnostics: @escaping @Sendable (UploadDiagnostic) -> Void,
        removed: (@Sendable (String, RemovalReason) -> Void)?
    ) -> UploadHooks {
        UploadHooks(
            openRecords: { path throws(ReadProblem) in try ArchiveSource.open(path: path) },
            archiveInfo: { path in
                guard let info = try? ArchiveInfo.peek(path: path) else { return nil }
                return ArchiveSummary(
                    idText: info.idText, timeMaxNs: info.timeMax, bytes: info.fileBytes)
            },
            isCovered: { isCovered(directory: directory, archive: $0) },
            diagnostics: diagnostics,
            archiveRemoved: { removed?($0, $1) })
    }

    /// True while a segment stands that the archive covers (FORMAT §11). Segment 0 stands in the
    /// lane file until that says otherwise.
    private static func isCovered(directory: String, archive: String) -> Bool {
        let covers = LaneListing.covers(of: archive, directory)
        guard !covers.isEmpty else { return false }
        let lanes = LaneListing(directory: directory).lanes
        return covers.contains { cover in
            guard let lane = lanes[cover.lane] else { return false }
            if cover.range.contains(0), lane.hasLaneFile,
                let head = LaneHead.read(
                    LaneFiles(lane: lane.name, directory: directory + "/lanes")),
                head.archivedBelow == 0
            {
                return true
            }
            return lane.segments.contains { cover.range.contains($0.number) }
        }
    }
}

/// Breaks the circle between the services and the uploader that reports to them.
final class DiagnosticsReporter: @unchecked Sendable {
    // SAFETY: set once, before any thread of the engine starts.
    weak var services: Services?

    func write(_ diagnostic: UploadDiagnostic) { services?.report(diagnostic) }
}
