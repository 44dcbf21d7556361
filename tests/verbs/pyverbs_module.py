"""Runs test modules of pyverbs and tells about each test on a line of JSON of its own, so that the
test that ends the whole program, or never ends, is known by name.

  pyverbs_module.py RESULTS TEST... --dev NAME --port N --gid N     (in the folder of the tests)

TEST: "tests.test_mr" or "tests.test_mr.MRTest.test_dereg_mr"; "-TEST" leaves one out.
"""

import json
import os
import sys
import unittest


def first_line(text):
    return " ".join(str(text).split())[:300]


class Result(unittest.TestResult):
    def __init__(self, file):
        super().__init__()
        self.file = file

    def tell(self, test, outcome, reason=""):
        name = test.id() if isinstance(test, unittest.TestCase) else str(test)
        self.file.write(json.dumps({"test": name, "outcome": outcome,
                                    "reason": first_line(reason)}) + "\n")
        self.file.flush()

    def startTest(self, test):
        super().startTest(test)
        self.tell(test, "running")

    def addSuccess(self, test):
        self.tell(test, "pass")

    def addSkip(self, test, reason):
        self.tell(test, "skip", reason)

    def addFailure(self, test, err):
        self.tell(test, "fail", f"{err[0].__name__}: {err[1]}")

    addError = addFailure

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.tell(test, "fail", f"{err[0].__name__}: {err[1]}")


def cases_of(suite):
    for entry in suite:
        if isinstance(entry, unittest.TestSuite):
            yield from cases_of(entry)
        else:
            yield entry


def main():
    options = next((i for i, a in enumerate(sys.argv) if a.startswith("--")), len(sys.argv))
    results, wanted = sys.argv[1], sys.argv[2:options]
    here = os.getcwd()
    sys.path.insert(0, os.path.dirname(here))
    sys.path.insert(0, here)  # the tests ask for "args_parser" and for "tests.base" alike
    from args_parser import parser
    sys.argv[1:] = sys.argv[options:]
    parser.parse_args()
    # The package imports every test it has; a package of the same folder without that is enough.
    package = type(sys)("tests")
    package.__path__ = [here]
    sys.modules["tests"] = package
    if "tests.test_rdmacm" in wanted:
        from tests import base
        # They look for the address at an interface, which an emulated NIC has not.
        base.RDMATestCase._get_ip_mac = (
            lambda self, dev, port, gid: self.args.append([dev, port, gid, "10.0.0.1", None]))
    left_out = {name[1:] for name in wanted if name.startswith("-")}
    suite = unittest.defaultTestLoader.loadTestsFromNames(
        [name for name in wanted if not name.startswith("-")])
    chosen = unittest.TestSuite(c for c in cases_of(suite) if c.id() not in left_out)
    with open(results, "a", encoding="utf-8") as file:
        chosen.run(Result(file))


if __name__ == "__main__":
    main()
