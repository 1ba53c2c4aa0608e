// An explicit-state model checker of the append protocol: every interleaving of writers, helper,
// reader and store buffers at small sizes, with a kill in every state. It must also catch variants
// with one rule removed. docs/CONCURRENCY.md, What is walked; run.py builds and runs it.
//     walker [--all] [--only NAME] [--mutant NAME|none] [--trace] [--states MAX]

#include "search.h"
#include <chrono>
#include <cstdlib>

namespace model {

const Config *config;
int mutant;
const char *broken;

// name, writers, records, slots, chunks, cells, warm, spares, script, handler, reader, locks,
// missing, weak, isRolled, isFull, when
static const Config configs[] = {
    {"claim-seal", 1, {2}, 2, 1, 2, 0, 1, "rs", 0, 0, 0, 0, 0, 0, 0, 0},
    {"claim-beside", 2, {0, 2}, 2, 2, 2, 1, 1, "rs", 0, 0, 0, 0, 0, 0, 0, 0},
    {"recycle", 1, {3}, 2, 1, 2, 1, 1, "rsacrs", 0, 0, 0, 0, 0, 0, 0, 0},
    {"free", 1, {3}, 2, 1, 2, 1, 1, "rsfmrs", 0, 0, 0, 0, 0, 0, 0, 0},
    {"handler", 1, {1}, 2, 2, 1, 1, 1, "rs", 1, 0, 0, 0, 0, 0, 0, 0},
    {"reader", 1, {1}, 2, 1, 1, 1, 1, "rs", 0, 2, 1, 0, 0, 0, 0, 0},
    {"missing", 1, {2}, 2, 2, 1, 1, 1, "rs", 0, 0, 0, 1, 0, 0, 0, 0},
    {"weak", 1, {2}, 2, 1, 1, 1, 1, "rsac", 0, 0, 0, 0, 1, 0, 0, 0},
    {"weak-publish", 1, {2}, 3, 1, 1, 1, 2, "rsac", 0, 0, 0, 0, 1, 0, 1, 0},
    {"resource", 1, {3}, 2, 3, 2, 0, 1, "v", 0, 0, 0, 0, 0, 0, 0, 0},
    {"resource-seal", 1, {2}, 2, 2, 2, 1, 1, "rsv", 0, 0, 0, 0, 0, 0, 0, 0},
    {"resource-handler", 1, {1}, 2, 3, 1, 1, 1, "v", 1, 0, 0, 0, 0, 0, 0, 0},
    {"resource-missing", 1, {3}, 2, 3, 2, 0, 1, "v", 0, 0, 0, 1, 0, 0, 0, 0},
    {"resource-weak", 1, {3}, 2, 3, 2, 0, 1, "v", 0, 0, 0, 0, 1, 0, 0, 0},
    {"resource-two", 2, {1, 1}, 2, 3, 1, 1, 1, "v", 0, 0, 0, 0, 0, 0, 0, 0},
    {"two-seal", 2, {1, 1}, 2, 2, 1, 2, 1, "rs", 0, 0, 0, 0, 0, 0, 0, 0},
    {"longjmp", 1, {2}, 2, 2, 1, 1, 1, "rs", 2, 0, 0, 0, 0, 0, 0, 0},
    {"longjmp-free", 1, {2}, 2, 2, 1, 1, 1, "rsf", 2, 0, 0, 0, 0, 0, 0, 0},
    {"longjmp-nested", 1, {2}, 2, 2, 1, 1, 1, "rs", 3, 0, 0, 0, 0, 0, 0, 1},
    {"two-recycle", 2, {1, 1}, 2, 2, 1, 2, 1, "rsac", 0, 0, 0, 0, 0, 0, 0, 0},
    {"idle-chunk", 2, {0, 3}, 3, 2, 1, 2, 2, "rsacrsrs", 0, 0, 0, 0, 0, 0, 0, 1},
    {"reader-locked", 1, {2}, 2, 1, 1, 1, 1, "rsac", 0, 1, 1, 0, 0, 0, 0, 0},
    {"reader-recycle", 1, {2}, 2, 1, 1, 1, 1, "rsac", 0, 1, 0, 0, 0, 0, 0, 1},
    {"reader-longjmp", 1, {2}, 2, 1, 1, 1, 1, "rs", 2, 2, 1, 0, 0, 0, 0, 1},
    {"reader-twice", 1, {1}, 3, 1, 1, 1, 2, "rsrs", 0, 3, 1, 0, 0, 0, 0, 1},
    {"two-missing", 2, {1, 1}, 2, 2, 1, 2, 1, "rs", 0, 0, 0, 1, 0, 0, 0, 1},
    {"weak-two", 2, {1, 1}, 2, 2, 1, 2, 1, "rs", 0, 0, 0, 0, 1, 0, 0, 1},
    {"three-idle", 3, {1, 1, 0}, 2, 3, 1, 3, 1, "s", 0, 0, 0, 0, 0, 1, 0, 0},
    {"three-publish", 3, {1, 1, 1}, 2, 1, 1, 0, 1, "", 0, 0, 0, 0, 0, 0, 0, 1},
    {"three-seal", 3, {1, 1, 1}, 2, 3, 1, 3, 1, "s", 0, 0, 0, 0, 0, 1, 0, 2},
};

struct MutantName {
    const char *name, *rule;
    const char *where; /* the configuration that must catch it */
    bool isHeavy;      /* only with --all */
};
static const MutantName mutants[MUTANTS] = {
    {"none", "", "", false},
    {"no-fence-before-poison", "R1", "claim-beside", false},
    {"no-fence-after-poison", "R1", "claim-seal", false},
    {"no-recheck", "R3", "claim-seal", false},
    {"no-claim-id", "R2", "recycle", false},
    {"no-grace", "R5", "recycle", false},
    {"salt-first", "R4", "recycle", false},
    {"committed-first", "R4", "claim-seal", false},
    {"busy-late", "R6", "weak", false},
    {"no-reader-recheck", "R11", "reader-recycle", false},
    {"no-second-look", "R1", "claim-seal", false},
    {"no-poison", "R1", "claim-seal", false},
    {"no-block-salt", "R2", "idle-chunk", false},
    {"no-rewrite", "R1", "claim-seal", false},
    {"no-short-final", "R2", "claim-seal", false},
    {"loser-writes-final", "R5", "recycle", false},
    {"abandoned-writes-final", "R18", "longjmp-free", false},
    {"no-nest", "R17", "handler", false},
    {"idle-before-final", "R5", "recycle", false},
    {"light-without-membarrier", "R7", "missing", false},
    {"open-is-sealed", "A10", "recycle", false},
    {"no-reader-duplicates", "A3", "reader", false},
    {"segment-relaxed", "R6", "weak-publish", false},
    {"skipped-is-forgotten", "A3", "reader-twice", false},
    {"passes-over-any", "A3", "reader-longjmp", true},
    {"no-hold", "R6", "recycle", false},
    {"no-look-at-held", "R6", "recycle", false},
    {"no-cut", "A44", "resource", false},
    {"cut-relaxed", "A44", "resource-weak", false},
    {"no-look-at-version", "A44", "resource", false},
};

static State firstState() {
    State s{};
    u8 life = freshFile(s, 0);
    s.memory[slotWord(0, STATE)] = OPEN;
    s.memory[slotWord(0, SLOT_SALT)] = life;
    s.memory[slotWord(0, BASE)] = 1;
    s.memory[fileWord(0, H_SALT)] = life;
    s.memory[fileWord(0, H_STATE)] = H_OPEN;
    s.ghost.name[0] = SEG_NAME;
    s.memory[CURRENT] = 1;
    for (int w = 0; w < config->warm; w++) {
        Block &b = s.blocks[w];
        b.ptr = b.segment = 1;
        b.chunk = address(0, w);
        b.life = life;
        b.sequence = 1;
        s.memory[chunkWord(0, w, C_SALT)] = life;
        s.memory[chunkWord(0, w, C_WHO)] = static_cast<u8>(w << 4);
        s.memory[chunkWord(0, w, C_COMMITTED)] = 1;
        s.memory[fileWord(0, H_ALLOCATED)]++;
        s.memory[blockWord(w, LIMIT)] = s.memory[blockWord(w, SEGMENT)] = 1;
        s.memory[blockWord(w, SALT)] = life;
        s.memory[blockWord(w, CHUNK)] = b.chunk;
        s.memory[blockWord(w, VERDICT)] = verdictOf(mutant == NO_CLAIM_ID ? 0 : 1, true, 0);
    }
    for (int i = 0; i < config->spares; i++) {
        makeSpare(s, HELPER, i + 1);
        while (drain(s, HELPER, 0)) {}
        s.memory[SPARE + i] = static_cast<u8>(i + 2);
    }
    if (config->isRolled) {
        s.memory[SPARE] = 0;
        s.memory[slotWord(1, STATE)] = OPEN;
        s.memory[CURRENT] = 2;
        s.ghost.name[1] = SEG_NAME;
    }
    if (config->isFull)
        s.memory[fileWord(1, H_ALLOCATED)] = static_cast<u8>(config->chunks);
    return s;
}

static void printWay(const Walk &walk) {
    for (const std::string &step : walk.way) std::printf("    %s\n", step.c_str());
    std::printf("    → %s\n", walk.broken);
}

} // namespace model

int main(int argc, char **argv) {
    using namespace model;
    bool all = false, trace = false;
    std::string only, onlyMutant;
    std::size_t statesMax = 60000000;
    for (int i = 1; i < argc; i++) {
        std::string word = argv[i];
        auto value = [&] { return i + 1 < argc ? std::string(argv[++i]) : std::string(); };
        if (word == "--all") all = true;
        else if (word == "--trace") trace = true;
        else if (word == "--only") only = value();
        else if (word == "--mutant") onlyMutant = value();
        else if (word == "--states") statesMax = std::strtoull(value().c_str(), nullptr, 10);
        else return std::fprintf(stderr, "walker: no such option: %s\n", argv[i]), 2;
    }
    int passed = 0, failed = 0;
    auto seconds = [start = std::chrono::steady_clock::now()] {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    };
    for (const Config &each : configs) {
        if ((!only.empty() && only != each.name) || (!onlyMutant.empty() && onlyMutant != "none"))
            continue;
        if (each.when > (all ? 1 : 0) && only.empty()) continue;
        config = &each;
        mutant = NONE;
        double begun = seconds();
        Walk result = walk(firstState(), statesMax);
        std::printf("%-16s %10zu states %11.0f moves %9.2e interleavings, depth %4zu %6.1f s%s\n",
                    each.name, result.states, result.transitions, result.ways, result.deepest,
                    seconds() - begun, result.isCyclic ? " (cyclic)" : "");
        (result.isWhole ? passed : failed)++;
        if (result.broken) printWay(result);
        else if (!result.isWhole) std::printf("    not walked to its end\n");
        std::fflush(stdout);
    }
    for (int m = 1; m < MUTANTS; m++) {
        if (!onlyMutant.empty() && onlyMutant != mutants[m].name) continue;
        if (onlyMutant.empty() && (!only.empty() || (mutants[m].isHeavy && !all))) continue;
        mutant = m;
        Walk result;
        double begun = seconds(), states = 0;
        for (const Config &each : configs) {
            if (each.name != (only.empty() ? std::string(mutants[m].where) : only)) continue;
            config = &each;
            result = walk(firstState(), statesMax);
            states += static_cast<double>(result.states);
            if (result.broken) break;
        }
        bool caught = result.broken != nullptr;
        std::printf("without %-26s %-6s %-8s %-15s %9.0f states %5.1f s: %s\n", mutants[m].name,
                    mutants[m].rule, caught ? "caught" : "NOT SEEN", caught ? config->name : "",
                    states, seconds() - begun, caught ? result.broken : "");
        if (caught && trace) printWay(result);
        std::fflush(stdout);
        (caught ? passed : failed)++;
    }
    std::printf("%d passed, %d failed\n", passed, failed);
    return failed || !passed;
}
