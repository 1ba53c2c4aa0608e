#!/usr/bin/env python3
"""Reads the disassembly of cw_write, cw_site_write, cw_site_text, cw_place_write and Swift's
MessagePath (append, text, write), and of all they call up to the slow path. One reference count,
allocation, lock or system call there costs more than the whole record, and the compiler adds them
silently. A call to a function with `slow` in its name ends the hot path.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIBRARY = ROOT / "build/work/libcordwood.so"
# Where Swift's log calls end; what they inline before that is the host's own code.
SWIFT = tuple("$s12CordwoodCore11MessagePathO" + name for name in (
    "6appendySbSpySo10cwi_loggerVG_s6UInt32VAISvSitFZ",
    "4textySbSpySo10cwi_loggerVG_s6UInt32VSSs6UInt64VA2KtFZ",
    "5writeys5Int32VSpySo10cwi_loggerVG_s6UInt32VAA0C5FrameVtFZ"))
START = ("cw_write", "cw_site_write", "cw_site_text", "cw_place_write", *SWIFT)
# The copy itself, and what never returns. Everything else that is called must be ours and is read,
# too. The last one finds the bytes of a String that another library lends, by asking its object;
# our Strings and those of most hosts are native.
LEAVES = {"memcpy", "memmove", "strnlen", "memcmp", "bcmp", "strncmp", "__stack_chk_fail",
          "$ss13_StringObjectV10sharedUTF8SRys5UInt8VGvg"}
FUNCTIONS_MAX, INSTRUCTIONS_MAX = 14, 1650
LAZY_GLOBAL = re.compile(r"(Wvau|vau|_WZ|WZ)$")
INSTRUCTION = re.compile(r"^\s*([0-9a-f]+):\t(.*)$")
TARGET = re.compile(r"([0-9a-f]+) <([^>+]+)(\+0x[0-9a-f]+)?>")


def symbols():
    out = subprocess.run(["nm", "-S", "--defined-only", str(LIBRARY)], check=True, text=True,
                         stdout=subprocess.PIPE).stdout
    found = {}
    for line in out.splitlines():
        words = line.split()
        if len(words) == 4 and words[2] in "tTwW":
            found[words[3]] = (int(words[0], 16), int(words[1], 16))
    return found


def disassemble(start, size):
    out = subprocess.run(["objdump", "-d", "--no-show-raw-insn", f"--start-address={start:#x}",
                          f"--stop-address={start + size:#x}", str(LIBRARY)], check=True,
                         text=True, stdout=subprocess.PIPE).stdout
    return [found[2] for found in map(INSTRUCTION.match, out.splitlines()) if found]


def forbidden(instruction):
    """Why this instruction may not be in the hot path, or None."""
    name = instruction.split()[0]
    if name == "lock" or "lock " in instruction:
        return "a locked instruction"
    if name.startswith("xchg") and "(" in instruction:
        return "an exchange with memory"
    if name in ("syscall", "sysenter", "int"):
        return "a system call"
    if name.startswith("call") and "*" in instruction:
        return "an indirect call"
    if name in ("mfence", "cpuid"):
        return "a full fence"
    return None


def check(known, problems):
    waiting, seen, count = list(START), {}, 0
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        start, size = known[name]
        code = disassemble(start, size)
        seen[name] = len(code)
        count += len(code)
        for instruction in code:
            reason = forbidden(instruction)
            if reason:
                problems.append(f"{name}: {reason}: {instruction}")
            target = TARGET.search(instruction)
            if not target or instruction.split()[0][0] not in "cj":
                continue
            callee = target[2].split("@")[0]
            if callee == name or callee in LEAVES or "slow" in callee.lower():
                continue
            if callee.startswith("swift_") or LAZY_GLOBAL.search(callee):
                problems.append(f"{name}: calls {callee}")
            elif callee not in known:
                problems.append(f"{name}: calls {callee}, which is not ours")
            else:
                waiting.append(callee)
    if len(seen) > FUNCTIONS_MAX or count > INSTRUCTIONS_MAX:
        problems.append(f"{count} instructions in {sorted(seen)}: that is no hot path")
    return seen, count


def main():
    known, problems = symbols(), []
    missing = [name for name in START if name not in known]
    if missing:
        print(f"{LIBRARY.relative_to(ROOT)} has no {' and no '.join(missing)}")
        return 1
    seen, count = check(known, problems)
    print("\n".join(problems) or f"{count} instructions in {len(seen)} functions")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
