// /api/queue: waiting archives per target, with reason and expiry, in pages, and totals. One thread
// per job.

import Cordwood
import struct CordwoodFormats.JSONMembers

struct QueueJob: Sendable {
    static let limitMax = 1_000
    private static let dayNs: UInt64 = 86_400_000_000_000

    private let options: ViewerOptions
    private let state: String?
    private let target: String?
    /// Store, archive and target of the pair after which the page begins.
    private let from: [String]?
    private let limit: Int

    init(_ options: ViewerOptions, _ parameters: URLParameters) throws(Rejection) {
        self.options = options
        state = parameters["state"]
        target = parameters["target"]
        limit = try parameters.number("limit", 1...QueueJob.limitMax, unset: QueueJob.limitMax)
        from = parameters["from"].map {
            $0.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        }
        guard from == nil || from?.count == 3 else { throw Rejection("from takes what next was") }
    }

    /// The version of a pair's state: a change applies to the state that a user saw.
    static func version(_ entry: QueueEntry) -> String {
        Version.of("\(entry.archive)\n\(entry.target)\n\(entry.state)")
    }

    private struct Pair {
        var path: String
        var entry: QueueEntry
        /// UTC ns; nil: as long as the programs keep it.
        var keptUntilNs: UInt64?

        var name: [String] { [path, entry.archive, entry.target] }

        func append(to out: inout [UInt8]) {
            entry.appendJSON(to: &out) { members, out in
                members.name("store", &out)
                JSONText.string(path, &out)
                members.word("version", &out) { $0 += QueueJob.version(entry).utf8 }
                if entry.writtenNs > 0 {
                    members.word("last_ns", &out) { Digits.append(entry.writtenNs, to: &$0) }
                }
                guard let keptUntilNs else { return }
                members.word("kept_until_ns", &out) { Digits.append(keptUntilNs, to: &$0) }
            }
        }
    }

    func run(_ stream: LineStream) -> Reply? {
        var out = Array("{\"stores\":[".utf8)
        var problems: [String] = []
        var pairs: [Pair] = []
        var isFirst = true
        for path in ChangeableStore.paths(options) where !stream.isOver {
            do throws(CordwoodError) {
                let entries = try StoreSettings.queue(directory: path)
                let targets = try StoreSettings.targets(directory: path)
                let days = try StoreSettings.policy(directory: path)?
                    .binding()?.expirationDays
                if !isFirst { out.append(0x2c) }
                isFirst = false
                append(path, targets, entries, to: &out)
                for entry in entries {
                    if let state, entry.state.word != state { continue }
                    if let target, entry.target != target { continue }
                    let keptUntilNs = days.map { entry.writtenNs &+ UInt64($0) &* QueueJob.dayNs }
                    pairs.append(Pair(path: path, entry: entry, keptUntilNs: keptUntilNs))
                }
            } catch {
                problems.append("\(path): \(error.text)")
            }
        }
        var start = 0
        if let from {
            guard let found = pairs.firstIndex(where: { $0.name == from }) else {
                return Rejection(
                    .conflict, "the queue has changed meanwhile; begin at its first page"
                ).reply
            }
            start = found + 1
        }
        let page = pairs[start...].prefix(limit)
        out += "],\"problems\":".utf8
        StoreJob.append(problems, &out)
        out += ",\"pairs\":[".utf8
        for (index, pair) in page.enumerated() {
            if index > 0 { out.append(0x2c) }
            pair.append(to: &out)
        }
        out += "],\"next\":".utf8
        if page.endIndex < pairs.count, let last = page.last {
            JSONText.string(last.name.joined(separator: "\n"), &out)
        } else {
            out += "null".utf8
        }
        out += "}\n".utf8
        return .json(out)
    }

    /// A store with its targets, each with the number of its archives and their bytes by state.
    private func append(
        _ path: String, _ targets: [RegisteredTarget], _ entries: [QueueEntry],
        to out: inout [UInt8]
    ) {
        out += "{\"path\":".utf8
        JSONText.string(path, &out)
        out += ",\"writable\":\(ChangeableStore.isWritable(path, options)),\"targets\":[".utf8
        for (index, target) in targets.enumerated() {
            if index > 0 { out.append(0x2c) }
            var members = JSONMembers(&out)
            members.name("name", &out)
            JSONText.string(target.name, &out)
            members.text("kind", target.kind, &out)
            members.text("origin", target.origin, &out)
            members.text("format", target.format, &out)
            members.text("encoding", target.encoding, &out)
            var counts: [String: (pairs: UInt64, bytes: UInt64)] = [:]
            for entry in entries where entry.target == target.name {
                counts[entry.state.word, default: (0, 0)].pairs &+= 1
                counts[entry.state.word, default: (0, 0)].bytes &+= entry.bytes
            }
            members.name("states", &out)
            var states = JSONMembers(&out)
            for (state, count) in counts.sorted(by: { $0.key < $1.key }) {
                states.name(state, &out)
                out += "[\(count.pairs),\(count.bytes)]".utf8
            }
            states.end(&out)
            members.end(&out)
        }
        out += "]}".utf8
    }
}
