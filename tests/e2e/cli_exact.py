#!/usr/bin/env python3
"""anyperf record --exact: how often each instruction was executed, in all tasks of the command; the
sum is what stat counts."""
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter

from e2e import ANYPERF, ENV, Skip, main, run, scratch

FIXED = os.environ["E2E_FIXED"]
# What the kernel has put where varies, and so does what the dynamic loader executes.
SAME = ["setarch", "-R"]


def exact(path, *command, status=0):
    r = run("record", "--exact", "-o", path, "--", *command)
    assert r.status == status, r
    m = re.search(r"(\d+) instructions were executed, at (\d+) places", r.err)
    assert m, r
    assert "INCOMPLETE" not in r.err and "the counters" not in r.err, r
    assert "no room" not in r.err and "SAMPLES" not in r.err, r
    return int(m[1]), int(m[2]), r


def lines(path, fields):
    r = run("script", "-i", path, "-F", fields)
    assert r.status == 0, r
    return [l.split() for l in r.out.split("\n")[:-1]]


def report(path, *args):
    r = run("report", "--json", "-i", path, *args)
    assert r.status == 0, r
    return json.loads(r.out.splitlines()[0])


def test_each_instruction():
    with scratch() as d:
        n, places, _ = exact(f"{d}/a", FIXED)
        assert (n, places) == (200005, 7), (n, places)
        counts = [(int(ip, 16), int(period)) for ip, period in
                  (("".join(c for c in l[1] if c in "0123456789abcdef"), l[0])
                   for l in lines(f"{d}/a", "period,ip"))]
        assert sorted(c for _, c in counts) == [1] * 5 + [100000] * 2, counts
        assert [c for _, c in sorted(counts)] == [1, 1, 100000, 100000, 1, 1, 1], counts
        p = report(f"{d}/a")
        assert p["event"] == "instructions:u" and p["period"] == 200005, p
        assert "_start" in {row.get("symbol") for row in p["rows"]}, p


def test_the_same_as_stat():
    with scratch() as d:
        for command in (["seq", "100"], ["head", "-c", "9", "/etc/passwd"], ["od", "/etc/passwd"]):
            shell = ["sh", "-c", f'exec "$0" "$@" >{d}/out', "env", "-i", *SAME, *command]
            r = run("stat", "-j", "--pmu=virtual", "-e", "instructions:u", "--", *shell)
            assert r.status == 0, r
            want = json.loads(r.err.splitlines()[0])["counts"][0]["value"]
            n, _, _ = exact(f"{d}/a", *shell)
            # The shell and env themselves are where the kernel has put them.
            last = {x["comm"]: x["period"] for x in report(f"{d}/a", "-s", "comm")["rows"]}
            assert abs(n - want) <= 500 and last[command[0]] > 50000, (command, n, want, last)
            assert report(f"{d}/a")["period"] == n


def chains(path):
    """The samples as (period, functions from the innermost on)."""
    r = run("script", "-i", path, "-F", "period,ip,sym")
    assert r.status == 0, r
    for part in r.out.strip().split("\n\n"):
        head, *frames = part.strip().split("\n")
        yield int(head), [f.split()[1] for f in frames]


def test_call_chains():
    called = os.environ["E2E_CALLED"]
    with scratch() as d:
        r = run("stat", "-j", "--pmu=virtual", "-e", "instructions:u", "--", "env", "-i", *SAME,
                called)
        want = json.loads(r.err.splitlines()[0])["counts"][0]["value"]
        r = run("record", "--exact", "-g", "-o", f"{d}/a", "--", "env", "-i", *SAME, called)
        assert r.status == 0 and "INCOMPLETE" not in r.err and "the counters" not in r.err, r
        n = int(re.search(r"(\d+) instructions were executed", r.err)[1])
        # env itself is where the kernel has put it.
        assert abs(n - want) <= 500, (n, want)
        assert report(f"{d}/a")["period"] == n
        rows = {r.get("symbol"): r for r in report(f"{d}/a", "--children", "-s", "sym")["rows"]}
        share = {f: r["children_percent"] for f, r in rows.items() if f}
        assert share["main"] > share["fib"] > 0 and share["main"] > share["tail"], share
        sums = Counter()
        for period, frames in chains(f"{d}/a"):
            sums[tuple(frames[:2])] += period
            assert frames.count("fib") <= 1, frames
        # 20 calls of one function, 10 from main; recursion is where it was first called.
        assert sums["leaf", "tail"] == sums["leaf", "main"] / 2 > 0, sums
        assert sums["fib", "main"] == rows["fib"]["period"], sums
        # The region alone, with what it calls.
        r = run("record", "--exact", "--toggle=t?il", "-o", f"{d}/b", "--", called)
        assert r.status == 0, r
        by = {r.get("symbol"): r["period"] for r in report(f"{d}/b", "-s", "sym")["rows"]}
        assert set(by) == {"tail", "leaf"} and by["leaf"] == sums["leaf", "tail"], by
        # What the kernel enters has been called; it calls leaf once, as main does ten times.
        r = run("record", "--exact", "--toggle=handler", "-o", f"{d}/b", "--", called)
        assert r.status == 0, r
        by = {r.get("symbol"): r["period"] for r in report(f"{d}/b", "-s", "sym")["rows"]}
        assert by["handler"] > 0 and by["leaf"] == sums["leaf", "main"] / 10, by
        r = run("record", "--exact", "-g", "-o", f"{d}/c", "--", FIXED)
        assert "200005 instructions were executed" in r.err, r
        # Threads and children have their own.
        r = run("record", "--exact", "-g", "-o", f"{d}/t", "--", called, "threads")
        assert r.status == 0 and "the counters" not in r.err, r
        tids = {}
        for tid, period in lines(f"{d}/t", "tid,period"):
            if period.isdigit():
                tids[tid] = tids.get(tid, 0) + int(period)
        r = run("record", "--exact", "--toggle=nosuch*", "-o", f"{d}/n", "--", called)
        assert r.status == 0 and "no function that --toggle=nosuch* fits was executed" in r.err, r
        for options, why in ((["--toggle=f"], "--toggle limits"),
                             (["--exact", "--call-graph=dwarf"], "not with -g dwarf")):
            r = run("record", *options, "-o", f"{d}/d", "--", "true")
            assert r.status == 125 and why in r.err, r


def test_calls_that_do_not_return():
    """They are their functions' own, and at their lines, whatever begins behind them."""
    with scratch() as d:
        r = run("record", "--exact", "-g", "-o", f"{d}/a", "--", os.environ["E2E_LAST_CALL"])
        assert r.status == 0, r
        for key, want in (("symbol", {"_start": 2009, "guilty": 2006, "wastes": 2004,
                                      "innocent": 1}),
                          ("line", {20: 2, 21: 2007, 22: 2004, 23: 2, 24: 2004, 25: 1})):
            rows = report(f"{d}/a", "--children", "-s", key.replace("bol", ""))["rows"]
            got = {x[key]: x["children_percent"] for x in rows}
            assert got == {at: round(n / 20.09, 2) for at, n in want.items()}, (got, rows)


def test_children():
    with scratch() as d:
        n, _, _ = exact(f"{d}/a", "sh", "-c", f"{FIXED}; {FIXED}; ({FIXED}; :); exec {FIXED} 2")
        per_comm = {r["comm"]: r["period"] for r in report(f"{d}/a", "-s", "comm")["rows"]}
        # With a second word it makes twice as many turns.
        assert per_comm["fixed"] == 3 * 200005 + 400005, per_comm
        assert sum(per_comm.values()) == n, (per_comm, n)
        tids = Counter()
        for tid, period in lines(f"{d}/a", "tid,period"):
            tids[tid.split("/")[-1]] += int(period)
        assert len(tids) == 5 and sum(tids.values()) == n, tids


THREADS = """
import os, signal, sys, threading
def work():
    for i in range(20000): hash((i, i))
ts = [threading.Thread(target=work) for _ in range(4)]
for t in ts: t.start()
for t in ts: t.join()
if sys.argv[1] == "kill": os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[1] == "fork":
    for _ in range(3):
        if not os.fork():
            work()
            os._exit(0)
        os.wait()
"""


def test_threads_forks_and_death():
    with scratch() as d:
        for how, status, tasks in (("end", 0, 5), ("fork", 0, 8), ("kill", 137, 5)):
            n, _, _ = exact(f"{d}/a", sys.executable, "-c", THREADS, how, status=status)
            tids = Counter()
            for tid, period in lines(f"{d}/a", "tid,period"):
                tids[tid] += int(period)
            assert len(tids) == tasks and sum(tids.values()) == n, (how, tids, n)
            rows = report(f"{d}/a", "-s", "sym")["rows"]
            named = sum(r["period"] for r in rows if "symbol" in r)
            # Code of the translated program's stripped parts has no names; the rest has.
            assert named > n * 0.5, (how, named, n)


def test_signals():
    """What handlers interrupt is counted once."""
    with scratch() as d:
        script = ("import signal; n = [0]\n"
                  "def f(*a): n[0] += 1\n"
                  "signal.signal(signal.SIGALRM, f); signal.setitimer(signal.ITIMER_REAL, .0005, .0005)\n"
                  "while n[0] < 100: hash((1, 2))\n"
                  "signal.setitimer(signal.ITIMER_REAL, 0)\n")
        n, _, _ = exact(f"{d}/a", sys.executable, "-c", script)
        assert report(f"{d}/a")["period"] == n


def test_perf_reads_the_same():
    if not shutil.which("perf") or subprocess.run(["perf", "--version"], capture_output=True,
                                                  check=False).returncode:
        return
    with scratch() as d:
        n, _, _ = exact(f"{d}/a", "sh", "-c", "ls / >/dev/null; ls /")
        p = subprocess.run(["perf", "script", "-F", "period", "-i", f"{d}/a"], capture_output=True,
                           text=True, env=ENV, check=True, timeout=60)
        assert sum(int(x) for x in p.stdout.split()) == n, n
        p = subprocess.run(["perf", "report", "--stdio", "--percentage", "absolute", "-s", "comm",
                            "-i", f"{d}/a"], capture_output=True, text=True, env=ENV, check=True,
                           timeout=60)
        assert f"Event count (approx.): {n}" in p.stdout, p.stdout
        assert not re.search("out of order|not supported", p.stderr), p.stderr


def test_namespaces():
    """Whoever has numbers of its own in a PID namespace has those of records, and its names."""
    inside = ["unshare", "-Urpf", os.environ["E2E_CALLED"], "threads"]
    if subprocess.run(inside, capture_output=True, check=False).returncode:
        raise Skip("there are no namespaces of one's own here")
    with scratch() as d:
        for options in ([], ["-g"], ["-e", "cycles"]):
            r = run("record", "--exact", *options, "-o", f"{d}/a", "--", "sh", "-c",
                    '"$@"; "$@"', "sh", *inside)
            assert r.status == 0 and "INCOMPLETE" not in r.err, r
            rows = report(f"{d}/a", "-s", "pid,tid,comm,sym")["rows"]
            assert {row["comm"] for row in rows} == {"sh", "unshare", "called"}, options
            for function, threads, processes in (("tail", 8, 2), ("leaf", 10, 4)):
                of = {(row["pid"], row["tid"]) for row in rows if row.get("symbol") == function}
                assert len(of) == threads and len({p for p, _ in of}) == processes, (function, of)


LOCKED = """
import ctypes, threading
def shared():
    return int(next(l for l in open("/proc/self/status") if l.startswith("RssShmem")).split()[1])
libc = ctypes.CDLL(None)
def show(name, before):
    print(name, shared() - before if not failed else 0)
before = shared()
failed = libc.mlockall(1)
show("current", before)
before = shared()
failed = libc.mlockall(2)
thread = threading.Thread(target=lambda: show("future", before))
thread.start()
thread.join()
"""


def test_locked_memory():
    """mlockall(2) does not populate what nothing is described in yet."""
    command = [sys.executable, "-c", LOCKED]
    plain = run("run", "--", *command)
    with scratch() as d:
        _, _, r = exact(f"{d}/a", *command)
    plain, grown = (dict(l.split() for l in x.out.splitlines()) for x in (plain, r))
    assert set(plain) == set(grown) == {"current", "future"}, r
    assert all(int(grown[when]) - int(plain[when]) < 6000 for when in grown), (plain, grown)


def test_what_does_not_go_together():
    for args in (["-e", "sched:sched_switch", "--filter", "prev_pid == 1"], ["-F", "99"],
                 ["-c", "1000"], ["--call-graph=lbr"], ["-b"], ["-i"], ["-a"], ["-p", "1"], ["--overwrite"], ["--switch-output"],
                 ["-D", "5"], ["--pmu=kernel"], ["--user-regs=ip"], ["--control", "fd:1"]):
        r = run("record", "--exact", *args, "--", "true")
        assert r.status == 125 and "--exact counts every instruction" in r.err, r
    r = run("run", "--", ANYPERF, "record", "--exact", "-o",
            "/dev/null", "true")
    assert r.status == 125 and "runs under `anyperf run` itself" in r.err, r


if __name__ == "__main__":
    main(globals())
