// Finds values of markup whose name is a value, too: `<input name="password" value="x">`,
// `<property name="password">x</property>`, `<key>password</key><string>x</string>`. MarkupScan
// hands in each element that is no secret by its own name. Each look is bounded, so that all of
// them are linear; an element that holds others is left to its own elements.

extension TextScan {
    private static let attributesMax = 48
    private static let tagBytesMax = 4_096
    private static let labelBytesMax = 96
    private static let contentBytesMax = 16 << 10

    /// What the attributes of an element say.
    private struct Attributes {
        /// Behind the last one.
        var end: Int
        var isSecret = false
        /// By a name or key: what the element holds counts, too.
        var isNamed = false
        var isButton = false
        var value: (from: Int, to: Int)?
    }

    /// An element whose name ends at that index. Returns where to look for the next one.
    func element(_ name: ByteText, _ end: Int, _ edits: inout Edits) -> Int {
        guard name.count > 0 else { return end }
        var close = end
        if ASCII.isBlank(text[end]) {
            let found = attributes(end)
            // What was cut off might have named a secret.
            let isOpen =
                isCut && text.count &- found.end < 16 && text[found.end] != UInt8(ascii: ">")
            if found.isSecret && !found.isButton || isOpen, let value = found.value {
                add(value.from, value.to, &edits)
            }
            close = found.end
            if found.isNamed, text[close] == UInt8(ascii: ">"), !TextScan.isPage(name) {
                return max(end, content(close &+ 1, &edits))
            }
        }
        guard text[close] == UInt8(ascii: ">"), TextScan.isLabel(name) else { return end }
        return max(end, labelled(name, close &+ 1, &edits))
    }

    // MARK: Attributes

    private func attributes(_ start: Int) -> Attributes {
        let tag = text.slice(0, start &+ TextScan.tagBytesMax)
        var found = Attributes(end: start)
        for _ in 0..<TextScan.attributesMax {
            let at = tag.skipBlank(found.end)
            var nameEnd = at
            while TextScan.isTagByte(tag[nameEnd]) || tag[nameEnd] == UInt8(ascii: "@") {
                nameEnd &+= 1
            }
            found.end = nameEnd
            guard nameEnd > at else { break }
            let equals = tag.skipBlank(nameEnd)
            guard tag[equals] == UInt8(ascii: "=") else { continue }
            let (from, to, end) = attribute(tag.skipBlank(equals &+ 1), tag)
            note(tag.slice(at, nameEnd), from, to, &found)
            found.end = end
        }
        return found
    }

    /// A value in quotes of either kind, or none, and where it is over.
    private func attribute(_ start: Int, _ tag: ByteText) -> (from: Int, to: Int, end: Int) {
        let quote = text[start]
        if quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'") {
            let to = tag.next(quote, from: start &+ 1)
            if to < tag.count { return (start &+ 1, to, to &+ 1) }
            // A long one, or one that was cut.
            let last = text.next(quote, from: start &+ 1)
            return (start &+ 1, last, last)
        }
        var to = start
        while to < tag.count, !ASCII.isBlank(tag[to]), tag[to] != UInt8(ascii: ">"),
            tag[to] != UInt8(ascii: "<")
        {
            to &+= 1
        }
        if tag[to] == UInt8(ascii: ">"), to > start, tag[to &- 1] == UInt8(ascii: "/") { to &-= 1 }
        return (start, to, to)
    }

    private func note(
        _ whole: ByteText, _ from: Int, _ to: Int, _ found: inout Attributes
    ) {
        let colon = whole.next(UInt8(ascii: ":"), from: 0)
        let name = colon < whole.count ? whole.slice(colon &+ 1, whole.count) : whole
        let value = text.slice(from, to)
        if unsafe rules.values.table.contains(name) {
            if found.value == nil { found.value = (from, to) }
            return
        }
        guard value.count <= TextScan.labelBytesMax, unsafe rules.namings.table.contains(name)
        else {
            return
        }
        if name.equals("type"),
            value.equals("submit") || value.equals("button")
                || value.equals("reset")
        {
            found.isButton = true
        }
        guard unsafe rules.headerNames.table.contains(value) else { return }
        found.isSecret = true
        if name.equals("name") || name.equals("key") { found.isNamed = true }
    }

    // MARK: Contents

    /// Elements of pages whose name is not that of what they hold, and those that hold nothing.
    private static func isPage(_ name: ByteText) -> Bool {
        for word in [
            "a", "button", "input", "meta", "form", "select", "option", "label", "div", "span",
            "iframe", "param", "map", "object", "slot", "fieldset", "section", "li", "p", "img",
        ] as [StaticString] where name.equals(word) {
            return true
        }
        return false
    }

    /// What an element holds whose attribute names a secret: text, CDATA, or `<value>` with such.
    private func content(_ start: Int, _ edits: inout Edits) -> Int {
        let window = text.slice(0, start &+ TextScan.contentBytesMax)
        let first = window.skipBlank(start)
        if window.has("<![cdata[", at: first) { return data(first &+ 9, &edits) }
        var end = window.next(UInt8(ascii: "<"), from: start)
        // A long one: what is passed here is not looked at again.
        if end == window.count { end = text.next(UInt8(ascii: "<"), from: end) }
        if first == end, window[end &+ 1] != UInt8(ascii: "/") {
            return valueElement(end, window, &edits)
        }
        // Of an end tag that was cut there may be any part.
        guard text[end &+ 1] == UInt8(ascii: "/") || isCut && text.count &- end < 16 else {
            return start
        }
        add(start, end, &edits)
        return end
    }

    private func data(_ start: Int, _ edits: inout Edits) -> Int {
        let close: StaticString = "]]>"
        let end = unsafe text.find(ByteText(close.utf8Start, 3), from: start)
        add(start, end, &edits)
        return end
    }

    /// `<name>password</name><value>x</value>`, a row of a table: the label's text begins there.
    private func labelled(_ name: ByteText, _ start: Int, _ edits: inout Edits) -> Int {
        let window = text.slice(0, start &+ TextScan.contentBytesMax)
        let end = window.slice(0, start &+ TextScan.labelBytesMax)
            .next(UInt8(ascii: "<"), from: start)
        let label = window.slice(start, end).trimmed
        guard label.count > 0, window[end] == UInt8(ascii: "<"),
            window[end &+ 1] == UInt8(ascii: "/"),
            unsafe rules.headerNames.table.contains(label)
        else { return start }
        let next = window.skipBlank(window.next(UInt8(ascii: ">"), from: end) &+ 1)
        guard window[next] == UInt8(ascii: "<") else { return start }
        return valueElement(next, window, &edits)
    }

    private static func isLabel(_ name: ByteText) -> Bool {
        for word in ["key", "name", "td", "th", "dt", "k"] as [StaticString]
        where name.equals(word) {
            return true
        }
        return false
    }

    private static let endTriesMax = 64

    /// An element that may hold a secret's value begins there.
    private func valueElement(
        _ at: Int, _ window: ByteText, _ edits: inout Edits
    ) -> Int {
        var end = at &+ 1
        while TextScan.isTagByte(window[end]) { end &+= 1 }
        let tag = window.slice(at &+ 1, end)
        let colon = tag.next(UInt8(ascii: ":"), from: 0)
        let name = colon < tag.count ? tag.slice(colon &+ 1, tag.count) : tag
        let isCell = name.equals("td") || name.equals("dd")
        guard unsafe isCell || name.equals("string") || rules.values.table.contains(name) else {
            return at
        }
        let close = window.next(UInt8(ascii: ">"), from: end)
        guard close < window.count, window[close &- 1] != UInt8(ascii: "/") else { return at }
        let scan = unsafe TextScan(rules, window)
        var stop = scan.tagEnd(tag, from: close, tries: TextScan.endTriesMax)
        // None: to the next one of whatever name.
        if stop == window.count, window.count < text.count || !isCut {
            stop = text.next(UInt8(ascii: "<"), from: close)
            guard stop < text.count else { return at }
        }
        // A form beside its label: fields are looked at by themselves.
        if isCell, window.slice(close, stop).next(UInt8(ascii: "="), from: 0) < stop &- close,
            scan.hasField(close, stop)
        {
            return at
        }
        add(close &+ 1, stop, &edits)
        return stop
    }

    private func hasField(_ from: Int, _ to: Int) -> Bool {
        var at = text.next(UInt8(ascii: "<"), from: from)
        while at < to {
            if text.has("<input", at: at) || text.has("<select", at: at)
                || text.has("<textarea", at: at) || text.has("<button", at: at)
            {
                return true
            }
            at = text.next(UInt8(ascii: "<"), from: at &+ 1)
        }
        return false
    }
}
