#!/usr/bin/env python3
"""anyperf record on the virtual PMU, where the kernel has none: as many samples as periods, in all
tasks of the command, in one file that perf reads as well."""
import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections import Counter

from e2e import ANYPERF, ENV, Skip, main, run, scratch
from made_recording import sampled

FIXED = os.environ["E2E_FIXED"]
SPIN = os.environ["E2E_SPIN"]
CHURN = os.environ["E2E_CHURN"]


HAS_PMU = any(re.match("cpu|armv", d) for d in os.listdir("/sys/bus/event_source/devices"))


def record(path, *args, status=0):
    r = run("record", "--pmu=virtual", "-o", path, *args)
    assert r.status == status and "by the virtual PMU: asked for" in r.err, r
    return r


def samples(r):
    return int(re.search(r"anyperf record: (\d+) samples?, [\d.]+ MB", r.err)[1])


def script(path, fields):
    r = run("script", "-i", path, "-F", fields)
    assert r.status == 0, r
    return r.out.split("\n")[:-1]


def test_records_in_order_are_not_sorted():
    """Reading them takes a fifth fewer instructions than reading them backwards."""
    with scratch() as d:
        n, size = 20000, 8 + 24
        sampled(f"{d}/ordered", SPIN, 0x400000, 0x10000, 0, [0x401000] * n)
        with open(f"{d}/ordered", "rb") as f:
            data = f.read()
        samples = [data[-size * i:][:size] for i in range(1, n + 1)]
        with open(f"{d}/backwards", "wb") as f:
            f.write(data[:-size * n] + b"".join(samples))
        took, said = [], []
        for name in "ordered", "backwards":
            r = run("stat", "-j", "--pmu=virtual", "-e", "instructions:u", "--", ANYPERF, "report",
                    "-i", f"{d}/{name}")
            assert r.status == 0, r
            took.append(json.loads(r.err.splitlines()[0])["counts"][0]["value"])
            said.append(r.out)
        assert said[0] == said[1] and took[0] < 0.9 * took[1], (took, said)


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
            assert (": 1 sample, " in r.err) == (n // period == 1), r


def test_one_of_each():
    n = count()
    with scratch() as d:
        r = record(f"{d}/a", "-e", "instructions:u", "-c", str(n), "--switch-output=1h", "--",
                   FIXED)
        assert re.search(r": 1 sample in \S+\n.*: 1 sample, [\d.]+ MB in 1 file\n", r.err), r


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


def wait_for(condition):
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


def state(pid):
    with open(f"/proc/{pid}/stat") as f:
        return f.read().rpartition(")")[2].split()[0]


class Stopped:
    """A recorder that is stopped while its command, which waits for that, runs @script."""

    def __init__(self, directory, script, *options):
        os.mkfifo(f"{directory}/go")
        # How much of the buffer is left when it has begun is chance.
        command = f"echo $$ > {directory}/pid; : > {directory}/began; read x < {directory}/go; "
        command += script
        self.p = subprocess.Popen([ANYPERF, "record", "--pmu=virtual", "-o", f"{directory}/a",
                                   "-m", "1", "-e", "instructions:u", "-c", "101", *options, "--",
                                   "sh", "-c", command], stderr=subprocess.PIPE, text=True, env=ENV)
        wait_for(lambda: os.path.exists(f"{directory}/began"))
        self.p.send_signal(signal.SIGSTOP)
        wait_for(lambda: state(self.p.pid) == "T")
        with open(f"{directory}/go", "w"):
            pass
        time.sleep(0.5)

    def go_on(self):
        self.p.send_signal(signal.SIGCONT)
        err = self.p.communicate(timeout=60)[1]
        assert self.p.returncode == 0 and "LOST" not in err, err
        return err


def test_nothing_is_lost_while_the_recorder_is_stopped():
    """A buffer of one page has room for a hundred samples: the command waits until it is read."""
    n = count()
    with scratch() as d:
        Stopped(d, f"{FIXED} & {FIXED}; wait").go_on()
        of = Counter(line.split()[1] for line in script(f"{d}/a", "comm,pid")
                     if line.split()[0] == "fixed")
        assert len(of) == 2 and all(n // 101 <= k <= n // 101 + 1 for k in of.values()), of


def test_a_killed_recorder_lets_its_command_go():
    with scratch() as d:
        r = Stopped(d, f"{FIXED}; {FIXED}; : > {d}/done")
        assert not os.path.exists(f"{d}/done")
        r.p.kill()
        r.p.wait()
        wait_for(lambda: os.path.exists(f"{d}/done"))


def test_a_command_that_waits_can_be_killed():
    with scratch() as d:
        r = Stopped(d, f"exec {FIXED} 1 2 3")
        with open(f"{d}/pid") as f:
            os.kill(int(f.read()), signal.SIGTERM)
        r.p.send_signal(signal.SIGCONT)
        err = r.p.communicate(timeout=60)[1]
        assert r.p.returncode == 128 + signal.SIGTERM and "LOST" not in err, (r.p.returncode, err)


def test_the_default_event():
    with scratch() as d:
        r = run("record", "-o", f"{d}/a", "-g", "--", SPIN, "300")
        assert r.status == 0, r
        if HAS_PMU:
            assert "virtual" not in r.err, r
            return
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
                for fields in ("ip,brstack", "ip,dso,brstack", "brstacksym", "dso,brstacksym",
                               "+brstack"):
                    p = subprocess.run(["perf", "script", "-i", f"{d}/a", "-F", fields],
                                       capture_output=True, text=True, env=ENV, check=False,
                                       timeout=60)
                    ours = script(f"{d}/a", fields)
                    assert [x.split() for x in p.stdout.splitlines()] == \
                        [x.split() for x in ours], (fields, p)
        record(f"{d}/a", "-j", "any_call,u", "-e", "instructions:u", "-c", "1009", "--", FIXED)
        assert all(len(line.split()) == 1 for line in script(f"{d}/a", "ip,brstack"))
        # With what a model counts, alone and beside others.
        for events in ("cycles:u", "branches:u,cycles:u"):
            record(f"{d}/a", "-b", "-e", events, "-c", "1009", "--machine=zen4", "--", FIXED)
            lines = [x.split() for x in script(f"{d}/a", "event,brstack") if "cycles:u:" in x]
            assert len(lines) > 10, (events, lines)
            for _, *branches in lines[len(lines) // 2:]:
                assert len(branches) == 32 and branches == [branches[0]] * 32, (events, branches)


def test_call_graph_of_open_calls():
    with scratch() as d:
        record(f"{d}/a", "-g=lbr", "-e", "instructions:u", "-c", "1000003", "--", SPIN, "300")
        stacks = script(f"{d}/a", "sym,brstack")
        assert len(stacks) > 10 and all("/" in line for line in stacks[5:]), stacks[:10]
        # They are the call chain.
        chains = run("script", "-F", "ip,sym", "-i", f"{d}/a").out.split("\n\n")
        chains = [[f.split()[1] for f in c.strip().splitlines()] for c in chains if c.strip()]
        deep = [c for c in chains if c[:3] == ["burn", "calls_burn", "main"]]
        assert len(deep) > len(stacks) / 2, str(chains[-5:])[:500]
        if shutil.which("perf"):
            p = subprocess.run(["perf", "script", "-i", f"{d}/a", "-F", "ip,sym"],
                               capture_output=True, text=True, env=ENV, check=False, timeout=60)
            assert p.stdout.count("calls_burn") == sum("calls_burn" in c for c in chains), p
        report = run("report", "--children", "-i", f"{d}/a")
        assert re.search(r"^ +(9|100)\d?\.\d+% +0\.\d+% .* main$", report.out, re.M), report


def test_who_samples():
    with scratch() as d:
        for args in (["-C", "0"], ["-e", "cpu-clock:u"], ["--pmu=kernel"], ["-a"]):
            r = run("record", "-o", f"{d}/a", *args, "--", FIXED)
            assert "by the virtual PMU" not in r.err, r
        # What is refused is not announced before.
        r = run("record", "-o", f"{d}/a", "--machine", "none", "-e", "cycles", "--", FIXED)
        assert r.status == 125 and r.err.startswith("anyperf record: cycles: "), r
        r = run("record", "-o", f"{d}/a", "--pmu=virtual", "-p", "1")
        assert r.status == 125 and "COMMAND" in r.err, r
        r = run("record", "-o", f"{d}/a", "--", "/nonexistent")
        assert r.status == 127, r


def test_children_may_be_left_out():
    """Children that nobody samples neither wait for a reader nor are in the file."""
    n = count()
    with scratch() as d:
        r = record(f"{d}/a", "--no-inherit", "-e", "instructions:u", "-c", "101", "--", "sh", "-c",
                   f"{FIXED}; exec {FIXED}")
        of = Counter(line.split()[1] for line in script(f"{d}/a", "comm,pid")
                     if line.split()[0] == "fixed")
        assert len(of) == 1 and n // 101 <= sum(of.values()) <= n // 101 + 1, (of, r)


def test_forks_while_threads_end():
    """A child copies no half of what a thread that ends is giving up."""
    with scratch() as d:
        r = record(f"{d}/a", "-e", "instructions:u", "-c", "10000", "--", CHURN, "1000")
        assert r.out == "0 0\n", r


def test_events_of_the_kernel_beside_the_cpus():
    """In one file, each of guests' own places."""
    with scratch() as d:
        r = record(f"{d}/a", "-e", "page-faults:u,instructions:u", "-c", "50", "--", SPIN, "1", "500")
        of = Counter(script(f"{d}/a", "event,ip,sym"))
        touched = sum(n for line, n in of.items() if "page-faults" in line and "touch" in line)
        assert 500 // 50 - 1 <= touched <= 500 // 50 + 1, (of, r)
        assert sum(n for line, n in of.items() if "instructions:u" in line) > 1000, (of, r)
        assert sum(of.values()) == samples(r), (of, r)


def test_places_in_files():
    """Each execution of a place, which the session counts, is a sample if nothing else is said."""
    with open("/proc/self/maps", encoding="ascii") as f:
        libc = re.search(r"\S+/libc\.so\.6$", f.read(), re.M)[0]
    events = f"uprobe:{libc}:getenv,uretprobe:{libc}:getenv"
    r = run("stat", "-j", "--pmu=virtual", "-e", events, "--", "ls", "/")
    assert r.status == 0, r
    if "not supported" in r.err:
        raise Skip("this kernel has no uprobes, or not for us")
    calls, returns = (c["value"] for c in json.loads(r.err.splitlines()[0])["counts"])
    assert calls == returns > 1, r
    with scratch() as d:
        r = record(f"{d}/a", "-e", events, "--", "ls", "/")
        names = Counter(line.split(":")[0] for line in script(f"{d}/a", "event,ip"))
        assert samples(r) == 2 * calls and len(names) == 2, (r, names)
        r = record(f"{d}/a", "-e", events, "-c", "2", "--", "ls", "/")
        assert samples(r) == calls // 2 * 2, (calls, r)


def test_the_newest_are_kept():
    with scratch() as d:
        r = record(f"{d}/a", "--overwrite", "-m", "16", "-e", "instructions:u", "-c", "2003", "--",
                   SPIN, "200")
        # No sample is shorter than 32 bytes, and 16 pages are what there is for them.
        assert 100 < samples(r) == len(script(f"{d}/a", "ip")) <= 16 * 4096 // 32, r
        assert "LOST" not in r.err, r


def test_each_of_several_files_has_names():
    with scratch() as d:
        record(f"{d}/a", "-e", "instructions:u", "-c", "100003", "-m", "1",
               "--switch-output=16K", "--", SPIN, "200")
        assert len(os.listdir(d)) > 2, os.listdir(d)
        for name in os.listdir(d):
            lines = script(f"{d}/{name}", "comm,ip,sym")
            assert all(line.split()[0] == "spin" for line in lines), lines[:5]
            assert not any("[unknown]" in line for line in lines), lines[:5]


def test_addresses_of_data_are_those_of_the_kernel():
    """An event of instructions has none: 0."""
    with scratch() as d:
        r = record(f"{d}/a", "-d", "-e", "instructions:u", "-c", "10007", "--", FIXED)
        assert samples(r) and {line.strip() for line in script(f"{d}/a", "addr")} == {"0"}, r


if __name__ == "__main__":
    main(globals())
