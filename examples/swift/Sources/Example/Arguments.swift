// The example's command line, as described in examples/README.md.
// Pure; an invalid one ends the program with the usage.

import Glibc

struct Arguments {
    var store = ""
    var input = ""
    var kept: String?
    var threads = 4
    var repeats = 1
    var progress = false

    init(_ words: [String]) {
        guard words.count >= 2 else {
            fail("usage: STORE INPUT_FILE [--threads N] [--repeat R] [--kept FILE] [--progress]")
        }
        store = words[0]
        input = words[1]
        var rest = words.dropFirst(2)
        while let word = rest.popFirst() {
            switch word {
            case "--progress": progress = true
            case "--threads": threads = number(rest.popFirst(), for: word)
            case "--repeat": repeats = number(rest.popFirst(), for: word)
            case "--kept": kept = rest.popFirst()
            default: fail("\(word): not known")
            }
        }
    }
}

private func number(_ word: String?, for option: String) -> Int {
    guard let word, let value = Int(word), (1...1_000_000).contains(value) else {
        fail("\(option): a number from 1")
    }
    return value
}

/// Prints on stderr.
func say(_ text: String) {
    var text = text
    text.withUTF8 { _ = Glibc.write(2, $0.baseAddress, $0.count) }
}

func fail(_ why: String) -> Never {
    say(why + "\n")
    exit(1)
}
