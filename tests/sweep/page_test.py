"""Opens the page of a sweep in a headless Chromium and uses it: panels show what the results say, have
labels and units, and the page asks nobody for anything. The rows of runs agree with the means.

usage: page_test.py PAGE RESULTS RUNS     exit: 0 good, 1 a check failed, 77 skipped (no browser)
"""

import csv
import json
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "report"))
import browser  # noqa: E402


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with open(RESULTS) as file:
            cls.results = json.load(file)
        with open(RUNS) as file:
            cls.runs = list(csv.DictReader(file))
        with open(PAGE) as file:
            cls.charts = "Charts were left out" not in file.read()
        cls.browser = browser.Browser(BROWSER)
        cls.browser.call("Emulation.setDeviceMetricsOverride", width=1360, height=900,
                         deviceScaleFactor=1, mobile=False)
        cls.browser.open(PAGE)
        cls.loading = list(cls.browser.events)

    @classmethod
    def tearDownClass(cls):
        cls.browser.__exit__()

    def js(self, expression):
        return self.browser.evaluate(expression)

    def panels(self):
        return self.js("""Array.from(document.querySelectorAll('#multiples figure'), f => ({
            title: f.querySelector('.panel-title').textContent,
            x: f.querySelector('.axis-title').textContent,
            ticks: Array.from(f.querySelectorAll('.tick'), t => t.textContent),
            dots: f.querySelectorAll('circle').length,
            lines: f.querySelectorAll('path.line').length}))""")

    def choose(self, select, value):
        self.js(f"""(() => {{ const s = document.getElementById('{select}'); s.value = '{value}';
            s.dispatchEvent(new Event('change')); }})()""")

    def test_nothing_complains_and_nobody_is_asked(self):
        self.assertEqual(self.js("document.documentElement.getAttribute('data-drawn')"), "yes")
        for method in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"):
            self.assertEqual([e for e in self.loading if e.get("method") == method], [])
        asked = [e for e in self.loading if e.get("method") == "Network.requestWillBeSent"]
        self.assertEqual(len(asked), 1)

    def test_a_panel_for_each_metric_with_every_point(self):
        if not self.charts:
            self.skipTest("built without D3")
        self.choose("x-key", "fabric.rate")
        self.choose("by-key", "cc.algorithm")
        headlines = [m for m in self.results["metrics"] if m["headline"]]
        panels = self.panels()
        self.assertEqual(len(panels), len(headlines))
        for panel, metric in zip(panels, headlines):
            there = sum(metric["name"] in p["metrics"] for p in self.results["points"])
            self.assertTrue(panel["title"].startswith(metric["label"]), panel)
            self.assertIn("is better", panel["title"])
            self.assertTrue(panel["x"].startswith("fabric.rate"), panel)
            self.assertIn("100Gb/s", panel["ticks"])
            self.assertEqual(panel["dots"], there)
            self.assertEqual(panel["lines"], 2)
        self.choose("x-key", "cc.algorithm")
        self.choose("by-key", "")
        for panel in self.panels():
            self.assertIn("dctcp", panel["ticks"])
            self.assertEqual(panel["lines"], 1)

    def test_the_table_has_every_point(self):
        rows = self.js("document.querySelectorAll('#points tbody tr').length")
        self.assertEqual(rows, len(self.results["points"]))

    def test_means_are_those_of_the_runs(self):
        self.assertEqual(len(self.runs), len(self.results["points"]) * len(self.results["seeds"]))
        for point in self.results["points"]:
            mine = [r for r in self.runs if all(r[k] == v for k, v in point["settings"].items())]
            self.assertEqual(len(mine), len(self.results["seeds"]))
            for name, (mean, low, high) in point["metrics"].items():
                values = [float(r[name]) for r in mine if r[name] != ""]
                self.assertAlmostEqual(mean, sum(values) / len(values), delta=abs(mean) * 1e-5)
                if low is not None:
                    self.assertLessEqual(low, mean)
                    self.assertGreaterEqual(high, mean)


if __name__ == "__main__":
    BROWSER = browser.find()
    if BROWSER is None:
        print("skipped: there is no Chromium (Debian: chromium-headless-shell)")
        sys.exit(77)
    PAGE, RESULTS, RUNS = (os.path.abspath(path) for path in sys.argv[1:4])
    del sys.argv[1:]
    unittest.main()
