// The body of an OTLP request: an ExportLogsServiceRequest whose records are grouped by process
// (resource) and by logger (scope), in the order of first appearance. Within a group, records keep
// their order. Groups start with lengths or commas, so a body is held until it ends: at most twice
// its limit. One thread at a time.
// SAFETY: views of a record are used in the call that has it.

import CordwoodCore
import CordwoodStore

struct OTLPEncoder: RecordEncoder {
    /// The limit of one record if its server sets none.
    static let entryBytesMax = 4 << 20

    private let form: OTLPForm
    /// The share of an entry that one record's attributes may take.
    private let attributeBytesMax: Int
    private var resources: [Resource] = []
    private var byHead: [[UInt8]: Int] = [:]
    private var byProcess: [ObjectIdentifier: Int] = [:]
    /// Kept as long as their addresses identify them.
    private var processes: [ProcessInfo] = []
    private var last: Place?

    private struct Scope {
        var logger: [UInt8]
        var head: [UInt8]
        var entries: [UInt8] = []
    }

    private struct Resource {
        var head: [UInt8]
        var scopes: [Scope] = []
        var byLogger: [[UInt8]: Int] = [:]
    }

    private struct Place {
        var process: ObjectIdentifier
        var resource: Int
        var scope: Int
    }

    /// - Parameter entryBytesMax: the limit of one record.
    init(_ form: OTLPForm, entryBytesMax: Int) {
        self.form = form
        attributeBytesMax = entryBytesMax / 2
    }

    // ── Entries ──

    func makeEntry(
        _ record: RecordRef, distinctNs: UInt64, messageBytesMax: Int, _ out: inout [UInt8]
    ) {
        let cut = Cut.message(of: record, to: messageBytesMax)
        let attributes = OTLPAttributes(cut, form, bytesMax: attributeBytesMax)
        var uid: [UInt8] = []
        if !attributes.contains(OTLP.uidKey) { record.id.append(to: &uid) }
        switch form {
        case .protobuf: OTLPProtobuf.append(cut, attributes, uid: uid, to: &out)
        case .json: OTLPJSON.append(cut, attributes, uid: uid, to: &out)
        }
    }

    var frameBytes: Int { form == .json ? OTLPEncoder.open.count + OTLPEncoder.close.count : 0 }

    /// Protobuf: tag and length of a ResourceLogs or a ScopeLogs, at most. JSON: the text around a
    /// group, and its comma.
    private static let groupBytes = 48
    private static let open = Array("{\"resourceLogs\":[".utf8)
    private static let close = Array("]}".utf8)

    func cost(_ entry: [UInt8], _ record: RecordRef) -> Int {
        var bytes = entry.count + 1
        let resource = findResource(record.thread.process)
        if resource == nil {
            bytes += head(of: record.thread.process).count + OTLPEncoder.groupBytes
        }
        if resource.flatMap({ findScope($0, record) }) == nil {
            bytes += head(ofLogger: record).count + OTLPEncoder.groupBytes
        }
        return bytes
    }

    mutating func begin(_ out: inout [UInt8]) {
        self = OTLPEncoder(self)
    }

    private init(_ other: OTLPEncoder) {
        form = other.form
        attributeBytesMax = other.attributeBytesMax
    }

    mutating func take(_ entry: [UInt8], _ record: RecordRef, _ out: inout [UInt8]) {
        let place = self.place(of: record)
        if form == .json, !resources[place.resource].scopes[place.scope].entries.isEmpty {
            resources[place.resource].scopes[place.scope].entries.append(0x2C)
        }
        resources[place.resource].scopes[place.scope].entries += entry
    }

    // ── Groups ──

    private mutating func place(of record: RecordRef) -> Place {
        let process = record.thread.process
        if let last, last.process == ObjectIdentifier(process),
            findScope(last.resource, record) == last.scope
        {
            return last
        }
        let resource = findResource(process) ?? addResource(process)
        if byProcess.updateValue(resource, forKey: ObjectIdentifier(process)) == nil {
            processes.append(process)
        }
        let scope = findScope(resource, record) ?? addScope(resource, record)
        let place = Place(process: ObjectIdentifier(process), resource: resource, scope: scope)
        last = place
        return place
    }

    private func findResource(_ process: ProcessInfo) -> Int? {
        if let last, last.process == ObjectIdentifier(process) { return last.resource }
        return byProcess[ObjectIdentifier(process)] ?? byHead[head(of: process)]
    }

    private mutating func addResource(_ process: ProcessInfo) -> Int {
        let head = self.head(of: process)
        resources.append(Resource(head: head))
        byHead[head] = resources.count - 1
        return resources.count - 1
    }

    private func findScope(_ resource: Int, _ record: RecordRef) -> Int? {
        if let last, last.resource == resource {
            let known = resources[resource].scopes[last.scope]
            if unsafe known.logger.elementsEqual(record.logger) { return last.scope }
        }
        return unsafe resources[resource].byLogger[Array(record.logger)]
    }

    private mutating func addScope(_ resource: Int, _ record: RecordRef) -> Int {
        let logger = unsafe Array(record.logger)
        let scope = resources[resource].scopes.count
        resources[resource].scopes.append(Scope(logger: logger, head: head(ofLogger: record)))
        resources[resource].byLogger[logger] = scope
        return scope
    }

    private func head(ofLogger record: RecordRef) -> [UInt8] {
        switch form {
        case .protobuf: OTLPProtobuf.scope(record.logger)
        case .json: OTLPJSON.scope(record.logger)
        }
    }

    // ── Resources ──

    /// The limit of a resource in a body; attributes beyond it count as dropped.
    static let resourceBytesMax = 32 << 10

    private func head(of process: ProcessInfo) -> [UInt8] {
        var attributes: [(key: String, value: OTLP.ResourceValue)] = []
        var dropped: UInt64 = 0
        var left = OTLPEncoder.resourceBytesMax
        func add(_ key: String, _ value: OTLP.ResourceValue) {
            // In JSON a control character takes six bytes.
            var bytes = key.utf8.count * 6 + 64
            if case .text(let text) = value { bytes += text.utf8.count * 6 }
            guard bytes <= left else {
                dropped += 1
                return
            }
            left -= bytes
            attributes.append((key, value))
        }
        func has(_ key: String) -> Bool { process.resource.contains { $0.key == key } }
        if !has("service.name") {
            add("service.name", .text(process.name.isEmpty ? "unknown_service" : process.name))
        }
        if !has("service.instance.id"), process.laneID != .zero {
            add("service.instance.id", .text(ArchiveIdentity.text(process.laneID)))
        }
        if !has("process.pid"), process.processID > 0 {
            add("process.pid", .number(UInt64(process.processID)))
        }
        if !has("process.executable.name"), !process.name.isEmpty {
            add("process.executable.name", .text(process.name))
        }
        for (index, (key, value)) in process.resource.enumerated() {
            // As with fields: the last one counts.
            let later = process.resource[(index + 1)...]
            if !later.contains(where: { $0.key == key }) { add(key, .text(value)) }
        }
        switch form {
        case .protobuf: return OTLPProtobuf.resource(attributes, dropped: dropped)
        case .json: return OTLPJSON.resource(attributes, dropped: dropped)
        }
    }

    // ── The end ──

    mutating func end(_ out: inout [UInt8]) {
        switch form {
        case .protobuf: for resource in resources { appendProtobuf(resource, &out) }
        case .json:
            out += OTLPEncoder.open
            for (position, resource) in resources.enumerated() {
                if position > 0 { out.append(0x2C) }
                appendJSON(resource, &out)
            }
            out += OTLPEncoder.close
        }
        self = OTLPEncoder(self)
    }

    private func appendProtobuf(_ resource: Resource, _ out: inout [UInt8]) {
        var body: [UInt8] = []
        var bytes = resource.head.count
        var heads: [[UInt8]] = []
        for scope in resource.scopes {
            var head: [UInt8] = [0x12]
            ProtobufBytes.append(
                varint: UInt64(scope.head.count + scope.entries.count), to: &head)
            head += scope.head
            bytes += head.count + scope.entries.count
            heads.append(head)
        }
        body.append(0x0A)
        ProtobufBytes.append(varint: UInt64(bytes), to: &body)
        out += body
        out += resource.head
        for (head, scope) in zip(heads, resource.scopes) {
            out += head
            out += scope.entries
        }
    }

    private func appendJSON(_ resource: Resource, _ out: inout [UInt8]) {
        out += "{\"resource\":".utf8
        out += resource.head
        out += ",\"scopeLogs\":[".utf8
        for (position, scope) in resource.scopes.enumerated() {
            out += (position > 0 ? ",{\"scope\":" : "{\"scope\":").utf8
            out += scope.head
            out += ",\"logRecords\":[".utf8
            out += scope.entries
            out += "]}".utf8
        }
        out += "]}".utf8
    }
}
