#!/usr/bin/env python3
"""Who may believe whom: what another process can write decides nothing that a program is shown of
third parties, and what cannot be shown is said."""
import ctypes
import os
import select
import shutil
import signal
import struct
import subprocess
import sys
import time

from e2e import ANYPERF, ENV, Skip, main, run, scratch

METER = 32768
RUNS, REFUSALS = 4096, 9216
# abi/meter.h: what a run with an exact profile has given away, and how much there may be of each.
PATH_THREADS, MODELED_PROFILES, PATH_MOST = 3412, 3424, 262144
# abi/path-trace.h
STREAM, WRITTEN, STREAM_WORDS = b"ANPSTRM6", 24, 128 << 10
# abi/modeled-profile.h
PROFILE_MAGIC, PROFILE_AT, PROFILE_ROOM = 0x3150444f4d4e41, 39591025311744, 64 << 20


def meters_of(pid):
    """The counter segment that a process has open, as a descriptor for writing."""
    for name in os.listdir(f"/proc/{pid}/fd"):
        path = f"/proc/{pid}/fd/{name}"
        try:
            if os.readlink(path).startswith("/memfd:anyperf-meters"):
                return os.open(path, os.O_RDWR)
        except FileNotFoundError:
            pass  # it has been closed meanwhile
    raise AssertionError(f"{pid} has no meters")


def test_a_page_that_lies_about_a_program():
    """Another has written into a guest's page that it runs a program of its choice."""
    sleeper = os.path.realpath(shutil.which("sleep"))
    script = ("sleep 60 & echo $!; read -r line; readlink /proc/$!/exe; "
              "head -c 6 /proc/$!/exe | od -An -c; kill $!")
    for lie in (sleeper, "/etc/passwd", "p/etc/passwd"):
        guest = subprocess.Popen([ANYPERF, "run", "--", "sh", "-c", script], env=ENV, text=True,
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        pid = int(guest.stdout.readline())
        # The child of the shell has become the program when its page says so.
        fd = meters_of(pid)
        written = 0
        for _ in range(200):
            for i in range(1, 9):
                page = os.pread(fd, METER, i * METER)
                at = page.find(sleeper.encode() + b"\0")
                if at >= 0:
                    os.pwrite(fd, lie.encode() + b"\0", i * METER + at)
                    written += 1
            if written:
                break
            time.sleep(0.01)
        os.close(fd)
        out, _ = guest.communicate("go on\n", timeout=60)
        assert written, out
        assert "passwd" not in out and "root" not in out, out
        assert out == f"{sleeper}\n 177   E   L   F 002 001\n", (lie, out)


def unreadable():
    """For a new process: nobody reads another's memory, as where kernel.yama.ptrace_scope says."""
    class Program(ctypes.Structure):
        _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.c_char_p)]

    libc = ctypes.CDLL(None)
    program = Program(4, b"".join(struct.pack("HBBI", *line) for line in (
        (0x20, 0, 0, 0),             # the number:
        (0x15, 0, 1, 310),           # process_vm_readv
        (0x06, 0, 0, 0x00050001),    # SECCOMP_RET_ERRNO, EPERM
        (0x06, 0, 0, 0x7fff0000))))  # SECCOMP_RET_ALLOW
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.byref(program), 0, 0):
        os._exit(99)


CLAIMS = 1000


def test_pages_that_lie_about_a_program_are_not_all_asked_about():
    """For each of them all mappings of the program would be read."""
    if not shutil.which("strace"):
        raise Skip("there is no strace")
    sleeper = os.path.realpath(shutil.which("sleep")).encode()
    script = "sleep 60 & echo $!; read -r line; readlink /proc/$!/exe; kill $!"
    with scratch() as d:
        log = os.path.join(d, "log")
        guest = subprocess.Popen(["strace", "-f", "-qq", "-o", log, "-e", "trace=open,openat",
                                  ANYPERF, "run", "--", "sh", "-c", script], env=ENV, text=True,
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 preexec_fn=unreadable)
        pid = guest.stdout.readline().strip()
        if not pid:
            guest.wait()
            raise Skip("nothing can be traced")
        fd = meters_of(int(pid))
        owner, page, index = struct.pack("<III", 1, int(pid), int(pid)), b"", 0
        while owner not in page or sleeper not in page:
            index = index % 8 + 1
            page = os.pread(fd, METER, index * METER)
        lie = page.replace(sleeper, b"/etc/no-program-of-that-name")[:METER]
        os.pwrite(fd, struct.pack("<I", CLAIMS + 20), 8)
        for i in (index, *range(20, CLAIMS + 20)):
            os.pwrite(fd, lie[:8192], i * METER)
        os.close(fd)
        guest.communicate("go on\n", timeout=120)
        with open(log, encoding="ascii", errors="replace") as f:
            asked = sum(f'"/proc/{pid}/maps"' in line for line in f)
    assert 0 < asked < CLAIMS / 10, asked


def test_what_is_decided_beforehand_is_nobodys_to_change():
    """Another has written over the header of the segment that all guests share: what CPUID shows,
    the options of the run and the settings that programs see stay what they were, and with no page
    left to count in programs run as well."""
    shown = os.environ["E2E_LEVEL"], "/sys/bus/event_source/devices/cpu/caps/pmu_name"

    def of(options, noise):
        # Random numbers are fixed with a seed.
        draw = "import os; print(os.sched_getaffinity(0), {})".format(
            "os.urandom(8)" if options else 0)
        script = (f"echo $$; read -r line; {shown[0]}; {sys.executable} -c '{draw}'; "
                  f"cat {shown[1]}; cat /proc/sys/kernel/perf_event_paranoid")
        # Some leaves tell of the CPU that they were asked on.
        # With a machine they would have programs simulate one, which takes long.
        guest = subprocess.Popen([ANYPERF, "run", "--machine=none", *options, "--", "sh", "-c",
                                  script],
                                 env=ENV, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 preexec_fn=lambda: os.sched_setaffinity(0, {cpu}))
        pid = int(guest.stdout.readline())
        fd = meters_of(pid)
        if noise:
            # In between stands what reports are about.
            os.pwrite(fd, noise[:RUNS], 0)
            os.pwrite(fd, noise[REFUSALS:], REFUSALS)
        os.close(fd)
        out, _ = guest.communicate("go on\n", timeout=120)
        assert guest.returncode == 0, (options, out)
        return out.splitlines()

    cpu = min(os.sched_getaffinity(0))
    for options in ([], ["--deterministic", "--cpus", "3", "--seed", "5"],
                    ["--deterministic", "--cpu-features", "x86-64-v2", "--counters", "3"]):
        honest = of(options, None)
        for noise in (b"\xff" * METER, os.urandom(METER), bytes(METER)):
            seen = of(options, noise)
            assert seen == honest, (options, set(seen) ^ set(honest))


def test_pages_that_are_claimed_are_not_all_looked_at():
    """Another has written that all are in use, and that it is time to look for free ones: who
    starts a process would look at a quarter of a million each time."""
    if not shutil.which("strace"):
        raise Skip("there is no strace")
    with scratch() as d:
        log = os.path.join(d, "log")
        guest = subprocess.Popen(["strace", "-f", "-qq", "-o", log, "-e", "trace=pread64", ANYPERF,
                                  "run", "--", "sh", "-c", "echo $$; read -r line; env true"],
                                 env=ENV, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        pid = guest.stdout.readline()
        if not pid:
            guest.wait()
            raise Skip("nothing can be traced")
        fd = meters_of(int(pid))
        # `used`, `collect_at` and `freed` (abi/meter.h)
        for at, words in ((8, [262144]), (20, [0]), (36, [0] * 64)):
            os.pwrite(fd, struct.pack(f"<{len(words)}I", *words), at)
        os.close(fd)
        guest.communicate("go on\n", timeout=120)
        with open(log, encoding="ascii", errors="replace") as f:
            looks = sum(1 for line in f)
    assert guest.returncode == 0, guest
    assert looks < 30000, looks


VICTIM = """
import os, signal, sys
signal.signal(signal.SIGALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
def end(*_):
    # Or it ends by it, once Python has put the handler back.
    signal.setitimer(signal.ITIMER_REAL, 0)
    sys.exit(7)
signal.signal(signal.SIGTERM, end)
print(os.getpid(), flush=True)
while True:
    sum(range(1000))
"""


def test_a_count_that_leaps_keeps_nobody_in_windows():
    """Another has added 2^62 to what a thread has counted, which sees its program in windows."""
    guest = subprocess.Popen([ANYPERF, "stat", "--machine", "zen4", "--model-windows=10000/1M",
                              "-e", "branch-misses:u", "--", sys.executable, "-c", VICTIM],
                             env=ENV, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    pid = int(guest.stdout.readline())
    fd = meters_of(pid)
    for i in range(1, 9):
        # struct meter: pid and tid stand behind the lanes, base[] and the state.
        if struct.unpack("<II", os.pread(fd, 8, i * METER + 1092)) == (pid, pid):
            lane = i * METER + 7 * 64
            count, = struct.unpack("<Q", os.pread(fd, 8, lane))
            os.pwrite(fd, struct.pack("<Q", count + (1 << 62) & (1 << 64) - 1), lane)
            break
    else:
        raise AssertionError("the thread has no page")
    os.close(fd)
    time.sleep(0.3)
    os.kill(pid, signal.SIGTERM)
    try:
        guest.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        os.kill(pid, signal.SIGKILL)
        guest.communicate()
    assert guest.returncode == 7, guest


def claimed(options, claim):
    """Has the only guest of a command with @options run to its end, after @claim was called with
    the segment: how much memory the command and the segment took then, in bytes."""
    guest = subprocess.Popen([ANYPERF, *options, "--", "sh", "-c", "echo $$; read -r line; true"],
                             env=ENV, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
    fd = meters_of(int(guest.stdout.readline()))
    if claim:
        claim(fd)
    guest.stdin.write("go on\n")
    guest.stdin.close()
    said = guest.stderr.read()
    _, status, used = os.wait4(guest.pid, 0)
    guest.returncode = os.waitstatus_to_exitcode(status)
    segment = os.fstat(fd).st_blocks * 512
    os.close(fd)
    assert guest.returncode == 0, (options, said)
    return used.ru_maxrss * 1024, segment


def claim_threads(fd):
    os.pwrite(fd, struct.pack("<I", PATH_MOST), PATH_THREADS)


def claim_profiles(fd):
    """16 that are full, as their first pages say, and nobody has written more than those."""
    magic, run_number = struct.unpack("<Q4xI", os.pread(fd, 16, PROFILE_AT))
    assert magic == PROFILE_MAGIC, hex(magic)
    for i in range(100, 116):
        head = struct.pack("<QIIIIQQI", PROFILE_MAGIC, 0, run_number, 1, 1, 1, 0, 1 << 20)
        os.pwrite(fd, head, PROFILE_AT + i * PROFILE_ROOM)
    os.pwrite(fd, struct.pack("<I", PATH_MOST), MODELED_PROFILES)


def test_streams_and_profiles_that_are_claimed_take_no_memory():
    """A guest has written that there are as many as there may be, and that each is full: who reads
    them made the pages of them all, and kept something for each."""
    modeled = ["record", "--exact", "--machine", "cachegrind", "-e", "L1-dcache-load-misses:u",
               "-o", "/dev/null"]
    with scratch() as d:
        traced = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={d}/out"]
        for options, claim in ((traced, claim_threads), (modeled, claim_profiles)):
            honest, seen = claimed(options, None), claimed(options, claim)
            assert all(s < h + (32 << 20) for s, h in zip(seen, honest)), (options, honest, seen)


def streams(fd):
    """Where threads hand over traces, in a segment that is mostly holes."""
    at, end = 0, os.fstat(fd).st_size
    while at < end:
        try:
            at = os.lseek(fd, at, os.SEEK_DATA)
        except OSError:
            return
        if os.pread(fd, 8, at) == STREAM:
            yield at
        at += 4096


def test_nobody_is_waited_for_who_only_says_that_he_reads():
    """The reader of a trace takes nothing, and another writes again and again that it has taken a
    little: who hands it over waited for as long as that went on, ten minutes at most."""
    script = "echo $$; read -r line; i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo done"
    with scratch() as d:
        guest = subprocess.Popen([ANYPERF, "valgrind", "--tool=callgrind",
                                  f"--callgrind-out-file={d}/out", "sh", "-c", script], env=ENV,
                                 text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE)
        pid = int(guest.stdout.readline())
        fd = meters_of(pid)
        *_, stream = streams(fd)
        os.kill(guest.pid, signal.SIGSTOP)
        said = 0
        try:
            guest.stdin.write("go on\n")
            guest.stdin.flush()
            while not select.select([guest.stdout], [], [], 0.02)[0]:
                written, read = struct.unpack("<II", os.pread(fd, 8, stream + WRITTEN))
                if (written - read) % 2**32 > STREAM_WORDS - 60000:
                    os.pwrite(fd, struct.pack("<I", (read + 1) % 2**32), stream + WRITTEN + 4)
                    said += 1
            assert guest.stdout.readline() == "done\n" and said, said
        except TimeoutError:
            os.kill(pid, signal.SIGKILL)
            raise
        finally:
            os.kill(guest.pid, signal.SIGCONT)
            os.close(fd)
            guest.communicate(timeout=45)
        assert guest.returncode == 0, guest


def test_a_command_that_ran_has_not_failed_to_start():
    """Another has written that the command could not be started."""
    guest = subprocess.Popen([ANYPERF, "run", "--", "sh", "-c", "echo $$; read -r line; exit 3"],
                             env=ENV, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
    fd = meters_of(int(guest.stdout.readline()))
    # Behind the number of the last run and a text; `error` is the last of four words.
    first = RUNS + 2 * 4 + 256
    assert int.from_bytes(os.pread(fd, 4, first), "little") == 1
    os.pwrite(fd, (-1).to_bytes(4, "little", signed=True), first + 12)
    os.close(fd)
    _, err = guest.communicate("go on\n", timeout=60)
    assert (guest.returncode, err) == (3, ""), (guest, err)


def test_what_programs_are_shown_and_where_there_is_no_room():
    """The machine's own files would be others' numbers and limits."""
    if os.geteuid():
        raise Skip("only root can mount")
    shown = "/proc/sys/kernel/perf_event_paranoid"
    # The build may lie below /tmp.
    build = os.path.abspath(os.path.join(os.path.dirname(ANYPERF), "..", ".."))
    moved = os.path.join("/mnt", os.path.relpath(os.path.abspath(ANYPERF), build))
    script = (f'mount --bind {build} /mnt && mount -t tmpfs -o {{}} none /dev/shm && '
              'mount -t tmpfs -o {} none /tmp || exit 77; exec "$0" "$@"')

    def of(first, second):
        env = {k: v for k, v in ENV.items() if k not in ("TMPDIR", "XDG_RUNTIME_DIR")}
        r = subprocess.run(["unshare", "-m", "sh", "-c", script.format(first, second), moved,
                            "run", "--paranoid", "1", "-v", "--", "cat", shown], env=env, text=True,
                           cwd="/", capture_output=True, check=False, timeout=60)
        if r.returncode == 77:
            raise Skip("nothing can be mounted")
        return r

    room, full = "size=10m", "size=10m,nr_inodes=12"
    # The other place has room.
    r = of(full, room)
    assert (r.returncode, r.stdout) == (0, "1\n"), r
    # None has: the program is told, and so is its user.
    r = of(full, full)
    assert r.returncode == 1 and r.stdout == "", r
    assert "cat: " + shown + ": No space left on device" in r.stderr, r
    assert "making the files of PMUs and limits that programs see: No space left" in r.stderr, r


def test_hidden_descriptors_are_no_ones_by_a_pidfd():
    program = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
me = os.pidfd_open(os.getpid())
seen = {int(n) for n in os.listdir("/proc/self/fd")}
for fd in range(1200):
    copy = libc.syscall(438, me, fd, 0)
    if copy >= 0:
        name = os.readlink(f"/proc/self/fd/{copy}")
        os.close(copy)
        # What was listed, and the copy of the last that was asked for.
        assert fd in seen or name == "anon_inode:[pidfd]", (fd, name)
    else:
        assert ctypes.get_errno() == 9, (fd, ctypes.get_errno())
"""
    r = run("run", "--", sys.executable, "-c", program)
    assert r.status == 0, r


main(globals())
