"""Runs Swift's reader and writer of blocks (block_tool.swift) for the tests in Python. The tool is
built with the library's own sources, optimised file by file as for `tools/mutate.py`."""

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
TOOL = ROOT / "build/block-tool/block_tool"
TESTS = ROOT / "Tests"
SOURCES = [TESTS / "Oracle/block_tool.swift", TESTS / "Oracle/block_text.swift",
           TESTS / "CordwoodStoreTests/BlockFile.swift"]


def build():
    """Once in a process. What is up to date is built in seconds."""
    if build.done:
        return
    subprocess.run([ROOT / "tools/swiftpm.sh", "quick", "build", "--target", "CordwoodStore"],
                   check=True, stdout=sys.stderr)
    made = next(ROOT.glob(".build-quick/*-linux-*/debug"))
    TOOL.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        ["swiftc", "-O", "-parse-as-library", "-module-name", "BlockTool", "-static-stdlib",
         "-o", TOOL, *modules(made), *SOURCES,
         *(path for name in ("Core", "Formats", "Store") for path in made.glob(
             f"Cordwood{name}.build/*.o")), *made.glob("CShims.build/*.o"),
         f"-L{ROOT / 'build/work/archives'}",
         *(f"-l:lib{name}.a" for name in ("zstd", "lz4", "sodium", "z", "jansson", "expat"))],
        check=True, stdout=sys.stderr)
    build.done = True


build.done = False


def modules(made):
    """Where the compiler finds the modules of a build."""
    return [f"-I{made / 'Modules'}", f"-I{ROOT / 'include'}",
            *(f"-I{path.parent}" for path in ROOT.glob("Sources/C*/**/module.modulemap"))]


def tool(verb, data):
    """What the verb makes of a list of blocks."""
    build()
    with tempfile.TemporaryDirectory() as folder:
        given, out = Path(folder, "given"), Path(folder, "out")
        given.write_bytes(data)
        subprocess.run([TOOL, verb, given, out], check=True)
        return out.read_bytes()


def texts(size, seed, folder, every):
    """What it says of that many bytes of texts. See block_tool.swift."""
    build()
    return subprocess.run([TOOL, "text", str(size), str(seed), folder, str(every)], check=True,
                          stdout=subprocess.PIPE, text=True).stdout
