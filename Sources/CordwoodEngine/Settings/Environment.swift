// Environment variables, paths and the store's directories: the parts of the system that open
// needs.
// SAFETY: the buffer is read only as far as the call reports that it filled it.

import CordwoodCore

enum Environment {
    static func value(_ name: String) -> String? { Machine.environment(name) }

    /// The program's own name, without directories.
    static func processName() -> String {
        let path = Files.target(of: "/proc/self/exe") ?? ""
        return path.split(separator: "/").last.map(String.init) ?? "unknown"
    }

    /// host.name, os.*, device.* (OpenTelemetry's names); unreadable attributes are left out.
    static func resource() -> [(String, String)] {
        var result: [(String, String)] = []
        if let words = Machine.words() {
            result.append(("host.name", words.host))
            result.append(("os.type", words.system.lowercased()))
            result.append(("os.version", words.release))
            result.append(("host.arch", words.kind))
        }
        if let maker = firstLine("/sys/class/dmi/id/sys_vendor") {
            result.append(("device.manufacturer", maker))
        }
        if let model = firstLine("/sys/class/dmi/id/product_name") {
            result.append(("device.model.identifier", model))
        }
        return result.filter { !$0.1.isEmpty }
    }

    private static func firstLine(_ path: String) -> String? {
        let descriptor = Files.openKept(FilePath(path), .read)
        guard descriptor >= 0 else { return nil }
        defer { FileCalls.close(descriptor) }
        return unsafe withUnsafeTemporaryAllocation(byteCount: 256, alignment: 1) { buffer in
            let count = unsafe Files.readNext(descriptor, into: buffer)
            guard count > 0 else { return nil }
            let line = unsafe buffer.prefix(count).prefix { $0 != 10 }
            return unsafe line.isEmpty ? nil : String(decoding: line, as: UTF8.self)
        }
    }
}
