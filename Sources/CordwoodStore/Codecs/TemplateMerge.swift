// Merges mined templates that differ only in words and have few rows each: the words that differ
// most become variables. No line is read again: a row's word is that of its mined template. Part of
// one encoder.

import CordwoodCore

/// A part of a mined template's static text, or one of its variables.
private struct Token: BitwiseCopyable {
    static let delimiters: UInt8 = 0
    static let word: UInt8 = 1
    static let variable: UInt8 = 2

    var bytes: Slice
    var kind: UInt8
}

/// The tokens of the mined templates of one group.
private struct Tokens {
    var tokens: Growing<Token>
    /// The first token of each member. One more entry: the end.
    var first: Growing<Int>
    var marks: LineMarks

    init(_ arena: inout Arena) throws(BlockProblem) {
        tokens = try Growing(&arena)
        first = try Growing(&arena)
        marks = try LineMarks(&arena)
    }
}

extension BlockEncoder {
    /// Fewer templates are left as they are.
    private static let groupLeast = 4
    /// The average number of rows that a template should have.
    private static let rowsWanted = 8
    /// Words of a group's templates, times words of one: the limit on the cost of merging.
    private static let mergeMax = 1 << 22

    mutating func merged(_ miner: TemplateMiner) throws(BlockProblem) -> FinalTemplates {
        let count = miner.templates.count
        var found = try FinalTemplates(mined: count, pieces: miner.pieces.count, &arena)
        let skeletons = try skeletons(of: miner)
        let order: Flat<Int> = try arena.flat(count)
        for index in 0..<count { order[index] = index }
        order.sort { one, other in
            let (first, second) = (skeletons[one], skeletons[other])
            return first != second ? first < second : one < other
        }
        var tokens = try Tokens(&arena)
        var start = 0
        while start < count {
            var end = start + 1
            while end < count, skeletons[order[end]] == skeletons[order[start]] { end += 1 }
            try group(order, start, end, &tokens, miner, &found)
            start = end
        }
        return found
    }

    /// For each mined template, a hash of its delimiters, keys and variables; all words count as
    /// one.
    private mutating func skeletons(of miner: TemplateMiner) throws(BlockProblem) -> Flat<UInt64> {
        var marks = try LineMarks(&arena)
        let found: Flat<UInt64> = try arena.flat(miner.templates.count)
        for index in 0..<found.count {
            let template = miner.templates[index]
            var skeleton = seed
            let line = miner.line(of: template)
            try marks.set(line, &arena)
            for number in 0...template.variables {
                let piece = miner.pieces[template.firstPiece + number]
                let start = line.place(of: piece)
                var at = 0
                while at < piece.count {
                    let token = Self.token(of: piece, &at, marks, from: start)
                    skeleton =
                        token.kind == Token.word
                        ? SliceTable.mixed(skeleton ^ 7, 0xD6E8_FEB8_6659_FD93)
                        : SliceTable.hash(token.bytes, skeleton)
                }
                guard number < template.variables else { break }
                let kind = miner.kinds[template.firstKind + number]
                skeleton = SliceTable.mixed(
                    skeleton ^ (UInt64(kind) + 1_000), 0xA076_1D64_78BD_642F)
            }
            found[index] = skeleton
        }
        return found
    }

    /// The token that begins at `at`, which then moves to its end. `marks`: of the text that
    /// contains the piece from `place` on.
    @inline(__always)
    private static func token(
        of piece: Slice, _ at: inout Int, _ marks: LineMarks, from place: Int = 0
    ) -> Token {
        let start = at
        let first = place &+ at
        let isWord = marks.isWord(first)
        let end = isWord ? marks.endOfWords(first) : marks.startOfWords(behind: first)
        at = min(end &- place, piece.count)
        let bytes = piece.part(start, at - start)
        let isKey = isWord && piece[at] == 0x22 && piece[at + 1] == 0x3A
        return Token(bytes: bytes, kind: isWord && !isKey ? Token.word : Token.delimiters)
    }

    /// Fills `found` with the tokens of some templates; returns the number of words of the first
    /// one.
    private mutating func tokenize(
        _ templates: Flat<Int>, _ miner: TemplateMiner, _ found: inout Tokens
    ) throws(BlockProblem) -> Int {
        found.tokens.removeAll()
        found.first.removeAll()
        for index in 0..<templates.count {
            try found.first.append(found.tokens.count, &arena)
            let template = miner.templates[templates[index]]
            for number in 0...template.variables {
                let piece = miner.pieces[template.firstPiece + number]
                try found.marks.set(piece, &arena)
                var at = 0
                while at < piece.count {
                    try found.tokens.append(Self.token(of: piece, &at, found.marks), &arena)
                }
                guard number < template.variables else { break }
                try found.tokens.append(
                    Token(bytes: piece.part(piece.count, 0), kind: Token.variable), &arena)
            }
        }
        try found.first.append(found.tokens.count, &arena)
        var words = 0
        for index in 0..<found.first[1] where found.tokens[index].kind == Token.word { words += 1 }
        return words
    }

    /// Templates of one skeleton: order[start ..< end].
    private mutating func group(
        _ order: Flat<Int>, _ start: Int, _ end: Int, _ tokens: inout Tokens,
        _ miner: TemplateMiner, _ found: inout FinalTemplates
    ) throws(BlockProblem) {
        let count = end - start
        var rows = 0
        for index in start..<end { rows += miner.templates[order[index]].rows }
        var words = 0
        let members: Flat<Int> = try arena.flat(count)
        if count >= Self.groupLeast, count * Self.rowsWanted > rows {
            for index in 0..<count { members[index] = order[start + index] }
            words = try tokenize(members, miner, &tokens)
        }
        guard words > 0, count * words * words <= Self.mergeMax,
            (0..<count).allSatisfy({ miner.hasSameKinds(members[0], members[$0]) })
        else {
            for index in start..<end { try keep(order[index], miner, &found) }
            return
        }
        // The hash of each member's word at each place.
        let hashes: Flat<UInt64> = try arena.flat(count * words)
        for member in 0..<count {
            var word = 0
            for index in tokens.first[member]..<tokens.first[member + 1]
            where tokens.tokens[index].kind == Token.word && word < words {
                hashes[member * words + word] = SliceTable.hash(tokens.tokens[index].bytes, seed)
                word += 1
            }
        }
        let (varies, classes) = try generalized(hashes, count, words, rows)
        // Members of one class differ only in the words that vary.
        let sorted: Flat<Int> = try arena.flat(count)
        for index in 0..<count { sorted[index] = index }
        sorted.sort { one, other in
            classes[one] != classes[other] ? classes[one] < classes[other] : one < other
        }
        var index = 0
        while index < count {
            var last = index + 1
            while last < count, classes[sorted[last]] == classes[sorted[index]] { last += 1 }
            if last == index + 1 {
                try keep(members[sorted[index]], miner, &found)
            } else {
                try merge(members, sorted, index..<last, varies, tokens, miner, &found)
            }
            index = last
        }
    }

    /// Lets the word with the most different values vary until few enough templates are left.
    private mutating func generalized(
        _ hashes: Flat<UInt64>, _ members: Int, _ words: Int, _ rows: Int
    ) throws(BlockProblem) -> (varies: Flat<Bool>, classes: Flat<UInt64>) {
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

    /// Keeps a mined template as it is.
    private mutating func keep(
        _ number: Int, _ miner: TemplateMiner, _ found: inout FinalTemplates
    ) throws(BlockProblem) {
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

    /// One template of the members sorted[range].
    private mutating func merge(
        _ members: Flat<Int>, _ sorted: Flat<Int>, _ range: Range<Int>,
        _ varies: Flat<Bool>, _ tokens: Tokens, _ miner: TemplateMiner,
        _ found: inout FinalTemplates
    ) throws(BlockProblem) {
        var rows = 0
        for index in range {
            let member = sorted[index]
            let template = members[member]
            rows += miner.templates[template].rows
            found.finals[template] = found.templates.count
            found.firstWord[template] = found.words.count
            for token in tokens.first[member]..<tokens.first[member + 1]
            where tokens.tokens[token].kind == Token.word {
                try found.words.append(tokens.tokens[token].bytes, &arena)
            }
        }
        let member = sorted[range.lowerBound]
        let first = members[member]
        let mined = miner.templates[first]
        let firstPiece = found.pieces.count
        let firstVariable = found.kinds.count
        var piece = 0
        var from = 0
        var at = 0
        var word = 0
        for index in tokens.first[member]..<tokens.first[member + 1] {
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
