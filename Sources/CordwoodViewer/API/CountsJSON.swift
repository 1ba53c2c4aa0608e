// The counts of a query's result as lines: bins of time, and the values of facets. Pure.

import Cordwood
import struct CordwoodStore.Facets
import struct CordwoodStore.TimeHistogram

enum CountsJSON {
    /// Values that are named; the rest is counted.
    private static let namedMax = 50

    /// `{"hist":…}` and a newline.
    static func append(_ histogram: inout TimeHistogram, to out: inout [UInt8]) {
        let bins = histogram.sums()
        out += "{\"hist\":{\"step_ns\":\"".utf8
        Digits.append(histogram.stepNs, to: &out)
        out += "\",\"bins\":[".utf8
        for (index, bin) in bins.enumerated() {
            out += (index == 0 ? "[\"" : ",[\"").utf8
            Digits.append(bin.startNs, to: &out)
            out += "\",[".utf8
            for (group, count) in bin.counts.enumerated() {
                if group > 0 { out.append(0x2c) }
                Digits.append(count, to: &out)
            }
            out += "]]".utf8
        }
        out += "]}}\n".utf8
    }

    /// A line `{"facet":…}` for each key.
    static func append(_ facets: inout Facets, to out: inout [UInt8]) {
        for (key, counts) in facets.counts() { append(key, counts, &out) }
    }

    private static func append(
        _ key: StaticString, _ counts: RecordCounts<String>, _ out: inout [UInt8]
    ) {
        out += "{\"facet\":{\"key\":\"\(key)\",\"top\":[".utf8
        for (index, (value, count)) in counts.records.prefix(namedMax).enumerated() {
            out += (index == 0 ? "[" : ",[").utf8
            JSONText.string(value, &out)
            out.append(0x2c)
            Digits.append(count, to: &out)
            out.append(0x5d)
        }
        let rest = counts.records.dropFirst(namedMax).reduce(counts.others) { $0 &+ $1.count }
        out += "],\"others\":\(rest)}}\n".utf8
    }
}
