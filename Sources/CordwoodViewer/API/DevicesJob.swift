// /api/devices: the sources of a store's records, by an attribute of the processes: when last seen,
// the number of records, errors and bytes, and their distribution over time. One thread per job.

import Cordwood

struct DevicesJob: Sendable {
    static let limitMax = 1_000
    static let parts = 48
    private static let orders = ["last", "name", "records", "errors", "bytes", "gaps"]

    private let options: ViewerOptions
    private let attribute: StoreDevices.Attribute
    /// Part of a name, in any case; empty: all.
    private let wanted: String
    private let order: String
    /// The name after which the page begins.
    private let from: String?
    private let limit: Int

    init(_ options: ViewerOptions, _ parameters: URLParameters) throws(Rejection) {
        self.options = options
        let names = StoreDevices.Attribute.allCases.map(\.rawValue)
        attribute = StoreDevices.Attribute(rawValue: try parameters.word("by", names)) ?? .host
        wanted = parameters["q"]?.lowercased() ?? ""
        order = try parameters.word("sort", DevicesJob.orders)
        from = parameters["from"]
        limit = try parameters.number("limit", 1...DevicesJob.limitMax, unset: DevicesJob.limitMax)
    }

    func run(_ stream: LineStream) -> Reply? {
        let facts = options.remembersFacts ? FactsCache.find() : nil
        var asked = ReaderOptions()
        asked.identities = options.identities
        asked.facts = facts
        var found = StoreDevices(by: attribute)
        var problems: [String] = []
        for path in options.paths {
            do throws(ReadProblem) {
                try found.read(path: path, options: asked) { stream.isOver }
            } catch {
                problems.append(error.line)
            }
        }
        facts?.save()
        if found.isStopped { return nil }
        let all = found.devices.values.sorted(by: isBefore)
        let matching =
            wanted.isEmpty ? all : all.filter { $0.name.lowercased().contains(wanted) }
        var start = 0
        if let from {
            guard let place = matching.firstIndex(where: { $0.name == from }) else {
                return Rejection(.conflict, "no such device; begin at the first page").reply
            }
            start = place + 1
        }
        let page = matching[start...].prefix(limit)
        let first = all.map(\.timeMin).min() ?? 0
        let range = first...max(all.map(\.timeMax).max() ?? 0, first)
        var out = Array("{\"by\":\"\(attribute.rawValue)\",\"devices\":\(all.count)".utf8)
        out += ",\"matched\":\(matching.count),\"unknown_archives\":\(found.unknown)".utf8
        out += ",\"first_ns\":\"\(range.lowerBound)\",\"last_ns\":\"\(range.upperBound)\"".utf8
        out += ",\"problems\":".utf8
        StoreJob.append(problems + found.problems.prefix(20), &out)
        out += ",\"rows\":[".utf8
        for (index, device) in page.enumerated() {
            if index > 0 { out.append(0x2c) }
            DevicesJob.append(device, range, to: &out)
        }
        out += "],\"next\":".utf8
        if page.endIndex < matching.count, let last = page.last {
            JSONText.string(last.name, &out)
        } else {
            out += "null".utf8
        }
        out += "}\n".utf8
        return .json(out)
    }

    /// The greatest first; names in ascending order.
    private func isBefore(_ a: DeviceFigures, _ b: DeviceFigures) -> Bool {
        let (x, y): (UInt64, UInt64) =
            switch order {
            case "last": (a.timeMax, b.timeMax)
            case "records": (a.records, b.records)
            case "errors": (a.errors, b.errors)
            case "bytes": (a.bytes, b.bytes)
            case "gaps": (a.gaps, b.gaps)
            default: (0, 0)
            }
        return x != y ? x > y : a.name < b.name
    }

    private static func append(
        _ device: DeviceFigures, _ range: ClosedRange<UInt64>, to out: inout [UInt8]
    ) {
        out += "{\"name\":".utf8
        JSONText.string(device.name, &out)
        out += ",\"version\":".utf8
        JSONText.string(device.version, &out)
        out += ",\"first_ns\":\"\(device.timeMin)\",\"last_ns\":\"\(device.timeMax)\"".utf8
        out += ",\"records\":\(device.records),\"errors\":\(device.errors)".utf8
        out += ",\"gaps\":\(device.gaps),\"bytes\":\(device.bytes),\"counts\":[".utf8
        for (index, count) in device.counts(over: range, parts: parts).enumerated() {
            if index > 0 { out.append(0x2c) }
            Digits.append(count, to: &out)
        }
        out += "]}".utf8
    }
}
