#!/usr/bin/env python3
"""anyperf record on the virtual PMU, where the kernel has none: as many samples as periods, in all
tasks of the command, in one file that perf reads as well."""
import json
import os
import re
import shutil
import subprocess
from collections import Counter

from e2e import ENV, Skip, main, run, scratch

FIXED = os.environ["E2E_FIXED"]
SPIN = os.environ["E2E_SPIN"]


def record(path, *args, status=0):
    r = run("record", "-o", path, *args)
    assert r.status == status, r
    if "by the virtual PMU" not in r.err:
        raise Skip("the kernel has a PMU")
    return r


def samples(r):
    return int(re.search(r"anyperf record: (\d+) samples, [\d.]+ MB", r.err)[1])


def script(path, fields):
    r = run("script", "-i", path, "-F", fields)
    assert r.status == 0, r
    return r.out.split("\n")[:-1]


def count():
    r = run("stat", "-j", "--pmu=virtual", "-e", "instructions:u", "--", FIXED)
    assert r.status == 0, r
    return json.loads(r.err.splitlines()[0])["counts"][0]["value"]


def test_number_of_samples():
    n = count()
    with scratch() as d:
        for period in (n, n // 3, n // 100, 101, n + 1):
            r = record(f"{d}/a", "-e", "instructions:u", "-c", str(period), "--", FIXED)
            assert samples(r) == n // period == len(script(f"{d}/a", "ip")), (period, n, r)
            assert "LOST" not in r.err, r
            assert ("NO SAMPLES" in r.err) == (period > n), r


def test_all_tasks_are_in_one_stream():
    n = count()
    with scratch() as d:
        command = f"{FIXED}; {FIXED} & {FIXED}; wait"
        r = record(f"{d}/a", "-e", "instructions:u", "-c", "101", "--", "sh", "-c", command)
        of = Counter(line.split()[1] for line in script(f"{d}/a", "comm,pid")
                     if line.split()[0] == "fixed")
        # What the shell's child executed before it became FIXED counts into the first period.
        assert len(of) == 3 and all(n // 101 <= k <= n // 101 + 1 for k in of.values()), (of, r)


def test_buffers_are_emptied_in_time():
    """Many times what fits into a buffer: wakeups come."""
    with scratch() as d:
        r = record(f"{d}/a", "-m", "64", "-e", "instructions:u", "-c", "20011", "--", SPIN, "1500")
        assert "LOST" not in r.err and samples(r) > 20000, r


def test_the_default_event():
    with scratch() as d:
        r = record(f"{d}/a", "-g", "--", SPIN, "300")
        assert re.search("samples instructions:u, by the virtual PMU: .*PMU", r.err), r
        report = run("report", "-i", f"{d}/a")
        assert report.status == 0 and re.search(r"\d\d\.\d\d% .* spin +\[\.\] burn", report.out), \
            report
        if shutil.which("perf"):
            p = subprocess.run(["perf", "report", "--stdio", "--no-children", "-i", f"{d}/a"],
                               capture_output=True, text=True, env=ENV, check=False, timeout=60)
            assert p.returncode == 0 and "burn" in p.stdout and "instructions:u" in p.stdout, p


def test_branches():
    """Of FIXED nothing but the turns of its loop [BR-05, BR-06]."""
    with scratch() as d:
        for options, kind in (["-b"], ""), (["-j", "cond,save_type,u"], "COND"):
            record(f"{d}/a", *options, "-e", "instructions:u", "-c", "1009", "--", FIXED)
            lines = script(f"{d}/a", "ip,brstack")
            assert len(lines) == count() // 1009
            for line in lines:
                ip, *branches = line.split()
                source, target, *flags = branches[0].split("/")
                assert flags == ["-", "-", "-", "0", kind], line
                assert branches == [branches[0]] * 32 and ip in (source[2:], target[2:]), line
            if shutil.which("perf"):
                p = subprocess.run(["perf", "script", "-i", f"{d}/a", "-F", "ip,brstack"],
                                   capture_output=True, text=True, env=ENV, check=False, timeout=60)
                assert [x.split() for x in p.stdout.splitlines()] == [x.split() for x in lines], p
        record(f"{d}/a", "-j", "any_call,u", "-e", "instructions:u", "-c", "1009", "--", FIXED)
        assert all(len(line.split()) == 1 for line in script(f"{d}/a", "ip,brstack"))


def test_call_graph_of_open_calls():
    with scratch() as d:
        record(f"{d}/a", "-g=lbr", "-e", "instructions:u", "-c", "1000003", "--", SPIN, "300")
        stacks = script(f"{d}/a", "sym,brstack")
        assert len(stacks) > 10 and all("/" in line for line in stacks[5:]), stacks[:10]


def test_what_it_does_not_sample():
    with scratch() as d:
        record(f"{d}/a", "--", FIXED)
        r = run("record", "-o", f"{d}/a", "--no-inherit", "--", FIXED)
        assert "by the virtual PMU" not in r.err, r
        r = run("record", "-o", f"{d}/a", "-C", "0", "--", FIXED)
        assert "by the virtual PMU" not in r.err, r
        r = run("record", "-o", f"{d}/a", "-e", "cpu-clock:u", "--", FIXED)
        assert "by the virtual PMU" not in r.err, r
        r = run("record", "-o", f"{d}/a", "--", "/nonexistent")
        assert r.status == 127, r


if __name__ == "__main__":
    main(globals())
