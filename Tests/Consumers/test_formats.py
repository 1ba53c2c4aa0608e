"""Formats in C and C++: what compiles, what must not, and the result of std::format's braces."""
import subprocess
import sys

from cases import sized
from test_consumers import COMMAND, LIBRARIES, ROOT, STRICT, ConsumerCase, compilers, run

sys.path.insert(0, str(ROOT / "Tests/Oracle"))

from compare import compare  # noqa: E402

HEAD = "#include <cordwood/cordwood.h%s>\nvoid f(%s log) {\n    %s\n}\n"
MANY = ", ".join(str(i) for i in range(1, 34))


class FormatTest(ConsumerCase):
    def compiled(self, words, code, cpp=False):
        """(whether it compiled, the compiler's output)"""
        source = self.directory / ("x.cpp" if cpp else "x.c")
        kind = "const cordwood::logger &" if cpp else "cw_logger *"
        source.write_text(HEAD % ("pp" if cpp else "", kind, code), encoding="utf-8")
        ended = subprocess.run([*words, *STRICT, "-I", str(ROOT / "include"), "-c", str(source),
                                "-o", str(self.directory / "x.o")], text=True, check=False,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return ended.returncode == 0, ended.stdout

    def test_macros(self):
        for words in ([[name, "-std=c11"] for name in compilers(["gcc", "clang"])]
                      + [[name, "-std=c++17", "-x", "c++"] for name in compilers(["g++"])]):
            for code, said in (
                    ('CW_INFO(log, "%d %s", 1, "a"); if (log) CW_WARN(log, "x"); else f(log);', ""),
                    ('CW_INFO(log, "%d %d", 1);', "format"), ('CW_INFO(log, "%s", 5);', "format"),
                    ('CW_INFO(log, "%d", "x");', "format"), ('CW_INFO(log, "%d", 1, 2);', "format"),
                    (f'CW_INFO(log, "%d", {MANY});', "cordwood_takes_at_most_32_arguments")):
                with self.subTest(words=words, code=code[:40]):
                    worked, output = self.compiled(words, code)
                    self.assertEqual(worked, not said, output)
                    self.assertIn(said, output)

    def test_braces_are_checked(self):
        name = compilers(["g++"])[0]
        for words in ([name, "-std=c++20"],):
            every = (('log.info("{} {:>{}} {{}}", 1, 2, 3);', True),
                     ('log.info("{} {}", 1);', False), ('log.info("{}", "a");', True),
                     ('log.info("{1}", 1);', False), ('log.info("{", 1);', False),
                     ('log.info("{0} {}", 1, 2);', False),
                     ("struct own {}; log.info(\"{}\", own());", False))
            for code, works in sized(every[:2], every, every):
                with self.subTest(words=words, code=code):
                    worked, output = self.compiled(words, code, cpp=True)
                    self.assertEqual(worked, works, output)

    def test_braces(self):
        name = compilers(["g++"])[0]
        every = (["-std=c++17", "-O2"], ["-std=c++17", "-O0"], ["-std=c++20", "-O1"],
                 ["-std=c++17", "-O1", "-fno-exceptions", "-fno-rtti"])
        for options in sized(every[:1], every, every):
            with self.subTest(options=options):
                program = self.directory / "formats"
                store = self.directory / ("store" + "".join(options))
                run([name, *STRICT, *options, "-I", ROOT / "include",
                     ROOT / "Tests/Consumers/formats.cpp", "-o", program, "-L", LIBRARIES,
                     "-lcordwood", f"-Wl,-rpath,{LIBRARIES}"])
                wanted = run([program, store]).splitlines()
                found = [line["message"] for line in self.cat(store)]
                self.assertEqual(found, wanted)
                differences = compare(str(store), str(COMMAND))[1]
                run([COMMAND, "archive", store])
                differences += compare(str(store), str(COMMAND))[1]
                self.assertEqual(differences, [])
                self.assertEqual([line["message"] for line in self.cat(store)], wanted)

    def test_unloaded_plugins(self):
        """Two modules are loaded in turn at the same addresses. Logged records stay as they were,
        and the macros and templates keep nothing loaded."""
        log = {"x.c": 'CW_INFO(log, "place of module MODULE: %d", n);',
               "x.cpp": 'cordwood::logger(log).info("module MODULE in braces: {}", n);'}
        for name, compiler in (("x.c", "gcc"), ("x.cpp", "g++")):
            folder = self.directory / name
            folder.mkdir()
            options = [compilers([compiler])[0], *STRICT, "-O1", "-I", ROOT / "include"]
            linked = ["-L", LIBRARIES, "-lcordwood", f"-Wl,-rpath,{LIBRARIES}"]
            for module in "AB":
                text = log[name].replace("MODULE", module)
                cpp = name.endswith("cpp")
                source = folder / name
                source.write_text(
                    f"#include <cordwood/cordwood.h{'pp' if cpp else ''}>\n"
                    f"{LINKAGE if cpp else ''}void say(cw_logger *log, int n);\n"
                    f"void say(cw_logger *log, int n) {{ {text} }}\n", encoding="utf-8")
                run([*options, "-shared", "-fPIC", source, "-o", folder / f"{module}.so", *linked])
            host = folder / "host.c"
            host.write_text(HOST, encoding="utf-8")
            run([compilers(["gcc"])[0], "-D_GNU_SOURCE", "-O1", "-Wall", "-I", ROOT / "include",
                 host, "-o", folder / "host", *linked, "-ldl"])
            run([folder / "host", folder / "store", folder])
            found = [line["message"] for line in self.cat(folder / "store")]
            said = "place of module {}: {}" if name == "x.c" else "module {} in braces: {}"
            self.assertEqual(found, [said.format("AB"[n % 2], n) for n in range(1000)])


LINKAGE = 'extern "C" '

HOST = r"""
#include <cordwood/cordwood.h>
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv) {
    cw_options options;
    cw_options_init(&options, sizeof options);
    options.directory = argv[1];
    cw_engine *engine;
    cw_logger *log;
    if (argc != 3 || cw_open(&options, &engine) || cw_logger_get(engine, "host", &log)) return 1;
    for (int n = 0; n < 1000; n++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%c.so", argv[2], "AB"[n % 2]);
        void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        void (*say)(cw_logger *, int) = 0;
        if (module) say = (void (*)(cw_logger *, int))dlsym(module, "say");
        if (!say) return printf("%s\n", dlerror()), 2;
        say(log, n);
        dlclose(module);
        if (dlopen(path, RTLD_NOW | RTLD_NOLOAD)) return printf("%s stays\n", path), 3;
    }
    return cw_close(&engine, 60000) == CW_OK ? 0 : 4;
}
"""
