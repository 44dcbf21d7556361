"""Effects of arms on scenarios, paired by seed, with Student's 95 % intervals; and Markdown tables of them."""

import dataclasses
import math
import statistics

NOTHING = "·"
LEAST_PERCENT = 0.5
LEAST_QUEUE_KB = 10  # two packets
LEAST_CONTROL_POINTS = 0.1
MOST_PAIRS = 31
# 97.5 % quantiles of Student's t for 1 to 30 degrees of freedom.
QUANTILES = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
             2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042)

# measure of the league: (title, unit, by ratio, factor, decimals, least that is spelled)
MEASURES = {
    "efficiency": ("Efficiency", "%", True, 100, 1, LEAST_PERCENT),
    "slowdown_p99": ("p99 slowdown", "%", True, 100, 1, LEAST_PERCENT),
    "queue_max_bytes": ("Peak queue", "kB", False, 1e-3, 0, LEAST_QUEUE_KB),
    "control_overhead": ("Control messages", "points of all bytes", False, 100, 2, LEAST_CONTROL_POINTS),
}


@dataclasses.dataclass(frozen=True)
class Effect:
    measure: str
    pairs: int
    unfinished: int = 0
    mean: float = 0  # in the measure's unit
    half: float = 0  # of the interval: mean - half to mean + half (the wider half of a ratio's)
    shown: bool = False  # the interval excludes 0

    def spelled(self):
        return self.unfinished > 0 or (self.shown and abs(self.mean) >= MEASURES[self.measure][5])

    def text(self):
        if self.unfinished > 0:
            return f"{self.unfinished} of {self.pairs} unfinished"
        if not self.spelled():
            return NOTHING
        digits = MEASURES[self.measure][4]
        half = f"{self.half:,.{digits}f}"
        return f"{self.mean:+,.{digits}f}" + (f" ± {half}" if half.strip("0.") else "")


def effect(measure, whole, without):
    """Of leaving out: values of the whole law and of the arm, by seed; None where a run did not finish."""
    _, _, ratio, factor, _, _ = MEASURES[measure]
    pairs = len(whole)
    unfinished = sum(value is None for value in without)
    if unfinished > 0 or pairs < 2:
        return Effect(measure, pairs, unfinished)
    if ratio:
        changes = [math.log(b / a) for a, b in zip(whole, without, strict=True)]
    else:
        changes = [b - a for a, b in zip(whole, without, strict=True)]
    mean = statistics.fmean(changes)
    half = QUANTILES[pairs - 2] * statistics.stdev(changes) / math.sqrt(pairs)
    shown = abs(mean) > half
    if ratio:
        half = math.exp(mean + half) - math.exp(mean)
        mean = math.expm1(mean)
    return Effect(measure, pairs, 0, mean * factor, half * factor, shown)


def row(cells):
    return "| " + " | ".join(cells) + " |"


def heading(titles):
    return [row(titles), "|" + "---|" * len(titles)]


def full(arms, scenarios, effects):
    """A table for every measure: arms by scenarios. effects: {(arm, scenario, measure): Effect}"""
    lines = []
    for measure, (title, unit, _, _, _, least) in MEASURES.items():
        lines += [f"## {title}, {unit} (from {least} on)", ""]
        shown = [name for name in scenarios if any(effects[arm.name, name, measure].spelled() for arm in arms)]
        if shown:
            lines += heading(["without", *shown])
        for arm in arms:
            cells = [effects[arm.name, name, measure].text() for name in shown]
            if any(cell != NOTHING for cell in cells):
                lines.append(row([arm.name, *cells]))
        silent = [arm.name for arm in arms
                  if not any(effects[arm.name, name, measure].spelled() for name in scenarios)]
        if silent:
            lines += ["", "Nothing shown: " + ", ".join(silent) + "."]
        lines.append("")
    return "\n".join(lines)


def brief(arms, scenarios, effects, most=2):
    """One row for every arm: of each measure the largest effects; without any, the test that holds the arm."""
    lines = heading(["arm", "lines", "off", *(f"{title}, {unit}" for title, unit, *_ in MEASURES.values())])
    for arm in arms:
        cells = []
        for measure in MEASURES:
            found = [(effects[arm.name, name, measure], name) for name in scenarios]
            found = sorted((pair for pair in found if pair[0].spelled()), key=lambda pair: -abs(pair[0].mean))
            cells.append("; ".join(f"{name} {change.text()}" for change, name in found[:most]) or NOTHING)
        silent = all(cell == NOTHING for cell in cells)
        off = f'{arm.off}; held by "{arm.held}"' if silent and arm.held else arm.off
        lines.append(row([arm.name, ", ".join(map(str, arm.lines)), off, *cells]))
    return "\n".join(lines) + "\n"
