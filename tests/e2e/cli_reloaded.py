#!/usr/bin/env python3
"""Libraries that come one after the other to where the one before has been: what is told by address
is not mixed up."""
import json
import os
import re
import shutil
import subprocess

from e2e import ANYPERF, ENV, Skip, main, run, scratch

ONE, OTHER = os.environ["E2E_ONE"], os.environ["E2E_OTHER"]
# The second one is asked for twice as much.
PROGRAM = [os.environ["E2E_RELOADING"], ONE, OTHER]


def exact_profile(*program):
    with scratch() as d:
        r = run("record", "--exact", "-o", f"{d}/a", "--", *program)
        assert r.status == 0, r
        rows = run("report", "-s", "dso,sym", "-i", f"{d}/a").out
    shares = {sym: (float(share), dso) for share, dso, sym in
              re.findall(r"([\d.]+)% .*(libreloaded-\w+\.so) .*(reload_o\w+)\n", rows)}
    assert shares["reload_one"][1] == "libreloaded-one.so", rows
    assert shares["reload_other"][1] == "libreloaded-other.so", rows
    assert 1.9 < shares["reload_other"][0] / shares["reload_one"][0] < 2.1, rows


def test_exact_profiles():
    exact_profile(*PROGRAM)


def need_no_randomization():
    if subprocess.run(["setarch", "-R", "true"], capture_output=True, check=False).returncode:
        raise Skip("addresses vary here")


def test_the_same_addresses():
    """Without randomization they have one place, as natively."""
    need_no_randomization()
    exact_profile("setarch", "-R", *PROGRAM)


def test_one_name():
    """A library that is built anew while its program runs."""
    need_no_randomization()
    with scratch() as d:
        libraries = [shutil.copy(path, d) for path in PROGRAM[1:]]
        r = run("record", "--exact", "-o", f"{d}/a", "--", "setarch", "-R", PROGRAM[0], *libraries,
                env={"AS": f"{d}/hot.so"})
        assert r.status == 0, r
        r = run("report", "-s", "dso,sym", "-i", f"{d}/a", env={"HOME": d})
    assert "hot.so' was built anew since it was recorded" in r.err, r
    named = sum(map(float, re.findall(r"([\d.]+)% .*hot.so .*reload_other\n", r.out)))
    old = sum(map(float, re.findall(r"([\d.]+)% .*hot.so .*\] 0x\w+\n", r.out)))
    assert 1.9 < named / old < 2.1 and "reload_one" not in r.out, r


def test_functions_that_changed():
    need_no_randomization()
    r = run("compare", "--counts-only", "-e", "instructions:u", "--by=symbol", "--format=json", "--",
            *PROGRAM, "--vs", *PROGRAM[:2])
    assert r.status == 0, r
    changes = {s["symbol"]: s["change"] for s in json.loads(r.out)["comparisons"][0]["symbols"]}
    # What the first library has done is the same.
    assert "reload_one" not in changes and changes["reload_other"] < -30000, changes


def test_callgrind():
    with scratch() as d:
        out = f"{d}/out"
        p = subprocess.run([ANYPERF, "valgrind", "--tool=callgrind", f"--callgrind-out-file={out}",
                            "--compress-strings=no", "--compress-pos=no", *PROGRAM],
                           capture_output=True, text=True, check=False, timeout=60, env=ENV)
        assert p.returncode == 0, p
        counts, fn, called = {}, None, False
        with open(out, encoding="utf-8") as f:
            for line in f:
                if line.startswith("fn="):
                    fn = line[3:].strip()
                if re.match(r"\d+ \d+$", line) and fn.startswith("reload_o") and not called:
                    counts[fn] = counts.get(fn, 0) + int(line.split()[1])
                called = line.startswith("calls=")
    assert counts.keys() == {"reload_one", "reload_other"}, counts
    assert 1.9 < counts["reload_other"] / counts["reload_one"] < 2.1, counts


if __name__ == "__main__":
    main(globals())
