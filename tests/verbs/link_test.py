#!/usr/bin/env python3
"""What the two link steps of the verbs library export.

  link_test.py PRELOAD DROP-IN REAL C-COMPILER

The drop-in must have every symbol, at every version, and every node of the real library, so that
whatever is linked with that one loads; the preload must catch every public function.
"""

import os
import re
import subprocess
import sys
import tempfile

failures = []


def expect(good, text):
    print(f"{'ok     ' if good else 'FAILED '} {text}", flush=True)
    if not good:
        failures.append(text)


def output(*command, **more):
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, **more)
    return done.returncode, done.stdout + done.stderr


def exports(library):
    """{"name@@VERSION"} of the symbols, with the type before."""
    text = output("readelf", "--wide", "--dyn-syms", library)[1]
    found = set()
    for line in text.splitlines():
        words = line.split()
        if len(words) == 8 and words[0].endswith(":") and words[6] not in ("UND", "Ndx"):
            found.add(f"{words[3]} {words[7]}")
    return found


def nodes(library):
    text = output("readelf", "--wide", "--version-info", library)[1].split("Version needs")[0]
    return set(re.findall(r"Name: (\S+)", text))


PROGRAM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char** argv) {
  void* library = dlopen(argc > 1 ? argv[1] : "libibverbs.so.1", RTLD_NOW);
  if (!library) { puts(dlerror()); return 1; }
  const char* const names[][2] = {
    {"ibv_get_device_list", "IBVERBS_1.1"}, {"ibv_open_device", "IBVERBS_1.1"},
    {"ibv_create_comp_channel", "IBVERBS_1.0"}, {"ibv_reg_mr_iova2", "IBVERBS_1.8"},
    {"ibv_reg_dmabuf_mr", "IBVERBS_1.12"}, {"ibv_query_ece", "IBVERBS_1.10"}};
  for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
    if (!dlvsym(library, names[i][0], names[i][1])) { printf("no %s\n", names[i][0]); return 1; }
  }
  void* (*list)(int*) = (void* (*)(int*))dlvsym(library, "ibv_get_device_list", "IBVERBS_1.1");
  Dl_info info;
  dladdr((void*)list, &info);
  printf("from %s\n", info.dli_fname);
  return 0;
}
"""


def main():
    preload, drop_in, real, compiler = sys.argv[1:5]
    missing = exports(real) - exports(drop_in)
    expect(exports(real), "the real library has versioned symbols")
    expect(not missing, f"drop-in: every symbol@version of {real} {sorted(missing) or ''}")
    expect(nodes(real) - {"libibverbs.so.1"} <= nodes(drop_in), "drop-in: every node")
    expect("[libibverbs.so.1]" in output("readelf", "--wide", "-d", drop_in)[1], "drop-in: soname")
    # Public: what a program may ask for by a node whose name does not change. Functions that touch
    # no object may stay with the real library.
    caught = {e.split("@")[0] for e in exports(preload)}
    public = {e for e in exports(real) if "@@IBVERBS_1" in e and e.startswith("FUNC")}
    helpers = re.compile(r"_str$|mbps|mult|_from_kern$|_to_kern$|sysfs_path$|register_driver$")
    escaped = {e for e in public if e.split("@")[0] not in caught and not helpers.search(e.split("@")[0])}
    expect(not escaped, f"preload: every public function {sorted(escaped) or ''}")
    wrong = {e for e in exports(preload) if "@" in e and e.startswith("FUNC")} - exports(real)
    expect(not wrong, f"preload: versions as in the real library {sorted(wrong) or ''}")
    for library in (preload, drop_in):
        foreign = [e for e in exports(library) if re.search(r" (_Z|__cxa|__gxx|_Unwind)", e)]
        expect(not foreign, f"{os.path.basename(library)}: nothing of the C++ library {foreign[:3]}")
        needed = re.findall(r"NEEDED.*\[(.*)\]", output("readelf", "--wide", "-d", library)[1])
        expect(not [n for n in needed if "stdc++" in n or "gcc" in n],
               f"{os.path.basename(library)}: needs {needed}")
    folder = os.path.dirname(drop_in)
    environment = dict(os.environ, LD_LIBRARY_PATH=folder, LD_BIND_NOW="1")
    with tempfile.TemporaryDirectory() as temporary:
        source, program = os.path.join(temporary, "p.c"), os.path.join(temporary, "p")
        with open(source, "w", encoding="utf-8") as file:
            file.write(PROGRAM)
        built = output(compiler, "-o", program, source, "-ldl")
        expect(built[0] == 0, f"compiles {built[1]}")
        for name in ("libibverbs.so", "libibverbs.so.1"):
            status, text = output(program, name, env=environment)
            expect(status == 0 and folder in text, f"dlopen(\"{name}\") and dlvsym(): {text.strip()}")
        for name in ("libmlx5.so.1", "libmlx4.so.1", "libefa.so.1", "librdmacm.so.1"):
            status, text = output(program, name, env=environment)
            # It loads, and what the program then asks of it is found in the drop-in that it needs.
            absent = "cannot open shared object file: No such" in text
            expect(absent or (status == 0 and folder in text),
                   f"{name} loads with the drop-in: {text.strip()}")
    print(f"{len(failures)} failed" if failures else "all good")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
