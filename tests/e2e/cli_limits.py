#!/usr/bin/env python3
"""Limits (ulimit) with which a run is started: they are the programs' that it runs, as natively,
and no session's."""
import json
import os
import re
import resource
import signal
import subprocess
import time

from e2e import ANYPERF, ENV, main, scratch

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


def test_no_data_means_the_hard_limit():
    """As valgrind and who runs under it have it: the kernel takes a soft limit of 0 so."""
    program = shell("ulimit -Sd; ls / | wc -l; exit 3")
    native = limited(resource.RLIMIT_DATA, 0, None, *program)
    assert native.returncode == 3 and native.stdout.startswith("0\n"), native
    for way in WAYS:
        r = limited(resource.RLIMIT_DATA, 0, None, ANYPERF, *way, "--", *program)
        assert ran(r) == ran(native), (way, r, native)


def test_files_over_their_limit_are_named():
    with scratch() as d:
        out = d + "/out"
        for words in (["stat", "-e", "page-faults"], ["record", "-e", "page-faults"]):
            r = limited(resource.RLIMIT_FSIZE, 0, None, ANYPERF, *words, "-o", out, "--", "true")
            assert r.returncode in (2, 125) and "File too large" in r.stderr, r
            assert (out if words[0] == "stat" else "the recording") in r.stderr, r
        # A program is killed as natively.
        r = limited(resource.RLIMIT_FSIZE, 0, None, ANYPERF, "run", "--", "sh", "-c",
                    f"echo a >{out}")
        assert r.returncode == -signal.SIGXFSZ, r


def test_no_memory_for_a_model():
    """The program runs and is counted, and it is said that nothing is modeled."""
    # How much it takes is the machine's: LL of some has 300 MB.
    command = [ANYPERF, "stat", "--pmu=virtual", "--machine=zen4", "-j", "-e",
               "instructions:u,cycles:u", "--", *shell("ls / >/dev/null; exit 3")]
    seen = set()
    kinds = [resource.RLIMIT_DATA]
    # A sanitizer takes terabytes.
    if not limited(resource.RLIMIT_AS, 200 << 20, 200 << 20, ANYPERF, "version").returncode:
        kinds.append(resource.RLIMIT_AS)
    for kind in kinds:
        # Somewhere between these limits it has just what it needs.
        for mb in range(200, 1200, 25):
            r = limited(kind, mb << 20, mb << 20, *command)
            assert r.returncode == 3, (kind, mb, r)
            report = json.loads(r.stderr)
            instructions, cycles = (c["value"] for c in report["counts"])
            lacks = report["pmu"].get("unmodeled", False)
            assert instructions > 100000, (kind, mb, r)
            assert lacks or cycles > instructions / 10, (kind, mb, r)
            seen.add((kind, lacks))
    assert len(seen) == 2 * len(kinds), seen
    command.remove("-j")
    r = limited(resource.RLIMIT_DATA, 200 << 20, 200 << 20, *command)
    said = " ".join(r.stderr.split())
    assert "no memory for the model of the machine: raise the limit" in said, r


def soft_and_hard(pid, name):
    with open(f"/proc/{pid}/limits", encoding="ascii") as f:
        return next(line[26:].split()[:2] for line in f if line.startswith(name))


def session_for(words):
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as f:
                said = f.read().split(b"\0")
            if said[0] == b"anyperf-session" and words in said:
                return int(name)
        except OSError:
            pass  # it has gone
    raise AssertionError("there is no session")


def test_a_limit_of_time_is_the_programs():
    """A session works for all programs of a run: it does not end by SIGXCPU for what one of them
    may use."""
    mark = f"mark-{os.getpid()}-{time.monotonic_ns()}"
    script = "ulimit -St; read -r line; while :; do :; done"
    guest = subprocess.Popen([ANYPERF, "run", "--count", "-j", "--", "sh", "-c", script, mark],
                             env=ENV, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE,
                             preexec_fn=lambda: resource.setrlimit(
                                 resource.RLIMIT_CPU,
                                 (1, resource.getrlimit(resource.RLIMIT_CPU)[1])))
    assert guest.stdout.readline() == "1\n"
    soft, hard = soft_and_hard(session_for(mark.encode()), "Max cpu time")
    assert soft == hard, (soft, hard)
    _, err = guest.communicate("go on\n", timeout=45)
    assert guest.returncode == -signal.SIGXCPU and '"instructions"' in err, (guest.returncode, err)


main(globals())
