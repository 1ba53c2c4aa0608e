// The last record of a crashing process: turns the findings of crash.c into a record of each logger
// that asked for one. Runs inside a signal handler on a stack of its own, at any instruction of the
// host or of the engine. It takes no lock, allocates no memory and never waits. A fault in here
// leads back to crash.c, and the append counts as abandoned.
// SAFETY: the report lies in the crash's own memory and stays valid for the call; logger blocks are
// never unmapped.

import CCordwood
import CShims

package enum CrashRecord {
    /// The logger that reports crashes.
    package static let loggerName = "Cordwood.Crash"

    /// Installs the process's handler and makes it write to that logger, too. Returns a status.
    package static func install(_ logger: LoggerBlock) -> Int32 {
        let error = unsafe cwi_crash_install(logger) { logger, report in
            guard let logger = unsafe logger, let report = unsafe report else { return }
            unsafe CrashRecord.write(logger, report.pointee)
        }
        // Besides memory, only the table's places for engines can run out.
        return error == 0 ? Status.ok : error == Errno.ENOSPC ? Status.limit : Status.memory
    }

    private static func write(_ logger: LoggerBlock, _ report: cwi_crash_report) {
        let level = UInt8(CW_LEVEL_FATAL)
        guard unsafe AppendSlow.refusal(logger, UInt32(level)) == Status.ok,
            let engine = unsafe logger.pointee.engine
        else { return }
        var body = RichBody()
        unsafe body.message = UnsafeRawBufferPointer(
            start: report.message, count: report.message_length)
        unsafe body.encodedFields = UnsafeRawBufferPointer(
            start: report.fields, count: report.fields_length)
        unsafe body.exceptionType = UnsafeRawBufferPointer(
            start: report.type, count: report.type_length)
        unsafe body.exceptionMessage = UnsafeRawBufferPointer(
            start: report.reason, count: report.reason_length)
        unsafe body.exceptionStacktrace = UnsafeRawBufferPointer(
            start: report.stack, count: report.stack_length)
        // No echo, which takes locks, and no wait for room: straight to the append.
        let identifier = unsafe logger.pointee.id
        var status = unsafe AppendSlow.append(engine, identifier: identifier, level, body)
        if status == Status.full {
            // A nearly full disk may still have room for the shorter record.
            unsafe body.exceptionStacktrace = UnsafeRawBufferPointer(start: nil, count: 0)
            status = unsafe AppendSlow.append(engine, identifier: identifier, level, body)
        }
        if status == Status.full { unsafe AppendSlow.countRefused(engine) }
    }
}
