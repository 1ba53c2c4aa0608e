// The options that all reading verbs share: which records, of which stores, in which form. Turns
// the arguments into a reader's options; a bad value ends the command as usage.

import ArgumentParser
import Cordwood
import Glibc

struct Selection: ParsableArguments {
    @Option(help: "From this time on: RFC 3339, a date, or how long ago (10m, 2h, 3d).")
    var since: String?

    @Option(help: "Before this time.")
    var until: String?

    @Option(help: "This level and above: a name (warn), a number 1 to 24, or INFO+2.")
    var level: String?

    @Option(help: "This logger and those below it: app.db covers app.db.pool, not app.dbx.")
    var logger: String?

    @Option(
        name: .customLong("where"), parsing: .singleValue,
        help: "Only records with a field of this value, KEY=VALUE. May be repeated; all must hold.")
    var conditions: [String] = []

    @Flag(help: "JSON, one object a line.")
    var json = false

    @Flag(help: "Times in UTC, also those given without an offset.")
    var utc = false

    @OptionGroup var keys: IdentityOption

    /// True if some records are left out.
    var isNarrowed: Bool {
        since != nil || until != nil || level != nil || logger != nil || !conditions.isEmpty
    }

    func readerOptions() throws(Failure) -> ReaderOptions {
        var options = ReaderOptions()
        options.identities = try keys.identities()
        let now = TimeArgument.now()
        options.since = try time(since, "--since", now)
        options.until = try time(until, "--until", now)
        if let level { options.level = try Selection.level(level) }
        options.logger = logger ?? ""
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
                        + "look for a field '\(parts[0])'. For other questions use --json and jq")
            }
            options.conditions.append((key: String(parts[0]), value: String(parts[1])))
        }
        return options
    }

    private func time(_ text: String?, _ name: String, _ now: UInt64) throws(Failure) -> UInt64 {
        guard let text else { return 0 }
        guard let time = TimeArgument.parse(text, nowNs: now, utc: utc) else {
            throw Failure(.usage, "\(name) takes RFC 3339 or 10m, 2h, 3d; not \(text)")
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
    @Flag(
        help: """
            Text as it was logged. Else further lines of a message begin with `    | `, and \
            control characters and the like are escaped: no message draws on a terminal or passes \
            for another record. JSON is exact anyway.
            """)
    var rawControl = false
}

/// The keys of encrypted archives. A path and never a key: everybody can see arguments.
struct IdentityOption: ParsableArguments {
    @Option(
        name: .customLong("identity"), parsing: .singleValue,
        help: ArgumentHelp(
            "A file of age identities that opens encrypted archives. May be repeated. Default: "
                + "CORDWOOD_IDENTITY.", valueName: "file"), completion: .file())
    var paths: [String] = []

    func identities() throws(Failure) -> [AgeIdentity] {
        var names = paths
        // SAFETY: the command never changes its environment; the text is copied.
        if names.isEmpty, let named = unsafe getenv("CORDWOOD_IDENTITY"),
            unsafe named.pointee != 0
        {
            names = unsafe [String(cString: named)]
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
        help: "Store directories or single files (.cwa, .seg, .sealed). Default: CORDWOOD_DIR.",
        completion: .file())
    var paths: [String] = []

    func resolved() throws(Failure) -> [String] { try Sources.resolved(paths) }

    static func resolved(_ paths: [String]) throws(Failure) -> [String] {
        if !paths.isEmpty { return paths }
        // SAFETY: the command never changes its environment; the text is copied.
        if let directory = unsafe getenv("CORDWOOD_DIR"), unsafe directory.pointee != 0 {
            return unsafe [String(cString: directory)]
        }
        throw Failure(.usage, "no store: give a directory or set CORDWOOD_DIR")
    }
}
