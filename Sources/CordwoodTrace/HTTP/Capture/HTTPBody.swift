// One body of an exchange while it passes: its first bytes, unchanged, and its size. Nothing looks
// at the bytes before the exchange ends, so that a secret in two pieces is whole.

import CordwoodCore
import CordwoodFormats

struct HTTPBody: ~Copyable {
    private(set) var kept = GrowingBytes()
    /// All bytes, kept or not.
    private(set) var total: UInt64 = 0
    /// The host reported bytes that it cannot show.
    private(set) var hasHidden = false
    private(set) var isThere = false
    /// The body without chunk framing, if the headers announce it.
    private var chunked = ChunkedBody()

    /// Applies the message's headers, also to the bytes kept so far.
    mutating func expectChunks(_ isOn: Bool, bytesMax: Int) {
        chunked.clear(keeping: bytesMax)
        chunked.begin(isOn)
        guard isOn, total > 0 else { return }
        chunked.add(kept.text, bytesMax: bytesMax)
        if isCut { chunked.stop() }
    }

    mutating func add(_ bytes: ByteText, bytesMax: Int) {
        isThere = true
        total &+= UInt64(bytes.count)
        chunked.add(bytes, bytesMax: bytesMax)
        let room = bytesMax &- kept.count
        // After hidden bytes the rest would be in the wrong place.
        guard room > 0, !hasHidden else { return }
        kept.append(bytes.count <= room ? bytes : bytes.slice(0, room))
    }

    mutating func addHidden(_ count: Int) {
        isThere = true
        hasHidden = true
        chunked.stop()
        total &+= UInt64(max(0, count))
    }

    var isCut: Bool { total > UInt64(kept.count) }

    mutating func clear(keeping bytesMax: Int) {
        kept.clear(keeping: bytesMax)
        chunked.clear(keeping: bytesMax)
        total = 0
        hasHidden = false
        isThere = false
    }

    /// The kept bytes, decoded.
    struct Plain {
        /// Valid while the body and the buffer stay unchanged.
        var text: ByteText
        var isCut: Bool
        /// The total size without framing; the received size if the framing could not be undone.
        var size: UInt64
        var isHidden: Bool
        var note = Note.none
    }

    enum Note: Equatable {
        case none
        case unpacked
        case notKept([UInt8])
    }

    /// Undoes the content coding, into `room` if there is one. A body with an unknown coding is not
    /// kept.
    func plain(
        coding: ByteText, _ handed: ChunkedBody.Handed, bytesMax: Int, _ room: inout GrowingBytes
    ) -> Plain {
        var result = bare(handed)
        guard coding.count > 0 else { return result }
        return undo(coding, bytesMax: bytesMax, &room, &result) ?? result
    }

    @inline(__always)
    private func bare(_ handed: ChunkedBody.Handed) -> Plain {
        switch chunked.verdict(handed) {
        case .asItCame: Plain(text: kept.text, isCut: isCut, size: total, isHidden: hasHidden)
        case .bare:
            Plain(
                text: chunked.kept.text, isCut: chunked.isCut, size: chunked.total,
                isHidden: hasHidden)
        case .gone: Plain(text: ByteText.empty, isCut: true, size: total, isHidden: true)
        }
    }

    /// nil: `result` is valid, and unpacked if it was packed.
    private func undo(
        _ coding: ByteText, bytesMax: Int, _ room: inout GrowingBytes, _ result: inout Plain
    ) -> Plain? {
        let words = HTTPBody.words(coding)
        guard let last = words.last else { return nil }
        guard words.count == 1, let known = ContentCoding(word: last) else {
            // A host that hands out unpacked bodies leaves the header unchanged.
            let isText = unsafe ContentCoding.isText(result.text.raw)
            return isText && result.text.count > 0
                ? result : HTTPBody.notKept(coding.array, of: result)
        }
        let isPacked = unsafe known.matches(result.text.raw)
        let isGone = isPacked && !unpack(known, bytesMax: bytesMax, &room, &result)
        return isGone ? HTTPBody.notKept(last, of: result) : nil
    }

    private static func notKept(_ what: [UInt8], of body: Plain) -> Plain {
        Plain(
            text: ByteText.empty, isCut: true, size: body.size, isHidden: body.isHidden,
            note: .notKept(Array(what.prefix(64))))
    }

    private func unpack(
        _ coding: ContentCoding, bytesMax: Int, _ room: inout GrowingBytes, _ result: inout Plain
    ) -> Bool {
        room.removeAll()
        let ending = unsafe coding.unpack(result.text.raw) { piece in
            let free = bytesMax &- room.count
            let text = unsafe ByteText(piece)
            room.append(text.slice(0, free))
            return text.count <= free
        }
        switch ending {
        case .failed: return false
        case .cut: result.isCut = true
        case .whole: break
        }
        result.text = room.text
        result.note = .unpacked
        return true
    }

    /// The codings except `identity`, in lower case.
    private static func words(_ list: ByteText) -> [[UInt8]] {
        var words: [[UInt8]] = []
        var at = 0
        while at < list.count {
            let end = list.next(UInt8(ascii: ","), from: at)
            let word = list.slice(at, end).trimmed
            at = end &+ 1
            if word.count > 0, !word.equals("identity") {
                words.append(word.array.map { ASCII.lower($0) })
            }
        }
        return words
    }
}
