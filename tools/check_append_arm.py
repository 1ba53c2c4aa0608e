#!/usr/bin/env python3
"""The header's append on aarch64: reads the code that a cross compiler makes for the places of
check_append.py, and runs appends under an emulator to compare them with a native program.

Read: `committed` and busy = 0 are store-releases; loads and stores come in the order of
docs/CONCURRENCY.md, "The append in the header"; nothing except memcpy is called while busy; no
atomic is a call into the compiler's library; the thread pointer is read once a record, in loops,
too; the size of a place in bytes. Run: writes records with every kind of argument into a chunk,
without a library; the bytes must be those that the native program stores.

    check_append_arm.py             missing tools are named and left out
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
from check_append import BASE, BUSY_WORD, C, CHUNK, CPP, ENGINE, LIMIT  # noqa: E402
from check_append import RECORDS, ROOT, names_of  # noqa: E402

PREFIX = "aarch64-linux-gnu-"
COMPILERS = (("gcc", "c", C, "c11"), ("g++", "c++", CPP, "c++17"))
LEVELS = ("-O1", "-O2", "-O3")
WHOLE = "-fno-reorder-blocks-and-partition"
# A place of an int and a double with what it calls, at -O2.
BYTES_MAX = 320
LINE = re.compile(r"^\s*([0-9a-f]+):\t(.*?)\s*(?://.*)?$")
RELOCATION = re.compile(r"^\s*[0-9a-f]+: R_AARCH64_(?:CALL|JUMP)26\s+([\w.]+)"
                        r"(?:\+(0x[0-9a-f]+))?")
NAME = re.compile(r"^[0-9a-f]+ <([^>]*place_[^>]*)>:$")
JUMP = re.compile(r"^(?:b(?:\.\w+)?|cbn?z|tbn?z)\s(?:.*,\s*)?([0-9a-f]+)\b")
MEMORY = re.compile(r"\[(\w+)(?:, #(-?\w+))?\](!|, #(-?\w+))?")
ATOMIC_CALL = re.compile(r"__aarch64_\w+|__atomic_\w+")
# The function form takes a slot of its table, once for each place.
ONCE = {"c": set(), "c++": {"__aarch64_cas4_acq"}}
SLOW = re.compile(r"^bl? .*@.*cw_\w+_slow_")


def functions(text):
    """name → {address: instruction}; a call has its target after an @."""
    found, now, last, names = {}, None, None, names_of(text)
    for line in text.splitlines():
        if name := NAME.match(line):
            now = found.setdefault(name[1], {})
        elif re.match(r"^[0-9a-f]+ <", line):
            now = None
        elif now is None:
            continue
        elif relocation := RELOCATION.match(line):
            at = (relocation[1], int(relocation[2] or "0", 16))
            now[last] = now[last].split()[0] + " @" + names.get(at, relocation[1])
        elif instruction := LINE.match(line):
            last = int(instruction[1], 16)
            now[last] = re.sub(r"^(bl?)\s+\w+ <(cw_\w+)>$", r"\1 @\2",
                               re.sub(r"\s+", " ", instruction[2]))
    return found


def followers(code, at):
    """Where an instruction leads. A call returns."""
    line = code[at]
    following = min((a for a in code if a > at), default=None)
    if line == "ret" or re.match(r"b @", line):
        return []
    target = JUMP.match(line)
    ways = [int(target[1], 16)] if target and int(target[1], 16) in code else []
    return ways if line.startswith("b ") or following is None else [following, *ways]


def is_idle(line):
    return line.startswith("stlr xzr")


def ways_of(code, start):
    """(the shortest path from busy via the count to busy = 0, all that may run until then)."""
    came, waiting, counted = {start: None}, [start], None
    while waiting:
        at = waiting.pop(0)
        if counted is None and re.match(rf"str x\d+, \[x\d+, #{RECORDS}\]", code[at]):
            counted = at
        if is_idle(code[at]) or SLOW.match(code[at]):
            continue
        for following in followers(code, at):
            if following not in came:
                came[following] = at
                waiting.append(following)
    way, at = [], counted
    while at is not None:
        way.insert(0, at)
        at = came[at]
    while way and not is_idle(code[way[-1]]) and len(way) < 1000:
        more = followers(code, way[-1])
        if not more:
            break
        way.append(more[0])
    return [code[at] for at in way], [code[at] for at in came]


def register(name):
    return "x" + name[1:] if re.fullmatch(r"w\d+", name) else name


class Registers:
    """The content of each register and each stack slot: (what it was computed from, plus how many
    bytes)."""

    def __init__(self):
        self.held, self.stack, self.count = {}, {}, 0

    def get(self, name):
        return self.held.get(register(name), (register(name), 0))

    def set(self, name, value=None):
        self.count += 1
        self.held[register(name)] = value or (f"new{self.count}", 0)

    def call(self):
        for number in range(19):
            self.set(f"x{number}")


def trace(lines, registers):
    """(load or store or release, origin, offset) of each access, in order; updates registers."""
    for line in lines:
        name, _, rest = line.partition(" ")
        words = re.findall(r"[\w#-]+", rest)
        memory = MEMORY.search(rest)
        if memory and name != "prfm":
            origin, moved = registers.get(memory[1])
            at = moved + int(memory[2] or "0", 0) if not memory[4] else moved
            values = re.findall(r"\w+", rest[:rest.index("[")])
            kind = "load" if name.startswith("ld") else "release" if name == "stlr" else "store"
            for i, value in enumerate(values):
                place = at + i * (8 if values[0][0] in "xd" else 4)
                yield kind, origin, place
                if origin == "sp" and kind == "store":
                    registers.stack[place] = registers.get(value)
                elif kind == "load":
                    registers.set(value, registers.stack.get(place) if origin == "sp" else None)
            step = memory[4] or (memory[2] if memory[3] == "!" else None)
            if step:
                registers.set(memory[1], (origin, moved + int(step, 0)))
        elif name == "bl":
            registers.call()
        elif name == "mov" and words[1] in ("sp", "xzr") or name in ("mov", "add") and len(
                words) == 2 and re.fullmatch(r"[xw]\d+", words[1]):
            registers.set(words[0], registers.get(words[1]))
        elif name in ("add", "sub") and len(words) == 3 and words[2].startswith("#"):
            origin, moved = registers.get(words[1])
            step = int(words[2][1:], 0)
            registers.set(words[0], (origin, moved + (step if name == "add" else -step)))
        elif words and not name.startswith(("b", "cb", "tb", "cmp", "cmn", "tst", "ccmp", "ret")):
            registers.set(words[0])


def problems_of(code):
    """What is wrong with one place. None: it is a part that does not append."""
    addresses = sorted(code)
    stacks = [at for at in addresses if re.match(r"mov x\d+, sp$", code[at])
              and any(re.match(r"mrs x\d+, cntvct", code[a]) for a in addresses if a > at)]
    starts = []
    for at in stacks:
        here = [a for a in addresses if at <= a <= at + 16]
        value = code[at].split()[1].rstrip(",")
        store = next((a for a in here if code[a].startswith(f"str {value}, [")), None)
        if store is not None:
            starts.append(store)
    if not starts:
        return None
    if len(starts) > 1:
        return [f"busy is set {len(starts)} times"]
    way, busy = ways_of(code, starts[0])
    if not way or not is_idle(way[-1]):
        return ["a record does not end with its count and busy = 0"]
    wrong = [f"calls {line} while busy" for line in busy if re.match(r"(bl|b) @|blr", line)
             and not line.endswith("@memcpy") and not SLOW.match(line)]
    if not any(SLOW.match(line) for line in busy):
        wrong.append("a record whose chunk was closed is not settled")
    wrong += [f"{line}: no read-modify-write" for line in busy
              if re.match(r"(ldxr|stxr|ldaxr|stlxr|cas|swp|ldadd|ldset|ldclr)", line)]

    registers = Registers()
    # The address of `busy` may have been computed earlier and stored on the stack.
    list(trace([code[at] for at in addresses if at < starts[0]], registers))
    accesses = list(trace(way, registers))
    block = accesses[0][1]
    if accesses[0][2] != BUSY_WORD or accesses[-1] != ("release", block, BUSY_WORD):
        wrong.append(f"busy is not the first and the last store: {accesses[0]}, {accesses[-1]}")

    def where(kind, offset):
        return [i for i, access in enumerate(accesses) if access == (kind, block, offset)]
    engine, limits = where("load", ENGINE), where("load", LIMIT)
    if len(engine) != 1 or len(limits) != 2:
        return wrong + [f"engine, limit are looked at {len(engine)}, {len(limits)} times"]
    for name, offset in (("chunk", CHUNK), ("base", BASE), ("ptr", 0)):
        at = where("load", offset)
        if len(at) != 1 or not engine[0] < at[0] < limits[0]:
            wrong.append(f"{name} is loaded at {at}, not once between the engine's and the limit's")
    ptr, counted = where("store", 0), where("store", RECORDS)
    releases = [i for i, access in enumerate(accesses) if access[0] == "release"]
    if len(ptr) != 1 or len(counted) != 1 or len(releases) != 2:
        return wrong + [f"ptr, count, releases: {len(ptr)}, {len(counted)}, {len(releases)} times"]
    body = [i for i, access in enumerate(accesses) if access[0] != "load" and i > 0
            and access[1] not in (block, "sp")]
    if not body or body[-1] != releases[0] or accesses[releases[0]][2] != 8:
        wrong.append("committed is not a store-release behind all others into the chunk")
    if not releases[0] < ptr[0] < limits[1] < counted[0] < releases[1]:
        wrong.append("committed, ptr, the limit, the count and busy = 0 are not in this order")
    return wrong


def problems_of_loop(code):
    """A fiber may have moved to another thread between two records of a loop."""
    reads = [at for at, line in code.items() if re.match(r"mrs x\d+, tpidr_el0", line)]
    backward = [(int(target[1], 16), at) for at, line in code.items()
                if (target := JUMP.match(line)) and int(target[1], 16) <= at]
    return [] if any(to <= read <= at for read in reads for to, at in backward) else [
        "the thread pointer is not read in the loop"]


def read(folder):
    problems, places = [], 0
    for name, language, text, standard in COMPILERS:
        for level in LEVELS:
            output = Path(folder) / "places.o"
            subprocess.run([PREFIX + name, "-x", language, f"-std={standard}", level, "-fPIC", "-c",
                            "-", WHOLE, "-I", str(ROOT / "include"), "-o", str(output)],
                           input=text, text=True, check=True)
            dump = subprocess.run([PREFIX + "objdump", "-dr", "--no-show-raw-insn", str(output)],
                                  check=True, capture_output=True, text=True).stdout
            wrong = sorted(set(ATOMIC_CALL.findall(dump)) - ONCE[language])
            found = functions(dump)
            for place, code in found.items():
                its = problems_of(code)
                if its is None:
                    continue
                places += 1
                if "place_loop" in place:
                    its += problems_of_loop(code)
                size = 4 * len(code)
                if level == "-O2" and "place_numbers" in place and size > BYTES_MAX:
                    its.append(f"{size} bytes, at most {BYTES_MAX}")
                wrong += [f"{place}: {problem}" for problem in its]
            if sum(problems_of(code) is not None for code in found.values()) != len(
                    set(re.findall(r"\bplace_\w+", text))):
                wrong.append("not every place was read")
            problems += [f"{name} {level}: {problem}" for problem in wrong]
    return problems, places


RUN = """
#include <cordwood/cordwood.h>
#include <stdio.h>
#include <stdlib.h>
#undef cw_write
enum { CHUNK = 4096 };
static _Alignas(4096) unsigned char chunk[2 * CHUNK];
static cw_append_block block;
__thread cw_append_block *cw_append_1;
static struct cw_append_logger words = {255, 7, &words};
static unsigned calls, settled;

/* The library: a place gets a number at its first call, and every other one is a mistake. */
cw_status cw_site_write(cw_logger *logger, cw_level level, cw_site *site, const cw_arg *arguments) {
    (void)logger, (void)level, (void)arguments;
    calls++;
    __atomic_store_n(&site->inlined, block.copy | (41 + calls), __ATOMIC_RELEASE);
    return CW_OK;
}
cw_status cw_write(cw_logger *logger, cw_level level, const char *message, size_t length) {
    (void)logger, (void)level, (void)message, (void)length;
    abort();
}
bool cw_append_settled(cw_append_block *closed) { return closed == &block && ++settled; }

static void records(cw_logger *log, int i, double d, const char *s, void *p) {
    CW_INFO(log, "constant");
    CW_INFO(log, "order %d at %f", i, d);
    CW_WARN(log, "user %s did %ld %u", s, (long)i * 1000000007, (unsigned)i);
    CW_ERROR(log, "%s %p %s %c", s, p, "another text", 'c');
}

int main(void) {
    cw_logger *log = (cw_logger *)&words;
    for (size_t i = 0; i < sizeof chunk; i++) chunk[i] = 0xAA;
    block.engine = &words, block.copy = 5u << 16;
    block.chunk = chunk, block.ptr = chunk + 64, block.limit = chunk + CHUNK;
    block.base_ticks = 0;
    cw_append_1 = &block;
    for (int i = -3; i < 5; i++) {
        block.base_ticks = cw_append_ticks_();
        records(log, i, i * 1.5, "a string" + i + 3, (void *)(size_t)0x1234);
        cw_write_here_(log, CW_LEVEL_INFO, "a message of text", (size_t)(i + 3));
    }
    /* The chunk is closed while a record is stored: it is settled, and counts once. */
    uint64_t before = block.records;
    unsigned char *limit = block.limit;
    cw_append record;
    static cw_site site;
    site.inlined = block.copy | 99;
    if (!cw_append_begin(&record, log, CW_LEVEL_INFO, &site, 8)) abort();
    cw_put_u8(&record, 77, 0);
    block.limit = NULL;
    if (cw_append_end(&record, 8)) abort();
    cw_append_slow_(log, CW_LEVEL_INFO, &site, NULL, &block);
    block.limit = limit;
    printf("calls %u records %u settled %u busy %d counted %d end %d committed %u\\n", calls,
           (unsigned)block.records, settled, block.busy != 0, (int)(block.records - before),
           (int)(block.ptr - chunk), *(uint32_t *)(void *)(chunk + 8));
    for (unsigned char *at = chunk + 64; at < block.ptr;) {
        uint32_t length;
        __builtin_memcpy(&length, at, 4);
        for (uint32_t i = 0; i < length; i++)
            if (i < 4 || i > 7) printf("%02x", at[i]);
        printf("\\n");
        at += (length + 7) & ~7u;
    }
    for (unsigned char *at = block.ptr; at < chunk + sizeof chunk; at++)
        if (*at != 0xAA) printf("stored behind the end: %d\\n", (int)(at - block.ptr));
    return 0;
}
"""


def run(folder):
    """Problems of the records that the emulated program stores."""
    said = []
    for compiler, runner in (("cc", []), (PREFIX + "gcc", ["qemu-aarch64"])):
        program = Path(folder) / f"run-{len(said)}"
        subprocess.run([compiler, "-x", "c", "-std=gnu11", "-O2", "-static", "-", "-I",
                        str(ROOT / "include"), "-o", str(program)], input=RUN, text=True,
                       check=True)
        said.append(subprocess.run([*runner, str(program)], check=True, capture_output=True,
                                   text=True).stdout)
    own, other = said
    if "calls 4 records 37 settled 1 busy 0 counted 1 " not in own.splitlines()[0]:
        return [f"this machine's own: {own.splitlines()[0]}"]
    return [] if own == other else [f"other bytes on aarch64:\n{own}\n{other}"]


def main():
    if shutil.which(PREFIX + "gcc") is None or shutil.which(PREFIX + "g++") is None:
        print(f"no {PREFIX}g++: nothing read")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        problems, places = read(folder)
        emulated = shutil.which("qemu-aarch64") is not None
        if emulated:
            problems += run(folder)
    print("\n".join(problems) or f"{places} places" + (
        ", run under qemu-aarch64" if emulated else "; no qemu-aarch64: nothing run"))
    return 1 if problems or places == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
