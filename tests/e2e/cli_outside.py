#!/usr/bin/env python3
"""Where the translator ends: programs that it leaves to the kernel, and what the kernel writes of
its own into a core."""
import json
import os
import re
import resource
import shutil
import struct
import subprocess

from e2e import ANYPERF, ENV, Skip, main, run, scratch, uncounted

DYING = os.environ["E2E_DYING"]
DYING_THREADS = os.environ["E2E_DYING_THREADS"]


def old_program(directory):
    """A static program of 32 bits that exits with 7, and whether this kernel runs it."""
    code = bytes.fromhex("b801000000 bb07000000 cd80")  # exit(7)
    base, start = 0x08048000, 52 + 32
    head = b"\x7fELF" + bytes([1, 1, 1]) + bytes(9) + struct.pack("<HHIIIIIHHHHHH", 2, 3, 1,
                                                                  base + start, 52, 0, 0, 52, 32,
                                                                 1, 40, 0, 0)
    load = struct.pack("<8I", 1, 0, base, base, start + len(code), start + len(code), 5, 4096)
    path = os.path.join(directory, "old")
    with open(path, "wb") as f:
        f.write(head + load + code)
    os.chmod(path, 0o755)
    try:
        return path, subprocess.run([path], check=False).returncode == 7
    except OSError:
        return path, False


def outsiders(directory):
    """Programs that the translator cannot run: path, why, their own exit status."""
    path, runs = old_program(directory)
    yield uncounted(directory), "setuid program" if os.getuid() == 0 else "unreadable program", 0
    if runs:
        yield path, "32-bit program", 7


def test_as_the_command():
    with scratch() as d:
        for path, why, _ in outsiders(d):
            for how in (["--count"], [], ["--strict"]):
                r = run("run", *how, "--", path)
                assert r.status == 126 and not r.out, r
                refusal = f"cannot run '{path}': the translator cannot run it: {why}"
                assert refusal in r.err, (why, r)
                assert "instructions" not in r.err, r


def test_stat_leaves_it_to_the_kernel():
    listed = json.loads(run("list", "-j", "instructions").out)["events"]
    kernel_counts = listed[0]["counted_by"] == "kernel"
    with scratch() as d:
        for path, why, status in outsiders(d):
            refusal = f"cannot run '{path}': the translator cannot run it: {why}"
            r = run("stat", "-j", "-r", "2", "-e", "instructions,task-clock", "--", path)
            assert r.status == status, r
            report = json.loads(r.err)
            assert report["pmu"]["used"] == "kernel" and report["runs"] == 2, r
            by = {c["event"].split(":")[0]: c for c in report["counts"]}
            assert by["task-clock"]["status"] == "ok", r
            if kernel_counts:
                continue
            assert report["pmu"]["why"] == "the virtual one " + refusal, r
            # That user space could count it is no advice here.
            assert by["instructions"]["status"] == "not-supported", r
            assert "anyperf" not in by["instructions"]["reason"]["remedy"], r
            # Where the virtual PMU was asked for, it is an error.
            for how in (["--pmu=virtual"], ["--counters=1"], ["--deterministic"]):
                r = run("stat", *how, "-e", "instructions", "--", path)
                assert r.status == 126 and refusal in r.err, r
            r = run("stat", "-e", "anyperf/calls/u", "--", path)
            assert r.status == 125 and refusal in r.err, r


def test_started_by_the_command():
    with scratch() as d:
        for path, why, status in outsiders(d):
            r = run("run", "-j", "--", "sh", "-c", f"{path}; echo $?; exec {path}")
            report = json.loads(r.err.splitlines()[-1])
            assert r.status == status and r.out == f"{status}\n", r
            named = [(u["path"], why in u["why"]) for u in report["uncounted"]]
            assert named == [(path, True), (path, True)], (why, r)
            assert [p["comm"] for p in report["processes"]] == ["sh", "sh"], r
            r = run("run", "--count", "--", "sh", "-c", f"{path}; exit 3")
            assert r.status == 3 and f"anyperf run: not counted: {path} ({why}" in r.err, r
            shell = ["--", "sh", "-c", f"{path}; exit 3"]
            named = re.compile(rf"^anyperf (\w+): not counted: {path} \({why}, pid \d+\)$", re.M)
            for recorder in (["record", "--pmu=virtual", "-o", f"{d}/data", *shell],
                             ["record", "-q", "--exact", "-o", f"{d}/data", *shell],
                             ["valgrind", "--tool=callgrind", "--trace-children=yes",
                              f"--callgrind-out-file={d}/out.%p", *shell[1:]]):
                r = run(*recorder)
                assert r.status == 3 and named.findall(r.err) == recorder[:1], r
            # Of children nothing is told there.
            r = run("valgrind", "--tool=callgrind", f"--callgrind-out-file={d}/out", *shell[1:])
            assert r.status == 3 and not named.search(r.err), r


def test_strict():
    script = "import os, sys\ntry:\n    os.execv(sys.argv[1], sys.argv[1:])\nexcept OSError as e:\n    print(e.errno)"
    with scratch() as d:
        for path, _, _ in outsiders(d):
            r = run("run", "--strict", "-j", "--", "python3", "-c", script, path)
            assert r.status == 0 and r.out == "1\n", r  # EPERM
            assert json.loads(r.err.splitlines()[-1])["uncounted"] == [], r
            # What the caller says of it is the caller's affair; it goes on.
            r = run("run", "--strict", "--", "sh", "-c", f"{path} 2>/dev/null; echo $?")
            assert r.status == 0 and r.out == "126\n", r


# Of struct user_regs_struct, which NT_PRSTATUS has at 112.
REGISTERS = ("r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp ss fs_base gs_base "
             "ds es fs gs").split()


class Core:
    def __init__(self, path):
        with open(path, "rb") as f:
            self.bytes = f.read()
        self.registers, self.signals, self.files = [], [], ""
        at, size, n = (struct.unpack_from("<Q", self.bytes, 32)[0],
                       *struct.unpack_from("<HH", self.bytes, 54))
        self.segments = [struct.unpack_from("<IIQQQQQQ", self.bytes, at + i * size)
                         for i in range(n)]
        for kind, _, offset, _, _, length, _, _ in self.segments:
            if kind == 4:
                self.notes(offset, offset + length)

    def notes(self, at, end):
        while at < end:
            name, length, kind = struct.unpack_from("<III", self.bytes, at)
            at += 12 + (name + 3 & ~3)
            if kind == 1:
                self.signals.append(struct.unpack_from("<i", self.bytes, at)[0])
                self.registers.append(dict(zip(REGISTERS,
                                               struct.unpack_from("<27Q", self.bytes, at + 112))))
            if kind == 0x46494c45:
                self.files = self.bytes[at:at + length].decode(errors="replace")
            at += length + 3 & ~3

    def read(self, address, n):
        for kind, _, offset, start, _, length, _, _ in self.segments:
            if kind == 1 and start <= address < start + length:
                return self.bytes[offset + address - start:][:n]
        return None


def symbol(name):
    out = subprocess.run(["nm", DYING], capture_output=True, text=True, check=True).stdout
    return int(next(line.split()[0] for line in out.splitlines() if line.endswith(" " + name)), 16)


def core_of(directory, command):
    before = set(os.listdir(directory))
    limit = resource.getrlimit(resource.RLIMIT_CORE)[1]
    r = subprocess.run(command, cwd=directory, env=ENV, capture_output=True, text=True, check=False,
                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (limit, limit)))
    assert r.returncode == -4, r
    new = set(os.listdir(directory)) - before
    if not new:
        raise Skip("this system writes no core into the working directory")
    assert len(new) == 1, new
    os.rename(os.path.join(directory, *new), os.path.join(directory, "kept"))
    return os.path.join(directory, "kept")


def backtrace(core):
    out = subprocess.run(["gdb", "-q", "-nx", "-batch", "-ex", "bt", DYING, core],
                         capture_output=True, text=True,
                         check=False, timeout=50, env=ENV).stdout
    # The first frame is shown when the core is loaded, too.
    frames = [line for line in out.splitlines() if line.startswith("#")]
    return [line.split("(")[0].split()[-1] for line in frames[frames.index(frames[0], 1):]]


def test_a_core_is_the_programs():
    with scratch() as d:
        for how in ([], ["--count"]):
            native = Core(core_of(d, [DYING]))
            os.unlink(os.path.join(d, "kept"))
            path = core_of(d, [ANYPERF, "run", *how, "-o", "/dev/null", "--", DYING] if how else
                           [ANYPERF, "run", "--", DYING])
            ours = Core(path)
            assert ours.signals == native.signals == [4], (ours.signals, native.signals)
            assert len(ours.registers) == 1, (ours.signals, native.signals)
            mine, its = ours.registers[0], native.registers[0]
            fixed = ("rbx", "r12", "r13", "rax", "rcx", "rdx", "rip", "cs", "ss", "eflags")
            assert {n: mine[n] for n in fixed} == {n: its[n] for n in fixed}, (mine, its)
            assert mine["rbx"] == 0x1111222233334444 and mine["rdx"] == 2, mine
            assert 0 <= mine["rip"] - symbol("the_end") < 200, mine
            assert ours.read(symbol("left_behind"), 29) == b"the last words of the program"
            assert ours.read(mine["rsp"], 8) is not None
            # Code cache and tables are left out: it is as large as the native one, but for a few
            # pages.
            sizes = len(ours.bytes), len(native.bytes)
            assert sizes[0] < sizes[1] + (1 << 20), sizes
            if shutil.which("gdb"):
                assert backtrace(path) == ["the_end", "before_it", "main"], backtrace(path)
            os.unlink(path)



def backtraces(core):
    """The functions of each thread, the innermost first, and some registers of the one that has
    made no system call."""
    ask = ["thread apply all bt", "thread apply all print {$rbx, $r12, $xmm3.v2_int64[0]}"]
    out = subprocess.run(["gdb", "-q", "-nx", "-batch", "-ex", ask[0], "-ex", ask[1],
                          DYING_THREADS, core], capture_output=True, text=True, check=False,
                         timeout=50, env=ENV).stdout
    threads = []
    for part in re.split(r"^Thread .*\n", out, flags=re.M)[1:]:
        frames = re.findall(r"^#\d+ +(?:0x[0-9a-f]+ in )?([^ ]+)", part, re.M)
        if frames:
            threads.append(tuple(frames))
    return sorted(threads), "= {%d, 1, 1}" % 0x1111222233334444 in out


def test_a_core_has_the_programs_threads():
    """All threads are where the program has them, not in the runtime."""
    if not shutil.which("gdb"):
        raise Skip("gdb is not installed")
    with scratch() as d:
        native = backtraces(core_of(d, [DYING_THREADS]))
        os.unlink(os.path.join(d, "kept"))
        assert len(native[0]) == 4 and native[1], native
        for how in ([], ["--count", "-o", "/dev/null"]):
            ours = backtraces(core_of(d, [ANYPERF, "run", *how, "--", DYING_THREADS]))
            os.unlink(os.path.join(d, "kept"))
            assert ours == native, (ours, native)


if __name__ == "__main__":
    main(globals())
