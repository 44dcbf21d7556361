"""Opens the page of a league in a headless Chromium and uses it: what it shows is what the results
say, it asks nobody for anything, and it works from the keyboard.

usage: page_test.py PAGE RESULTS     exit: 0 good, 1 a check failed, 77 skipped (no browser)
"""

import json
import os
import re
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "report"))
import browser  # noqa: E402


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with open(RESULTS) as file:
            cls.results = json.load(file)
        with open(PAGE) as file:
            cls.page = file.read()
        cls.charts = "Charts over time were left out" not in cls.page
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

    def cell(self, scenario, entry):
        return next(c for c in self.results["cells"]
                    if c["scenario"] == scenario and c["entry"] == entry)

    def test_nothing_complains_and_nobody_is_asked(self):
        self.assertEqual(self.js("document.documentElement.getAttribute('data-drawn')"), "yes")
        for method in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"):
            self.assertEqual([e for e in self.loading if e.get("method") == method], [])
        asked = [e["params"]["request"]["url"] for e in self.loading
                 if e.get("method") == "Network.requestWillBeSent"]
        self.assertEqual(len(asked), 1, asked)
        for link in self.js("Array.from(document.links, a => a.getAttribute('href'))"):
            self.assertRegex(link, r"^(#|data:)")

    def test_map_shows_every_cell_and_frames_the_undominated(self):
        cells = self.js("""Array.from(document.querySelectorAll('table.heat button'),
            b => [b.getAttribute('aria-label'), b.className, b.textContent])""")
        self.assertEqual(len(cells), len(self.results["cells"]))
        for label, name, text in cells:
            entry, scenario = re.match(r"(\S+) in (\S+):", label).groups()
            cell = self.cell(scenario, entry)
            self.assertEqual("front" in name.split(), cell["rank"] == 1, label)
            shown = float(text.split()[0]) / 100
            self.assertAlmostEqual(shown, cell["measures"]["efficiency"]["mean"], delta=0.0006)

    def test_colours_can_be_done_without(self):
        backgrounds = """new Set(Array.from(document.querySelectorAll('table.heat button'),
            b => getComputedStyle(b).backgroundColor)).size"""
        self.assertGreater(self.js(backgrounds), 5)
        self.js("document.getElementById('plain').click()")
        self.assertEqual(self.js(backgrounds), 1)
        self.js("document.getElementById('plain').click()")

    def test_keyboard_reaches_every_cell(self):
        stops = self.js("document.querySelectorAll('table.heat button[tabindex=\"0\"]').length")
        self.assertEqual(stops, 1)  # one stop of Tab, then arrows
        self.js("document.querySelector('table.heat button[tabindex=\"0\"]').focus()")
        first = self.js("document.activeElement.getAttribute('aria-label')")
        for key in ("ArrowRight", "ArrowDown"):
            self.js(f"document.activeElement.dispatchEvent(new KeyboardEvent('keydown', "
                    f"{{key: '{key}', bubbles: true}}))")
        second = self.js("document.activeElement.getAttribute('aria-label')")
        self.assertNotEqual(first, second)
        self.assertEqual(self.js("document.getElementById('reading').textContent"), second)
        self.js("document.activeElement.click()")
        entry, scenario = re.match(r"(\S+) in (\S+):", second).groups()
        self.assertEqual(self.js("document.getElementById('duel-scenario').value"), scenario)
        self.assertEqual(self.js("document.getElementById('duel-b').value"), entry)
        commands = self.js("Array.from(document.querySelectorAll('#duel-commands code'), "
                           "c => c.textContent)")
        self.assertIn(self.cell(scenario, entry)["command"], commands)

    def test_courses_are_drawn(self):
        if not self.charts:
            self.skipTest("built without the chart library")
        self.assertGreaterEqual(self.js("document.querySelectorAll('#duel-chart path.line').length"), 4)

    def test_every_scenario_has_its_text_and_its_table(self):
        self.assertEqual(self.js("document.querySelectorAll('section.scenario').length"),
                         len(self.results["scenarios"]))
        for i, scenario in enumerate(self.results["scenarios"]):
            text = self.js(f"document.querySelector('#scenario-{i} pre').textContent")
            self.assertEqual(text.strip(), scenario["text"].strip())
            rows = self.js(f"document.querySelectorAll('#scenario-{i} tbody tr').length")
            self.assertEqual(rows, len(self.results["entries"]))

    def test_every_entry_says_what_tuning_it_had(self):
        for i, entry in enumerate(self.results["entries"]):
            row = self.js(f"document.getElementById('entry-{i}').textContent")
            for part in (entry["name"], entry["profile"], entry["effort"]):
                self.assertIn(part, row)


if __name__ == "__main__":
    PAGE, RESULTS = sys.argv[1:3]
    BROWSER = browser.find()
    if BROWSER is None:
        print("skipped: no browser (Debian: chromium-headless-shell)")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
