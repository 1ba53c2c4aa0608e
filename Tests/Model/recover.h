/* What a reader of the files would find if the process were killed in this state, and whether that
 * matches what the callers were told. Runs on every state of every walk, so a death of the process
 * needs no step of its own. Stores that have not landed count as never issued: the walk also meets
 * the states in which they have. */
#ifndef MODEL_RECOVER_H
#define MODEL_RECOVER_H
#include "state.h"

namespace model {

/* A record's position in its thread's order; not 0. */
inline u8 place(u8 who, int index) { return static_cast<u8>((who & 15) * 4 + index + 1); }

inline bool isOf(u8 record, u8 who) {
    int block = who >> 4;
    if (record == HANDLER_RECORD) return block == 0 || block == NESTED;
    return record >= 1 && record < HANDLER_RECORD && (record - 1) / 3 == block;
}

/* [SegmentFile.scan], [ChunkHead.init], [ChunkHead.end] */
inline void readFile(const State &s, int slot, u8 *found) {
    const u8 salt = s.memory[fileWord(slot, H_SALT)];
    for (int c = 0; c < config->chunks && c < s.memory[fileWord(slot, H_ALLOCATED)]; c++) {
        const u8 *chunk = s.memory + chunkWord(slot, c, 0);
        if (chunk[C_SALT] != salt || chunk[C_COMMITTED] < 1) continue;
        const int end = (chunk[C_FINAL] ? chunk[C_FINAL] : chunk[C_COMMITTED]) - 1;
        if (end > config->cells) return breaks("a chunk says it is longer than it is");
        for (int i = 0; i < end; i++) {
            u8 record = chunk[C_CELL + i];
            if (record == 0) return breaks("a record is torn");
            if (!isOf(record, chunk[C_WHO])) return breaks("a record is another thread's");
            if (found[record]) return breaks("a record is found twice");
            if (s.ghost.versions[slot][c] < s.ghost.least[record])
                return breaks("a record has the resource from before a change");
            found[record] = place(chunk[C_WHO], i);
        }
    }
}

/* Its records are in an archive, or in a file to which no thread can store any more. */
inline void takeAway(State &s, int slot) {
    readFile(s, slot, s.ghost.archive);
    s.ghost.archived[slot] = 1;
}

inline bool isInFlight(const State &s, int record) {
    for (const Buffer &buffer : s.buffers)
        for (int i = 0; i < buffer.count; i++)
            if (buffer.entries[i].flags / RECORD == record) return true;
    return false;
}

/* [StoreArchiver.archiveLane] after a kill in this state. */
inline void checkRecovery(const State &s) {
    u8 found[RECORDS + 1];
    std::memcpy(found, s.ghost.archive, sizeof found);
    for (int slot = 0; slot < config->slots; slot++)
        if (s.ghost.name[slot] != NO_NAME && !s.ghost.archived[slot]) readFile(s, slot, found);
    if (broken) return;
    for (int record = 1; record <= RECORDS; record++) {
        u8 fate = s.ghost.fate[record];
        if (fate == RETURNED && !found[record] && !isInFlight(s, record))
            return breaks("a record is lost");
        if ((fate == REFUSED || fate == NOT_BEGUN) && found[record])
            return breaks("a record is found that was not kept");
        if (record < HANDLER_RECORD && (record - 1) % 3 && found[record] && found[record - 1]
            && found[record] < found[record - 1])
            return breaks("the order within a thread is broken");
    }
}

} // namespace model
#endif
