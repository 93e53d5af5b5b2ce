#!/usr/bin/env python3
"""What anyperf stat measures besides a command: processes, threads, CPUs, cgroups."""
import json
import os
import re
import resource
import signal
import subprocess
import sys
import time

from e2e import (ANYPERF, ENV, Skip, counts, main, may_measure_cpus, run, scratch, stat, stat_json,
                 table)

TOUCH = os.environ["E2E_TOUCH"]
THREADS = """
import threading, sys, time
def spin():
    while True:
        pass
threads = [threading.Thread(target=spin, daemon=True) for _ in range(2)]
for t in threads: t.start()
print("ready", flush=True)
time.sleep(60)
"""
# 20 threads that wait.
IDLE = THREADS.replace("range(2)", "range(19)").replace("pass", "time.sleep(1)")


class Running:
    """A program that runs while it is measured."""
    def __init__(self, *args):
        self.args = args

    def __enter__(self):
        self.process = subprocess.Popen(self.args, stdout=subprocess.PIPE, text=True, env=ENV)
        return self.process

    def __exit__(self, *exception):
        self.process.kill()
        self.process.communicate()


def test_process():
    with Running(TOUCH, "spin") as p:
        report, = stat_json("-p", p.pid, "-e", "task-clock", "--timeout", "1000")
        c = counts(report)["task-clock"]
        assert report["target"] == f"process id '{p.pid}'" and c["status"] == "ok", report
        assert c["value"] > 20, report
        assert "user_s" not in report
        # A command is only the clock then, and is not counted.
        report, = stat_json("--pid", p.pid, "-e", "page-faults", TOUCH, "5000")
        assert counts(report)["page-faults"].get("value", 0) < 1000, report
    r = stat("-p", "999999999", "-e", "cs", status=125)
    assert "999999999" in r.err and "no " in r.err, r
    for text in ("x", "1,,2", "-5", "0"):
        assert "is not a list of numbers" in stat(f"-p{text}", "-e", "cs", status=125).err


def test_the_measurement_ends_with_the_process():
    p = subprocess.Popen(["sleep", "0.5"])
    begun = time.monotonic()
    thread = subprocess.Popen([ANYPERF, "stat", "-p", str(p.pid), "-e", "cs"],
                              stderr=subprocess.PIPE, text=True,
                              env=ENV)
    p.wait()
    _, err = thread.communicate(timeout=20)
    assert thread.returncode == 0 and "seconds time elapsed" in err, err
    assert time.monotonic() - begun < 15, err


def test_an_interrupt_ends_a_measurement_without_command():
    with Running(TOUCH, "spin") as p:
        m = subprocess.Popen([ANYPERF, "stat", "-p", str(p.pid), "-I", "50", "-e", "task-clock"],
                             stderr=subprocess.PIPE, text=True, env=ENV)
        assert m.stderr.readline().startswith("#")
        m.stderr.readline()
        m.send_signal(signal.SIGINT)
        m.communicate(timeout=20)
        assert m.returncode == 0


def test_threads():
    with Running(sys.executable, "-c", THREADS) as p:
        assert p.stdout.readline() == "ready\n"
        tids = sorted(int(t) for t in os.listdir(f"/proc/{p.pid}/task"))
        report, = stat_json("-p", p.pid, "--per-thread", "-e", "task-clock", "--timeout", "300")
        assert sorted(c["tid"] for c in report["counts"]) == tids, report
        assert report["counts"][0]["comm"], report
        report, = stat_json("-t", f"{tids[0]},{tids[-1]}", "--per-thread", "-e", "task-clock",
                            "--timeout", "100")
        assert sorted(c["tid"] for c in report["counts"]) == [tids[0], tids[-1]], report
        report, = stat_json("--tid", tids[-1], "-e", "task-clock", "--timeout", "200")
        assert len(report["counts"]) == 1 and report["target"] == f"thread id '{tids[-1]}'"
        r = stat("-p", p.pid, "--per-thread", "-e", "task-clock", "--timeout", "100")
        assert f"-{tids[0]} " in r.err and f"-{tids[1]} " in r.err, r
        rows = stat("-p", p.pid, "--per-thread", "-x,", "-e", "task-clock", "--timeout",
                    "100").err.splitlines()
        assert len(rows) == len(tids) and all(len(row.split(",")) == 8 for row in rows), rows


def few_descriptors(limit, *args):
    """anyperf stat that may have so many."""
    return run("stat", *args, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE,
                                                                    (limit, limit)))


def test_too_few_descriptors_to_find_threads():
    """Nobody is taken for one who has ended, and left out."""
    for target in (["-p", os.getpid()], ["-a", "--per-thread"]):
        if "-a" in target and not may_measure_cpus():
            continue
        seen = set()
        for limit in range(4, 9):
            r = few_descriptors(limit, *target, "-x,", "-e", "cs", "true")
            seen.add(r.status)
            if r.status:
                assert r.status == 125 and re.search("descriptor is left|descriptor left|more descri",
                                                     r.err), r
            else:
                assert "-a" not in target or len(r.err.splitlines()) > 1, r
        assert seen == {0, 125}, seen


def test_a_soft_limit_is_raised_to_find_threads():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    for target in (["-p", os.getpid()], ["-a", "--per-thread"]):
        if "-a" in target and not may_measure_cpus():
            continue
        for limit in range(5, 9):
            r = run("stat", *target, "-e", "cs", "sh", "-c", "ulimit -S -n",
                    preexec_fn=lambda n=limit: resource.setrlimit(resource.RLIMIT_NOFILE,
                                                                  (n, hard)))
            assert r.status == 0 and r.out == f"{limit}\n", r


def online():
    return sorted(c for c in os.sched_getaffinity(0))


def test_cpus():
    if not may_measure_cpus():
        return
    report, = stat_json("-a", "-e", "context-switches,task-clock", "sleep", "0.2")
    assert report["target"] == "'system wide'" and "user_s" not in report
    assert counts(report)["task-clock"]["value"] > 150, report
    report, = stat_json("--all-cpus", "-A", "-e", "task-clock", "sleep", "0.1")
    cpus = [c["cpu"] for c in report["counts"]]
    assert len(cpus) == os.cpu_count() and cpus == sorted(cpus)
    report, = stat_json("-C", online()[0], "--no-aggr", "-e", "task-clock", "sleep", "0.1")
    assert [c["cpu"] for c in report["counts"]] == [online()[0]]
    assert report["target"].startswith("'CPU(s) ")
    # Whole CPUs have a clock of their own among the default events, as with perf.
    for target in (["-a"], ["-C", online()[0]]):
        assert "cpu-clock" in counts(stat_json(*target, "true")[0])
        assert "task-clock" not in counts(stat_json(*target, "true")[0])
    assert "task-clock" in counts(stat_json("true")[0])
    # -C restricts -a, as with perf.
    report, = stat_json("-a", "-C", online()[0], "-A", "-e", "task-clock", "sleep", "0.1")
    assert [c["cpu"] for c in report["counts"]] == [online()[0]], report
    report, = stat_json("--cpu", f"{online()[0]}", "-e", "task-clock", "sleep", "0.1")
    assert 80 < counts(report)["task-clock"]["value"] < 5000


def online_list():
    with open("/sys/devices/system/cpu/online", encoding="ascii") as f:
        return f.read().strip()


def test_cpus_that_are_not_there():
    """Who names them is told before anything has run, whoever he is and whatever the form."""
    said = f"there is no CPU 4000; online are {online_list()}\n"
    for cpus in ("4000", f"{online()[0]},4000", f"{online()[0]}-{online()[0]},4000-5000"):
        for more in (["-e", "cs"], ["-a"], ["-x,"], ["-j"], ["-A", "-e", "cs,task-clock"], ["-n"],
                     ["-e", "duration_time"], ["-p", os.getpid()], ["-I", "50"]):
            r = stat("-C", cpus, *more, "--", "echo", "has run", status=125)
            assert r.err == f"anyperf stat: -C: {said}" and not r.out, r
    with scratch() as d:
        path = os.path.join(d, "kept")
        with open(path, "w", encoding="ascii") as f:
            f.write("as it was")
        r = stat("-C", "0,4000", "-o", path, "--pre", "echo has run", "true", status=125)
        assert r.err.endswith(said) and not r.out, r
        r = run("record", "-C", "0,4000", "-o", path, "true")
        assert r.status == 125 and r.err == f"anyperf record: -C: {said}", r
        with open(path, encoding="ascii") as f:
            assert f.read() == "as it was"
    for text in ("x", "", "0-"):
        r = stat("-C", text, "-e", "cs", "true", status=125)
        assert f'-C: "{text}" is not a list of CPUs' in r.err, r


def parts(places, noun, *args):
    """Measures with fewer and fewer descriptors: whatever is open in some of so many places only is
    no number, in all forms, and the reason stands beside it. args has one event."""
    seen = set()
    for limit in range(4, 14):
        r = few_descriptors(limit, "-j", *args, "true")
        if r.status == 125:
            assert "descriptor" in r.err, r
            continue
        assert r.status == 0, r
        report = json.loads(r.err)
        c, = report["counts"]
        if c["status"] != "partial":
            assert places < 10 and "reason" not in c, r
            continue
        opened = c["opened_places"]
        assert c["places"] == places and 0 < opened < places and not c["metrics"], r
        assert c["reason"]["cause"] == "fd-limit" and c["reason"]["remedy"], r
        assert not {"value", "count", "raw", "per_run"} & c.keys(), r
        part = f"{opened} of {places} {noun}"
        r = few_descriptors(limit, *args, "true")
        assert r.status == 0 and re.search(rf"^ +<partial> +\S+ +# {part}$", r.err, re.M), r
        note = " ".join(r.err.split("elapsed")[1].split())
        assert "no file descriptor left" in note and "raise the hard limit" in note, r
        assert f"shows the {noun} that were counted" in note, r
        r = few_descriptors(limit, "-x,", *args, "true")
        why, row = r.err.splitlines()
        assert r.status == 0 and row.startswith("<partial>,,") and row.endswith(f",{part}"), r
        assert why.startswith("# anyperf stat: ") and f"counted for {part} only: " in why, r
        assert "no file descriptor left" in why and "raise the hard limit" in why, r
        for form in (["-x,"], []):
            r = few_descriptors(limit, "-I", "20", *form, *args, "sleep", "0.05")
            why, *rows = (line for line in r.err.splitlines() if not line.startswith("#  "))
            assert f"counted for {part} only: " in why and rows, r
            assert all("<partial>" in row and part in row for row in rows), r
        seen.add(opened)
    return seen


def test_threads_that_are_not_there():
    """Who names them is told, whatever the form: without them the sum would be another one."""
    with Running("sleep", "30") as p:
        for more in (["-e", "cs"], ["-e", "task-clock,cs"], ["-x,"], ["-j"], ["--per-thread"],
                     ["-I", "50"]):
            for tids in f"{p.pid},999999999", f"999999999,{p.pid}":
                r = run("stat", "-t", tids, *more, "--", "echo", "has run")
                assert r.status == 125 and not r.out, r
                assert "there is no process or thread 999999999" in r.err, r
                assert "partial" not in r.err and "elapsed" not in r.err, r


def test_counts_of_a_part():
    """[STAT-11]"""
    with Running(sys.executable, "-c", IDLE) as p:
        assert p.stdout.readline() == "ready\n"
        assert len(parts(20, "threads", "-p", p.pid, "-e", "page-faults")) > 1
        # A line for each of them is whole, or says that it could not be opened.
        report = json.loads(few_descriptors(11, "-j", "-p", p.pid, "--per-thread", "-e",
                                            "page-faults", "true").err)
        states = [c["status"] for c in report["counts"]]
        assert len(states) == 20 and "not-supported" in states and "partial" not in states, report
        # One that leads a group takes its members with it.
        report = json.loads(few_descriptors(11, "-j", "-p", p.pid, "-e", "{page-faults,cs}",
                                            "true").err)
        assert [c["status"] for c in report["counts"]] == 2 * ["partial"], report
        leads, member = (c["opened_places"] for c in report["counts"])
        assert 0 < member <= leads < 20, report
    if may_measure_cpus() and os.cpu_count() > 1:
        assert parts(os.cpu_count(), "CPUs", "-a", "-e", "cs")


def test_events_leave_a_descriptor():
    """What is needed when they are open is had: signals, names of threads, where CPUs belong."""
    with Running(sys.executable, "-c", IDLE) as p:
        assert p.stdout.readline() == "ready\n"
        seen = set()
        for limit in range(4, 12):
            r = few_descriptors(limit, "-j", "-p", p.pid, "--per-thread", "-e", "cs", "--timeout",
                                "20")
            seen.add(r.status)
            if r.status:
                assert r.status == 125 and re.search("descriptor (?:is )?left", r.err), r
            else:
                assert all(c["comm"] for c in json.loads(r.err)["counts"]), r
        assert 0 in seen, r
    if not may_measure_cpus():
        return
    per_core = ["-j", "-a", "--per-core", "-e", "cs", "true"]
    cores = [(c["socket"], c["die"], c["core"], c["cpus"])
             for c in json.loads(run("stat", *per_core).err)["counts"]]
    for limit in range(os.cpu_count() + 3, os.cpu_count() + 12):
        r = few_descriptors(limit, *per_core)
        if r.status:
            assert r.status == 125 and "descriptor" in r.err, r
            continue
        assert [(c["socket"], c["die"], c["core"], c["cpus"])
                for c in json.loads(r.err)["counts"]] == cores, r


def test_aggregation():
    if not may_measure_cpus():
        return
    for option, key in (("--per-core", "core"), ("--per-die", "die"), ("--per-socket", "socket"),
                        ("--per-node", "node")):
        report, = stat_json("-a", option, "-e", "task-clock", "sleep", "0.1")
        assert all(key in c for c in report["counts"]), report
        assert sum(c["cpus"] for c in report["counts"]) == os.cpu_count()
        rows = stat("-a", option, "-x,", "-e", "task-clock", "sleep", "0.1").err.splitlines()
        assert all(len(row.split(",")) == 9 for row in rows), rows
        r = stat("-a", option, "-I", "50", "--interval-count", "1", "-e", "task-clock,cs", "sleep",
                 "3", status=143)
        heading, first = r.err.splitlines()[:2]
        # Counts stand under their heading.
        assert heading.index("counts") + len("counts") == first.index(" msec"), r
    r = stat("-a", "-A", "-e", "cs,task-clock", "sleep", "0.1")
    if os.cpu_count() > 1:
        assert r.err.index("CPU1") < r.err.index("task-clock"), r


def test_everything_by_thread():
    if not may_measure_cpus():
        return
    # Processes that come and go meanwhile do not hinder it.
    churn = ["sh", "-c", "echo ready; while :; do /bin/true; done"]
    with Running(*churn) as p, Running(*churn):
        assert p.stdout.readline() == "ready\n"
        for _ in range(10):
            report, = stat_json("-a", "--per-thread", "-e", "task-clock", "sleep", "0.01")
            assert {os.getpid(), p.pid} <= {c["tid"] for c in report["counts"]}


def test_cgroup():
    if not may_measure_cpus():
        return
    with open("/proc/self/cgroup", encoding="utf-8") as f:
        groups = [line.strip().split(":", 2) for line in f]
    own = next((g[2] for g in groups if g[1] == "" or "perf_event" in g[1]), None)
    r = run("stat", "-G", "no/such/cgroup", "-a", "-e", "cs", "true")
    assert r.status == 125 and "cgroup" in r.err, r
    if own is None:
        raise Skip("no cgroup that perf could use")
    r = run("stat", "-j", "--cgroup", own.strip("/") or ".", "-e", "task-clock", TOUCH, "20000")
    assert r.status == 0 and "in cgroup" in json.loads(r.err)["target"], r


def made_cgroup():
    """A new cgroup of perf's hierarchy, as a path; or Skip."""
    top = None
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        for line in f:
            at, options = line.split()[4], line.split(" - ")[1]
            kind = options.split()[0]
            if kind == "cgroup" and "perf_event" in options:
                top = at
                break
            if kind == "cgroup2" and not top:
                top = at
    path = os.path.join(top or "/nonexistent", f"anyperf-e2e-{os.getpid()}")
    try:
        os.mkdir(path)
    except OSError as error:
        raise Skip(f"no cgroup can be made: {error}") from error
    return path


def test_a_cgroup_for_each_event():
    path = made_cgroup()
    try:
        name = os.path.basename(path)
        r = run("stat", "-x,", "-G", f"{name},/", "-e", "page-faults,page-faults,cs", TOUCH, "3000")
        rows = [line.split(",") for line in r.err.splitlines()]
        assert [row[3] for row in rows] == [name, "/", ""], r
        # Nobody was ever there.
        assert rows[0][0] == "<not counted>" and int(rows[1][0]) >= 3000, r
        report, = stat_json("-G", f"{name},,/", "-e", "cs,cs,cs", "true")
        assert [c["cgroup"] for c in report["counts"]] == [name, "", "/"], report
        r = run("stat", "-G", name, "-e", "page-faults,cs", "true")
        assert re.search(rf"page-faults +{name}", r.err) and re.search(rf" cs +{name}", r.err), r
        r = run("stat", "-G", f"{name},{name}", "-e", "cs", "true")
        assert r.status == 125 and "2 cgroups for 1 events" in r.err, r
    finally:
        os.rmdir(path)


def test_all_events_for_each_cgroup():
    path = made_cgroup()
    try:
        name = os.path.basename(path)
        report, = stat_json("--for-each-cgroup", f"{name},/", "-e",
                            "{page-faults,cs},cpu-clock,duration_time", TOUCH, "3000")
        seen = [(c["event"], c["cgroup"]) for c in report["counts"] if c["cgroup"]]
        assert seen == [(event, cgroup) for cgroup in (name, "/")
                        for event in ("page-faults", "cs", "cpu-clock")], report
        by = {(c["event"], c["cgroup"]): c for c in report["counts"]}
        assert by["page-faults", "/"]["value"] >= 3000, report
        assert by["page-faults", name]["status"] == "not-counted", report
        assert f"in cgroup '{name},/'" in report["target"], report
        # One is enough, and the usual events are events too.
        report, = stat_json("--for-each-cgroup", "/", "true")
        assert {c["cgroup"] for c in report["counts"]} == {"/"}, report
    finally:
        os.rmdir(path)
    assert "page-fautls" in stat("--for-each-cgroup", "/", "-e", "page-fautls", "true",
                                 status=125).err
    for more in (["-G", "/"], ["-p", "1"]):
        r = stat("--for-each-cgroup", "/", *more, "-e", "cs", status=125)
        assert "choose one" in r.err, r


def test_groups_are_read_together():
    report, = stat_json("-e", "{page-faults,minor-faults,major-faults}", TOUCH, "1000")
    c = counts(report)
    every, minor, major = (c[e]["count"] for e in ("page-faults", "minor-faults", "major-faults"))
    assert every == minor + major, report
    assert len({v["enabled_ns"] for v in c.values()}) == 1


def test_who_is_no_guest_cannot_be_counted_without_a_pmu():
    """The virtual PMU counts what is started under it, and it is said how."""
    if "the kernel has no CPU PMU" not in run("list", "--check", "instructions").out + run(
            "stat", "--pmu=kernel", "-e", "instructions", "true").err:
        raise Skip("the kernel counts instructions here")
    with Running(TOUCH, "spin") as p:
        begun = time.monotonic()
        for args in (["-p", p.pid, "-e", "instructions,branches"], ["-p", p.pid, "sleep", "0.1"],
                     ["-t", p.pid, "-e", "branches"],
                     ["-p", p.pid, "--timeout", "50"]):
            r = run("stat", *args)
            text = re.sub(r"\s+", " ", r.err)
            assert r.status == (125 if "-e" in args else 0), r
            assert "cannot attach to one that was not started under it: `anyperf run --session NAME -- COMMAND`" in text, r
            what = "PID" if args[0] == "-p" else "TID"
            assert f"`anyperf stat --session NAME {args[0]} {what}`" in text, r
        # Nothing was measured until an interrupt.
        assert time.monotonic() - begun < 15
        r = run("stat", "-j", "-p", p.pid, "-e", "cs,instructions", "sleep", "0.1")
        report = json.loads(r.err)
        assert report["pmu"] == {"used": "kernel",
                                 "why": "the virtual one counts only what is started under it"}, r
        assert "anyperf run --session NAME" in report["counts"][1]["reason"]["remedy"], r
        r = run("stat", "--pmu=virtual", "-p", p.pid)
        assert r.status == 125 and "anyperf run --session NAME" in r.err, r


def as_nobody(*args):
    """anyperf stat as a user who may measure but his own programs."""
    r = subprocess.run([*(["setpriv", "--reuid=65534", "--clear-groups"] if os.getuid() == 0
                          else []), ANYPERF, "stat",
                        *args], capture_output=True, text=True, env=ENV, check=False, timeout=20)
    if "setpriv" in r.stderr or r.returncode in (126, 127):
        raise Skip("cannot become another user")
    return r


def test_refusals_of_another_users_process():
    r = as_nobody("-p", "1", "-e", "cs")
    assert r.returncode == 125 and "task 1 " in r.stderr and "modifier" not in r.stderr, r


def test_the_kernels_part_alone():
    with open("/proc/sys/kernel/perf_event_paranoid", encoding="utf-8") as f:
        if int(f.read()) < 2:
            raise Skip("everybody may measure the kernel here")
    for pmu in ("kernel", "auto"):
        r = as_nobody(f"--pmu={pmu}", "--all-kernel", "-e", "page-faults", "true")
        assert r.returncode == 125 and "page-faults: counts the kernel only" in r.stderr, r
        assert ":u" not in r.stderr, r
        assert r.stderr.count("page-faults:") == 1, r


def test_refusals_of_whole_cpus():
    with open("/proc/sys/kernel/perf_event_paranoid", encoding="utf-8") as f:
        if int(f.read()) < 1:
            raise Skip("everybody may measure whole CPUs here")
    r = as_nobody("-a", "-e", "cs", "true")
    # User mode alone would not help, so it is not what is advised.
    assert r.returncode == 125 and "perf_event_paranoid" in r.stderr, r
    assert "modifier" not in r.stderr, r


def test_text_of_a_process():
    with Running(TOUCH, "spin") as p:
        r = stat("-p", p.pid, "-e", "task-clock", "--timeout", "100")
        assert f"stats for process id '{p.pid}':" in r.err and "task-clock" in table(r.err), r


if __name__ == "__main__":
    main(globals())
