#!/usr/bin/env python3
"""Simulation beside the program counts what simulation in line counts, and nothing tells of it."""
import glob
import os
import shutil
import signal
import subprocess
import time

from e2e import ANYPERF, ENV, Skip, counts, main, scratch, stat_json

BESIDES = os.environ["E2E_BESIDES"]
EVENTS = ("cycles:u,bus-cycles:u,instructions:u,branches:u,branch-misses:u,cache-references:u,"
          "cache-misses:u,stalled-cycles-frontend:u,stalled-cycles-backend:u,"
          "L1-dcache-loads:u,L1-dcache-load-misses:u,L1-dcache-stores:u,L1-icache-load-misses:u,"
          "LLC-loads:u,LLC-load-misses:u,dTLB-loads:u,dTLB-load-misses:u,iTLB-load-misses:u")


def counted(beside, *program, events=EVENTS, machine="zen4", status=0):
    report, = stat_json("--deterministic", "--model-beside", beside, "--machine", machine,
                        "--model-windows=no", "-e", events, "--", *program, status=status)
    return {name: c["value"] for name, c in counts(report).items()}


def same(*program, **options):
    in_line, beside = (counted(b, *program, **options) for b in ("no", "yes"))
    assert in_line == beside, (program, in_line, beside)
    assert any(in_line.values()), in_line


def output(beside, *program, options=("--deterministic",)):
    return subprocess.run([ANYPERF, "run", *options, "--machine", "zen4", "--model-windows=no",
                           "--model-beside", beside, "--", *program], env=ENV, capture_output=True,
                          text=True, check=True, timeout=120).stdout


def test_all_parts():
    for machine in "zen4", "skylake-server", "cachegrind":
        # That of cachegrind has no cycles and no TLBs.
        same(BESIDES, "burn", "300000", machine=machine)


def test_some_parts():
    for events in ("branch-misses:u", "dTLB-load-misses:u,iTLB-load-misses:u", "cache-misses:u",
                   "branch-misses:u,cache-misses:u"):
        same(BESIDES, "burn", "300000", events=events)


def test_programs():
    with scratch() as d:
        text = os.path.join(d, "text")
        with open(text, "w", encoding="ascii") as f:
            for i in range(3000):
                print(i * 2654435761 % 1000003, "lorem ipsum"[i % 7:], file=f)
        for program in "gzip -9c", "sort -S1M --parallel=1", "perl -ne 'for (split //) { $h{$_}++ }'":
            if shutil.which(program.split()[0]):
                same("sh", "-c", f"exec {program} {text} > /dev/null")


NUMBERS = """$| = 1;
print "$$";
for my $n (1 .. 3) {
    my $sum = 0;
    $sum += $_ * $n for 1 .. 60000;
    my $pid = fork;
    if (!$pid) { $sum += $_ for 1 .. 60000; exit }
    waitpid $pid, 0;
    print " $pid";
}"""


def test_numbers_in_a_namespace():
    """Who is the first in a PID namespace of its own knows what numbers its children have."""
    inside = ["unshare", "-Urpf", "perl", "-e", NUMBERS]
    natively = subprocess.run(inside, capture_output=True, text=True, check=False)
    if natively.returncode:
        raise Skip("there are no namespaces of one's own here")
    r = subprocess.run([ANYPERF, "stat", "-o", os.devnull, "--machine", "zen4",
                        "--model-windows=no", "--model-beside=yes", "-e", "branch-misses:u", "--",
                        *inside], env=ENV, capture_output=True, text=True, check=True)
    assert r.stdout == natively.stdout == "1 2 3 4", (r, natively)


def test_threads():
    # They run in turns, but which is first where they begin and end is chance: two runs in line
    # differ as well.
    in_line, beside = (counted(b, BESIDES, "turns", "3") for b in ("no", "yes"))
    for event, count in in_line.items():
        assert abs(count - beside[event]) <= max(count / 200, 50), (event, in_line, beside)


def test_processes():
    same(BESIDES, "forks")
    same(BESIDES, "exec")


def test_the_last_thread():
    # It is not waited for by the thread that simulates.
    for beside in "no", "yes":
        assert counted(beside, BESIDES, "leader")["branch-misses"] > 10000


def test_who_dies_of_a_signal():
    same(BESIDES, "abort", status=128 + signal.SIGABRT)


def test_what_is_read_meanwhile():
    in_line, beside = (output(b, BESIDES, "reads") for b in ("no", "yes"))
    assert in_line == beside and len(in_line.splitlines()) == 6, (in_line, beside)


def test_nothing_tells_of_it():
    # Of CLONE_VM nobody but a process of one thread may rid itself.
    counted = (ANYPERF, "stat", "-e", "cycles:u", "-o", "/dev/null", "--", BESIDES, "tasks")
    assert output("yes", *counted, options=()) == "1 1 1 1 0 0\n"


def test_rights_are_given_away():
    if os.geteuid() == 0:
        same(BESIDES, "users")


def test_the_task_is_no_ones_limit():
    if os.geteuid() == 0:
        same(BESIDES, "limit")


def tasks(pid):
    return len(glob.glob(f"/proc/{pid}/task/*"))


def begin(beside, *options):
    """A program that burns for long, when it has as many tasks as it will have."""
    p = subprocess.Popen([ANYPERF, "run", "--machine", "zen4", "--model-windows=no",
                          "--model-beside", beside, *options, "--", ANYPERF, "stat", "-e", "cycles:u", "--", "sh", "-c",
                          f"echo $$; exec {BESIDES} burn 4000000000"],
                         env=ENV, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    pid = int(p.stdout.readline())
    for _ in range(3000):
        time.sleep(0.01)
        if beside == "no" or tasks(pid) == 2:
            break
    return p, pid


def end(p, pid):
    os.kill(pid, signal.SIGKILL)
    _, err = p.communicate(timeout=120)
    assert not os.path.exists(f"/proc/{pid}")
    return err


def test_there_is_a_thread():
    p, pid = begin("yes")
    assert tasks(pid) == 2
    end(p, pid)
    p, pid = begin("no")
    time.sleep(0.5)
    assert tasks(pid) == 1
    end(p, pid)


def test_other_guests_do_not_see_it():
    # `perf stat -p` opens events for each thread that it finds.
    p = subprocess.Popen([ANYPERF, "stat", "--machine=zen4", "--model-windows=no",
                          "--model-beside=yes", "-e", "cycles:u", "-o", "/dev/null", "--", "sh",
                          "-c", f"{BESIDES} burn 4000000000 & echo $!; read go;"
                          "ls /proc/$!/task; ls -d /proc/$!/task/*; kill -9 $!"],
                         env=ENV, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    pid = int(p.stdout.readline())
    for _ in range(3000):
        time.sleep(0.01)
        if tasks(pid) == 2:
            break
    assert tasks(pid) == 2
    found, _ = p.communicate("go\n", timeout=120)
    assert found.split() == [str(pid), f"/proc/{pid}/task/{pid}"], (pid, found)


def test_one_cpu():
    cpu = min(os.sched_getaffinity(0))
    one = ["taskset", "-c", str(cpu)]
    if not shutil.which("taskset"):
        return
    p = subprocess.Popen([*one, ANYPERF, "run", "--machine", "zen4", "--model-windows=no", "--",
                          ANYPERF, "stat", "-e", "cycles:u", "--", "sh", "-c",
                          f"echo $$; exec {BESIDES} burn 4000000000"],
                         env=ENV, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    pid = int(p.stdout.readline())
    time.sleep(1)
    assert tasks(pid) == 1
    end(p, pid)


def test_who_is_stopped_and_killed():
    for _ in range(5):
        p, pid = begin("yes")
        os.kill(pid, signal.SIGSTOP)
        time.sleep(0.1)
        os.kill(pid, signal.SIGCONT)
        time.sleep(0.1)
        # What was simulated until then is shown.
        assert "cycles" in end(p, pid)


main(globals())
