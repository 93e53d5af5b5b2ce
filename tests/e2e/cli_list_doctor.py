#!/usr/bin/env python3
"""anyperf list, doctor, and version for a bug report."""
import json
import os
import re
import shutil
import subprocess

from e2e import ANYPERF, ENV, HAS_RUNTIME, TOOLS, Skip, main, run, scratch


def events(*args):
    r = run("list", "--json", *args)
    document = json.loads(r.out)
    assert document["schema"] == "anyperf-list-1", r
    return document["events"], r.status


def test_kinds_and_globs():
    everything, status = events()
    assert status == 0
    names = {e["name"] for e in everything}
    assert {"cycles", "page-faults", "L1-dcache-load-misses", "task-clock"} <= names | \
        {e.get("alias") for e in everything}
    for word, kind in (("hw", "hardware"), ("sw", "software"), ("cache", "cache"),
                       ("tool", "tool")):
        got, _ = events(word)
        assert got and {e["kind"] for e in got} == {kind}, word
        assert all(e["description"] for e in got), word
    got, _ = events("*-faults")
    assert {"page-faults", "minor-faults", "major-faults"} <= {e["name"] for e in got}
    assert all(e["name"].endswith("-faults") or e.get("alias", "").endswith("-faults") for e in got)
    two, _ = events("minor-faults", "major-faults")
    assert len(two) == 2
    assert [e["name"] for e in events("U*_time")[0] if e["kind"] == "tool"] == ["user_time"]
    mixed, _ = events("sw", "*clock*")
    assert {e["name"] for e in mixed} == {"cpu-clock", "task-clock"}


def test_text():
    r = run("list", "sw")
    assert r.status == 0 and r.out.startswith("Software events:\n"), r
    assert "page-faults OR faults" in r.out, r
    assert max(map(len, r.out.splitlines())) < 120


def test_names():
    r = run("list", "--names", "sw")
    assert "page-faults" in r.out.split() and "faults" in r.out.split()
    assert run("list", "-n", "sw").out == r.out
    assert all(" " not in line for line in run("list", "-n").out.splitlines())


def test_every_listed_name_is_understood():
    names = run("list", "-n", "sw").out.split()
    r = run("stat", "-j", "-e", ",".join(names), "true")
    assert r.status == 0 and len(json.loads(r.err)["counts"]) == len(names), r


def test_nothing_matches():
    r = run("list", "pagefaults")
    assert r.status == 1 and "did you mean" in r.err and "page-faults" in r.err, r
    r = run("list", "zzzzzzzzz")
    assert r.status == 1 and "did you mean" not in r.err, r


def test_check():
    got, status = events("--check", "sw")
    assert all("opens" in e for e in got)
    failing = [e for e in got if not e["opens"]]
    assert status == (1 if failing else 0)
    for e in failing:
        assert e["reason"]["why"], e
    # Where the kernel may not be measured they are opened for user mode, and why is said.
    opened = {e["name"]: e for e in got if e["opens"]}
    assert {"page-faults", "task-clock"} <= set(opened), got
    for e in opened.values():
        assert e.get("user_only", False) == ("reason" in e), e
        assert "reason" not in e or e["reason"]["cause"] == "paranoid", e
    r = run("list", "-c", "page-faults")
    assert r.status == 0 and "opens" in r.out, r
    assert ("user mode only" in r.out) == ("reason" in opened["page-faults"]), r
    # What fails is not offered to the shell.
    assert "page-faults" in run("list", "-nc", "page-faults").out
    r = run("list", "-c", "hw")
    assert ("fails:" in r.out) == (r.status == 1), r


def test_marks():
    got, status = events("hw", "sw", "pmu")
    assert status == 0 and all("opens" not in e for e in got)
    by = {e["name"]: "modeled" if "modeled" in e else e["counted_by"] for e in got}
    assert by["page-faults"] == "kernel", by
    text = run("list", "hw", "sw", "pmu").out
    for name, who in by.items():
        letter = (who or "-")[0]
        assert f"\n{letter} {name}" in text, (name, who, text)
    modeled = {e["name"]: e.get("modeled") for e in got}
    if by["cpu-cycles"] != "kernel" and HAS_RUNTIME:
        assert by["cpu-cycles"] == "modeled" and "m the virtual PMU does by a model" in text, text
        assert modeled["cpu-cycles"] == modeled["branch-misses"] == "host", modeled
        assert modeled["instructions"] is None and by["instructions"] == "virtual", by
    assert "counted_by" not in events("form")[0][0]
    assert not text.count("\nk tool") and "\n  user_time" in run("list", "tool").out
    # Names are given as before: a mark is none.
    assert "page-faults" in run("list", "-n", "sw").out.splitlines()


def test_check_agrees_with_stat():
    got = events("--check", "hw", "pmu")[0] + \
        events("--check", "L1-dcache-*", "page-faults", "cpu-clock")[0]
    if HAS_RUNTIME:
        # Somebody counts these everywhere.
        assert {e["name"] for e in got if e["opens"]} >= {"instructions", "branch-instructions"}
    for e in got:
        r = run("stat", "-j", "-e", e["name"], "true")
        report = json.loads(r.err)
        count, = report["counts"]
        # Of what the machine draws, for one, there is no telling whose it was.
        if "counts whole CPUs" in count.get("reason", {}).get("why", ""):
            report = json.loads(run("stat", "-a", "-j", "-e", e["name"], "true").err)
            count, = report["counts"]
        assert (count["status"] != "not-supported") == e["opens"], (e, report)
        assert not e["opens"] or report["pmu"]["used"] == e["counted_by"], (e, report)
        # What fails is said alike.
        if not e["opens"]:
            assert count["reason"] == e["reason"], (e, report)


def test_check_as_another_user():
    if os.getuid() != 0:
        return
    with open("/proc/sys/kernel/perf_event_paranoid", encoding="utf-8") as f:
        if int(f.read()) != 2:
            raise Skip("perf_event_paranoid is not 2")
    r = subprocess.run(["setpriv", "--reuid=65534", "--clear-groups", ANYPERF, "list", "-cj",
                        "task-clock"],
                       capture_output=True, text=True, env=ENV, check=False, timeout=20)
    if "setpriv" in r.stderr or r.returncode in (126, 127):
        raise Skip("cannot become another user")
    e, = json.loads(r.stdout)["events"]
    assert r.returncode == 0 and e["opens"] and e["user_only"], r
    assert e["reason"]["cause"] == "paranoid", r


def test_doctor():
    r = run("doctor", "--json")
    document = json.loads(r.out)
    assert document["schema"] == "anyperf-doctor-1"
    facts = {f["id"]: f for f in document["facts"]}
    text = run("doctor")
    assert text.status == r.status == (1 if any(f["state"] == "bad" for f in facts.values()) else 0)
    assert json.loads(run("doctor", "-j").out)["facts"][0]["id"] == document["facts"][0]["id"]
    for f in facts.values():
        assert f["title"] and f["state"] in ("info", "good", "limited", "bad"), f
        assert f["title"] in text.out, f
        if f["state"] in ("limited", "bad"):
            assert f["remedy"] or f["effect"], f
    with open("/proc/sys/kernel/perf_event_paranoid", encoding="utf-8") as f:
        assert f.read().strip() in facts["paranoid"]["value"]


def test_a_runtime_that_cannot_run():
    if not HAS_RUNTIME:
        return
    with scratch() as d:
        for folder in ("cli", "rt"):
            os.mkdir(os.path.join(d, folder))
        tool = shutil.copy(ANYPERF, os.path.join(d, "cli"))
        built = os.path.join(os.path.dirname(ANYPERF), "../rt/anyperf-rt")
        runtime = os.path.join(d, "rt/anyperf-rt")

        def asked(*words):
            r = subprocess.run([tool, *words], env=ENV, text=True, capture_output=True, timeout=60,
                               check=False)
            return r.returncode, " ".join((r.stdout + r.stderr).split())

        for what, says in (("mode", "the runtime anyperf-rt cannot be executed: Permission denied"),
                           ("bytes", "the runtime anyperf-rt is another file")):
            shutil.copy(built, runtime)
            if what == "mode":
                os.chmod(runtime, 0o644)
            else:
                os.truncate(runtime, 0)
            status, text = asked("doctor")
            assert says in text and "virtual PMU: works" not in text, text
            status, text = asked("run", "--", "true")
            assert status == 125 and "anyperf-rt" in text, (status, text)


def test_version_for_a_bug_report():
    v = json.loads(run("version", "-j").out)
    text = run("version", "--build-options").out
    assert text.startswith(f"anyperf {v['version']}\n"), text
    assert v["cpus"] == os.cpu_count() and v["cpu"] and v["compiler"] in text, v
    for said in [v["commit"] or "not known", v["kernel"], v["machine"], v["cpu"],
                 ", ".join(v["pmus"]) or "none"]:
        assert said in text, (said, text)
    devices = "/sys/bus/event_source/devices"
    assert v["pmus"] == sorted(os.listdir(devices) if os.path.isdir(devices) else []), v
    git = subprocess.run(["git", "-C", TOOLS, "rev-parse", "HEAD"], capture_output=True, text=True,
                         check=False)
    assert re.fullmatch("[0-9a-f]{12,}", v["commit"]) or git.returncode, v
    if HAS_RUNTIME:
        assert v["runtime"].endswith("/anyperf-rt") and v["runtime"] in text, v
        none = {"ANYPERF_RUNTIME": "/bin/echo"}
        assert json.loads(run("version", "-j", env=none).out)["runtime"] is None
        assert "not anyperf's runtime" in run("version", "--build-options", env=none).out


if __name__ == "__main__":
    main(globals())
