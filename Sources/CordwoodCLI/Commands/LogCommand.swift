// `cordwood log`: turns lines of files or of standard input into records, one each, byte for byte.
// SAFETY: a line's bytes hold until the next one is asked for, and the logger copies them.

import ArgumentParser
import Cordwood

struct LogCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "log",
        abstract: "Write lines to a store, one record a line.",
        usage: "cordwood log [--store DIR] --logger NAME [options] [FILE ...]",
        discussion: """
            Reads the files in turn, or standard input, to the end, and prints nothing; to see the \
            lines as well, put tee in front. A record has the time at which its line was read; \
            lines that came by one read(2) have the same. log does not look for levels or times in \
            the lines. It keeps every byte, including NUL, CR and invalid UTF-8: `cordwood export \
            --format raw` gives the input back. Lines over 60 MiB are cut.

            A line survives kill -9 as soon as log has read it. On a full disk, log stops with \
            exit code 5 and names the first line that was not kept. Lines below a level that \
            `cordwood level` or a policy sets for the store are left out, and counted on stderr at \
            the end; that is no failure. Several programs may write to one store. log deletes \
            archives only if one of the limits below or the store's policy (cordwood policy) says \
            so, the oldest first.

            Example:
              my-program 2>&1 | cordwood log --store logs --logger my.program
            """)

    @Option(help: "The store's directory. Made where it does not exist. Default: CORDWOOD_DIR.")
    var store: String?

    @Option(help: "A name for these records, such as app.db; --logger of other verbs selects it.")
    var logger: String

    @Option(help: "Level of all records: trace debug info notice warn error fatal, or 1 to 24.")
    var level = "info"

    @Option(help: "Delete archives whose records are all older than this many days.")
    var expirationDays: UInt32?

    @Option(help: "Delete archives while the store is larger than this many bytes.")
    var quotaBytes: UInt64?

    @OptionGroup var encryption: EncryptionOption

    @Argument(help: "Files; none or `-`: standard input.", completion: .file())
    var files: [String] = []

    /// Longer lines are cut and marked as cut. A segment has room for a record of this size.
    private static let lineBytesMax = 60 << 20
    private static let segmentBytes: UInt64 = 64 << 20

    func run() throws {
        let number = try Selection.level(level)
        guard let recordLevel = Level(number: number) else { throw Failure(.usage, "no level") }
        try requireFiles()
        _ = try encryption.recipients()
        let store = try Sources.resolved(self.store.map { [$0] } ?? [], makes: true)[0]
        // The store's owner may have fewer rights.
        try requireFiles()
        var options = EngineOptions()
        options.level = .trace
        setLimits(&options, of: store)
        options.segmentBytes = LogCommand.segmentBytes
        options.holdsTime = true
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
            for path in files.isEmpty ? ["-"] : files { try read(path, engine, &writer) }
        }
        do throws(CordwoodError) {
            try engine.close(timeout: nil)
        } catch {
            throw Failure(.failed, error.text)
        }
        if writer.disabledCount > 0 {
            Complaint.tell(
                Counted.text(writer.disabledCount, "line")
                    + (writer.disabledCount == 1 ? " was" : " were")
                    + " left out: \(level) is below the level of \(logger) in this store "
                    + "(cordwood level shows those that are set)")
        }
        try result.get()
        if writer.cutCount > 0 {
            let limit = LogCommand.lineBytesMax
            throw Failure(
                .failed,
                Counted.text(writer.cutCount, "line")
                    + (writer.cutCount == 1 ? " was" : " were") + " cut after \(limit) bytes")
        }
    }

    private func requireFiles() throws(Failure) {
        for path in files where path != "-" && !Files.isReadable(FilePath(path)) {
            throw Failure(.cannotOpen, "\(path): \(Errno.text(Errno.last))")
        }
    }

    /// Other programs of the store may keep more than a program with default options would.
    private func setLimits(_ options: inout EngineOptions, of store: String) {
        let own = RetentionLimits(
            quotaBytes: quotaBytes ?? 0, archivesMax: 0, expirationDays: expirationDays ?? 0)
        let kept = try? StoreSettings.policy(directory: store)
        let policy = kept?.binding(over: own)
        options.quotaBytes = quotaBytes ?? policy?.quotaBytes ?? 0
        options.archivesMax = policy?.filesMax ?? 0
        options.expirationDays = expirationDays ?? policy?.expirationDays ?? 0
    }

    /// While it waits for input, the engine's own records have the time of the clock.
    private func read(
        _ path: String, _ engine: Engine, _ writer: inout LineWriter
    ) throws(Failure) {
        let descriptor = path == "-" ? 0 : Files.openFollowing(FilePath(path), .read)
        guard descriptor >= 0 else {
            throw Failure(.cannotOpen, "\(path): \(Errno.text(Errno.last))")
        }
        defer { if descriptor > 0 { FileCalls.close(descriptor) } }
        var lines = LineReader(
            descriptor: descriptor, limit: LogCommand.lineBytesMax,
            reading: { $0 ? engine.letTimeGo() : engine.holdTime() })
        defer { engine.letTimeGo() }
        do throws(ReadFailure) {
            while let line = try lines.next() {
                guard writer.write(line) else { break }
            }
        } catch {
            let name = path == "-" ? "standard input" : path
            throw Failure(.failed, "\(name): \(Errno.text(error.errno))")
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
    /// Lines below the level that the store sets, now or for a while.
    private(set) var disabledCount: UInt64 = 0
    private(set) var refusal: String?

    init(log: Logger, level: Level) {
        self.log = log
        self.level = level
    }

    /// False if the record could not be kept.
    mutating func write(_ line: LineReader.Line) -> Bool {
        count += 1
        let status: Int32
        switch line {
        case .whole(let bytes): status = unsafe log.write(level, bytes: bytes)
        case .unended(let bytes):
            status = unsafe log.write(level, bytes: bytes, fields: [(Raw.noNewline, .bool(true))])
        case .cut(let bytes, let length):
            status = unsafe log.write(
                level, bytes: bytes, fields: [("cordwood.line_bytes", .uint(UInt64(length)))])
        }
        if status == 0 {
            if case .cut = line { cutCount += 1 }
            return true
        }
        // The level was set on purpose, and without a reader the pipe's writer would die.
        if status > 0 {
            disabledCount += 1
            return true
        }
        refusal = "line \(count) was not kept: \(statusText(status))"
        return false
    }
}
