#!/usr/bin/env python3
"""What the session refuses to programs, told to their user: anyperf run -v and -j, and the line
that a command which failed leaves."""
import json
import os
import re
import shutil
import subprocess

from e2e import ANYPERF, ENV, Skip, main, run, scratch

REFUSED = os.environ["E2E_REFUSED"]
HINT = r"anyperf run: {} perf calls? (was|were) refused; `anyperf run -v` says which and why\n"


def lines(r):
    """What is said of refusals, without anyperf's name and with * for the pid."""
    found = []
    for line in r.err.splitlines():
        m = re.fullmatch(r"anyperf \w+: (\w[\w.-]*)\[(\d+)\]: (.*)", line)
        if m:
            assert int(m[2]) > 1, line
            found.append(f"{m[1]}[*]: {m[3]}")
    return found


def refused(r):
    return json.loads(r.err.splitlines()[-1])["refused"]


def perf():
    found = shutil.which("perf")
    if not found or run("run", "--", found, "stat", "true").status:
        raise Skip("perf is not there, or not for this kernel")
    return found


def test_perf_is_told_why():
    r = run("run", "-v", "--machine=none", "--", perf(), "stat", "-e", "cycles", "true")
    assert r.status == 0, r
    said = lines(r)
    assert len(said) == 1, r
    assert said[0].startswith("perf[*]: cycles: cpu-cycles depends on how the machine executes code"), r
    assert said[0].endswith("; name a machine, as --machine=host, or use --pmu=kernel on one with a PMU"), r
    assert "<not supported>" in r.err, r


def test_perf_that_succeeds_is_left_alone():
    r = run("run", "--machine=none", "--", perf(), "stat", "-e", "cycles", "true")
    assert r.status == 0 and "refused" not in r.err and "anyperf" not in r.err, r


def test_perf_that_fails_leaves_a_line():
    # perf tries cycles in one mode and precision after the other, and then cpu-clock; for
    # cache-misses it has nothing else.
    with scratch() as d:
        record = [perf(), "record", "-e", "cycles,cache-misses", "-o", d + "/data", "true"]
        r = run("run", "--machine=none", "--", *record)
        assert r.status != 0 and re.search(HINT.format(r"\d+"), r.err), r
        n = int(re.search(r"(\d+) perf calls were refused", r.err)[1])
        assert n >= 2 and "depends on how" not in r.err, r
        r = run("run", "-v", "--machine=none", "--", *record)
        said = lines(r)
        # What was tried in vain of one event is one line.
        assert len([s for s in said if "cpu-cycles depends" in s]) == 1, r
        assert len(said) < n and sum(int(t) for t in re.findall(r"\((\d+) times\)", r.err)) <= n, r


def test_perf_is_told_that_a_sum_does_not_sample():
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        # Fills of L1D; loads that hit it.
        code = "r143" if "AuthenticAMD" in f.read() else "r1d1"
    with scratch() as d:
        r = run("run", "-v", "--", perf(), "record", "-e", code, "-o", d + "/data", "true")
        assert r.status and "is counted by the model of host as a sum" in r.err, r


def test_json_has_each():
    r = run("run", "-j", "--", REFUSED, "bad", "kernel", "bad", "filter")
    assert r.status == 0 and r.err.count("\n") == 1, r
    report = json.loads(r.err)
    assert report["refused_calls"] == 4, r
    bad, kernel, fltr = report["refused"]
    process = report["processes"][0]
    assert bad["comm"] == "refused" and bad["pid"] == process["pid"], r
    assert bad["event"] == "0:0x4d:u" and bad["calls"] == 2, r
    assert bad["reason"]["cause"] == "bad-value" and bad["reason"]["errno"] == 22, r
    assert bad["reason"]["why"] == "0:0x4d:u: attr.config 77 is no generic hardware event; they are 0 to 9", r
    assert kernel["event"] == "instructions" and kernel["calls"] == 1, r
    assert kernel["reason"]["cause"] == "kernel-mode" and kernel["reason"]["errno"] == 13, r
    assert "--kernel-mode=ignore" in kernel["reason"]["remedy"], r
    assert fltr["event"] == "instructions:u" and "SET_FILTER" in fltr["reason"]["why"], r
    assert refused(run("run", "-j", "--", REFUSED, "good")) == [], r
    # Into a file, and the text of -v beside it.
    with scratch() as d:
        r = run("run", "-v", "-j", "-o", d + "/json", "--", REFUSED, "bad")
        assert len(lines(r)) == 1, r
        with open(d + "/json", encoding="utf-8") as f:
            assert len(json.load(f)["refused"]) == 1, r


def test_the_same_twice_is_one_line():
    r = run("run", "-v", "--", REFUSED, "bad", "bad", "kernel")
    assert lines(r)[0] == ("refused[*]: 0:0x4d:u: attr.config 77 is no generic hardware event; they are 0 to 9 "
                           "(2 times)"), r
    assert lines(r)[1].startswith("refused[*]: instructions: counts the kernel too"), r
    assert len(lines(r)) == 2, r
    # A child of the same name is the same program.
    assert len(lines(run("run", "-v", "--", REFUSED, "bad", "fork", "bad"))) == 1
    with scratch() as d:
        other = shutil.copy(REFUSED, d + "/other")
        r = run("run", "-v", "--", "sh", "-c", f"{REFUSED} bad; {other} bad")
        assert [s.split("[")[0] for s in lines(r)] == ["refused", "other"], r


def test_one_line_if_the_command_failed():
    r = run("run", "--", REFUSED, "bad", "bad", "fail")
    assert r.status == 7 and re.fullmatch(HINT.format(2), r.err), r
    r = run("run", "--", REFUSED, "bad", "fail")
    assert r.status == 7 and re.fullmatch(HINT.format(1), r.err), r
    assert run("run", "--", REFUSED, "bad").err == ""
    assert run("run", "--", REFUSED, "good", "fail").err == ""
    assert run("run", "--", "false").err == ""
    # By a signal is a failure too.
    r = run("run", "--", "sh", "-c", f"{REFUSED} bad; kill -9 $$")
    assert r.status == -9 and re.fullmatch(HINT.format(1), r.err), r
    # With -v the lines themselves; JSON alone stays alone.
    r = run("run", "-v", "--", REFUSED, "bad", "fail")
    assert len(lines(r)) == 1 and "says which" not in r.err, r
    r = run("run", "-j", "--", REFUSED, "bad", "fail")
    assert r.err.count("\n") == 1 and len(refused(r)) == 1, r


def test_more_than_the_list_has_room_for():
    words = [str(n) for n in range(60)]
    with scratch() as d:
        for n in words:
            os.symlink(REFUSED, f"{d}/p{n}")
        r = run("run", "-v", "--", "sh", "-c", f"for n in {' '.join(words)}; do {d}/p$n bad; done")
        assert len(lines(r)) == 20, r
        assert "anyperf run: 40 more calls were refused\n" in r.err, r


def test_each_command_of_a_session_has_its_own():
    name = f"test-refused-{os.getpid()}"
    script = f"{REFUSED} bad; echo here; read -r end; {REFUSED} kernel"
    first = subprocess.Popen([ANYPERF, "run", "-j", "--session", name, "--", "sh", "-c", script],
                             env=ENV, text=True, stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert first.stdout.readline() == "here\n"
    r = run("run", "-v", "--session", name, "--", REFUSED, "filter")
    assert len(lines(r)) == 1 and "SET_FILTER" in lines(r)[0], r
    # The same again, of another command: its entry is another one.
    r = run("run", "-v", "--session", name, "--", REFUSED, "filter", "bad")
    assert len(lines(r)) == 2 and not re.search(r"\(\d+ times\)", r.err), r
    _, err = first.communicate("end\n")
    assert [e["event"] for e in json.loads(err)["refused"]] == ["0:0x4d:u", "instructions"], err


def test_stat_tells_as_well():
    r = run("stat", "-v", "--pmu=virtual", "-e", "instructions:u", REFUSED, "bad", "bad")
    assert lines(r) == ["refused[*]: 0:0x4d:u: attr.config 77 is no generic hardware event; they are 0 to 9 "
                        "(2 times)"], r
    r = run("stat", "-j", "--pmu=virtual", "-e", "instructions:u", REFUSED, "bad")
    assert len(refused(r)) == 1, r
    assert "[" not in run("stat", "--pmu=virtual", "-e", "instructions:u", REFUSED, "bad").err.split("refused")[0]


def test_a_name_is_printed_as_text():
    with scratch() as d:
        odd = shutil.copy(REFUSED, d + "/a\x1b[31m")
        r = run("run", "-v", "--", odd, "bad")
        # The command as it was given stands in the heading.
        said = r.err.replace(odd, "")
        assert "\x1b" not in said and "a?[31m[" in said and " a?[31m " in said, r


if __name__ == "__main__":
    main(globals())
