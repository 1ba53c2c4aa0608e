// `cordwood log`: turns lines of files or of standard input into records, one each, byte for byte.
// SAFETY: a line's bytes hold until the next one is asked for, and the logger copies them.

import ArgumentParser
import Cordwood
import Glibc

struct LogCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "log",
        abstract: "Write lines to a store, one record a line.",
        discussion: """
            Reads the files in turn, or standard input. Keeps every byte of a line, including NUL, \
            CR and invalid UTF-8. `cordwood export --format raw` gives the input back.

            Example:
              my-program 2>&1 | cordwood log --store logs --logger my.program --level info
            """)

    @Option(help: "The store's directory. Made where it does not exist.")
    var store: String

    @Option(help: "Dotted name the records are logged under.")
    var logger: String

    @Option(help: "Their level: trace debug info notice warn error fatal, or 1 to 24.")
    var level = "info"

    @OptionGroup var encryption: EncryptionOption

    @Argument(help: "Files; none or `-`: standard input.", completion: .file())
    var files: [String] = []

    /// Longer lines are cut and marked as cut. A segment has room for a record of this size.
    private static let lineBytesMax = 60 << 20
    private static let segmentBytes: UInt64 = 64 << 20

    func run() throws {
        let number = try Selection.level(level)
        guard let recordLevel = Level(number: number) else { throw Failure(.usage, "no level") }
        for path in files where unsafe path != "-" && access(path, R_OK) != 0 {
            throw unsafe Failure(.cannotOpen, "\(path): \(String(cString: strerror(errno)))")
        }
        var options = EngineOptions()
        options.level = .trace
        options.segmentBytes = LogCommand.segmentBytes
        _ = try encryption.recipients()
        options.encryptTo = encryption.text
        let engine: Engine
        let log: Logger
        do throws(CordwoodError) {
            engine = try Engine(directory: store, options: options)
            log = try engine.findLogger(logger)
        } catch {
            throw Failure(.cannotOpen, error.text)
        }
        var writer = LineWriter(log: log, level: recordLevel)
        let result = Result { () throws(Failure) in
            for path in files.isEmpty ? ["-"] : files { try read(path, &writer) }
        }
        do throws(CordwoodError) {
            try engine.close(timeout: nil)
        } catch {
            throw Failure(.failed, error.text)
        }
        try result.get()
        if writer.cutCount > 0 {
            let limit = LogCommand.lineBytesMax
            throw Failure(.failed, "\(writer.cutCount) lines were cut after \(limit) bytes")
        }
    }

    private func read(_ path: String, _ writer: inout LineWriter) throws(Failure) {
        let descriptor = unsafe path == "-" ? 0 : open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            throw unsafe Failure(.cannotOpen, "\(path): \(String(cString: strerror(errno)))")
        }
        defer { if descriptor > 0 { close(descriptor) } }
        var lines = LineReader(descriptor: descriptor, limit: LogCommand.lineBytesMax)
        do throws(ReadFailure) {
            while let line = try lines.next() {
                guard writer.write(line) else { break }
            }
        } catch {
            let name = path == "-" ? "standard input" : path
            throw unsafe Failure(.failed, "\(name): \(String(cString: strerror(error.errno)))")
        }
        if let refusal = writer.refusal { throw Failure(.failed, refusal) }
    }
}

/// Writes lines as records. Stops at the first record that was not kept.
private struct LineWriter {
    let log: Logger
    let level: Level
    private var count: UInt64 = 0
    private(set) var cutCount = 0
    private(set) var refusal: String?

    init(log: Logger, level: Level) {
        self.log = log
        self.level = level
    }

    /// False if the record was not kept.
    mutating func write(_ line: LineReader.Line) -> Bool {
        count += 1
        let status: Int32
        switch line {
        case .whole(let bytes): status = unsafe log.write(level, bytes: bytes)
        case .unended(let bytes):
            status = unsafe log.write(level, bytes: bytes, fields: [(Raw.noNewline, .bool(true))])
        case .cut(let bytes, let length):
            cutCount += 1
            status = unsafe log.write(
                level, bytes: bytes, fields: [("cordwood.line_bytes", .uint(UInt64(length)))])
        }
        if status == 0 { return true }
        refusal = "line \(count) was not kept: \(statusText(status))"
        return false
    }
}
