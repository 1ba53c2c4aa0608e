// Environment variables, paths and the store's directories: the parts of the system that open
// needs.
// SAFETY: results of the C library are copied before the next call; buffers lie on the stack and
// are read only as far as the call reports that it filled them.

import CShims
import Glibc

enum Environment {
    static func value(_ name: String) -> String? {
        unsafe getenv(name).map { unsafe String(cString: $0) }
    }

    /// The program's own name, without directories.
    static func processName() -> String {
        unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 4096) { buffer in
            let count = unsafe readlink("/proc/self/exe", buffer.baseAddress!, 4095)
            guard count > 0 else { return "unknown" }
            unsafe buffer[count] = 0
            let path = unsafe String(cString: buffer.baseAddress!)
            return path.split(separator: "/").last.map(String.init) ?? "unknown"
        }
    }

    /// host.name, os.*, device.* (OpenTelemetry's names); unreadable attributes are left out.
    static func resource() -> [(String, String)] {
        var result: [(String, String)] = []
        var names = utsname()
        if unsafe uname(&names) == 0 {
            result.append(("host.name", text(&names.nodename)))
            result.append(("os.type", text(&names.sysname).lowercased()))
            result.append(("os.version", text(&names.release)))
            result.append(("host.arch", text(&names.machine)))
        }
        if let maker = firstLine("/sys/class/dmi/id/sys_vendor") {
            result.append(("device.manufacturer", maker))
        }
        if let model = firstLine("/sys/class/dmi/id/product_name") {
            result.append(("device.model.identifier", model))
        }
        return result.filter { !$0.1.isEmpty }
    }

    private static func text<T>(_ field: inout T) -> String {
        unsafe withUnsafeBytes(of: &field) { bytes in
            unsafe String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
        }
    }

    private static func firstLine(_ path: String) -> String? {
        let descriptor = unsafe cw_open_file(path, O_RDONLY, 0)
        guard descriptor >= 0 else { return nil }
        defer { Glibc.close(descriptor) }
        return unsafe withUnsafeTemporaryAllocation(byteCount: 256, alignment: 1) { buffer in
            let count = unsafe read(descriptor, buffer.baseAddress, 256)
            guard count > 0 else { return nil }
            let line = unsafe buffer.prefix(count).prefix { $0 != 10 }
            return unsafe line.isEmpty ? nil : String(decoding: line, as: UTF8.self)
        }
    }
}
