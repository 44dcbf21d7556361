"""Runs a small experiment, opens its report in a headless Chromium and looks at it.

usage: report_test.py PACELINE TEST_EXPERIMENT_LIVE     exit: 0 good, 1 a check failed, 77 skipped (no browser)
"""

import collections
import html.parser
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

import browser
import png

EXPERIMENT = """schema = 1
name = "look"
seed = 3
repetitions = 3
[[arm]]
name = "dcqcn"
algorithm = "dcqcn"
[[arm]]
name = "cadence"
algorithm = "cadence"
[[arm]]
name = "fixed-rate"
algorithm = "fixed"
[common.fabric]
hosts = 6
[[scenario]]
name = "incast-5"
fabric.ecn = { kmin = "20kB", kmax = "80kB" }
workload = { kind = "incast", fan_in = 5, message_bytes = "200kB", start_jitter = "1us" }
[[scenario]]
name = "open"
workload = { kind = "open_loop", cdf = "websearch", load = 0.5, window = "300us" }
"""

UNITS = {"": 1, "%": 0.01, "pp": 0.01, "us": 1, "ms": 1e3, "s": 1e6, "B": 1, "KB": 1e3, "MB": 1e6,
         "GB": 1e9, "Gb/s": 1, "pkt": 1}
SCALE = 0.3  # of the picture that pixels are counted in
VALUE = re.compile(r"^(x?)([+-]?\d+(?:\.(\d+))?(?:e[+-]\d+)?) ?(.*)$")


def paceline(*words, cwd):
    return subprocess.run([PACELINE, *words], cwd=cwd, check=True, capture_output=True,
                          text=True).stdout


def read_off(text):
    """The value that a cell states, and by how much rounding may have moved it."""
    factor, number, decimals, unit = VALUE.match(text).groups()
    value = float(number) * UNITS[unit]
    off = 0.5 * 10.0 ** -len(decimals or "") * UNITS[unit]
    if "e" in number:
        off = abs(value) * 0.05
    if factor:
        value -= 1
    return value, off * (1 + 1e-6) + 1e-15


class Links(html.parser.HTMLParser):
    """Every attribute through which a page could ask for something."""

    FETCHING = {"src", "href", "srcset", "action", "poster", "data", "formaction", "background",
                "xlink:href", "ping"}

    def __init__(self):
        super().__init__()
        self.found, self.tags = [], set()

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.found += [value for name, value in attributes if name in self.FETCHING]


class Report(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="paceline-report-")
        here = cls.folder.name
        with open(os.path.join(here, "look.toml"), "w") as file:
            file.write(EXPERIMENT)
        out = paceline("ab", "look.toml", "--jobs", "2", cwd=here)
        cls.hash = re.search(r"content hash ([0-9a-f]{16})", out).group(1)
        with open(os.path.join(here, "look.results.json")) as file:
            cls.text = file.read()
        with open(os.path.join(here, "look.report.html")) as file:
            cls.page = file.read()
        cls.results = json.loads(cls.text)
        cls.charts = "Charts were left out" not in cls.page
        cls.browser = browser.Browser(BROWSER)
        cls.browser.call("Emulation.setDeviceMetricsOverride", width=1200, height=900,
                         deviceScaleFactor=1, mobile=False)
        cls.browser.open(os.path.join(here, "look.report.html"))
        cls.loading = list(cls.browser.events)

    @classmethod
    def tearDownClass(cls):
        cls.browser.__exit__()
        cls.folder.cleanup()

    def js(self, expression):
        return self.browser.evaluate(expression)

    def while_loading(self, method):
        return [e["params"] for e in self.loading if e.get("method") == method]

    def figures(self):
        return self.js("Array.from(document.querySelectorAll('figure[data-chart]'), f => f.id)")

    def test_nothing_complains(self):
        self.assertEqual(self.js("document.documentElement.getAttribute('data-drawn')"), "yes")
        self.assertEqual(self.while_loading("Runtime.exceptionThrown"), [])
        self.assertEqual(self.while_loading("Runtime.consoleAPICalled"), [])
        self.assertEqual(self.while_loading("Log.entryAdded"), [])

    def test_asks_for_nothing_but_itself(self):
        asked = [e["request"]["url"] for e in self.while_loading("Network.requestWillBeSent")]
        self.assertEqual(len(asked), 1, asked)
        self.assertTrue(asked[0].endswith("/look.report.html"), asked)
        links = Links()
        links.feed(self.page)
        self.assertTrue(links.found)
        for link in links.found:
            self.assertRegex(link, r"^(#|data:)")
        self.assertFalse(links.tags & {"iframe", "object", "embed", "img", "base"})
        # Links that the script makes are data, too.
        for link in self.js("Array.from(document.links, a => a.getAttribute('href'))"):
            self.assertRegex(link, r"^(#|data:)")
        # And were something to ask for more, the page's own policy would refuse.
        for ask in ("document.body.appendChild(document.createElement('img')).src = u",
                    "fetch(u).catch(function () {})"):
            refused = self.browser.evaluate("""new Promise(function (say) {
                var u = 'http://127.0.0.1:9/x';
                document.addEventListener('securitypolicyviolation',
                    function (e) { say(e.blockedURI); }, { once: true });
                """ + ask + "; setTimeout(function () { say('not refused'); }, 5000); })")
            self.assertEqual(refused, "http://127.0.0.1:9/x")

    def test_every_chart_is_drawn(self):
        figures = self.figures()
        self.assertEqual(len(figures), 1 + 2 * 5 + 2)
        shot = png.pixels(self.browser.screenshot(SCALE)) if self.charts else None
        for figure in figures:
            with self.subTest(figure=figure):
                one = f"document.getElementById('{figure}')"
                self.assertEqual(self.js(one + ".querySelectorAll('svg').length"), int(self.charts))
                self.assertRegex(self.js(one + ".querySelector('.command code').textContent"),
                                 r"^paceline (ab|emulate) look\.toml ")
                self.assertTrue(self.js(one + ".querySelector('a.data').href.length") > 60)
                if not self.charts:
                    continue
                drawn = self.js(one + ".querySelector('svg').outerHTML")
                self.assertNotRegex(drawn, r"NaN|undefined|Infinity|null")
                self.assertGreater(len(self.js(one + ".querySelector('svg').getAttribute('aria-label')")), 30)
                x, y, w, h = self.js(
                    "(function (r) { return [r.x + scrollX, r.y + scrollY, r.width, r.height]; })("
                    + one + ".querySelector('svg').getBoundingClientRect())")
                self.assertGreater(w, 400)
                rows = shot[int(y * SCALE):int((y + h) * SCALE)]
                dots = [p for row in rows for p in row[int(x * SCALE):int((x + w) * SCALE)]]
                paper = collections.Counter(dots).most_common(1)[0][0]
                inked = [p for p in dots if max(abs(a - b) for a, b in zip(p, paper)) > 40]
                coloured = [p for p in dots if max(p) - min(p) > 40]
                self.assertGreater(len(inked), 0.004 * len(dots))
                self.assertLess(len(inked), 0.6 * len(dots))
                if "effects" not in figure:  # those are grey where no difference was shown
                    self.assertGreater(len(coloured), 8)

    def test_tables_state_the_numbers_of_the_file(self):
        rows = {}
        for row in self.js("""Array.from(document.querySelectorAll('table.all tr[data-metric]'), r => ({
              key: [r.dataset.scenario, r.dataset.arm, r.dataset.metric].join('|'),
              effect: r.dataset.effect, low: r.dataset.low, high: r.dataset.high,
              values: Array.from(r.querySelectorAll('[data-value]'), c => c.dataset.value),
              cells: Array.from(r.querySelectorAll('td'), c => c.textContent)}))"""):
            rows[row["key"]] = row
        number = lambda text: None if text == "null" else float(text)
        self.assertEqual(len(rows), len(self.results["effects"]))
        for effect in self.results["effects"]:
            key = "|".join((effect["scenario"], effect["arm"], effect["metric"]))
            with self.subTest(key=key):
                row = rows[key]
                self.assertEqual(number(row["effect"]), effect["effect"])
                self.assertEqual([number(row["low"]), number(row["high"])], effect["interval"])
                self.assertEqual([number(v) for v in row["values"]],
                                 [effect["baseline_mean"], effect["arm_mean"], effect["p_adjusted"]])
                mark, baseline, arm, shown, interval, p, verdict = row["cells"]
                self.assertEqual(mark, {"primary": "P", "guardrail": "G"}.get(effect["role"], ""))
                self.assertEqual(verdict, effect["verdict"])
                for text, value in ((baseline, effect["baseline_mean"]), (arm, effect["arm_mean"]),
                                    (shown, effect["effect"])):
                    if value is None:
                        self.assertTrue(text.startswith("-"), text)
                        continue
                    stated, off = read_off(text)
                    self.assertLessEqual(abs(stated - value), off, f"{text} for {value}")

    def test_every_table_states_the_same(self):
        effects = {(e["scenario"], e["arm"], e["metric"]): e for e in self.results["effects"]}
        effects.update({(e["label"], e["arm"], e["metric"]): e for e in self.results["summaries"]})
        rows = self.js("""Array.from(document.querySelectorAll('tr[data-effect]'), r => [
            r.dataset.scenario, r.dataset.arm, r.dataset.metric, r.dataset.effect,
            r.querySelector('.effect').textContent, r.querySelector('.verdict').textContent])""")
        self.assertGreater(len(rows), len(effects))
        for scenario, arm, metric, stated, text, verdict in rows:
            effect = effects[scenario, arm, metric]
            self.assertEqual(verdict, effect["verdict"])
            if effect["effect"] is None:
                self.assertEqual((stated, text), ("null", "-"))
                continue
            self.assertEqual(float(stated), effect["effect"])
            value, off = read_off(text)
            self.assertLessEqual(abs(value - effect["effect"]), off, (scenario, arm, metric, text))

    def test_header_and_words(self):
        header = self.js("document.querySelector('header').textContent")
        self.assertIn(self.hash, header)
        self.assertIn("cadence, fixed-rate against dcqcn (baseline)", header)
        words = self.js("Array.from(document.querySelectorAll('.verdicts li'), l => l.textContent)")
        self.assertEqual(len(words), 4)
        for line, effect in zip(words, [e for e in self.results["effects"] if e["role"] == "primary"]):
            self.assertTrue(line.startswith(effect["scenario"] + ": "), line)
            self.assertIn(effect["arm"], line)

    def test_holds_the_results_file(self):
        inside = self.js("document.getElementById('results').textContent")
        self.assertEqual(inside.strip(), self.text.strip())
        link = self.js("decodeURIComponent(document.querySelector('#downloads a').href.split(',')"
                       ".slice(1).join(','))")
        self.assertEqual(link, self.text)

    def test_dots_stand_where_the_effects_say(self):
        if not self.charts:
            self.skipTest("built without D3")
        dots = self.js("""Array.from(document.querySelectorAll('#overview-effects .mark'), g => [
            g.querySelector('title').textContent,
            g.querySelector('circle.dot') ? Number(g.querySelector('circle.dot').getAttribute('cx')) : null])""")
        primary = [e for e in self.results["effects"]
                   if e["role"] == "primary" and e["scale"] == "ratio" and e["effect"] is not None]
        dots = [d for d in dots if d[1] is not None]
        self.assertEqual(len(dots), len(primary))
        better = {m["name"]: m["better"] for m in self.results["metrics"]}
        factors = [1 + e["effect"] if better[e["metric"]] == "higher" else 1 / (1 + e["effect"])
                   for e in primary]
        order = sorted(range(len(dots)), key=lambda i: factors[i])
        self.assertEqual(order, sorted(range(len(dots)), key=lambda i: dots[i][1]))
        one = float(self.js("document.querySelector('#overview-effects .one').getAttribute('x1')"))
        for dot, factor in zip(dots, factors):
            self.assertEqual(dot[1] > one, factor > 1, dot)

    def test_lines_over_time_have_every_interval(self):
        if not self.charts:
            self.skipTest("built without D3")
        arm = self.results["detail"]["arms"][0]["series"]
        steps = self.js("document.querySelector('#scenario-1-time path.fine.arm-0:not(.thin)')"
                        ".getAttribute('d').split('H').length - 1")
        self.assertEqual(steps, len(arm["deepest_queue_bytes"]))
        self.assertEqual(sum(arm["delivered_bytes"]), 5 * 200000)
        titles = self.js("Array.from(document.querySelectorAll('#scenario-1-time .panel-title'),"
                         "t => t.textContent)")
        self.assertRegex(titles[0], "^Queue")
        self.assertRegex(titles[1], "^Goodput")

    def test_reads_with_the_keyboard_and_in_the_dark(self):
        if not self.charts:
            self.skipTest("built without D3")
        self.js("document.querySelector('#scenario-2-time svg').focus(); 0")
        read = "document.querySelector('#scenario-2-time .reading-text').textContent"
        self.assertEqual(self.js(read), "")
        self.browser.call("Input.dispatchKeyEvent", type="keyDown", key="ArrowRight",
                          windowsVirtualKeyCode=39)
        self.assertRegex(self.js(read), r"us: queue dcqcn .*, cadence .*; goodput")
        paper = "getComputedStyle(document.body).backgroundColor"
        self.assertEqual(self.js(paper), "rgb(255, 255, 255)")
        dark = [{"name": "prefers-color-scheme", "value": "dark"}]
        self.browser.call("Emulation.setEmulatedMedia", features=dark)
        self.assertEqual(self.js(paper), "rgb(20, 23, 27)")
        self.browser.call("Emulation.setEmulatedMedia", features=[])


CUT = """Array.from(document.querySelectorAll('.scroll'),
    s => s.scrollWidth > s.clientWidth ? s.querySelector('thead').textContent : '').filter(t => t)"""


class Widths(unittest.TestCase):
    """No table is wider than the window that people have on half a screen."""

    def open(self, folder, name):
        page = browser.Browser(BROWSER)
        self.addCleanup(page.__exit__)
        page.call("Emulation.setDeviceMetricsOverride", width=1100, height=900, deviceScaleFactor=1,
                  mobile=False)
        page.open(os.path.join(folder, name))
        return page

    def check(self, page):
        self.assertEqual(page.evaluate(CUT), [])
        self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), 1100)

    def test_page_of_an_experiment_in_virtual_time(self):
        with tempfile.TemporaryDirectory(prefix="paceline-report-") as folder:
            with open(os.path.join(folder, "look.toml"), "w") as file:
                file.write(EXPERIMENT)
            paceline("ab", "look.toml", "--jobs", "2", "-q", cwd=folder)
            self.check(self.open(folder, "look.report.html"))

    def test_page_of_a_live_experiment(self):
        with tempfile.TemporaryDirectory(prefix="paceline-report-") as folder:
            subprocess.run([LIVE, "figures are in the unit of their metric, and nothing is nan"],
                           env=dict(os.environ, PACELINE_WRITE_PAGE=os.path.join(folder, "live.html")),
                           check=True, capture_output=True)
            self.check(self.open(folder, "live.html"))


if __name__ == "__main__":
    PACELINE = os.path.abspath(sys.argv.pop(1))
    LIVE = os.path.abspath(sys.argv.pop(1))
    BROWSER = browser.find()
    if BROWSER is None:
        print("skipped: no browser; one of", ", ".join(browser.NAMES), "(Debian: chromium-headless-shell)")
        sys.exit(77)
    unittest.main()
