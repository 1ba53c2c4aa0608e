"""How suites deal with the settings of their caller: those of Cordwood, which hosts inherit, and
those that decide what compilers, CMake, pip and Python find. A user who follows the README has some
of both, and leaves an installed Cordwood behind; neither may change what a suite finds."""

import os
from pathlib import Path

# What runners, `ctest` and `./dev mutate` pass to suites.
PASSED = ("CORDWOOD_LIBRARY", "CORDWOOD_LIBRARY_DIR", "CORDWOOD_BUILD", "CORDWOOD_COMMAND",
          "CORDWOOD_TOOL", "CORDWOOD_CMAKE_BUILD", "CORDWOOD_TEST_ACCELERATED")
BUILDING = {"CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS", "ARCHFLAGS", "DESTDIR", "CMAKE_BUILD_TYPE",
            "CMAKE_TOOLCHAIN_FILE", "CMAKE_INSTALL_MODE", "CMAKE_PREFIX_PATH", "cordwood_DIR",
            "cordwood_ROOT"}
# Of Python's and pip's, those that only say how to print and where packages come from.
HARMLESS = {"PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "PYTHONIOENCODING", "PYTHONUTF8",
            "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_NO_INDEX",
            "PIP_TRUSTED_HOST", "PIP_CERT", "PIP_CLIENT_CERT", "PIP_PROXY", "PIP_TIMEOUT",
            "PIP_DEFAULT_TIMEOUT", "PIP_RETRIES", "PIP_CACHE_DIR", "PIP_CONFIG_FILE",
            "PIP_DISABLE_PIP_VERSION_CHECK", "PIP_KEYRING_PROVIDER"}


def is_callers(name):
    """Whether it is a setting that a suite must not inherit."""
    return name in BUILDING or (name.startswith(("CORDWOOD_", "PIP_", "PYTHON"))
                                and name not in HARMLESS)


def without_cordwood(paths):
    """Paths of libraries without those that have a Cordwood: they come before a program's own."""
    return os.pathsep.join(path for path in paths.split(os.pathsep)
                           if path and not list(Path(path).glob("libcordwood*")))


def own_environment(**more):
    """The environment for a child that must find nothing of the caller's: without their settings,
    with these."""
    found = {name: value for name, value in os.environ.items() if not is_callers(name)}
    if "LD_LIBRARY_PATH" in found:
        found["LD_LIBRARY_PATH"] = without_cordwood(found["LD_LIBRARY_PATH"])
    return {**found, **more}


def forget_settings(*kept):
    """Removes CORDWOOD_… from the environment, which hosts inherit, except for those named."""
    for name in list(os.environ):
        if name.startswith("CORDWOOD_") and name not in kept:
            del os.environ[name]


def forget_callers():
    """Removes from this process what own_environment leaves out, but for what a runner passes."""
    own = own_environment()
    for name in list(os.environ):
        if name in own:
            os.environ[name] = own[name]
        elif name not in (*PASSED, "PYTHONPATH"):
            del os.environ[name]
