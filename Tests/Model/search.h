/* Walks every state that a configuration can reach, depth first, each once. A 128-bit hash
 * identifies a state (at 10^8 states the chance that two share one is 10^-22). Checks what a kill
 * in each state would leave. Counts the complete interleavings by adding up those of a state's
 * successors. Keeps the path to a broken rule. One thread. */
#ifndef MODEL_SEARCH_H
#define MODEL_SEARCH_H
#include "reader.h"
#include "writer.h"
#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

namespace model {

struct Key {
    std::uint64_t low, high;
};

inline Key keyOf(const State &s) {
    std::uint64_t a = 0x9E3779B97F4A7C15u, b = 0xC2B2AE3D27D4EB4Fu, word;
    const char *bytes = reinterpret_cast<const char *>(&s);
    const std::size_t size = config->reader ? sizeof s : offsetof(State, reader);
    for (std::size_t at = 0; at < size; at += 8) {
        word = 0;
        std::memcpy(&word, bytes + at, size - at < 8 ? size - at : 8);
        a = (a ^ word) * 0xFF51AFD7ED558CCDu;
        a ^= a >> 32;
        b = (b + word) * 0xD6E8FEB86659FD93u;
        b ^= b >> 29;
    }
    return {(a ^ b >> 31) | 1, b * 0xFF51AFD7ED558CCDu ^ a >> 33};
}

/* Open addressing. Doubles when three quarters full. */
class Seen {
public:
    struct Slot {
        Key key;
        double ways; /* complete interleavings from there; below 0: still on the path */
    };
    Seen() : slots(1 << 12) {}
    std::size_t count = 0;

    /* isNew: the key was not there before. */
    Slot &find(const Key &key, bool &isNew) {
        if (count * 4 >= slots.size() * 3) grow();
        Slot &slot = place(slots, key);
        isNew = slot.key.low == 0;
        if (isNew) {
            slot.key = key;
            slot.ways = -1;
            count++;
        }
        return slot;
    }

private:
    std::vector<Slot> slots;

    static Slot &place(std::vector<Slot> &in, const Key &key) {
        std::size_t mask = in.size() - 1, at = key.high & mask;
        while (in[at].key.low && (in[at].key.low != key.low || in[at].key.high != key.high))
            at = (at + 1) & mask;
        return in[at];
    }
    void grow() {
        std::vector<Slot> more(slots.size() * 2);
        for (const Slot &slot : slots)
            if (slot.key.low) place(more, slot.key) = slot;
        slots.swap(more);
    }
};

/* Moves: each writer's step, the signal, the jump, helper, reader, and each store that may land. */
enum : int { MOVE_SIGNAL = WRITERS, MOVE_JUMP, MOVE_HELPER, MOVE_READER, MOVE_LAND };

inline int moveCount() { return MOVE_LAND + BUFFERS * (config->weak ? BUFFER_BYTES : 1); }

/* False if `apply` is sure to refuse, which saves a copy. */
inline bool mayMove(const State &s, int move) {
    if (move < WRITERS)
        return move < config->writers
               && (s.writers[move].next < config->records[move] || s.writers[move].frames[0].pc);
    if (move == MOVE_SIGNAL) return mayInterrupt(s.writers[0]);
    if (move == MOVE_JUMP) return config->handler > 1 && s.writers[0].depth;
    if (move == MOVE_HELPER) return config->script[s.helper.op] != 0;
    if (move == MOVE_READER) return s.reader.round < config->reader;
    return mayLand(s.buffers[(move - MOVE_LAND) % BUFFERS], (move - MOVE_LAND) / BUFFERS);
}

inline bool apply(State &s, int move) {
    if (move < WRITERS) return move < config->writers && takeWriterStep(s, move);
    if (move == MOVE_SIGNAL) return interrupt(s);
    if (move == MOVE_JUMP) return jump(s);
    if (move == MOVE_HELPER) return takeHelperStep(s);
    if (move == MOVE_READER) return takeReaderStep(s);
    return drain(s, (move - MOVE_LAND) % BUFFERS, (move - MOVE_LAND) / BUFFERS);
}

inline std::string wordName(int at) {
    static const char *const block[] = {"busy", "limit", "verdict", "segment", "salt", "chunk"};
    static const char *const head[] = {"state", "slot salt", "base", "header state", "header salt",
                                       "allocated"};
    static const char *const chunk[] = {"salt", "who", "committed", "final", "record", "record"};
    if (at >= VERSION) return "version";
    if (at >= SPARE) return "spare";
    if (at >= CURRENT) return "current";
    if (at < SLOTS_AT)
        return "block " + std::to_string(at / BLOCK_WORDS) + " " + block[at % BLOCK_WORDS];
    int slot = (at - SLOTS_AT) / SLOT_SIZE, word = (at - SLOTS_AT) % SLOT_SIZE;
    std::string name = "segment " + std::to_string(slot) + " ";
    if (word < SLOT_WORDS + HEADER_WORDS) return name + head[word];
    word -= SLOT_WORDS + HEADER_WORDS;
    name += "chunk " + std::to_string(word / CHUNK_WORDS) + " " + chunk[word % CHUNK_WORDS];
    return word % CHUNK_WORDS > C_CELL ? name + " 2" : name;
}

/* The move's action in that state, for the path to a broken rule. */
inline std::string moveName(const State &s, int move) {
    if (move < WRITERS) {
        const Frame &f = s.writers[move].frames[s.writers[move].depth];
        std::string step = f.publish.pc ? publishNames[f.publish.pc] : writerNames[f.pc];
        return "writer " + std::to_string(move) + (s.writers[move].depth ? " in handler: " : ": ")
               + step + "  (record " + std::to_string(f.record) + ")";
    }
    if (move == MOVE_SIGNAL) return "writer 0: a signal";
    if (move == MOVE_JUMP) return "writer 0: longjmp out of the handler";
    if (move == MOVE_READER) return std::string("reader: ") + readerNames[s.reader.pc];
    if (move == MOVE_HELPER) {
        const Helper &h = s.helper;
        std::string step = h.publish.pc ? publishNames[h.publish.pc] : helperNames[h.pc];
        return "helper: " + step + "  (segment " + std::to_string(h.slot) + ", block "
               + std::to_string(h.block) + ")";
    }
    int buffer = (move - MOVE_LAND) % BUFFERS;
    const Entry &e = s.buffers[buffer].entries[(move - MOVE_LAND) / BUFFERS];
    return (buffer == HELPER ? "    helper" : "    writer " + std::to_string(buffer))
           + std::string("'s store lands: ") + wordName(e.at) + " = " + std::to_string(e.value);
}

struct Walk {
    std::size_t states = 0, deepest = 0;
    double transitions = 0, ways = 0;
    bool isWhole = false, isCyclic = false;
    const char *broken = nullptr;
    std::vector<std::string> way;
};

inline bool isThrough(const State &s) {
    for (int w = 0; w < config->writers; w++)
        if (s.writers[w].depth || s.writers[w].frames[0].pc != IDLE
            || s.writers[w].next < config->records[w])
            return false;
    return config->script[s.helper.op] == 0 && s.reader.round >= config->reader;
}

inline Walk walk(const State &first, std::size_t statesMax) {
    struct Node {
        State state;
        Key key;
        double ways;
        int next;
        bool hasMoved;
    };
    Walk result;
    Seen seen;
    std::vector<Node> path;
    bool isNew;
    broken = nullptr;
    path.push_back({first, keyOf(first), 0, 0, false});
    seen.find(path[0].key, isNew);
    const int moves = moveCount();
    State s;
    while (!path.empty() && seen.count < statesMax) {
        Node &top = path.back();
        if (path.size() > result.deepest) result.deepest = path.size();
        if (top.next == moves) {
            if (!top.hasMoved) {
                if (!isThrough(top.state)) breaks("nobody can go on");
                top.ways = 1;
            }
            if (broken) break;
            seen.find(top.key, isNew).ways = top.ways;
            double ways = top.ways;
            path.pop_back();
            if (path.empty()) result.ways = ways;
            else path.back().ways += ways;
            continue;
        }
        int move = top.next++;
        if (!mayMove(top.state, move)) continue;
        s = top.state;
        if (!apply(s, move)) {
            if (broken) break;
            continue;
        }
        top.hasMoved = true;
        result.transitions++;
        if (!broken) checkRecovery(s);
        if (broken) break;
        Key key = keyOf(s);
        Seen::Slot &slot = seen.find(key, isNew);
        if (isNew) path.push_back({s, key, 0, 0, false});
        else if (slot.ways < 0) result.isCyclic = true;
        else top.ways += slot.ways;
    }
    result.states = seen.count;
    result.broken = broken;
    result.isWhole = !broken && path.empty();
    if (broken)
        for (const Node &node : path) result.way.push_back(moveName(node.state, node.next - 1));
    return result;
}

} // namespace model
#endif
