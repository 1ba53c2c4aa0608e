/* A writer: one append after another, by the hot path or the slow one, with claim, settle, nested
 * and abandoned appends. Each case touches one shared word or only stores. A step of the walk
 * continues through stores, because no thread sees them before they land. In frames that a signal
 * may interrupt every case is a step. Names in brackets are the Swift functions. */
#ifndef MODEL_WRITER_H
#define MODEL_WRITER_H
#include "publish.h"

namespace model {

#define WRITER_PCS(X)                                                                              \
    X(IDLE) X(HOT_LIMIT) X(HOT_LEAVE) X(HOT_COPY) X(HOT_COMMIT) X(HOT_PTR) X(HOT_LOOK)             \
    X(HOT_SETTLED) X(HOT_AGAIN) X(ENTER) X(SET_BUSY) X(LIGHT) X(ROOM) X(CURRENT_OF) X(HOLD)        \
    X(HOLD_FENCE) X(HOLD_LOOK) X(BASE_OF) X(ALLOCATED) X(TAKE) X(FILL_VERSION) X(FILL_WHO)         \
    X(FILL_FINAL) X(FILL_COMMITTED) X(FILL_SALT) X(CLAIM_ID) X(PUT_EMPTY) X(PUT_SEGMENT)           \
    X(PUT_SALT) X(PUT_CHUNK) X(PUT_OPEN) X(PUT_LIMIT) X(FULL_FENCE) X(LOOK_AGAIN) X(LOOK_VERSION)  \
    X(UNDO) X(UNDO_LIMIT) X(UNDO_REST) X(NEXT_SEGMENT) X(COPY) X(COMMIT) X(PTR) X(COMMIT_FENCE)    \
    X(LOOK)                                                                                        \
    X(SETTLED) X(DONE) X(REFUSE)                                                                   \
    X(OWN) X(OWN_LOAD) X(OWN_MARK) X(OWN_CAS) X(OWN_FINAL) X(OWN_LOST) X(OWN_UNMARK) X(OWN_SHORT)  \
    X(OWN_LIMIT) X(OWN_PTR) X(OWN_CHUNK) X(OWN_SEGMENT) X(OWN_END)                                 \
    X(LEFT) X(LEFT_VERDICT) X(LEFT_COMMITTED) X(LEFT_FINAL) X(LEFT_UNMARK) X(LEFT_LIMIT)           \
    X(LEFT_CHUNK) X(LEFT_SEGMENT) X(LEFT_BUSY)

enum WriterPc : u8 { WRITER_PCS(STEP) };
inline const char *const writerNames[] = {WRITER_PCS(STEP_NAME)};

/* Reads nothing that another thread writes, and does not need an empty buffer. */
inline bool isLocal(const Frame &f) {
    if (f.publish.pc != PUB_IDLE) return isLocal(static_cast<PublishPc>(f.publish.pc));
    switch (f.pc) {
    case IDLE: case HOT_LIMIT: case HOT_LOOK: case SET_BUSY: case LIGHT: case ROOM:
    case CURRENT_OF: case HOLD_FENCE: case HOLD_LOOK: case BASE_OF: case ALLOCATED: case TAKE:
    case FILL_VERSION: case FILL_SALT: case CLAIM_ID: case LOOK_VERSION:
    case FULL_FENCE: case LOOK_AGAIN: case UNDO: case COMMIT_FENCE: case LOOK: case OWN_LOAD:
    case OWN_CAS: case OWN_LOST: case LEFT: case LEFT_VERDICT: case LEFT_COMMITTED:
        return false;
    default: return true;
    }
}

inline bool hasNested(const State &s, int w) { return w == 0 && s.blocks[NESTED].busy != 0; }

/* Only a check for quiet reads another thread's `busy`: without one its stores do not matter. */
inline bool busyIsRead() {
    for (const char *op = config->script; *op; op++)
        if (*op == 'c' || *op == 'f') return true;
    return false;
}

inline bool resourceChanges() {
    for (const char *op = config->script; *op; op++)
        if (*op == 'v') return true;
    return false;
}

/* A writer's next operation. False: not possible now. */
inline bool writerStep(State &s, int w) {
    Writer &me = s.writers[w];
    Frame &f = me.frames[me.depth];
    Block &b = s.blocks[f.block];
    auto put = [&](int word, u8 value, u8 flags = 0) {
        store(s, w, blockWord(f.block, word), value, flags);
    };
    auto putBusy = [&](u8 value) {
        s.blocks[f.block].busy = value;
        if (busyIsRead()) put(BUSY, value, value ? 0 : RELEASE);
    };
    auto putSegment = [&](u8 value) {
        b.segment = value;
        put(SEGMENT, value, mutant == SEGMENT_RELAXED ? 0 : RELEASE);
    };
    auto inChunk = [&](int word, u8 value, u8 flags = 0) {
        store(s, w, addressWord(b.chunk, word), value, flags, b.life);
    };
    auto claimed = [&](int word) { return chunkWord(f.segment, f.offset, word); };
    auto returns = [&](u8 fate) {
        s.ghost.fate[f.record] = fate;
        u8 block = f.block;
        f = Frame{};
        f.block = block == NESTED ? 0 : block;
        if (me.depth == 0) me.next++;
        else me.fired = 2;
    };
    const bool isLate = mutant == BUSY_LATE;

    if (f.publish.pc != PUB_IDLE) {
        if (!publishStep(s, w, f.publish)) return false;
        if (f.publish.pc == PUB_IDLE) {
            f.pc = f.publish.isFull ? REFUSE : CURRENT_OF;
            f.publish.isFull = 0;
        }
        return true;
    }
    switch (f.pc) {
    case IDLE: /* [AppendPath.begin] */
        if (me.fired == 2 && me.depth) { /* The handler returns. */
            me.depth = 0;
            me.frames[1] = Frame{};
            break;
        }
        if (me.depth == 0 && me.next >= config->records[w]) return false;
        f.block = static_cast<u8>(w);
        f.record = me.depth ? u8{HANDLER_RECORD} : recordOf(w, me.next);
        s.ghost.fate[f.record] = BEGUN;
        s.ghost.least[f.record] = s.ghost.version;
        if (config->missing || (s.blocks[w].busy && mutant != NO_NEST)) {
            f.pc = ENTER;
            break;
        }
        if (!isLate) putBusy(1);
        f.pc = HOT_LIMIT;
        break;
    case HOT_LIMIT:
        if (load(s, w, blockWord(f.block, LIMIT)) == 0 || b.ptr == 0 || b.chunk == 0
            || b.ptr > config->cells)
            f.pc = HOT_LEAVE;
        else f.pc = mutant == COMMITTED_FIRST ? HOT_COMMIT : HOT_COPY;
        if (isLate) putBusy(1);
        break;
    case HOT_LEAVE:
        putBusy(0);
        f.pc = ENTER;
        break;
    case HOT_COPY:
        inChunk(C_CELL + b.ptr - 1, f.record);
        f.pc = mutant == COMMITTED_FIRST ? HOT_PTR : HOT_COMMIT;
        break;
    case HOT_COMMIT: /* [AppendPath.commit] */
        inChunk(C_COMMITTED, static_cast<u8>(b.ptr + 1),
                static_cast<u8>((mutant == COMMITTED_FIRST ? 0 : RELEASE) | f.record * RECORD));
        f.pc = mutant == COMMITTED_FIRST ? HOT_COPY : HOT_PTR;
        break;
    case HOT_PTR:
        b.ptr++;
        f.pc = mutant == NO_SECOND_LOOK ? DONE : HOT_LOOK;
        break;
    case HOT_LOOK:
        f.ret = HOT_SETTLED;
        f.pc = load(s, w, blockWord(f.block, LIMIT)) == 0 ? OWN : DONE;
        break;
    case HOT_SETTLED: /* [AppendSlow.committed] [AppendSlow.settledKept] */
        f.pc = f.kept || mutant == NO_REWRITE ? DONE : HOT_AGAIN;
        break;
    case HOT_AGAIN:
        putBusy(0);
        f.pc = ENTER;
        break;

    case ENTER: /* [ThreadBlocks.enter] */
        f.block = static_cast<u8>(w);
        f.pc = SET_BUSY;
        if (s.blocks[w].busy && me.depth == 0) {
            f.pc = LEFT; /* [Abandoned.reclaim] */
        } else if (s.blocks[w].busy) {
            if (mutant != NO_NEST) f.block = NESTED;
        } else if (hasNested(s, w)) {
            f.block = NESTED; /* [Abandoned.reclaimNested] */
            f.pc = LEFT;
        }
        break;
    case SET_BUSY:
        if (!isLate) putBusy(1);
        f.pc = config->missing ? LIGHT : ROOM;
        break;
    case LIGHT: /* [Membarrier.lightFence] */
        if (mutant != LIGHT_WITHOUT_MEMBARRIER && !isDrained(s, w)) return false;
        f.pc = ROOM;
        break;
    case ROOM: /* [Claim.makeRoom] */
        if (load(s, w, blockWord(f.block, LIMIT)) != 0 && b.ptr != 0 && b.ptr <= config->cells) {
            f.pc = mutant == COMMITTED_FIRST ? COMMIT : COPY;
        } else {
            f.ret = CURRENT_OF;
            f.pc = OWN;
        }
        if (isLate && f.pc != OWN) putBusy(1);
        break;
    case CURRENT_OF: /* [Claim.takeChunk] [Claim.hold] [Claim.current] */
        f.segment = static_cast<u8>(load(s, w, CURRENT) - 1);
        f.life = s.ghost.life[f.segment];
        f.pc = mutant == NO_HOLD ? BASE_OF : HOLD;
        if (isLate) putBusy(1);
        break;
    case HOLD:
        putSegment(static_cast<u8>(f.segment + 1));
        f.pc = mutant == NO_LOOK_AT_HELD ? BASE_OF : config->missing ? HOLD_FENCE : HOLD_LOOK;
        break;
    case HOLD_FENCE:
        if (mutant != LIGHT_WITHOUT_MEMBARRIER && !isDrained(s, w)) return false;
        f.pc = HOLD_LOOK;
        break;
    case HOLD_LOOK:
        f.pc = load(s, w, CURRENT) == f.segment + 1 ? BASE_OF : CURRENT_OF;
        f.life = s.ghost.life[f.segment]; /* It may become current once more, with another life. */
        break;
    case BASE_OF: /* [Claim.claim] */
        f.pc = load(s, w, slotWord(f.segment, BASE)) ? ALLOCATED : CURRENT_OF;
        break;
    case ALLOCATED:
        touches(s, fileWord(f.segment, H_ALLOCATED), f.life);
        f.pc = NEXT_SEGMENT;
        if (load(s, w, fileWord(f.segment, H_ALLOCATED)) < config->chunks) f.pc = TAKE;
        break;
    case TAKE:
        if (!isDrained(s, w)) return false;
        touches(s, fileWord(f.segment, H_ALLOCATED), f.life);
        f.offset = s.memory[fileWord(f.segment, H_ALLOCATED)]++;
        f.pc = mutant == SALT_FIRST ? FILL_SALT : resourceChanges() ? FILL_VERSION : FILL_WHO;
        if (f.offset >= config->chunks) f.pc = CURRENT_OF;
        break;
    case FILL_VERSION: /* [Claim.fill] */
        b.version = s.ghost.versions[f.segment][f.offset] = load(s, w, VERSION);
        f.pc = FILL_WHO;
        break;
    case FILL_WHO:
        store(s, w, claimed(C_WHO), static_cast<u8>(f.block << 4 | b.sequence++), 0, f.life);
        f.pc = FILL_FINAL;
        break;
    case FILL_FINAL:
        store(s, w, claimed(C_FINAL), 0, 0, f.life);
        f.pc = FILL_COMMITTED;
        break;
    case FILL_COMMITTED:
        store(s, w, claimed(C_COMMITTED), 1, 0, f.life);
        b.ptr = 1;
        f.pc = mutant == SALT_FIRST ? CLAIM_ID : FILL_SALT;
        break;
    case FILL_SALT:
        f.salt = load(s, w, slotWord(f.segment, SLOT_SALT));
        store(s, w, claimed(C_SALT), f.salt, mutant == SALT_FIRST ? 0 : RELEASE, f.life);
        f.pc = mutant == SALT_FIRST ? FILL_WHO : CLAIM_ID;
        break;
    case CLAIM_ID: { /* [Claim.publish] */
        int claim = claimOf(load(s, w, blockWord(f.block, VERDICT))) + 1;
        f.verdict = verdictOf(mutant == NO_CLAIM_ID ? 0 : claim, true, 0);
        f.pc = PUT_EMPTY;
        break;
    }
    case PUT_EMPTY:
        put(VERDICT, static_cast<u8>(f.verdict & ~8), RELEASE);
        f.pc = PUT_SEGMENT;
        break;
    case PUT_SEGMENT:
        putSegment(static_cast<u8>(f.segment + 1));
        f.pc = PUT_SALT;
        break;
    case PUT_SALT:
        put(SALT, f.salt);
        f.pc = PUT_CHUNK;
        break;
    case PUT_CHUNK:
        b.chunk = address(f.segment, f.offset);
        b.life = f.life;
        put(CHUNK, b.chunk, RELEASE);
        f.pc = PUT_OPEN;
        break;
    case PUT_OPEN:
        put(VERDICT, f.verdict, RELEASE);
        f.pc = PUT_LIMIT;
        break;
    case PUT_LIMIT:
        put(LIMIT, 1, RELEASE);
        f.pc = mutant == NO_RECHECK ? COPY : FULL_FENCE;
        break;
    case FULL_FENCE:
        if (!isDrained(s, w)) return false;
        f.pc = LOOK_AGAIN;
        break;
    case LOOK_AGAIN:
        f.pc = load(s, w, slotWord(f.segment, STATE)) != OPEN      ? UNDO
               : mutant == COMMITTED_FIRST                         ? COMMIT
               : resourceChanges() && mutant != NO_LOOK_AT_VERSION ? LOOK_VERSION
                                                                   : COPY;
        if (f.pc != UNDO) f.segment = f.offset = f.life = f.salt = f.verdict = 0;
        break;
    case LOOK_VERSION:
        if (load(s, w, VERSION) != b.version) put(LIMIT, 0);
        f.pc = COPY;
        break;
    case UNDO:
        if (!isDrained(s, w)) return false;
        exchangeIf(s, blockWord(f.block, VERDICT), f.verdict, static_cast<u8>(f.verdict & ~8));
        f.pc = UNDO_LIMIT;
        break;
    case UNDO_LIMIT:
        put(LIMIT, 0);
        f.pc = UNDO_REST;
        break;
    case UNDO_REST:
        b.ptr = b.chunk = 0;
        put(CHUNK, 0);
        putSegment(0);
        f.pc = CURRENT_OF;
        break;
    case NEXT_SEGMENT:
        f.publish.pc = PUB_START;
        f.publish.old = f.segment;
        break;

    case COPY: /* [AppendSlow.write] */
        inChunk(C_CELL + b.ptr - 1, f.record);
        f.pc = mutant == COMMITTED_FIRST ? PTR : COMMIT;
        break;
    case COMMIT: /* [AppendSlow.commit] */
        inChunk(C_COMMITTED, static_cast<u8>(b.ptr + 1),
                static_cast<u8>((mutant == COMMITTED_FIRST ? 0 : RELEASE) | f.record * RECORD));
        f.pc = mutant == COMMITTED_FIRST ? COPY : PTR;
        break;
    case PTR:
        b.ptr++;
        f.pc = config->missing ? COMMIT_FENCE : LOOK;
        if (mutant == NO_SECOND_LOOK) f.pc = DONE;
        break;
    case COMMIT_FENCE:
        if (mutant != LIGHT_WITHOUT_MEMBARRIER && !isDrained(s, w)) return false;
        f.pc = LOOK;
        break;
    case LOOK:
        f.ret = SETTLED;
        f.pc = load(s, w, blockWord(f.block, LIMIT)) == 0 ? OWN : DONE;
        break;
    case SETTLED: f.pc = f.kept || mutant == NO_REWRITE ? DONE : ROOM; break;
    case DONE:
        putBusy(0);
        returns(RETURNED);
        break;
    case REFUSE:
        putSegment(0);
        putBusy(0);
        returns(REFUSED);
        break;

    case OWN: /* [Settle.own] [Settle.written] [ThreadBlocks.leaveChunk]
               [ThreadBlocks.setSegment] */
        f.end = static_cast<u8>(b.ptr - 1);
        f.kept = 1;
        f.pc = OWN_LOAD;
        if (b.chunk == 0 || b.ptr == 0 || b.segment == 0) f.pc = OWN_CHUNK;
        break;
    case OWN_LOAD:
        f.verdict = load(s, w, blockWord(f.block, VERDICT));
        f.kept = offsetOf(f.verdict) >= f.end;
        f.pc = isOpen(f.verdict) ? OWN_MARK : OWN_SHORT;
        if (!isOpen(f.verdict) && mutant == LOSER_WRITES_FINAL) f.pc = OWN_FINAL;
        break;
    case OWN_MARK:
        b.settling = 1;
        f.pc = OWN_CAS;
        break;
    case OWN_CAS: {
        if (!isDrained(s, w)) return false;
        u8 mine = verdictOf(claimOf(f.verdict), false, f.end);
        bool won = exchangeIf(s, blockWord(f.block, VERDICT), f.verdict, mine);
        f.verdict = mine;
        f.kept = 1;
        f.pc = won ? OWN_FINAL : OWN_LOST;
        if (won && mutant == IDLE_BEFORE_FINAL && busyIsRead()) put(BUSY, 0, RELEASE);
        break;
    }
    case OWN_FINAL:
        inChunk(C_FINAL, static_cast<u8>(offsetOf(f.verdict) + 1), RELEASE);
        f.pc = OWN_UNMARK;
        break;
    case OWN_LOST:
        f.verdict = load(s, w, blockWord(f.block, VERDICT));
        f.kept = offsetOf(f.verdict) >= f.end;
        f.pc = OWN_UNMARK;
        break;
    case OWN_UNMARK:
        b.settling = 0;
        f.pc = OWN_SHORT;
        break;
    case OWN_SHORT:
        if (!f.kept && mutant != NO_SHORT_FINAL)
            inChunk(C_FINAL, static_cast<u8>(offsetOf(f.verdict) + 1), RELEASE);
        f.pc = OWN_LIMIT;
        break;
    /* The block lets go of its chunk; here and for a block that was left behind. */
    case OWN_LIMIT: case LEFT_LIMIT:
        put(LIMIT, 0);
        if (f.pc == LEFT_LIMIT) b.ptr = 0;
        f.pc++;
        break;
    case OWN_PTR:
        b.ptr = 0;
        f.pc++;
        break;
    case OWN_CHUNK: case LEFT_CHUNK:
        b.chunk = 0;
        put(CHUNK, 0);
        f.pc++;
        break;
    case OWN_SEGMENT: case LEFT_SEGMENT:
        putSegment(0);
        f.pc++;
        break;
    case OWN_END:
        f.pc = f.ret;
        f.ret = f.verdict = f.end = 0;
        break;

    case LEFT: /* [Abandoned.settle] */
        f.pc = b.chunk && b.segment ? LEFT_VERDICT : LEFT_UNMARK;
        break;
    case LEFT_VERDICT:
        f.verdict = load(s, w, blockWord(f.block, VERDICT));
        f.pc = isOpen(f.verdict) ? LEFT_COMMITTED
               : b.settling || mutant == ABANDONED_WRITES_FINAL ? LEFT_FINAL : LEFT_UNMARK;
        break;
    case LEFT_COMMITTED:
        touches(s, addressWord(b.chunk, C_COMMITTED), b.life);
        b.ptr = load(s, w, addressWord(b.chunk, C_COMMITTED));
        f.ret = LEFT_UNMARK;
        f.pc = OWN;
        break;
    case LEFT_FINAL:
        inChunk(C_FINAL, static_cast<u8>(offsetOf(f.verdict) + 1), RELEASE);
        f.pc = LEFT_UNMARK;
        break;
    case LEFT_UNMARK:
        b.settling = 0;
        f.pc = LEFT_LIMIT;
        break;
    case LEFT_BUSY:
        putBusy(0);
        f.verdict = f.end = f.kept = 0;
        f.pc = f.block != NESTED && hasNested(s, w) ? LEFT : SET_BUSY;
        f.block = f.pc == LEFT ? static_cast<u8>(NESTED) : static_cast<u8>(w);
        break;
    }
    return true;
}

/* The number of stores that the longest step from there issues. */
inline int storesOf(const Frame &f) {
    const bool isReclaiming = f.ret == LEFT_UNMARK || f.pc >= LEFT;
    return isReclaiming ? 9 : f.pc == CLAIM_ID ? 7 : 5;
}

/* The signal of writer 0 may come between any two operations of its append. The handler may leave
 * by longjmp if signals are not blocked. */
inline bool mayInterrupt(const Writer &me) {
    const Frame &f = me.frames[0];
    return config->handler && !me.fired && f.pc != IDLE && f.publish.pc == PUB_IDLE;
}

inline bool takeWriterStep(State &s, int w) {
    Writer &me = s.writers[w];
    if (me.depth && config->handler == 2) return false; /* It only jumps. */
    if (s.buffers[w].count + storesOf(me.frames[me.depth]) > BUFFER_BYTES) return false;
    goesOn(s, w);
    if (!writerStep(s, w)) return false;
    const bool isInterruptible = !me.fired || (me.depth && config->handler == 3);
    const bool isFine = w == 0 && config->handler && isInterruptible;
    while (!isFine && broken == nullptr && isLocal(me.frames[me.depth])) writerStep(s, w);
    return true;
}

/* The handler's call of cw_write begins. */
inline bool interrupt(State &s) {
    Writer &me = s.writers[0];
    if (!mayInterrupt(me)) return false;
    me.fired = me.depth = 1;
    me.frames[1] = Frame{};
    return true;
}

/* [Segments.abandonMaking] siglongjmp out of the handler, before, in or after its append. */
inline bool jump(State &s) {
    Writer &me = s.writers[0];
    if (config->handler < 2 || me.depth == 0 || me.frames[1].publish.pc != PUB_IDLE) return false;
    for (int i = 0; i < 2; i++) {
        u8 record = me.frames[i].record;
        if (record && s.ghost.fate[record] == BEGUN) s.ghost.fate[record] = ABANDONED;
        me.frames[i] = Frame{};
    }
    me.depth = 0;
    me.next++;
    return true;
}

} // namespace model
#endif
