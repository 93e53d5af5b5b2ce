#!/usr/bin/env python3
"""Runs beside another user, who may be a guest that has given up being root."""
import fcntl
import os
import subprocess
import sys
import time

from e2e import ANYPERF, ENV, main

SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE


def test_what_a_runtime_is_told_is_nobodys_to_change():
    """A fork of another thread has it as well, which may be another user's before it is read."""
    program = "import os, sys\nn = int(sys.argv[1])\n" \
              "if n: os.execv(sys.executable, [sys.executable, '-c', sys.argv[2], str(n - 1), " \
              "sys.argv[2], *sys.argv[3:]])"
    seen, until = set(), time.monotonic() + 60
    while not seen and time.monotonic() < until:
        with subprocess.Popen([ANYPERF, "run", "--", sys.executable, "-S", "-E", "-c", program,
                               "20", program, *["x" * 120000] * 12], env=ENV) as guest:
            while guest.poll() is None:
                for pid in children(guest.pid):
                    seen |= told(pid)
            assert guest.returncode == 0, guest.returncode
    assert seen == {SEALS}, seen


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
            return f.read().split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def told(pid):
    """The seals of what a process has open that a runtime is told by."""
    seals = set()
    try:
        for name in os.listdir(f"/proc/{pid}/fd"):
            path = f"/proc/{pid}/fd/{name}"
            if not os.readlink(path).startswith("/memfd:anyperf-control"):
                continue
            fd = os.open(path, os.O_RDWR)
            # It may just have been made.
            for _ in range(500):
                found = fcntl.fcntl(fd, fcntl.F_GET_SEALS)
                if found == SEALS:
                    break
                time.sleep(0.01)
            os.close(fd)
            seals.add(found)
    except OSError:
        pass
    return seals


main(globals())
