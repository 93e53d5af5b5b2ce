#!/usr/bin/env python3
"""The ways to count a command say one number: anyperf stat, anyperf run --count, and perf stat as a
guest. Addresses decide about the paths of string functions, so the runs are deterministic; and what
starts the program decides about its environment, which the C library walks through, so that is
perf's in all of them."""
import json
import os
import resource
import shutil
import subprocess
import sys

from e2e import ANYPERF, Skip, main

PROGRAMS = {kind: os.environ["E2E_" + kind.upper()]
            for kind in ("static", "dynamic", "forking", "threaded")}
EVENTS = ("instructions:u", "branches:u")


def perf():
    path = shutil.which("perf")
    if not path:
        raise Skip("perf is not installed")
    return path


def environment():
    """What a program finds that perf starts: perf adds to it."""
    if not shutil.which("perf"):
        return None
    seen = subprocess.run([perf(), "stat", "-o", "/dev/null", "-e", "dummy", "env", "-0"],
                          capture_output=True, check=True).stdout
    return dict(v.split(b"=", 1) for v in seen.split(b"\0") if v)


def starts(*command, env):
    r = subprocess.run([ANYPERF, *command], capture_output=True, check=False, env=env)
    assert r.returncode == 0, r
    return r.stderr.decode()


def by_stat(env, *program):
    report = json.loads(starts("stat", "-j", "--deterministic", "-e", ",".join(EVENTS), "--",
                               *program, env=env))
    counts = {c["event"]: c["count"] for c in report["counts"]}
    return tuple(counts[e] for e in EVENTS)


def by_run(env, *program):
    report = json.loads(starts("run", "-j", "--deterministic", "--", *program, env=env))
    threads = [t for p in report["processes"] for t in p["threads"]]
    for name, total in report["total"].items():
        assert sum(t[name] for t in threads) == total, report
    return report["total"]["instructions"], report["total"]["branches"]


def by_perf(*program):
    lines = starts("run", "--deterministic", "--", perf(), "stat", "-x,", "-e", ",".join(EVENTS),
                   "--", *program, env=None).splitlines()
    counts = {fields[2]: int(fields[0]) for fields in (line.split(",") for line in lines)}
    return tuple(counts[e] for e in EVENTS)


def test_stat_and_run():
    env = environment()
    for kind, program in PROGRAMS.items():
        counted = by_stat(env, program)
        assert counted[0] > counted[1] > 100, (kind, counted)
        assert by_run(env, program) == counted, (kind, counted)
    # All that a shell starts, in the foreground and in the background.
    script = ["sh", "-c", '"$@"; "$@" & wait; exit 0', "sh", PROGRAMS["static"]]
    assert by_run(env, *script) == by_stat(env, *script)


def test_perf():
    perf()
    env = environment()
    for kind, program in PROGRAMS.items():
        assert by_perf(program) == by_stat(env, program), kind


def test_few_descriptors():
    """A session that has none left refuses a fork, rather than losing what the child counts."""
    script = """
import os
r, w = os.pipe()
children = refused = 0
for _ in range(80):
    try:
        if not os.fork():
            os.close(w)
            os.read(r, 1)
            os._exit(0)
        children += 1
    except OSError:
        refused += 1
os.close(r)
os.close(w)
for _ in range(children):
    os.wait()
print(children, refused)
"""
    # What is left over for the last child differs.
    for limit in range(150, 158):
        r = subprocess.run([ANYPERF, "run", "-j", "--", sys.executable, "-S", "-c", script],
                           capture_output=True, check=True,
                           preexec_fn=lambda n=limit: resource.setrlimit(resource.RLIMIT_NOFILE,
                                                                         (n, n)))
        children, refused = map(int, r.stdout.split())
        report = json.loads(r.stderr)
        assert children > 5 and refused and len(report["processes"]) == children + 1, (r.stdout,)
        counted = sum(t["instructions"] for p in report["processes"] for t in p["threads"])
        assert counted == report["total"]["instructions"], (counted, report["total"])


def test_the_counters_that_programs_find_are_theirs():
    """--counters limits the PMU of the programs; what counts from outside takes none of it."""
    env, program = environment(), PROGRAMS["dynamic"]
    limited = ["run", "--counters=1", "-j", "--deterministic", "--", program]
    total = json.loads(starts(*limited, env=env))["total"]
    assert (total["instructions"], total["branches"]) == by_stat(env, program), total
    r = starts("run", "--counters=2", "--count", "-o", "/dev/null", "--", ANYPERF, "stat", "-j",
               "-e", "{instructions:u,branches:u}", program, env=env)
    assert [c["running_percent"] for c in json.loads(r)["counts"]] == [100, 100], r


main(globals())
