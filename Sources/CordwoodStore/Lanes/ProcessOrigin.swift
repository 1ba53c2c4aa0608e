// The origin of a process's records, in the words that lines show: its service and host, and its
// other attributes. Made once per process, because all its records share it. A value.

import CordwoodCore
import CordwoodFormats

package struct ProcessOrigin: Sendable {
    package static let serviceKey = "service.name"
    package static let hostKey = "host.name"
    private static let here = Machine.words()?.host ?? ""

    /// Empty: unknown.
    package let service: String
    package let host: String
    /// The host is this machine.
    package let isHere: Bool
    /// The other attributes as a JSON object.
    package let object: [UInt8]
    /// Members of a JSON line, each after a comma: process, service, host, resource.
    package let members: [UInt8]

    init(process name: String, _ resource: [(key: String, value: String)]) {
        var service = ""
        var host = ""
        var others = ProcessOrigin.unique(resource)
        others.removeAll { key, value in
            if key == ProcessOrigin.serviceKey { service = value }
            if key == ProcessOrigin.hostKey { host = value }
            return key == ProcessOrigin.serviceKey || key == ProcessOrigin.hostKey
        }
        var object: [UInt8] = []
        JSONMembers.object(of: others, &object)
        var members: [UInt8] = []
        func add(_ name: StaticString, _ text: String) {
            Literal.append(name, &members)
            if text.isEmpty {
                Literal.append("null", &members)
            } else {
                JSONText.string(text, &members)
            }
        }
        add(",\"process\":", name)
        add(",\"service\":", service)
        add(",\"host\":", host)
        Literal.append(",\"resource\":", &members)
        members += object
        self.service = service
        self.host = host
        self.object = object
        self.members = members
        isHere = host == ProcessOrigin.here
    }

    /// The attributes that are not empty, each once: if keys are equal, the last one counts.
    fileprivate static func unique(
        _ resource: [(key: String, value: String)]
    ) -> [(key: String, value: String)] {
        var last: [String: Int] = [:]
        for (index, attribute) in resource.enumerated() where !attribute.value.isEmpty {
            last[attribute.key] = index
        }
        if last.count == resource.count { return resource }
        return resource.enumerated().filter { last[$0.element.key] == $0.offset }.map(\.element)
    }
}

extension ProcessInfo {
    /// An attribute of its resource; nil: not set, or empty.
    package func attribute(_ key: String) -> String? {
        resource.last { $0.key == key && !$0.value.isEmpty }?.value
    }

    /// The attributes that are not empty, each once: if keys are equal, the last one counts.
    package func attributes(without known: [String]) -> [(key: String, value: String)] {
        ProcessOrigin.unique(resource).filter { !known.contains($0.key) }
    }
}
