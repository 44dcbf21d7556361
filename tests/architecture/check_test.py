#!/usr/bin/env python3
"""Tests of check.py itself, on miniature trees."""

import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import check

CHECK = pathlib.Path(__file__).resolve().parent / "check.py"


def run(tree):
    """Writes {path: text} to a folder and checks it: (exit code, output)."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for path, text in tree.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="utf-8")
        done = subprocess.run([sys.executable, str(CHECK), "--root", folder], capture_output=True,
                              text=True, check=False)
        return done.returncode, done.stdout + done.stderr


GOOD = {
    "dataplane/base/units.h": "#pragma once\n#include <cstdint>\n",
    "dataplane/base/containers/slab.h": "#pragma once\n",
    "dataplane/port/port.h": '#pragma once\n#include "dataplane/base/units.h"\n',
    "dataplane/port/pool.h": "#pragma once\n",
    "dataplane/port/dpdk/dpdk_port.cc": "#include <rte_ethdev.h>\n",
    "cc/interface/event.h": '#include "dataplane/base/units.h"\n',
    "dataplane/transport/engine.h": '#include "cc/interface/event.h"\n#include "dataplane/port/port.h"\n',
    "dataplane/fabric/wire/link.h": '#include "dataplane/port/port.h"\n',
    "dataplane/driver/tsc.cc": "auto t = std::chrono::steady_clock::now();\n",
    "control/experiment/stats.cc": "#include <boost/math/distributions.hpp>\ndouble x = std::log(2.0);\n",
    "tools/main.cc": '#include "dataplane/transport/engine.h"\nauto* home = std::getenv("HOME");\n',
    "tools/workload/cdf.h": '#include "dataplane/base/containers/slab.h"\n',
}


class Check(unittest.TestCase):
    def good(self, extra):
        code, output = run(GOOD | extra)
        self.assertEqual(code, 0, output)
        return output

    def bad(self, path, text, *expected):
        code, output = run(GOOD | {path: text})
        self.assertEqual(code, 1, output)
        self.assertIn("1 broken rules", output)
        for part in (path, *expected):
            self.assertIn(part, output)

    def test_good_tree(self):
        self.good({})

    def test_the_message_names_line_and_what_is_allowed(self):
        self.bad("cc/rate/dcqcn.cc", '#include "cc/interface/event.h"\n\n#include "dataplane/transport/engine.h"\n',
                 "cc/rate/dcqcn.cc:3: error:", "cc may not include", "dataplane/base/units")

    def test_directions(self):
        engine = '#include "dataplane/transport/engine.h"\n'
        for path in ("dataplane/base/a.h", "dataplane/fabric/a.h", "dataplane/config/a.h",
                     "dataplane/wire/bytes/a.cc", "control/experiment/a.h", "control/daemon/main.cc",
                     "dataplane/verbs/a.cc"):
            self.bad(path, engine, "may not include")
        self.bad("dataplane/driver/a.h", '#include "tools/workload/cdf.h"\n', "may not include")
        self.bad("dataplane/transport/a.h", '#include "dataplane/fabric/wire/link.h"\n', "may not include")

    def test_one_header_of_a_room_does_not_open_the_room(self):
        self.bad("dataplane/transport/a.h", '#include "dataplane/port/pool.h"\n', "may not include")
        self.bad("cc/a.h", '#include "dataplane/base/containers/slab.h"\n', "may not include")

    def test_sub_rooms(self):
        pool = '#include "dataplane/port/capture/pool.h"\n'
        tree = {"dataplane/port/capture/pool.h": "#pragma once\n"}
        self.good(tree | {"tools/a.cc": pool})  # MAY_INCLUDE says "dataplane/port/*"
        for path in ("dataplane/port/a.cc", "dataplane/port/dpdk/a.cc"):
            code, output = run(GOOD | tree | {path: pool})
            self.assertEqual(code, 1, output)
            self.assertIn(f'{path}:1: error: {path[:-5]} may not include "dataplane/port/capture/pool.h"', output)

    def test_rooms_include_downwards_only(self):
        rows = {"a": (), "a/b": ("a",), "c": ("a/*",), "d": ("c",)}
        with unittest.mock.patch.object(check.rules, "MAY_INCLUDE", rows):
            self.assertEqual(check.circles(), [])
            rows["a"] = ("c/header",)
            self.assertEqual(check.circles(), ["a", "a/b", "c"])

    def test_a_row_that_names_nothing(self):
        rows = {"tests": ("tests/architecture/*", "tests/unit/*"), "attic": ("tests/attic",)}
        with unittest.mock.patch.object(check.rules, "MAY_INCLUDE", rows):
            self.assertEqual(list(check.names_nothing(CHECK.parents[2])), ["attic", "tests/attic"])

    def test_angle_brackets_do_not_hide_a_room(self):
        self.bad("dataplane/wire/bytes/a.h", "#include <dataplane/port/port.h>\n", "may not include")

    def test_spaces_do_not_hide_an_include(self):
        self.bad("dataplane/wire/bytes/a.h", '  #  include  "dataplane/port/port.h"\n', "may not include")

    def test_nobody_includes_tests(self):
        self.bad("tools/a.cc", '#include "tests/support/x.h"\n', "nobody includes tests")

    def test_paths_start_at_the_root(self):
        self.bad("cc/a.cc", '#include "event.h"\n', "from the repository root")

    def test_unknown_room(self):
        self.bad("dataplane/attic/a.h", "#pragma once\n", "no rule for this folder")

    def test_dpdk(self):
        self.bad("dataplane/port/port2.h", "#include <rte_mbuf.h>\n", "port/dpdk")
        self.bad("dataplane/driver/eal.cc", '#include <rte_eal.h>\n', "port/dpdk")

    def test_clocks(self):
        for read in ("std::chrono::steady_clock::now()", "system_clock :: now()", "__rdtsc()",
                     "clock_gettime(CLOCK_MONOTONIC, &ts)", "__rdtscp(&aux)"):
            self.bad("dataplane/transport/a.cc", f"auto t = {read};\n", "a.cc:1", "time is an argument")
            self.good({"dataplane/driver/a.cc": f"auto t = {read};\n"})

    def test_environment(self):
        self.bad("dataplane/driver/a.cc", 'auto* v = std::getenv("X");\n', "environment")
        self.good({"control/daemon/main.cc": 'auto* v = std::getenv("X");\n'})

    def test_libm_and_distributions(self):
        self.bad("cc/a.cc", "double x = std::log(2.0);\n", "math.h")
        self.bad("dataplane/base/a.cc", "#include <cmath>\ndouble x = pow(2.0, y);\n", "a.cc:2")
        self.bad("dataplane/fabric/a.cc", "#include <random>\n", "random.h")
        self.bad("dataplane/fabric/a.cc", "std::exponential_distribution<double> d;\n", "random.h")
        self.good({"dataplane/base/a.cc": "#include <cmath>\ndouble x = std::sqrt(2.0);\n"})
        self.good({"dataplane/base/numbers/math.h": "double log(double x);\ndouble y = own.exp(1.0);\n"})
        self.good({"tools/a.cc": "#include <random>\nauto x = std::exp(1.0);\n"})

    def test_base_and_cc_use_the_standard_library_only(self):
        self.bad("dataplane/base/a.h", "#include <fmt/format.h>\n", "standard library only")
        self.bad("cc/a.h", "#include <thread>\n", "returns a decision")
        self.good({"dataplane/base/a.h": "#include <immintrin.h>\n"})

    def test_algorithms_do_not_include_one_another(self):
        shelf = {"cc/cadence/b.h": "#pragma once\n", "cc/grants/c.h": "#pragma once\n"}
        self.good(shelf | {"cc/cadence/a.cc": '#include "cc/cadence/b.h"\n#include "cc/grants/c.h"\n'})
        code, output = run(GOOD | shelf | {"cc/eqds/a.cc": '#include "cc/cadence/b.h"\n'})
        self.assertEqual(code, 1, output)
        self.assertIn("cc/eqds/a.cc:1: error: a header of another algorithm", output)

    def test_comments_and_literals_are_no_code(self):
        self.good({"cc/a.cc": '// std::log(x), "dataplane/transport/engine.h"\n'
                              '/* #include "dataplane/transport/engine.h"\n std::exp(1) */\n'
                              'const char* s = "std::pow(2, 3) // getenv(x)";\n'
                              "int n = 1'000'000; char c = '\"'; int m = 0xFF'FF;\n"
                              'const char* r = R"(std::log(1) " )";\n'})

    def test_code_after_literals_is_still_code(self):
        self.bad("cc/a.cc", "int n = 1'000; double x = std::log(1'0.0);\n", "math.h")
        self.bad("cc/a.cc", "char c = '\\''; auto s = \"a\\\"b\"; double x = std::log(2);\n", "math.h")

    def test_files_side_by_side(self):
        pairs = {f"tools/x/f{i}{suffix}": "#pragma once\n" for i in range(12) for suffix in (".h", ".cc")}
        self.good(pairs)
        code, output = run(GOOD | pairs | {"tools/x/f12.cc": ""})
        self.assertEqual(code, 1, output)
        self.assertIn("tools/x: error: 13 pairs of .h and .cc side by side, 12 is the most", output)

    def test_a_class_is_defined_in_one_file(self):
        a = {"tools/cli/a.cc": "Text::Text() : x_(1) {}\nint Text::size() const { return 1; }\n"}
        self.good(a | {"tools/host/a.cc": "int Text::size() const {}\n"})  # another room, another class
        # Calls, declarations, comments and functions that only take one are no definitions.
        self.good(a | {"tools/cli/b.cc": "int f(const Text& t) {\n  return Text::of(t);\n}\n"
                                         "// int Text::size() {\nconst int x = Text::size();\n"})
        for text in ("void Text::print(int a, int (*f)(int)) {}\n", "Text::~Text() = default;\n",
                     "std::vector<int>\nText::all() const noexcept {\n", "bool Text::operator==(int) const {\n"):
            code, output = run(GOOD | a | {"tools/cli/b.cc": text})
            self.assertEqual(code, 1, output)
            self.assertIn("tools/cli: Text: error: its member functions are defined in 2 files, 1 is the most: "
                          "tools/cli/a.cc, tools/cli/b.cc", output)

    def test_member_functions_of_a_class(self):
        def of(count, more=""):
            return {"tools/x/a.h": "#pragma once\nclass alignas(64) Wide final : public Base {\n public:\n" + more + "".join(
                f"  int f{i}(int x) const {{ return g(x); }}\n" for i in range(count)) + "};\n"}
        # Constructors, data, aliases and what stands in an inner class are no functions of this one.
        more = ("  explicit Wide(int x) : x_(x) {}\n  ~Wide();\n  Wide(const Wide&) = delete;\n"
                "  using F = void (*)(int);\n  std::function<void(int, std::span<int>)> call;\n"
                "  int n = size(3);\n  struct Inner {\n    int g();\n    int h();\n  };\n")
        self.good(of(40, more))
        for text in ("  int g();\n", "  bool operator==(const Wide&) const = default;\n", "  int f0(long);\n",
                     "  void h(int a = 1);\n", "  static std::array<int, 2> both();\n"):
            code, output = run(GOOD | of(40, text))
            self.assertEqual(code, 1, output)
            self.assertIn("tools/x/a.h: error: class Wide has 41 member functions, 40 is the most", output)

    def test_data_members_of_a_class(self):
        def of(count, more=""):
            return {"tools/x/a.h": "#pragma once\nclass Wide {\n  explicit Wide(int x) : x0_(x), x1_{x} {}\n"
                    "  void f() { a_ = 1; }\n  struct Inner {\n    int b_ = 0;\n  };\n" + more + "".join(
                        f"  int x{i}_ = 0;\n" for i in range(count)) + "};\n"}
        self.good(of(25))
        for text in ("  int y_;\n", "  int y_{1};\n", "  int y_[2][3];\n", "  std::function<void(int)> y_;\n",
                     "  T y_ = f(1);\n"):
            code, output = run(GOOD | of(25, text))
            self.assertEqual(code, 1, output)
            self.assertIn("tools/x/a.h: error: class Wide has 26 data members, 25 is the most", output)

    def test_pairs_of_a_folder(self):
        pairs = {f"tools/host/p{i}{suffix}": "" for i in range(12) for suffix in (".h", ".cc")}
        self.good(pairs | {"tools/host/page/p12.h": "", "tools/host/p12.js": ""})
        code, output = run(GOOD | pairs | {"tools/host/p12.h": ""})
        self.assertEqual(code, 1, output)
        self.assertIn("tools/host: error: 13 pairs of .h and .cc side by side, 12 is the most", output)

    def test_file_length(self):
        self.assertIn("a.cc:301: warning", self.good({"cc/a.cc": "\n" * 301}))
        self.good({"cc/a.cc": "\n" * 600})
        self.bad("cc/a.cc", "\n" * 601, "601 lines")


if __name__ == "__main__":
    unittest.main()
