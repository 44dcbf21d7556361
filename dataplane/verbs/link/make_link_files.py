#!/usr/bin/env python3
"""Writes what the verbs library is linked with: a version script, and a C file of stubs.

  make_link_files.py preload --symbols FILE --nm NM --map OUT --stubs OUT OBJECT...
  make_link_files.py drop-in --symbols FILE --nm NM --readelf READELF --real LIBIBVERBS
                     --map OUT --stubs OUT OBJECT...

preload: the nodes of symbols.txt. Functions that could be handed an object of ours and that the
objects do not define become stubs, since the real ones would take it for theirs and crash. Whatever
else the objects export keeps no version, and so answers a linked program's request for any: the
private node's name changes with each release of rdma-core, and ibv_devinfo asks for a function of it.

drop-in: the nodes and symbols of the libibverbs that is installed, read from it now, so that whatever
depends on it (providers, librdmacm) loads, and what symbols.txt has beyond these; what the objects do
not define is a stub.
"""

import argparse
import re
import subprocess
import sys

BODIES = {
    "errno": ("int", "errno = EOPNOTSUPP;\n  return EOPNOTSUPP;"),
    "minus": ("int", "errno = EOPNOTSUPP;\n  return -1;"),
    "null": ("void*", "errno = EOPNOTSUPP;\n  return 0;"),
    "keep": ("void*", "errno = EOPNOTSUPP;\n  return 0;"),
    "zero": ("unsigned long", "return 0;"),
    "void": ("void", ""),
}


def read_table(path):
    """{name: (node, answer)}"""
    table = {}
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            words = line.split("#")[0].split()
            if not words:
                continue
            if len(words) != 3 or words[2] not in BODIES:
                sys.exit(f"{path}:{number}: expected NAME NODE ANSWER, with one of "
                         f"{', '.join(BODIES)}: {line.strip()}")
            table[words[0]] = (words[1], words[2])
    return table


def read_defined(nm, objects):
    """Names that the objects define for others."""
    text = subprocess.run([nm, "--extern-only", "--defined-only", "--format=posix", *objects],
                          check=True, capture_output=True, text=True).stdout
    return {line.split()[0] for line in text.splitlines() if len(line.split()) > 2}


def read_real(readelf, path):
    """[(name, node, is the default version, is a function, size)], and {node: parent or None}."""
    text = subprocess.run([readelf, "--wide", "--dyn-syms", path], check=True, capture_output=True,
                          text=True).stdout
    symbols = []
    for line in text.splitlines():
        words = line.split()
        if len(words) < 8 or not words[0].endswith(":") or words[6] in ("UND", "ABS", "Ndx"):
            continue
        name, at, node = words[7].partition("@")
        if at:
            symbols.append((name, node.lstrip("@"), node.startswith("@"), words[3] == "FUNC",
                            int(words[2], 0)))
    text = subprocess.run([readelf, "--wide", "--version-info", path], check=True,
                          capture_output=True, text=True).stdout
    nodes, last = {}, None
    for line in text.splitlines():
        found = re.search(r"Flags: (\S+)\s+Index: \d+\s+Cnt: \d+\s+Name: (\S+)", line)
        if found:
            last = None if found[1] == "BASE" else found[2]
            if last:
                nodes[last] = None
        elif last and "Parent 1:" in line:
            nodes[last] = line.split()[-1]
        elif "Version needs" in line:
            break
    if not symbols or not nodes:
        sys.exit(f"{path}: no versioned symbols; is this libibverbs?")
    return symbols, nodes


def order_of(node):
    return [int(n) for n in re.findall(r"\d+", node)] if "PRIVATE" not in node else [1 << 30]


def version_script(nodes, members, local=()):
    # Variables of the standard library's inline functions are exported whatever visibility we ask for.
    local = ["_Z*", *local]
    out = []
    for node in sorted(nodes, key=order_of):
        out.append(f"{node} {{")
        if members.get(node):
            out.append("  global:")
            out += [f"    {name};" for name in sorted(members[node])]
        if local:
            out += ["  local:"] + [f"    {name};" for name in local]
            local = ()
        out.append(f"}}{' ' + nodes[node] if nodes[node] else ''};\n")
    return "\n".join(out)


def function_stub(name, answer, symbol=None, version=None):
    kind, body = BODIES[answer]
    text = f"EXPORTED {kind} {symbol or name}(void) {{\n  {body}\n}}\n".replace("  \n", "")
    if version:
        text += f'__asm__(".symver {symbol},{name}@{version}");\n'
    return text


def stubs_file(parts):
    head = ["/* Written by make_link_files.py at build time. */", "#include <errno.h>", "",
            '#define EXPORTED __attribute__((visibility("default")))',
            "/* Every argument is ignored, so that no prototype is needed. */",
            '#pragma GCC diagnostic ignored "-Wpragmas"',
            '#pragma GCC diagnostic ignored "-Wunknown-warning-option"',
            '#pragma GCC diagnostic ignored "-Wbuiltin-declaration-mismatch"', ""]
    return "\n".join(head) + "\n" + "\n".join(parts)


def make_preload(table, defined):
    nodes, members, parts = {}, {}, []
    public = {name: node for name, (node, _) in table.items() if node != "PRIVATE"}
    previous = None
    for node in sorted(set(public.values()), key=order_of):
        nodes[node] = previous
        previous = node
    for name, (node, answer) in table.items():
        if node == "PRIVATE" or (name not in defined and answer == "keep"):
            continue
        members.setdefault(node, []).append(name)
        if name not in defined:
            parts.append(function_stub(name, answer))
    return version_script(nodes, members), stubs_file(parts)


def make_drop_in(table, defined, symbols, nodes):
    members, parts = {}, []
    for name, node, default, function, size in symbols:
        answer = table.get(name, ("", "errno"))[1]
        if not default:
            symbol = f"paceline_old_{name}_{node.replace('.', '_')}"
            parts.append(function_stub(name, answer, symbol, node))
            continue
        members.setdefault(node, []).append(name)
        if name in defined:
            continue
        if function:
            parts.append(function_stub(name, answer))
        else:
            parts.append(f"EXPORTED char {name}[{max(size, 1)}] __attribute__((aligned(8)));\n")
    # Of public nodes that came later than the library here.
    present, newest = {name for name, *_ in symbols}, max(
        (node for node in nodes if "PRIVATE" not in node), key=order_of)
    later = [(name, *entry) for name, entry in table.items()
             if name not in present and "PRIVATE" not in entry[0] and order_of(entry[0]) > order_of(newest)]
    for name, node, answer in sorted(later, key=lambda entry: order_of(entry[1])):
        if node not in nodes:
            nodes[node], newest = newest, node
        members.setdefault(node, []).append(name)
        if name not in defined:
            parts.append(function_stub(name, answer))
    # The names that the .symver lines leave behind are nobody's business.
    return version_script(nodes, members, ["paceline_old_*"]), stubs_file(parts)


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=("preload", "drop-in"))
    for option in ("--symbols", "--nm", "--map", "--stubs"):
        parser.add_argument(option, required=True)
    parser.add_argument("--readelf")
    parser.add_argument("--real")
    parser.add_argument("objects", nargs="+")
    options = parser.parse_args()
    table = read_table(options.symbols)
    defined = read_defined(options.nm, options.objects)
    if options.kind == "preload":
        script, stubs = make_preload(table, defined)
    else:
        if not options.real or not options.readelf:
            parser.error("drop-in needs --real and --readelf")
        script, stubs = make_drop_in(table, defined, *read_real(options.readelf, options.real))
    write(options.map, script)
    write(options.stubs, stubs)


if __name__ == "__main__":
    main()
