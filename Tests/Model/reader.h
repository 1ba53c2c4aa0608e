/* A reader in another process that follows the lane while it is written: it lists, opens, walks the
 * chunks, copies by pread and checks the header again. Every word is a separate read, in the
 * product's order. It stores nothing. Names in brackets are the Swift functions. */
#ifndef MODEL_READER_H
#define MODEL_READER_H
#include "helper.h"
#include "recover.h"

namespace model {

#define READER_PCS(X)                                                                              \
    X(LIST) X(HEADER) X(DEAD) X(CLAIMED) X(NEXT_CHUNK) X(SCAN_SALT) X(SCAN_WHO) X(OPEN_SALT)       \
    X(OPEN_COMMITTED) X(OPEN_FINAL) X(COPY_CELL) X(RECHECK_SALT) X(RECHECK_STATE) X(FINAL_AGAIN)   \
    X(GIVE)

#define READER_STEP(name) R_##name,
enum ReaderPc : u8 { READER_PCS(READER_STEP) };
inline const char *const readerNames[] = {READER_PCS(STEP_NAME)};

inline bool isLocal(const Reader &r) { return r.pc == R_NEXT_CHUNK || r.pc == R_GIVE; }

/* [LaneSource.lose], [StreamCursor.forget] */
inline void loses(Reader &r, int slot) {
    r.known[slot] = r.inode[slot] = r.held[slot] = 0;
    for (ReaderChunk &chunk : r.last)
        if (chunk.slot == slot + 1) chunk.slot = 0;
    r.pc = R_LIST;
}

/* Shows everything loaded from a chunk and not shown yet. */
inline void gives(State &s, ReaderChunk &chunk, int block, int end) {
    Reader &r = s.reader;
    for (int i = chunk.loaded; i < end; i++) {
        u8 record = r.cells[i];
        if (record == 0) return breaks("the reader gives a torn record");
        if (!isOf(record, chunk.who)) return breaks("the reader gives another life's record");
        /* [StreamCursor.passesOver] */
        const u8 first = r.duplicates[block];
        r.duplicates[block] = 0;
        if (mutant == PASSES_OVER_ANY ? first != 0 : first == record) {
            if (!r.got[record]) return breaks("the reader passes over what it has not given");
            if (mutant == SKIPPED_IS_FORGOTTEN) continue;
            chunk.shown = static_cast<u8>(i + 1);
            chunk.record = record;
            continue;
        }
        chunk.shown = static_cast<u8>(i + 1);
        chunk.record = record;
        if (r.got[record]) {
            /* Without its lock it may have lost the chunk from which it first got the record. */
            if (config->locks) return breaks("the reader gives a record twice");
            continue;
        }
        r.got[record] = 1;
        if (record < HANDLER_RECORD && record % 3 && r.got[record + 1])
            return breaks("the reader breaks the order within a thread");
    }
    if (end > chunk.loaded) chunk.loaded = static_cast<u8>(end);
}

inline bool readerStep(State &s) {
    Reader &r = s.reader;
    auto word = [&](int w) { return s.memory[chunkWord(r.atSlot, r.atChunk, w)]; };
    auto isMine = [&](int slot) { return s.ghost.inode[slot] == r.inode[slot]; };
    /* Its file was taken away and another made in the slot. The reader holds the old file's
     * descriptor, whose content no longer changes. It reads on in the next life. */
    if (r.pc != R_LIST && r.pc != R_NEXT_CHUNK && !isMine(r.slot)) {
        loses(r, r.slot);
        return true;
    }
    switch (r.pc) {
    case R_LIST: { /* [LaneSource.refresh], [ReadFile.segment] */
        int next = -1;
        for (int i = 0; i < config->slots; i++) {
            if (s.ghost.name[i] == NO_NAME || s.ghost.life[i] <= r.above) continue;
            if (next < 0 || s.ghost.life[i] < s.ghost.life[next]) next = i;
        }
        r.chunk = 0;
        if (next < 0) {
            r.above = 0;
            r.round++;
            break;
        }
        r.above = s.ghost.life[next];
        r.slot = static_cast<u8>(next);
        const u8 pc = s.helper.pc;
        if (config->locks && s.helper.slot == next && pc >= H_REUSE_DEAD && pc <= H_REUSE_UNLOCK)
            break; /* ENOENT: its owner is about to reuse it */
        r.held[next] = config->locks;
        r.inode[next] = s.ghost.inode[next];
        r.pc = R_HEADER;
        break;
    }
    case R_HEADER: { /* [SegmentFile.refresh] */
        u8 salt = s.memory[fileWord(r.slot, H_SALT)];
        if (r.known[r.slot] != 0 && r.known[r.slot] != salt) {
            loses(r, r.slot);
            break;
        }
        /* Number and generation of name and header must agree (R16). */
        r.pc = salt == r.above ? R_DEAD : R_LIST;
        if (salt == r.above) r.known[r.slot] = salt;
        break;
    }
    case R_DEAD:
        if (s.memory[fileWord(r.slot, H_STATE)] == H_DEAD) loses(r, r.slot);
        else r.pc = R_CLAIMED;
        break;
    case R_CLAIMED:
        r.allocated = s.memory[fileWord(r.slot, H_ALLOCATED)];
        r.pc = R_NEXT_CHUNK;
        break;
    case R_NEXT_CHUNK:
        r.pc = r.chunk < r.allocated && r.chunk < config->chunks ? R_SCAN_SALT : R_LIST;
        r.atSlot = r.slot;
        r.atChunk = r.chunk;
        r.isExtending = 0;
        break;
    case R_SCAN_SALT: /* [SegmentFile.scan] */
        r.pc = R_SCAN_WHO;
        if (word(C_SALT) != r.known[r.slot]) {
            r.chunk++;
            r.pc = R_NEXT_CHUNK;
        }
        break;
    case R_SCAN_WHO: {
        r.who = word(C_WHO);
        ReaderChunk &last = r.last[(r.who >> 4) % BLOCKS];
        bool isLast = last.slot == r.slot + 1 && last.chunk == r.chunk;
        bool isKnown = last.who != 0 && (r.who & 15) < (last.who & 15);
        r.pc = R_OPEN_SALT;
        if (isKnown || (isLast && last.isFinal)) {
            r.chunk++;
            r.pc = R_NEXT_CHUNK;
        } else if (isLast) {
            r.isExtending = 1;
        } else if (last.slot != 0 && !last.isFinal) {
            /* [StreamCursor.step] The rest of the last chunk comes first. */
            r.isExtending = 2;
            r.atSlot = static_cast<u8>(last.slot - 1);
            r.atChunk = last.chunk;
        }
        break;
    }
    case R_OPEN_SALT: /* [SegmentFile.chunk] */
        r.pc = R_OPEN_COMMITTED;
        if (!isMine(r.atSlot) || word(C_SALT) != r.known[r.atSlot]) loses(r, r.atSlot);
        break;
    case R_OPEN_COMMITTED:
        r.committed = word(C_COMMITTED);
        r.pc = R_OPEN_FINAL;
        break;
    case R_OPEN_FINAL:
        r.final = word(C_FINAL);
        r.copied = 0;
        r.pc = R_COPY_CELL;
        break;
    case R_COPY_CELL: { /* [SegmentFile.read] */
        int end = (r.final ? r.final : r.committed) - 1;
        if (end > config->cells) end = config->cells;
        if (r.copied < end) {
            r.cells[r.copied] = word(C_CELL + r.copied);
            r.copied++;
        } else {
            r.pc = mutant == NO_READER_RECHECK ? R_FINAL_AGAIN : R_RECHECK_SALT;
        }
        break;
    }
    case R_RECHECK_SALT: /* [SegmentFile.recheck] */
        r.pc = R_RECHECK_STATE;
        if (s.memory[fileWord(r.atSlot, H_SALT)] != r.known[r.atSlot]) loses(r, r.atSlot);
        break;
    case R_RECHECK_STATE:
        r.pc = R_FINAL_AGAIN;
        if (s.memory[fileWord(r.atSlot, H_STATE)] == H_DEAD) loses(r, r.atSlot);
        break;
    case R_FINAL_AGAIN: { /* [StreamCursor.isCutOff] */
        const u8 now = word(C_FINAL);
        r.pc = R_GIVE;
        if (r.final == 0 && now != 0 && now < r.committed) r.final = now;
        break;
    }
    case R_GIVE: { /* [StreamCursor.extend], [StreamCursor.open] */
        const int block = r.isExtending == 2 ? r.last[(r.who >> 4) % BLOCKS].who >> 4
                                             : (r.who >> 4) % BLOCKS;
        ReaderChunk &last = r.last[block];
        if (!r.isExtending)
            last = ReaderChunk{static_cast<u8>(r.slot + 1), r.chunk, r.who, 0, 0, 0, 0};
        else if (r.final && last.shown >= r.final && mutant != NO_READER_DUPLICATES)
            r.duplicates[block] = last.record;
        if (r.final) last.isFinal = 1;
        gives(s, last, block, (r.final ? r.final : r.committed) - 1);
        r.copied = r.committed = r.final = 0;
        std::memset(r.cells, 0, sizeof r.cells);
        if (r.isExtending == 2) {
            r.isExtending = 0;
            r.atSlot = r.slot;
            r.atChunk = r.chunk;
            r.pc = R_OPEN_SALT;
        } else {
            r.chunk++;
            r.pc = R_NEXT_CHUNK;
        }
        break;
    }
    }
    return true;
}

inline bool takeReaderStep(State &s) {
    Reader &r = s.reader;
    if (r.round >= config->reader) return false;
    readerStep(s);
    while (broken == nullptr && isLocal(r)) readerStep(s);
    return true;
}

} // namespace model
#endif
