// Finds the secrets in JSON, and how far a text is valid JSON. A member is secret by its own name;
// members such as `value` also by the name that a member beside them gives. Inside a secret,
// strings and numbers are replaced; null, true, false, numbers of one or two digits and structure
// stay. The parser is json.c, which reports only what matters here.
// SAFETY: the text holds as long as the value; the parser reads within it.

import CShims
import CordwoodFormats

@safe struct JSONBody {
    private let scan: TextScan
    // SAFETY: as above.
    private var json = unsafe cwi_json()
    private let look: Look
    /// In a look by names: a member other than `id` and `type` gives the name.
    private let isStrong: Bool
    /// In an open look: the object is the body, or a line of it.
    private let isOutermost: Bool
    /// The end of the last name that only describes the secret around it.
    private var plainName = -1

    /// The ways of looking through values.
    private enum Look {
        case first
        /// Again, because a member names the values beside it: the object's values are secrets.
        case named
        /// Again, because the object is incomplete: the name may have been in the missing part.
        case open
    }

    private init(
        _ scan: TextScan, _ look: Look, isStrong: Bool = false, isOutermost: Bool = false
    ) {
        self.scan = scan
        self.look = look
        self.isStrong = isStrong
        self.isOutermost = isOutermost
    }

    /// Returns the end of the parsed text: one value, or with `hasLines` one in each line.
    static func parse(_ whole: TextScan, hasLines: Bool, _ edits: inout Edits) -> Int {
        // Invalid UTF-8 may be a name in another encoding.
        let isASCII = whole.text.isASCII
        let scan = unsafe isASCII ? whole : whole.head(UTF8Scan.validCount(whole.text.raw))
        let text = scan.text
        var at = text.has("\u{FEFF}", at: 0) ? 3 : 0
        // The prefix that Google's and Angular's servers put before JSON.
        if text.has(")]}'", at: at) { at = text.next(0x0A, from: at) }
        at = text.skipBlank(at)
        var body = JSONBody(scan, .first)
        var end = 0
        while at < text.count {
            guard body.read(from: at, &edits) else {
                return unsafe max(end, body.json.end > at ? Int(body.json.end) : 0)
            }
            // A number at the end of the text may be incomplete.
            let isOpen = unsafe scan.isCut && Int(body.json.at) == text.count
            if isOpen, text[at] != UInt8(ascii: "{"), text[at] != UInt8(ascii: "[") { break }
            end = unsafe Int(body.json.at)
            at = text.skipBlank(end)
            guard hasLines, text.next(0x0A, from: end) < at else { break }
        }
        return end
    }

    /// False: no complete value.
    private mutating func read(from at: Int, _ edits: inout Edits) -> Bool {
        guard let start = unsafe scan.text.start else { return false }
        let limit = TextScan.depthMax > scan.depth ? TextScan.depthMax &- scan.depth : 0
        unsafe cwi_json_begin(&json, start, at, scan.text.count, limit)
        var names = unsafe scan.rules.jsonNames
        while true {
            switch unsafe cwi_json_next(&json, &names) {
            case Int32(CWI_JSON_WHOLE): return true
            case Int32(CWI_JSON_NAME): name()
            case Int32(CWI_JSON_STRING): string(&edits)
            case Int32(CWI_JSON_NUMBER):
                unsafe scan.add(Int(json.from), Int(json.to), &edits, quotes: scan.level)
            case Int32(CWI_JSON_CLOSED): unsafe closed(Int(json.from), &edits)
            default:
                if look == .first { broken(&edits) }
                return false
            }
        }
    }

    // MARK: Names

    private mutating func name() {
        let name = unsafe scan.text.slice(Int(json.name_from), Int(json.name_to))
        guard unsafe json.name_has_escapes != 0 else { return member(name) }
        let done: Void? = JSONString.decode(name, origin: .same) { decoded, _ in member(decoded) }
        // No memory to find out.
        if done == nil { unsafe json.secret = unsafe json.depth &+ 1 }
    }

    private mutating func member(_ name: ByteText) {
        let value = unsafe scan.text[Int(json.at)]
        guard unsafe json.secret == 0 else { return below(name, value) }
        guard unsafe scan.rules.members.contains(name) else { return }
        let mark = unsafe json.depth &+ 1
        if unsafe scan.rules.values.contains(name), !scan.isSecret(name) {
            if holdsSecret(isWeak: NamedMembers.isWeak(name), value) { unsafe json.secret = mark }
        } else if look != .first {
            return
        } else if name.ends("errors") || name.ends("modelstate") {
            if unsafe json.errors == 0 { unsafe json.errors = mark }
        } else if name.ends("properties") {
            if name.count == 10 { unsafe json.schema = mark }
        } else if !scan.isKept(name), value == UInt8(ascii: "\"") || !name.equals("tokens") {
            // "tokens":17 is a count.
            unsafe json.secret = mark
        }
    }

    /// A member that holds a value. If no member has named it yet, the object is looked through
    /// again when it ends.
    private mutating func holdsSecret(isWeak: Bool, _ value: UInt8) -> Bool {
        let bit = unsafe UInt64(1) << UInt64(json.depth)
        switch look {
        case .first:
            // {"type":"token","text":"…"} is text.
            if unsafe (isWeak ? json.told.1 : json.told.0) & bit != 0 { return true }
            if isWeak { unsafe json.told.3 |= bit } else { unsafe json.told.2 |= bit }
            unsafe json.watched |= bit
            return false
        case .named: return unsafe json.depth == 1 && (isStrong || !isWeak)
        case .open:
            // {"value":[…]}: the body itself is this list, not the value of a name.
            let isList = isOutermost && value == UInt8(ascii: "[")
            return unsafe json.depth == 1 && !isWeak && !isList
        }
    }

    /// A member inside a secret. A member that describes the secret, as in a schema, is kept.
    private mutating func below(_ name: ByteText, _ value: UInt8) {
        guard value == UInt8(ascii: "\"") else { return }
        let isOfSchema =
            unsafe json.schema != 0 && json.secret == json.schema &+ 1
            && json.depth == json.secret && JSONBody.isOfSchema(name)
        if isOfSchema || name.equals("type") && isTypeOfSchema {
            plainName = unsafe Int(json.name_to)
        }
    }

    /// Members of a schema that describe a value.
    private static func isOfSchema(_ name: ByteText) -> Bool {
        for word in ["type", "title", "description", "format", "$ref"] as [StaticString]
        where name.equals(word) {
            return true
        }
        return false
    }

    /// The string that begins here names a type of JSON.
    private var isTypeOfSchema: Bool {
        let at = unsafe Int(json.at) &+ 1
        for word in ["string", "object", "array", "number", "integer", "boolean"] as [StaticString]
        where scan.text.has(word, at: at)
            && scan.text[at &+ word.utf8CodeUnitCount] == UInt8(ascii: "\"")
        {
            return true
        }
        return false
    }

    // MARK: Values

    private mutating func string(_ edits: inout Edits) {
        let (from, to) = unsafe (Int(json.from), Int(json.to))
        let value = scan.text.slice(from, to)
        guard unsafe json.secret == 0 else {
            if unsafe plainName == Int(json.name_to) { return }
            if unsafe json.errors != 0, value.isSentence { return }
            return scan.add(from, to, &edits)
        }
        guard look == .first else { return }
        let bit = unsafe UInt64(1) << UInt64(json.depth)
        if unsafe json.objects & bit != 0 { naming(value, bit) }
        if unsafe json.has_escapes != 0 || value[0] == UInt8(ascii: "<") {
            inner(from, to, &edits)
        }
    }

    /// A string that may name the value beside it.
    private mutating func naming(_ value: ByteText, _ bit: UInt64) {
        let name = unsafe scan.text.slice(Int(json.name_from), Int(json.name_to))
        let (isNaming, isLoose) = unsafe decoded(name, json.name_has_escapes != 0) {
            unsafe (scan.rules.namings.contains($0), NamedMembers.isLoose($0))
        }
        guard isNaming else { return }
        guard unsafe decoded(value, json.has_escapes != 0, { scan.isSecretName($0) }) else {
            return
        }
        unsafe json.told.0 |= bit
        if !isLoose { unsafe json.told.1 |= bit }
    }

    private func decoded<Result>(
        _ string: ByteText, _ hasEscapes: Bool, _ body: (ByteText) -> Result
    ) -> Result {
        guard hasEscapes,
            let result = JSONString.decode(string, origin: .same, { text, _ in body(text) })
        else { return body(string) }
        return result
    }

    /// The decoded content of a string with escapes is a text of its own.
    private func inner(_ from: Int, _ to: Int, _ edits: inout Edits) {
        guard scan.level < TextScan.levelMax, edits.mayDecode(to &- from) else {
            return scan.add(from, to, &edits)
        }
        let depth = unsafe scan.depth &+ json.depth
        let done: Void? = JSONString.decode(
            scan.text.slice(from, to), origin: scan.origin, at: from
        ) { decoded, origin in
            scan.within(decoded, origin, depth: depth).value(&edits)
        }
        // No memory to look into it.
        if done == nil { scan.add(from, to, &edits) }
    }

    /// An object whose value members came before their name was known.
    private func closed(_ begin: Int, _ edits: inout Edits) {
        let bit = unsafe UInt64(1) << UInt64(json.depth &+ 1)
        let isNamed = unsafe json.told.2 & json.told.0 & bit != 0
        let isStrong = unsafe json.told.3 & json.told.1 & bit != 0
        guard isNamed || isStrong else { return }
        var again = JSONBody(scan, .named, isStrong: isStrong)
        _ = again.read(from: begin, &edits)
    }

    private func start(_ depth: UInt32) -> Int {
        unsafe withUnsafePointer(to: json) { unsafe Int(cwi_json_start($0, depth)) }
    }

    /// Objects without an end.
    private func broken(_ edits: inout Edits) {
        guard unsafe json.depth > 0 else { return }
        for depth in unsafe 1...json.depth {
            let bit = UInt64(1) << UInt64(depth)
            guard unsafe json.objects & (json.told.2 | json.told.3) & bit != 0 else { continue }
            let isTold = unsafe json.told.0 & bit != 0
            var again = unsafe JSONBody(
                scan, isTold ? .named : .open, isStrong: json.told.1 & bit != 0,
                isOutermost: depth == 1 && scan.depth == 0)
            _ = again.read(from: start(depth), &edits)
        }
    }
}

/// Members and attributes that name the value beside them, and those that hold it.
enum NamedMembers {
    static let names = [
        "name", "key", "id", "field", "param", "parameter", "header", "k", "n", "property",
        "attribute", "attr", "variable", "option", "setting", "type",
    ]
    static let values = ["value", "values", "val", "content", "text", "data"]
    /// Below these, a secret's name belongs to a field that is wrong, or is described.
    static let contexts = ["errors", "modelstate", "properties"]

    /// Names that may also say what something is: {"type":"token","text":"…"} is text.
    static func isLoose(_ name: ByteText) -> Bool { name.equals("id") || name.equals("type") }

    /// Values that no loose name applies to.
    static func isWeak(_ name: ByteText) -> Bool {
        name.has("content", at: 0) || name.has("text", at: 0) || name.has("data", at: 0)
    }
}
