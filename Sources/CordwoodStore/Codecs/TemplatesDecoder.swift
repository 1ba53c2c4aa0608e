// Reads Templates of FORMAT §11.9: each value is a template with the next values of its variables'
// columns in their places. Part of one decoder.
// SAFETY: the columns are as long as the templates of all values require, and the text of all
// values is measured before it is written. Numbers of templates are below their count; others are
// damage.

import CordwoodCore

/// The content of templates, once their text has been read.
private struct Templates {
    /// The text before each variable and, last in each template, after all of them.
    var pieces: Flat<Slice>
    /// For each variable: 1 to 3 for a string, otherwise the form of a time + 4.
    var forms: Flat<UInt32>
    var columns: Flat<UInt32>
    /// The first variable of each template. One more entry: the end.
    var first: Flat<UInt32>
    /// For each template, the size of its own text and of its times.
    var bytes: Flat<Int>

    /// The piece before variable `index` of all; each earlier template has one more piece.
    @inline(__always) func piece(_ template: Int, _ variable: Int) -> Slice {
        pieces[variable &+ template]
    }
}

/// All that the values of one Templates are made of.
private struct TemplateValues {
    let found: Templates
    let kinds: Flat<UInt32>
    /// The template of each value.
    let chosen: Flat<UInt64>
    let strings: Flat<Flat<Slice>>
    let times: Flat<Flat<UInt64>>
    /// Of all values together.
    let bytes: Int
}

extension BlockDecoder {
    mutating func templates(
        _ values: Flat<Slice>, _ picks: Picks, _ depth: Int
    ) throws(BlockProblem) {
        let content = try templateValues(picks, depth)
        unsafe try write(values, content, to: room(content.bytes), asLines: false)
    }

    /// The same, but appends them to `out`, each followed by a newline: at most so many bytes.
    mutating func templates(
        _ values: Flat<Slice>, _ picks: Picks, atMost most: Int, to out: inout GrowingBytes
    ) throws(BlockProblem) {
        let content = try templateValues(picks, 1)
        let size = content.bytes &+ values.count
        guard size <= most else { throw .damaged }
        try leaves.takeMade(content.bytes)
        guard out.reserve(size &+ Arena.margin), let room = unsafe out.claim(size) else {
            throw .memory
        }
        unsafe try write(values, content, to: room, asLines: true)
    }

    private mutating func templateValues(
        _ picks: Picks, _ depth: Int
    ) throws(BlockProblem) -> TemplateValues {
        let count = try leaves.count(min(BlockLimits.templatesMax, picks.count))
        let columnCount = try leaves.count(BlockLimits.templatesMax)
        guard count > 0 else { throw .damaged }
        let text = try textLeaf()
        let numbers = try plane(leaves.count(BlockLimits.contentMax))
        var found = try parse(text, count)
        let kinds = try columns(&found, numbers, columnCount)
        let all = try indices(picks.count, below: count)

        let rows: Flat<Int> = try arena.flat(count, of: 0)
        let (numbersOfAll, counts) = unsafe (all.base, rows.base)
        for index in 0..<picks.count {
            unsafe counts[Int(truncatingIfNeeded: numbersOfAll[index])] &+= 1
        }
        let sizes: Flat<Int> = try arena.flat(columnCount, of: 0)
        for template in 0..<count {
            var variable = Int(found.first[template])
            while variable < Int(found.first[template + 1]) {
                sizes[Int(found.columns[variable])] &+= rows[template]
                variable += 1
            }
        }
        try leaves.check(values: sizes)
        let wanted = try self.picks(
            picks, all, first: found.first, columns: found.columns, sizes: sizes)
        let chosen = try gather(all, picks)
        let none: Flat<Slice> = try arena.flat(0)
        let strings: Flat<Flat<Slice>> = try arena.flat(columnCount, of: none)
        let times: Flat<Flat<UInt64>> = try arena.flat(columnCount, of: chosen)
        for column in 0..<columnCount {
            if kinds[column] <= 3 {
                strings[column] = try self.strings(wanted[column], depth: depth + 1)
            } else {
                times[column] = try self.times(
                    wanted[column], kinds[column] - 4, depth: depth + 1)
            }
        }
        return TemplateValues(
            found: found, kinds: kinds, chosen: chosen, strings: strings, times: times,
            bytes: measure(chosen, found, kinds, strings))
    }

    private mutating func parse(_ text: Slice, _ count: Int) throws(BlockProblem) -> Templates {
        guard let source = unsafe text.start else { throw .damaged }
        var variables = 0
        var at = text.firstLow(below: 6, from: 0)
        var ends = 0
        while at < text.count {
            let byte = text[at]
            at &+= 1
            switch byte {
            case 0: ends += 1
            case 4:
                variables += 1
                at += 2
            case 5: at += 1
            default: variables += 1
            }
            at = text.firstLow(below: 6, from: at)
        }
        guard ends == count, at == text.count, variables <= BlockLimits.variablesMax else {
            throw .damaged
        }
        let found = Templates(
            pieces: try arena.flat(variables + count), forms: try arena.flat(variables, of: 0),
            columns: try arena.flat(variables), first: try arena.flat(count + 1),
            bytes: try arena.flat(count, of: 0))
        // Copies of pieces with escapes; other pieces stay where they are, in the arena like these.
        var literals: UnsafeMutableRawPointer?
        var out = 0
        // Bytes of the current piece copied so far.
        var copied = 0
        // The start of its bytes that were not copied.
        var first = 0
        var variable = 0
        var template = 0
        found.first[0] = 0
        at = 0
        while at < text.count {
            // There are bytes after the last template.
            guard template < count else { throw .damaged }
            at = text.firstLow(below: 6, from: at)
            guard at < text.count else { break }
            let byte = text[at]
            at += 1
            let rest = unsafe Slice(start: source + first, count: at &- 1 &- first)
            if byte == 5 {
                guard text[at] < 6 else { throw .damaged }
                if unsafe literals == nil { unsafe literals = try arena.allocate(text.count) }
                guard let literals = unsafe literals else { throw .memory }
                let end = unsafe rest.copy(to: literals + out)
                unsafe end.storeBytes(of: text[at], as: UInt8.self)
                out += rest.count + 1
                copied += rest.count + 1
                at += 1
                first = at
                continue
            }
            var piece = rest
            if copied > 0, let literals = unsafe literals {
                _ = unsafe rest.copy(to: literals + out)
                out += rest.count
                copied += rest.count
                piece = unsafe Slice(start: literals + (out - copied), count: copied)
                copied = 0
            }
            first = at
            found.pieces[variable + template] = piece
            found.bytes[template] += piece.count
            if byte == 0 {
                guard variable - Int(found.first[template]) <= BlockLimits.variablesOfTemplateMax
                else { throw .damaged }
                template += 1
                found.first[template] = UInt32(variable)
                continue
            }
            if byte == 4 {
                guard let form = TimeForm(UInt16(text[at]) | UInt16(text[at + 1]) << 8) else {
                    throw .damaged
                }
                at += 2
                first = at
                found.forms[variable] = 4 + UInt32(form.code)
                found.bytes[template] += form.bytes
            } else {
                found.forms[variable] = UInt32(byte)
            }
            variable += 1
        }
        return found
    }

    /// Reads the columns of the variables; returns their kinds.
    private mutating func columns(
        _ found: inout Templates, _ numbers: Slice, _ count: Int
    ) throws(BlockProblem) -> Flat<UInt32> {
        let kinds: Flat<UInt32> = try arena.flat(count, of: 0)
        var named = 0
        var cursor = ByteCursor(numbers.bytes)
        let variables = Int(found.first[found.first.count - 1])
        for variable in 0..<variables {
            guard let number = cursor.varint(), number <= UInt64(named) else { throw .damaged }
            if number == 0 {
                guard named < count else { throw .damaged }
                found.columns[variable] = UInt32(named)
                kinds[named] = found.forms[variable]
                named += 1
            } else {
                let column = Int(number) - 1
                guard kinds[column] == found.forms[variable] else { throw .damaged }
                found.columns[variable] = UInt32(column)
            }
        }
        guard cursor.left == 0, named == count else { throw .damaged }
        return kinds
    }

    private mutating func times(
        _ picks: Picks, _ code: UInt32, depth: Int
    ) throws(BlockProblem) -> Flat<UInt64> {
        guard let form = TimeForm(UInt16(truncatingIfNeeded: code)) else { throw .damaged }
        let numbers = try ints(picks, depth: depth)
        let range = form.range
        for index in 0..<numbers.count {
            guard range.contains(Int64(bitPattern: numbers[index])) else { throw .damaged }
        }
        return numbers
    }

    /// The size of all values.
    private func measure(
        _ chosen: Flat<UInt64>, _ found: Templates, _ kinds: Flat<UInt32>,
        _ strings: Flat<Flat<Slice>>
    ) -> Int {
        var total = 0
        for index in 0..<chosen.count {
            total &+= found.bytes[Int(truncatingIfNeeded: chosen[index])]
        }
        for column in 0..<strings.count where kinds[column] <= 3 {
            let values = strings[column]
            for index in 0..<values.count { total &+= values[index].count }
        }
        return total
    }

    /// SAFETY: `room` is for the content's bytes, with `asLines` one more for each value, and a
    /// margin.
    private mutating func write(
        _ values: Flat<Slice>, _ content: TemplateValues, to room: UnsafeMutableRawPointer,
        asLines: Bool
    ) throws(BlockProblem) {
        let (found, kinds, chosen) = (content.found, content.kinds, content.chosen)
        let (strings, times) = (content.strings, content.times)
        let steps = try steps(found, chosen, kinds, strings, times)
        // The next value of each column.
        let nextString: Flat<UnsafePointer<Slice>> = unsafe try arena.flat(strings.count)
        let nextTime: Flat<UnsafePointer<UInt64>> = unsafe try arena.flat(strings.count)
        for column in 0..<strings.count {
            unsafe nextString[column] = UnsafePointer(strings[column].base)
            unsafe nextTime[column] = UnsafePointer(times[column].base)
        }
        let (stringsBase, timesBase) = unsafe (nextString.base, nextTime.base)
        let (numbers, made) = unsafe (chosen.base, values.base)
        var printer = try TimePrinter(&arena)
        var out = unsafe room
        for index in 0..<values.count {
            let template = unsafe Int(truncatingIfNeeded: numbers[index])
            let start = unsafe out
            var step = unsafe steps.base + (Int(found.first[template]) &+ template)
            while true {
                unsafe out = step.pointee.piece.copyLoosely(to: out)
                let form = unsafe step.pointee.form
                if form == 0 { break }
                let column = unsafe Int(step.pointee.column)
                if form <= 3 {
                    unsafe out = stringsBase[column].pointee.copyLoosely(to: out)
                    unsafe stringsBase[column] += 1
                } else {
                    let number = unsafe Int64(bitPattern: timesBase[column].pointee)
                    unsafe timesBase[column] += 1
                    unsafe out = printer.print(form &- 4, number, to: out)
                }
                unsafe step += 1
            }
            unsafe made[index] = unsafe Slice(start: start, count: out - start)
            if asLines {
                unsafe out.storeBytes(of: 0x0A, as: UInt8.self)
                unsafe out += 1
            }
        }
    }

    /// The pieces and variables of all templates, in order. Throws if a column is shorter than the
    /// values require.
    private mutating func steps(
        _ found: Templates, _ chosen: Flat<UInt64>, _ kinds: Flat<UInt32>,
        _ strings: Flat<Flat<Slice>>, _ times: Flat<Flat<UInt64>>
    ) throws(BlockProblem) -> Flat<TemplateStep> {
        let count = found.bytes.count
        let rows: Flat<Int> = try arena.flat(count, of: 0)
        for index in 0..<chosen.count { rows[Int(truncatingIfNeeded: chosen[index])] &+= 1 }
        let wanted: Flat<Int> = try arena.flat(strings.count, of: 0)
        let steps: Flat<TemplateStep> = try arena.flat(found.pieces.count)
        for template in 0..<count {
            let (first, end) = (Int(found.first[template]), Int(found.first[template + 1]))
            for variable in first..<max(end, first) {
                let (column, form) = (found.columns[variable], found.forms[variable])
                wanted[Int(column)] &+= rows[template]
                steps[variable &+ template] = TemplateStep(
                    piece: found.pieces[variable &+ template], column: column, form: form)
            }
            steps[end &+ template] = TemplateStep(
                piece: found.pieces[end &+ template], column: 0, form: 0)
        }
        for column in 0..<strings.count {
            let has = kinds[column] <= 3 ? strings[column].count : times[column].count
            guard wanted[column] <= has else { throw .damaged }
        }
        return steps
    }
}

/// Text of a template, and the variable after it.
private struct TemplateStep: BitwiseCopyable {
    var piece: Slice
    var column: UInt32
    /// 0: no variable, the template ends; 1 to 3: a string; otherwise the form of a time + 4.
    var form: UInt32
}
