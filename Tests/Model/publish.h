/* How writers and the helper change segments: taking a spare, making one in line, making it
 * current. Each case of the switch touches one shared word or only stores. Names in brackets are
 * the Swift functions it follows. Signals are blocked in here, as there. */
#ifndef MODEL_PUBLISH_H
#define MODEL_PUBLISH_H
#include "state.h"

namespace model {

enum PublishPc : u8 {
    PUB_IDLE, PUB_START, PUB_TAKE, PUB_LOOK, PUB_SLOT, PUB_FULL, PUB_NAME, PUB_OPEN, PUB_CURRENT,
    PUB_END,
};
inline const char *const publishNames[] = {
    "", "publish: still current?", "publish: take spare", "publish: current before making",
    "publish: take slot, make", "publish: full?", "publish: name", "publish: state open",
    "publish: current", "publish: end",
};

inline bool isLocal(PublishPc pc) { return pc == PUB_OPEN || pc == PUB_END; }

/* [Segments.newSlot], [Segments.make], [Segments.writeHeader]: a spare in a slot that is MAKING. */
inline u8 makeSpare(State &s, int buffer, int slot) {
    u8 life = freshFile(s, slot);
    store(s, buffer, slotWord(slot, SLOT_SALT), life);
    store(s, buffer, slotWord(slot, BASE), 1);
    store(s, buffer, fileWord(slot, H_SALT), life, 0, life);
    store(s, buffer, fileWord(slot, H_ALLOCATED), 0, 0, life);
    store(s, buffer, fileWord(slot, H_STATE), H_OPEN, RELEASE, life);
    store(s, buffer, slotWord(slot, STATE), IS_SPARE, RELEASE);
    return life;
}

/* [Segments.publishNext], [Segments.takeSpare], [Segments.makeForWriter], [Segments.makeInLine],
 * [Segments.takeSlot]. A writer holds the old one meanwhile. True: it made a step. p.pc is PUB_IDLE
 * when it is done. */
inline bool publishStep(State &s, int buffer, Publish &p) {
    switch (p.pc) {
    case PUB_START:
        if (load(s, buffer, CURRENT) != p.old + 1) {
            p = Publish{};
            break;
        }
        p.pc = PUB_TAKE;
        break;
    case PUB_TAKE:
        if (!isDrained(s, buffer)) return false;
        if (u8 spare = s.memory[SPARE + p.index]; spare != 0) {
            s.memory[SPARE + p.index] = 0;
            p.next = static_cast<u8>(spare - 1);
            p.pc = PUB_NAME;
        } else if (++p.index == SPARES) {
            p.index = 0;
            p.pc = PUB_LOOK;
        }
        break;
    case PUB_LOOK:
        p.pc = load(s, buffer, CURRENT) == p.old + 1 ? PUB_SLOT : PUB_END;
        break;
    case PUB_SLOT:
        if (!isDrained(s, buffer)) return false;
        if (exchangeIf(s, slotWord(p.index, STATE), FREE, MAKING)) {
            p.next = p.index;
            p.newLife = makeSpare(s, buffer, p.index);
            p.pc = PUB_NAME;
        } else if (++p.index == config->slots) {
            p.pc = PUB_FULL;
        }
        break;
    case PUB_FULL:
        p.isFull = load(s, buffer, CURRENT) == p.old + 1;
        p.pc = PUB_END;
        break;
    case PUB_NAME: /* [Segments.renameSpare] */
        if (!isDrained(s, buffer)) return false;
        s.ghost.name[p.next] = SEG_NAME;
        p.pc = PUB_OPEN;
        break;
    case PUB_OPEN:
        store(s, buffer, slotWord(p.next, STATE), OPEN, RELEASE);
        p.pc = PUB_CURRENT;
        break;
    case PUB_CURRENT:
        if (!isDrained(s, buffer)) return false;
        if (!exchangeIf(s, CURRENT, static_cast<u8>(p.old + 1), static_cast<u8>(p.next + 1))) {
            s.ghost.name[p.next] = NO_NAME; /* [Segments.unlinkFile] */
            s.ghost.unlinked[p.next] = 1;
            store(s, buffer, slotWord(p.next, STATE), SEALED, RELEASE);
        }
        p.pc = PUB_END;
        break;
    case PUB_END:
        p.index = p.next = p.old = p.newLife = 0;
        p.pc = PUB_IDLE;
        break;
    default: break;
    }
    return true;
}

} // namespace model
#endif
