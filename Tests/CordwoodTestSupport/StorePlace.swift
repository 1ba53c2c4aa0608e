// Where these tests make their stores: in memory, if there is room. Archives and the states of
// uploads are synced, and a disk takes milliseconds for each sync, far more on a busy machine. What
// becomes of records on a disk is the matter of the suites disk, clocks, crash and crash-points.
// TMPDIR overrides it: `TMPDIR=/var/tmp ./dev test --only swift`.

import Foundation
import Glibc

public enum StorePlace {
    /// This process's own; ends with "/". It goes with the process, and all that tests left there.
    public static let folder = make()

    /// A name in that folder that nothing has yet.
    public static func path(_ kind: String) -> String {
        "\(folder)cordwood-\(kind)-\(UUID().uuidString)"
    }

    private static let memory = "/dev/shm/"
    /// All test modules at once use less. Containers often give 64 MiB, which is too little.
    private static let bytesMin: UInt64 = 1 << 30
    private static let prefix = "cordwood-tests-"

    private static func make() -> String {
        let place = getenv("TMPDIR") == nil && hasRoom ? memory : NSTemporaryDirectory()
        removeLeftovers(place)
        let made = "\(place)\(prefix)\(getpid())/"
        mkdir(made, 0o700)
        _ = lock(made)  // as long as the process lives
        atexit { try? FileManager.default.removeItem(atPath: StorePlace.folder) }
        return made
    }

    private static var hasRoom: Bool {
        var facts = statvfs()
        guard access(memory, W_OK) == 0, statvfs(memory, &facts) == 0 else { return false }
        return UInt64(facts.f_bavail) * UInt64(facts.f_frsize) >= bytesMin
    }

    /// Those of killed processes. The lock tells those of another pid namespace, too.
    private static func removeLeftovers(_ place: String) {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: place)) ?? []
        for name in names where name.hasPrefix(prefix) {
            guard let process = pid_t(name.dropFirst(prefix.count)), kill(process, 0) != 0,
                errno == ESRCH
            else { continue }
            guard let held = lock(place + name) else { continue }
            try? FileManager.default.removeItem(atPath: place + name)
            close(held)
        }
    }

    /// nil: another process holds it, or it is not ours.
    private static func lock(_ path: String) -> Int32? {
        let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { return descriptor }
        close(descriptor)
        return nil
    }
}
