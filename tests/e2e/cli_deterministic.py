#!/usr/bin/env python3
"""anyperf run and stat --deterministic: programs that use what usually varies retire the same
instructions in every run, whatever the outside is like; what cannot be fixed is named when a
program uses it, and only then."""
import json
import os
import re
import shutil
import subprocess
import sys

from e2e import ANYPERF, Skip, main, run, scratch, stat, stat_json

NONDET = os.environ["E2E_NONDET"]
UNORDERED = os.environ.get("E2E_UNORDERED", "")
EVENTS = "instructions:u,branches:u"
# The program's environment is an input of it like its arguments.
INSIDE = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/",
          "TMPDIR": os.environ.get("TMPDIR", "/tmp")}
# How the outside may differ between two runs.
OUTSIDE = [[], ["setarch", "-R"], ["nice", "-n", "5"], ["prlimit", "--nofile=200",
                                                        "--stack=4000000"]]


def counted(outside, options, program, cwd=None):
    """What the program printed, its counts and what it used that is not fixed; and how long its
    parent's number is, since numbers of processes are printed by some."""
    with scratch() as d:
        report = os.path.join(d, "report")
        p = subprocess.Popen([*outside, ANYPERF, "stat", "--deterministic", "-j", "-e", EVENTS,
                              "-o", report,
                              *options, "--", *program], env=INSIDE, cwd=cwd or "/",
                             stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        out, err = p.communicate(timeout=40)
        assert p.returncode == 0 and not err, (program, p.returncode, err)
        with open(report, encoding="utf-8") as f:
            r = json.load(f)
    assert r["pmu"]["used"] == "virtual" and r["deterministic"]["seed"] == 0, r
    return out, [c["value"] for c in r["counts"]], r["deterministic"]["not_fixed"], len(str(p.pid))


def same(*program, options=(), before=None, cwd=None, outside=OUTSIDE[:3]):
    """Runs it several times; what it used that is not fixed."""
    runs = []
    for around in outside:
        if around and not shutil.which(around[0]):
            continue
        for _ in range(2):
            if before:
                before()
            runs.append(counted(around, options, program, cwd))
            # The number of digits changes once in a machine's life.
            if runs[0][3] == runs[-1][3]:
                break
        out, counts, nondet, _ = runs[-1]
        assert counts[0] > counts[1] > 0, runs
        assert (out, counts, nondet) == runs[0][:3], (program, runs)
    return runs[0][2]


def test_nothing_used():
    assert same(NONDET, "nothing", outside=OUTSIDE) == []


def test_random_numbers_and_addresses():
    assert same(NONDET, "randoms", outside=OUTSIDE) == []
    # Without the option they do vary: the test sees what it is about.
    assert run("run", NONDET, "randoms").out != run("run", NONDET, "randoms").out
    # No number comes twice; there is no vDSO, and the CPU is always 0. Another seed gives other
    # numbers.
    first = run("run", "--deterministic", NONDET, "randoms")
    lines = first.out.splitlines()
    assert first.status == 0 and len(set(lines)) == len(lines) == 8 and lines[5] == "0 0", first
    assert run("run", "--deterministic", NONDET, "randoms").out == first.out
    assert run("run", "--deterministic", "--seed", "0", NONDET, "randoms").out == first.out
    other = run("run", "--deterministic", "--seed=1", NONDET, "randoms").out.splitlines()
    assert not set(other[:3]) & set(first.out.splitlines()), (first, other)


def test_instructions_of_time_and_chance():
    # The program sees itself that each leaves registers and flags as the CPU does.
    assert same(NONDET, "instructions") == []
    assert run("run", "--deterministic", NONDET, "instructions").status == 0
    assert run("run", NONDET, "instructions").status == 0
    assert subprocess.run([NONDET, "instructions"], stdout=subprocess.DEVNULL,
                          check=False).returncode == 0


def test_through_fork_and_exec():
    twice = [NONDET, "randoms"]
    r = run("run", "--deterministic", "sh", "-c", '"$@"; "$@"', "sh", *twice)
    half = len(r.out.splitlines()) // 2
    lines = r.out.splitlines()
    # The second program draws other numbers, at the same addresses.
    assert half > 4 and lines[0] != lines[half] and lines[3:5] == lines[half + 3:half + 5], r
    assert run("run", "--deterministic", "sh", "-c", '"$@"; "$@"', "sh", *twice).out == r.out
    # A shell that waits is interrupted by its child's end, sooner or later in what it does.
    r = run("run", "--deterministic", "--count", "-j", "sh", "-c", '"$@"', "sh", NONDET, "pids")
    assert "pids" in json.loads(r.err)["deterministic"]["not_fixed"], r
    assert same("env", "A=1", "env", NONDET, "wall time") == ["wall time"]


def test_python():
    same("/usr/bin/python3", "-c", "print(hash('a'), {str(i) for i in range(300)}, id(object()), "
         "__import__('os').urandom(4), __import__('random').random())")


def test_perl():
    if not shutil.which("perl"):
        raise Skip("there is no perl")
    assert "threads" not in same("perl", "-e",
                                 "my %h = map { $_ => 1 } 1 .. 500; print join(',', keys %h), rand();")


def test_bash():
    if not shutil.which("bash"):
        raise Skip("there is no bash")
    same("bash", "-c", "RANDOM=5; declare -A a; for i in {1..300}; do a[$i]=$RANDOM; done; "
         "echo ${!a[@]} ${a[@]}; printf -v x %s $SRANDOM; echo $x")


def test_unordered():
    if not UNORDERED:
        raise Skip("there is no C++ compiler")
    assert same(UNORDERED, outside=OUTSIDE) == []


def test_compiler():
    if not shutil.which("gcc"):
        raise Skip("there is no gcc")
    with scratch() as d:
        with open(os.path.join(d, "a.c"), "w", encoding="utf-8") as f:
            f.write("#include <stddef.h>\nint f(int n)\n{\n\treturn n ? n * f(n - 1) : 1;\n}\n")
        # In two steps: gcc draws the name of a file in between from the wall time, which is not
        # fixed, and now and then has to draw twice.
        for made, how in ("a.s", ["-O1", "-S", "a.c"]), ("a.o", ["-c", "a.s"]):
            path = os.path.join(d, made)
            same("gcc", *how, cwd=d, outside=OUTSIDE[:2], before=lambda: os.path.exists(path)
                 and os.unlink(path))


def sources(*program):
    r = run("run", "--deterministic", "--count", "-j", *program)
    assert r.status == 0, r
    names = json.loads(r.err)["deterministic"]["not_fixed"]
    # With a session, whose runtimes look at calls before we do, it is the same.
    assert stat_json("--deterministic", "-e", EVENTS,
                     *program)[0]["deterministic"]["not_fixed"] == names, program
    return names


def test_each_nondeterministic_source_is_named():
    for name in ("pids", "wall time", "CPU time", "threads", "processes", "I/O", "signals",
                 "machine's state"):
        assert sources(NONDET, name) == [name], name
    assert sources(NONDET, "polled processes") == ["processes"]
    assert sources(NONDET, "half a pipe") == ["I/O"]
    # These have an outcome that is the same each time. (The C library asks for the pid to send a
    # signal.)
    assert sources(NONDET, "one process") == []
    assert sources(NONDET, "one after the other") == []
    assert sources(NONDET, "a pipe") == []
    assert sources(NONDET, "signal to itself") == ["pids"]


def test_text():
    for locale, sign in (("C", "+-"), ("C.UTF-8", "±")):
        r = stat("--deterministic", "-r", "3", "-e", EVENTS, "--", NONDET, "nothing",
                 env={"LC_ALL": locale})
        sign = re.escape(sign)
        assert len(re.findall(rf":u +(?:# .*)?\( {sign} 0 \)$", r.err, re.M)) == 2, r
        assert re.search(f"instructions and branches are {sign} 0", " ".join(r.err.split())), r
    r = stat("--deterministic", "--seed", "7", "-e", EVENTS, "--", NONDET, "threads")
    text = " ".join(r.err.split())
    assert "(seed 7)" in text and "used of: threads. Counts may differ" in text, r
    for how in (["-x,"], ["-I", "1000"], ["-x,", "-I", "1000"]):
        r = stat("--deterministic", *how, "-e", EVENTS, "--", NONDET, "threads")
        notes = [line for line in r.err.splitlines() if line.startswith("# Deterministic (seed 0)")]
        assert len(notes) == 1 and "used of: threads." in notes[0], r
    r = run("run", "--deterministic", "--count", NONDET, "wall time")
    assert "used of: wall time." in " ".join(r.err.split()), r
    assert "deterministic" not in stat_json("--pmu=virtual", "-e", EVENTS, NONDET, "nothing")[0]


# Who may use one CPU only sees as many as who may use all.
PINNED = [[], ["taskset", "-c", str(min(os.sched_getaffinity(0)))]]


def test_cpus():
    # Without the option it is the machine's number, and named.
    assert sources(NONDET, "CPUs") == ["CPUs"]
    assert sources(NONDET, "nothing") == []
    text = {1: "0", 4: "0-3", 40: "0-39"}
    for n, cpus in text.items():
        # The C library asks for the size of the kernel's mask, and files in /sys.
        assert same(NONDET, "CPUs", options=["--cpus", str(n)], outside=PINNED) == []
        out = run("run", "--deterministic", "--cpus", str(n), NONDET, "CPUs").out
        assert out == f"{n} of {n} of {n}, 8 bytes\n", out
        out, _, nondet, _ = counted([], ["--cpus", str(n)],
                                    ["cat", "/sys/devices/system/cpu/online"])
        assert (out, nondet) == (cpus + "\n", []), (out, nondet)
        out, _, _, _ = counted([], ["--cpus", str(n)],
                               ["grep", "-c", "^processor", "/proc/cpuinfo"])
        assert out == f"{n}\n", out
    # There are events of all of them.
    r = run("run", "--deterministic", "--cpus=40", ANYPERF, "stat", "-a", "-A", "-x,", "-e",
            "cpu-clock", "true")
    assert [line.split(",")[0] for line in r.err.splitlines() if "cpu-clock" in line] == \
        [f"CPU{i}" for i in range(40)] and "not supported" not in r.err, r
    # What a program sets is kept for it, its threads and what it executes.
    want = """4 of 4 of 4, 8 bytes
/sys/devices/system/cpu/online: 0-3
/sys/devices/system/cpu/possible: 0-3
/sys/devices/system/cpu/present: 0-3
4 4
2, on 2
2 of them in a thread, on 2
Cpus_allowed:\tc
Cpus_allowed_list:\t2-3
2
"""
    for around in PINNED:
        r = subprocess.run([*around, ANYPERF, "run", "--deterministic", "--cpus=4", NONDET,
                            "CPUs everywhere"], stdout=subprocess.PIPE, text=True, check=False)
        assert (r.returncode, r.stdout) == (0, want), r
    # The groups of a mask with more than 32.
    r = run("run", "--deterministic", "--cpus=37", "taskset", "-c", "0,5-7,36", "sh", "-c",
            "grep Cpus_allowed /proc/self/status; nproc")
    assert r.out.splitlines() == ["Cpus_allowed:\t10,000000e1", "Cpus_allowed_list:\t0,5-7,36",
                                  "5"], r
    assert "CPUs" in sources("ls", "/sys/devices/system/cpu")


READS = """import ctypes, os, struct
libc, buf = ctypes.CDLL(None), ctypes.create_string_buffer({size})
fd, names = os.open({folder!r}, os.O_RDONLY), []
while (n := libc.syscall(217, fd, buf, {size})) > 0:
    at = 0
    while at < n:
        _, _, size = struct.unpack_from("<QqH", buf, at)
        names.append(buf.raw[at + 19:at + size].split(b"\\0")[0].decode())
        at += size
print(*names)
"""


def test_the_order_of_directories():
    """By name, whatever the file system has; what takes several calls is named."""
    names = ["!", "+", ".h", "x" * 200, *(f"{i * 7919 % 10007:x}" for i in range(400))]
    with scratch() as d:
        folders = [os.path.join(d, name) for name in ("a", "b")]
        for folder, order in zip(folders, (names, reversed(names))):
            os.mkdir(folder)
            for name in order:
                with open(os.path.join(folder, name), "w", encoding="utf-8"):
                    pass
        found = [counted([], [], ["ls", "-f"], cwd=folder) for folder in folders]
        for out, _, nondet, _ in found:
            assert out.split("\n")[:-1] == [".", "..", *sorted(names)], out
            assert nondet == [], nondet
        assert found[0][1] == found[1][1], [f[1] for f in found]
        python = ["/usr/bin/python3", "-I", "-S", "-c"]
        out, _, nondet, _ = counted([], [], [*python, READS.format(folder=folders[0], size=65536)])
        assert out.split() == [".", "..", *sorted(names)], out
        assert "directory order" not in nondet, nondet
        # In several calls: nothing is missing, and it is named.
        out, _, nondet, _ = counted([], [], [*python, READS.format(folder=folders[0], size=1000)])
        assert sorted(out.split()) == sorted([".", "..", *names]), out
        assert "directory order" in nondet, nondet
        # Nor is anything left where files go while they are read.
        assert counted([], [], ["rm", "-r", folders[0]])[0] == "" and os.listdir(d) == ["b"]


def test_cpu_features():
    flags = {"x86-64-v2": "v3", "x86-64-v3": "v4"}
    for level, above in flags.items():
        r = run("run", "--deterministic", f"--cpu-features={level}", NONDET, "features")
        if "lacks some of the features" in r.err:
            assert r.status == 126, r
            continue
        assert r.status == 0 and level[-2:] in r.out.split() and above not in r.out.split(), r
        assert same(NONDET, "features", options=["--cpu-features", level]) == []
    assert same(NONDET, "features", options=["--cpu-features", "host"]) == []


def test_what_does_not_go_together():
    for options in (["--seed", "1"], ["--cpu-features=host"], ["--cpus=2"],
                    ["--deterministic", "--cpus=0"], ["--deterministic", "--cpus=65"],
                    ["--deterministic", "--cpu-features=x86-64-v9"],
                    ["--deterministic", "--seed=-1"]):
        for command in ("run", "stat"):
            assert run(command, *options, "true").status == 125, (command, options)
    for options in (["--pmu=kernel"], ["-a"], ["-p", str(os.getpid())]):
        r = run("stat", "--deterministic", *options, "true")
        assert r.status == 125 and "--deterministic" in r.err, r


def may_fix_addresses():
    r = run("run", "--deterministic", "--count", "-j", NONDET, "nothing")
    return "addresses" not in json.loads(r.err)["deterministic"]["not_fixed"]


if __name__ == "__main__":
    if not may_fix_addresses():
        print("skip: personality(2) is forbidden here")
        sys.exit(77)
    main(globals())
