#!/usr/bin/env python3
"""Starting is cheap: how many system calls are made before the program runs."""
import os
import subprocess
import sys

from e2e import ANYPERF, ENV, Skip, main, scratch

# Events say :u so that a user who may not measure the kernel needs no second attempt.
LIMIT = 40


def calls_until_execve(*args):
    """System calls of anyperf and its child until the child executes the program."""
    with scratch() as d:
        log = os.path.join(d, "log")
        r = subprocess.run(["strace", "-f", "-o", log, ANYPERF, "stat", *args, "/bin/true"], capture_output=True,
                           text=True, env=ENV, timeout=60, check=False)
        if "ptrace" in r.stderr and "Operation not permitted" in r.stderr:
            raise Skip("this machine does not let a process trace its child")
        assert r.returncode == 0, r
        with open(log, encoding="utf-8") as f:
            lines = f.read().splitlines()
    parent, made = lines[0].split()[0], []
    for line in lines:
        pid, call = line.split(None, 1)
        if "execve(" in call and pid != parent:
            return made
        if not call.startswith(("<...", "---", "+++")):
            made.append((pid == parent, call))
        # From here the child is on its own way.
        if pid == parent and call.startswith("sendto("):
            break
    return made


def test_system_calls_before_the_program_runs():
    made = calls_until_execve("-e", "task-clock:u")
    assert 5 < len(made) <= LIMIT, "\n".join(call for _, call in made)
    assert sum("perf_event_open(" in call for _, call in made) == 1


def test_nothing_is_read_for_names_that_are_known():
    made = calls_until_execve("-e", "task-clock:u,page-faults:u,context-switches:u")
    assert not any("/sys/" in call or "/proc/" in call for _, call in made), made


def test_no_locale_is_loaded_in_the_c_locale():
    made = calls_until_execve("-e", "task-clock:u")
    assert not any("locale" in call for _, call in made), made


if __name__ == "__main__":
    if subprocess.run(["strace", "-V"], capture_output=True, check=False).returncode:
        sys.exit(77)
    main(globals())
