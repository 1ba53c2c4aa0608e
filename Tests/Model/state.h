/* The walker's world: the atomic words of docs/CONCURRENCY.md as small numbers, a store buffer for
 * each thread, and facts that only the checks see (lives of files, names, fates of records).
 * Everything is bytes, so that states are equal if their bytes are. One thread; no heap. */
#ifndef MODEL_STATE_H
#define MODEL_STATE_H
#include <cstdint>
#include <cstring>

/* Lists of steps are written once. These macros turn them into an enumeration and its names. */
#define STEP(name) name,
#define STEP_NAME(name) #name,

namespace model {

using u8 = std::uint8_t;

enum : int {
    WRITERS = 3,   /* at most; block and buffer of writer w are w */
    NESTED = 3,    /* block of writer 0's signal handler; its stores go through buffer 0 */
    BLOCKS = 4,
    HELPER = 3,    /* buffer of the helper */
    BUFFERS = 4,
    SLOTS = 3,     /* segments that are mapped at once */
    CHUNKS = 3,    /* in a segment */
    CELLS = 2,     /* records in a chunk */
    SPARES = 2,
    RECORDS = 10,  /* writer w's are 1 + 3w …; the handler's is the last */
    HANDLER_RECORD = 10,
    BUFFER_BYTES = 12,
};

/* Words of a thread block: A1, A2, A3, –, A3, A4. */
enum : int { BUSY, LIMIT, VERDICT, SEGMENT, SALT, CHUNK, BLOCK_WORDS };
/* Words of a segment's slot: A5, –, –. */
enum : int { STATE, SLOT_SALT, BASE, SLOT_WORDS };
/* Words of a segment's header in its file (FORMAT §6.1); number and generation go with the salt. */
enum : int { H_STATE, H_SALT, H_ALLOCATED, HEADER_WORDS };
/* Words of a chunk's header (FORMAT §6.2), then its records. Lengths are 1 + records. */
enum : int { C_SALT, C_WHO, C_COMMITTED, C_FINAL, C_CELL, CHUNK_WORDS = C_CELL + CELLS };

enum : int {
    SLOT_SIZE = SLOT_WORDS + HEADER_WORDS + CHUNKS * CHUNK_WORDS,
    SLOTS_AT = BLOCKS * BLOCK_WORDS,
    CURRENT = SLOTS_AT + SLOTS * SLOT_SIZE, /* A10 */
    SPARE = CURRENT + 1,                    /* A11 */
    VERSION = SPARE + SPARES,               /* A44 */
    WORDS = VERSION + 1,
};

/* Of a slot (CWI_SEGMENT_…) and of a header (SegmentHeader.state…). */
enum : u8 { FREE, MAKING, IS_SPARE, OPEN, SEALING, SEALED };
enum : u8 { H_OPEN = 1, H_SEALING, H_SEALED, H_DEAD };
/* A file's name: none or a spare's, `.seg`, `.sealed`. */
enum : u8 { NO_NAME, SEG_NAME, SEALED_NAME };
/* A record's fate as its caller knows it. */
enum : u8 { NOT_BEGUN, BEGUN, RETURNED, ABANDONED, REFUSED };

inline int blockWord(int block, int word) { return block * BLOCK_WORDS + word; }
inline int slotWord(int slot, int word) { return SLOTS_AT + slot * SLOT_SIZE + word; }
inline int fileWord(int slot, int word) { return slotWord(slot, SLOT_WORDS + word); }
inline int chunkWord(int slot, int chunk, int word) {
    return fileWord(slot, HEADER_WORDS + chunk * CHUNK_WORDS + word);
}
/* A chunk's address as the blocks hold it; 0 is nil. */
inline u8 address(int slot, int chunk) { return static_cast<u8>(slot * CHUNKS + chunk + 1); }
inline int addressWord(u8 chunk, int word) {
    return chunkWord((chunk - 1) / CHUNKS, (chunk - 1) % CHUNKS, word);
}
/* The slot whose file contains that word, or -1. */
inline int fileOf(int at) {
    if (at < SLOTS_AT || at >= CURRENT) return -1;
    return (at - SLOTS_AT) % SLOT_SIZE < SLOT_WORDS ? -1 : (at - SLOTS_AT) / SLOT_SIZE;
}

/* [Verdict.init] claim, open, offset. */
inline u8 verdictOf(int claim, bool open, int offset) {
    return static_cast<u8>((claim & 15) << 4 | (open ? 8 : 0) | offset);
}
inline bool isOpen(u8 verdict) { return verdict & 8; }
inline u8 offsetOf(u8 verdict) { return verdict & 7; }
inline int claimOf(u8 verdict) { return verdict >> 4; }

/* A store that its thread has issued and no other thread sees yet. */
struct Entry {
    u8 at, value, life, flags; /* life: of the file it is meant for; flags: below */
};
enum : u8 {
    RELEASE = 1,
    AWAITED = 2, /* by a membarrier that is running */
    FRESH = 4,   /* issued in its thread's latest step, see beginFence */
    RECORD = 8,  /* times the record that it commits */
};

struct Buffer {
    u8 count;
    Entry entries[BUFFER_BYTES];
};

/* What publishNext holds in registers. */
struct Publish {
    u8 pc, old, next, index, isFull, newLife;
};

/* One append's registers. */
struct Frame {
    u8 pc, record, block, segment, life, offset, verdict, salt, end, ret, kept;
    Publish publish;
};

struct Writer {
    u8 next, depth, fired; /* next record; frames in use less one; the signal has come */
    Frame frames[2];
};

/* Words of a thread block that only its owner reads, and its own view of the others. */
struct Block {
    u8 ptr, chunk, segment, sequence, settling, busy, life, version;
};

struct Helper {
    u8 op, pc, slot, block, verdict, chunk, tries, inUse, count, newLife;
    Publish publish;
};

struct ReaderChunk {
    u8 slot, chunk, who, loaded, shown, isFinal; /* 1 + slot; records loaded; 1 + last shown */
    u8 record;                                   /* the last shown */
};
struct Reader {
    u8 pc, round, slot, chunk, above, allocated, isExtending; /* above: last file of this round */
    u8 atSlot, atChunk, who, committed, final, copied, cells[CELLS];
    u8 known[SLOTS], inode[SLOTS], held[SLOTS]; /* salt, file and lock of what it has open */
    ReaderChunk last[BLOCKS];
    u8 duplicates[BLOCKS]; /* the record to skip in the next chunk */
    u8 got[RECORDS + 1];
};

struct Ghost {
    u8 life[SLOTS], inode[SLOTS], name[SLOTS], mapped[SLOTS], archived[SLOTS], unlinked[SLOTS];
    u8 lives;
    u8 fate[RECORDS + 1];
    u8 archive[RECORDS + 1]; /* 0, or its position: see place() */
    u8 version;              /* of the last change of the resource that has returned */
    u8 least[RECORDS + 1];   /* that version when the record began */
    u8 versions[SLOTS][CHUNKS];
};

struct State {
    u8 memory[WORDS];
    Buffer buffers[BUFFERS];
    Writer writers[WRITERS];
    Block blocks[BLOCKS];
    Helper helper;
    Ghost ghost;
    Reader reader; /* last: without a reader it is not part of the key */
};
static_assert(sizeof(State) == WORDS + BUFFERS * sizeof(Buffer) + WRITERS * sizeof(Writer)
                                   + BLOCKS * sizeof(Block) + sizeof(Helper) + sizeof(Reader)
                                   + sizeof(Ghost), "no padding: states are compared as bytes");

/* Each removes one rule; the walk must then meet what the rule prevents. */
enum Mutant : int {
    NONE,
    NO_FENCE_BEFORE_POISON,
    NO_FENCE_AFTER_POISON,
    NO_RECHECK,
    NO_CLAIM_ID,
    NO_GRACE,
    SALT_FIRST,
    COMMITTED_FIRST,
    BUSY_LATE,
    NO_READER_RECHECK,
    NO_SECOND_LOOK,
    NO_POISON,
    NO_BLOCK_SALT,
    NO_REWRITE,
    NO_SHORT_FINAL,
    LOSER_WRITES_FINAL,
    ABANDONED_WRITES_FINAL,
    NO_NEST,
    IDLE_BEFORE_FINAL,
    LIGHT_WITHOUT_MEMBARRIER,
    OPEN_IS_SEALED,
    NO_READER_DUPLICATES,
    SEGMENT_RELAXED,
    SKIPPED_IS_FORGOTTEN,
    PASSES_OVER_ANY,
    NO_HOLD,
    NO_LOOK_AT_HELD,
    NO_CUT,
    CUT_RELAXED,
    NO_LOOK_AT_VERSION,
    MUTANTS
};

struct Config {
    const char *name;
    int writers;
    int records[WRITERS];
    int slots, chunks, cells;
    int warm;   /* writers that hold a chunk of the first segment at the start */
    int spares; /* segments that are made already */
    /* The helper's actions: r roll, s seal, a archive, c recycle, f free, m make a spare,
     * v change the resource. */
    const char *script;
    int handler; /* of writer 0: 0 none, 1 appends, 2 leaves by longjmp, 3 either or both */
    int reader;  /* rounds it reads; 0: none */
    bool locks;  /* the reader holds its shared lock */
    bool missing; /* no membarrier */
    bool weak;    /* stores to different words may pass each other (arm64) */
    bool isRolled;  /* the first spare is already current, and the warm writers are behind it */
    bool isFull;    /* others have claimed all of the first spare and not stored yet */
    int when; /* it is walked: 0 always, 1 with --all, 2 only with --only */
};

extern const Config *config;
extern int mutant;
/* The first rule that the state breaks; NULL: none. */
extern const char *broken;

inline void breaks(const char *what) {
    if (broken == nullptr) broken = what;
}

inline u8 recordOf(int writer, int number) { return static_cast<u8>(1 + 3 * writer + number); }

/* A word as that buffer's thread sees it. */
inline u8 load(const State &s, int buffer, int at) {
    const Buffer &own = s.buffers[buffer];
    for (int i = own.count - 1; i >= 0; i--)
        if (own.entries[i].at == at) return own.entries[i].value;
    return s.memory[at];
}

/* A writer touches that word: its file must be mapped, and in the life of the claim. */
inline void touches(const State &s, int at, u8 life) {
    int slot = fileOf(at);
    if (slot < 0 || life == 0) return;
    if (!s.ghost.mapped[slot]) breaks("a mapping is touched that is gone");
    else if (s.ghost.life[slot] != life) breaks("a mapping is touched that is another segment's");
}

inline void store(State &s, int buffer, int at, u8 value, u8 flags = 0, u8 life = 0) {
    touches(s, at, life);
    Buffer &own = s.buffers[buffer];
    if (own.count == BUFFER_BYTES) return breaks("the model's store buffer overflows");
    own.entries[own.count++] = {static_cast<u8>(at), value, life,
                                static_cast<u8>(flags | FRESH)};
}

/* The thread goes on: it is past what it issued before. */
inline void goesOn(State &s, int buffer) {
    Buffer &own = s.buffers[buffer];
    for (int i = 0; i < own.count; i++) own.entries[i].flags &= static_cast<u8>(~FRESH);
}

/* A store reaches memory. */
inline void land(State &s, const Entry &entry) {
    touches(s, entry.at, entry.life);
    int slot = fileOf(entry.at);
    if (slot >= 0) {
        int word = (entry.at - fileWord(slot, 0)) - HEADER_WORDS;
        u8 before = s.memory[entry.at];
        const bool isFinal = word >= 0 && word % CHUNK_WORDS == C_FINAL;
        if (isFinal && before != 0 && entry.value != 0 && before != entry.value
            && s.memory[entry.at - C_FINAL] == s.memory[fileWord(slot, H_SALT)])
            breaks("a chunk was given two lengths");
    }
    s.memory[entry.at] = entry.value;
}

/* Whether that store may be the next to land. On x86 they land in order; on arm64 after those to
 * the same word, and a release after all. */
inline bool mayLand(const Buffer &own, int index) {
    if (index >= own.count) return false;
    if (index == 0) return true;
    if (!config->weak || own.entries[index].flags & RELEASE) return false;
    for (int i = 0; i < index; i++)
        if (own.entries[i].at == own.entries[index].at) return false;
    return true;
}

inline bool drain(State &s, int buffer, int index) {
    Buffer &own = s.buffers[buffer];
    if (!mayLand(own, index)) return false;
    land(s, own.entries[index]);
    for (int i = index; i + 1 < own.count; i++) own.entries[i] = own.entries[i + 1];
    own.entries[--own.count] = Entry{};
    return true;
}

inline bool isDrained(const State &s, int buffer) { return s.buffers[buffer].count == 0; }

/* Reads, writes and orders at once. Requires an empty buffer. */
inline bool exchangeIf(State &s, int at, u8 expected, u8 desired) {
    if (s.memory[at] != expected) return false;
    s.memory[at] = desired;
    return true;
}

/* A fresh file of zeros under the slot's addresses. */
inline u8 freshFile(State &s, int slot) {
    std::memset(s.memory + fileWord(slot, 0), 0, HEADER_WORDS + CHUNKS * CHUNK_WORDS);
    s.ghost.mapped[slot] = 1;
    s.ghost.archived[slot] = 0;
    s.ghost.unlinked[slot] = 0;
    s.ghost.name[slot] = NO_NAME;
    return s.ghost.inode[slot] = s.ghost.life[slot] = ++s.ghost.lives;
}

} // namespace model
#endif
