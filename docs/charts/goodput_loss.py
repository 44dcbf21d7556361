#!/usr/bin/env python3
"""Goodput against random loss, go-back-N and selective repeat: draws goodput-loss.svg (docs/transport.md)
and prints its values as a table.

    docs/charts/goodput_loss.py build/release/tools/paceline
"""
import json
import math
import pathlib
import subprocess
import sys
import tempfile

LOSSES = [1e-6, 1e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 2e-2, 5e-2]
MODES = [("go_back_n", "go-back-N", "#c0392b"), ("selective", "selective repeat", "#1f6fb2")]
SEEDS = [1, 2, 3]
SCENARIO = """schema = 1
name = "goodput-loss"
[fabric]
topology = "star"
hosts = 2
[cc]
algorithm = "fixed"
[workload]
kind = "incast"
fan_in = 1
message_bytes = "50MB"
"""
WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 720, 360, 60, 50, 24


def goodput(paceline, scenario, folder, loss, mode, seed):
    out = folder / "out.json"
    subprocess.run([paceline, "emulate", scenario, "--seed", str(seed), "--out", out,
                    "--set", f"fabric.loss={loss}", "--set", f"transport.reliability={mode}"],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return find(json.loads(out.read_text()), "goodput_gbps")


def find(node, key):
    """The first value of `key`, at any depth."""
    if isinstance(node, dict):
        if key in node:
            return node[key]
        node = list(node.values())
    for child in node if isinstance(node, list) else []:
        found = find(child, key)
        if found is not None:
            return found
    return None


def x_of(loss):
    low, high = math.log10(LOSSES[0]), math.log10(LOSSES[-1])
    return LEFT + (math.log10(loss) - low) / (high - low) * (WIDTH - LEFT - 30)


def y_of(value):
    return HEIGHT - BOTTOM - value / 100 * (HEIGHT - BOTTOM - TOP)


def draw(curves):
    """The picture of (label, colour, dashes, [(loss, Gb/s)]) for each curve."""
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
             'font-family="sans-serif" font-size="12">',
             f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>']
    for value in range(0, 101, 20):
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - 30}" y1="{y_of(value):.1f}" '
                     f'y2="{y_of(value):.1f}" stroke="#ddd"/>'
                     f'<text x="{LEFT - 8}" y="{y_of(value) + 4:.1f}" text-anchor="end">{value}</text>')
    for power in range(-6, -1):
        x = x_of(10.0 ** power)
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" '
                     f'stroke="#eee"/><text x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" '
                     f'text-anchor="middle">10<tspan dy="-5" font-size="9">{power}</tspan></text>')
    parts.append(f'<text x="{(LEFT + WIDTH - 30) / 2:.0f}" y="{HEIGHT - 10}" text-anchor="middle">'
                 'loss per link</text>'
                 f'<text x="16" y="{HEIGHT / 2:.0f}" text-anchor="middle" '
                 f'transform="rotate(-90 16 {HEIGHT / 2:.0f})">goodput, Gb/s</text>')
    for index, (label, colour, dashes, points) in enumerate(curves):
        line = " ".join(f"{x_of(loss):.1f},{y_of(value):.1f}" for loss, value in points)
        dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" '
                     f'stroke-width="2"{dashed}/>')
        for loss, value in points:
            parts.append(f'<circle cx="{x_of(loss):.1f}" cy="{y_of(value):.1f}" r="3" '
                         f'fill="{colour}"/>')
        y = HEIGHT - BOTTOM - 4 - 20 * (len(curves) - index)
        parts.append(f'<text x="{LEFT + 20}" y="{y}" fill="{colour}">{label}</text>')
    parts.append("</svg>\n")
    return "\n".join(parts)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    curves = {mode: [] for mode, _, _ in MODES}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        scenario = folder / "scenario.toml"
        scenario.write_text(SCENARIO)
        for loss in LOSSES:
            for mode, _, _ in MODES:
                values = [goodput(sys.argv[1], scenario, folder, loss, mode, s) for s in SEEDS]
                curves[mode].append((loss, sum(values) / len(values)))
    pathlib.Path(__file__).with_name("goodput-loss.svg").write_text(
        draw([(label, colour, "", curves[mode]) for mode, label, colour in MODES]))
    print("| loss per link | go-back-N, Gb/s | selective repeat, Gb/s |\n|---|---|---|")
    for (loss, back), (_, selective) in zip(curves["go_back_n"], curves["selective"]):
        print(f"| {loss:g} | {back:.1f} | {selective:.1f} |")


if __name__ == "__main__":
    main()
