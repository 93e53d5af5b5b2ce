#!/usr/bin/env python3
"""Unmodified perf record on the virtual PMU: as many samples as periods, to the last one, in the
function where the instructions are."""
import os
import shutil
import subprocess
import sys
import time

from e2e import ANYPERF, Skip, main, refuse, scratch

FIXED = os.environ["E2E_FIXED"]
SPIN = os.environ["E2E_SPIN"]
TOUCH = os.environ["E2E_TOUCH"]
PERF = shutil.which("perf")


def recorded(directory, *options, fields="ip,period"):
    """The lines of perf script for a recording of FIXED, with @options."""
    data = os.path.join(directory, "perf.data")
    p = subprocess.run([ANYPERF, "run", "--", PERF, "record", "-q", "-o", data, *options, "--",
                        FIXED], capture_output=True, text=True, timeout=60)
    assert p.returncode == 0, p.stderr
    p = subprocess.run([PERF, "script", "-i", data, "-F", fields], capture_output=True,
                       text=True, timeout=60)
    assert p.returncode == 0, p.stderr
    return p.stdout.splitlines()


def stat_count():
    p = subprocess.run([ANYPERF, "stat", "-x,", "-e", "instructions:u", "--", FIXED],
                       capture_output=True, text=True, timeout=60)
    assert p.returncode == 0, p.stderr
    return int([line for line in p.stderr.splitlines() if "instructions" in line][0].split(",")[0])


def test_number_of_samples():
    if not PERF:
        raise Skip("perf is not installed")
    count = stat_count()
    with scratch() as d:
        for period in (count, count // 3, count // 100, 101):
            lines = recorded(d, "--per-thread", "-e", "instructions:u", "-c", str(period))
            assert len(lines) == count // period, (period, count, len(lines))
            assert {line.split()[0] for line in lines} == {str(period)}


def below(pid):
    """The processes below a process."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as f:
            return [p for child in f.read().split() for p in (int(child), *below(child))]
    except OSError:
        return []


def move(process):
    """Moves all below a process from one CPU to the next until it ends."""
    cpus = sorted(os.sched_getaffinity(0))
    moves = 0
    while process.poll() is None:
        moves += 1
        for pid in below(process.pid):
            try:
                os.sched_setaffinity(pid, {cpus[moves % len(cpus)]})
            except OSError:
                pass
        time.sleep(0.01)
    return moves


def test_threads_that_move():
    """There is an event for each CPU, each with a part of a period of its own, and no more lost."""
    cpus = len(os.sched_getaffinity(0))
    if not PERF or cpus < 2:
        raise Skip("perf is not installed" if not PERF else "there is one CPU")
    words, period = ["x"] * 4000, 100003
    count = 2 * 100000 * (1 + len(words)) + 5
    for recorder in [[PERF], [ANYPERF]]:
        with scratch() as d:
            data = os.path.join(d, "perf.data")
            p = subprocess.Popen([ANYPERF, "run", "--", *recorder, "record", "-o", data, "-e",
                                  "instructions:u", "-c", str(period), "--", FIXED, *words],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            moves = move(p)
            assert p.wait() == 0 and "LOST" not in p.stderr.read().upper()
            p = subprocess.run([PERF, "script", "-i", data, "-F", "ip"], capture_output=True,
                               text=True, timeout=60)
            n = len(p.stdout.splitlines())
            assert count // period - cpus <= n <= count // period, (recorder, n, moves)


def test_precise():
    if not PERF:
        raise Skip("perf is not installed")
    with scratch() as d:
        options = ["--per-thread", "-c", "1009", "-e"]
        exact = recorded(d, *options, "instructions:upp")
        behind = recorded(d, *options, "instructions:u")
    assert len(exact) == len(behind) > 0 and exact != behind


def symbols(directory, program, *options, **more):
    """The names and objects of the samples of @program, by unmodified perf record, which has no
    cycles to sample by."""
    data = os.path.join(directory, "perf.data")
    p = subprocess.run([ANYPERF, "run", "--machine=none", "--", PERF, "record", "-q", "-o", data,
                        *options, "--", *program], capture_output=True, text=True, timeout=60,
                       **more)
    if p.returncode == 99 and more:
        raise Skip("no seccomp filters here")
    assert p.returncode == 0, p.stderr
    # What is inlined is asked of addr2line, which takes minutes for a large program.
    p = subprocess.run([PERF, "script", "--no-inline", "-i", data, "-F", "comm,ip,sym,dso"],
                       capture_output=True, text=True, timeout=60)
    assert p.returncode == 0, p.stderr
    return p.stdout


def test_default_event():
    """perf falls back to cpu-clock. The samples are in the program, none in the runtime. [SW-00]"""
    if not PERF:
        raise Skip("perf is not installed")
    with scratch() as d:
        for options in [], ["-F", "999", "-g"], ["-e", "task-clock", "--call-graph", "dwarf"]:
            text = symbols(d, [TOUCH, "20000"], *options)
            assert "(" + TOUCH in text, (options, text)
            assert "anyperf" not in text, (options, text)


def test_default_event_where_the_kernel_refuses_perf_events():
    """In a container, mostly: a timer of the thread's stands in for the kernel's event."""
    if not PERF:
        raise Skip("perf is not installed")
    with scratch() as d:
        text = symbols(d, [sys.executable, "-c", "print(sum(i * i for i in range(3000000)))"],
                       preexec_fn=refuse(298, 1))
        assert "python" in text and "anyperf" not in text, text


def test_ends_and_frame_pointers_that_point_nowhere():
    """A stop is told of in the middle of a call as well, when all signals are blocked."""
    if not PERF:
        raise Skip("perf is not installed")
    many = ("import os\nfor i in range(60):\n    p = os.fork()\n    if not p: os._exit(0)\n"
            "    assert os.waitpid(p, 0)[1] == 0")
    with scratch() as d:
        symbols(d, [sys.executable, "-c", many], "-F", "20000", "-g")


def test_page_faults():
    if not PERF:
        raise Skip("perf is not installed")
    with scratch() as d:
        text = symbols(d, [TOUCH, "300"], "-e", "page-faults", "-c", "1")
        assert sum("(" + TOUCH in line for line in text.splitlines()) >= 300, text


def test_branches():
    """FIXED has a loop of two instructions and takes no other branch [BR-05, BR-06, SAMP-13]."""
    if not PERF:
        raise Skip("perf is not installed")
    count = stat_count()
    with scratch() as d:
        options = ["--per-thread", "-e", "instructions:u", "-c", "1009"]
        lines = recorded(d, "-b", *options, fields="ip,brstack")
        assert len(lines) == count // 1009
        assert {len(line.split()) for line in lines} == {1 + 32}
        assert len({branch for line in lines for branch in line.split()[1:]}) == 1
        lines = recorded(d, "-j", "any_call,any_ret,u", *options, fields="ip,brstack")
        assert len(lines) == count // 1009 and {len(line.split()) for line in lines} == {1}


def test_a_neighbour_that_is_not_sampled():
    """It executes the same code, which counts down: a shell's child in the shell's memory (vfork),
    which is not inherited to."""
    if not PERF:
        raise Skip("perf is not installed")
    with scratch() as d:
        command = [ANYPERF, "run", "--", PERF, "record", "-q", "-o", os.path.join(d, "perf.data"),
                   "--no-inherit", "-e", "instructions:u", "-c", "1000", "--", "sh", "-c",
                   f"{FIXED}; exit 3"]
        p = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert p.returncode == 3, p


def test_attached():
    """perf learns from /proc/PID/maps what code its target has: another guest's, as it is."""
    if not PERF:
        raise Skip("perf is not installed")
    with scratch() as d:
        data = os.path.join(d, "perf.data")
        script = (f"{SPIN} 60000 & {PERF} record -q -e instructions:u -c 1000003 -o {data} -p $! "
                  "sleep 1; kill $!")
        p = subprocess.run([ANYPERF, "run", "--", "sh", "-c", script], capture_output=True,
                           text=True, timeout=60)
        assert os.path.exists(data), p.stderr
        p = subprocess.run([PERF, "script", "-i", data, "-F", "ip,sym,dso"],
                           capture_output=True, text=True, timeout=60)
    lines = p.stdout.splitlines()
    burning = [line for line in lines if line.split()[1:] == ["burn", f"({SPIN})"]]
    assert len(burning) > 0.9 * len(lines) > 0, p


def test_all_cpus():
    """Guests that run beside perf, each with samples of its own; what is no guest has none."""
    if not PERF:
        raise Skip("perf is not installed")
    with scratch() as d:
        data = os.path.join(d, "perf.data")
        for options in ("-e instructions:u -c 1000003", "-e cpu-clock:u -F 500"):
            script = (f"{SPIN} 60000 & a=$!; {SPIN} 60000 & b=$!; echo $a $b; "
                      f"{PERF} record -q -a {options} -o {data} sleep 1; kill $a $b")
            outside = subprocess.Popen([SPIN, "20000"])
            p = subprocess.run([ANYPERF, "run", "--", "sh", "-c", script], capture_output=True,
                               text=True, timeout=60)
            outside.kill()
            outside.wait()
            assert os.path.exists(data), p.stderr
            guests = [int(pid) for pid in p.stdout.split()]
            p = subprocess.run([PERF, "script", "-i", data, "-F", "pid,ip,sym,dso"],
                               capture_output=True, text=True, timeout=60)
            lines = [line.split() for line in p.stdout.splitlines()]
            pids = [int(line[0]) for line in lines]
            assert len(guests) == 2 and all(pids.count(pid) > 5 for pid in guests), p
            assert outside.pid not in pids, p
            burning = [line for line in lines if line[2] == "burn" and line[3] == f"({SPIN})"]
            assert len(burning) > 0.5 * len(lines), p
            os.remove(data)


def test_groups_of_whole_cpus():
    """Of a sample of a CPU with counts the period is what the counts have grown by since the last
    one: what its own program has done, and what was left of those that have ended."""
    if not PERF:
        raise Skip("perf is not installed")
    with scratch() as d:
        data = os.path.join(d, "perf.data")
        p = subprocess.run([ANYPERF, "run", "--", PERF, "record", "-q", "-a", "-c", "10007", "-e",
                            "{instructions:u,branches:u}:S", "-o", data, "--", "sh", "-c",
                            f"{SPIN} 30 & {SPIN} 30 & {SPIN} 30; wait"], capture_output=True,
                           text=True, timeout=60)
        assert p.returncode == 0, p.stderr
        p = subprocess.run([PERF, "script", "-i", data, "-F", "comm,period,event"],
                           capture_output=True, text=True, timeout=60)
        assert p.returncode == 0, p.stderr
        told = {"instructions:u:": [], "branches:u:": []}
        for line in p.stdout.splitlines():
            period, event = line.split()[-2:]
            told[event].append(int(period))
        of = told["instructions:u:"]
        assert len(of) == len(told["branches:u:"]) > 100, told
        # One that is late, as its program was brought to another CPU, has more, and the next less.
        assert of.count(10007) > 0.9 * len(of), sorted(set(of))
        assert max(told["branches:u:"]) < max(of) < 10**9, sorted(set(of))


def test_programs_that_start():
    """The session interrupts threads to tell them of deadlines, but none that has no handler for
    that yet: every program would be killed by a SIGSYS."""
    if not PERF:
        raise Skip("perf is not installed")
    with scratch() as d:
        data = os.path.join(d, "perf.data")
        script = ("for i in $(seq 60); do /bin/true || exit 7; (exec /bin/true) & "
                  "wait $! || exit 8; done")
        p = subprocess.run([ANYPERF, "run", "--", PERF, "record", "-q", "-a", "-F", "4000", "-e",
                            "instructions:u", "-o", data, "sh", "-c", script],
                           capture_output=True, text=True, timeout=120)
        assert p.returncode == 0, p


if __name__ == "__main__":
    main(globals())
