#!/usr/bin/env python3
"""Unmodified perf samples what the model of a machine counts: as many samples as periods, where the
access is, and what it met [DSRC-01..06]; perf mem and perf c2c show what a program is known to do
[SAMP-16, SAMP-17]."""
import json
import os
import re
import shutil
import subprocess

from e2e import ANYPERF, Skip, counts, main, run, scratch, stat_json

FIXED = os.environ["E2E_FIXED"]
WALKING = os.environ["E2E_WALKING"]
PERF = shutil.which("perf")
MACHINE = "cachegrind"  # L1D 32 KB, LL 8 MB
# The CPU of an Intel server of 2017, on any machine; what it is shown with otherwise.
INTEL = ("--deterministic", "--cpu-features", "x86-64-v3")
MB = 1 << 20


def is_amd():
    with open("/proc/cpuinfo") as f:
        return "AuthenticAMD" in f.read()


def perf(*args, under=True, cpu=()):
    if not PERF:
        raise Skip("perf is not installed")
    session = [ANYPERF, "run", *cpu, "--machine", MACHINE, "--"] if under else []
    p = subprocess.run([*session, PERF, *args], capture_output=True, text=True, timeout=120)
    assert p.returncode == 0, p.stderr
    return p.stdout


def recorded(directory, *options, fields="ip", command=(FIXED,)):
    data = os.path.join(directory, "perf.data")
    perf("record", "-q", "-o", data, "--per-thread", *options, "--", *command)
    return perf("script", "-i", data, "-F", fields, under=False).splitlines()


def count_of(event):
    report, = stat_json("--machine", MACHINE, "--model-windows=no", "-e", event, "--", FIXED)
    (count,) = counts(report).values()
    return count["value"]


def test_as_many_samples_as_periods():
    with scratch() as d:
        for event in "cycles:u", "L1-dcache-loads:u", "branch-misses:u":
            count = count_of(event)
            for period in sorted({count + 1, count // 100 + 1, 997}):
                lines = recorded(d, "-e", event, "-c", str(period))
                assert len(lines) == count // period, (event, period, count, len(lines))


def own(directory, *options, command=(FIXED,)):
    """What anyperf's own recorder writes: the report's lines, and perf's view of the file."""
    data = os.path.join(directory, "perf.data")
    p = run("record", "-q", "-o", data, *options, "--", *command)
    assert p.status == 0, p
    return data


def test_own_recorder():
    count = count_of("cycles:u")
    with scratch() as d:
        data = own(d, "--machine", MACHINE, "-e", "cycles:u", "-c", "997")
        p = run("script", "-i", data, "-F", "ip")
        assert len(p.out.splitlines()) == count // 997, (count, p.out[:300])
        assert run("report", "-i", data).out.startswith(f"# modeled: {MACHINE}\n")
        assert json.loads(run("report", "--json", "-i", data).out)["machine"] == MACHINE
        if PERF:
            assert f"machine={MACHINE}" in perf("report", "-i", data, "--header-only", under=False)
        own(d, "--machine", MACHINE, "-d", "-e", "cache-misses:u", "-c", "100",
            command=(WALKING, "walk", str(MB), "1"))
        if PERF:
            text = perf("script", "-i", data, "-F", "addr,weight,data_src", under=False)
            assert text.count("RAM") > MB // 64 // 100 - 10, text
        # Without a model of a machine as with one that is not there.
        p = run("record", "-o", data, "--machine", "none", "-e", "cycles:u", "--", FIXED)
        assert p.status and "cycles" in p.err, p
        p = run("record", "-o", data, "--machine", "nosuch", "--", FIXED)
        assert p.status and "nosuch" in p.err, p
        p = run("record", "-o", data, "--machine", MACHINE, "-a", "--", FIXED)
        assert p.status and "--machine" in p.err, p


def test_the_same_each_time():
    with scratch() as d:
        for options in ((), ("-g",)):
            runs = [recorded(d, "-e", "cycles:u", "-c", "997", *options) for _ in range(2)]
            assert runs[0] == runs[1]
            # Nearly every way from one to the next is a period.
            assert len(runs[0]) > 100, len(runs[0])


def test_where_a_miss_was():
    with scratch() as d:
        lines = recorded(d, "-e", "cache-misses:u", "-c", "1000", "-d", "-W",
                         fields="ip,sym,addr,weight,data_src",
                         command=(WALKING, "walk", str(16 * MB), "1"))
    assert 16 * MB // 64 // 1000 <= len(lines) <= 16 * MB // 64 // 1000 + 10, len(lines)
    walks = [line for line in lines if re.search(r"\bwalk\b|\bmain\b", line)]
    assert len(walks) >= 16 * MB // 64 // 1000 - 1, lines
    addresses = [int(line.split()[0], 16) for line in walks]
    # One line after the other: each 1000 lines.
    steps = [b - a for a, b in zip(addresses, addresses[1:])]
    assert steps.count(64000) >= len(steps) - 2, steps
    assert all("RAM" in line and "LOAD" in line for line in walks), walks


def levels(report):
    """From perf mem report: samples by level of memory."""
    found = {}
    for line in report.splitlines():
        m = re.match(r"\s*([0-9.]+)%\s+([0-9]+)\s+(\S.*?)\s*$", line)
        if m:
            found[m.group(3)] = int(m.group(2))
    return found


def shown():
    """The CPUs that perf mem knows, on this machine."""
    return ((), INTEL) if is_amd() else (INTEL,)


def mem_levels(cpu, *command):
    with scratch() as d:
        data = os.path.join(d, "perf.data")
        perf("mem", "record", "-o", data, "-c", "997", "--", *command, cpu=cpu)
        return levels(perf("mem", "-i", data, "report", "--stdio", "-F", "overhead,sample,mem",
                           under=False))


def share(found, pattern):
    return sum(n for level, n in found.items() if re.search(pattern, level)) / sum(found.values())


def test_levels_of_perf_mem():
    for cpu in shown():
        far = mem_levels(cpu, WALKING, "walk", str(32 * MB), "1")
        assert share(far, "RAM") > 0.8, far
        near = mem_levels(cpu, WALKING, "walk", "16384", "3000")
        # Of Intel's CPUs only loads that take long are recorded.
        assert share(near, "L1.*hit") > 0.9 or cpu == INTEL, near


def test_false_sharing_of_perf_c2c():
    for cpu in shown():
        with scratch() as d:
            data = os.path.join(d, "perf.data")
            perf("c2c", "record", "-o", data, "-c", "7", "--", WALKING, "share", "2000", cpu=cpu)
            text = perf("c2c", "report", "-i", data, "--stdio", "--stats", under=False)
        m = re.search(r"Load Local HITM\s*:\s*(\d+)", text)
        assert m and int(m.group(1)) > 20, (cpu, text)


def test_locked_accesses():
    """Accesses of atomic instructions are locked, and no others, in perf mem and in our script."""
    command = (WALKING, "atomic", "20000")

    def check(lines, is_locked):
        for function, locked in ("atomic_additions", True), ("plain_additions", False):
            found = [is_locked(line) for line in lines if function in line]
            # Not all that is around an atomic instruction is locked.
            assert found and any(found) == locked, (function, lines)

    def named_locked(line):
        return bool(re.search(r"\bLCK Yes\b", line))

    def numbered_locked(line):  # PERF_MEM_LOCK_LOCKED
        return int(line.split()[0], 16) >> 24 & 3 == 2

    def check_numbers(lines):
        """The level by number is that by name [DSRC-06]: L1, L3, RAM here."""
        found = set()
        for line in lines:
            src = int(line.split()[0], 16)
            assert {0x8: 1, 0x40: 3, 0x80: 13}[src >> 5 & 0x3ff8] == src >> 33 & 15, line
            assert src >> 37 == 0, line
            found.add(src >> 33 & 15)
        assert {1, 13} <= found, found

    with scratch() as d:
        for event in "L1-dcache-loads:u", "L1-dcache-stores:u":
            data = own(d, "--machine", MACHINE, "-d", "-e", event, "-c", "97", command=command)
            lines = run("script", "-i", data, "-F", "ip,sym,data_src").out.splitlines()
            check(lines, numbered_locked)
            if "loads" in event:
                check_numbers(lines)
        if not PERF:
            raise Skip("perf is not installed")
        check(recorded(d, "-e", "L1-dcache-loads:u", "-c", "97", "-d", fields="ip,sym,data_src",
                       command=command), named_locked)
        for cpu in shown():
            data = os.path.join(d, "mem.data")
            perf("mem", "record", "-o", data, "-c", "97", "--", *command, cpu=cpu)
            text = perf("mem", "-i", data, "report", "--stdio", "-F", "overhead,sample,locked,sym",
                        under=False)
            check(text.splitlines(), lambda line: bool(re.search(r"\bYes\b", line)))


def test_loads_by_latency():
    """cpu/mem-loads,ldlat=N/ counts the loads that take N cycles, and samples no others."""
    command = (WALKING, "walk", str(16 * MB), "1")

    def count(event):
        report, = stat_json(*INTEL, "--machine", MACHINE, "--model-windows=no", "-e", event, "--",
                            *command)
        return next(iter(counts(report).values()))["value"]

    assert count("cpu/mem-loads/u") == count("L1-dcache-loads:u")
    slow = count("cpu/mem-loads,ldlat=100/u")
    assert 16 * MB // 64 <= slow <= 16 * MB // 64 + 2000, slow
    assert count("cpu/mem-loads,ldlat=111/u") == 0
    assert count("cpu/mem-stores/u") == count("L1-dcache-stores:u")
    with scratch() as d:
        data = os.path.join(d, "perf.data")
        perf("record", "-q", "-o", data, "--per-thread", "-d", "-W", "-c", "1000", "-e",
             "cpu/mem-loads,ldlat=100/upp", "--", *command, cpu=INTEL)
        lines = perf("script", "-i", data, "-F", "addr,weight,data_src",
                     under=False).splitlines()
    assert len(lines) == slow // 1000, (slow, len(lines))
    assert sum("RAM" in line and "LOAD" in line for line in lines) >= len(lines) - 2, lines


main(globals())
