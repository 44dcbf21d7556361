"""Files that people are given, broken in many ways: flow lists, distributions of sizes, topologies, results,
captures. Whatever is in them, the command ends by itself, with a message that names the file or a good end,
and never by a signal."""

import argparse
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
import time

parser = argparse.ArgumentParser()
for option in ("paceline", "pacelined", "dataplane", "programs"):
    parser.add_argument(f"--{option}", required=True)
options = parser.parse_args()

SECONDS = 5  # for each kind of file, on top of the named ones
PATIENCE = 60 * float(os.environ.get("PACELINE_TEST_PATIENCE", "1"))
failures = []
SEED = 21

FLOWS = b"3\n0 1 3 100 2000 0\n1 2 3 100 3000 0.000001\n2 0 3 100 100 0.00002\n"
SIZES = b"0 0\n100 0.5\n2000 0.9\n10000 1\n"
PLACEMENT = b"0 0 0\n1 1 0\n2 0 1\n3 1 1\n"
TOPOLOGY = b"4 1 3\n3\n0 3 100Gbps 1us 0\n1 3 100Gbps 1us 0\n2 3 100Gbps 1us 0\n"
MATRIX = (b"Nodes 3\nConnections 2\nTriggers 1\n0->1 id 1 start 0 size 9 recv_done_trigger 1\n"
          b"1->2 id 2 trigger 1 size 7\ntrigger id 1 oneshot\n")
LONG = 100_000_000  # characters in a line, or a number
NUMBERS = [b"-1", b"0", b"4294967296", b"18446744073709551615", b"18446744073709551616", b"1e308", b"1e-400",
           b"nan", b"inf", b"0x10", b"1" * 5000, b"", b"\0", b"99999999999999999999.5", b"1000000000000000"]


def capture():
    frame = bytes(range(12)) + b"\x08\x00" + bytes(60)
    return (struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
            + struct.pack("<IIII", 1, 0, len(frame), len(frame)) + frame)


def next_capture():
    """pcapng: a section, an interface, a packet."""
    frame = bytes(range(12)) + b"\x08\x00" + bytes(58)

    def block(kind, body):
        body += bytes(-len(body) % 4)
        return struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)
    return (block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
            + block(1, struct.pack("<HHI", 1, 0, 0))
            + block(6, struct.pack("<IIIII", 0, 0, 0, len(frame), len(frame)) + frame))


def mutated(data, dice):
    """One to four changes: bytes, words, lines, ends."""
    out = bytearray(data)
    for _ in range(dice.randint(1, 4)):
        at = dice.randrange(len(out)) if out else 0
        kind = dice.randrange(6)
        if kind == 0 and out:
            out[at] = dice.randrange(256)
        elif kind == 1:
            del out[at:at + dice.randint(1, 20)]
        elif kind == 2:
            out[at:at] = out[at:at + dice.randint(1, 40)]
        elif kind == 3:
            out[at:at + dice.choice((0, 1, 4))] = dice.choice(NUMBERS)
        elif kind == 4 and out:
            out[at:at + 4] = struct.pack("<I", dice.choice((0, 1, 0x7FFFFFFF, 0xFFFFFFFF, 0x80000000)))
        else:
            words = bytes(out).split(b" ")
            words[dice.randrange(len(words))] = dice.choice(NUMBERS)
            out = bytearray(b" ".join(words))
    return bytes(out)


def run(name, path, data, command):
    with open(path, "wb") as file:
        file.write(data)
    try:
        # What a wrong number may make it allocate is bounded, too.
        done = subprocess.run(["prlimit", f"--as={4 << 30}", *command], capture_output=True,
                              timeout=PATIENCE, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        failures.append(f"{name}: does not end: {data[:200]!r}")
        return
    text = done.stderr.decode(errors="replace")
    good = done.returncode == 0 or (done.returncode in (1, 2) and "paceline: error: " in text)
    if not good or "bad_alloc" in text:
        failures.append(f"{name}: {done.returncode}: {text[-300:]}\n  with {data[:300]!r}")


def many(name, path, seeds, command):
    dice = random.Random(SEED)
    limit = time.monotonic() + SECONDS
    runs = 0
    for data in seeds:
        run(name, path, data, command)
    while time.monotonic() < limit and len(failures) < 10:
        run(name, path, mutated(dice.choice(seeds), dice), command)
        runs += 1
    print(f"{name}: {runs} files and {len(seeds)} seeds", flush=True)


def main():
    with tempfile.TemporaryDirectory(prefix="paceline-attack-") as folder:
        path = os.path.join(folder, "given")
        scenario = os.path.join(folder, "scenario.toml")
        emulate = [options.paceline, "emulate", scenario, "--quiet"]

        def describe(text):
            with open(scenario, "w", encoding="utf-8") as file:
                file.write('duration = "100us"\nmax_hops = 100000\n' + text)

        describe('[fabric]\nhosts = 3\n[workload]\nkind = "flows"\nflows_file = "given"\n')
        many("flow list", path, [FLOWS, b"1\n" + b"0 1 3 100 5 0 " * 10000, b"16777216\n", b"\n" * 100000,
                                b"7" * LONG], emulate)
        describe('[fabric]\nhosts = 3\n[workload]\nmatrix_file = "given"\n')
        many("matrix", path, [MATRIX, b"Nodes 3\nConnections 16777216\n0->1 start 0 size 1\n",
                              b"Nodes 3\nConnections 1\n" + b"0->1 start 0 size 5\n" * 100000, b"0->1 " * 100000,
                              b"7" * LONG], emulate)
        describe('[fabric]\nhosts = 3\n[workload]\nkind = "open_loop"\nload = 0.3\ncdf_file = "given"\n')
        many("distribution", path, [SIZES, b"0 0\n" * 100000, b"1 1\n", b"1e15 1\n", b"0 0\n1 100\n",
                                   b"0 " * (15 << 19), b"7" * (15 << 20)], emulate)
        describe('[fabric]\nhosts = 4\nnics = 2\n[workload]\nkind = "permutation"\nplacement_file = "given"\n')
        many("placement", path, [PLACEMENT, b"0 0 0\n" * 100000, b"0 0\n", b"4 2 2\n", b"0 " * (15 << 19),
                                b"7" * LONG], emulate)
        describe('[fabric]\ntopology_file = "given"\n[workload]\nkind = "permutation"\n')
        many("topology", path, [TOPOLOGY, b"1000000 999998 10000000\n", b"4 1 3\n" + b"3 " * 100000 + b"\n",
                               b"4 1 3\n" + b"3" * LONG], emulate)
        results = os.path.join(folder, "results.json")
        describe('[fabric]\nhosts = 3\n[workload]\nkind = "permutation"\n')
        arms = os.path.join(folder, "arms.toml")
        with open(arms, "w", encoding="utf-8") as file:
            file.write('repetitions = 2\n[[arm]]\nname = "a"\nalgorithm = "dcqcn"\n[[arm]]\nname = "b"\n'
                       'algorithm = "dcqcn"\nparams = { alpha_gain = 0.01 }\n[[scenario]]\nname = "s"\n'
                       '[scenario.fabric]\nhosts = 3\n[scenario.workload]\nkind = "permutation"\n')
        made = subprocess.run([options.paceline, "ab", arms, "--out", results, "--quiet"], cwd=folder,
                              capture_output=True, text=True, timeout=PATIENCE)
        if made.returncode not in (0, 1) or not os.path.exists(results):
            sys.exit(f"no results: {made.stderr}")
        with open(results, "rb") as file:
            text = file.read()
        json.loads(text)
        many("results", path, [text, text[:len(text) // 2], b"{}", b"[]", b"", b"null", b'{"schema":1e400}',
                            b'{"schema":' + b"7" * LONG + b"}", b'{"schema":1,"kind":"' + b"7" * LONG + b'"}'],
             [options.paceline, "report", path, "--out", os.path.join(folder, "page.html")])
        # A port that is not there: a file that is good is refused for that, a bad one for itself.
        many("capture", path, [capture(), next_capture(), capture()[:20], b"\x0a\x0d\x0d\x0a" * 1000],
             [options.paceline, "replay", path, "--testbed", os.path.join(folder, "none.toml"), "--port", "p"])
    print("\n".join(failures) if failures else "all good", flush=True)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
