// The calling thread's blocks, one for each engine that it logged to last: `current` and `others`
// of its thread-local words. No other thread reads them, but a handler may log to any engine
// between two instructions of this file. So each word is changed by CAS from the value found there,
// and if a handler was faster, the word is read again; nothing chosen before a handler could run is
// used after it without a second check. A handler ends before we resume, so whatever it took is
// idle by then; if it left by longjmp, we never resume.
// For a moment a block may be in two places, or in none. A handler that looks for it then takes
// another one, and `place` resolves the conflict.
// SAFETY: the words are the calling thread's, CWI_THREAD_ENGINES_MAX of them in a row; blocks are
// never unmapped, and those in the table belong to this thread.

import CShims

@safe struct BlockTable {
    /// SAFETY: `current`, followed by `others`.
    private let words: UnsafeMutableRawPointer
    private let tls: UnsafeMutablePointer<cwi_tls>

    static var count: Int { Int(CWI_THREAD_ENGINES_MAX) }

    init() { unsafe self.init(cwi_tls_get()!) }

    init(_ tls: UnsafeMutablePointer<cwi_tls>) {
        unsafe self.tls = unsafe tls
        unsafe words = unsafe cwi_tls_current_at(tls)
    }

    /// Index 0 is the current block.
    subscript(index: Int) -> ThreadBlock? {
        // ORDER: relaxed. The thread's own words; its handlers see them in program order (A35).
        unsafe ThreadBlock(bitPattern: UInt(cwa_load_relaxed_u64(words + index * 8)))
    }

    /// False: a handler has changed it meanwhile.
    func replace(_ index: Int, _ found: ThreadBlock?, by block: ThreadBlock?) -> Bool {
        // ORDER: a single instruction, which no handler can interrupt; no other thread reads the
        // word (A35).
        unsafe cwa_cas_u64(
            words + index * 8, UInt64(UInt(bitPattern: found)), UInt64(UInt(bitPattern: block)))
    }

    /// Empties that place and returns its block.
    func take(_ index: Int) -> ThreadBlock? {
        // ORDER: as in replace (A35).
        unsafe ThreadBlock(bitPattern: UInt(cwa_exchange_u64(words + index * 8, 0)))
    }

    /// The index of that engine's block. besides: ignores this block.
    func index(of mark: EngineBlock, besides: ThreadBlock? = nil) -> Int? {
        for i in 0..<BlockTable.count {
            if let block = unsafe self[i], unsafe block != besides,
                unsafe block.pointee.engine == mark
            {
                return i
            }
        }
        return nil
    }

    /// Makes a block that is in no place the current one; the previous current block moves to the
    /// others. False: every other block is inside an append. A new block is then given back, and
    /// one that was in the table before is left to the Reaper.
    func place(_ block: ThreadBlock, isNew: Bool) -> Bool {
        while true {
            guard let mark = unsafe block.pointee.engine else { return false }
            if let twin = unsafe index(of: mark, besides: block) {
                // A handler did not find this block and took another one, which is idle now.
                let other = unsafe self[twin]
                guard let other = unsafe other, unsafe other.pointee.engine == mark else {
                    continue
                }
                guard unsafe BlockTable.isIdle(other) else {
                    return unsafe giveUp(block, isNew)
                }
                guard unsafe replace(twin, other, by: block) else { continue }
                unsafe ThreadBlocks.giveBack(other)
                return true
            }
            let displaced = unsafe self[0]
            guard let displaced = unsafe displaced, unsafe displaced.pointee.engine != nil else {
                if unsafe replace(0, displaced, by: block) { return true }
                continue
            }
            if let room = unsafe room(for: displaced) {
                let found = unsafe self[room]
                guard unsafe found == displaced || replace(room, found, by: displaced) else {
                    continue
                }
            } else if unsafe evict(for: displaced) == nil {
                return unsafe giveUp(block, isNew)
            }
            // If a handler has filled the table meanwhile, the block evicted here does not go to
            // the pool: an append that this one interrupted may have found it and not be busy yet.
            // It stays with this thread, and goes to the Reaper once the thread is gone.
            if unsafe replace(0, displaced, by: block) { return true }
        }
    }

    /// True in a handler that interrupted an append of this thread.
    var isInAppend: Bool {
        for i in 0..<BlockTable.count {
            if let block = unsafe self[i], unsafe !BlockTable.isIdle(block) { return true }
        }
        return false
    }

    /// True if the current block has no place among the others and all of them are taken.
    var isFull: Bool {
        guard let current = unsafe self[0], unsafe current.pointee.engine != nil else {
            return false
        }
        return unsafe room(for: current) == nil
    }

    /// Puts `current` in the place of a block in which the thread is not inside an append, and
    /// takes that block out. nil: the thread is inside an append in all of them, or the table has
    /// changed.
    func evict(for current: ThreadBlock) -> ThreadBlock? {
        for _ in 1..<BlockTable.count {
            let others = BlockTable.count - 1
            let i = unsafe 1 + Int(tls.pointee.next_victim) % others
            unsafe tls.pointee.next_victim = UInt8((Int(tls.pointee.next_victim) + 1) % others)
            guard let found = unsafe self[i], unsafe BlockTable.isIdle(found) else { continue }
            if unsafe replace(i, found, by: current) { return unsafe found }
        }
        return nil
    }

    /// The index of an empty place among the others, or of one whose block also has another place.
    private func room(for current: ThreadBlock) -> Int? {
        for i in 1..<BlockTable.count where unsafe self[i] == current { return i }
        for i in 1..<BlockTable.count {
            guard let block = unsafe self[i], unsafe block.pointee.engine != nil else { return i }
            for k in 1..<i where unsafe self[k] == block { return i }
        }
        return nil
    }

    /// A block that was in the table does not go to the pool while its thread lives: an append that
    /// this one interrupted may have found it there and not be busy yet (A35).
    private func giveUp(_ block: ThreadBlock, _ isNew: Bool) -> Bool {
        if isNew { unsafe ThreadBlocks.giveBack(block) }
        return false
    }

    private static func isIdle(_ block: ThreadBlock) -> Bool {
        unsafe cwa_load_relaxed_u64(AppendPath.busyWord(block)) == 0
    }
}
