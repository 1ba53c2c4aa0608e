// The other jobs that end: /api/store, /api/record, /api/around and /api/command. One thread per
// job.

import Cordwood
import enum CordwoodFormats.ASCII

struct StoreJob: Sendable {
    private let options: ViewerOptions

    init(_ options: ViewerOptions) { self.options = options }

    func run(_ stream: LineStream) -> Reply? {
        let facts = options.remembersFacts ? FactsCache.find() : nil
        var asked = ReaderOptions()
        asked.identities = options.identities
        asked.facts = facts
        asked.readsAhead = true
        var out = Array("{\"version\":".utf8)
        JSONText.string(versionText, &out)
        out += ",\"stores\":[".utf8
        var problems: [String] = []
        var locked: [String] = []
        var isFirst = true
        for path in options.paths {
            do throws(ReadProblem) {
                let stats = try StoreInspector.totals(
                    path: path, options: asked, shouldStop: { stream.isOver })
                if !isFirst { out.append(0x2c) }
                isFirst = false
                StoreJob.append(path, stats, &out)
                problems += stats.problems
                locked += stats.encrypted
            } catch {
                problems.append(error.line)
            }
        }
        out += "],\"problems\":".utf8
        StoreJob.append(problems, &out)
        out += ",\"locked\":".utf8
        StoreJob.append(locked, &out)
        out += "}\n".utf8
        facts?.save()
        return .json(out)
    }

    private static func append(_ path: String, _ stats: StoreStats, _ out: inout [UInt8]) {
        out += "{\"path\":".utf8
        JSONText.string(path, &out)
        let live = stats.lanes.count { $0.state == .live }
        out += ",\"records\":\(stats.records),\"archives\":\(stats.archives)".utf8
        out += ",\"archive_bytes\":\(stats.archiveBytes),\"lanes\":\(stats.lanes.count)".utf8
        out += ",\"lanes_live\":\(live),\"first_ns\":\"\(stats.timeMin)\"".utf8
        out += ",\"last_ns\":\"\(stats.timeMax)\"}".utf8
    }

    static func append(_ texts: [String], _ out: inout [UInt8]) {
        out.append(0x5b)
        for (index, text) in texts.enumerated() {
            if index > 0 { out.append(0x2c) }
            JSONText.string(text, &out)
        }
        out.append(0x5d)
    }
}

struct RecordJob: Sendable {
    private let options: ViewerOptions
    private let key: RecordKey

    init(_ options: ViewerOptions, _ key: RecordKey) {
        self.options = options
        self.key = key
    }

    func run(_ stream: LineStream) -> Reply? {
        let facts = options.remembersFacts ? FactsCache.find() : nil
        do throws(Rejection) {
            let (record, look) = try Look.find(key, options, facts, stream)
            var out: [UInt8] = []
            withExtendedLifetime(look) { RowJSON().appendWhole(record, to: &out) }
            out.append(0x0a)
            return .json(out)
        } catch {
            return error.reply
        }
    }
}

/// Records before and after one of them, in order.
struct AroundJob: Sendable {
    static let scopes = ["all", "thread", "process", "trace"]

    private let options: ViewerOptions
    private let key: RecordKey
    private let scope: String
    private let count: Int

    init(
        _ options: ViewerOptions, _ key: RecordKey, _ parameters: URLParameters
    ) throws(Rejection) {
        self.options = options
        self.key = key
        scope = try parameters.word("scope", AroundJob.scopes)
        count = try parameters.number("n", 0...QueryRequest.limitMax / 2, unset: 50)
    }

    func run(_ stream: LineStream) -> Reply? {
        let began = Machine.realtimeNs()
        let facts = options.remembersFacts ? FactsCache.find() : nil
        do throws(Rejection) {
            var asked = ReaderOptions()
            asked.identities = options.identities
            asked.facts = facts
            asked.isPage = true
            asked.window = RecordWindow(
                around: key.id, timeNs: key.timeNs, before: count, after: count)
            switch scope {
            case "thread": asked.origin.beside = .thread(of: key.id)
            case "process": asked.origin.beside = .process(of: key.id)
            case "trace": asked.origin.traceDigits = try traceDigits(facts, stream)
            default: break
            }
            let look = try Look(options, asked, stream)
            let row = RowJSON()
            var out: [UInt8] = []
            var rows = 0
            var record = RecordRef()
            while look.next(&record) {
                rows += 1
                row.appendLine(record, isSelf: record.id == key.id, to: &out)
                if out.count >= LineStream.bytesMax / 4, !stream.send(&out) { return nil }
            }
            if look.reader.isMissing { throw Rejection(.notFound, "no record has this key") }
            let isExact = look.problemCount == 0
            var told: Set<String> = []
            look.appendProblems(told: &told, to: &out)
            let ms = (Machine.realtimeNs() &- began) / 1_000_000
            out += "{\"done\":{\"matched\":\(rows),\"exact\":\(isExact),\"ms\":\(ms)".utf8
            out += ",\"next\":null}}\n".utf8
            _ = stream.send(&out)
            return nil
        } catch {
            return error.reply
        }
    }

    private func traceDigits(
        _ facts: FactsCache?, _ stream: LineStream
    ) throws(Rejection) -> [UInt8] {
        let (record, look) = try Look.find(key, options, facts, stream)
        let id = withExtendedLifetime(look) { Record(record).traceID ?? "" }
        guard !id.isEmpty else { throw Rejection("the record belongs to no trace") }
        return id.utf8.map { ASCII.hex($0) }
    }
}

/// The command line that shows the same.
enum CommandText {
    private static let verbs = ["cat", "http", "transactions"]

    /// `{"text":…}` and a newline.
    static func text(
        _ options: ViewerOptions, _ selected: Selected, _ parameters: URLParameters
    ) throws(Rejection) -> [UInt8] {
        let verb = try parameters.word("verb", verbs)
        var words = ["cordwood", verb]
        if verb == "http" {
            words.append("list")
            let only = try parameters.word("only", ExchangesRequest.Only.words)
            if only == "failed" { words.append("--failed") }
            if only == "slow" {
                words += ["--slow", String(ExchangesRequest.slowNs / 1_000_000)]
            }
        }
        words += options.paths.map { word($0.hasPrefix("-") ? "./" + $0 : $0) }
        for (name, option) in [("q", "-q"), ("since", "--since"), ("until", "--until")] {
            if let value = parameters[name] { words += [option, word(value)] }
        }
        var out = Array("{\"text\":".utf8)
        JSONText.string(words.joined(separator: " "), &out)
        out += "}\n".utf8
        return out
    }

    /// Without quotes if none are needed.
    private static func word(_ text: String) -> String {
        let isPlain = text.utf8.allSatisfy {
            ASCII.isWordByte($0) || "-./:,@%+".utf8.contains($0)
        }
        return isPlain && !text.isEmpty ? text : ShellWord.quoted(Array(text.utf8))
    }
}
