"""Builds a host every way a user may (compiler, static, CMake, pkg-config, pip, SwiftPM) and reads
what it wrote with the command line, each line parsed as JSON.

    Tests/TestSupport/unittests.py Tests/Consumers [-k PATTERN …] [--list]

Needs `./dev build`. Everything is built below a temporary directory, except Swift: other suites
share that build (Tests/TestSupport/swift_hosts.py), and `./dev test --all` builds once more, in the
debug configuration, in .build-consumer.
"""
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import unittest
import zipfile
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE.parent / "TestSupport"))

import swift_hosts  # noqa: E402
from cases import full, only_all  # noqa: E402
from settings import own_environment  # noqa: E402

LIBRARIES = Path(os.environ.get("CORDWOOD_LIBRARY_DIR", ROOT / "build" / "lib"))
COMMAND = Path(os.environ.get("CORDWOOD_COMMAND", LIBRARIES.parent / "bin" / "cordwood"))
# A build tree of CMake's to install from (`ctest` names its own); otherwise a new one.
CMAKE_BUILD = os.environ.get("CORDWOOD_CMAKE_BUILD")
# Warnings that a host's own build may enable: its compiler sees our headers, too.
STRICT = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-Wshadow", "-Wconversion",
          "-Wsign-conversion"]
SYSTEM = ["-lstdc++", "-lm", "-lpthread", "-ldl"]
WITHOUT = ["-fno-exceptions", "-fno-rtti"]
BUILD_S = 1800


def run(words: Sequence[Any], limit_s: int = 300,
        environment: Optional[Dict[str, str]] = None) -> str:
    """Returns the command's output. On failure raises with the whole output. The command sees
    neither our settings nor our PYTHONPATH, where pip would find what an earlier one left."""
    ended = subprocess.run([str(word) for word in words], text=True,
                           env=own_environment(**(environment or {})),
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=limit_s,
                           check=False)
    if ended.returncode != 0:
        raise AssertionError(f"{words} ended with {ended.returncode}:\n{ended.stdout}")
    return ended.stdout


def compilers(names: Sequence[str]) -> List[str]:
    """Those of the compilers that are installed, at least one."""
    found = [name for name in names if shutil.which(name)]
    assert found, f"none of {names} is installed"
    return found


class ConsumerCase(unittest.TestCase):
    """A case with a temporary directory and a store in it."""

    prefix: Optional[Path] = None
    prefix_owner: Optional["tempfile.TemporaryDirectory[str]"] = None

    def setUp(self) -> None:
        for needed in (LIBRARIES / "libcordwood.so", LIBRARIES / "libcordwood.a", COMMAND):
            self.assertTrue(needed.is_file(), f"{needed} is missing: run ./dev build")
        directory = tempfile.TemporaryDirectory(prefix="cordwood-consumer-")
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name)

    def cat(self, store: Path) -> List[Dict[str, Any]]:
        """The store's records as the command line shows them."""
        lines = run([COMMAND, "cat", "--json", store]).splitlines()
        return [json.loads(line) for line in lines]

    def check(self, program: Sequence[Any], logger: str, messages: Sequence[str],
              environment: Optional[Dict[str, str]] = None) -> None:
        """Runs a host on a new store and compares what the command line reads from it."""
        store = Path(tempfile.mkdtemp(dir=self.directory)) / "store"
        run([*program, store], environment=environment)
        found = [line for line in self.cat(store) if line["logger"] == logger]
        self.assertEqual([line["message"] for line in found], list(messages))
        for line in found:
            self.assertLessEqual(
                {"time", "level", "logger", "message", "pid", "tid", "kind"}, line.keys())
        fields = next(line for line in found if line["message"] == "fields")["fields"]
        self.assertEqual((fields["order"], fields["user"]), (7, "anna"))

    def check_c(self, program: Path, environment: Optional[Dict[str, str]] = None) -> None:
        """consumer.c"""
        self.check([program], "consumer.c", ["hello", "fields"], environment)

    def check_cpp(self, program: Path, exceptions: bool = True) -> None:
        """consumer.cpp"""
        messages = ["hello", "fields", "failed"][:3 if exceptions else 2]
        self.check([program], "consumer.cpp", messages)

    def installed(self) -> Path:
        """A prefix filled by `cmake --install`, made once."""
        if ConsumerCase.prefix is None:
            owner = tempfile.TemporaryDirectory(prefix="cordwood-prefix-")
            ConsumerCase.prefix_owner = owner  # removed when the interpreter ends
            build, prefix = Path(owner.name) / "build", Path(owner.name) / "prefix"
            if not CMAKE_BUILD:
                run(["cmake", "-S", ROOT, "-B", build, f"-DCORDWOOD_LIBRARY_DIR={LIBRARIES}"])
                run(["cmake", "--build", build], BUILD_S)
            # All of it. Named, so that a build tree of the user's keeps its install_manifest.txt.
            run(["cmake", "--install", CMAKE_BUILD or build, "--prefix", prefix,
                 "--component", "Unspecified"])
            ConsumerCase.prefix = prefix
        return ConsumerCase.prefix

    def libraries(self) -> Path:
        """The directory of the libraries below it, whatever CMake was told."""
        return next(self.installed().rglob("libcordwood.so")).parent


class CompilerTest(ConsumerCase):
    """Straight from the checkout: -I include, -L build/lib."""

    def compile(self, compiler: str, source: str, *options: str) -> Path:
        """A program linked with the shared library of the checkout."""
        program = self.directory / f"{compiler}-{len(options)}-{source}.out"
        run([compiler, *STRICT, *options, "-I", ROOT / "include", HERE / source, "-o", program,
             "-L", LIBRARIES, "-lcordwood", f"-Wl,-rpath,{LIBRARIES}"])
        return program

    def test_c(self) -> None:
        for compiler in compilers(["cc", "gcc", "clang"]):
            with self.subTest(compiler):
                self.check_c(self.compile(compiler, "consumer.c", "-std=c11"))

    def test_cpp(self) -> None:
        for compiler in compilers(["g++", "clang++"]):
            with self.subTest(compiler):
                self.check_cpp(self.compile(compiler, "consumer.cpp", "-std=c++17"))
                bare = self.compile(compiler, "consumer.cpp", "-std=c++17", *WITHOUT)
                self.check_cpp(bare, exceptions=False)

    def test_static(self) -> None:
        archive = LIBRARIES / "libcordwood.a"
        for compiler, standard, source, check in (
                ("cc", "c11", "consumer.c", self.check_c),
                ("c++", "c++17", "consumer.cpp", self.check_cpp)):
            program = self.directory / source.replace(".", "-")
            run([compiler, f"-std={standard}", *STRICT, "-I", ROOT / "include", HERE / source,
                 "-o", program, archive, *SYSTEM])
            self.assertNotIn("libcordwood", run(["ldd", program]))
            check(program)

    @full
    def test_header_alone_in_both_languages(self) -> None:
        for compiler, standard in (("gcc", "c11"), ("clang", "c11"), ("g++", "c++17"),
                                   ("g++", "c++20"), ("clang++", "c++17"), ("clang++", "c++20")):
            if shutil.which(compiler):
                is_c = standard == "c11"
                source = self.directory / f"header.{'c' if is_c else 'cc'}"
                for header in ("cordwood.h", "curl.h", "curl_error.h", "curl_transfer.h",
                               "cordwood.hpp", "cordwood_macros.hpp")[:4 if is_c else 6]:
                    source.write_text(f"#include <cordwood/{header}>\n")
                    run([compiler, f"-std={standard}", *STRICT, "-I", ROOT / "include", "-c",
                         source, "-o", self.directory / "header.o"])

    def test_bad_input(self) -> None:
        program = self.compile("cc", "bad_input.c", "-std=c11")
        run([program, self.directory])


class InstalledTest(ConsumerCase):
    """From an installed prefix, like a distribution's package."""

    def test_files(self) -> None:
        lib = self.libraries()
        self.assertTrue((lib / "libcordwood.so.0").is_symlink())
        self.assertTrue((lib / "libcordwood.so").is_symlink())
        names = run(["readelf", "-d", lib / "libcordwood.so"])
        self.assertIn("[libcordwood.so.0]", names)
        headers = {path.name for path in (self.installed() / "include" / "cordwood").iterdir()}
        self.assertEqual(headers, {"append.h", "cordwood.h", "cordwood.hpp",
                                   "cordwood_append.hpp", "cordwood_check.hpp",
                                   "cordwood_format.hpp", "cordwood_http.hpp",
                                   "cordwood_json.hpp", "cordwood_macros.hpp",
                                   "cordwood_network.hpp", "cordwood_reader.hpp",
                                   "cordwood_status.hpp", "cordwood_target.hpp",
                                   "cordwood_transaction.hpp", "cordwood_values.hpp",
                                   "cordwood_words.hpp", "curl.h", "curl_error.h",
                                   "curl_transfer.h", "http.h", "log.h", "network.h",
                                   "transaction.h", "upload.h"})

    def test_find_package(self) -> None:
        build = self.directory / "build"
        prefix = self.installed()
        run(["cmake", "-S", HERE / "cmake", "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}"])
        run(["cmake", "--build", build], BUILD_S)
        for kind in ("cordwood", "static"):
            with self.subTest(kind):
                # In a folder of the configuration, if the generator has several.
                self.check_c(next(build.rglob(f"c_{kind}")))
                self.check_cpp(next(build.rglob(f"cpp_{kind}")))

    def test_another_library_directory(self) -> None:
        """As Debian's packages name it."""
        build, prefix = self.directory / "build", self.directory / "prefix"
        run(["cmake", "-S", ROOT, "-B", build, f"-DCORDWOOD_LIBRARY_DIR={LIBRARIES}",
             "-DCMAKE_INSTALL_LIBDIR=lib/of-a-kind", "-DBUILD_TESTING=OFF"])
        run(["cmake", "--install", build, "--prefix", prefix])
        self.assertLessEqual({"libcordwood.so", "libcordwood.so.0", "libcordwood.a", "cmake",
                              "pkgconfig"},
                             {path.name for path in (prefix / "lib/of-a-kind").iterdir()})

    def test_pkg_config(self) -> None:
        lib = self.libraries()
        words = run(["pkg-config", "--cflags", "--libs", "cordwood"],
                    environment={"PKG_CONFIG_PATH": str(lib / "pkgconfig")}).split()
        program = self.directory / "pkg"
        run(["cc", "-std=c11", *STRICT, HERE / "consumer.c", "-o", program, *words])
        self.check_c(program, {"LD_LIBRARY_PATH": str(lib)})

    @full
    def test_a_moved_prefix(self) -> None:
        moved = self.directory / "moved"
        packages = moved / self.libraries().relative_to(self.installed()) / "pkgconfig"
        shutil.copytree(self.installed(), moved, symlinks=True)
        words = run(["pkg-config", "--cflags", "--libs", "cordwood"],
                    environment={"PKG_CONFIG_PATH": str(packages)})
        self.assertIn(str(moved), words)


class PythonTest(ConsumerCase):
    """pip in a fresh environment, with a compiler and without."""

    fresh: Optional[Path] = None
    fresh_owner: Optional["tempfile.TemporaryDirectory[str]"] = None
    LIBRARY = {"CORDWOOD_LIBRARY": str(LIBRARIES / "libcordwood.so")}
    PROGRAM = ("import sys, cordwood\n"
               "assert cordwood.accelerated is (sys.argv[1] == 'accelerated'), sys.argv\n"
               "engine = cordwood.open(sys.argv[2])\n"
               "log = engine.logger('consumer.python')\n"
               "log.info('hello')\n"
               "log.warning('fields', order=7, user='anna')\n"
               "engine.close()\n"
               "engine.close()\n")

    def environment(self) -> Path:
        """A new virtual environment. Returns its interpreter."""
        if PythonTest.fresh is None:
            owner = tempfile.TemporaryDirectory(prefix="cordwood-venv-")
            PythonTest.fresh_owner = owner  # removed when the interpreter ends
            run([sys.executable, "-m", "venv", Path(owner.name) / "venv"])
            PythonTest.fresh = Path(owner.name) / "venv"
        # A copy is as fresh as the first: it finds packages where its pyvenv.cfg lies.
        path = Path(tempfile.mkdtemp(dir=self.directory)) / "venv"
        shutil.copytree(PythonTest.fresh, path, symlinks=True)
        return path / "bin" / "python"

    def source(self) -> Path:
        """The package's directory in a copy of the part of the checkout that it needs."""
        source = Path(tempfile.mkdtemp(dir=self.directory)) / "python"
        shutil.copytree(ROOT, source, symlinks=True, ignore=lambda path, names: [
            name for name in names
            if name.startswith(".") or (Path(path) == ROOT
                                        and name not in ("bindings", "include"))
            or name in ("build", "__pycache__") or name.endswith((".so", ".egg-info"))])
        return source / "bindings" / "python"

    def check_python(self, python: Path, way: str, **environment: str) -> None:
        """The host, in an environment with the package."""
        self.check([python, "-I", "-c", self.PROGRAM, way], "consumer.python",
                   ["hello", "fields"], environment)

    def test_pip(self) -> None:
        python, source = self.environment(), self.source()
        run([python, "-m", "pip", "install", source], BUILD_S, self.LIBRARY)
        self.check_python(python, "accelerated")
        self.check_python(python, "plain", CORDWOOD_PYTHON_ACCELERATOR="0")

    @full
    def test_pip_without_a_compiler(self) -> None:
        python, source = self.environment(), self.source()
        run([python, "-m", "pip", "install", source], BUILD_S, {**self.LIBRARY, "CC": "/bin/false"})
        self.check_python(python, "plain")

    @full
    def test_wheel_and_source_distribution(self) -> None:
        python, source = self.environment(), self.source()
        run([python, "-m", "pip", "install", "setuptools>=77", "wheel"], BUILD_S)
        run([python, "-c", "import os, sys; os.chdir(sys.argv[1]);"
                           "from setuptools import build_meta as b; b.build_sdist(sys.argv[2])",
             source, self.directory], BUILD_S)
        packed = next(self.directory.glob("cordwood-*.tar.gz"))
        with tarfile.open(packed) as archive:
            names = {name.partition("/")[2] for name in archive.getnames()}
        self.assertLessEqual(
            {"setup.py", "pyproject.toml", "README.md", "include/cordwood/cordwood.h",
             "include/cordwood/log.h", "include/cordwood/transaction.h",
             "include/cordwood/upload.h", "speed/speed.c",
             "speed/speed.h", "speed/module.h", "speed/places.h", "speed/values.h",
             "src/cordwood/__init__.py", "src/cordwood/_speed.pyi", "src/cordwood/py.typed"}, names)
        for compiler, tag, way in (("cc", f"cp3{sys.version_info[1]}-cp3{sys.version_info[1]}",
                                    "accelerated"), ("/bin/false", "py3-none", "plain")):
            with self.subTest(compiler):
                wheels = Path(tempfile.mkdtemp(dir=self.directory))
                run([python, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-w",
                     wheels, packed], BUILD_S, {**self.LIBRARY, "CC": compiler})
                wheel = next(wheels.iterdir())
                platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
                self.assertRegex(wheel.name, rf"^cordwood-[\d.]+-{tag}-{platform}\.whl$")
                with zipfile.ZipFile(wheel) as archive:
                    inside = {name.partition("/")[2] for name in archive.namelist()
                              if name.startswith("cordwood/")}
                self.assertLessEqual({"libcordwood.so", "py.typed", "_speed.pyi", "_logger.py"},
                                     inside)
                self.assertEqual(any(name.startswith("_speed.") and name.endswith(".so")
                                     for name in inside), way == "accelerated")
                self.assertFalse([name for name in inside if name.endswith((".c", ".h"))])
                other = self.environment()
                run([other, "-m", "pip", "install", "--no-index", wheel], BUILD_S)
                self.check_python(other, way)


class SwiftTest(ConsumerCase):
    """A Swift package that depends on the checkout by path."""

    def test_package(self) -> None:
        self.check([swift_hosts.program("Consumer")], "consumer.swift", ["hello", "fields"])

    @only_all
    def test_package_at_the_root(self) -> None:
        package = self.directory / "Tests" / "Consumers" / "swift"
        shutil.copytree(HERE / "swift", package, ignore=shutil.ignore_patterns(".build"))
        manifest = package / "Package.swift"
        manifest.write_text(manifest.read_text().replace('"../../.."', json.dumps(str(ROOT))))
        # Kept between runs: all of Cordwood is compiled for it.
        scratch = ROOT / ".build-consumer"
        run(["swift", "build", "--package-path", package, "--scratch-path", scratch], BUILD_S)
        self.check([scratch / "debug" / "Consumer"], "consumer.swift", ["hello", "fields"])


if __name__ == "__main__":
    unittest.main()
