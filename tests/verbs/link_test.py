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


# Of rdma-core 65 (libibverbs.map.in), beyond what the library of Debian 12 has.
LATER = {
    15: "ibv_alloc_dmah ibv_dealloc_dmah ibv_reg_mr_ex",
    16: "ibv_dm_export_dmabuf_fd ibv_query_port_speed",
    17: "ibv_alloc_buf ibv_free_buf ibv_reg_buf_mr",
    18: "_ibv_query_comp_cntr_caps ibv_create_comp_cntr ibv_destroy_comp_cntr ibv_export_buf_dmabuf_fd "
        "ibv_inc_comp_cntr ibv_inc_err_comp_cntr ibv_qp_attach_comp_cntr ibv_read_comp_cntr "
        "ibv_read_err_comp_cntr ibv_set_comp_cntr ibv_set_err_comp_cntr",
}

# A program linked with a newer library: it does not start where a node is missing.
NEWER = r"""
#include <errno.h>
#include <stdio.h>
void* ibv_reg_mr_ex(void*, void*);
int ibv_query_port_speed(void*, unsigned, unsigned long*);
int ibv_read_comp_cntr(void*, unsigned long*);
int main(int argc, char** argv) {
  if (argc > 1) return ibv_reg_mr_ex(argv, argv) != 0 || ibv_query_port_speed(argv, 1, 0);
  puts(ibv_read_comp_cntr(0, 0) == EOPNOTSUPP ? "refused" : "?");
  return 0;
}
"""
NEWER_LIBRARY = ("void* ibv_reg_mr_ex() {return 0;} int ibv_query_port_speed() {return 0;}"
                 "int ibv_read_comp_cntr() {return 0;}")
NEWER_MAP = """IBVERBS_1.15 {global: ibv_reg_mr_ex; local: *;};
IBVERBS_1.16 {global: ibv_query_port_speed;} IBVERBS_1.15;
IBVERBS_1.18 {global: ibv_read_comp_cntr;} IBVERBS_1.16;
"""


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def newer_program(compiler, folder, environment):
    source, library = os.path.join(folder, "n.c"), os.path.join(folder, "l.c")
    write(source, NEWER)
    write(library, NEWER_LIBRARY)
    write(os.path.join(folder, "map"), NEWER_MAP)
    stand_in = os.path.join(folder, "libibverbs.so.1")
    program = os.path.join(folder, "newer")
    built = output(compiler, "-shared", "-fPIC", "-Wl,-soname,libibverbs.so.1",
                   f"-Wl,--version-script={folder}/map", "-o", stand_in, library)
    expect(built[0] == 0, f"a newer library's stand-in {built[1]}")
    built = output(compiler, "-w", "-o", program, source, stand_in)
    expect(built[0] == 0, f"a program linked with it {built[1]}")
    status, text = output(program, env=environment)
    expect((status, text) == (0, "refused\n"), f"it runs with the drop-in: {text.strip()}")


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
    later = {f"FUNC {name}@@IBVERBS_1.{node}" for node, names in LATER.items() for name in names.split()}
    for library in (preload, drop_in):
        expect(later <= exports(library), f"{os.path.basename(library)}: nodes up to IBVERBS_1.18 "
               f"{sorted(later - exports(library)) or ''}")
    wrong = {e for e in exports(preload) if "@" in e and e.startswith("FUNC")} - exports(real) - later
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
        write(source, PROGRAM)
        built = output(compiler, "-o", program, source, "-ldl")
        expect(built[0] == 0, f"compiles {built[1]}")
        for name in ("libibverbs.so", "libibverbs.so.1"):
            status, text = output(program, name, env=environment)
            expect(status == 0 and folder in text, f"dlopen(\"{name}\") and dlvsym(): {text.strip()}")
        newer_program(compiler, temporary, environment)
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
