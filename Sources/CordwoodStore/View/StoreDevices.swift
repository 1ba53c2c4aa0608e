// The devices of a store, or figures by another attribute of the processes that wrote the records.
// Archives supply them from what is remembered (Facts); an archive of which nothing is remembered
// is counted by its columns once. Records are made only from lanes. One thread at a time.

import CordwoodCore

/// The records of one process in one archive or lane, and roughly when.
package struct DeviceSpan: Sendable {
    package var timeMin: UInt64
    package var timeMax: UInt64
    package var bins: [UInt64]
}

package struct DeviceFigures: Sendable {
    /// Empty: the processes do not say.
    package var name: String
    /// `service.version` of the latest record.
    package var version = ""
    /// UTC ns as written.
    package var timeMin: UInt64 = .max
    package var timeMax: UInt64 = 0
    package var records: UInt64 = 0
    package var errors: UInt64 = 0
    /// Gap records, which say how many records were not kept.
    package var gaps: UInt64 = 0
    /// Its share of archives and lanes.
    package var bytes: UInt64 = 0
    package var spans: [DeviceSpan] = []

    fileprivate mutating func add(_ share: OriginShare, bytes: UInt64) {
        if share.timeMax >= timeMax, !share.version.isEmpty { version = share.version }
        timeMin = min(timeMin, share.timeMin)
        timeMax = max(timeMax, share.timeMax)
        records &+= share.records
        errors &+= share.errors
        gaps &+= share.gaps
        self.bytes &+= bytes
        spans.append(
            DeviceSpan(timeMin: share.timeMin, timeMax: share.timeMax, bins: share.bins))
    }

    /// Records in each equal part of the range. Each bin of a span counts as evenly spread.
    package func counts(over range: ClosedRange<UInt64>, parts: Int) -> [UInt64] {
        var bins = [UInt64](repeating: 0, count: parts)
        for span in spans {
            let step = (span.timeMax - span.timeMin) / UInt64(span.bins.count)
            for (index, records) in span.bins.enumerated() {
                let first = span.timeMin &+ step &* UInt64(index)
                TimeBins.spread(records, from: first, to: first &+ step, over: range, into: &bins)
            }
        }
        return bins
    }
}

package struct StoreDevices {
    package enum Attribute: String, Sendable, CaseIterable {
        case host = "host.name"
        case service = "service.name"
        case process

        func name(_ label: ProcessLabel) -> String {
            switch self {
            case .host: label.host
            case .service: label.service
            case .process: label.name
            }
        }
    }

    package private(set) var devices: [String: DeviceFigures] = [:]
    package private(set) var problems: [String] = []
    /// Archives whose processes cannot be determined: damaged, locked, or with too many processes.
    package private(set) var unknown = 0
    package private(set) var isStopped = false
    private let attribute: Attribute

    package init(by attribute: Attribute) { self.attribute = attribute }

    /// - Parameter shouldStop: asked between archives; what was learned until then is remembered.
    package mutating func read(
        path: String, options asked: ReaderOptions, shouldStop: @escaping () -> Bool
    ) throws(ReadProblem) {
        var options = asked
        options.rendersText = false
        options.isUnordered = true
        let answers = ArchiveAnswers(options, BlockTally()) { _ in }
        var found: [(share: OriginShare, bytes: UInt64)] = []
        var left = 0
        answers.mayCount = { !shouldStop() }
        answers.onOrigins = { info, origins in
            guard let origins else {
                left += 1
                return
            }
            for share in origins.shares {
                let part = Double(share.records) / Double(max(info.recordCount, 1))
                found.append((share, UInt64(Double(info.fileBytes) * min(part, 1))))
            }
        }
        options.answers = answers
        let reader = try StoreReader(path: path, options: options)
        reader.shouldStop = shouldStop
        for (share, bytes) in found { add(share, bytes: bytes) }
        unknown += left + reader.archives.others.count
        addLanes(of: reader)
        isStopped = isStopped || reader.isStopped || shouldStop()
        problems += reader.problems.map { StoreInspector.text($0) }
    }

    private mutating func add(_ share: OriginShare, bytes: UInt64) {
        let name = attribute.name(share.label)
        devices[name, default: DeviceFigures(name: name)].add(share, bytes: bytes)
    }

    /// Adds what is not in archives yet: reads records without making their texts.
    private mutating func addLanes(of reader: StoreReader) {
        var shares: [ObjectIdentifier: OriginShare] = [:]
        var processes: [ProcessInfo] = []
        var record = RecordRef()
        while reader.skipProblems(&record) {
            let process = record.thread.process
            let id = ObjectIdentifier(process)
            if shares[id] == nil {
                processes.append(process)
                shares[id] = OriginShare(of: process)
            }
            shares[id]?.count(
                level: record.level, isGap: record.kind == RecordRef.gapKind,
                timeNs: record.writtenNs)
        }
        for process in processes {
            guard var share = shares[ObjectIdentifier(process)] else { continue }
            for bin in share.bins.indices {
                share.bins[bin] = share.records / UInt64(share.bins.count)
            }
            share.bins[0] &+= share.records % UInt64(share.bins.count)
            add(share, bytes: 0)
        }
    }
}
