#!/usr/bin/env python3
"""What threads and processes cost under `anyperf run` beyond what they cost natively, as far as it
is the same each time: system calls, page faults, memory and addresses."""
import os
import subprocess

from e2e import ANYPERF, ENV, main

MADE = os.environ["E2E_MADE"]
HERE = ANYPERF, "run", "--"


def faults(*under, live, way, count):
    """Page faults of one of @count."""
    r = subprocess.run([*under, MADE, str(live), way, str(count)], capture_output=True, text=True,
                       env=ENV, timeout=120, check=False)
    assert r.returncode == 0, r
    return float(r.stdout.split()[2])


def test_forks_of_threads():
    for live in 0, 20:
        faults(*HERE, live=live, way="nested", count=5)
        faults(ANYPERF, "run", "--verify", "--", live=live, way="nested", count=2)


if __name__ == "__main__":
    main(globals())
