// The start line and headers of one HTTP/1.1 message, collected as bytes and read as lines. libcurl
// shows heads of HTTP/2 and 3 in the same form. Bytes beyond the limits are dropped, and `isCut`
// reports that. Belongs to one transfer, one thread at a time.
// SAFETY: a HeaderList is memory from malloc, freed once; its strings lie in the head's bytes and
// hold until the head changes.

import CCordwood
import CShims
import CordwoodCore
import CordwoodFormats

struct MessageHead: ~Copyable {
    /// Beyond it, the body could be packed or chunked without our knowing.
    static let bytesMax = 1 << 20
    /// The memory that a head keeps for the next hop.
    private static let keptBytesMax = 32 << 10

    private var bytes = GrowingBytes()
    /// A part of it is missing.
    private(set) var isCut = false

    var text: ByteText { bytes.text }
    var isEmpty: Bool { bytes.count == 0 && !isCut }

    mutating func clear() {
        bytes.clear(keeping: MessageHead.keptBytesMax)
        isCut = false
    }

    mutating func add(_ piece: ByteText) {
        guard !isCut, piece.count <= MessageHead.bytesMax &- bytes.count else {
            isCut = true
            return
        }
        bytes.append(piece)
        if bytes.failed { isCut = true }
    }

    mutating func markCut() { isCut = true }

    /// `GET / HTTP/1.1`, `HTTP/1.1 200 OK`.
    var startLine: ByteText {
        let line = text.slice(0, text.next(ASCII.lineFeed, from: 0))
        return line[line.count &- 1] == ASCII.carriageReturn ? line.slice(0, line.count &- 1) : line
    }

    /// The lines after the start line. Without memory it is empty, which cuts the head.
    mutating func headers() -> HeaderList {
        let text = text
        var linesMax = 0
        var at = text.next(ASCII.lineFeed, from: 0)
        while at < text.count, linesMax <= HTTPHeaders.countMax {
            linesMax &+= 1
            at = text.next(ASCII.lineFeed, from: at &+ 1)
        }
        if linesMax > HTTPHeaders.countMax {
            linesMax = HTTPHeaders.countMax
            isCut = true
        }
        guard text.count > 0 else { return HeaderList(room: 0) }
        var list = HeaderList(room: linesMax &+ 1)
        guard list.hasRoom else {
            isCut = true
            return list
        }
        list.read(text)
        return list
    }
}

/// Headers in the form that the calls of http.h take.
@safe struct HeaderList: ~Copyable {
    private let start: UnsafeMutablePointer<cw_http_header>?
    private let room: Int
    private(set) var count = 0

    init(room: Int) {
        let bytes = unsafe room &* MemoryLayout<cw_http_header>.stride
        let memory = unsafe room > 0 ? Memory.allocate(bytes) : nil
        unsafe start = memory?.assumingMemoryBound(to: cw_http_header.self)
        self.room = unsafe memory == nil ? 0 : room
    }

    deinit { unsafe Memory.free(start) }

    var hasRoom: Bool { count < room }

    var pointer: UnsafePointer<cw_http_header>? {
        unsafe start.map { unsafe UnsafePointer($0) }
    }

    /// True if a header of that name exists; `name` in lower case.
    func has(_ name: StaticString) -> Bool {
        guard let start = unsafe start else { return false }
        for i in 0..<count where unsafe ByteText(start[i].name).equals(name) { return true }
        return false
    }

    /// A line that begins with a blank belongs to the value before it.
    fileprivate mutating func read(_ head: ByteText) {
        var at = head.next(ASCII.lineFeed, from: 0) &+ 1
        /// The place of the last line's value; nil: that line was not a header.
        var open: Int?
        while at < head.count {
            let lineEnd = head.next(ASCII.lineFeed, from: at)
            var end = lineEnd
            while end > at, HeaderList.isBlank(head[end &- 1]) { end &-= 1 }
            if lineEnd > at, head[at] == 0x20 || head[at] == 0x09 {
                if let value = open, end > at { extend(head.slice(value, end)) }
            } else {
                let line = head.slice(at, end)
                let colon = line.next(UInt8(ascii: ":"), from: 0)
                open = nil
                if colon > 0, colon < line.count, hasRoom {
                    var value = colon &+ 1
                    while value < line.count, HeaderList.isBlank(line[value]) { value &+= 1 }
                    open = at &+ value
                    append(line.slice(0, colon), line.slice(value, line.count))
                }
            }
            at = lineEnd &+ 1
        }
    }

    private static func isBlank(_ byte: UInt8) -> Bool {
        byte == 0x20 || byte == 0x09 || byte == ASCII.carriageReturn
    }

    private mutating func append(_ name: ByteText, _ value: ByteText) {
        guard hasRoom, let start = unsafe start else { return }
        unsafe (start + count).initialize(
            to: cw_http_header(name: cw_str(name), value: cw_str(value)))
        count &+= 1
    }

    private func extend(_ value: ByteText) {
        guard count > 0, let start = unsafe start else { return }
        unsafe start[count &- 1].value = unsafe cw_str(value)
    }
}

extension ASCII {
    static let lineFeed: UInt8 = 0x0A
    static let carriageReturn: UInt8 = 0x0D
}

extension cw_str {
    /// Valid as long as the text.
    init(_ text: ByteText) {
        let start = unsafe UnsafeRawPointer(text.start)?.assumingMemoryBound(to: CChar.self)
        unsafe self.init(data: start, length: text.count)
    }
}
