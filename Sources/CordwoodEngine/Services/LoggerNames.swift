// An engine's loggers, their levels, and its resource attributes: the names of the lane's catalog.
// Any thread of the host, under the services' monitor; a forked child finds its parent's names.
// SAFETY: logger blocks lie in the engine's own memory and are never unmapped.

import CordwoodCore

extension Services {
    /// In a child, finds the parent's handles; their names lie in the engine's own memory.
    func restoreNames() {
        let names = unsafe EngineCore.loggerNames(engine)
        for (index, name) in names { unsafe self.names[name] = engine.pointee.loggers + index }
    }

    package func logger(_ name: String) throws(CordwoodError) -> LoggerBlock {
        guard name.utf8.count <= 255 else {
            throw CordwoodError(Status.limit, "a logger's name has over 255 bytes")
        }
        let result: LoggerBlock? = unsafe monitor.locked {
            if let known = unsafe names[name] { return unsafe known }
            let enabled = 256 - UInt32(levels.threshold(name))
            var name = name
            let made = name.withUTF8 {
                unsafe EngineCore.addLogger(
                    engine, name: UnsafeRawBufferPointer($0), enabled: enabled)
            }
            if let made = unsafe made { unsafe names[name] = made }
            return unsafe made
        }
        guard let result = unsafe result else {
            throw CordwoodError(Status.limit, "no room for logger \(name): 65,536 loggers at most")
        }
        return unsafe result
    }

    func setLevel(prefix: String, level: UInt8) throws(CordwoodError) {
        guard changeLevels({ $0.setting(prefix, level) }) else {
            throw CordwoodError(Status.limit, "over 4,096 level prefixes")
        }
    }

    /// False: the change yields no table, and nothing was changed.
    func changeLevels(_ change: (LevelTable) -> LevelTable?) -> Bool {
        monitor.locked {
            guard let changed = change(levels) else { return false }
            levels = changed
            unsafe names.forEach { name, logger in
                unsafe EngineCore.setEnabled(logger, 256 - UInt32(levels.threshold(name)))
            }
            return true
        }
    }

    func setResource(_ key: String, _ value: String) throws(CordwoodError) {
        guard !key.isEmpty else {
            throw CordwoodError(Status.argument, "the resource key is empty")
        }
        guard key.utf8.count <= 255, value.utf8.count <= 4096 else {
            throw CordwoodError(
                Status.limit, "resource \(key.prefix(64)): key or value is too long")
        }
        var payload: [UInt8] = []
        var keyBytes = 0
        for text in [key, value] {
            keyBytes = payload.count
            var count = text.utf8.count
            while count >= 128 {
                payload.append(UInt8(count & 127) | 128)
                count >>= 7
            }
            payload.append(UInt8(count))
            payload += Array(text.utf8)
        }
        let status = monitor.locked {
            unsafe payload.withUnsafeBytes { unsafe Resource.set(engine, $0, keyBytes: keyBytes) }
        }
        guard status != Status.limit else {
            throw CordwoodError(
                status,
                "resource \(key): over 64 KiB of attributes, or changed too often; values that "
                    + "change with each request belong in the context")
        }
        guard status == Status.ok else {
            throw CordwoodError(status, "no room in the catalog for resource \(key)")
        }
    }
}
