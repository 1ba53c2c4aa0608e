// Memory of one block's columns while they are made or read: an arena that is emptied after each
// block, flat columns in it, and slices of bytes. One encoder or decoder owns an arena; one thread
// at a time.
// SAFETY: a column has room for its elements, and for at least one; an index outside selects the
// first, so damage never leaves the column. Columns and slices are used only until the arena is
// released to a mark before them, or the bytes behind them are freed.

import CordwoodCore

enum BlockProblem: Error {
    case memory
    /// Read: the block breaks a rule of FORMAT §11.4, or of §11.6 to §11.10.
    case damaged
    /// Written: the columns exceed a limit, or a section does not parse.
    case unfit
}

/// A view of bytes that lie elsewhere.
@safe struct Slice: BitwiseCopyable {
    private(set) var start: UnsafeRawPointer?
    private(set) var count: Int

    @safe init(_ bytes: UnsafeRawBufferPointer) {
        unsafe start = bytes.baseAddress
        count = bytes.count
    }

    init(start: UnsafeRawPointer, count: Int) {
        unsafe self.start = start
        self.count = count
    }

    /// No bytes: `count` holds the number.
    init(number: Int64) {
        unsafe start = nil
        count = Int(number)
    }

    @safe var bytes: UnsafeRawBufferPointer {
        unsafe UnsafeRawBufferPointer(start: start, count: count)
    }

    /// Returns 0 outside.
    @inline(__always) subscript(_ index: Int) -> UInt8 {
        guard UInt(bitPattern: index) < UInt(bitPattern: count), let start = unsafe start else {
            return 0
        }
        return unsafe start.loadUnaligned(fromByteOffset: index, as: UInt8.self)
    }

    /// Cut to the bytes that exist.
    @inline(__always) func part(_ from: Int, _ wanted: Int) -> Slice {
        let first = min(max(from, 0), count)
        let size = min(max(wanted, 0), count &- first)
        guard let start = unsafe start else { return self }
        return unsafe Slice(start: start + first, count: size)
    }

    /// The offset of a part of these bytes.
    @inline(__always) func place(of part: Slice) -> Int {
        guard let start = unsafe start, let other = unsafe part.start else { return 0 }
        return unsafe min(max(other - start, 0), count)
    }

    @inline(__always) func isSame(_ other: Slice) -> Bool {
        guard count == other.count else { return false }
        guard count > 0, let start = unsafe start, let second = unsafe other.start else {
            return true
        }
        if count <= Self.blockBytes { return unsafe Self.isSameShort(start, second, count) }
        if count > Self.blocksMost { return unsafe Memory.isSame(start, second, count) }
        // Whole blocks, and a last one that may overlap the one before it.
        let rest = count &- Self.blockBytes
        var at = 0
        while at < rest {
            guard unsafe Self.isSameBlock(start + at, second + at) else { return false }
            at &+= Self.blockBytes
        }
        return unsafe Self.isSameBlock(start + rest, second + rest)
    }

    /// 16 bytes.
    @inline(__always) private static func isSameBlock(
        _ one: UnsafeRawPointer, _ other: UnsafeRawPointer
    ) -> Bool {
        let first = unsafe one.loadUnaligned(as: UInt64.self) ^ other.loadUnaligned(as: UInt64.self)
        let last =
            unsafe (one + 8).loadUnaligned(as: UInt64.self)
            ^ (other + 8).loadUnaligned(as: UInt64.self)
        return first | last == 0
    }

    /// 1 … 16 bytes.
    @inline(__always) private static func isSameShort(
        _ one: UnsafeRawPointer, _ other: UnsafeRawPointer, _ count: Int
    ) -> Bool {
        if count >= 8 {
            let first =
                unsafe one.loadUnaligned(as: UInt64.self) ^ other.loadUnaligned(as: UInt64.self)
            let last =
                unsafe (one + (count &- 8)).loadUnaligned(as: UInt64.self)
                ^ (other + (count &- 8)).loadUnaligned(as: UInt64.self)
            return first | last == 0
        }
        if count >= 4 {
            let first =
                unsafe one.loadUnaligned(as: UInt32.self) ^ other.loadUnaligned(as: UInt32.self)
            let last =
                unsafe (one + (count &- 4)).loadUnaligned(as: UInt32.self)
                ^ (other + (count &- 4)).loadUnaligned(as: UInt32.self)
            return first | last == 0
        }
        let first = unsafe one.load(as: UInt8.self) ^ other.load(as: UInt8.self)
        let middle =
            unsafe (one + count / 2).load(as: UInt8.self)
            ^ (other + count / 2).load(as: UInt8.self)
        let last =
            unsafe (one + (count &- 1)).load(as: UInt8.self)
            ^ (other + (count &- 1)).load(as: UInt8.self)
        return first | middle | last == 0
    }

    func has(_ byte: UInt8) -> Bool {
        guard count > 0, let start = unsafe start else { return false }
        return unsafe Memory.find(byte, in: start, count) != nil
    }

    /// The first place from `at` on whose byte is below `end`, which is at most 128; `count` if no
    /// byte is.
    @inline(__always) func firstLow(below end: UInt8, from at: Int) -> Int {
        guard let start = unsafe start else { return count }
        let ones: UInt64 = 0x0101_0101_0101_0101
        let limits = ones &* UInt64(end)
        var index = at
        while index &+ 8 <= count {
            let word = unsafe UInt64(
                littleEndian: start.loadUnaligned(fromByteOffset: index, as: UInt64.self))
            // The lowest bit is right: the subtraction borrows only from behind such a byte.
            let found = (word &- limits) & ~word & (ones &* 0x80)
            if found != 0 { return index &+ found.trailingZeroBitCount &>> 3 }
            index &+= 8
        }
        while index < count, unsafe start.load(fromByteOffset: index, as: UInt8.self) >= end {
            index &+= 1
        }
        return index
    }

    /// The number of bytes below `end`, which is at most 128.
    func lowBytes(below end: UInt8) -> Int {
        guard let start = unsafe start else { return 0 }
        let bytes = unsafe start.assumingMemoryBound(to: UInt8.self)
        let ones: UInt64 = 0x0101_0101_0101_0101
        let limits = ones &* UInt64(end)
        var found = 0
        var index = 0
        while index < count {
            // Eight at a time. The subtraction borrows only from behind a byte below `end`.
            if index &+ 8 <= count {
                let word = unsafe start.loadUnaligned(fromByteOffset: index, as: UInt64.self)
                if (word &- limits) & ~word & (ones &* 0x80) == 0 {
                    index &+= 8
                    continue
                }
            }
            let part = min(index &+ 8, count)
            while index < part {
                unsafe found &+= bytes[index] < end ? 1 : 0
                index &+= 1
            }
        }
        return found
    }

    /// Writes all bytes to `target`, which has room for them; returns what follows.
    @inline(__always) func copy(to target: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer {
        if count > 0, let start = unsafe start {
            if count > 16 {
                unsafe target.copyMemory(from: start, byteCount: count)
            } else {
                unsafe Self.copyShort(start, count, target)
            }
        }
        return unsafe target + count
    }

    /// As `copy`, but up to 15 bytes after the slice are copied, too, which saves checking how many
    /// there are. SAFETY: the slice is in an arena, and `target` in one or in a buffer's room: all
    /// have a margin.
    @inline(__always)
    func copyLoosely(to target: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer {
        guard let start = unsafe start else { return unsafe target }
        unsafe Self.copyBlock(start, target)
        if count > 16 { unsafe Self.copyRest(start, count, target) }
        return unsafe target + count
    }

    /// A loop or a call would cost more than most of these.
    @inline(__always) private static func copyRest(
        _ start: UnsafeRawPointer, _ count: Int, _ target: UnsafeMutableRawPointer
    ) {
        unsafe copyBlock(start + 16, target + 16)
        if count <= 32 { return }
        unsafe copyBlock(start + 32, target + 32)
        if count <= 48 { return }
        unsafe copyBlock(start + 48, target + 48)
        if count <= 64 { return }
        unsafe (target + 64).copyMemory(from: start + 64, byteCount: count &- 64)
    }

    private static let blockBytes = 16
    /// A call costs as much as comparing this many.
    private static let blocksMost = 128

    /// 16 bytes.
    @inline(__always) static func copyBlock(
        _ start: UnsafeRawPointer, _ target: UnsafeMutableRawPointer
    ) {
        let block = unsafe start.loadUnaligned(as: SIMD2<UInt64>.self)
        unsafe target.storeBytes(of: block, as: SIMD2<UInt64>.self)
    }

    /// 1 … 16 bytes: most strings are short, and a call would cost more.
    @inline(__always) private static func copyShort(
        _ start: UnsafeRawPointer, _ count: Int, _ target: UnsafeMutableRawPointer
    ) {
        if count >= 8 {
            let first = unsafe start.loadUnaligned(as: UInt64.self)
            let last = unsafe (start + (count &- 8)).loadUnaligned(as: UInt64.self)
            unsafe target.storeBytes(of: first, as: UInt64.self)
            unsafe (target + (count &- 8)).storeBytes(of: last, as: UInt64.self)
        } else if count >= 4 {
            let first = unsafe start.loadUnaligned(as: UInt32.self)
            let last = unsafe (start + (count &- 4)).loadUnaligned(as: UInt32.self)
            unsafe target.storeBytes(of: first, as: UInt32.self)
            unsafe (target + (count &- 4)).storeBytes(of: last, as: UInt32.self)
        } else {
            let middle = unsafe (start + count / 2).load(as: UInt8.self)
            let last = unsafe (start + (count &- 1)).load(as: UInt8.self)
            let first = unsafe start.load(as: UInt8.self)
            unsafe target.storeBytes(of: first, as: UInt8.self)
            unsafe (target + count / 2).storeBytes(of: middle, as: UInt8.self)
            unsafe (target + (count &- 1)).storeBytes(of: last, as: UInt8.self)
        }
    }
}

/// A column of elements of one size.
@safe struct Flat<Element: BitwiseCopyable> {
    let base: UnsafeMutablePointer<Element>
    let count: Int

    /// SAFETY: the memory at `base` holds `count` elements.
    init(_ base: UnsafeMutablePointer<Element>, _ count: Int) {
        unsafe self.base = base
        self.count = count
    }

    @inline(__always) subscript(_ index: Int) -> Element {
        get { unsafe base[inside(index)] }
        nonmutating set { unsafe base[inside(index)] = newValue }
    }

    @inline(__always) private func inside(_ index: Int) -> Int {
        invariant(index >= 0 && index < count, "an index lies in its column")
        return UInt(bitPattern: index) < UInt(bitPattern: count) ? index : 0
    }

    func prefix(_ size: Int) -> Flat { unsafe Flat(base, min(max(size, 0), count)) }

    func fill(_ value: Element) {
        unsafe base.update(repeating: value, count: count)
    }
}

struct Arena: ~Copyable {
    struct Mark {
        fileprivate var chunk: Int
        fileprivate var used: Int
    }
    @safe private struct Chunk {
        var base: UnsafeMutableRawPointer
        var size: Int
    }

    private var chunks: [Chunk] = []
    private var chunk = 0
    private var used = 0

    /// After each piece: the bytes that `Slice.copyLoosely` may touch.
    static let margin = 16

    init() {}

    deinit { freeChunks(from: 0) }

    private func freeChunks(from first: Int) {
        var index = first
        while index < chunks.count {
            unsafe Memory.free(chunks[index].base)
            index += 1
        }
    }

    /// All its bytes, used or not.
    var capacity: Int { chunks.reduce(0) { $0 + $1.size } }

    var mark: Mark { Mark(chunk: chunk, used: used) }

    /// Frees what was allocated since.
    mutating func release(to mark: Mark) {
        chunk = mark.chunk
        used = mark.used
    }

    /// Frees everything; memory above `bytesMax` returns to the system.
    mutating func clear(keeping bytesMax: Int) {
        chunk = 0
        used = 0
        var kept = 0
        var sum = 0
        while kept < chunks.count {
            sum += chunks[kept].size
            if sum > bytesMax { break }
            kept += 1
        }
        freeChunks(from: kept)
        chunks.removeSubrange(kept...)
        // The current chunk takes whatever fits: a large one would fill up with small pieces.
        chunks.sort { $0.size < $1.size }
    }

    mutating func allocate(_ bytes: Int) throws(BlockProblem) -> UnsafeMutableRawPointer {
        let wanted = (max(bytes, 16) &+ 15) & ~15 &+ Self.margin
        if chunk >= chunks.count || chunks[chunk].size &- used < wanted { try advance(wanted) }
        let start = unsafe chunks[chunk].base + used
        used &+= wanted
        return unsafe start
    }

    private static let firstBytes = 64 << 10

    /// Continues with the smallest free chunk that has room: all chunks behind the current one are
    /// free, in whatever order earlier blocks allocated them.
    private mutating func advance(_ wanted: Int) throws(BlockProblem) {
        let next = used == 0 ? chunk : chunk + 1
        var found = chunks.count
        var least = Int.max
        for index in next..<chunks.count
        where chunks[index].size >= wanted && chunks[index].size < least {
            (found, least) = (index, chunks[index].size)
        }
        if found == chunks.count {
            // A small archive needs little, and zeroing a large page costs more than decoding it.
            let isSmall = chunks.isEmpty && wanted <= Self.firstBytes
            let size =
                isSmall
                ? Self.firstBytes
                : (wanted &+ Memory.largePage &- 1) & ~(Memory.largePage &- 1)
            let made =
                unsafe isSmall ? Memory.allocate(size) : Memory.allocateLarge(size)
            guard let made = unsafe made else { throw .memory }
            unsafe chunks.append(Chunk(base: made, size: size))
        }
        chunks.swapAt(next, found)
        (chunk, used) = (next, 0)
    }

    /// The content is undefined until it is written.
    mutating func flat<Element: BitwiseCopyable>(
        _ count: Int, _: Element.Type = Element.self
    ) throws(BlockProblem) -> Flat<Element> {
        let start = unsafe try allocate(count &* MemoryLayout<Element>.stride)
        return unsafe Flat(
            start.bindMemory(to: Element.self, capacity: max(count, 1)), max(count, 0))
    }

    mutating func flat<Element: BitwiseCopyable>(
        _ count: Int, of value: Element
    ) throws(BlockProblem) -> Flat<Element> {
        let made: Flat<Element> = try flat(count)
        made.fill(value)
        return made
    }
}

/// Signed numbers as FORMAT §1 stores them, as their 64 bits.
enum Zigzag {
    @inline(__always) static func coded(_ bits: UInt64) -> UInt64 {
        bits &<< 1 ^ (0 &- bits &>> 63)
    }

    @inline(__always) static func plain(_ code: UInt64) -> UInt64 {
        code &>> 1 ^ (0 &- (code & 1))
    }
}

extension Flat {
    func sort(_ isBefore: (Element, Element) -> Bool) {
        var view = unsafe UnsafeMutableBufferPointer(start: base, count: count)
        unsafe view.sort(by: isBefore)
    }
}

/// A column that grows. Its earlier copies stay in the arena.
struct Growing<Element: BitwiseCopyable> {
    private var flat: Flat<Element>
    private(set) var count = 0

    /// `expected`: the probable number of elements.
    init(_ arena: inout Arena, expected: Int = 64) throws(BlockProblem) {
        flat = try arena.flat(max(expected, 64))
    }

    @inline(__always)
    mutating func append(_ element: Element, _ arena: inout Arena) throws(BlockProblem) {
        if count == flat.count { try grow(&arena) }
        flat[count] = element
        count &+= 1
    }

    /// Valid until it grows.
    @unsafe var base: UnsafeMutablePointer<Element> { unsafe flat.base }

    private mutating func grow(_ arena: inout Arena) throws(BlockProblem) {
        let larger: Flat<Element> = try arena.flat(flat.count &* 2)
        unsafe larger.base.update(from: flat.base, count: count)
        flat = larger
    }

    @inline(__always) subscript(_ index: Int) -> Element {
        get { flat[index] }
        nonmutating set { flat[index] = newValue }
    }

    mutating func removeAll() { count = 0 }

    /// Valid until it grows.
    var all: Flat<Element> { flat.prefix(count) }
}
