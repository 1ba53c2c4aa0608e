// The upload service's access to archives, segments and its host, as hooks that tests replace.

import CordwoodCore
import CordwoodStore

package enum UploadWiring {
    package static func hooks(
        directory: String, diagnostics: @escaping @Sendable (UploadDiagnostic) -> Void,
        startThread: @escaping StartThread = { EngineThread.start("cordwood-upload", $0) },
        policyWanted: @escaping @Sendable () -> Void = {},
        runEnded: @escaping @Sendable () -> Void = {},
        replanned: @escaping @Sendable () -> Void = {},
        removed: (@Sendable (String, RemovalReason) -> Void)?, identities: [AgeIdentity] = []
    ) -> UploadHooks {
        UploadHooks(
            openRecords: { path throws(ReadProblem) in
                try ArchiveSource.open(path: path, identities: identities)
            },
            archiveInfo: { path throws(ReadProblem) in
                try summary(path: path, identities: identities)
            },
            covering: {
                let standing = LaneListing(directory: directory)
                return { isCovered(directory: directory, standing, archive: $0) }
            },
            diagnostics: diagnostics,
            startThread: startThread,
            policyWanted: policyWanted,
            runEnded: runEnded,
            replanned: replanned,
            archiveRemoved: { removed?($0, $1) })
    }

    package static func summary(
        path: String, identities: [AgeIdentity] = []
    ) throws(ReadProblem) -> ArchiveSummary {
        let info = try ArchiveInfo.peek(path: path, identities: identities)
        return ArchiveSummary(
            idText: info.idText, timeMaxNs: info.timeMax, bytes: info.fileBytes)
    }

    /// True while a segment exists that the archive covers (FORMAT §11). Segment 0 exists in the
    /// lane file until the file says otherwise.
    private static func isCovered(
        directory: String, _ standing: LaneListing, archive: String
    ) -> Bool {
        guard let covers = try? LaneListing.covers(of: archive, directory) else {
            let unread = UnreadArchive(name: archive, why: "", directory: directory)
            return !standing.isWhole || standing.lanes.values.contains(where: unread.mayCover)
        }
        guard !covers.isEmpty else { return false }
        // A segment that cannot be checked may exist.
        guard standing.isWhole else { return true }
        let lanes = standing.lanes
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
