"""Bundles the library into the package when a wheel is built, and builds the accelerator.

The library is $CORDWOOD_LIBRARY if that is set, otherwise build/lib/libcordwood.so of the checkout.
The accelerator (cordwood._speed) needs a C compiler and Python's headers. If it cannot be built, or
if $CORDWOOD_PYTHON_ACCELERATOR is 0, the wheel has none and fits every Python 3 on this platform;
otherwise it is for this version of CPython. A source distribution carries the header, not the
library.
"""
import os
import re
import shutil
import sys
import sysconfig
from pathlib import Path
from typing import List, Tuple

from setuptools import Extension, setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # setuptools before 70.1
    from wheel.bdist_wheel import bdist_wheel  # type: ignore

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parents[1] if len(HERE.parents) > 1 else HERE
# Beside this file in a source distribution.
INCLUDE = HERE / "include" if (HERE / "include").is_dir() else CHECKOUT / "include"
HEADERS = sorted(path.name for path in (INCLUDE / "cordwood").glob("*.h"))


def library() -> Path:
    """The library to bundle; if there is none, ends the build and says what to do."""
    named = os.environ.get("CORDWOOD_LIBRARY")
    path = Path(named) if named else CHECKOUT / "build" / "lib" / "libcordwood.so"
    if not path.is_file():
        raise SystemExit(
            f"cordwood: {path} is missing. Run ./dev build in the checkout first, "
            "or name a built libcordwood.so in CORDWOOD_LIBRARY."
        )
    return path.resolve()


def version() -> str:
    """The header's version: there is no second copy to keep in step."""
    header = (INCLUDE / "cordwood" / "cordwood.h").read_text(encoding="utf-8")
    parts = (re.search(rf"CW_VERSION_{name}\s+(\d+)", header)
             for name in ("MAJOR", "MINOR", "PATCH"))
    return ".".join(part.group(1) if part else "0" for part in parts)


def extensions() -> List[Extension]:
    """The accelerator, if this interpreter can use it; left out if it fails to build."""
    if (sys.implementation.name != "cpython" or sysconfig.get_config_var("Py_GIL_DISABLED")
            or os.environ.get("CORDWOOD_PYTHON_ACCELERATOR") == "0"):
        return []
    return [Extension("cordwood._speed", ["speed/speed.c"], include_dirs=[str(INCLUDE)],
                      depends=[f"speed/{name}.h" for name in ("speed", "places", "values", "image",
                                                              "records", "cursor", "stdlib",
                                                              "module")],
                      extra_compile_args=["-std=c11", "-O2", "-fvisibility=hidden"],
                      optional=True)]


class BuildWithLibrary(build_py):
    """build_py, then the library beside the modules."""

    def run(self) -> None:
        # Looked for first, so that its complaint is not below a page of output.
        bundled = None if getattr(self, "editable_mode", False) else library()
        super().run()
        if bundled:
            shutil.copy2(bundled, Path(self.build_lib) / "cordwood" / "libcordwood.so")


class PlatformWheel(bdist_wheel):  # type: ignore
    """A wheel tagged for this platform, and for any Python 3 if nothing was compiled."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.root_is_pure = False

    def get_tag(self) -> Tuple[str, str, str]:
        tag: Tuple[str, str, str] = super().get_tag()
        built = Path(self.get_finalized_command("build").build_lib) / "cordwood"
        return tag if list(built.glob("_speed*.so")) else ("py3", "none", tag[2])


class SourceWithHeader(sdist):
    """sdist, with the header that the version and the accelerator are made from."""

    def make_release_tree(self, base_dir: str, files: List[str]) -> None:
        super().make_release_tree(base_dir, files)
        target = Path(base_dir) / "include" / "cordwood"
        target.mkdir(parents=True, exist_ok=True)
        for name in HEADERS:
            shutil.copy2(INCLUDE / "cordwood" / name, target / name)


setup(version=version(), ext_modules=extensions(),
      cmdclass={"build_py": BuildWithLibrary, "bdist_wheel": PlatformWheel,
                "sdist": SourceWithHeader})
