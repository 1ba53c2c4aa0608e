// Where an archive comes from, for names that say so (S3 keys): the process of its first record and
// the time of its newest one. The same on every attempt and on every machine, for a key that
// changed would be a second object: so what an encrypted archive says only to who has a key does
// not count where it is sent without one. A value.

import CordwoodCore
import CordwoodStore
import Glibc

struct ArchiveOrigin: Equatable, Sendable {
    /// Of the newest record; 0: not known.
    var timeUnixMs: UInt64 = 0
    /// service.name, else the name of the process; empty: not known.
    var service = ""
    /// host.name; empty: not known.
    var host = ""
    /// Service and host are known to who has a key.
    var isEncrypted = false

    /// - Throws: what may be over at the next attempt. Damage lasts, so it means not known.
    static func read(
        _ path: String, timeUnixMs: UInt64, _ openRecords: OpenRecords
    ) throws(UploadError) -> ArchiveOrigin {
        var origin = ArchiveOrigin(timeUnixMs: timeUnixMs)
        origin.isEncrypted = try isAge(path)
        do throws(ReadProblem) {
            guard let process = try openRecords(path).process else { return origin }
            func attribute(_ name: String) -> String? {
                process.resource.first { $0.key == name && !$0.value.isEmpty }?.value
            }
            origin.service = attribute("service.name") ?? process.name
            origin.host = attribute("host.name") ?? ""
        } catch .system(let text, let code) {
            throw .system(call: text, path: path, errno: code)
        } catch {}
        return origin
    }

    /// FORMAT §11.5: how every age file begins.
    private static func isAge(_ path: String) throws(UploadError) -> Bool {
        let start: StaticString = "age-encryption.org/"
        let wanted = start.utf8CodeUnitCount
        let file = try FileDescriptor(path: path, flags: O_RDONLY | O_NONBLOCK)
        defer { _ = file.number }
        var bytes = [UInt8](repeating: 0, count: wanted)
        var got: Int
        repeat {
            got = unsafe pread(file.number, &bytes, wanted, 0)
        } while got < 0 && errno == EINTR
        guard got >= 0 else { throw .system(call: "read", path: path, errno: errno) }
        return got == wanted && start.withUTF8Buffer { unsafe bytes.elementsEqual($0) }
    }
}
