// The processes and threads of a block's records. Sources return one object per thread, so
// comparing identities nearly always suffices; objects with equal content share one entry. Owned by
// one Block.

import CordwoodCore

struct PeopleColumns: ~Copyable {
    private struct ThreadKey: Hashable {
        var process: Int
        var serial: UInt32
        var threadID: UInt32
        var name: String
    }
    /// Processes that differ elsewhere are rare.
    private struct ProcessKey: Hashable {
        var lane: LaneID
        var members: [UInt8]
    }
    private struct Slot {
        var identity: ObjectIdentifier?
        var index: Int
    }

    private(set) var processes = GrowingBytes()
    private(set) var threads = GrowingBytes()
    /// Retained so that no other object takes over an identity within the block.
    private var knownThreads: [ThreadInfo] = []
    private var knownProcesses: [ProcessInfo] = []
    private var processIndices: [ProcessKey: [Int]] = [:]
    private var threadIndices: [ThreadKey: Int] = [:]
    /// For each thread, the sequence expected after its last record.
    private var expected: [UInt64] = []
    private var entryCount = 0
    private var attributeCount = 0
    private var lastIdentity: ObjectIdentifier?
    private var lastIndex = 0
    private var slots = [Slot](repeating: Slot(identity: nil, index: 0), count: 256)

    init() {}

    var processCount: Int { knownProcesses.count }
    var threadCount: Int { entryCount }
    var size: Int { processes.count &+ threads.count }
    var failed: Bool { processes.failed || threads.failed }

    /// One more thread or process might exceed a limit of the format.
    var full: Bool {
        // Counts objects, not entries: the objects are retained.
        knownThreads.count >= BlockLimits.dictionaryMax
            || knownProcesses.count >= ArchiveLimits.processesMax
            || attributeCount >= BlockLimits.dictionaryMax / 2
    }

    mutating func removeAll() {
        processes.removeAll()
        threads.removeAll()
        knownThreads.removeAll(keepingCapacity: true)
        knownProcesses.removeAll(keepingCapacity: true)
        processIndices.removeAll(keepingCapacity: true)
        threadIndices.removeAll(keepingCapacity: true)
        expected.removeAll(keepingCapacity: true)
        entryCount = 0
        attributeCount = 0
        lastIdentity = nil
        for index in slots.indices { slots[index].identity = nil }
    }

    @inline(__always)
    mutating func index(_ thread: ThreadInfo) -> Int {
        let identity = ObjectIdentifier(thread)
        if identity == lastIdentity { return lastIndex }
        lastIndex = slotted(thread, identity)
        lastIdentity = identity
        return lastIndex
    }

    /// The number that the column of sequences stores; also sets the base of the next one.
    @inline(__always)
    mutating func sequenceStep(thread index: Int, sequence: UInt64) -> UInt64 {
        let step = sequence &- expected[index]
        expected[index] = sequence &+ 1
        return step
    }

    private mutating func slotted(_ thread: ThreadInfo, _ identity: ObjectIdentifier) -> Int {
        let address = UInt(bitPattern: identity)
        let slot = Int((address &>> 4 ^ address &>> 12) & 255)
        if slots[slot].identity == identity { return slots[slot].index }
        let index = entry(thread)
        slots[slot] = Slot(identity: identity, index: index)
        return index
    }

    private mutating func entry(_ thread: ThreadInfo) -> Int {
        let key = ThreadKey(
            process: process(thread.process), serial: thread.serial, threadID: thread.threadID,
            name: thread.name)
        if let known = threadIndices[key] {
            knownThreads.append(thread)
            return known
        }
        let index = entryCount
        entryCount &+= 1
        knownThreads.append(thread)
        threadIndices[key] = index
        expected.append(0)
        threads.append(varint: UInt64(key.process))
        threads.append(varint: UInt64(thread.serial))
        threads.append(varint: UInt64(thread.threadID))
        threads.append(string: thread.name, max: ArchiveLimits.stringMax)
        return index
    }

    private mutating func process(_ wanted: ProcessInfo) -> Int {
        if let last = knownProcesses.last, last === wanted { return knownProcesses.count - 1 }
        let key = ProcessKey(lane: wanted.laneID, members: wanted.origin.members)
        for index in processIndices[key] ?? [] where same(knownProcesses[index], wanted) {
            return index
        }
        processIndices[key, default: []].append(knownProcesses.count)
        knownProcesses.append(wanted)
        processes.append(id: wanted.laneID)
        processes.append(id: wanted.bootID)
        processes.append(varint: UInt64(wanted.processID))
        processes.append(varint: wanted.createdRealtime)
        processes.append(varint: wanted.createdMonotonic)
        processes.append(string: wanted.name, max: ArchiveLimits.stringMax)
        let kept = keptAttributes(wanted)
        processes.append(varint: UInt64(kept))
        for attribute in wanted.resource.prefix(kept) {
            processes.append(string: attribute.key, max: ArchiveLimits.stringMax)
            processes.append(string: attribute.value, max: ArchiveLimits.stringMax)
        }
        attributeCount &+= kept
        return knownProcesses.count - 1
    }

    /// The number of attributes of one process that fit its share of a block.
    private func keptAttributes(_ process: ProcessInfo) -> Int {
        var size = 0
        var kept = 0
        for attribute in process.resource {
            size &+= attribute.key.utf8.count &+ attribute.value.utf8.count &+ 10
            if size > ArchiveLimits.resourceMax || kept >= BlockLimits.dictionaryMax / 2 { break }
            kept &+= 1
        }
        return kept
    }

    private func same(_ left: ProcessInfo, _ right: ProcessInfo) -> Bool {
        left.laneID == right.laneID && left.bootID == right.bootID
            && left.processID == right.processID && left.createdRealtime == right.createdRealtime
            && left.createdMonotonic == right.createdMonotonic && left.name == right.name
            && left.resource.elementsEqual(right.resource) { $0 == $1 }
    }
}
