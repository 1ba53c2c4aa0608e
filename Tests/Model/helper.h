/* The helper: rolls, seals, archives, reuses, frees and makes segments, as its script says. It
 * stands for whoever holds the sealing lock. Cases as in writer.h. A membarrier ends once every
 * store that another thread had issued when it began has landed: the least that it promises. */
#ifndef MODEL_HELPER_H
#define MODEL_HELPER_H
#include "publish.h"
#include "recover.h"

namespace model {

#define HELPER_PCS(X)                                                                              \
    X(NEXT) X(ROLL_CURRENT) X(ROLL_EMPTY) X(SEAL_STATE) X(SEAL_EMPTY) X(SEAL_CURRENT)              \
    X(SET_SEALING) X(FENCE_1) X(WAIT_1) X(POISON) X(FENCE_2) X(WAIT_2) X(FORCED) X(FORCED_CHUNK)   \
    X(FORCED_SALT) X(FORCED_SAME) X(FORCED_COMMITTED) X(FORCED_CAS) X(FORCED_FINAL) X(NEXT_BLOCK)  \
    X(SET_SEALED) X(NAME_SEALED) X(SEALED_STATE) X(ARCHIVE) X(FENCE_3) X(WAIT_3) X(QUIET_SLOT)     \
    X(QUIET_BUSY) X(QUIET_SEGMENT) X(REUSE) X(REUSE_DEAD) X(REUSE_NAME) X(REUSE_HEADER)            \
    X(REUSE_UNLOCK) X(PUT_SPARE) X(RETIRE) X(UNMAP) X(UNMAPPED) X(MAKE_SLOT) X(SET_VERSION)        \
    X(CUT) X(HAS_CUT) X(END)

#define HELPER_STEP(name) H_##name,
enum HelperPc : u8 { HELPER_PCS(HELPER_STEP) };
inline const char *const helperNames[] = {HELPER_PCS(STEP_NAME)};

inline bool isLocal(const Helper &h) {
    if (h.publish.pc != PUB_IDLE) return isLocal(static_cast<PublishPc>(h.publish.pc));
    switch (h.pc) {
    case H_NEXT: case H_SET_SEALING: case H_FORCED_FINAL: case H_NEXT_BLOCK: case H_SET_SEALED:
    case H_SEALED_STATE: case H_QUIET_SLOT: case H_REUSE_HEADER:
        return true;
    default: return false;
    }
}

inline int blockCount() { return BLOCKS; }
inline bool hasBlock(int block) {
    return block == NESTED ? (config->handler & 1) != 0 : block < config->writers;
}

/* [Membarrier.heavyFence] The full fence, then the kernel's part begins. A writer whose step was a
 * load and then stores may be met between the two, so those stores are not awaited. The walk
 * therefore loses nothing when it takes both parts at once. */
inline bool beginFence(State &s) {
    if (!isDrained(s, HELPER)) return false;
    if (config->missing) return true;
    for (int i = 0; i < WRITERS; i++)
        for (int k = 0; k < s.buffers[i].count; k++)
            if (!(s.buffers[i].entries[k].flags & FRESH)) s.buffers[i].entries[k].flags |= AWAITED;
    return true;
}
inline bool fenceHasEnded(const State &s) {
    for (int i = 0; i < WRITERS; i++)
        for (int k = 0; k < s.buffers[i].count; k++)
            if (s.buffers[i].entries[k].flags & AWAITED) return false;
    return true;
}

inline bool helperStep(State &s) {
    Helper &h = s.helper;
    const int me = HELPER;
    const char op = config->script[h.op];
    auto nextSlot = [&](u8 pc) {
        h.block = h.inUse = 0;
        h.pc = ++h.slot < config->slots ? pc : static_cast<u8>(H_END);
    };
    auto nextBlock = [&](u8 again, u8 through) {
        do h.block++;
        while (h.block < BLOCKS && !hasBlock(h.block));
        h.pc = h.block < BLOCKS ? again : through;
        if (h.block == BLOCKS) h.block = 0;
    };
    auto mine = [&](int word) { return slotWord(h.slot, word); };
    auto header = [&](int word, u8 value, u8 flags) {
        store(s, me, fileWord(h.slot, word), value, flags, s.ghost.life[h.slot]);
    };

    if (h.publish.pc != PUB_IDLE) {
        if (!publishStep(s, me, h.publish)) return false;
        if (h.publish.pc == PUB_IDLE) {
            h.publish.isFull = 0;
            h.pc = H_END;
        }
        return true;
    }
    switch (h.pc) {
    case H_NEXT:
        if (op == 0) return false;
        h.pc = op == 'r'   ? H_ROLL_CURRENT
               : op == 's' ? H_SEAL_STATE
               : op == 'a' ? H_ARCHIVE
               : op == 'm' ? H_MAKE_SLOT
               : op == 'v' ? H_SET_VERSION
                           : H_FENCE_3;
        break;
    case H_END:
        h = Helper{static_cast<u8>(h.op + 1), H_NEXT, 0, 0, 0, 0, 0, 0, 0, 0, Publish{}};
        break;

    case H_ROLL_CURRENT: /* [EngineCore.roll] */
        h.slot = static_cast<u8>(load(s, me, CURRENT) - 1);
        h.pc = H_ROLL_EMPTY;
        break;
    case H_ROLL_EMPTY:
        if (load(s, me, fileWord(h.slot, H_ALLOCATED)) == 0) {
            h.pc = H_END;
            break;
        }
        h.publish.pc = PUB_START;
        h.publish.old = h.slot;
        break;

    case H_SEAL_STATE: { /* [EngineCore.sealRetired] */
        u8 state = load(s, me, mine(STATE));
        h.pc = H_SEAL_EMPTY;
        if (state != OPEN && state != SEALING) nextSlot(H_SEAL_STATE);
        break;
    }
    case H_SEAL_EMPTY:
        h.pc = H_SEAL_CURRENT;
        if (load(s, me, fileWord(h.slot, H_ALLOCATED)) == 0 && mutant != OPEN_IS_SEALED)
            nextSlot(H_SEAL_STATE);
        break;
    case H_SEAL_CURRENT:
        h.pc = H_SET_SEALING;
        if (load(s, me, CURRENT) == h.slot + 1) nextSlot(H_SEAL_STATE);
        break;
    case H_SET_SEALING: /* [Sealer.seal] */
        store(s, me, mine(STATE), SEALING, RELEASE);
        header(H_STATE, H_SEALING, RELEASE);
        h.pc = mutant == NO_FENCE_BEFORE_POISON ? H_POISON : H_FENCE_1;
        break;
    case H_FENCE_1:
    case H_FENCE_2:
    case H_FENCE_3:
        if (!beginFence(s)) return false;
        h.pc++;
        break;
    case H_WAIT_1:
        if (!fenceHasEnded(s)) return false;
        h.pc = H_POISON;
        break;
    case H_POISON:
        if (load(s, me, blockWord(h.block, SEGMENT)) == h.slot + 1 && mutant != NO_POISON)
            store(s, me, blockWord(h.block, LIMIT), 0, RELEASE);
        nextBlock(H_POISON, mutant == NO_FENCE_AFTER_POISON ? H_FORCED : H_FENCE_2);
        break;
    case H_WAIT_2:
        if (!fenceHasEnded(s)) return false;
        h.pc = H_FORCED;
        break;

    case H_FORCED: /* [Settle.forced] */
        h.verdict = load(s, me, blockWord(h.block, VERDICT));
        h.pc = H_FORCED_CHUNK;
        break;
    case H_FORCED_CHUNK:
        h.chunk = load(s, me, blockWord(h.block, CHUNK));
        h.pc = h.chunk == 0 || (h.chunk - 1) / CHUNKS != h.slot ? H_NEXT_BLOCK : H_FORCED_SALT;
        break;
    case H_FORCED_SALT:
        if (load(s, me, blockWord(h.block, SALT)) != load(s, me, mine(SLOT_SALT))
            && mutant != NO_BLOCK_SALT)
            h.pc = H_NEXT_BLOCK;
        else h.pc = isOpen(h.verdict) ? H_FORCED_COMMITTED : H_FORCED_SAME;
        break;
    case H_FORCED_SAME:
        if (load(s, me, blockWord(h.block, VERDICT)) == h.verdict) h.pc = H_FORCED_FINAL;
        else h.pc = ++h.tries < 4 ? H_FORCED : H_NEXT_BLOCK;
        break;
    case H_FORCED_COMMITTED:
        h.count = static_cast<u8>(load(s, me, addressWord(h.chunk, C_COMMITTED)) - 1);
        h.pc = H_FORCED_CAS;
        break;
    case H_FORCED_CAS: {
        if (!isDrained(s, me)) return false;
        u8 settled = verdictOf(claimOf(h.verdict), false, h.count);
        if (exchangeIf(s, blockWord(h.block, VERDICT), h.verdict, settled)) {
            h.verdict = settled;
            h.pc = H_FORCED_FINAL;
        } else {
            h.pc = ++h.tries < 4 ? H_FORCED : H_NEXT_BLOCK;
        }
        break;
    }
    case H_FORCED_FINAL:
        store(s, me, addressWord(h.chunk, C_FINAL), static_cast<u8>(offsetOf(h.verdict) + 1),
              RELEASE, s.ghost.life[h.slot]);
        h.pc = H_NEXT_BLOCK;
        break;
    case H_NEXT_BLOCK:
        h.verdict = h.chunk = h.tries = h.count = 0;
        nextBlock(H_FORCED, H_SET_SEALED);
        break;

    case H_SET_SEALED: /* [Sealer.finish] */
        header(H_STATE, H_SEALED, RELEASE);
        h.pc = H_NAME_SEALED;
        break;
    case H_NAME_SEALED:
        if (!isDrained(s, me)) return false;
        s.ghost.name[h.slot] = SEALED_NAME;
        h.pc = H_SEALED_STATE;
        break;
    case H_SEALED_STATE:
        store(s, me, mine(STATE), SEALED, RELEASE);
        nextSlot(H_SEAL_STATE);
        break;

    case H_ARCHIVE: /* The ship thread: a reader of sealed files, protected by a mutex. */
        if (!isDrained(s, me)) return false;
        for (int i = 0; i < config->slots; i++)
            if (s.ghost.name[i] == SEALED_NAME && !s.ghost.archived[i]) takeAway(s, i);
        h.pc = H_END;
        break;

    case H_WAIT_3:
        if (!fenceHasEnded(s)) return false;
        h.pc = H_QUIET_SLOT;
        break;
    case H_QUIET_SLOT: { /* [Quiescence.isSealedFile], of archived or never current ones */
        bool isDue = load(s, me, mine(STATE)) == SEALED && s.ghost.mapped[h.slot];
        if (op == 'c') isDue = isDue && s.ghost.archived[h.slot] && !s.ghost.unlinked[h.slot];
        if (!isDue) nextSlot(H_QUIET_SLOT);
        else h.pc = mutant != NO_GRACE ? H_QUIET_BUSY : op == 'c' ? H_REUSE : H_UNMAP;
        break;
    }
    case H_QUIET_BUSY: /* [Quiescence.isQuiet] */
        if (load(s, me, blockWord(h.block, BUSY)) != 0) h.pc = H_QUIET_SEGMENT;
        else nextBlock(H_QUIET_BUSY, op == 'c' ? H_REUSE : H_UNMAP);
        break;
    case H_QUIET_SEGMENT: {
        u8 in = load(s, me, blockWord(h.block, SEGMENT));
        if (in != h.slot + 1) {
            nextBlock(H_QUIET_BUSY, op == 'c' ? H_REUSE : H_UNMAP);
        } else if (op == 'c') {
            h.pc = H_RETIRE;
        } else {
            nextSlot(H_QUIET_SLOT);
        }
        break;
    }
    case H_RETIRE: /* [EngineCore.recycle] Its file is removed instead. */
        s.ghost.unlinked[h.slot] = 1;
        s.ghost.name[h.slot] = NO_NAME;
        nextSlot(H_QUIET_SLOT);
        break;

    case H_REUSE: /* [Recycling.reuse], and [Recycling.begin]: flock */
        if (!isDrained(s, me)) return false;
        h.pc = s.reader.held[h.slot] ? H_RETIRE : H_REUSE_DEAD;
        break;
    case H_REUSE_DEAD:
        s.ghost.life[h.slot] = ++s.ghost.lives; /* From here on no thread of the old life stores. */
        header(H_STATE, H_DEAD, RELEASE);
        h.pc = H_REUSE_NAME;
        break;
    case H_REUSE_NAME: /* [Segments.renameToSpare] after the full fence */
        if (!isDrained(s, me)) return false;
        s.ghost.name[h.slot] = NO_NAME;
        h.pc = H_REUSE_HEADER;
        break;
    case H_REUSE_HEADER:
        store(s, me, mine(SLOT_SALT), s.ghost.life[h.slot]);
        header(H_SALT, s.ghost.life[h.slot], 0);
        header(H_ALLOCATED, 0, 0);
        header(H_STATE, H_OPEN, RELEASE);
        store(s, me, mine(STATE), IS_SPARE, RELEASE);
        h.pc = H_REUSE_UNLOCK;
        break;
    case H_REUSE_UNLOCK:
        if (!isDrained(s, me)) return false;
        s.ghost.archived[h.slot] = 0;
        h.pc = H_PUT_SPARE;
        break;
    case H_PUT_SPARE: /* [Segments.putSpare] */
        if (!isDrained(s, me)) return false;
        for (int i = 0; i < SPARES; i++)
            if (exchangeIf(s, SPARE + i, 0, static_cast<u8>(h.slot + 1))) {
                if (op == 'm') h.pc = H_END;
                else nextSlot(H_QUIET_SLOT);
                return true;
            }
        h.pc = H_UNMAP;
        break;

    case H_UNMAP: /* [Segments.releaseMapping] [Segments.letGo] */
        store(s, me, mine(BASE), 0);
        h.pc = H_UNMAPPED;
        break;
    case H_UNMAPPED:
        if (!isDrained(s, me)) return false;
        /* An unarchived file stays on the disk, and no longer changes. */
        if (s.ghost.name[h.slot] != NO_NAME && !s.ghost.archived[h.slot]) takeAway(s, h.slot);
        s.ghost.mapped[h.slot] = s.ghost.archived[h.slot] = 0;
        s.ghost.unlinked[h.slot] = s.ghost.name[h.slot] = 0;
        store(s, me, mine(STATE), FREE, RELEASE);
        if (op == 'm') h.pc = H_END;
        else nextSlot(H_QUIET_SLOT);
        break;

    case H_MAKE_SLOT: /* [Segments.make] */
        if (!isDrained(s, me)) return false;
        if (exchangeIf(s, mine(STATE), FREE, MAKING)) {
            makeSpare(s, me, h.slot);
            h.pc = H_PUT_SPARE;
        } else {
            nextSlot(H_MAKE_SLOT);
        }
        break;

    case H_SET_VERSION: /* [Resource.begin] Any thread of the host. */
        store(s, me, VERSION, static_cast<u8>(load(s, me, VERSION) + 1), RELEASE);
        h.pc = H_CUT;
        break;
    case H_CUT:
        if (mutant != NO_CUT)
            store(s, me, blockWord(h.block, LIMIT), 0, mutant == CUT_RELAXED ? 0 : RELEASE);
        nextBlock(H_CUT, H_HAS_CUT);
        break;
    case H_HAS_CUT: /* Whoever knows that the call has returned sees its stores. */
        if (!isDrained(s, me)) return false;
        s.ghost.version = s.memory[VERSION];
        h.pc = H_END;
        break;
    }
    return true;
}

inline bool takeHelperStep(State &s) {
    Helper &h = s.helper;
    if (config->script[h.op] == 0 || s.buffers[HELPER].count + 7 > BUFFER_BYTES) return false;
    if (!helperStep(s)) return false;
    while (broken == nullptr && isLocal(h) && config->script[h.op] != 0) helperStep(s);
    return true;
}

} // namespace model
#endif
