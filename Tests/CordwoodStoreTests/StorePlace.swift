// Where these tests make their stores: in memory, if there is room. Archives and the states of
// uploads are synced, and a disk takes milliseconds for each sync, far more on a busy machine. What
// becomes of records on a disk is the matter of the suites disk, clocks, crash and crash-points.
// TMPDIR overrides it: `TMPDIR=/var/tmp ./dev test --only swift`.

import Foundation
import Glibc

enum StorePlace {
    /// Ends with "/".
    static let folder = getenv("TMPDIR") == nil && hasRoom ? memory : NSTemporaryDirectory()

    /// A name in that folder that nothing has yet.
    static func path(_ kind: String) -> String { "\(folder)cordwood-\(kind)-\(UUID().uuidString)" }

    private static let memory = "/dev/shm/"
    /// All test modules at once use less. Containers often give 64 MiB, which is too little.
    private static let bytesMin: UInt64 = 1 << 30

    private static var hasRoom: Bool {
        var facts = statvfs()
        guard access(memory, W_OK) == 0, statvfs(memory, &facts) == 0 else { return false }
        return UInt64(facts.f_bavail) * UInt64(facts.f_frsize) >= bytesMin
    }
}
