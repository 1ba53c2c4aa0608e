// A body that may arrive in chunks (RFC 9112 §7.1); removes the framing as the bytes pass. A secret
// split over two chunks is thus whole again before it is searched for. As lenient as clients that
// undo the framing themselves; bytes that they would refuse are not kept. Belongs to one exchange.

import CordwoodCore
import CordwoodFormats

struct ChunkedBody: ~Copyable {
    /// The host's statement about the bytes that it hands in, if the headers say "chunked".
    enum Handed {
        /// None: the bytes themselves decide.
        case unknown
        case framed
        case bare
    }

    enum ChunkVerdict: Equatable {
        case asItCame
        case bare
        case gone
    }

    private enum State { case off, size, rest, data, end, over, broken }

    private(set) var kept = GrowingBytes()
    /// The size of the chunks' contents.
    private(set) var total: UInt64 = 0
    private var state = State.off
    private var left: UInt64 = 0
    private var digits = 0
    /// Number of size lines.
    private var lines = 0
    /// The first line may consist of a size alone.
    private var isPlausible = true
    private var isExtension = false
    private var hasTrailer = false
    private var isTrailerOver = false
    private var trailerBytes = 0
    private var isStopped = false

    mutating func begin(_ isOn: Bool) { state = isOn ? .size : .off }

    mutating func clear(keeping bytesMax: Int) {
        kept.clear(keeping: bytesMax)
        (total, left, digits, lines) = (0, 0, 0, 0)
        state = .off
        (isPlausible, isExtension, hasTrailer, isStopped) = (true, false, false, false)
        (isTrailerOver, trailerBytes) = (false, 0)
    }

    /// Bytes are missing: later bytes cannot be parsed.
    mutating func stop() { isStopped = true }

    /// No later bytes could still be kept.
    var isCut: Bool { total > UInt64(kept.count) || state != .over || isStopped }

    mutating func add(_ bytes: ByteText, bytesMax: Int) {
        guard state != .off, !isStopped else { return }
        var at = 0
        while at < bytes.count {
            switch state {
            case .data:
                let part = bytes.slice(at, at &+ Int(clamping: min(left, UInt64(bytes.count))))
                kept.append(part.slice(0, bytesMax &- kept.count))
                total &+= UInt64(part.count)
                left &-= UInt64(part.count)
                at &+= part.count
                if left == 0 { state = .end }
            case .off, .broken: return
            case .over:
                trailer(bytes[at])
                at &+= 1
            default:
                step(bytes[at])
                at &+= 1
            }
        }
    }

    /// After the last chunk: an empty line, or a field.
    private mutating func trailer(_ byte: UInt8) {
        guard !isTrailerOver else { return }
        let isEnd = byte == 0x0A || byte == 0x0D
        if byte == UInt8(ascii: ":") || isEnd && trailerBytes == 0 { hasTrailer = true }
        isTrailerOver = hasTrailer || isEnd
        trailerBytes &+= 1
    }

    /// Handles one byte of the framing.
    private mutating func step(_ byte: UInt8) {
        switch state {
        case .end:
            if byte == 0x0A { state = .size } else if byte != 0x0D { state = .broken }
        case .size:
            let digit = ASCII.hex(byte)
            if digit < 16, left >> 60 == 0 {
                left = left << 4 | UInt64(digit)
                digits &+= 1
            } else if digits == 0, byte == 0x20 || byte == 0x09 {
                break
            } else if digit < 16 || digits == 0 {
                state = .broken
            } else {
                state = .rest
                isExtension = false
                step(byte)
            }
        case .rest:
            if byte == UInt8(ascii: ";") { isExtension = true }
            if lines == 0, !isExtension, !ASCII.isBlank(byte) { isPlausible = false }
            guard byte == 0x0A else { return }
            lines &+= 1
            digits = 0
            state = left == 0 ? .over : .data
        default: break
        }
    }

    func verdict(_ handed: Handed) -> ChunkVerdict {
        guard state != .off, handed != .bare else { return .asItCame }
        if handed == .unknown {
            // The host has removed the framing: the body starts with no size, or consists of one.
            guard isPlausible, lines > 0, total > 0 || hasTrailer else { return .asItCame }
        }
        return state == .broken ? .gone : .bare
    }
}
