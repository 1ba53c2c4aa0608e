// The origin of an archive, for names that contain it (S3 keys): the process of its first record
// and the time of its newest one. It must be the same on every attempt and every machine, because a
// different key would make a second object. If the archive is sent encrypted, facts that only a key
// reveals therefore do not count. A value.

import CordwoodCore
import CordwoodStore

struct ArchiveOrigin: Equatable, Sendable {
    /// The time of the newest record; 0: unknown.
    var timeUnixMs: UInt64 = 0
    /// service.name, or the name of the process; empty: unknown.
    var service = ""
    /// host.name; empty: unknown.
    var host = ""
    /// Only holders of a key can read service and host.
    var isEncrypted = false

    /// - Throws: problems that may be gone at the next attempt. Damage lasts, so it counts as
    ///   unknown.
    static func read(
        _ path: FilePath, timeUnixMs: UInt64, _ identities: [AgeIdentity]
    ) throws(UploadError) -> ArchiveOrigin {
        var origin = ArchiveOrigin(timeUnixMs: timeUnixMs)
        origin.isEncrypted = try isAge(path)
        do throws(ReadProblem) {
            let source = try ArchiveSource.open(path: path, identities: identities)
            guard let process = source.process else { return origin }
            func attribute(_ name: String) -> String? {
                process.resource.first { $0.key == name && !$0.value.isEmpty }?.value
            }
            origin.service = attribute("service.name") ?? process.name
            origin.host = attribute("host.name") ?? ""
        } catch .system(let text, let code) {
            throw .system(call: text, path: "\(path)", errno: code)
        } catch {}
        return origin
    }

    /// FORMAT §11.5: the start of every age file.
    private static func isAge(_ path: FilePath) throws(UploadError) -> Bool {
        let start: StaticString = "age-encryption.org/"
        let wanted = start.utf8CodeUnitCount
        let file = try FileDescriptor(path: path, flags: [.read, .nonBlocking])
        defer { _ = file.number }
        var bytes = [UInt8](repeating: 0, count: wanted)
        let got = Files.readOnce(file.number, into: &bytes, wanted, at: 0)
        guard got >= 0 else { throw .system(call: "read", path: "\(path)", errno: Errno.last) }
        return got == wanted && start.withUTF8Buffer { unsafe bytes.elementsEqual($0) }
    }
}
