// Finds the secrets in XML, and how far a text is well-formed; expat parses. Secrets are elements
// and attributes with a secret's name, and values beside such a name, as in
// <property name="password">… or <key>password</key><string>…. HTML is not parsed. A document type,
// which may define entities, ends the parsing. Comments and processing instructions are replaced.
// Lives on one thread for the length of `parse`.
// SAFETY: the parser is `parse`'s own and is freed there; expat calls only inside XML_Parse, with
// the reader that `parse` keeps alive and the edits it was given; its texts hold during the call.

import CExpat
import CordwoodCore

@safe final class XMLBody {
    private struct Element {
        /// Its text is replaced.
        var isSecret = false
        /// Attributes inside it are replaced, too: its name is a secret's.
        var isNamed = false
        /// Inside `errors`, where a secret's name belongs to a field that is wrong.
        var isErrors = false
        /// Its text names the value beside it, or is such a value.
        var isNaming = false
        var isValue = false
        /// Its last naming element gave a secret's name.
        var told = false
        /// The start of its content, and of the last value in it.
        var from = 0
        var value = 0..<0
    }

    private let scan: TextScan
    // SAFETY: used only in their owner's own call.
    private let parser: XML_Parser
    private let edits: UnsafeMutablePointer<Edits>
    private var open: [Element] = [Element()]
    /// The decoded text since the last tag.
    private var content = GrowingBytes()
    /// The end of the last tag, comment or instruction.
    private var end = 0
    private var isOther = false

    private init(
        _ scan: TextScan, _ parser: XML_Parser, _ edits: UnsafeMutablePointer<Edits>
    ) {
        self.scan = scan
        unsafe self.parser = parser
        unsafe self.edits = edits
    }

    /// The length of the XML, up to the last complete element or text. nil: it is a document that
    /// is not parsed (HTML, a document type, too deep), or memory ran out.
    static func parse(_ scan: TextScan, _ edits: inout Edits) -> Int? {
        let text = scan.text
        let begin = text.has("\u{FEFF}", at: 0) ? 3 : text.skipBlank(0)
        guard text[begin] == UInt8(ascii: "<"), text.count < 1 << 30 else { return 0 }
        guard let parser = unsafe XML_ParserCreate(nil) else { return nil }
        defer { unsafe XML_ParserFree(parser) }
        // Not 0: expat would ask the system for a random number.
        _ = unsafe XML_SetHashSalt(parser, UInt.random(in: 1 ... .max))
        return unsafe withUnsafeMutablePointer(to: &edits) { edits in
            let reader = unsafe XMLBody(scan, parser, edits)
            return withExtendedLifetime(reader) { reader.read(text, from: begin) }
        }
    }

    private func read(_ text: ByteText, from begin: Int) -> Int? {
        unsafe XML_SetUserData(parser, Unmanaged.passUnretained(self).toOpaque())
        unsafe XML_SetElementHandler(
            parser, { unsafe XMLBody.from($0)?.begin($1, $2) },
            { user, _ in unsafe XMLBody.from(user)?.finish() })
        unsafe XML_SetCharacterDataHandler(
            parser, { unsafe XMLBody.from($0)?.add($1, count: $2) })
        unsafe XML_SetCommentHandler(parser, { user, _ in unsafe XMLBody.from(user)?.drop(4, 3) })
        unsafe XML_SetProcessingInstructionHandler(
            parser, { user, _, _ in unsafe XMLBody.from(user)?.drop(2, 2) })
        unsafe XML_SetStartDoctypeDeclHandler(
            parser, { user, _, _, _, _ in unsafe XMLBody.from(user)?.stop() })
        (base, end) = (begin, begin)
        let body = text.slice(begin, text.count)
        let status = unsafe body.start?.withMemoryRebound(to: CChar.self, capacity: body.count) {
            unsafe XML_Parse(parser, $0, Int32(body.count), 1)
        }
        if isOther || content.failed { return nil }
        if status == XML_STATUS_OK { return text.count }
        if unsafe XML_GetErrorCode(parser) == XML_ERROR_NO_MEMORY { return nil }
        // In a string the rest stays, unless it is a secret's.
        if open.last?.isSecret == true { replace(end, text.count) }
        return end == begin ? 0 : end
    }

    /// Index in the text of expat's first byte.
    private var base = 0

    private static func from(_ user: UnsafeMutableRawPointer?) -> XMLBody? {
        unsafe user.map { unsafe Unmanaged<XMLBody>.fromOpaque($0).takeUnretainedValue() }
    }

    private func stop() {
        isOther = true
        _ = unsafe XML_StopParser(parser, 0)
    }

    private var at: Int { unsafe base &+ Int(XML_GetCurrentByteIndex(parser)) }
    private var next: Int { unsafe at &+ Int(XML_GetCurrentByteCount(parser)) }

    private func replace(_ from: Int, _ to: Int) {
        unsafe scan.add(from, to, &edits.pointee)
    }

    // MARK: Elements

    private func begin(
        _ name: UnsafePointer<CChar>?, _ attributes: UnsafeMutablePointer<UnsafePointer<CChar>?>?
    ) {
        let local = unsafe ByteText(name).local
        let parent = open.count - 1
        guard scan.depth &+ UInt32(open.count) < TextScan.depthMax, !isOther,
            parent > 0 || !local.equals("html")
        else { return stop() }
        text()
        var element = open[parent]
        element.told = false
        element.value = 0..<0
        element.isNaming = isNaming(local) && !NamedMembers.isLoose(local)
        element.isValue = unsafe scan.rules.values.contains(local) || local.equals("string")
        if element.isNaming { open[parent].told = false }
        if open[parent].told, element.isValue { element.isSecret = true }
        if scan.isSecret(local) {
            element.isSecret = true
            element.isNamed = true
        }
        if local.has("errors", at: local.count &- 6) { element.isErrors = true }
        unsafe tag(attributes, &element)
        element.from = next
        open.append(element)
        content.removeAll()
        end = next
    }

    private func isNaming(_ local: ByteText) -> Bool {
        unsafe scan.rules.namings.contains(local)
    }

    private func finish() {
        guard open.count > 1, !isOther else { return }
        text()
        let element = open.removeLast()
        let parent = open.count - 1
        if element.isValue { open[parent].value = element.from..<max(at, element.from) }
        if element.isNaming, scan.isSecretName(content.text.trimmed) {
            open[parent].told = true
            // <value>…</value><name>password</name>
            let value = open[parent].value
            replace(value.lowerBound, value.upperBound)
        }
        content.removeAll()
        end = max(end, next)
    }

    private func add(_ bytes: UnsafePointer<CChar>?, count: Int32) {
        guard !isOther, let bytes = unsafe bytes else { return }
        unsafe content.append(
            ByteText(UnsafeRawPointer(bytes).assumingMemoryBound(to: UInt8.self), Int(count)))
    }

    /// The text between the last tag and this one.
    private func text() {
        let shown = content.text.trimmed
        guard shown.count > 0, let element = open.last else { return }
        if element.isSecret {
            if shown.isHarmless || element.isErrors && shown.isSentence { return }
            replace(end, at)
        } else if hides(shown) {
            replace(end, at)
        }
    }

    /// JSON or markup in a decoded text, with a secret in it.
    private func hides(_ shown: ByteText) -> Bool {
        switch shown[0] {
        case UInt8(ascii: "{"), UInt8(ascii: "["), UInt8(ascii: "<"): break
        default: return false
        }
        guard scan.level < TextScan.levelMax, unsafe edits.pointee.mayDecode(shown.count) else {
            return true
        }
        var found = Edits()
        found.begin(shown.count)
        scan.within(shown, .same, depth: scan.depth &+ UInt32(open.count)).value(&found)
        return found.count > 0
    }

    /// Replaces a comment or an instruction, without its marks.
    private func drop(_ before: Int, _ after: Int) {
        guard !isOther else { return }
        text()
        content.removeAll()
        replace(at &+ before, next &- after)
        end = next
    }

    // MARK: Attributes

    /// The attributes of the tag that begins here.
    private func tag(
        _ meant: UnsafeMutablePointer<UnsafePointer<CChar>?>?, _ element: inout Element
    ) {
        guard let meant = unsafe meant, unsafe meant.pointee != nil else { return }
        var (isTold, isLoose) = (false, true)
        var each = unsafe meant
        while let name = unsafe each.pointee {
            let local = unsafe ByteText(name).local
            if isNaming(local), unsafe scan.isSecretName(ByteText(each[1])) {
                isTold = true
                if !NamedMembers.isLoose(local) { isLoose = false }
            }
            unsafe each += 2
        }
        // <property name="password">…; type="password" describes an attribute.
        if isTold, !isLoose { element.isSecret = true }
        var at = self.at
        unsafe each = meant
        while let name = unsafe each.pointee, let value = unsafe each[1] {
            // Well-formed: a name, '=', and a value in quotes.
            let equals = scan.text.next(UInt8(ascii: "="), from: at)
            var from = scan.text.skipBlank(equals &+ 1)
            let quote = scan.text[from]
            from &+= 1
            let to = scan.text.next(quote, from: from)
            let shown = unsafe ByteText(value)
            if unsafe isSecret(ByteText(name), element, isTold: isTold)
                ? !shown.isHarmless : hides(shown.trimmed)
            {
                replace(from, to)
            }
            at = to &+ 1
            unsafe each += 2
        }
    }

    private func isSecret(_ name: ByteText, _ element: Element, isTold: Bool) -> Bool {
        if name.has("xmlns", at: 0) { return false }
        let local = name.local
        if scan.isSecret(local) { return true }
        if isTold, unsafe scan.rules.values.contains(local) { return true }
        guard element.isNamed else { return false }
        return !["type", "lang", "nil", "encoding", "version"].contains { local.equals($0) }
    }
}

extension ByteText {
    /// A name without its prefix.
    fileprivate var local: ByteText {
        let colon = next(UInt8(ascii: ":"), from: 0)
        return colon < count ? slice(colon &+ 1, count) : self
    }
}
