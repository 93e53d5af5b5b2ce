#!/usr/bin/env python3
"""What protects a program natively protects it under `anyperf run`: no memory is writable and
executable at once, and addresses are as random."""
import ctypes
import glob
import math
import os
import shutil
import struct
import subprocess
import time

from e2e import ANYPERF, ENV, Skip, main

PROGRAMS = os.environ["E2E_PROGRAMS"]
ADDRESSES = os.environ["E2E_ADDRESSES"]

FORKS = """
import os, threading
def work(n):
    return sum(i * i % 7 for i in range(n))
threads = [threading.Thread(target=work, args=(20000,)) for _ in range(3)]
for t in threads:
    t.start()
for i in range(12):
    pid = os.fork()
    if not pid:
        work(3000)
        if i % 3:
            os._exit(0)
        os.execv("/bin/sh", ["sh", "-c", "for i in 1 2 3; do (echo $i | cat); done; exit 0"])
    assert os.waitpid(pid, 0)[1] == 0
for t in threads:
    t.join()
"""
SCRIPT = "f() { echo ${1%x}; }; for i in 1 2 3 4 5 6 7 8 9; do (f $i | cat); x=$(f $i); done"
JIT = "let s = 0; for (let i = 0; i < 2e5; i++) s += Math.sqrt(i) | 0; console.log(s)"


def workloads():
    yield [f"{PROGRAMS}/unchanged-jit"]
    yield [f"{PROGRAMS}/unchanged-execstack"]
    yield ["sh", "-c", SCRIPT]
    yield ["python3", "-c", FORKS]
    for name, *args in (("node", "-e", JIT), ("luajit", "-e", "local s = 0 for i = 1, 1e6 do s = s "
                                                              "+ i % 7 end print(s)")):
        if shutil.which(name):
            yield [name, *args]


def kept(session):
    """The mappings of all processes of a terminal session, as the kernel tells them."""
    for path in glob.glob("/proc/[0-9]*"):
        try:
            if os.getsid(int(path[6:])) != session:
                continue
            with open(path + "/maps", encoding="utf-8", errors="replace") as f:
                for line in f:
                    yield line.split(None, 5)
        except (OSError, ProcessLookupError):
            pass


def test_nothing_is_writable_and_executable():
    for command in workloads():
        both, code, looks = set(), 0, 0
        with subprocess.Popen([ANYPERF, "run", "--", *command], stdout=subprocess.DEVNULL,
                              start_new_session=True, env=ENV) as p:
            while p.poll() is None:
                for mapping in kept(p.pid):
                    code += mapping[-1].startswith("/memfd:anyperf-code") and "x" in mapping[1]
                    if "w" in mapping[1] and "x" in mapping[1]:
                        both.add(" ".join(mapping))
                looks += 1
                time.sleep(0.001)
        assert p.returncode == 0 and not both, (command, p.returncode, both)
        assert code, (command, looks)


def deny(both):
    """For a new process: who asks for memory with all bits of @both in its protection is killed."""
    class Program(ctypes.Structure):
        _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.c_char_p)]

    libc = ctypes.CDLL(None)
    code = b"".join(struct.pack("HBBI", *line) for line in (
        (0x20, 0, 0, 0),            # the number:
        (0x15, 2, 0, 9),            # mmap
        (0x15, 1, 0, 10),           # mprotect
        (0x15, 0, 4, 329),          # pkey_mprotect
        (0x20, 0, 0, 16 + 8 * 2),   # the protection
        (0x54, 0, 0, both),
        (0x15, 0, 1, both),
        (0x06, 0, 0, 0x80000000),   # SECCOMP_RET_KILL_PROCESS
        (0x06, 0, 0, 0x7fff0000)))  # SECCOMP_RET_ALLOW
    program = Program(9, code)

    def install():
        if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.byref(program), 0, 0):
            os._exit(99)
    return install


def test_it_is_not_for_a_moment_either():
    """Not even while the kernel is asked what may be executed: a filter kills who tries."""
    r = subprocess.run([f"{PROGRAMS}/unchanged-jit"], preexec_fn=deny(6), stdout=subprocess.DEVNULL)
    if r.returncode == 99:
        raise Skip("no seccomp filters here")
    assert r.returncode == -31, r
    for command in workloads():
        outputs = [subprocess.run([*prefix, *command], stdout=subprocess.PIPE, text=True, env=ENV,
                                  preexec_fn=how)
                   for prefix, how in (([], None), ([ANYPERF, "run", "--"], deny(6)))]
        assert outputs[1].returncode == 0, (command, outputs[1])
        assert outputs[0].stdout == outputs[1].stdout, (command, outputs)


def sample(runs, *command):
    """Where the parts were in so many runs: a list for each part."""
    found = {}
    for _ in range(runs):
        words = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=ENV,
                               check=True).stdout.split()
        for part, at in zip(words[::2], words[1::2]):
            found.setdefault(part, []).append(int(at))
    return found


def spread(values):
    """Over how many bits of pages they are spread: that of uniform ones is found to less than a
    tenth of a bit, or it is once in more lives than one has."""
    width = max(values) - min(values)
    return math.log2(width >> 12) if width >> 12 else 0


RUNS = 200


def test_addresses_are_as_random():
    try:
        with open("/proc/sys/kernel/randomize_va_space", encoding="ascii") as f:
            if f.read().strip() != "2":
                raise Skip("this machine randomizes less")
    except OSError as why:
        raise Skip("nobody tells whether this machine randomizes") from why
    for kind, runs in (("", RUNS), ("-static", RUNS // 2)):
        native = sample(runs, ADDRESSES + kind)
        here = sample(runs, ANYPERF, "run", "--", ADDRESSES + kind)
        assert native.keys() == here.keys()
        for part, values in native.items():
            bits = spread(values), spread(here[part])
            print(f"     {part}{kind}: {bits[0]:.1f} bits natively, {bits[1]:.1f} here")
            # Files that are shared lie where ThreadSanitizer takes them for such.
            less = 2 if part in ("image", "library") and not kind else 1
            assert bits[1] > bits[0] - less, (part, bits)
        apart = spread([a - b for a, b in zip(here["image"], here["library"])])
        if not kind:
            print(f"     image from library: {apart:.1f}")
            assert apart > 18, apart  # doc/hardening.md, "Addresses"


def test_addresses_of_a_deterministic_run_are_the_same():
    found = sample(5, ANYPERF, "run", "--deterministic", "--", ADDRESSES)
    assert all(len(set(values)) == 1 for values in found.values()), found


if __name__ == "__main__":
    main(globals())
