#!/usr/bin/env python3
"""The virtual PMU from the command line: anyperf stat as a session, and what anyperf run shows to
guests."""
import ctypes
import glob
import json
import os
import pathlib
import re
import resource
import shutil
import struct
import subprocess
import tempfile
import time

from e2e import ANYPERF, ENV, Skip, main, refuse, run, scratch, stat


def virtual(*args, status=0):
    r = run("stat", "-j", "--pmu=virtual", *args)
    assert r.status == status, r
    return [json.loads(line) for line in r.err.splitlines()]


def value(report, event):
    return next(c["value"] for c in report["counts"] if c["event"] == event)


def test_the_default_events():
    report = virtual("true")[0]
    assert report["pmu"]["used"] == "virtual" and report["pmu"]["why"], report
    assert [c["event"] for c in report["counts"]] == [
        "task-clock", "context-switches", "cpu-migrations", "page-faults", "cycles:u",
        "instructions:u", "branches:u", "branch-misses:u"], report
    assert all(c["status"] == "ok" for c in report["counts"]), report
    assert value(report, "instructions:u") > 10000 and value(report, "branches:u") > 1000


def test_counts_repeat():
    # Where memory lies may decide about the path of a string function: only then is that the same
    # too.
    options = ("--deterministic", "-e", "instructions:u,branches:u", "/bin/true")
    seen = {tuple(value(virtual(*options)[0], e) for e in ("instructions:u", "branches:u"))
            for _ in range(3)}
    assert len(seen) == 1, seen
    report = virtual("-r", "3", *options)[0]
    assert report["runs"] == 3 and value(report, "instructions:u") == seen.pop()[0]


def test_children_are_counted():
    one = value(virtual("-e", "instructions:u", "sh", "-c", "/bin/true; exit 0")[0],
                "instructions:u")
    two = value(virtual("-e", "instructions:u", "sh", "-c", "/bin/true; /bin/true; exit 0")[0],
                "instructions:u")
    alone = value(virtual("-e", "instructions:u", "/bin/true")[0], "instructions:u")
    own = value(virtual("-i", "-e", "instructions:u", "sh", "-c", "/bin/true; exit 0")[0],
                "instructions:u")
    assert 0.9 * alone < two - one < 1.3 * alone + 20000, (one, two, alone)
    assert own < one - 0.9 * alone, (own, one)


def test_fewer_counters_take_turns():
    with tempfile.NamedTemporaryFile("w", suffix=".sh") as f:
        f.write("i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done\n")
        f.flush()
        report = virtual("--counters=1", "-e", "instructions:u,branches:u", "sh", f.name)[0]
    for c in report["counts"]:
        assert c["status"] == "ok" and 5 < c["running_percent"] < 95, c


def test_groups_and_intervals():
    report = virtual("-e", "{instructions,branches}:u", "true")[0]
    assert all(c["status"] == "ok" for c in report["counts"]), report
    parts = virtual("-I", "100", "-e", "instructions:u", "sleep", "0.25")
    assert len(parts) >= 2 and parts[0]["part"] == "interval"


def test_text_says_who_counted():
    r = stat("--pmu=virtual", "-e", "instructions", "true")
    assert re.search(r"virtual PMU: asked for by --pmu", r.err), r
    r = stat("--pmu=virtual", "--machine=none", "-e", "cycles,instructions", "true")
    assert "<not supported>      cycles" in r.err and "--pmu=kernel" in r.err, r


def test_modeled_events():
    """Each says whose model it is of: in text, columns and JSON."""
    events = "cycles,instructions,branches,branch-misses,L1-icache-loads"
    r = stat("--pmu=virtual", "-e", events, "true")
    text = re.sub(r"\s+", " ", r.err)
    assert "(modeled: host: cycles:u, branch-misses:u, L1-icache-loads:u)" in text, r
    assert "insn per cycle" in text and "of all branches" in text and "<not" not in text, r
    report = virtual("--machine=zen2", "-e", events, "true")[0]
    assert report["pmu"]["machine"] == "zen2", report
    counts = {c["event"].split(":")[0]: c for c in report["counts"]}
    assert [e for e, c in counts.items() if c.get("modeled")] == \
        ["cycles", "branch-misses", "L1-icache-loads"], report
    assert 0 < counts["branch-misses"]["value"] < counts["branches"]["value"] / 2, report
    assert counts["cycles"]["value"] > counts["instructions"]["value"] / 8, report
    assert "modeled: zen2: cycles:u" in stat("--machine=zen2", "-x,", "-e", events, "true").err
    assert "cycles" not in stat("--pmu=virtual", "--machine=none", "true").err
    r = stat("--pmu=virtual", "-d", "true")
    assert "cycles:u" in r.err and "LLC-loads:u" in r.err and "<not" not in r.err, r


def test_machines():
    """A name, a file, or none; what is wrong is said, and by which line."""
    with scratch() as d:
        text = run("machine", "zen3").out
        with open(f"{d}/mine", "w", encoding="utf-8") as f:
            f.write(text.replace("machine zen3", "machine mine"))
        with open(f"{d}/wrong", "w", encoding="utf-8") as f:
            f.write(text.replace("ways", "ways x", 1))
        report = virtual(f"--machine={d}/mine", "-e", "branch-misses", "true")[0]
        assert report["pmu"]["machine"] == "mine", report
        for command in ("run", "stat"):
            r = run(command, f"--machine={d}/wrong", "true")
            assert r.status == 125 and re.search(r"--machine: the machine '.*wrong': line \d+: ",
                                                 r.err), r
            r = run(command, "--machine=zen33", "true")
            assert r.status == 125 and "did you mean" in r.err, r
        # Guests find the name in sysfs, and a stat among them says it as well.
        r = run("run", f"--machine={d}/mine", "--", "cat",
                "/sys/bus/event_source/devices/cpu/caps/machine")
        assert r.out == "mine\n", r
        r = run("run", f"--machine={d}/mine", "--", ANYPERF, "stat", "-e", "cycles:u", "true")
        # Whether anything was left out nobody tells it.
        assert "(modeled: mine, estimated from windows (auto): cycles:u; " in r.err, r
        r = run("run", "--machine=none", "--", "ls", "/sys/bus/event_source/devices/cpu/caps")
        assert "machine" not in r.out.split(), r
        # Who joins a session joins its machine.
        name = f"machine-{os.getpid()}"
        first = subprocess.Popen([ANYPERF, "run", "--session", name, "--machine=zen2", "--", "cat"],
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENV)
        first.stdin.write(b"x\n")
        first.stdin.flush()
        first.stdout.readline()
        r = run("run", "--session", name, "--machine=zen3", "--", "true")
        assert r.status == 125 and "decides about --machine" in r.err, r
        assert run("run", "--session", name, "--machine=zen2", "--", "true").status == 0
        first.stdin.close()
        first.wait()


def test_times_are_not_passed_off_as_native():
    note = "times and software events are those of the translated run"
    r = stat("--pmu=virtual", "true")
    text = re.sub(r"\s+", " ", r.err)
    assert "counts of instructions and branches are exact; " + note in text, r
    assert "CPUs utilized" in text and "/sec" not in text, r
    r = stat("--pmu=virtual", "-I", "50", "sleep", "0.12")
    assert r.err.count("# (" + note) == 1 and "/sec" not in r.err, r
    r = run("run", "--count", "true")
    assert note in re.sub(r"\s+", " ", r.err), r
    r = run("run", "--", ANYPERF, "stat", "-e", "instructions:u,task-clock", "true")
    assert note in re.sub(r"\s+", " ", r.err) and "/sec" not in r.err, r
    # Counts that have taken turns are none to be called exact.
    loop = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done"
    r = stat("--counters=1", "-e", "instructions:u,branches:u", "sh", "-c", loop)
    assert note in re.sub(r"\s+", " ", r.err) and "exact" not in r.err, r
    assert virtual("true")[0]["times"] == "translated"
    units = {m["unit"] for c in virtual("true")[0]["counts"] for m in c["metrics"]}
    assert units == {"CPUs utilized", "insn per cycle", "% of all branches"}, units
    r = stat("--pmu=kernel", "-e", "task-clock,page-faults", "true")
    assert "/sec" in r.err and "translated" not in r.err, r
    r = stat("-j", "--pmu=kernel", "-e", "task-clock,page-faults", "true")
    assert json.loads(r.err)["times"] == "native", r


def test_options_that_are_about_it():
    """They ask for it, and do not stand where it does not count."""
    for option in ("--counters=2", "--cpu-model=auto"):
        report, = json.loads(run("stat", "-j", option, "-e", "page-faults", "true").err),
        name = option.split("=")[0]
        assert report["pmu"] == {"used": "virtual", "why": f"needed for {name}"}, report
        for args, why in ((["--pmu=kernel", "true"], "--pmu=kernel excludes it"),
                          (["-p", "1"], "started under it"),
                          (["-a"], "started under it"), (["--session=x", "-p", "1"],
                                                         "run --session x` takes it")):
            r = run("stat", option, *args)
            assert r.status == 125 and name in r.err and why in r.err, r
    r = run("stat", "--session=x", "--pmu=kernel", "-p", "1")
    assert r.status == 125 and "--pmu=kernel excludes it" in r.err, r


def test_what_it_cannot_do_is_said():
    r = run("stat", "--pmu=virtual", "-p", str(os.getpid()))
    assert r.status == 125 and "started under it" in r.err, r
    r = run("stat", "--pmu=virtul", "true")
    assert r.status == 125 and "did you mean virtual?" in r.err, r
    r = run("stat", "--pmu=virtual", "no-such-program")
    assert r.status == 127 and "PATH" in r.err, r
    r = run("stat", "--pmu=virtual", "-e", "instructions:k", "true")
    assert r.status == 125 and "instructions:k: only kernel mode is asked for" in r.err, r
    assert ":u" in r.err, r
    r = run("stat", "--pmu=virtual", "--all-kernel", "-e", "instructions", "true")
    assert r.status == 125, r
    assert re.search("only kernel mode is asked for|kernel mode would be counted", r.err), r
    r = run("stat", "--pmu=virtual", "-e", "instructions", "/")
    assert r.status == 126, r
    # Beside what it counts, what only the kernel could: the advice does not lose the first.
    r = run("stat", "--pmu=virtual", "-e", "mem:0xffffffff81000000/8:w,instructions:u", "true")
    text = re.sub(r"\s+", " ", r.err)
    assert r.status == 0 and re.search(r"\d{5,} +instructions:u", r.err), r
    assert "<not supported> mem:" in text, r
    assert "count them in a run of their own, in which the kernel counts (anyperf stat --pmu=kernel)" in text, r


def test_the_exit_status_is_the_commands():
    for code in (0, 7):
        assert run("stat", "--pmu=virtual", "-e", "instructions", "sh", "-c",
                   f"exit {code}").status == code


def guest(*args, options=()):
    r = run("run", *options, "--", *args)
    assert r.status == 0, r
    return r.out


def test_the_command_has_our_limits():
    files = resource.getrlimit(resource.RLIMIT_NOFILE)
    sizes = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = struct.pack("QQQQ", 1, 0, 0, 0)
    # Of the signals that glibc has for itself as well.
    limited = {"preexec_fn": lambda: ([ctypes.CDLL(None).syscall(13, sig, ignored, None, 8)
                                       for sig in (32, 33)],
                                      resource.setrlimit(resource.RLIMIT_NOFILE,
                                                         (files[0] - 1, files[1])),
                                      resource.setrlimit(resource.RLIMIT_FSIZE,
                                                         (1 << 20, sizes[1]))),
               "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "env": ENV}
    show = ["sh", "-c", "ulimit -n; ulimit -f; grep SigIgn /proc/self/status"]
    native = subprocess.run(show, **limited)
    for args in (["stat", "--pmu=virtual", "-e", "instructions:u"], ["run"], ["run", "--count"],
                 ["record", "-e", "instructions:u", "-o", "/dev/null"]):
        r = subprocess.run([ANYPERF, *args, "--", *show], **limited)
        assert r.returncode == 0 and r.stdout == native.stdout, (args, r, native)


def test_the_command_has_our_limits_of_memory():
    """They are out of our way meanwhile: what we map is gigabytes."""
    quiet = {"capture_output": True, "text": True, "env": ENV, "check": False}
    for which in "-v", "-d":
        show = f"sh -c 'ulimit {which}; ulimit -H {which}; /bin/echo hi'"
        native = subprocess.run(["sh", "-c", f"ulimit -S {which} 9000; {show}"], **quiet)
        for args in ("stat --pmu=virtual -e instructions:u", "run", "run --count"):
            script = f"ulimit -S {which} 9000; exec {ANYPERF} {args} -- {show}"
            r = subprocess.run(["sh", "-c", script], **quiet)
            assert r.returncode == 0 and r.stdout == native.stdout, (args, r)


def test_an_environment_of_any_size():
    """What the first stack is copied through has room for the kernel's random gap in it."""
    for size in range(54000, 65000, 500):
        r = subprocess.run([ANYPERF, "run", "/bin/true"], env={**ENV, "X": "x" * size}, timeout=60)
        assert r.returncode == 0, (size, r)


def test_without_standard_descriptors():
    """As a daemon starts it: what anyperf opens has their numbers then."""
    shut = {"preexec_fn": lambda: (os.close(0), os.close(1)), "stderr": subprocess.PIPE,
            "text": True, "env": ENV, "check": False}
    script = "test -e /proc/self/fd/0 || test -e /proc/self/fd/1 || exit 3"
    for args in (["stat", "--pmu=virtual", "-e", "instructions:u"], ["run", "--count"],
                 ["run", "-v"]):
        r = subprocess.run([ANYPERF, *args, "--", "sh", "-c", script], **shut)
        assert r.returncode == 3 and re.search(r"[0-9]{5,} +instructions:u", r.stderr), (args, r)
    measure = [ANYPERF, "stat", "-e", "instructions:u", "/bin/true"]
    r = subprocess.run([ANYPERF, "run", "--", *measure], **shut)
    assert r.returncode == 0 and re.search(r"[0-9]{5,} +instructions:u", r.stderr), r


def test_the_numbers_of_a_pidfd():
    """While it forks a counted program has a descriptor more, which is not to be the lowest."""
    clone, pidfd, sigchld = 56, 0x1000, 17
    script = f"""
import ctypes, os
fd, libc = ctypes.c_int(-1), ctypes.CDLL(None)
if not libc.syscall({clone}, {pidfd | sigchld}, 0, ctypes.byref(fd), 0, 0):
    os._exit(0)
print(fd.value, os.open("/dev/null", os.O_RDONLY))
"""
    want = subprocess.run(["python3", "-c", script], capture_output=True, text=True, env=ENV,
                          check=False).stdout
    for args in (["run"], ["run", "--count"], ["stat", "--pmu=virtual"]):
        r = run(*args, "--", "python3", "-c", script)
        assert r.status == 0 and r.out == want and want, (args, want, r)


def test_limited_addresses():
    """The meters take gigabytes of addresses where they may; they make do with what there is."""
    for kb, status in ((1 << 20, 0), (160000, 0), (60000, 125)):
        limited = {"preexec_fn": lambda kb=kb: resource.setrlimit(resource.RLIMIT_AS,
                                                                  (kb << 10, kb << 10)),
                   "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "env": ENV}
        for args in (["stat", "--pmu=virtual", "-e", "instructions:u"], ["run", "--count"],
                     ["run"]):
            r = subprocess.run([ANYPERF, *args, "--", "sh", "-c", "/bin/echo hi; exit 0"],
                               **limited)
            assert r.returncode == status, (kb, args, r)
            assert (r.stdout == "hi\n") if status == 0 else "ulimit -v" in r.stderr, (kb, args, r)


def test_memory_that_is_not_writable_and_executable():
    """PR_SET_MDWE, Linux 6.3: what MemoryDenyWriteExecute sets."""
    libc = ctypes.CDLL(None)

    def deny():
        libc.prctl(65, 1, 0, 0, 0)

    probe = subprocess.run(["python3", "-c", "import mmap; mmap.mmap(-1, 4096, prot=7)"],
                           preexec_fn=deny, stderr=subprocess.DEVNULL)
    if probe.returncode == 0:
        return
    # What is refused natively is refused, and what is not is not.
    tries = ("import ctypes, mmap\n"
             "libc = ctypes.CDLL(None, use_errno=True)\n"
             "print(libc.prctl(66, 0, 0, 0, 0))\n"
             "m = mmap.mmap(-1, 8192)\n"
             "at = ctypes.addressof(ctypes.c_char.from_buffer(m))\n"
             "for prot in (1, 5, 7, 3):\n"
             "    print(libc.mprotect(ctypes.c_void_p(at), 4096, prot), ctypes.get_errno())\n"
             "m = mmap.mmap(-1, 8192, prot=5)\n"
             "libc.mmap.restype = ctypes.c_void_p\n"
             "at = ctypes.c_void_p(libc.mmap(None, 8192, 5, 34, -1, 0))\n"
             "for prot in (5, 1, 5, 7):\n"
             "    print(libc.mprotect(at, 4096, prot))\n"
             "mmap.mmap(-1, 4096, prot=7)\n")
    said = [subprocess.run([*before, "python3", "-c", tries], preexec_fn=deny, text=True, env=ENV,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            for before in ([], [ANYPERF, "run", "--"])]
    assert said[1].returncode == said[0].returncode == 1, said
    assert said[1].stdout == said[0].stdout and "Permission" in said[1].stderr, said
    r = subprocess.run([ANYPERF, "run", "--", "sh", "-c", "(echo hi | cat); exec echo ho"],
                       preexec_fn=deny, stdout=subprocess.PIPE, text=True, env=ENV)
    assert r.returncode == 0 and r.stdout == "hi\nho\n", r


def test_a_kernel_without_pidfds():
    """Before Linux 5.3. Running a program alone needs none."""
    old = {"preexec_fn": refuse(434, 38), "stdout": subprocess.PIPE, "stderr": subprocess.PIPE,
           "text": True, "env": ENV}
    for args in (["stat", "--pmu=virtual", "-e", "instructions:u"],
                 ["run", "--count"], ["run", "--session", f"test-{os.getpid()}"]):
        r = subprocess.run([ANYPERF, *args, "--", "true"], **old)
        if r.returncode == 99:
            raise Skip("no seccomp filters here")
        assert r.returncode == 125 and "pidfd_open(2) is missing" in r.stderr, r
        assert "5.3" in r.stderr, r
    for errno, why in ((1, "is forbidden by a sandbox"), (5, "fails")):
        other = dict(old, preexec_fn=refuse(434, errno))
        r = subprocess.run([ANYPERF, "run", "--count", "--", "true"], **other)
        assert r.returncode == 125 and f"pidfd_open(2) {why}" in r.stderr, r
    r = subprocess.run([ANYPERF, "run", "--", "sh", "-c", "exit 3"], **old)
    assert r.returncode == 3 and not r.stderr, r
    r = subprocess.run([ANYPERF, "run", "--", ANYPERF, "stat", "-e", "instructions:u", "true"],
                       **old)
    assert "there is no virtual PMU for" in r.stderr and "pidfd_open(2) is missing" in r.stderr, r
    r = subprocess.run([ANYPERF, "doctor", "-j"], **old)
    fact, = (f for f in json.loads(r.stdout)["facts"] if f["id"] == "virtual-pmu")
    assert fact["state"] == "limited" and "pidfd_open" in fact["effect"], fact


# Runs each file, and says what came of it.
RUNS = """
import os, sys
for name in sys.argv[1:]:
    pid = os.fork()
    if not pid:
        try:
            os.execv(name, [name])
        except OSError as error:
            os._exit(100 + error.errno)
    print(os.waitpid(pid, 0)[1] >> 8)
"""


def test_a_kernel_without_execveat_check():
    """Before Linux 6.14, whether a file may be executed is found out piece by piece."""
    with scratch() as d:
        files = [d, d + "/plain", d + "/script", d + "/link", d + "/none", d + "/pipe", "/bin/true"]
        for name, mode in (("plain", 0o644), ("script", 0o755)):
            with open(f"{d}/{name}", "w", encoding="ascii") as text:
                text.write("#!/bin/sh\nexit 6\n")
            os.chmod(f"{d}/{name}", mode)
        os.symlink("script", d + "/link")
        os.mkfifo(d + "/pipe")
        os.chmod(d + "/pipe", 0o777)
        command = ["python3", "-c", RUNS, *files]
        said = [subprocess.run([*before, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True, env=ENV, preexec_fn=refuse(322, 22, 4, 0x10000))
                for before in ([], [ANYPERF, "run", "--"])]
        if said[0].returncode == 99:
            raise Skip("no seccomp filters here")
        assert said[0].stdout.split() == ["113", "113", "6", "6", "102", "113", "0"], said[0]
        assert said[1].stdout == said[0].stdout, said[1]


def test_a_kernel_that_refuses_perf_events():
    """In a container, mostly: what the kernel cannot count is the virtual PMU's."""
    closed = {"preexec_fn": refuse(298, 1), "stdout": subprocess.PIPE, "stderr": subprocess.PIPE,
              "text": True, "env": ENV}
    for events in (["-e", "instructions"], ["-e", "page-faults"], []):
        r = subprocess.run([ANYPERF, "stat", "-j", *events, "--", "true"], **closed)
        if r.returncode == 99:
            raise Skip("no seccomp filters here")
        assert r.returncode == 0, r
        report = json.loads(r.stderr)
        assert report["pmu"]["used"] == "virtual", r
        assert report["pmu"]["why"] == "a seccomp filter refuses the kernel's perf events", r
        assert all(c["status"] == "ok" for c in report["counts"]), r
        assert all(c["value"] > 0 for c in report["counts"] if "instructions" in c["event"]
                   or "faults" in c["event"]), r
    # A command's children are reaped by others, and their /proc goes with them.
    for _ in range(3):
        r = subprocess.run([ANYPERF, "stat", "-j", "-e", "page-faults,task-clock", "--", "sh", "-c",
                            os.environ["E2E_TOUCH"] + " 3000; true"], **closed)
        faults, clock = json.loads(r.stderr)["counts"]
        assert faults["value"] >= 3000 and clock["value"] > 1, r
        assert faults["with_translator"] and "with_translator" not in clock, r
    for how, end in (([], "# with the translator's own\n"), (["-x,"], ",with the translator's own\n")):
        r = subprocess.run([ANYPERF, "stat", *how, "-e", "page-faults:u", "--", "true"], **closed)
        assert end in r.stderr, r
    # Where it does not, they are the program's.
    r = run("stat", "-j", "--pmu=virtual", "-e", "page-faults:u", "--", "true")
    assert "with_translator" not in json.loads(r.err)["counts"][0], r
    r = subprocess.run([ANYPERF, "stat", "--pmu=kernel", "-e", "page-faults", "--", "true"],
                       **closed)
    assert r.returncode == 125 and "seccomp" in r.stderr and "--pmu=virtual" in r.stderr, r
    r = subprocess.run([ANYPERF, "stat", "-a", "-e", "page-faults", "--", "true"], **closed)
    assert r.returncode == 125 and "seccomp" in r.stderr and "--pmu=virtual" not in r.stderr, r


def test_names_of_user_mode():
    """That only user mode could be counted stands behind the event as a modifier would."""
    names = {"instructions": "instructions:u", "instructions:": "instructions:u",
             "cpu/instructions/": "cpu/instructions/u", "cpu/instructions/S": "cpu/instructions/Su",
             "branches:S": "branches:Su", "branches:u": "branches:u"}
    report = json.loads(run("stat", "-j", "--pmu=virtual", "-e", ",".join(names), "true").err)
    assert [c["event"] for c in report["counts"]] == list(names.values()), report
    # Apart, for programs.
    for c, (asked, shown) in zip(report["counts"], names.items()):
        asked = asked.rstrip(":")
        assert c.get("asked", asked) == asked and ("asked" in c) == (asked != shown), c
        assert c.get("user_only", False) == (asked != shown), c


def test_codes_of_the_vendor():
    """The names in sysfs and the raw codes behind them are what the PMU anyperf counts."""
    names = {"branch-instructions": "branches", "conditional_retired": "conditional",
             "conditional_taken": "taken", "near_calls": "calls", "near_returns": "returns",
             "near_indirect": "indirect"}
    model = ["run", "--"]
    r = run(*model, "sh", "-c", "cd /sys/bus/event_source/devices/cpu/events && grep . *")
    codes = dict(line.split(":", 1) for line in r.out.splitlines())
    modeled = {"cpu-cycles", "cache-references", "cache-misses", "branch-misses", "bus-cycles",
               "ref-cycles", "stalled-cycles-frontend", "stalled-cycles-backend", "mem-loads",
               "mem-stores", "mem-loads-aux"}
    assert {"instructions", "branch-instructions"} <= set(codes) - modeled <= \
        {"instructions", *names}, r
    assert {"cpu-cycles", "branch-misses"} <= set(codes), r
    for name in set(codes) & set(names):
        terms = dict(t.split("=") for t in codes[name].split(","))
        raw = int(terms.get("umask", "0"), 16) << 8 | int(terms["event"], 16) | 0x530000
        report = json.loads(run("stat", "-j", "--pmu=virtual", "-e",
                                f"anyperf/{names[name]}/u,cpu/{name}/u,r{raw:x}:u", "true").err)
        values = {c["value"] for c in report["counts"]}
        assert len(values) == 1 and values.pop() > 0, report
    if shutil.which("perf"):
        r = run(*model, "perf", "stat", "-x,", "-e", ",".join(f"cpu/{e}/" for e in codes), "true")
        assert r.status == 0 and "not supported" not in r.err, r
        # A name by itself, which perf takes apart at each dash.
        r = run(*model, "perf", "stat", "-x,", "-e", ",".join(codes), "true")
        assert r.status == 0 and "not supported" not in r.err, r


def test_nobody_counts():
    """What the kernel refuses is the reason, not only that there is no runtime to count instead."""
    closed = {"preexec_fn": refuse(298, 1), "capture_output": True, "text": True,
              "env": {**ENV, "ANYPERF_RUNTIME": "/bin/echo"}, "check": False}
    for events in (["-e", "page-faults"], ["-e", "page-faults,cs"], []):
        r = subprocess.run([ANYPERF, "stat", *events, "--", "true"], **closed)
        if r.returncode == 99:
            raise Skip("no seccomp filters here")
        kernel, virtual = r.stderr.splitlines()
        assert r.returncode == 125 and "a seccomp filter" in kernel, r
        assert virtual.startswith("anyperf stat: nor can the virtual PMU count it: "), r
        assert "not anyperf's runtime" in virtual, r


def test_a_session_in_a_session():
    """What is around counts for it; what only a session of its own could do is refused in words."""
    for outer in (["run"], ["run", "--count", "-o", "/dev/null"]):
        r = run(*outer, "--", ANYPERF, "stat", "-j", "--pmu=virtual", "--", "sh", "-c", "exit 3")
        # The kernel's part was refused, and the command failed: a line of the outer one says so.
        told, hint = r.err.splitlines()
        inner = json.loads(told)
        assert r.status == inner["exit_status"] == 3, r
        assert "`anyperf run -v` says which and why" in hint, r
        assert inner["pmu"]["used"] == "virtual" and "around" in inner["pmu"]["why"], inner
        assert [c["event"] for c in inner["counts"]][4:] == [
            "cycles:u", "instructions:u", "branches:u", "branch-misses:u"], inner
        assert value(inner, "instructions:u") > 10000, inner
        r = run(*outer, "--", ANYPERF, "stat", "-e", "instructions", "true")
        assert r.status == 0 and "instructions:u" in r.err, r
        # Nobody asked for it, and yet it is not the kernel that counts.
        for events in (["-e", "instructions:u"], ["-e", "page-faults"], []):
            r = run(*outer, "--", ANYPERF, "stat", *events, "true")
            assert "kernel PMU" not in r.err and "(virtual PMU: " in r.err and "around" in r.err, r
        for option in ("--deterministic", "--counters=2", "--cpu-model=auto"):
            r = run(*outer, "--", ANYPERF, "stat", option, "true")
            assert r.status == 125 and "one translator inside another" in r.err, r
            assert f"`anyperf run {option.split('=')[0]}`" in r.err and "busy" not in r.err, r


def test_files_that_guests_see():
    assert guest("cat", "/sys/bus/event_source/devices/cpu/type").strip() == "4"
    assert guest("cat", "/sys/devices/cpu/format/umask").strip() == "config:8-15"
    # What is listed can be counted.
    listed = guest("ls", "/sys/devices/cpu/events").split()
    assert {"branch-instructions", "instructions"} <= set(listed), listed
    globbed = guest("sh", "-c", "ls -d /sys/bus/event_source/devices/cpu/events/*").split()
    assert sorted(os.path.basename(p) for p in globbed) == sorted(listed)
    r = run("run", "--", ANYPERF, "stat", "-j", "-e", ",".join(f"cpu/{e}/" for e in listed), "true")
    assert [c["status"] for c in json.loads(r.err)["counts"]] == ["ok"] * len(listed), r
    assert int(guest("cat", "/proc/sys/kernel/perf_event_paranoid")) >= 2
    assert guest("cat", "/proc/sys/kernel/perf_event_paranoid",
                 options=("--paranoid=0",)).strip() == "0"
    assert "cpu" in guest("ls", "/sys/bus/event_source/devices").split()
    assert guest("cat", "//sys//bus/event_source/devices/cpu/type").strip() == "4"


def test_settings_of_the_machine():
    """A guest that writes to one by its other path, below /sys/devices, changes the session's."""
    paths = glob.glob("/sys/devices/*/perf_event_mux_interval_ms")
    assert paths
    for path in paths:
        before = pathlib.Path(path).read_text(encoding="utf-8")
        other = path.replace("/sys/devices/", "/sys/bus/event_source/devices/")
        wanted = str(int(before) + 3)
        r = run("run", "sh", "-c", f"echo {wanted} >{path}; cat {path} {other}")
        after = pathlib.Path(path).read_text(encoding="utf-8")
        if after != before:
            pathlib.Path(path).write_text(before, encoding="utf-8")
        assert after == before, (path, before, after)
        shown = r.out.split()
        assert len(shown) == 2 and shown[0] == shown[1], r
        if os.geteuid() == 0 and "denied" not in r.err:
            assert shown[0] == wanted, r


def test_options_of_run():
    for bad in ("--paranoid=9", "--paranoid=", "--paranoid=1x", "--kernel-mode=maybe", "--session=",
                "--counters=0"):
        r = run("run", bad, "--", "true")
        assert r.status == 125 and r.err.startswith(f"anyperf run: {bad.split('=')[0]}: "), r
        assert "`anyperf run --help` lists the options." in r.err, r
    assert run("run", "--counters=2", "--kernel-mode=ignore", "--", "true").status == 0
    assert run("run", "--kernel-mode=refuse", "--", "true").status == 0


def test_a_named_session_is_joined():
    name = f"test-{os.getpid()}"
    script = "echo $$; i=0; while [ $i -lt 60 ]; do i=$((i+1)); sleep 0.05; done"
    first = subprocess.Popen([ANYPERF, "run", "--session", name, "--cache-size=32", "--", "sh", "-c",
                              script], env=ENV, stdout=subprocess.PIPE, text=True)
    try:
        pid = first.stdout.readline().strip()
        r = run("run", "--session", name, "--", "cat", "/proc/sys/kernel/perf_event_paranoid")
        assert r.status == 0 and r.out.strip(), r
        # A guest is counted from outside; who is no guest is not.
        r = run("stat", "-j", "--session", name, "-p", pid, "-e", "instructions:u", "sleep", "0.4")
        assert r.status == 0, r
        report = json.loads(r.err)
        assert report["pmu"]["used"] == "virtual" and value(report, "instructions:u") > 1000, report
        # Without its session: that there is one is seen.
        r = run("stat", "-p", pid, "-e", "instructions:u")
        if "no CPU PMU" in r.err:
            assert r.status == 125 and f"{pid} is a guest" in r.err, r
            assert f"--session NAME -p {pid}`" in r.err, r
        else:
            assert r.status == 0, r
        for events in ("instructions:u", "instructions", "instructions,branches"):
            r = run("stat", "--session", name, "-p", str(os.getpid()), "-e", events, "sleep", "0.1")
            assert r.status == 0 and "no guest of this session" in re.sub(r"\s+", " ", r.err), r
        for option in ("--counters=3", "--cpu-model=auto", "--paranoid=1", "--kernel-mode=refuse",
                       "--strict", "--verify",
                       "--cache-size=9", "--deterministic"):
            r = run("run", "--session", name, option, "--", "true")
            assert r.status == 125 and f"decides about {option.split('=')[0]}\n" in r.err, r
        r = run("run", "--session", name, "--cache-size=32", "--", "true")
        assert r.status == 0, r
    finally:
        first.communicate()
    r = run("stat", "--session", "no-such-session", "-p", "1")
    assert r.status == 125 and "no session named" in r.err, r


def test_who_counts_finds_the_pmu_as_well():
    """The session is started when a process of the command asks for it."""
    measure = [ANYPERF, "stat", "-e", "instructions:u", "/bin/true"]
    for how in (["--count"], ["-v"], ["-j"], ["-o", "/dev/null"], ["--deterministic", "--count"]):
        r = run("run", *how, "--", *measure)
        assert r.status == 0 and re.search(r"^ +[0-9]{5,} +instructions:u", r.err, re.M), (how, r)
    # One of several, in the middle; and one that is left when the command has ended.
    r = run("run", "-o", "/dev/null", "--", "sh", "-c", '/bin/true; "$@"; "$@"; exit 3', "sh",
            *measure)
    assert r.status == 3 and len(re.findall(r"^ +[0-9]{5,} +instructions:u", r.err, re.M)) == 2, r
    with tempfile.TemporaryDirectory() as d:
        out = os.path.join(d, "out")
        r = run("run", "-o", "/dev/null", "--", "sh", "-c",
                '(sleep 0.3; "$@" >/dev/null 2>"$0"; mv "$0" "$0.done") >/dev/null 2>&1 & exit 4',
                out, *measure)
        assert r.status == 4, r
        for _ in range(100):
            if os.path.exists(out + ".done"):
                break
            time.sleep(0.1)
        with open(out + ".done", encoding="utf-8") as f:
            text = f.read()
        assert re.search(r"^ +[0-9]{5,} +instructions:u", text, re.M), text


def test_without_proc():
    """In a chroot or a container without /proc nothing is refused that is not refused elsewhere."""
    hide = ["unshare", "-m", "sh", "-c", 'umount -l /proc && ! test -e /proc/self && exec "$@"',
            "sh"]
    if os.geteuid():
        hide[1:2] = ["-r", "-m"]
    if subprocess.run([*hide, "true"], capture_output=True, check=False).returncode:
        raise Skip("/proc cannot be hidden here")
    for command in (["stat", "--pmu=virtual", "-e", "instructions,branches", "sh", "-c",
                     "/bin/true; exit 3"],
                    ["run", "--", ANYPERF, "stat", "-e", "instructions:u,branches:u", "sh", "-c",
                     "exit 3"]):
        r = subprocess.run([*hide, ANYPERF, *command], env=ENV, capture_output=True, text=True,
                           check=False)
        assert r.returncode == 3, r
        assert len(re.findall(r"^ +[0-9]{5,} +(instructions|branches):u", r.stderr,
                              re.M)) == 2, r.stderr


def test_the_proc_of_another_namespace():
    """What does not work there is refused by that name, with what helps."""
    inside = ["unshare", "-Urpf"]
    if subprocess.run([*inside, "--mount-proc", "true"], capture_output=True,
                      check=False).returncode:
        raise Skip("there are no namespaces of one's own here")
    for command in (["run", "--count"], ["stat", "--pmu=virtual", "-e", "instructions"]):
        r = subprocess.run([*inside, ANYPERF, *command, "true"], env=ENV, capture_output=True,
                           text=True, check=False)
        assert r.returncode == 125, r
        assert "/proc is that of another PID namespace" in r.stderr, r
        assert "--mount-proc" in r.stderr, r
        r = subprocess.run([*inside, "--mount-proc", ANYPERF, *command, "true"], env=ENV,
                           capture_output=True, text=True, check=False)
        assert r.returncode == 0 and "instructions" in r.stderr, r


def sessions():
    found = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/comm", "rb") as f:
                if f.read().strip() == b"anyperf-session":
                    found.add(pid)
        except OSError:
            pass
    return found


def command_line(pid):
    try:
        with open(f"/proc/{pid}/cmdline", encoding="utf-8") as f:
            return f.read().replace("\0", " ")
    except OSError:
        return ""


def killed_session(*how, by=9):
    """A command whose session is killed, or gets another signal: it harms nobody."""
    before = sessions()
    # Whoever looks at what the virtual PMU shows has a session.
    script = "cat /proc/sys/kernel/perf_event_paranoid >/dev/null; i=0; while [ $i -lt 20 ]; do /bin/true; i=$((i+1)); sleep 0.05; done; echo done; exit 3"
    p = subprocess.Popen([ANYPERF, "run", *how, "--", "sh", "-c", script], env=ENV,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    mine = []
    while not mine and p.poll() is None:
        time.sleep(0.05)
        mine = [pid for pid in sessions() - before if script in command_line(pid)]
    if not mine:
        p.kill()
        p.wait()
        raise AssertionError("the session was not found")
    for pid in mine:
        os.kill(int(pid), by)
    out, err = p.communicate(timeout=60)
    assert out == "done\n" and p.returncode == 3, (out, err, p.returncode)
    return err


def test_a_killed_session_harms_nobody():
    assert "lost" not in killed_session()
    # Who has counted is told that there is nothing to be had.
    err = killed_session("--count")
    assert "the counts of 'sh' are lost: their session was killed" in err, err
    assert "<not counted>      instructions:u" in err, err


def test_a_session_outlives_its_terminal():
    for hangup in (1, 13):
        err = killed_session("--count", by=hangup)
        assert "lost" not in err and re.search(r"[0-9] +instructions:u", err), err


def cpuid(*how):
    """Signature, highest leaf, vendor (EBX of leaf 0), EAX, EBX and EDX of leaf 0xa."""
    command = [os.environ["E2E_SHOWN"]]
    if how:
        r = run(*how, *command)
        assert r.status == 0, r
        return [int(word, 16) for word in r.out.split()]
    return [int(word, 16) for word in subprocess.run(command, capture_output=True,
                                                     check=True).stdout.split()]


def test_the_model_that_cpuid_shows():
    native = cpuid()
    amd = native[2] == 0x68747541  # "Auth"
    models = {"zen2": (0x17, 0x31),
              "zen4": (0x19, 0x11)} if amd else {"skylake-x": (6, 0x55), "icelake-x": (6, 0x6a)}
    for model, (family, number) in models.items():
        for how in (["run"], ["run", "-o", "/dev/null"], ["run", "--deterministic"],
                    ["stat", "--pmu=virtual", "-o", "/dev/null", "-e", "instructions:u"]):
            signature = cpuid(*how, f"--cpu-model={model}")[0]
            shown = ((signature >> 8 & 15) + (signature >> 20 & 255),
                     (signature >> 4 & 15) | (signature >> 12 & 0xf0))
            assert shown == (family, number), (how, model, hex(signature))
    assert cpuid("run", "--cpu-model=host")[0] == native[0]
    # Version 2; 48 bits; no fixed counters. Of the architectural events all are there with a model
    # of the machine, without one only instructions and branches.
    for n in (3, 7):
        _, highest, vendor, eax, ebx, edx = cpuid("run", f"--counters={n}")
        assert (highest >= 10, vendor) == (True, native[2]), highest
        assert (eax & 255, eax >> 8 & 255, eax >> 16 & 255, eax >> 24) == (2, n, 48, 7), hex(eax)
        assert ebx == 0 and edx == 0, (ebx, edx)
        assert cpuid("stat", "--pmu=virtual", "-o", "/dev/null", "-e", "instructions:u")[4] == 0
        for how in (["run"], ["stat", "--pmu=virtual", "-o", "/dev/null", "-e", "instructions:u"]):
            assert cpuid(*how, "--machine=none")[4] == 0b1011101, how
        assert cpuid("stat", "--pmu=virtual", f"--counters={n}", "-o", "/dev/null", "-e",
                     "instructions:u")[3] == eax


def test_all_see_the_same_cpu():
    """A C library chooses its functions by the CPU, so the counts of the three ways are equal."""
    for shown in ("--cpu-model=auto", "--cpu-model=host", "--cpu-features=host"):
        how = ["--deterministic", shown]
        r = run("run", "--count", "--json", *how, "--", "/bin/true")
        totals = json.loads(r.err.splitlines()[-1])["total"]
        report, = virtual("-e", "instructions:u,branches:u", *how, "/bin/true")
        assert totals["instructions"] == value(report, "instructions:u"), (totals, report)
        assert totals["branches"] == value(report, "branches:u"), (totals, report)
    for command in (["run", "--cpu-model=nosuch", "true"],
                    ["stat", "--pmu=virtual", "--cpu-model=nosuch", "true"],
                    ["stat", "--cpu-model=nosuch", "-e", "page-faults", "true"]):
        r = run(*command)
        assert r.status == 125 and "'nosuch' is no model; there are auto, host, " in r.err, r


def test_a_runtime_that_is_none():
    for named in ("/bin/echo", "/etc/passwd", "/", "/dev/zero"):
        env = {"ANYPERF_RUNTIME": named}
        r = run("run", "true", env=env)
        assert r.status == 125 and not r.out, r
        assert f"ANYPERF_RUNTIME names '{named}', which is not anyperf's runtime" in r.err, r
        r = stat("--pmu=virtual", "-e", "instructions", "true", env=env, status=125)
        assert "not anyperf's runtime" in r.err, r
    r = run("run", "true", env={"ANYPERF_RUNTIME": "/no/such/file"})
    assert r.status == 125 and "No such file" in r.err, r
    with scratch() as d:
        # Another version's is like ours but for the version in its note.
        other = os.path.join(d, "anyperf-rt")
        runtime = os.path.join(os.path.dirname(ANYPERF), "../rt/anyperf-rt")
        with open(runtime, "rb") as f:
            image = f.read()
        note = image.index(struct.pack("<3I8s", 8, 4, 1, b"anyperf"))
        with open(other, "wb") as f:
            f.write(image[:note + 20] + b"\xff\xff\0\0" + image[note + 24:])
        os.chmod(other, 0o755)
        r = run("run", "true", env={"ANYPERF_RUNTIME": other})
        assert r.status == 125 and "another version of anyperf" in r.err, r


def test_a_guest_that_is_moved_from_outside():
    """An event of a task on one CPU: who moves the task is no guest [CALL-03, CALL-05]."""
    if len(os.sched_getaffinity(0)) < 2:
        raise Skip("one CPU only")
    guest = subprocess.Popen([ANYPERF, "run", "--", os.environ["E2E_MOVED"]], env=ENV, text=True,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert guest.stdout.readline() == "here\n"
    with open(f"/proc/{guest.pid}/task/{guest.pid}/children", encoding="ascii") as f:
        pid = int(f.read().split()[0])
    for cpu in (0, 1, 0):
        os.sched_setaffinity(pid, {cpu})
        guest.stdin.write("go\n")
        guest.stdin.flush()
        counts = [int(n) for n in guest.stdout.readline().split()]
        # The runtime's own faults are few.
        assert counts[cpu] >= 1000 and counts[1 - cpu] < 100, (cpu, counts)
    guest.communicate()
    assert guest.returncode == 0


def test_faults_of_a_fork():
    """Hardly any of them is the runtime's [SW-02]."""
    program = os.environ["E2E_FORKED"]
    native = subprocess.run([program], capture_output=True, text=True, check=False)
    if native.returncode:
        raise Skip("no software events here")
    guest = run("run", "--", program)
    assert int(native.stdout) <= int(guest.out) <= int(native.stdout) + 16, (native, guest)


if __name__ == "__main__":
    main(globals())
