#!/usr/bin/env python3
"""Tests of book.py itself, on miniature books."""

import pathlib
import tempfile
import unittest

import book

BUDGET = {"README.md": 20, "docs/a.md": 10}
GOOD = {"README.md": "# Top\n[a](docs/a.md#two-words) [up](#top)\n", "docs/a.md": "# Two words\n\n| `a` | b |\n"}


def problems(changes):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for path, text in (GOOD | changes).items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="utf-8")
        return list(book.problems(root, BUDGET))


class Book(unittest.TestCase):
    def test_a_good_book(self):
        self.assertEqual(problems({}), [])

    def test_the_length_of_readme(self):
        self.assertEqual(problems({"README.md": "\n" * 150}), [])
        self.assertEqual(problems({"README.md": "\n" * 151}), ["README.md: 151 lines; allowed are 150"])

    def test_words_of_a_page(self):
        self.assertEqual(problems({"docs/a.md": "# Two words\n" + "x " * 7}), [])
        self.assertEqual(problems({"docs/a.md": "# Two words\n" + "| x " * 4}), ["docs/a.md: 11 words; allowed are 10"])

    def test_a_page_without_a_budget(self):
        self.assertEqual(problems({"docs/b.md": "x\n"}),
                         ["docs/b.md: the page has no budget of words in tests/architecture/book.py"])

    def test_algorithms_have_one_budget(self):
        self.assertEqual(problems({"docs/algorithms/b.md": "x " * 600}), [])
        self.assertEqual(problems({"docs/algorithms/b.md": "x " * 601}),
                         ["docs/algorithms/b.md: 601 words; allowed are 600"])

    def test_too_many_pages(self):
        found = problems({f"docs/{number}.md": "" for number in range(18)})
        self.assertIn("docs: 19 pages; allowed are 18 beside those of algorithms", found)

    def test_words_in_all(self):
        at_limit = {f"docs/algorithms/{number}.md": "x " * 600 for number in range(66)} | {
            "docs/algorithms/last.md": "x " * (400 - sum(map(book.words, GOOD.values())))}
        self.assertEqual(problems(at_limit), [])
        self.assertEqual(problems(at_limit | {"docs/a.md": GOOD["docs/a.md"] + "x"}),
                         ["README.md and docs: 40001 words; allowed are 40000"])

    def test_links(self):
        self.assertEqual(problems({"docs/c/d.md": "x\n\n[x](../gone.md)\n"}),
                         ["docs/c/d.md:3: link to ../gone.md: there is no such file"])
        self.assertEqual(problems({"docs/c/d.md": "[x](../a.md#three)\n"}),
                         ["docs/c/d.md:1: link to ../a.md#three: docs/a.md has no such heading"])
        self.assertEqual(problems({"docs/c/d.md": "`[x](gone)` [y](https://example.com/x)\n```\n[z](gone)\n```\n"}), [])

    def test_a_link_from_anywhere(self):
        self.assertEqual(len(problems({"tests/README.md": "[x](gone.md)\n"})), 1)
        self.assertEqual(problems({"build/x.md": "[x](gone.md)\n"}), [])

    def test_repeated_headings(self):
        self.assertEqual(problems({"docs/c/d.md": "# X\n# X\n[x](#x-1)\n"}), [])


if __name__ == "__main__":
    unittest.main()
