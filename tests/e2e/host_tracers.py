#!/usr/bin/env python3
"""Tracers that are no guests: they look at a guest, which goes on, and its counts stay exact."""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

from e2e import ANYPERF, Skip, main

WATCHED = os.environ["E2E_WATCHED"]
FAULTS = os.environ["E2E_FAULTS"]
STOPS = os.environ["E2E_STOPS"]
SELFSTEP = os.environ["E2E_SELFSTEP"]
TIMES = "100000000"


def need(tool):
    if not shutil.which(tool):
        raise Skip(f"there is no {tool}")


def start(*before, times=TIMES):
    return subprocess.Popen([*before, ANYPERF, "run", "--", WATCHED, times],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True)


def end(p):
    """What its threads have counted."""
    p.stdin.write("x")
    p.stdin.close()
    out, err = p.stdout.read(), p.stderr.read()
    assert p.wait(timeout=60) == 7 and not err, (p.returncode, out, err)
    counts = [int(n) for n in out.split()]
    assert len(counts) == 2 and counts[0] > 0, counts
    return counts


def line(p):
    return p.stdout.readline().rstrip()


def guest_of(p):
    """Its pid: the launcher waits for the program."""
    with open(f"/proc/{p.pid}/task/{p.pid}/children", encoding="ascii") as f:
        for child in f.read().split():
            if os.readlink(f"/proc/{child}/exe").endswith("/watched"):
                return child
            with open(f"/proc/{child}/comm", encoding="ascii") as comm:
                if comm.read().strip() == "watched":
                    return child
    raise AssertionError("no guest")


def undisturbed(times=TIMES):
    p = start(times=times)
    assert (line(p), line(p)) == ("working", "waiting")
    return end(p)


def gdb(pid, *before):
    r = subprocess.run([*before, "gdb", "-nx", "-batch", "-p", pid, "-ex", "info threads",
                        "-ex", "thread apply all bt 3", "-ex", "detach"], capture_output=True,
                       text=True, timeout=60, check=False)
    if "ptrace: Operation not permitted" in r.stderr:
        raise Skip("ptrace is not allowed")
    assert r.returncode == 0, r
    assert len(re.findall(r"^Thread \d+ ", r.stdout, re.M)) >= 1, r
    return r.stdout


def shows(calls, *patterns):
    for pattern in patterns:
        assert re.search(pattern, calls), (pattern, calls[-2000:])


def test_gdb_while_it_works():
    need("gdb")
    expected = undisturbed()
    p = start()
    assert line(p) == "working"
    assert "LWP" in gdb(guest_of(p))
    assert line(p) == "waiting"
    gdb(guest_of(p))
    assert end(p) == expected


def test_faults_of_a_tracee():
    """gdb tries at its start whether a child of its own can return to data."""
    seen = [subprocess.run([*before, FAULTS], capture_output=True, text=True, timeout=30,
                           check=True)
            for before in ([], [ANYPERF, "run", "--"], [ANYPERF, "stat", "-o", "/dev/null",
                                                        "--pmu=virtual", "-e", "cycles:u", "--"])]
    assert "2 handled" in seen[0].stdout, seen
    assert all(r.stdout == seen[0].stdout for r in seen), seen


def test_stops_that_are_the_runtimes():
    """A guest that traces is not told of the faults and kicks by which traces and samples work."""
    native = subprocess.run([STOPS], capture_output=True, text=True, check=True).stdout
    assert native.count("stop 137f\nstop a7f\nstop 57f\nend 2a00\n") == 2, native
    for args in (["run"], ["run", "--count"], ["stat"], ["stat", "--model-beside=no"],
                 ["stat", "--model-windows=no"], ["record", "-o", "/dev/null"]):
        r = subprocess.run([ANYPERF, *args, "--", STOPS], capture_output=True, text=True,
                           check=True)
        assert r.stdout == native, (args, r)


def test_a_program_that_steps_itself():
    """A signal, a kick or a sample amid an instruction costs it no trap; a string has its own."""
    for args in (["run"], ["stat"], ["record", "-o", "/dev/null"],
                 ["record", "-c", "57", "-o", "/dev/null"]):
        r = subprocess.run([ANYPERF, *args, "--", SELFSTEP], capture_output=True, text=True,
                           check=True)
        assert r.stdout == "1403 to 1403 traps\n", (args, r)


def test_gdb_under_another_run():
    """It is shown the program's registers, and so its frames."""
    need("gdb")
    expected = undisturbed()
    p = start(times="20000000000")
    assert line(p) == "working"
    guest = guest_of(p)
    frames = gdb(guest, ANYPERF, "run", "--")
    os.kill(int(guest), signal.SIGKILL)
    p.communicate(timeout=60)
    assert len(re.findall(r"^#0 .* in work \(", frames, re.M)) == 2, frames
    assert re.search(r"^#2 .* in main \(", frames, re.M), frames
    p = start()
    assert line(p) == "working"
    gdb(guest_of(p), ANYPERF, "run", "--")
    assert line(p) == "waiting"
    assert end(p) == expected


TICKS = """import os, signal
n = 0
def came(*_):
    global n
    n += 1
signal.signal(signal.SIGALRM, came)
signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
print("working", flush=True)
while n < 1000:
    os.getppid()
signal.setitimer(signal.ITIMER_REAL, 0)
print("done", flush=True)
"""


def test_gdb_that_keeps_a_trap_of_ours():
    """It takes it for its own breakpoint's: the signal is delivered by another one."""
    need("gdb")
    with subprocess.Popen([ANYPERF, "run", "--", sys.executable, "-c", TICKS],
                          stdout=subprocess.PIPE, text=True) as p:
        assert line(p) == "working"
        with open(f"/proc/{p.pid}/task/{p.pid}/children", encoding="ascii") as f:
            guest = f.read().split()[0]
        r = subprocess.run(["gdb", "-nx", "-batch", "-p", guest,
                            "-ex", "handle SIGALRM nostop noprint pass", "-ex", "break signal_trap",
                            "-ex", "continue", "-ex", "return", "-ex", "delete", "-ex", "detach"],
                           stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
                           check=False)
        try:
            out, _ = p.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            os.kill(int(guest), signal.SIGKILL)
            raise
        if "Breakpoint 1, signal_trap" not in r.stdout:
            raise Skip("gdb has not come to it")
        assert (out, p.returncode) == ("done\n", 0), (out, p.returncode, r)


def test_strace_of_what_runs():
    """What it shows of calls are the program's, and calls of the runtime between them."""
    need("strace")
    expected = undisturbed("1000")
    p = start(times="1000")
    assert (line(p), line(p)) == ("working", "waiting")
    with tempfile.NamedTemporaryFile("r") as log:
        s = subprocess.Popen(["strace", "-f", "-p", guest_of(p), "-o", log.name],
                             stderr=subprocess.PIPE, text=True)
        if "attached" not in s.stderr.readline():
            raise Skip("ptrace is not allowed")
        assert end(p) == expected
        s.communicate(timeout=60)
        calls = log.read()
    # It was in its read already.
    shows(calls, r'write\(1, "\d+ \d+\\n"', r"exited with 7")


def test_strace_around_everything():
    need("strace")
    expected = undisturbed("1000")
    with tempfile.NamedTemporaryFile("r") as log:
        p = start("strace", "-f", "-o", log.name, times="1000")
        assert (line(p), line(p)) == ("working", "waiting")
        assert end(p) == expected
        calls = log.read()
    shows(calls, r'write\(1, "working\\n", 8', r'write\(1, "waiting\\n", 8', r'"x", 1\) += 1',
          r"exited with 7")


main(globals())
