#!/usr/bin/env python3
"""Control groups with limits: what the programs of a run have of them, beside a launcher and a
session."""
import json
import os
import signal
import subprocess
import sys

from e2e import ANYPERF, ENV, Skip, main

ROOT = "/sys/fs/cgroup"
NAME = f"anyperf-test-{os.getpid()}"


class Group:
    """A group below that of this process's controller @kind, of version 1 or 2."""

    def __init__(self, kind):
        for path in (os.path.join(ROOT, kind), ROOT, os.path.join(ROOT, "unified")):
            self.path = os.path.join(path, NAME)
            try:
                os.mkdir(self.path)
            except OSError:
                continue
            if any(f.startswith(kind + ".") for f in os.listdir(self.path)):
                return
            os.rmdir(self.path)
        raise Skip(f"no group can be made for {kind}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for _ in range(100):
            try:
                os.rmdir(self.path)
                return
            except OSError:
                # A session ends a moment after its last guest.
                subprocess.run(["sleep", "0.1"], check=False)

    def write(self, *names, text):
        for name in names:
            try:
                with open(os.path.join(self.path, name), "w", encoding="ascii") as f:
                    f.write(text)
                return
            except OSError:
                pass
        raise Skip(f"{names[0]} cannot be written")

    def run(self, *command):
        return subprocess.run(command, env=ENV, text=True, capture_output=True, check=False,
                              timeout=45, preexec_fn=lambda: self.write(
                                  "cgroup.procs", text=str(os.getpid())))


def test_tasks():
    """A launcher, and where something is counted a session, are one task each: so many fewer
    threads has the program, which is told as natively. It runs on, and is counted."""
    program = """
import os, threading
n, event = 0, threading.Event()
try:
    while n < 20:
        threading.Thread(target=event.wait, daemon=True).start()
        n += 1
except RuntimeError as e:
    print(n, e, flush=True)
os._exit(0)
"""
    with Group("pids") as group:
        group.write("pids.max", text="8")
        native = group.run(sys.executable, "-c", program)
        assert native.stdout.split()[0] == "7", native
        seen = {}
        for name, options in (("run", []), ("count", ["--count", "-j"])):
            r = group.run(ANYPERF, "run", *options, "--", sys.executable, "-c", program)
            assert r.returncode == 0 and r.stdout, r
            seen[name], _, why = r.stdout.partition(" ")
            assert why == native.stdout.partition(" ")[2], (r, native)
        assert seen["run"] == "6" and seen["count"] in ("5", "6"), seen
        assert json.loads(r.stderr)["total"]["instructions"] > 10000000, r


def test_no_room_for_a_task():
    """Who cannot start what is wanted says which limit to raise. Nothing has run then."""
    counted = ["stat", "--pmu=virtual", "-e", "instructions:u"]
    with Group("pids") as group:
        for most, command in (("1", ["run"]), ("1", ["record", "-o", "/dev/null"]), ("1", counted),
                              ("2", counted), ("2", ["run", "--count"])):
            group.write("pids.max", text=most)
            r = group.run(ANYPERF, *command, "--", "echo", "started")
            assert r.returncode == 125 and not r.stdout, (most, r)
            assert "raise pids.max of the control group" in r.stderr, (most, r)
        r = group.run(ANYPERF, "run", "--", "echo", "started")
        assert (r.returncode, r.stdout, r.stderr) == (0, "started\n", ""), r


def test_memory():
    """Who takes more than the group may have is killed, as natively; what it has counted is
    shown, as the launcher and the session take too little to be chosen."""
    program = "b = bytearray(400 << 20); print('too much')"
    with Group("memory") as group:
        group.write("memory.max", "memory.limit_in_bytes", text=str(160 << 20))
        try:
            group.write("memory.swap.max", text="0")
        except Skip:
            pass
        native = group.run(sys.executable, "-c", program)
        if native.returncode != -signal.SIGKILL:
            raise Skip("the limit is not kept here")
        assert native.stdout == "", native
        r = group.run(ANYPERF, "run", "--count", "-j", "--", sys.executable, "-c", program)
        assert (r.returncode, r.stdout) == (-signal.SIGKILL, ""), r
        assert json.loads(r.stderr)["total"]["instructions"] > 10000000, r


main(globals())
