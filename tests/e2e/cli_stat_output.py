#!/usr/bin/env python3
"""The forms of output: text, intervals, CSV, JSON, files, colour; all but text are parsed back."""
import json
import os
import pty
import re
import shutil
import subprocess

from e2e import (ANYPERF, ENV, HAS_RUNTIME, Skip, counts, main, plain, run, scratch, stat,
                 stat_json, table)

TOUCH = os.environ["E2E_TOUCH"]
DEFAULT = ["task-clock", "context-switches", "cpu-migrations", "page-faults", "cycles",
           "instructions",
           "branches", "branch-misses"]
CACHES = ["L1-dcache-loads", "L1-dcache-load-misses", "LLC-loads", "LLC-load-misses"]
MORE = ["L1-icache-loads", "L1-icache-load-misses", "dTLB-loads", "dTLB-load-misses", "iTLB-loads",
        "iTLB-load-misses"]


def test_default_events():
    def names(*options):
        return [plain(c["event"]) for c in stat_json("--pmu=kernel", *options, "true")[0]["counts"]]
    assert names() == DEFAULT
    assert names("-d") == DEFAULT + CACHES
    assert names("--detailed", "-d") == DEFAULT + CACHES + MORE
    assert names("-ddd")[len(DEFAULT + CACHES + MORE):] == ["L1-dcache-prefetches",
                                                            "L1-dcache-prefetch-misses"]
    assert names("-e", "cs", "--event", "page-faults", "-d") == ["cs", "page-faults"] + CACHES


def test_text():
    """[STAT-09, STAT-10]"""
    r = stat("-e", "task-clock,page-faults", TOUCH, "1000")
    lines = r.err.split("\n")
    assert lines[0] == "" and lines[1] == f" Performance counter stats for '{TOUCH} 1000':", r
    assert lines[2] == " (kernel PMU: it can count what is asked for)" and lines[3] == "", r
    assert re.match(r"^ {0,16}[\d.]+ msec task-clock(:u {21}| {23})# +[\d.]+ CPUs utilized$",
                    lines[4]), lines[4]
    assert re.match(r"^ *\d{4}      page-faults(:u {20}| {22})# +[\d.]+ [KM]?/sec$",
                    lines[5]), lines[5]
    assert re.match(r"^ {1,17}\d+\.\d{9} seconds time elapsed$", lines[7]), lines[7]
    assert re.match(r"^ {1,17}\d+\.\d{6,9} seconds user$", lines[9]) and "seconds sys" in lines[10]
    assert not re.search(r"[ \t]$", r.err, re.M), "blanks at the end of a line"
    assert 1000 <= int(table(r.err)["page-faults"][0]) < 1200


def test_who_counts_and_why():
    """One line of text behind the heading, and JSON always."""
    own = str(os.getpid())
    for args in (["-e", "cs", "true"], ["true"], ["-p", own, "sleep", "0.1"],
                 ["--all-kernel", "-e", "instructions", "true"],
                 ["-n", "true"], ["-e", "duration_time", "true"], ["--pmu=kernel", "true"],
                 ["-e", "cs", "-r", "2", "true"],
                 ["-e", "cs", "-I", "50", "sleep", "0.1"]):
        r = run("stat", "-j", *args)
        if r.status == 125:  # kernel mode is not for every user
            assert "--all-kernel" in args and "paranoid" in r.err, r
            continue
        for line in r.err.splitlines():
            pmu = json.loads(line)["pmu"]
            assert pmu["used"] in ("kernel", "virtual") and pmu["why"], r
        r = stat(*args)
        named = re.findall(r"^ \((kernel|virtual) PMU: (.+)\)$", r.err, re.M)
        none = "-n" in args or "duration_time" in args or "-I" in args
        assert named == ([] if none else [(pmu["used"], pmu["why"])]), r
    assert stat_json("-e", "cs", "true")[0]["pmu"]["why"] == "it can count what is asked for"


def test_refused_events_say_why():
    """[STAT-11]"""
    r = stat("-e", "task-clock,cycles,instructions,mem:0x0/8:x", "true")
    for line in r.err.splitlines():
        m = re.match(r" *<not supported> +(\S+)$", line)
        if m:
            note = re.sub(r"\s+", " ", r.err.split("seconds time elapsed")[1])
            assert m[1] in note, r
    refused = [c for c in stat_json("-e", "cycles,instructions,cs", "true")[0]["counts"]
               if c["status"] == "not-supported"]
    for c in refused:
        assert c["reason"]["why"] and c["reason"]["cause"] and c["reason"]["errno"] > 0, c
        assert "value" not in c, c
    # One note per cause, not one per event.
    if len(refused) == 2:
        r = stat("-e", "cycles,instructions", "true")
        assert r.err.count(refused[0]["reason"]["remedy"][:30]) <= 1, r


SPIN = ["sh", "-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"]


def test_tool_events():
    tools = ["duration_time", "user_time", "system_time"]
    pmus = {"kernel": "task-clock", "virtual": "instructions"}
    for pmu, counter in list(pmus.items())[:2 if HAS_RUNTIME else 1]:
        report = stat_json(f"--pmu={pmu}", "-e", "duration_time," + counter, "-e",
                           "user_time,system_time", "--",
                           *SPIN)[0]
        # In their order among the others, and the times that are printed anyhow.
        assert [c["event"].split(":")[0] for c in report["counts"]] == \
            ["duration_time", counter, "user_time", "system_time"], report
        got = {c["event"]: c for c in report["counts"]}
        assert all(got[t]["unit"] == "ns" and got[t]["status"] == "ok" for t in tools), report
        assert abs(got["duration_time"]["count"] / 1e9 - report["elapsed_s"]) < 1e-8, report
        assert abs(got["user_time"]["count"] / 1e9 - report["user_s"]) < 1e-8, report
        assert abs(got["system_time"]["count"] / 1e9 - report["sys_s"]) < 1e-8, report
    # Alone they need no counter. Of runs it is the mean, of intervals the parts of the whole.
    report = stat_json("-e", ",".join(tools), "-r", "3", "true")[0]
    assert len(report["counts"][0]["per_run"]) == 3, report
    *parts, whole = stat_json("-I", "20", "--summary", "-e", ",".join(tools), "--", *SPIN)
    assert whole["part"] == "summary", whole
    for i in range(3):
        assert sum(p["counts"][i]["count"]
                   for p in parts) == whole["counts"][i]["count"], (parts, whole)
    # Of something else than a command only the duration is known.
    report = stat_json("-e", ",".join(tools), "-p", str(os.getpid()), "true")[0]
    assert [c["status"] for c in report["counts"]] == ["ok", "not-supported",
                                                       "not-supported"], report
    assert "task-clock" in report["counts"][1]["reason"]["remedy"], report
    for wrong, why in (("{task-clock,user_time}", "outside the braces"),
                       ("task-clock,user_time:u", "no modifiers"),
                       ("duration_time,,task-clock", "missing beside a comma")):
        r = run("stat", "-e", wrong, "true")
        assert r.status == 125 and why in r.err, r


def test_filter():
    r = run("stat", "-e", "sched:sched_switch", "true")
    if r.status or "<not supported>" in r.err:
        assert re.search("tracefs|tracepoint|perf_event_paranoid|no event", r.err), r
        return
    every, none, both = (stat_json("-e", "sched:sched_switch", *more, "--", "sleep",
                                   "0.01")[0]["counts"]
                         for more in ([], ["--filter", "prev_pid == 0"],
                                      ["--filter", "prev_pid == 0", "-e",
                                       "duration_time,sched:sched_switch",
                                       "--filter", "prev_pid != 0"]))
    assert every[0]["count"] > 0 and none[0]["count"] == 0, (every, none)
    assert both[0]["count"] == 0 and both[2]["count"] > 0, both
    for wrong, why in ((["-e", "sched:sched_switch", "--filter", "prev_pd == 0"], "format file"),
                       (["-e", "task-clock", "--filter", "prev_pid == 0"], "only tracepoints"),
                       (["--filter", "prev_pid == 0"], "no -e|there is none")):
        r = run("stat", *wrong, "true")
        assert r.status == 125 and re.search(why, r.err), r


def test_options_of_perf_that_are_not_here():
    for option, why in (("-Mipc", "tables of events"), ("--metrics=ipc", "tables of events"),
                        ("--topdown", "tables"),
                        ("-T", "cpu/tx-start/"), ("-g", "braces"), ("-b", "BPF")):
        r = run("stat", option, "true")
        assert r.status == 125 and why in r.err and "did you mean" not in r.err, r


def csv(*options, sep=","):
    r = stat(*options)
    return [line.split(sep) for line in r.err.splitlines()]


def test_csv():
    rows = csv("-x,", "-e", "task-clock,page-faults", TOUCH, "1000")
    assert [len(row) for row in rows] == [7, 7], rows
    assert float(rows[0][0]) > 0 and rows[0][1] == "msec" and plain(rows[0][2]) == "task-clock"
    assert rows[0][6] == "CPUs utilized"
    assert 1000 <= int(rows[1][0]) < 1200 and plain(rows[1][2]) == "page-faults"
    assert rows[1][4] == "100.00"
    assert int(rows[1][3]) > 0 and rows[1][6].endswith("/sec")
    rows = csv("--field-separator", ";", "-e", "page-faults", "true", sep=";")
    assert len(rows[0]) == 7
    rows = csv("-x\\t", "-e", "page-faults", "true", sep="\t")
    assert len(rows[0]) == 7
    rows = csv("-x,", "-r3", "-e", "page-faults", TOUCH, "100")
    assert len(rows[0]) == 8 and re.fullmatch(r"[\d.]+%", rows[0][3]), rows
    # The name is the one that was asked for, also where only user mode can be counted.
    rows = csv("-x,", "-e", "page-faults,page-faults:u", "true")
    assert [row[2] for row in rows] == ["page-faults", "page-faults:u"], rows
    if HAS_RUNTIME:
        rows = csv("--pmu=virtual", "-x,", "-e", "instructions,branches:u", "true")
        assert [row[2] for row in rows] == ["instructions", "branches:u"], rows
    rows = csv("-x,", "-D", "60000", "-e", "page-faults", "true")
    assert [plain(f) for f in rows[0]] == ["<not counted>", "", "page-faults", "0", "100.00", "",
                                           ""], rows


def test_json_numbers_are_numbers():
    report, = stat_json("--json", "-e", "task-clock,page-faults", TOUCH, "1000")
    assert report["schema"] == "anyperf-stat-1" and report["part"] == "whole"
    assert report["runs"] == 1
    assert report["command"] == [TOUCH, "1000"] and report["exit_status"] == 0
    for key in ("elapsed_s", "user_s", "sys_s"):
        assert isinstance(report[key], float), key
    faults = counts(report)["page-faults"]
    assert faults["status"] == "ok"
    assert 1000 <= faults["count"] == faults["value"] == faults["raw"] < 1200
    assert faults["running_percent"] == 100 and faults["running_ns"] == faults["enabled_ns"] > 0
    clock = counts(report)["task-clock"]
    assert clock["unit"] == "msec" and abs(clock["value"] - clock["count"] / 1e6) < 1e-6
    assert clock["metrics"][0]["unit"] == "CPUs utilized"


def documented():
    with open(os.path.join(os.path.dirname(__file__), "../../doc/json.md"), encoding="utf-8") as f:
        return f.read()


def keys(value):
    if isinstance(value, dict):
        for k, v in value.items():
            yield k
            yield from keys(v)
    elif isinstance(value, list):
        for v in value:
            yield from keys(v)


def test_json_is_documented():
    text = documented()
    for args in (["stat", "-j", "-r", "2", "-e", "cs,cycles", "true"],
                 ["stat", "-j", "-I", "50", "-e", "cs", "sleep",
                 "0.1"], ["run", "-j", "true"], ["list", "--json", "--check", "hw"],
                 ["doctor", "--json"], ["version", "--json"]):
        if args[0] == "run" and not HAS_RUNTIME:
            continue
        r = run(*args)
        for line in (r.err if args[0] in ("stat", "run") else r.out).splitlines():
            document = json.loads(line)
            assert f"`{document['schema']}`" in text, document["schema"]
            for key in keys(document):
                assert f"`{key}`" in text, key


def test_intervals():
    reports = stat_json("-I", "100", "--interval-count", "3", "-e", "task-clock", "sleep", "30",
                        status=128 + 15)
    assert [r["interval"] for r in reports] == [1, 2, 3]
    assert {r["part"] for r in reports} == {"interval"}
    for i, r in enumerate(reports):
        assert r["at_s"] >= 0.1 * (i + 1), r
    # Their sum is the summary.
    reports = stat_json("--interval-print", "50", "--summary", "-e", "page-faults", TOUCH, "2000",
                        "child")
    parts = [counts(r)["page-faults"] for r in reports]
    assert reports[-1]["part"] == "summary"
    assert sum(p.get("count", 0) for p in parts[:-1]) == parts[-1]["count"], parts
    r = stat("-I100", "--interval-count=2", "-e", "cs", "sleep", "5", status=128 + 15)
    lines = r.err.splitlines()
    assert lines[0] == "#           time             counts unit events" and len(lines) == 3, r
    for line in lines[1:]:
        assert re.match(r"^ {5}0\.\d{9} +(\d+|<not counted>) {6}cs", line), line
    r = stat("-I", "50", "--interval-count", "1", "--interval-clear", "-e", "cs", "sleep", "5",
             status=128 + 15)
    assert r.err.startswith("\033[H\033[2J"), r
    rows = csv("-I", "50", "-x,", "--summary", "-e", "cs", "sleep", "0.12")
    assert float(rows[0][0]) >= 0.05 and plain(rows[0][3]) == "cs", rows
    assert rows[-1][0].strip() == "summary", rows
    rows = csv("-I", "50", "-x,", "--summary", "--no-csv-summary", "-e", "cs", "sleep", "0.12")
    assert len(rows[-1]) == 7, rows


def test_files():
    with scratch() as d:
        path = os.path.join(d, "out")
        r = stat("-o", path, "-e", "cs", "true")
        assert not r.err, r
        with open(path, encoding="utf-8") as f:
            first = f.read()
        assert first.startswith("# started on ") and "Performance counter stats" in first
        stat("--append", "--output", path, "-x,", "-e", "cs", "true")
        with open(path, encoding="utf-8") as f:
            both = f.read()
        assert both.startswith(first) and both.count("# started on ") == 2
        stat("-j", "-o", path, "-e", "cs", "true")
        with open(path, encoding="utf-8") as f:
            json.load(f)
        r = stat("-o", os.path.join(d, "no/such"), "-e", "cs", "true", status=125)
        assert "cannot write to" in r.err, r
        # As perf takes it: the stream that it would be without -o.
        r = stat("-o", "-", "-e", "cs", "true", cwd=d)
        assert r.err.startswith("\n Performance counter stats") and not r.out, r
        r = stat("-x,", "-o", "-", "-e", "cs", "true", cwd=d)
        assert re.fullmatch(r"\d+,,cs(:u)?,.*\n", r.err) and not os.path.exists(f"{d}/-"), r
        assert "--append" in stat("--append", "-o", "-", "true", status=125, cwd=d).err
    r = stat("--log-fd", "1", "-e", "cs", "true")
    assert "Performance" in r.out and not r.err, r
    r = stat("--log-fd", "900", "-e", "cs", "true", status=125)
    assert "descriptor 900" in r.err, r
    if os.path.exists("/dev/full"):
        r = stat("-o", "/dev/full", "-e", "cs", "true", status=125)
        assert "cannot write the counts" in r.err, r
        r = stat("-o", "/dev/full", "-e", "cs", "sh", "-c", "exit 4", status=4)
        assert "cannot write the counts" in r.err, r


def on_terminal(*args, env=None):
    """What anyperf prints when stderr is a terminal."""
    master, slave = pty.openpty()
    subprocess.run([ANYPERF, *args], stderr=slave, stdin=subprocess.DEVNULL, check=False,
                   env={**ENV, "TERM": "xterm", **(env or {})}, timeout=60)
    os.close(slave)
    text = b""
    while True:
        try:
            got = os.read(master, 65536)
        except OSError:
            break
        if not got:
            break
        text += got
    os.close(master)
    return text.decode()


def test_colour():
    # An event that cannot be opened is dimmed; cycles may be countable here, this never is.
    args = ("stat", "-D", "60000", "-e", "cs", "true")
    assert "\033[2m" in on_terminal(*args)
    assert "\033" not in on_terminal(*args, env={"NO_COLOR": "1"})
    assert "\033[2m" in on_terminal(*args, env={"NO_COLOR": ""})
    assert "\033" not in on_terminal(*args, env={"TERM": "dumb"})
    assert "\033" not in stat(*args[1:]).err
    assert "\033" not in stat("-o", "/dev/stdout", *args[1:]).out


def test_thousands():
    """[STAT-07]"""
    locales = subprocess.run(["locale", "-a"], capture_output=True, text=True,
                             check=False).stdout.split()
    grouped = next((name for name in locales if name.startswith("en_")), None)
    if grouped:
        r = stat("-B", "-e", "page-faults", TOUCH, "2000", env={"LC_ALL": grouped})
        assert re.search(r"2,\d{3} +page-faults", r.err), r
        r = stat("--no-big-num", "-e", "page-faults", TOUCH, "2000", env={"LC_ALL": grouped})
        assert re.search(r"2\d{3} +page-faults", r.err), r
    # The C locale has none; machine-readable forms never have.
    assert re.search(r"2\d{3} +page-faults", stat("--big-num", "-e", "page-faults", TOUCH,
                                                  "2000").err)
    assert re.match(r"2\d{3},", stat("-x,", "--no-big-num", "-e", "page-faults", TOUCH, "2000").err)


def test_decimal_point():
    """All numbers of a table in one locale, as perf has it; a point in what programs read."""
    if not shutil.which("localedef"):
        raise Skip("no localedef to make a locale with")
    with scratch() as d:
        made = subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", f"{d}/de_DE.UTF-8"],
                              capture_output=True, text=True, check=False)
        if made.returncode:
            raise Skip(f"localedef makes no de_DE: {made.stderr}")
        env = {"LOCPATH": d, "LC_ALL": "de_DE.UTF-8"}
        for how in ([], ["-r", "3", "--table"], ["-I", "20"]):
            r = stat("-e", "task-clock,page-faults", *how, TOUCH, "20000", env=env)
            text = "\n".join(line for line in r.err.splitlines() if "#" not in line[:12]
                             and "Performance" not in line and "PMU" not in line)
            assert not re.search(r"\d\.\d\d\b|\d\.\d{4}", text), r
            assert re.search(r"\d,\d+ (seconds|CPUs)", text), r
            assert how == ["-I", "20"] or re.search(r" 20\.\d{3} +page-faults", text), r
        r = stat("-x;", "-e", "task-clock", "true", env=env)
        assert "," not in r.err and "." in r.err, r


def test_verbose():
    r = stat("-v", "-e", "page-faults", TOUCH, "1000")
    assert re.search(r"^page-faults(:u)?: 1\d{3} \d+ \d+$", r.err, re.M), r
    loud = stat("-v", "--verbose", "-e", "page-faults", "true")
    assert len(loud.err) > len(stat("-v", "-e", "page-faults", "true").err), loud


def test_scale():
    # Software events are never multiplexed: both ways give the count as read.
    for option in ("--no-scale", "--scale"):
        c = counts(stat_json(option, "-e", "page-faults", TOUCH, "1000")[0])["page-faults"]
        assert c["count"] == c["raw"] and c["status"] == "ok", c


def test_modes():
    r = run("stat", "-j", "--all-user", "-e", "page-faults", TOUCH, "1000")
    user = json.loads(r.err)["counts"][0]
    assert user["status"] == "ok" and user["value"] >= 1000, r
    # What touches memory in user mode faults there: the kernel's own are those of the execve. A
    # count of user mode that leaves out user mode would be 0, and is never an answer.
    r = run("stat", "-j", "--all-kernel", "-e", "page-faults", TOUCH, "1000")
    if r.status == 0:
        kernel = json.loads(r.err)["counts"][0]
        assert kernel["event"] == "page-faults" and 0 < kernel["value"] < 100, r
    else:
        assert r.status == 125 and "counts the kernel only" in r.err, r
        assert "sysctl kernel.perf_event_paranoid=1" in r.err, r
        assert ":u" not in r.err, r
    r = run("stat", "-j", "--all-kernel", "-e", "instructions,branches", "true")
    if r.status == 0:
        for c in json.loads(r.err)["counts"]:
            assert not c["event"].endswith(":u"), c
            assert (c["status"] == "not-supported" or c["value"] > 0), c
            if c["status"] == "not-supported":
                assert "anyperf run" not in c["reason"]["remedy"], c
    else:
        assert r.status == 125 and "paranoid" in r.err, r


def test_cpus_utilized_follows_the_clock():
    report, = stat_json("--timeout", "300", "-e", "task-clock", TOUCH, "spin", status=128 + 15)
    c = counts(report)["task-clock"]
    assert abs(c["metrics"][0]["value"] - c["count"] / 1e9 / report["elapsed_s"]) < 1e-4, report


def test_options_that_change_nothing():
    """perf's, which scripts give; that the opposite is asked for is told."""
    same = ["--no-merge", "--hybrid-merge", "--no-metric-only", "--metric-no-group",
            "--metric-no-merge", "--metric-no-threshold"]
    r = stat("-x,", *same, "-e", "page-faults", "true")
    assert re.fullmatch(r"\d+,,page-faults(:u)?,\d+,100.00,,\n", r.err), r


def test_metric_only():
    """A heading and a line, as perf prints them, with the numbers of the same run's counts."""
    quiet = stat("--metric-only", "--pmu=kernel", "-e", "task-clock,page-faults", "true").err
    assert "no metric" in quiet and "page-faults" not in quiet and "elapsed" in quiet, quiet
    for wrong in (["-r", "2"], ["-a", "--per-thread"]):
        assert "--metric-only" in stat("--metric-only", *wrong, "true", status=125).err
    document = stat_json("--metric-only", "--pmu=kernel", "-e", "page-faults", "true")[0]
    assert document["counts"] == [], document
    text = stat("-I", "20", "--metric-only", "-e", "page-faults", "sleep", "0.1").err
    assert text.count("no metric") == 1 and "page-faults" not in text, text


def test_quiet():
    for option in ("--quiet", "-q"):
        for command in (["sh", "-c", "exit 3"], ["sh", "-c", "kill -TERM $$"]):
            r = run("stat", option, "-e", "page-faults", *command)
            assert r.status in (3, 143) and not r.err and not r.out, r
    assert "no directory of PATH" in stat("-q", "no-such-program-anywhere", status=127).err
    assert "--quiet" in stat("-q", "-o", "x", "true", status=125).err


if __name__ == "__main__":
    main(globals())
