#!/usr/bin/env python3
"""Windows in which the model sees a program: what is exact, what is the same each time, what is
said of it."""
import json
import os
import shutil
import subprocess

from e2e import ANYPERF, ENV, Skip, main, run, scratch, stat, stat_json

BESIDES = os.environ["E2E_BESIDES"]
HERD = os.environ["E2E_HERD"]
EXACT = "instructions:u", "branches:u"
CACHES = "branch-misses:u", "L1-dcache-loads:u", "L1-dcache-load-misses:u", "dTLB-load-misses:u"
EVENTS = ",".join((*EXACT, "cycles:u", *CACHES))


def counted(windows, *program, beside="no"):
    report, = stat_json("--deterministic", "--model-beside", beside, "--machine", "zen4",
                        "--model-windows", windows, "-e", EVENTS, "--", *program)
    assert report["pmu"].get("windows") == {"no": None, "20K/1M": "20000/1000000"}.get(
        windows, report["pmu"].get("windows")), report["pmu"]
    return {c["event"]: c["value"] for c in report["counts"]}


def test_what_is_counted():
    whole = counted("no", BESIDES, "burn", "2000000")
    for windows in "20K/1M", "auto":
        seen = counted(windows, BESIDES, "burn", "2000000")
        # What no model is needed for is exact.
        assert all(seen[e] == whole[e] for e in EXACT), (whole, seen)
        # The program does the same all the time.
        for event in "cycles:u", "branch-misses:u", "L1-dcache-loads:u":
            assert abs(seen[event] - whole[event]) <= whole[event] / 20, (windows, whole, seen)
        assert seen != whole, seen


def test_in_proportion():
    """It ends where windows stand for 7 % less than it has executed."""
    report, = stat_json("--deterministic", "--machine", "zen4", "--model-windows", "20K/1M", "-e",
                        "branches:u,branch-loads:u", "--", BESIDES, "burn", "1070000")
    exact, estimated = (c["value"] for c in report["counts"])
    assert 0 < abs(estimated - exact) < exact / 100, report


def test_the_same_each_time():
    for program in ["burn", "1000000"], ["forks"], ["exec"]:
        first, *others = (counted("20K/1M", BESIDES, *program) for _ in range(3))
        assert others == [first] * 2, (first, others)


def test_beside_the_program():
    in_line, beside = (counted("20K/1M", BESIDES, "burn", "1000000", beside=b)
                       for b in ("no", "yes"))
    assert in_line == beside, (in_line, beside)


def test_windows_without_gaps():
    # Cycles depend on how code is cut into blocks, which are shorter where there are windows.
    whole, seen = (counted(w, BESIDES, "burn", "1000000") for w in ("no", "50K/50K"))
    assert all(whole[e] == seen[e] for e in EXACT + CACHES), (whole, seen)


def test_a_short_program_is_seen_whole():
    whole, seen = (counted(w, "true") for w in ("no", "20K/1M"))
    assert all(whole[e] == seen[e] for e in EXACT + CACHES), (whole, seen)


MANY = "i=0; while [ $i -lt 60 ]; do /bin/true; i=$((i + 1)); done"


def test_many_processes():
    """The model sees the first of them, and of the others fewer and fewer."""
    # A shell does something else if a child ends before it has begun to wait.
    whole, one, other = (counted(w, HERD, "execs", "60") for w in ("no", "auto", "auto"))
    assert one == other, (one, other)
    assert all(one[e] == whole[e] for e in EXACT), (whole, one)
    assert one != whole, one
    for event in "cycles:u", *CACHES:
        assert abs(one[event] - whole[event]) <= whole[event] / 10, (event, whole, one)
    # Who has said how much is to be seen gets that.
    seen = counted("20K/1M", HERD, "execs", "60")
    assert all(seen[e] == whole[e] for e in EXACT + CACHES), (whole, seen)


def test_one_of_many():
    """A process that events are opened for is seen, whatever its place among others."""
    with scratch() as d:
        out = os.path.join(d, "out")
        r = stat("--deterministic", "--machine", "zen4", "--model-windows", "auto", "-e",
                 "branch-misses:u", "--", "sh", "-c",
                 f"{MANY}; {ANYPERF} stat -x, -o {out} -e branch-misses:u true")
        assert not r.status, r
        with open(out, encoding="ascii") as f:
            inner = int(next(line for line in f if "branch-misses" in line).split(",")[0])
    alone = counted("no", "true")["branch-misses:u"]
    assert abs(inner - alone) <= alone / 10, (inner, alone)


def test_a_long_process_among_many():
    """It is seen in windows though its beginning may not be."""
    whole, seen = (counted(w, "sh", "-c", f"{MANY}; {BESIDES} burn 2000000")
                   for w in ("no", "auto"))
    for event in "cycles:u", "branch-misses:u", "L1-dcache-loads:u":
        assert abs(seen[event] - whole[event]) <= whole[event] / 10, (event, whole, seen)


def behind_others(*command):
    """Six children are before @command: it is not seen."""
    others = "for i in 1 2 3 4 5 6; do /bin/true; done"
    return "sh", "-c", f"{others}; {' '.join(command)}; :"


def test_the_work_of_who_is_not_seen():
    """He does next to nothing himself, what he starts does little each, and together it is all."""
    each = f"for i in $(seq 40); do {BESIDES} burn 20000; done"
    for command in ([HERD, "forks", "40"], [HERD, "threads", "12"], [f"sh -c '{each}'"]):
        whole, seen = (counted(w, *behind_others(*command)) for w in ("no", "auto"))
        for event in "cycles:u", "branch-misses:u":
            assert abs(seen[event] - whole[event]) <= whole[event] / 6, (command, whole, seen)


def test_who_counts_for_nobody_else():
    """It was drawn of two, and there is one only."""
    program = "sh", "-c", f"for i in 1 2 3 4 5; do /bin/true; done; {BESIDES} burn 50000; :"
    whole = counted("no", *program)
    report, = stat_json("--deterministic", "--machine", "zen4", "--model-windows", "auto", "-e",
                        "instructions:u,cycles:u", "--", *program)
    assert report["pmu"]["estimated"], report["pmu"]
    cycles = report["counts"][1]["value"]
    assert abs(cycles - whole["cycles:u"]) <= whole["cycles:u"] / 4, (report, whole)


def said_by(*command):
    r = run("run", "--machine", "zen4", "--", *command)
    assert not r.status, r
    return [[int(n) for n in line.split()] for line in r.out.splitlines()]


def test_each_child_is_counted():
    """By a supervisor, with events that stay: whatever its place, and for itself alone."""
    said = said_by(HERD, "supervises", "20")
    assert len(said) == 20, said
    assert all(26000 < misses < 36000 for _, misses in said), said


def test_threads_that_begin_to_count_at_once():
    """The model is made for the first of them. What the others do meanwhile is seen."""
    for _ in range(6):
        said = said_by(HERD, "measures", "4")
        assert len(said) == 4, said
        assert all(140000 < misses < 160000 for _, misses in said), said


def test_threads_that_turn_the_model_on():
    """All of them get there at once, and one changes the code of the others."""
    many = f"for i in $(seq 150); do {HERD} threads 4 || exit 1; done"
    r = stat("--machine", "zen4", "--model-windows", "auto", "-e", "instructions:u,cycles:u",
             "--", "sh", "-c", many)
    assert not r.status and "a bug" not in r.err, r


def test_predictors_see_more():
    """Much code, which predictors learn slowly: with what caches see 2/5 too many."""
    if not shutil.which("gcc"):
        raise Skip("no gcc")
    cc1 = subprocess.run(["gcc", "-print-prog-name=cc1"], capture_output=True, text=True,
                         check=True).stdout.strip()
    with scratch() as d:
        source = os.path.join(d, "source.c")
        with open(source, "w", encoding="ascii") as f:
            for i in range(6):
                print(f"int f{i}(int a, int b, char *p) {{ int s = 0; for (int i = 0; i < a; i++)"
                      f" switch ((a * i + b) % {3 + i}) {{ case 0: s += p[i] * {i}; break;"
                      f" case 1: s -= b; break; case 2: if (s > b) s /= 3; else s *= 5; break;"
                      f" default: s ^= a << (i & 7); }} return s; }}", file=f)
        program = cc1, "-quiet", "-O1", "-o", "/dev/null", source
        whole, seen = (counted(w, *program)["branch-misses:u"] for w in ("no", "auto"))
    assert abs(seen - whole) <= whole / 4, (whole, seen)


def test_threads():
    whole, seen = (counted(w, BESIDES, "turns", "3") for w in ("no", "20K/1M"))
    for event in EXACT:
        assert abs(whole[event] - seen[event]) <= whole[event] / 200, (whole, seen)


def on_one_cpu():
    """There is an event for each CPU, and each has a rest of its period when the program ends."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def test_who_samples_sees_all():
    with scratch() as d:
        seen = []
        for windows in "no", "20K/1M":
            data = os.path.join(d, windows.replace("/", "-"))
            subprocess.run([ANYPERF, "run", "--deterministic", "--machine", "zen4",
                            "--model-windows", windows, "--",
                            ANYPERF, "record", "-q", "-o", data, "-e", "branch-misses:u", "-c",
                            "200", "--", BESIDES, "burn", "1000000"], env=ENV, check=True,
                           capture_output=True, timeout=120, preexec_fn=on_one_cpu)
            report = run("report", "--stdio", "-i", data)
            seen.append([line for line in report.out.splitlines() if "amples" in line])
        assert seen[0] == seen[1] and seen[0], seen


def sampled(data, *args):
    """What stands for how much: the sum of the periods of each command of a recording."""
    r = subprocess.run([ANYPERF, "record", "-q", "-o", data, "--machine=zen4", *args], env=ENV,
                       check=True, capture_output=True, timeout=120)
    assert not r.stderr, r.stderr
    report = json.loads(run("report", "--json", "-s", "comm", "-i", data).out)
    return report, {row["comm"]: row["period"] for row in report["rows"]}


def test_samples_here_and_there():
    """At a frequency they are taken in windows, and stand for what is in between."""
    with scratch() as d:
        data = os.path.join(d, "data")
        for event in "cycles:u", "branch-misses:u":
            seen = {}
            for windows in "no", "auto":
                report, comms = sampled(data, "-e", event, "--model-windows", windows, "--",
                                        BESIDES, "burn", "2000000")
                assert report.get("windows") == (None if windows == "no" else "auto"), report
                seen[windows] = comms[os.path.basename(BESIDES)]
            # The last period is not over.
            assert abs(seen["auto"] - seen["no"]) < seen["no"] / 5, (event, seen)
        # Without it windows are the default.
        assert sampled(data, "-e", "cycles:u", "--", "true")[0]["windows"] == "auto"
        # Each of many processes has samples; for counts hardly any is seen.
        sampled(data, "-e", "cycles:u", "-F", "10000", "--", HERD, "execs", "30")
        r = subprocess.run([ANYPERF, "script", "-F", "pid", "-i", data], env=ENV,
                           capture_output=True, text=True, check=True)
        assert len(set(r.stdout.split())) > 30, r.stdout


def test_exact_without_windows():
    r = run("record", "--exact", "--model-windows=auto", "--", "true")
    assert r.status == 125 and "sees all" in r.err, r


def test_what_is_said():
    r = stat("--deterministic", "--machine", "zen4", "--model-windows", "20K/1M", "-e",
             "branch-misses:u", "--", BESIDES, "burn", "1000000")
    assert "modeled: zen4, estimated from windows (20000/1000000): branch-misses:u" in r.err, r.err
    r = run("run", "--machine", "zen4", "--model-windows", "auto", "--", "cat",
            "/sys/bus/event_source/devices/cpu/caps/machine_windows")
    assert r.out == "auto\n", r
    r = run("run", "--machine", "zen4", "--model-windows=no", "--", "ls",
            "/sys/bus/event_source/devices/cpu/caps")
    assert "machine_windows" not in r.out, r


def test_what_is_wrong():
    for text in ("", "x", "5", "20K", "20K/", "20K/1Mx", "0/5", "20K/0", "999/9990", "20K/50K",
                 "20K/2000M", "20K/2G", "-1/5", "99999999999999999999/1M", "1M/20K"):
        r = run("stat", "--machine", "zen4", "--model-windows", text, "-e", "cycles:u", "--",
                "true")
        assert r.status and "--model-windows" in r.err, (text, r)
        large = text in ("20K/2000M", "20K/2G", "99999999999999999999/1M")
        assert ("more than 2^30" in r.err) == large, r


def test_who_joins_has_what_the_session_has():
    for first, second, joins in (("20K/1M", "no", False), ("20K/1M", "20K/1M", True),
                                 ("no", "no", True), ("no", "auto", False)):
        name = f"windows{os.getpid()}"
        outer = subprocess.Popen([ANYPERF, "run", "--session", name, "--machine", "zen4",
                                  "--model-windows", first, "--", "cat"], env=ENV, text=True,
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        outer.stdin.write("begun\n")
        outer.stdin.flush()
        outer.stdout.readline()
        r = run("run", "--session", name, "--model-windows", second, "--", "true")
        outer.communicate(timeout=60)
        assert (not r.status) == joins, (first, second, r)
        assert joins or "decides about --model-windows" in r.err, r


main(globals())
