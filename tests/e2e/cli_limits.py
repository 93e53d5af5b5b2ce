#!/usr/bin/env python3
"""Limits (ulimit) with which a run is started: they are the programs' that it runs, as natively,
and no session's."""
import re
import resource
import subprocess

from e2e import ANYPERF, ENV, main

WAYS = (["run"], ["run", "--count"], ["stat", "--pmu=virtual", "-e", "instructions:u"])


def limited(kind, soft, hard, *command):
    """What a command does with that limit; None: the hard limit as it is."""
    def limit():
        most = resource.getrlimit(kind)[1]
        resource.setrlimit(kind, (soft, most if hard is None else hard))

    return subprocess.run(command, env=ENV, text=True, capture_output=True, check=False, timeout=45,
                          preexec_fn=limit)


def shell(text):
    return ["sh", "-c", text]


def ran(r):
    return r.returncode, r.stdout


def test_few_descriptors_are_the_programs():
    """What anyperf itself has open does not count: the program is told its limit, has as many, and
    they have the numbers that they have natively."""
    program = shell("ulimit -Sn; ls /proc/self/fd; exit 3")
    for soft in (5, 6, 8, 12, 16, 60, 300):
        native = limited(resource.RLIMIT_NOFILE, soft, None, *program)
        assert ran(native) == (3, f"{soft}\n0\n1\n2\n3\n"), native
        for way in WAYS:
            r = limited(resource.RLIMIT_NOFILE, soft, None, ANYPERF, *way, "--", *program)
            assert ran(r) == ran(native), (soft, way, r)


def test_too_few_descriptors():
    """Where no more can be had it is said, and nothing has run then."""
    program = shell("ulimit -Sn; exit 3")
    refused = 0
    for hard in range(4, 24):
        for way in WAYS:
            r = limited(resource.RLIMIT_NOFILE, hard, hard, ANYPERF, *way, "--", *program)
            if ran(r) == (3, f"{hard}\n"):
                continue
            refused += 1
            assert r.returncode in (125, 126) and not r.stdout, (hard, way, r)
            assert re.search("open files|descriptor", r.stderr), (hard, way, r)
    assert refused, "all of it works with four descriptors"


def test_no_session_for_want_of_descriptors():
    """The reason is that, and not that there is no program for it."""
    seen = set()
    for hard in range(6, 20):
        r = limited(resource.RLIMIT_NOFILE, hard, hard, ANYPERF, "run", "--paranoid", "1", "--",
                    "cat", "/proc/sys/kernel/perf_event_paranoid")
        seen.add(r.returncode)
        if r.returncode == 0 and r.stdout == "1\n":
            continue
        assert re.search("open files|descriptor", r.stderr) and "install" not in r.stderr, (hard, r)
    assert 0 in seen, seen


main(globals())
