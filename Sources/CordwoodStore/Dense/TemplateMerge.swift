// Makes one template of mined ones that differ in words only and have few rows each: the words that
// differ most become variables. No line is read again: a row's word is that of its mined template.
// Part of one encoder.

import CordwoodCore

/// A part of a mined template's static text, or one of its variables.
private struct Token: BitwiseCopyable {
    static let delimiters: UInt8 = 0
    static let word: UInt8 = 1
    static let variable: UInt8 = 2

    var bytes: Slice
    var kind: UInt8
}

/// All tokens of all mined templates.
private struct Tokens {
    var tokens: Growing<Token>
    /// Of each template: its first token. One entry more: the end.
    var first: Flat<Int>
    /// Delimiters, keys and variables; words count as one.
    var skeleton: Flat<UInt64>
}

extension DenseEncoder {
    /// Fewer templates are left as they are.
    private static let groupLeast = 4
    /// Rows that a template should have on average.
    private static let rowsWanted = 8
    /// Words of a group's templates, times words of one: what merging may cost.
    private static let mergeMax = 1 << 22

    mutating func merged(_ miner: TemplateMiner) throws(DenseProblem) -> FinalTemplates {
        let count = miner.templates.count
        var found = try FinalTemplates(mined: count, pieces: miner.pieces.count, &arena)
        let tokens = try tokens(of: miner)
        let order: Flat<Int> = try arena.flat(count)
        for index in 0..<count { order[index] = index }
        order.sort { one, other in
            let (first, second) = (tokens.skeleton[one], tokens.skeleton[other])
            return first != second ? first < second : one < other
        }
        var start = 0
        while start < count {
            var end = start + 1
            while end < count, tokens.skeleton[order[end]] == tokens.skeleton[order[start]] {
                end += 1
            }
            try group(order, start, end, tokens, miner, &found)
            start = end
        }
        return found
    }

    private mutating func tokens(of miner: TemplateMiner) throws(DenseProblem) -> Tokens {
        let count = miner.templates.count
        var bytes = 0
        for index in 0..<miner.pieces.count { bytes &+= miner.pieces[index].count }
        var marks = try LineMarks(&arena)
        var found = Tokens(
            tokens: try Growing(&arena, expected: miner.pieces.count * 2 + bytes / 5),
            first: try arena.flat(count + 1),
            skeleton: try arena.flat(count))
        for index in 0..<count {
            let template = miner.templates[index]
            found.first[index] = found.tokens.count
            var skeleton = seed
            for number in 0...template.variables {
                let piece = miner.pieces[template.firstPiece + number]
                try marks.set(piece, &arena)
                var at = 0
                while at < piece.count {
                    let start = at
                    let isWord = marks.isWord(at)
                    at = isWord ? marks.endOfWords(at) : marks.startOfWords(behind: at)
                    let isKey = piece[at] == 0x22 && piece[at + 1] == 0x3A
                    let bytes = piece.part(start, at - start)
                    let varies = isWord && !isKey
                    try found.tokens.append(
                        Token(bytes: bytes, kind: varies ? Token.word : Token.delimiters), &arena)
                    skeleton =
                        varies
                        ? SliceTable.mixed(skeleton ^ 7, 0xD6E8_FEB8_6659_FD93)
                        : SliceTable.hash(bytes, skeleton)
                }
                guard number < template.variables else { break }
                let kind = miner.kinds[template.firstKind + number]
                try found.tokens.append(
                    Token(bytes: piece.part(piece.count, 0), kind: Token.variable), &arena)
                skeleton = SliceTable.mixed(
                    skeleton ^ (UInt64(kind) + 1_000), 0xA076_1D64_78BD_642F)
            }
            found.skeleton[index] = skeleton
        }
        found.first[count] = found.tokens.count
        return found
    }

    /// Templates of one skeleton: order[start ..< end].
    private mutating func group(
        _ order: Flat<Int>, _ start: Int, _ end: Int, _ tokens: Tokens, _ miner: TemplateMiner,
        _ found: inout FinalTemplates
    ) throws(DenseProblem) {
        let members = end - start
        var rows = 0
        for index in start..<end { rows += miner.templates[order[index]].rows }
        var words = 0
        for index in tokens.first[order[start]]..<tokens.first[order[start] + 1]
        where tokens.tokens[index].kind == Token.word {
            words += 1
        }
        guard members >= Self.groupLeast, members * Self.rowsWanted > rows, words > 0,
            members * words * words <= Self.mergeMax,
            (start..<end).allSatisfy({ miner.hasSameKinds(order[start], order[$0]) })
        else {
            for index in start..<end { try keep(order[index], miner, &found) }
            return
        }
        // The hash of each member's word at each place.
        let hashes: Flat<UInt64> = try arena.flat(members * words)
        for member in 0..<members {
            var word = 0
            let template = order[start + member]
            for index in tokens.first[template]..<tokens.first[template + 1]
            where tokens.tokens[index].kind == Token.word && word < words {
                hashes[member * words + word] = SliceTable.hash(tokens.tokens[index].bytes, seed)
                word += 1
            }
        }
        let (varies, classes) = try generalized(hashes, members, words, rows)
        // Members of one class are alike but for the words that vary.
        let sorted: Flat<Int> = try arena.flat(members)
        for index in 0..<members { sorted[index] = index }
        sorted.sort { one, other in
            classes[one] != classes[other] ? classes[one] < classes[other] : one < other
        }
        var index = 0
        while index < members {
            var last = index + 1
            while last < members, classes[sorted[last]] == classes[sorted[index]] { last += 1 }
            if last == index + 1 {
                try keep(order[start + sorted[index]], miner, &found)
            } else {
                try merge(order, start, sorted, index..<last, varies, tokens, miner, &found)
            }
            index = last
        }
    }

    /// Lets the word with the most different values vary until few enough templates are left.
    private mutating func generalized(
        _ hashes: Flat<UInt64>, _ members: Int, _ words: Int, _ rows: Int
    ) throws(DenseProblem) -> (varies: Flat<Bool>, classes: Flat<UInt64>) {
        let varies: Flat<Bool> = try arena.flat(words, of: false)
        let distinct: Flat<Int> = try arena.flat(words)
        let sorted: Flat<UInt64> = try arena.flat(members)
        let classes: Flat<UInt64> = try arena.flat(members)
        func count() -> Int {
            sorted.sort { $0 < $1 }
            var found = 1
            for index in 1..<members where sorted[index] != sorted[index - 1] { found += 1 }
            return found
        }
        for word in 0..<words {
            for member in 0..<members { sorted[member] = hashes[member * words + word] }
            distinct[word] = count()
        }
        while true {
            for member in 0..<members {
                var hash = seed
                for word in 0..<words where !varies[word] {
                    hash = SliceTable.mixed(
                        hash ^ hashes[member * words + word], 0xD6E8_FEB8_6659_FD93)
                }
                classes[member] = hash
                sorted[member] = hash
            }
            let left = count()
            var best = -1
            for word in 0..<words where !varies[word] && distinct[word] > 2 {
                if best < 0 || distinct[word] > distinct[best] { best = word }
            }
            if left * Self.rowsWanted <= rows || best < 0 || left < 3 { return (varies, classes) }
            varies[best] = true
        }
    }

    /// A mined template as it is.
    private mutating func keep(
        _ number: Int, _ miner: TemplateMiner, _ found: inout FinalTemplates
    ) throws(DenseProblem) {
        let template = miner.templates[number]
        found.finals[number] = found.templates.count
        try found.templates.append(
            FinalTemplates.Template(
                firstPiece: found.pieces.count, firstVariable: found.kinds.count,
                variables: template.variables, rows: template.rows), &arena)
        for index in 0...template.variables {
            try found.pieces.append(miner.pieces[template.firstPiece + index], &arena)
        }
        for index in 0..<template.variables {
            try found.kinds.append(miner.kinds[template.firstKind + index], &arena)
            try found.sources.append(index, &arena)
        }
    }

    /// One template of all members sorted[range].
    private mutating func merge(
        _ order: Flat<Int>, _ start: Int, _ sorted: Flat<Int>, _ range: Range<Int>,
        _ varies: Flat<Bool>, _ tokens: Tokens, _ miner: TemplateMiner,
        _ found: inout FinalTemplates
    ) throws(DenseProblem) {
        var rows = 0
        for index in range {
            let template = order[start + sorted[index]]
            rows += miner.templates[template].rows
            found.finals[template] = found.templates.count
            found.firstWord[template] = found.words.count
            for token in tokens.first[template]..<tokens.first[template + 1]
            where tokens.tokens[token].kind == Token.word {
                try found.words.append(tokens.tokens[token].bytes, &arena)
            }
        }
        let first = order[start + sorted[range.lowerBound]]
        let mined = miner.templates[first]
        let firstPiece = found.pieces.count
        let firstVariable = found.kinds.count
        var piece = 0
        var from = 0
        var at = 0
        var word = 0
        for index in tokens.first[first]..<tokens.first[first + 1] {
            let token = tokens.tokens[index]
            let text = miner.pieces[mined.firstPiece + piece]
            if token.kind == Token.variable {
                try found.pieces.append(text.part(from, at - from), &arena)
                try found.kinds.append(miner.kinds[mined.firstKind + piece], &arena)
                try found.sources.append(piece, &arena)
                piece += 1
                from = 0
                at = 0
                continue
            }
            if token.kind == Token.word {
                if varies[word] {
                    try found.pieces.append(text.part(from, at - from), &arena)
                    try found.kinds.append(VariableKind.word, &arena)
                    try found.sources.append(-1 - word, &arena)
                    from = at + token.bytes.count
                }
                word += 1
            }
            at += token.bytes.count
        }
        let text = miner.pieces[mined.firstPiece + piece]
        try found.pieces.append(text.part(from, text.count - from), &arena)
        try found.templates.append(
            FinalTemplates.Template(
                firstPiece: firstPiece, firstVariable: firstVariable,
                variables: found.kinds.count - firstVariable, rows: rows), &arena)
    }
}
