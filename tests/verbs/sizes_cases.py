"""perftest over all sizes, from 2 bytes to 8 MiB: the long part of it."""

from perftest_cases import BANDWIDTH, LATENCY, NEEDS, perftest, sizes  # noqa: F401

CASES = [perftest(p, "-a", count="5", check=sizes(23), seconds=60) for p in BANDWIDTH]
CASES += [perftest(p, "-a", count="5", check=sizes(22), seconds=60) for p in LATENCY]
