"""All of qperf's RDMA tests: the long part of it."""

from qperf_cases import ALL, NEEDS, qperf  # noqa: F401

CASES = [qperf(f"all {len(ALL)} tests", ALL)]
