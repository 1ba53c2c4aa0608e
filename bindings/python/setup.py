"""Bundles the library into the package when a wheel is built.

The library is $CORDWOOD_LIBRARY where that is set, else build/lib/libcordwood.so of the checkout.
The wheel fits every Python 3 of this platform: ctypes loads the library, nothing is compiled.
"""
import os
import re
import shutil
from pathlib import Path
from typing import Tuple

from setuptools import setup
from setuptools.command.build_py import build_py

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # setuptools before 70.1
    from wheel.bdist_wheel import bdist_wheel  # type: ignore

CHECKOUT = Path(__file__).resolve().parents[2]


def library() -> Path:
    """The library to bundle; ends the build with what to do where there is none."""
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
    header = (CHECKOUT / "include" / "cordwood" / "cordwood.h").read_text(encoding="utf-8")
    parts = (re.search(rf"CW_VERSION_{name}\s+(\d+)", header)
             for name in ("MAJOR", "MINOR", "PATCH"))
    return ".".join(part.group(1) if part else "0" for part in parts)


class BuildWithLibrary(build_py):
    """build_py, then the library beside the modules."""

    def run(self) -> None:
        super().run()
        if not getattr(self, "editable_mode", False):
            shutil.copy2(library(), Path(self.build_lib) / "cordwood" / "libcordwood.so")


class PlatformWheel(bdist_wheel):  # type: ignore
    """A wheel tagged for this platform and any Python 3."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.root_is_pure = False

    def get_tag(self) -> Tuple[str, str, str]:
        return "py3", "none", super().get_tag()[2]


setup(version=version(), cmdclass={"build_py": BuildWithLibrary, "bdist_wheel": PlatformWheel})
