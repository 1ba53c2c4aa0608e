// Inspects archives through Cordwood's public functions.

import Cordwood

extension ArchiveInspector {
    /// The limit of an archive's inflated payloads: half a minute of one file thread. A few KiB can
    /// hold as much.
    private static let rawBytesMax: UInt64 = 64 << 30

    static let cordwood = ArchiveInspector(
        verify: { path in
            let archive = try judged { () throws(StoredArchiveProblem) in
                try StoredArchive.verify(path: path, rawBytesMax: rawBytesMax)
            }
            if let problem = archive.problems.first { throw ArchiveRefused(reason: problem) }
            return ArchiveFacts(archive)
        },
        identify: { path in
            ArchiveFacts(
                try judged { () throws(StoredArchiveProblem) in
                    try StoredArchive.identify(path: path)
                })
        },
        relate: { path, stored in
            try judged { () throws(StoredArchiveProblem) in
                try StoredArchive.relation(of: path, toStored: stored)
            }
        },
        fingerprint: { path in
            try judged { () throws(StoredArchiveProblem) in
                try StoredArchive.fingerprint(path: path)
            }
        })

    /// A failing disk is our fault, anything else the file's.
    private static func judged<Found>(
        _ look: () throws(StoredArchiveProblem) -> Found
    ) throws -> Found {
        do throws(StoredArchiveProblem) {
            return try look()
        } catch {
            guard error.errno == 0 else {
                throw FileProblem(operation: "read", errno: error.errno)
            }
            throw ArchiveRefused(reason: error.text)
        }
    }
}

extension ArchiveFacts {
    fileprivate init(_ archive: StoredArchive) {
        self.init(
            id: archive.id, laneName: archive.laneName, first: archive.firstSegment,
            last: archive.lastSegment, others: archive.otherCovers,
            segments: archive.segments, recordCount: archive.recordCount,
            rawBytes: archive.rawBytes)
    }
}
