"""`pytest Tests`, `pytest bindings/python/tests` and `pytest Benchmarks` run this checkout's tests
of unittest, in one process, as the suites' own runners do (docs/TESTING.md). The other suites have
only their runners. What a runner installs or builds is used if it is there; tests that lack it are
skipped."""

import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent
BUILD = ROOT / "build"
LIBRARY = BUILD / "lib/libcordwood.so"
BINDING = ROOT / "bindings/python/src"
SUPPORT = ROOT / "Tests/TestSupport"
# Folders of tests that use no library.
ALONE = (SUPPORT, ROOT / "Tests/Oracle", ROOT / "Benchmarks")

sys.dont_write_bytecode = True
sys.path[:0] = [str(BINDING), str(SUPPORT)]

import cases  # noqa: E402
import environments  # noqa: E402
import settings  # noqa: E402

settings.forget_callers()
os.environ.update(PYTHONPATH=str(BINDING), PYTHONDONTWRITEBYTECODE="1", TEST_INSTALLS="no")
os.environ.setdefault("CORDWOOD_LIBRARY", str(LIBRARY))


def lacking(folder):
    """What the tests in a folder lack, and what to do; or None."""
    if folder not in ALONE and not Path(os.environ["CORDWOOD_LIBRARY"]).is_file():
        return f"{os.environ['CORDWOOD_LIBRARY']} is missing: run ./dev build"
    if folder.name == "OTLP":
        python = environments.interpreter("otlp")
        version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
        packages = python and Path(python).parent.parent / "lib" / version / "site-packages"
        if not packages or not packages.is_dir():
            return f"OTLP's schema is not installed for {version}: Tests/OTLP/run.py installs it"
        sys.path.append(str(packages))
    if folder.name == "Transport":
        for name, place in (("tinyproxy", "/usr/bin"), ("openssl", "/usr/bin"),
                            ("caddy", environments.folder("servers") / "bin")):
            if not os.access(Path(place, name), os.X_OK):
                return f"{name} is not installed: Tests/Transport/run.py installs it"
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_collectstart(collector):
    """Before a file is imported. Folders have files of the same names (`support`, `host`), and each
    of their tests must import its own."""
    if not isinstance(collector, pytest.Module):
        return
    folder = collector.path.parent
    others = {path.parent for path in ROOT.glob("Tests/*/*.py")} | {
        ROOT / "bindings/python/tests", ROOT / "Benchmarks"}
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file and Path(file).parent in others - {folder, SUPPORT}:
            del sys.modules[name]
    reason = lacking(folder)
    if reason:
        collector.collect = lambda: pytest.skip(reason, allow_module_level=True)


def pytest_collection_modifyitems(config, items):
    """Leaves out what is not of this size, like every runner."""
    fits = {item: all(cases.fits(part) for part in (item.function, item.cls)) for item in items}
    config.hook.pytest_deselected(items=[item for item in items if not fits[item]])
    items[:] = [item for item in items if fits[item]]
