#!/usr/bin/env python3
"""Reads the disassembly of the header's append (include/cordwood/append.h), as each installed
compiler makes it for places in C and C++. docs/CONCURRENCY.md, "The append in the header", relies
on the order of its loads and stores, which is the library's; a compiler may move what no fence
holds. On a processor other than x86-64, or without a compiler, there is nothing to read.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
C = """
#include <cordwood/cordwood.h>
void place_constant(cw_logger *l) { CW_INFO(l, "constant"); }
void place_numbers(cw_logger *l, int i, double d) { CW_INFO(l, "order %d at %f", i, d); }
void place_text(cw_logger *l, const char *s, int i) { CW_INFO(l, "user %s did %d", s, i); }
void place_texts(cw_logger *l, const char *s, const char *t, void *p, long n) {
    CW_WARN(l, "%s %p %s %ld", s, p, t, n);
}
void place_loop(cw_logger *l, cw_level level, int n) {
    for (int i = 0; i < n; i++) CW_LOG(l, level, "%d of %d", i, n);
}
cw_status place_write(cw_logger *l, cw_level level, const char *s, size_t n) {
    return cw_write(l, level, s, n);
}
"""
CPP = """
#include <cordwood/cordwood.hpp>
void place_macro(cw_logger *l, int i, double d) { CW_INFO(l, "order %d at %f", i, d); }
void place_braces(cw_logger *l, int i, double d) { CORDWOOD_INFO(l, "order {} at {:f}", i, d); }
void place_text(cw_logger *l, const char *s, std::string_view t, bool b) {
    CORDWOOD_WARN(l, "user {} did {} {}", s, t, b);
}
void place_form(const cordwood::logger &l, int i, double d) { l.info("order {} at {}", i, d); }
void place_loop(const cordwood::logger &l, int n) {
    for (int i = 0; i < n; i++) CORDWOOD_INFO(l, "{} of {}", i, n);
}
cordwood::status place_write(const cordwood::logger &l, std::string_view s) {
    return l.write(cordwood::level::info, s);
}
"""
# Clang's -O1 moves the block between registers, which is not followed here.
COMPILERS = (("gcc", "c", C, "c11", ("-O1", "-O2", "-O3")),
             ("clang", "c", C, "c11", ("-O2", "-O3")),
             ("g++", "c++", CPP, "c++17", ("-O1", "-O2", "-O3")),
             ("clang++", "c++", CPP, "c++20", ("-O2", "-O3")))
# Keeps a place in one piece, not split by how often its parts run.
WHOLE = {"gcc": ["-fno-reorder-blocks-and-partition"], "g++": ["-fno-reorder-blocks-and-partition"]}
LINE = re.compile(r"^\s*([0-9a-f]+):\t(.*?)\s*(?:#.*)?$")
RELOCATION = re.compile(r"^\s*[0-9a-f]+: R_X86_64_(?:PLT32|PC32|GOTPCRELX?|REX_GOTPCRELX)\s+"
                        r"([\w.]+)(?:([-+]0x[0-9a-f]+))?")
SECTION = re.compile(r"^Disassembly of section (.*):$")
ANY_NAME = re.compile(r"^([0-9a-f]+) <(.*)>:$")
NAME = re.compile(r"^[0-9a-f]+ <([^>]*(?:place_|_slow_|_is_kept_|_coarse_)[^>]*)>:$")
# What may be called while busy; `rep movs` is a copy, too. After SLOW, the place does nothing more.
SLOW = re.compile(r"^(?:call|jmp).*cw_\w+_slow_")
BUSY = re.compile(r"@memcpy$|cw_append_coarse_")
CHUNK, BASE, LIMIT, BUSY_WORD, ENGINE, RECORDS = 0x10, 0x18, 0x8, 0x20, 0x28, 0x30
MEMORY = re.compile(r"(-?0x[0-9a-f]+)?\((%\w+)(?:,[^)]*)?\)")


def names_of(text):
    """(section, address) → the function that begins there."""
    names, section = {}, None
    for line in text.splitlines():
        if new := SECTION.match(line):
            section = new[1]
        elif name := ANY_NAME.match(line):
            names[section, int(name[1], 16)] = name[2]
    return names


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
            if now[last].startswith(("call", "jmp")):  # a jump: the function's last call
                # Relative to the end of the instruction's last four bytes.
                at = (relocation[1], int(relocation[2] or "0", 16) + 4)
                now[last] = now[last].split()[0] + " @" + names.get(at, relocation[1])
        elif instruction := LINE.match(line):
            last = int(instruction[1], 16)
            now[last] = instruction[2]
    return found


def operand(instruction, last):
    """(offset, register) of the memory that an instruction reads, or writes (last); or None."""
    parts = re.split(r",(?![^(]*\))", instruction.split(None, 1)[-1])
    found = MEMORY.search(parts[-1] if last else ",".join(parts[:-1]))
    return (int(found[1] or "0", 16), found[2]) if found else None


def is_store(instruction):
    name = instruction.split()[0]
    return (name.startswith(("mov", "add", "inc", "xchg", "and", "or", "stos", "vmov"))
            and operand(instruction, True) is not None)


def is_idle(instruction, block):
    return is_store(instruction) and "$0x0" in instruction \
        and operand(instruction, True) == (BUSY_WORD, block)


def followers(code, at):
    """Where an instruction leads. A call returns."""
    following = min((a for a in code if a > at), default=None)
    name = code[at].split()[0]
    target = re.match(r"j\w+\s+([0-9a-f]+)\b", code[at])
    if name.startswith(("ret", "ud2")) or (name == "jmp" and not target):
        return []
    ways = [int(target[1], 16)] if target and int(target[1], 16) in code else []
    return ways if name == "jmp" or following is None else [following, *ways]


def ways_of(code, start, block):
    """(the shortest path from busy = the stack pointer via the count to busy = 0, all that may run
    until busy = 0 or cw_append_slow_)."""
    came, waiting, counted = {start: None}, [start], None
    while waiting:
        at = waiting.pop(0)
        if counted is None and is_store(code[at]) and operand(code[at], True) == (RECORDS, block):
            counted = at
        if is_idle(code[at], block) or SLOW.match(code[at]):
            continue
        for following in followers(code, at):
            if following not in came:
                came[following] = at
                waiting.append(following)
    way, at = [], counted
    while at is not None:
        way.insert(0, at)
        at = came[at]
    while counted is not None and not is_idle(code[way[-1]], block) and len(way) < 1000:
        more = followers(code, way[-1])
        if not more:
            break
        way.append(more[0])
    return [code[at] for at in way], [code[at] for at in came]


def problems_of(code):
    """What is wrong with one place. None: it is a part that does not append."""
    starts = [at for at, line in code.items() if re.match(r"mov\s+%rsp,0x20\(", line)]
    if not starts:
        return None
    if len(starts) > 1:
        return [f"busy is set {len(starts)} times"]
    block = operand(code[starts[0]], True)[1]
    way, busy = ways_of(code, starts[0], block)
    if not way or not is_idle(way[-1], block):
        return ["a record does not end with its count and busy = 0"]
    wrong = [f"calls {line} while busy" for line in busy
             if (line.startswith("call") or "@" in line) and not BUSY.search(line)
             and not SLOW.match(line)]
    if not any(SLOW.match(line) for line in busy):
        wrong.append("a record whose chunk was closed is not settled")

    def where(offset, stores):
        return [i for i, line in enumerate(way) if i > 0 and is_store(line) == stores
                and operand(line, stores or line.startswith("cmp")) == (offset, block)]
    engine = [i for i, line in enumerate(way) if f"0x28({block})" in line]
    loads = {"chunk": where(CHUNK, False), "base": where(BASE, False), "ptr": where(0, False)}
    limits = where(LIMIT, False)
    if len(limits) != 2:
        return wrong + [f"the limit is looked at {len(limits)} times"]
    for name, at in loads.items():
        if len(at) != 1:
            wrong.append(f"{name} is loaded {len(at)} times")
        elif not (engine and engine[0] < at[0] < limits[0]):
            wrong.append(f"{name} is not loaded between the engine's comparison and the limit")
    ptr, counted = where(0, True), where(RECORDS, True)
    body = [i for i, line in enumerate(way) if i > 0 and is_store(line)
            and operand(line, True)[1] not in (block, "%rsp")]
    if len(ptr) != 1 or len(counted) != 1:
        return wrong + [f"ptr is stored {len(ptr)} times, the count {len(counted)} times"]
    if not body or operand(way[body[-1]], True)[0] != 8 or body[-1] > ptr[0]:
        wrong.append("committed is not the last store into the chunk, before ptr")
    if not ptr[0] < limits[1] < counted[0]:
        wrong.append("ptr, the second look at the limit and the count are not in this order")
    return wrong


def problems_of_slow(found):
    """cw_append_slow_ and cw_write_slow_ first ask whether the record is kept. cw_append_is_kept_
    asks the library while busy, and only then counts. cw_append_coarse_ calls only the clock."""
    wrong = []
    for name, code in found.items():
        lines = [code[at] for at in sorted(code)]
        calls = [line for line in lines if line.startswith("call")]
        if "_coarse_" in name and (calls != ["call @clock_gettime"] or any(
                operand(line, True)[1] != "%rsp" for line in lines if is_store(line))):
            wrong.append(f"{name} calls more than the clock, or stores")
        if "_slow_" in name and (not calls or "cw_append_is_kept_" not in calls[0]):
            wrong.append(f"{name} does not ask first whether the record is kept")
        if "_is_kept_" not in name:
            continue
        steps = [[i for i, line in enumerate(lines) if is_step(line)] for is_step in (
            lambda line: line == "call @cw_append_settled",
            lambda line: is_store(line) and operand(line, True)[0] == RECORDS,
            lambda line: is_store(line) and "$0x0" in line and operand(line, True)[0] == BUSY_WORD)]
        if [len(at) for at in steps] != [1, 1, 1] or len(calls) != 1 or sum(steps, []) != sorted(
                sum(steps, [])):
            wrong.append(f"{name}: settled, count and busy = 0 are not in this order")
    return wrong


def main():
    if subprocess.run(["uname", "-m"], capture_output=True, text=True,
                      check=True).stdout.strip() != "x86_64":
        print("not x86-64: nothing read")
        return 0
    problems, places = [], 0
    with tempfile.TemporaryDirectory() as folder:
        for name, language, text, standard, levels in COMPILERS:
            if shutil.which(name) is None:
                continue
            for level in levels:
                output = Path(folder) / "places.o"
                subprocess.run([name, "-x", language, f"-std={standard}", level, "-fPIC", "-c", "-",
                                *WHOLE.get(name, ()), "-I", str(ROOT / "include"), "-o",
                                str(output)], input=text, text=True, check=True)
                dump = subprocess.run(["objdump", "-dr", "--no-show-raw-insn", str(output)],
                                      check=True, capture_output=True, text=True).stdout
                found = functions(dump)
                problems += [f"{name} {level}: {wrong}" for wrong in problems_of_slow(found)]
                found = {place: problems_of(code) for place, code in found.items()}
                names = set(re.findall(r"\bplace_\w+", text))
                read = [place for place, wrong in found.items() if wrong is not None]
                if len(read) != len(names):
                    problems.append(f"{name} {level}: read {len(read)} of {len(names)} places")
                places += len(read)
                problems += [f"{name} {level} {place}: {wrong}"
                             for place in read for wrong in found[place]]
    print("\n".join(problems) or f"{places} places")
    return 1 if problems or places == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
