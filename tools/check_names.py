#!/usr/bin/env python3
"""The header's functions and the libraries' visible names must be the same set: a function that is
declared but not implemented still builds, and an extra name may clash with a host's."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def declared():
    text = "".join((ROOT / "include/cordwood" / name).read_text()
                   for name in ("cordwood.h", "upload.h", "transaction.h", "http.h", "network.h",
                                "curl_transfer.h"))
    # Of the code that a host compiles in, only what it calls or reads.
    inlined = re.findall(r"^(?:extern __thread [\w ]+\*|bool )(\w+)",
                         (ROOT / "include/cordwood/append.h").read_text(), re.M)
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    text = re.sub(r"\{[^{}]*\}", ";", text)
    text = re.sub(r"typedef[^;]*;", "", text)
    return set(re.findall(r"\b(cw_\w+)\s*\(", text)) | set(inlined)


# Inline in C hosts, but part of the ABI: other languages call them.
INLINE = {"cw_enabled"}


def visible(*arguments):
    out = subprocess.run(["nm", *arguments], stdout=subprocess.PIPE, check=True, text=True).stdout
    return {line.split()[-1] for line in out.splitlines() if len(line.split()) == 3}


def main():
    header, problems = declared(), []
    problems += [f"the header lost {word}, which is in the ABI" for word in sorted(INLINE - header)]
    for name, arguments in (("libcordwood.so", ["-D", "--defined-only"]),
                            ("libcordwood.a", ["-g", "--defined-only"])):
        exported = visible(*arguments, str(ROOT / "build/lib" / name))
        problems += [f"{name} does not export {word}" for word in sorted(header - exported)]
        problems += [f"{name} exports {word}, which the header does not declare"
                     for word in sorted(exported - header)]
    print("\n".join(problems) or f"{len(header)} names")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
