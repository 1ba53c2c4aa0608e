// The header by which captures recognise uploads that the host's own transport sends, whichever
// thread or process sends them. Its value is made of the store's random id, so that other processes
// on the store know it and strangers do not. The values that count are words of the process: those
// of every store that it opened. Any thread; survives a fork.
// SAFETY: the words lie in static memory.

import CShims
import CordwoodCore
import CordwoodFormats

package struct UploadMark: Equatable, Sendable {
    package static let header = "Cordwood-Upload"
    /// Hexadecimal digits of its value.
    package static let digits = 16

    /// Not 0.
    package let word: UInt64

    package init(_ word: UInt64) { self.word = word | 1 }

    init(_ store: StoreFile) {
        var word: UInt64 = 0
        // Neither half can be read from the result.
        for half in [store.id.prefix(16), store.id.suffix(16)] {
            word ^= UInt64(half, radix: 16) ?? 0
            word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
            word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
            word ^= word >> 31
        }
        self.init(word)
    }

    /// nil: the store's file cannot be read.
    package init?(storeDirectory: FilePath) {
        guard let file = try? StoreFile.read(storeDirectory: storeDirectory) else { return nil }
        self.init(file)
    }

    package var value: String { Hex.text(word) }

    // MARK: The marks of this process

    private static var words: UnsafeMutableRawPointer { unsafe cwi_upload_marks() }
    private static let wordsMask = Int(CWI_UPLOAD_MARKS) - 1
    /// Of more stores with neighbouring marks, the last ones count.
    private static let triesMax = 8

    /// Requests that carry it are uploads from now on.
    package func accept() {
        for index in 0..<UploadMark.triesMax {
            let slot = unsafe slot(index)
            // ORDER: relaxed, all. A word by itself, which is never taken back (A33).
            let found = unsafe cwa_load_relaxed_u64(slot)
            if found == word || found == 0 && (unsafe cwa_cas_u64(slot, 0, word)) { return }
        }
        unsafe cwa_store_relaxed_u64(slot(0), word)
    }

    package var isAccepted: Bool {
        // ORDER: relaxed. As above.
        (0..<UploadMark.triesMax).contains { unsafe cwa_load_relaxed_u64(slot($0)) == word }
    }

    private func slot(_ index: Int) -> UnsafeMutableRawPointer {
        let place = (Int(truncatingIfNeeded: word >> 1) &+ index) & UploadMark.wordsMask
        return unsafe UploadMark.words + place * 8
    }
}
