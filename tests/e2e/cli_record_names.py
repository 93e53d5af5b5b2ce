#!/usr/bin/env python3
"""anyperf record: whatever a sample is of has a name, whenever that was started or mapped, and in
each of several files."""
import os
import re
import subprocess
import time

from e2e import ANYPERF, ENV, Skip, main, run, scratch

SPIN = os.environ["E2E_SPIN"]
USER = "cpu-clock:u"


def record(*args, status=0):
    r = run("record", *args)
    if r.status == 125 and re.search("perf_event_paranoid|seccomp|CAP_PERFMON|security module",
                                     r.err):
        raise Skip("the kernel lets nobody record here")
    assert r.status == status, r
    return r


def script(path, *args):
    r = run("script", *args, "-i", path)
    assert r.status == 0, r
    return r.out


def test_the_kernel_beside_an_event_of_user_mode():
    """Our script finds the kernel's names by itself; perf needs to be told where it lies."""
    with scratch() as d:
        record("-e", f"{USER},context-switches", "-o", f"{d}/a", "--", SPIN, "20")
        if "context-switches:u" in run("report", "-i", f"{d}/a").out:
            raise Skip("may not sample the kernel")
        assert re.search(r"MMAP .*pid=4294967295 .*filename=\[kernel\.kallsyms\]", script(f"{d}/a", "-D"))
        record("-e", USER, "-o", f"{d}/a", "--", SPIN, "20")
        assert "[kernel.kallsyms]" not in script(f"{d}/a", "-D")


def named(path):
    """How many samples there are, all of which must be of the program SPIN and of its code."""
    lines = script(path, "-F", "comm,ip,sym").splitlines()
    for line in lines:
        assert line.split()[0] == "spin" and "[unknown]" not in line, line
    return len(lines)


def test_sampling_that_begins_late():
    with scratch() as d:
        record("-e", USER, "-D", "100", "-o", f"{d}/a", "--", SPIN, "400")
        assert named(f"{d}/a") > 3


def test_sampling_that_pauses():
    """Also where the buffers overwrite."""
    for options in [], ["--overwrite"]:
        with scratch() as d:
            os.mkfifo(f"{d}/ctl")
            control = ["--control", f"fifo:{d}/ctl"]
            with subprocess.Popen([ANYPERF, "record", "-e", USER, *options, *control, "-o",
                                   f"{d}/a", "--", "sh", "-c",
                                   f"{SPIN} 100; exec {SPIN} 100000"],
                                  stderr=subprocess.PIPE, text=True, env=ENV) as p:
                with open(f"{d}/ctl", "w", encoding="utf-8") as f:
                    f.write("disable\n")
                    f.flush()
                    time.sleep(0.6)
                    f.write("enable\n")
                    f.flush()
                    time.sleep(0.3)
                    f.write("stop\n")
                err = p.communicate()[1]
            if p.returncode == 125 and "paranoid" in err:
                raise Skip("the kernel lets nobody record here")
            text = script(f"{d}/a", "-F", "comm,ip,sym")
            assert re.search(r"^ *spin .* burn", text, re.M), text
    # A shell has no symbols.
    assert not re.search(r"^ *spin .*\[unknown\]", text, re.M), text


def test_what_starts_while_the_machine_is_listed():
    """Programs that start one after the other. What is seen of one is seen from its start."""
    if run("record", "-a", "-o", "/dev/null", "true").status == 125:
        raise Skip("may not record whole CPUs")
    with scratch() as d, subprocess.Popen(["sh", "-c", "while :; do /bin/true; done"]) as storm:
        for _ in range(10):
            record("-a", "-e", USER, "-F", "4000", "-o", f"{d}/a", "--", "sleep", "0.05")
            nameless = [s for s in script(f"{d}/a", "-F", "comm,pid").splitlines()
                        if s.split()[0].startswith(":")]
            if nameless:
                break
        storm.kill()
    assert not nameless, nameless


def test_each_of_several_files():
    """Of the command itself, of what it starts, and of what it had started before."""
    with scratch() as d:
        record("-e", USER, "-F", "4000", "--switch-output=16K", "-m", "1", "-o", f"{d}/a", "--",
               "sh", "-c", f"{SPIN} 400 & {SPIN} 400; wait; {SPIN} 100")
        files = os.listdir(d)
        texts = {name: script(f"{d}/{name}", "-F", "comm,ip,dso") for name in files}
        assert sum("/spin)" in text for text in texts.values()) > 3, texts
        for name, text in texts.items():
            for line in text.splitlines():
                assert line.split()[0] in ("sh", "spin", "perf-exec"), (name, line)
                assert "([unknown])" not in line, (name, line)


if __name__ == "__main__":
    main(globals())
