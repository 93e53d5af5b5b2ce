#!/usr/bin/env python3
"""What threads and processes cost under `anyperf run` beyond what they cost natively, as far as it
is the same each time: system calls, page faults, memory and addresses."""
import os
import re
import shutil
import subprocess

from e2e import ANYPERF, ENV, Skip, main, scratch

MADE = os.environ["E2E_MADE"]
HERE = ANYPERF, "run", "--"


def faults(*under, live, way, count):
    """Page faults of one of @count."""
    r = subprocess.run([*under, MADE, str(live), way, str(count)], capture_output=True, text=True,
                       env=ENV, timeout=120, check=False)
    assert r.returncode == 0, r
    return float(r.stdout.split()[2])


def calls(*under, way, count):
    """How often each system call is made, by the program and by the runtime."""
    with scratch() as d:
        log = os.path.join(d, "log")
        r = subprocess.run(["strace", "-f", "-qq", "-o", log, *under, MADE, "0", way, str(count)],
                           capture_output=True, text=True, env=ENV, timeout=120, check=False)
        if "ptrace" in r.stderr and "Operation not permitted" in r.stderr:
            raise Skip("this machine does not let a process trace its child")
        assert r.returncode == 0, r
        with open(log, encoding="utf-8") as f:
            names = re.findall(r"^\d+ +(\w+)\(", f.read(), re.M)
    return {name: names.count(name) for name in set(names)}


def memory(*under, live):
    """Memory and addresses of a process with @live threads, in KB."""
    with subprocess.Popen([*under, MADE, str(live), "stay", "0"], text=True, env=ENV,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        pid = int(process.stdout.readline())
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as f:
            pss = int(re.search(r"^Pss: +(\d+) kB", f.read(), re.M)[1])
        with open(f"/proc/{pid}/status", encoding="ascii") as f:
            size = int(re.search(r"^VmSize:\s+(\d+) kB", f.read(), re.M)[1])
        process.stdin.close()
    return pss, size


def test_the_next_thread_takes_the_area_of_the_last():
    native, here = (faults(*under, live=0, way="create", count=200) for under in ((), HERE))
    assert here < native + 1, (native, here)


def test_calls_of_a_thread():
    """None of them maps anything, which all CPUs would have to be told of."""
    if not shutil.which("strace"):
        raise Skip("strace is not installed")
    few, many = (calls(*HERE, way="create", count=n) for n in (40, 140))
    of_one = {name: (n - few.get(name, 0)) / 100 for name, n in many.items()}
    for name in ("mmap", "munmap", "mprotect"):
        assert of_one.get(name, 0) < 0.2, of_one
    assert sum(of_one.values()) < 26, of_one


def test_memory_of_a_thread():
    def of_one(*under):
        return [(m - f) / 100 for f, m in zip(memory(*under, live=1), memory(*under, live=101))]

    native, here = of_one(), of_one(*HERE)
    assert here[0] < native[0] + 54, (native, here)
    assert here[1] < native[1] + 500, (native, here)


def test_a_fork_does_not_copy_other_threads():
    def more(*under):
        few, many = (faults(*under, live=n, way="fork", count=8) for n in (1, 101))
        return (many - few) / 100

    native, here = more(), more(*HERE)
    assert here < native + 0.5, (native, here)


def test_forks_of_threads():
    for live in 0, 20:
        faults(*HERE, live=live, way="nested", count=5)
        faults(ANYPERF, "run", "--verify", "--", live=live, way="nested", count=2)


if __name__ == "__main__":
    main(globals())
