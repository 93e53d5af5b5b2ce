#!/usr/bin/env python3
"""anyperf top: what runs now, as one table after the other, or in its place on a terminal."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

from e2e import ANYPERF, ENV, HAS_RUNTIME, Skip, main, run

SPIN = os.environ["E2E_SPIN"]
USER = "cpu-clock:u"


class Running:
    """A program that burns CPU time until it is left."""

    def __enter__(self):
        self.p = subprocess.Popen([SPIN, "1000000"])
        time.sleep(0.1)
        return self.p

    def __exit__(self, *_):
        self.p.kill()
        self.p.wait()


def top(*args):
    r = run("top", *args)
    if r.status and re.search("perf_event_paranoid|seccomp|CAP_PERFMON|capabilit|security module",
                              r.err):
        raise Skip("the kernel lets nobody sample that here")
    assert r.status == 0, r
    return r.out


def test_a_process():
    with Running() as p:
        for target in ("-p", "-t"):
            out = top("-e", USER, target, p.pid, "-d", "1", "-n", "2", "-E", "3")
            tables = out.count("# Overhead")
            assert tables == 2, out
            assert re.search(r"^ +\d+\.\d\d% +\d+  spin +spin +\[\.\] burn$", out, re.M), out
            assert max(len(t.splitlines()) for t in out.split("\n\n")) <= 4 + 3, out
        out = top("-e", USER, "-g", "-F", "200", "-p", p.pid, "-d", "1", "-n", "1")
        assert re.search(r"Children.*\n#\n(.*\n)*? +1?\d\d\.\d\d%.*\[\.\] main\n", out), out
        out = top("-e", "cpu-clock:u", "-c", "10000000", "-p", p.pid, "-d", "1", "-n", "1")
        assert "burn" in out, out


def test_the_machine():
    with Running():
        for target in ([], ["-a"], ["-C", "0"]):
            out = top("-e", "cpu-clock", *target, "-d", "1", "-n", "1")
            assert "samples of cpu-clock" in out and "%" in out, out


def test_it_ends_with_what_it_watches():
    with subprocess.Popen([SPIN, "300"]) as p:
        r = run("top", "-e", USER, "-p", p.pid)
    assert r.status == 0 and "burn" in r.out or "perf_event" in r.err, r


def on_terminal(args, keys, term):
    """Runs top on a terminal of its own; @keys are pairs of what is waited for and what is typed
    then. What it wrote, its status, and whether the terminal is as it was."""
    leader, follower = pty.openpty()
    # Else what it writes is as wide as the terminal, which has no size.
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    before = termios.tcgetattr(follower)
    out = b""
    # Before it writes anything nothing can be typed; after its end the terminal must stay open.
    with subprocess.Popen([ANYPERF, "top", *args], stdin=follower, stdout=follower,
                          stderr=follower, env={**ENV, "TERM": term},
                          start_new_session=True) as t:
        end = time.monotonic() + 30
        seen = 0
        while time.monotonic() < end:
            if select.select([leader], [], [], 0.1)[0]:
                out += os.read(leader, 65536)
            elif t.poll() is not None:
                break
            if keys and keys[0][0] in out[seen:]:
                seen = len(out)
                key = keys.pop(0)[1]
                if isinstance(key, bytes):
                    os.write(leader, key)
                else:
                    os.killpg(t.pid, key)
        if t.poll() is None:
            t.kill()
    restored = termios.tcgetattr(follower) == before
    os.close(leader)
    os.close(follower)
    if b"paranoid" in out or b"CAP_PERFMON" in out:
        raise Skip("the kernel lets nobody sample here")
    return out, t.returncode, restored


BEGIN, END = b"\033[?1049h", b"\033[?1049l"


def test_a_terminal():
    with Running() as p:
        args = ["-e", f"{USER},page-faults:u", "-p", str(p.pid), "-d", "1"]
        out, status, restored = on_terminal(
            args, [(b"burn", b"h"), (b"this list", b"h"), (b"burn", b"\033OBq")],
            "xterm")
        assert status == 0 and restored and not out.split(END)[0].split(BEGIN)[0], out
        # What was shown last stays.
        assert re.search(rb"# \d+ samples of cpu-clock(.*\n)*.*\[\.\] burn", out.split(END)[1]), out
        out, status, restored = on_terminal(args, [(b"burn", signal.SIGINT)], "xterm")
        assert status == 0 and restored and END in out, out
        # Where the screen cannot be had there are tables.
        for term, first in (("dumb", b"# "), ("no-such-terminal", b"\033[H\033[2J#")):
            out, status, restored = on_terminal(args, [(b"burn", signal.SIGINT)], term)
            assert status == 0 and restored and out.startswith(first) and BEGIN not in out, out


def test_what_fails_is_not_lost_on_a_terminal():
    out, status, restored = on_terminal(["-e", "no-such-event"], [], "xterm")
    assert status == 2 and restored and b"no-such-event" in out and BEGIN not in out, out


def test_a_command():
    for event in ["cpu-clock:u"] + ["instructions:u"] * HAS_RUNTIME:
        r = run("top", "-e", event, "-d", "1", "--", "sh", "-c", f"echo hello; {SPIN} 1500")
        if r.status and re.search("perf_event_paranoid|seccomp|CAP_PERFMON", r.err):
            raise Skip("the kernel lets nobody sample here")
        assert r.status == 0 and r.out.count("samples of") >= 1, r
        assert f"samples of {event}" in r.out and "hello" in r.err and "hello" not in r.out, r
        assert re.search(r"^ +(100|9\d)\.\d\d% +\d+  spin +spin +\[\.\] burn$", r.out, re.M), r


def test_wrong_calls():
    r = run("top", "-p", "99999999")
    assert r.status == 2 and "99999999" in r.err and "perf.data" not in r.err, r
    r = run("top", "-e", "no-such-event")
    assert r.status == 2 and "no-such-event" in r.err, r
    r = run("top", "-G", "no-such-cgroup")
    assert r.status == 2 and r.err, r
    r = run("top", "/no/such/program")
    assert r.status == 127 and r.err.startswith("anyperf top: cannot run '/no/such/program'"), r
    # The recorder works for it, and speaks in its name.
    assert run("top", "-p", "99999999").err.startswith("anyperf top: there is no process"), r


def test_status_of_a_command():
    r = run("top", "-e", "cpu-clock:u", "--", "sh", "-c", "exit 3")
    if r.status and re.search("perf_event_paranoid|seccomp|CAP_PERFMON", r.err):
        raise Skip("the kernel lets nobody sample here")
    assert r.status == 3, r


if __name__ == "__main__":
    main(globals())
