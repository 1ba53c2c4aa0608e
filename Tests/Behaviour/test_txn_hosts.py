"""B-TXN in the other languages: the programs of examples/transactions, and C++ from outside."""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import cordwood
import swift_hosts
from cases import full
from sending import BUILD, ROOT, WORK, StoreCase
from test_txn import Strict

DEFAULTS = {"authorization": 'Token token="token"',
            "content_type": "application/apptxnset-v1+json;charset=UTF-8"}
STRICT = ["-Wall", "-Wextra", "-Werror", "-pedantic"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "bindings/python/src")}

RAII = r"""
#include <cordwood/cordwood.hpp>
#include <cassert>
#include <thread>
#include <type_traits>
using scope = cordwood::transaction::scope;
static_assert(std::is_nothrow_move_constructible<scope>::value, "");
static_assert(!std::is_move_assignable<scope>::value, "it would end in the wrong order");
int main(int, char **argv) {
    auto engine = cordwood::engine::open(argv[1]);
    auto log = engine->logger("raii");
    cordwood::transaction empty;
    assert(!empty && empty.id().empty() && !empty.event(1) && !empty.attach());
    assert(!engine->join_transaction("TXN1"));
    std::string id;
    {
        auto made = engine->begin_transaction(17);
        assert(made);
        cordwood::transaction one = std::move(*made);
        assert(!*made && one);
        id = one.id();
        auto inside = one.attach();
        log.info("inside");
        {
            auto joined = engine->join_transaction(id);
            auto deeper = joined->attach();
            log.info("deeper");
            cordwood::transaction::scope moved = std::move(deeper);
            assert(moved && !deeper);
        }
        log.info("inside again");
        std::thread([&] { log.info("elsewhere"); assert(one.event(2)); }).join();
        assert(one.event(1, "42") && one.event(3, "", "text"));
        assert(inside.end() && inside.end());
        log.info("outside");
    }
    auto listed = engine->transactions();
    assert(listed);
    auto &all = *listed;
    assert(all.size() == 1 && all[0].id == id && all[0].events == 3 && all[0].errors == 2);
    assert(all[0].is_ended);
    assert(engine->forget_transactions(id));
    listed = engine->transactions();
    assert(listed == CW_END && listed->empty());
    engine->close();
    assert(engine->transactions().failed());
    return 0;
}
"""

BOUNDS = r"""
#include <cordwood/cordwood.hpp>
#include <cstdint>
#include <cstdio>
enum class wide : uint64_t { one = 1, far = 4294967297ULL };
enum class small : uint8_t { last = 255 };
int main(int, char **argv) {
    int failures = 0;
    const auto expect = [&](bool holds, int line) {
        if (!holds) std::fprintf(stderr, "line %d\n", line), failures++;
    };
#define EXPECT(holds) expect(static_cast<bool>(holds), __LINE__)
    auto engine = cordwood::engine::open(argv[1]);
    auto one = engine->begin_transaction(17);
    EXPECT(one->event(4294967297LL).code() == CW_E_ARGUMENT);
    EXPECT(one->event(-2147483649LL, "code").code() == CW_E_ARGUMENT);
    EXPECT(one->event(4294967295U, "code", "text").code() == CW_E_ARGUMENT);
    EXPECT(one->event(UINT64_MAX).code() == CW_E_ARGUMENT);
    EXPECT(one->event(wide::far).code() == CW_E_ARGUMENT);
    EXPECT(engine->begin_transaction(4294967297LL).status().code() == CW_E_ARGUMENT);
    EXPECT(engine->begin_transaction(wide::far).status().code() == CW_E_ARGUMENT);
    EXPECT(one->event(2147483647LL) && one->event(-2147483647LL));
    EXPECT(one->event(wide::one) && one->event(small::last));
    using namespace std::string_literals;
    const std::string id = one->id();
    EXPECT(engine->join_transaction(id + "\0x"s).status().code() == CW_E_ARGUMENT);
    EXPECT(engine->forget_transactions(id + "\0x"s).code() == CW_E_ARGUMENT);
    EXPECT(one->event(5, "a\0b"s, "c\0\0"s));
    EXPECT(one->event(6, "\0"s));
    return failures;
}
"""


class Hosts(StoreCase):
    def compiled(self, source, *words):
        program = Path(tempfile.mkdtemp(dir=WORK)) / "program"
        subprocess.run([*words, *STRICT, f"-I{ROOT}/include", source, f"-L{BUILD}/lib",
                        "-lcordwood", "-lpthread", f"-Wl,-rpath,{BUILD}/lib", "-o", program],
                       check=True)
        return [program]

    def swift(self):
        return [swift_hosts.program("Transactions")]

    def example(self, program):
        server = Strict(self, **DEFAULTS)
        store = Path(tempfile.mkdtemp(dir=WORK)) / "store"
        out = subprocess.run([*program, store, server.url], check=True, env=ENVIRONMENT, text=True,
                             stdout=subprocess.PIPE).stdout
        shown = re.fullmatch(r"X-Transaction-Id: (TXN17-\S+)\n"
                             r"traceparent: (00-[0-9a-f]{32}-[0-9a-f]{16}-01)\n"
                             r"2 events sent\n", out)
        self.assertTrue(shown, out)
        self.assertEqual(shown[2][3:35], shown[1][6:].replace("-", "").lower())
        self.assertEqual([(row["id"], row["event"], row["code"], row["description"])
                          for row in server.stored],
                         [(shown[1], 0, None, None), (shown[1], 1, "42", "the card was refused")])

    def test_example_in_c(self):
        self.example(self.compiled(ROOT / "examples/transactions/transactions.c", "cc",
                                   "-std=c11"))

    def test_example_in_cpp(self):
        self.example(self.compiled(ROOT / "examples/transactions/transactions.cpp", "c++",
                                   "-std=c++17"))

    def test_example_in_python(self):
        self.example([sys.executable, ROOT / "examples/transactions/transactions.py"])

    def test_example_in_swift(self):
        self.example(self.swift())

    def test_cpp_scopes(self):
        source = Path(tempfile.mkdtemp(dir=WORK)) / "raii.cpp"
        source.write_text(RAII)
        for options in ((), ("-fno-exceptions", "-fno-rtti")):
            store = Path(tempfile.mkdtemp(dir=WORK)) / "store"
            subprocess.run([*self.compiled(source, "c++", "-std=c++17", *options), store],
                           check=True)
            found = {record.message: record for record in cordwood.read(store)}
            ids = {name: found[name].fields.get("txn.id") for name in found}
            one = ids["inside"]
            self.assertRegex(one, r"^TXN17-")
            self.assertEqual(ids, {"inside": one, "deeper": one, "inside again": one,
                                   "elsewhere": None, "outside": None})
            self.assertEqual(found["inside"].span_id, found["inside again"].span_id)
            self.assertNotEqual(found["inside"].span_id, found["deeper"].span_id)
            self.assertIsNone(found["outside"].trace_id or None)

    @full
    def test_cpp_bounds(self):
        source = Path(tempfile.mkdtemp(dir=WORK)) / "bounds.cpp"
        source.write_text(BOUNDS)
        for options in ((), ("-fno-exceptions", "-fno-rtti")):
            store = Path(tempfile.mkdtemp(dir=WORK)) / "store"
            subprocess.run([*self.compiled(source, "c++", "-std=c++17", *options), store],
                           check=True)
            found = [record.fields for record in cordwood.read(store, kinds="transaction")]
            self.assertEqual([fields["txn.event"] for fields in found if "txn.event" in fields],
                             [2147483647, -2147483647, 1, 255, 5, 6])
            errors = [(fields["txn.error.code"], fields.get("txn.error.description"))
                      for fields in found if "txn.error.code" in fields]
            self.assertEqual(errors, [("a\ufffdb", "c\ufffd\ufffd"), ("\ufffd", None)])
