// Whether any record of a process may match a query, decided without looking at records. Only the
// names `host.name` and `service.name` are decided, and only if no record has a field of such a
// name, which would come first. Pure.
// SAFETY: the bytes of a name are read only during the call.

import CordwoodCore

package enum OriginTest {
    /// A process's names; nil: not known, or some of its records have fields of that name.
    package struct Names: Sendable {
        package var host: String?
        package var service: String?

        package init(host: String?, service: String?) {
            self.host = host
            self.service = service
        }

        fileprivate func name(_ key: [UInt8]) -> String?? {
            switch String(decoding: key, as: UTF8.self) {
            case ProcessOrigin.hostKey: .some(host)
            case ProcessOrigin.serviceKey: .some(service)
            default: nil
            }
        }
    }

    static func isAsked(_ node: QueryNode) -> Bool {
        switch node {
        case .all(let parts), .any(let parts): parts.contains(where: isAsked)
        case .not(let part): isAsked(part)
        case .compare(.any(let key, _), _, _): Names(host: nil, service: nil).name(key) != nil
        case .compare, .text: false
        }
    }

    static func verdict(_ node: QueryNode, _ names: Names) -> QueryTest.Verdict {
        switch node {
        case .all(let parts):
            return parts.map { verdict($0, names) }.min { $0.rawValue < $1.rawValue } ?? .yes
        case .any(let parts):
            return parts.map { verdict($0, names) }.max { $0.rawValue < $1.rawValue } ?? .no
        case .not(let part): return verdict(part, names).inverted
        case .compare(.any(let key, _), let operation, let value):
            guard let found = names.name(key), let text = found else { return .open }
            var test = QueryTest.ValuesTest(operation, value)
            let bytes = Array(text.utf8)
            unsafe bytes.withUnsafeBytes { unsafe test.take(.string($0)) }
            return QueryTest.Verdict(test.isTrue)
        case .compare, .text: return .open
        }
    }
}
