#!/usr/bin/env python3
"""Virtual time against real time: draws real-time.svg from what `paceline agree` wrote.

    chrt -f 50 paceline agree configs/experiments/real-time.toml --out agree.json
    docs/charts/real_time.py agree.json
"""
import json
import pathlib
import sys

WIDTH, PANEL, LEFT, RIGHT, TOP, GAP = 720, 130, 64, 16, 28, 34
COLOURS = {"virtual_time": "#1f6fb2", "real_time": "#c0392b"}
LABELS = {"virtual_time": "virtual time", "real_time": "real time"}


def panels(run):
    """(title, unit, value of a window) for each panel of a run."""
    senders = run["senders"]
    yield f'{run["arm"]}: queue', "kB", lambda w: w["queue_bytes"] / 1e3
    yield (f'{run["arm"]}: rate of the first sender', "Mb/s",
           lambda w: w["rates_bps"][senders[0]] / 1e6)


def nice(most):
    """The end of an axis that holds `most`, and the step of its lines."""
    step = 10.0 ** len(str(int(most))) / 100
    for factor in (1, 2, 5, 10, 20, 50):
        if most / (step * factor) <= 4:
            step *= factor
            break
    return step * (int(most / step) + 1), step


def panel(parts, top, title, unit, series, stops, value):
    end = max(w["end_ps"] for side in series.values() for w in side)
    most = max(value(w) for side in series.values() for w in side[1:])
    limit, step = nice(most)

    def x_of(time):
        return LEFT + time / end * (WIDTH - LEFT - RIGHT)

    def y_of(amount):
        return top + PANEL - min(amount, limit) / limit * PANEL

    for begin, over in stops:
        parts.append(f'<rect x="{x_of(begin):.1f}" y="{top}" '
                     f'width="{max(x_of(over) - x_of(begin), 0.5):.1f}" height="{PANEL}" '
                     'fill="#e8e8e8"/>')
    line = 0.0
    while line <= limit + 1e-9:
        y = y_of(line)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" '
                     f'stroke="#ddd"/><text x="{LEFT - 6}" y="{y + 4:.1f}" '
                     f'text-anchor="end">{line:g}</text>')
        line += step
    for side, windows in series.items():
        points = " ".join(f'{x_of((w["begin_ps"] + w["end_ps"]) / 2):.1f},{y_of(value(w)):.1f}'
                          for w in windows)
        parts.append(f'<polyline points="{points}" fill="none" stroke="{COLOURS[side]}" '
                     'stroke-width="1.2"/>')
    parts.append(f'<text x="{LEFT}" y="{top - 8}">{title}, {unit}</text>')
    return end


def draw(runs):
    figures = [(run, *figure) for run in runs for figure in panels(run)]
    height = TOP + len(figures) * (PANEL + GAP) + 10
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
             'font-family="sans-serif" font-size="12">',
             f'<rect width="{WIDTH}" height="{height}" fill="white"/>']
    for index, side in enumerate(COLOURS):
        parts.append(f'<text x="{WIDTH - RIGHT - 180 + 100 * index}" y="16" '
                     f'fill="{COLOURS[side]}">{LABELS[side]}</text>')
    for index, (run, title, unit, value) in enumerate(figures):
        top = TOP + 8 + index * (PANEL + GAP)
        end = panel(parts, top, title, unit, run["series"], run.get("stops", []), value)
        if index == len(figures) - 1:
            for tenth in range(0, 11, 2):
                x = LEFT + tenth / 10 * (WIDTH - LEFT - RIGHT)
                parts.append(f'<text x="{x:.1f}" y="{top + PANEL + 16}" text-anchor="middle">'
                             f'{end * tenth / 10 / 1e12:.1f} s</text>')
    parts.append("</svg>\n")
    return "\n".join(parts)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    runs = json.loads(pathlib.Path(sys.argv[1]).read_text())["runs"]
    pathlib.Path(__file__).with_name("real-time.svg").write_text(draw(runs))


if __name__ == "__main__":
    main()
