// Options of a single kind of target: the region of a bucket, an index, a table. `name=value`
// lines. Pure. Values may be secrets: errors show only the name.

import CordwoodStore

struct Parameters: Equatable, Sendable {
    private var values: [String: String]
    static let bytesMax = 65_536

    init(_ text: String) throws(UploadError) {
        guard text.utf8.count <= Parameters.bytesMax else {
            throw UploadError.argument("parameters are longer than \(Parameters.bytesMax) bytes")
        }
        var found: [String: String] = [:]
        for (index, line) in text.split(separator: "\n").enumerated() {
            guard let equals = line.firstIndex(of: "="), equals > line.startIndex else {
                throw UploadError.argument("parameter line \(index + 1) is not name=value")
            }
            let name = String(line[..<equals])
            guard found[name] == nil else {
                throw UploadError.argument("parameter '\(name.prefix(40))' stands there twice")
            }
            let value = String(line[line.index(after: equals)...])
            guard value.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
                throw UploadError.argument(
                    "parameter '\(name.prefix(40))' holds a control character")
            }
            found[name] = value
        }
        values = found
    }

    /// nil: not given.
    subscript(_ name: String) -> String? { values[name] }

    /// Those of these names that were given, as `name=value`.
    func lines(_ names: [String]) -> [String] {
        names.compactMap { name in values[name].map { "\(name)=\($0)" } }
    }

    /// Returns the value and removes it.
    mutating func take(_ name: String) -> String? { values.removeValue(forKey: name) }

    /// Rejects unknown names: they are mistakes, not to be ignored.
    func require(only known: [String], kind: TargetKind) throws(UploadError) {
        for name in values.keys.sorted() where !known.contains(name) {
            let list = known.isEmpty ? "none" : known.joined(separator: ", ")
            throw UploadError.argument(
                "kind \(kind.rawValue) has no parameter '\(name.prefix(40))'; it has \(list)")
        }
    }
}
