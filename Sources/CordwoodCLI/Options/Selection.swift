// The options that all reading verbs share: which records, of which stores, in which form. Turns
// the arguments into a reader's options; a bad value ends the command as usage.

import ArgumentParser
import Cordwood

extension TimeArgument {
    static func now() -> UInt64 { Machine.realtimeNs() }
}

struct Selection: ParsableArguments {
    // Unconditional: `-10m` is a time, too.
    @Option(
        parsing: .unconditional,
        help: """
            From this time on: 1h30m (ago), 'today 14:30', yesterday, 2026-11-21, \
            2026-11-21T08:15Z, @1763800000.
            """)
    var since: String?

    @Option(parsing: .unconditional, help: "Before this time, in the same forms.")
    var until: String?

    @Option(help: "This level and above: warn, or 1 to 24 (INFO+2 is 11).")
    var level: String?

    @Option(help: "This logger and all below it: app.db, app.db.pool.")
    var logger: String?

    @Option(
        name: .customLong("where"), parsing: .singleValue,
        help: ArgumentHelp(
            "Only records whose field KEY has this value. If repeated, all must match.",
            valueName: "key=value"))
    var conditions: [String] = []

    @OptionGroup var origin: OriginOption

    @Option(
        name: [.customShort("q"), .customLong("query")], parsing: .unconditionalSingleValue,
        help: ArgumentHelp(
            "A query: 'level>=warn order=7'; cordwood help query.", valueName: "query"))
    var queries: [String] = []

    @Flag(help: "Print JSON, one object a line, with times in UTC.")
    var json = false

    @Flag(help: "Times in UTC, not local; also in --since and --until.")
    var utc = false

    @OptionGroup var keys: IdentityOption

    /// True if some records are left out.
    var isNarrowed: Bool {
        since != nil || until != nil || level != nil || logger != nil || !conditions.isEmpty
            || origin.isSet || !queries.isEmpty
    }

    func readerOptions() throws(Failure) -> ReaderOptions {
        var options = ReaderOptions()
        options.identities = try keys.identities()
        let now = TimeArgument.now()
        options.since = try time(since, "--since", now)
        options.until = try time(until, "--until", now)
        if let level { options.level = try Selection.level(level) }
        options.logger = logger ?? ""
        options.origin = try origin.filter()
        for condition in conditions {
            let parts = condition.split(
                separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2, !parts[0].isEmpty else {
                throw Failure(.usage, "--where takes KEY=VALUE, not \(condition)")
            }
            if let sign = parts[0].last, "!<>~".contains(sign) {
                throw Failure(
                    .usage,
                    "--where asks whether a field is equal, as in KEY=VALUE; '\(condition)' would "
                        + "look for a field '\(parts[0])'. For other queries use "
                        + "-q '\(condition)'")
            }
            options.conditions.append((key: String(parts[0]), value: String(parts[1])))
        }
        for text in queries { options.require(try Selection.query(text, now, utc)) }
        return options
    }

    private static func query(
        _ text: String, _ now: UInt64, _ utc: Bool
    ) throws(Failure) -> Query {
        do throws(QueryError) {
            return try Query(text, nowNs: now, utc: utc)
        } catch {
            throw Failure(.usage, "-q: \(error); cordwood help query shows how to ask")
        }
    }

    private func time(_ text: String?, _ name: String, _ now: UInt64) throws(Failure) -> UInt64 {
        guard let text else { return 0 }
        guard let time = TimeArgument.parse(text, nowNs: now, utc: utc) else {
            throw Failure(.usage, "\(name) takes \(TimeArgument.forms); not \(text)")
        }
        return max(time, 1)
    }

    static func level(_ text: String) throws(Failure) -> UInt8 {
        guard let level = Level(text) else {
            throw Failure(.usage, "no level: \(text) (trace debug info notice warn error fatal)")
        }
        return level.number
    }
}

/// The form of text lines.
struct TextOption: ParsableArguments {
    @Flag(help: "Show host, service and record id in each line.")
    var origin = false

    @Flag(help: "Keep control characters; they may draw on the screen.")
    var rawControl = false
}

/// The keys of encrypted archives. A path and never a key: all users can see arguments.
struct IdentityOption: ParsableArguments {
    @Option(
        name: .customLong("identity"), parsing: .singleValue,
        help: ArgumentHelp(
            "Key file for encrypted archives (cordwood keygen). May be repeated. Default: "
                + "CORDWOOD_IDENTITY.", valueName: "file"),
        completion: .file())
    var paths: [String] = []

    func identities() throws(Failure) -> [AgeIdentity] {
        var names = paths
        if names.isEmpty, let named = Machine.environment("CORDWOOD_IDENTITY"), !named.isEmpty {
            names = [named]
        }
        var found: [AgeIdentity] = []
        for path in names {
            do throws(CordwoodError) {
                found += try AgeKeys.identities(path, option: "--identity")
            } catch {
                throw Failure(.cannotOpen, error.text)
            }
        }
        return found
    }
}

struct Sources: ParsableArguments {
    @Argument(
        help: "Stores, or single files of one (.cwa, .seg, .sealed). Default: CORDWOOD_DIR.",
        completion: .file())
    var paths: [String] = []

    func resolved() throws(Failure) -> [String] { try Sources.resolved(paths) }

    /// Acts as the owner of the stores from then on (`StoreUser`).
    static func resolved(_ paths: [String], makes: Bool = false) throws(Failure) -> [String] {
        let named = paths.isEmpty ? environmentStore.map { [$0] } ?? [] : paths
        guard !named.isEmpty else {
            throw Failure(.usage, "no store: give a directory or set CORDWOOD_DIR")
        }
        try StoreUser.become(ownerOf: named, makes: makes)
        return named
    }

    static var environmentStore: String? {
        Machine.environment("CORDWOOD_DIR").flatMap { $0.isEmpty ? nil : $0 }
    }
}
