#!/usr/bin/env python3
"""anyperf top: what runs now, as one table after the other, or in its place on a terminal."""
import os
import pty
import re
import signal
import subprocess
import time

from e2e import ANYPERF, ENV, Skip, main, run

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
        assert re.search(r"Children.*\n#\n +1?\d\d\.\d\d%.*\n(.*\n)*.*\[\.\] main", out), out
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


def test_a_terminal():
    with Running() as p:
        leader, follower = pty.openpty()
        with subprocess.Popen([ANYPERF, "top", "-e", USER, "-p", str(p.pid), "-d", "1"],
                              stdout=follower, stderr=subprocess.PIPE, text=True, env=ENV,
                              start_new_session=True) as t:
            os.close(follower)
            time.sleep(2.5)
            os.killpg(t.pid, signal.SIGINT)
            err = t.communicate(timeout=20)[1]
        if "paranoid" in err or "CAP_PERFMON" in err:
            raise Skip("the kernel lets nobody sample here")
        out = b""
        try:
            while chunk := os.read(leader, 65536):
                out += chunk
        except OSError:
            pass
        assert out.startswith(b"\033[H\033[2J") and b"burn" in out, out
        assert t.returncode == 0, (t.returncode, err)


def test_wrong_calls():
    r = run("top", "-p", "99999999")
    assert r.status == 2 and "99999999" in r.err and "perf.data" not in r.err, r
    r = run("top", "-e", "no-such-event")
    assert r.status == 2 and "no-such-event" in r.err, r
    r = run("top", "-G", "no-such-cgroup")
    assert r.status == 2 and r.err, r
    r = run("top", "true")
    assert r.status == 2 and "`anyperf record` runs programs" in r.err, r


if __name__ == "__main__":
    main(globals())
