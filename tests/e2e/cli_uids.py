#!/usr/bin/env python3
"""Root's runs beside another user: what a guest can write that is somebody else by now misleads no
guest of root's, a directory that another owns leads root's session nowhere, and a session of
someone without rights keeps to its own processes."""
import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import time

from e2e import ANYPERF, ENV, Skip, main, run, scratch

OTHER = 65534
METER = 32768


def need_root():
    if os.geteuid():
        raise Skip("only root can be two users")


class Other:
    """A process of another user's that does this again and again until it is left."""

    def __init__(self, body, *args):
        self.pid = os.fork()
        if self.pid:
            return
        try:
            os.setgroups([])
            os.setresgid(OTHER, OTHER, OTHER)
            os.setresuid(OTHER, OTHER, OTHER)
            while os.getppid() != 1:
                body(*args)
        finally:
            os._exit(1)

    def __enter__(self):
        return self

    def __exit__(self, *why):
        died = os.waitpid(self.pid, os.WNOHANG)
        if died == (0, 0):
            os.kill(self.pid, 9)
            os.waitpid(self.pid, 0)
        else:
            assert why[0], f"who is to do harm has ended: {died}"


# Tells again and again what it is shown, of itself and of another guest of root's, while a third
# guest, whose pid it prints first, is another user.
SHOWN = r"""
import ctypes, json, os, struct, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)
other = subprocess.Popen(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "sleep",
                          "1000"])
friend = subprocess.Popen(["cat"], stdin=subprocess.PIPE)

def event():
    attr = struct.pack("<IIQQQQQ", 0, 128, 1, 0, 0, 0, 0x60).ljust(128, b"\0")
    fd = libc.syscall(298, attr, 0, -1, -1, 0)
    if fd < 0:
        return ctypes.get_errno()
    n = len(os.read(fd, 8))
    os.close(fd)
    return [n]

def look():
    def text(path):
        with open(path) as f:
            return f.read()
    r = subprocess.run(["sh", "-c", "readlink /proc/self/exe; echo $((6 * 7)) | cat; exit 3"],
                       capture_output=True, text=True)
    return [os.readlink(f"/proc/{friend.pid}/exe"), text("/proc/sys/kernel/perf_event_paranoid"),
            sorted(os.listdir("/sys/bus/event_source/devices")), r.returncode, r.stdout, r.stderr,
            event(), event()]

print(other.pid, flush=True)
for line in sys.stdin:
    print(json.dumps(look()), flush=True)
friend.stdin.close()
other.kill()
sys.exit(friend.wait())
"""


def noise(kind, length):
    return {"zeros": bytes, "ones": lambda n: b"\xff" * n, "noise": os.urandom}[kind](length)


def scribble(paths, kind, used):
    """Over what can be opened for writing, of a counter segment its header and first pages."""
    for path in paths:
        fd = os.open(path, os.O_RDWR)
        size = os.fstat(fd).st_size
        for at in range(0, min(size, (used + 1) * METER), METER):
            # In the header the magic and the number of pages stay, or nobody would look at them.
            skip = 16 if not at else 0
            os.pwrite(fd, noise(kind, METER - skip), at + skip)
        os.close(fd)


def writable(pid):
    """What a process has open that another of its user can open for writing."""
    found = []
    for name in os.listdir(f"/proc/{pid}/fd"):
        path = f"/proc/{pid}/fd/{name}"
        try:
            if "memfd:" in os.readlink(path):
                os.close(os.open(path, os.O_RDWR))
                found.append(path)
        except OSError:
            pass
    return found


def is_asleep(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            return f.read() == b"sleep\x001000\x00"
    except FileNotFoundError:
        return False


RUN = ["run", "--strict", "--paranoid", "1"]


def beside(options, body, *args, program=SHOWN, same=True, rounds=8, secret=None, command=None):
    """What a guest of root's is shown, while another user does @body with what it can open; the
    same as without, or with a list as @same anything, which is added there."""
    with subprocess.Popen([ANYPERF, *(command or RUN), *options, "--", sys.executable, "-c",
                           program], env={**ENV, **(secret or {})}, text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as guest:
        pid = 0

        def look():
            guest.stdin.write("look\n")
            guest.stdin.flush()
            return guest.stdout.readline()

        try:
            pid = int(guest.stdout.readline())
            honest = look()
            while not is_asleep(pid):
                time.sleep(0.01)
            paths = writable(pid)
            assert any(is_segment(p) for p in paths), paths
            with Other(body, paths, *args):
                for _ in range(rounds):
                    seen = look()
                    if same is not True:
                        same.append(seen)
                    assert seen == honest if same is True else seen, (body, args, seen, honest)
            guest.stdin.close()
            assert guest.wait(60) == 0, (body, args, guest.returncode)
            return honest
        finally:
            if guest.poll() is None:
                for one in filter(None, (pid, *children(guest.pid), guest.pid)):
                    os.kill(int(one), 9)


def mislead(*args):
    honest = beside([], scribble, *args)
    assert "/cat" in honest and "42" in honest and "[8]" in honest, honest


def test_what_another_user_writes_misleads_no_guest_of_roots():
    need_root()
    mislead("noise", 40)


def test_ones_mislead_no_guest_of_roots():
    need_root()
    mislead("ones", 40)


def test_zeros_mislead_no_guest_of_roots():
    need_root()
    mislead("zeros", 40)


# Like SHOWN, but works, samples itself meanwhile with a part of its stack, and tells whether each
# period of what was counted has its sample. What it has in its environment is in its samples only.
SAMPLED = r"""
import ctypes, json, os, struct, subprocess, sys, time
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
environment = {k: v for k, v in os.environ.items() if k != "SECRET"}
other = subprocess.Popen(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "sleep",
                          "1000"], env=environment)
PERIOD, DATA, STACK = 50021, 1 << 20, 4096

def event(period, sample_type, flags=0):
    attr = struct.pack("<IIQQQQQIIQQQQII", 0, 128, 1, period, sample_type, 0, 0x61 | flags, 0, 0, 0,
                       0, 0, 0, STACK, 0).ljust(128, b"\0")
    fd = libc.syscall(298, attr, 0, -1, -1, 0)
    assert fd >= 0, ctypes.get_errno()
    return fd

def look():
    fd = event(PERIOD, 1 | 1 << 13)
    at = libc.mmap(None, 4096 + DATA, 3, 1, fd, 0)
    assert at and at + 1, ctypes.get_errno()
    libc.ioctl(fd, 0x2400, 0)
    sum(i * i % 7 for i in range(9000))
    libc.ioctl(fd, 0x2401, 0)
    count = struct.unpack("<Q", os.read(fd, 8))[0]
    page = ctypes.string_at(at, 4096 + DATA)
    libc.munmap(at, 4096 + DATA)
    os.close(fd)
    head, samples, lost, place = struct.unpack_from("<Q", page, 1024)[0], 0, 0, 4096
    while place < 4096 + head:
        kind, _, size = struct.unpack_from("<IHH", page, place)
        samples += kind == 9
        lost += kind == 2
        place += size
    return [lost, samples == count // PERIOD or [samples, count // PERIOD], samples > 10, family()]

def family():
    # Is what a child and its program do counted, of one that is sampled?
    sampled, fd = event(1 << 40, 1, 0), event(0, 0, 2)
    for one in (sampled, fd):
        libc.ioctl(one, 0x2400, 0)
    time.sleep(0.05)
    done = subprocess.run(["sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"])
    count = struct.unpack("<Q", os.read(fd, 8))[0]
    os.close(sampled)
    os.close(fd)
    return count > 5000000 and not done.returncode or count

print(other.pid, flush=True)
for line in sys.stdin:
    print(json.dumps(look()), flush=True)
other.kill()
sys.exit(0)
"""

# abi/meter.h: what a session says there of samples, and what a thread says of signals.
WATCH, ASKED, KICKABLE = 1108, 3272, 3276
# Where traces stood that all guests could write to: behind the meters.
TRACES, TRACE, EVENTS = (262144 + 1) * METER, 0x44000, 144


def is_segment(path):
    return "anyperf-meters" in os.readlink(path)


def forge(paths, kind, used):
    """Samples and what is asked for, as a session or a thread would write it; what threads have
    counted stays."""
    event = struct.pack("<QQIIIIII", 1, 1000, 7, 0, 2, 1, 4096, 0)
    for path in filter(is_segment, paths):
        fd = os.open(path, os.O_RDWR)
        size = os.fstat(fd).st_size
        for i in range(used):
            at = TRACES + i * TRACE
            if at + TRACE <= size:
                if kind == "forged":
                    os.pwrite(fd, event, at + EVENTS)
                    os.pwrite(fd, struct.pack("<QIIII", 1 << 62, 0, 1, 1, 1), at)
                else:
                    os.pwrite(fd, noise(kind, TRACE), at)
            word = struct.pack("<I", 2 + 2 * random.randrange(1000))
            os.pwrite(fd, word if kind == "forged" else noise(kind, 4), (i + 1) * METER + ASKED)
            word = struct.pack("<I", 1) if kind == "forged" else noise(kind, 4)
            os.pwrite(fd, word, (i + 1) * METER + KICKABLE)
            os.pwrite(fd, bytes(4), (i + 1) * METER + WATCH)
        os.close(fd)


def test_what_another_user_forges_changes_no_sample():
    """Not their number either: each period has one. Nor is it lost of whom the children are."""
    need_root()
    for kind in ("forged", "zeros", "ones", "noise"):
        seen = beside([], forge, kind, 40, program=SAMPLED, rounds=3)
        assert seen == "[0, true, true, true]\n", (kind, seen)


def test_a_sampled_program_outlives_what_another_user_writes():
    """Over its counts as well: they are wrong, but it neither hangs nor is it ended. What is wanted
    of a model stands there too, and would make it slow."""
    need_root()
    for kind in ("noise", "ones", "zeros"):
        beside(["--machine=none"], scribble, kind, 40, program=SAMPLED, same=[], rounds=3)


# Works, and says when and how much. Recorded by somebody else.
RECORDED = r"""
import ctypes, json, os, struct, subprocess, sys, time
libc = ctypes.CDLL(None)
other = subprocess.Popen(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "sleep",
                          "1000"])
attr = struct.pack("<IIQQQQQ", 0, 128, 1, 0, 0, 0, 0x61).ljust(128, b"\0")
fd = libc.syscall(298, attr, 0, -1, -1, 0)
assert fd >= 0

def look():
    libc.ioctl(fd, 0x2403, 0)
    begun = time.monotonic_ns()
    libc.ioctl(fd, 0x2400, 0)
    sum(i * i % 7 for i in range(9000))
    libc.ioctl(fd, 0x2401, 0)
    return [begun, time.monotonic_ns(), struct.unpack("<Q", os.read(fd, 8))[0], os.getpid()]

print(other.pid, flush=True)
for line in sys.stdin:
    print(json.dumps(look()), flush=True)
other.kill()
sys.exit(0)
"""


def test_what_another_user_forges_changes_no_recording():
    """Nor what others record of a program."""
    need_root()
    with scratch() as d:
        path = os.path.join(d, "perf.data")
        for kind in ("forged", "ones"):
            seen = []
            beside([], forge, kind, 40, program=RECORDED, same=seen, rounds=4,
                   command=["record", "-q", "-o", path, "-e", "instructions:u", "-c", "50021"])
            r = run("script", "-i", path, "-F", "pid,time", "--ns")
            assert r.status == 0, r
            for begun, ended, count, pid in map(json.loads, seen):
                times = [float(line.split()[1].rstrip(":")) for line in r.out.splitlines()
                         if line.split()[0] == str(pid)]
                n = sum(begun <= time * 1e9 <= ended for time in times)
                # Some of what lies between is before and behind what is counted.
                assert 10 < count // 50021 <= n <= count // 50021 + 3, (kind, n, count, r.out[:300])


SECRET = "what-only-the-sampled-program-knows"


def pieces(fd, size):
    """What there is in a file that is mostly holes."""
    at = 0
    while at < size:
        try:
            at = os.lseek(fd, at, os.SEEK_DATA)
            end = os.lseek(fd, at, os.SEEK_HOLE)
        except OSError:
            return
        while at < end:
            n = min(end - at, 1 << 20)
            yield os.pread(fd, n, at)
            at += n - (len(SECRET) if at + n < end else 0)


def peek(paths, report):
    for path in paths:
        fd = os.open(path, os.O_RDONLY)
        for piece in pieces(fd, os.fstat(fd).st_size):
            if SECRET.encode() in piece:
                os.write(report, b"read\n")
        os.close(fd)


def test_nobody_else_reads_samples():
    """Its stack is in them, and what is at its end: the environment."""
    need_root()
    told, report = os.pipe2(os.O_NONBLOCK)
    beside([], peek, report, program=SAMPLED.replace("50021, 1 << 20, 4096", "200003, 1 << 23, 65528"),
           secret={"SECRET": SECRET})
    os.close(report)
    assert not os.read(told, 100)
    os.close(told)


FORGES = """
cat /proc/sys/kernel/perf_event_paranoid
found=
for place in "$XDG_RUNTIME_DIR" /dev/shm /tmp; do
    for name in "$place"/anyperf-view-*; do
        case $name in /*) if [ -d "$name" ]; then found="$found $name"; fi ;; esac
    done
done
mount -t tmpfs none /dev/shm && mount -t tmpfs none /tmp || exit 77
chmod 1777 /dev/shm /tmp
setpriv --reuid=65534 --regid=65534 --clear-groups sh -c "
for name in $found; do
    mkdir -p \\$name/proc/sys/kernel && echo forged >\\$name/proc/sys/kernel/perf_event_paranoid
    echo made >&2
done"
cat /proc/sys/kernel/perf_event_paranoid || true
"""


# abi/path-trace.h: where a thread's trace is handed over, how far it is read.
STREAM, READ, STREAM_WORDS = b"ANPSTRM6", 28, 128 << 10


def hold_up(paths):
    """Says of each stream in turn that what was written long ago is not read yet."""
    for path in filter(is_segment, paths):
        fd = os.open(path, os.O_RDWR)
        at, end = 0, os.fstat(fd).st_size
        while at < end:
            try:
                at = os.lseek(fd, at, os.SEEK_DATA)
            except OSError:
                break
            after = os.lseek(fd, at, os.SEEK_HOLE)
            for page in range(at, after, 4096):
                if os.pread(fd, 8, page) == STREAM:
                    written = struct.unpack("<I", os.pread(fd, 4, page + READ - 4))[0]
                    for i in range(100):
                        behind = STREAM_WORDS + i % 2
                        os.pwrite(fd, struct.pack("<I", (written - behind) % 2**32), page + READ)
            at = after
        os.close(fd)


def test_nobody_else_holds_up_who_is_traced():
    need_root()
    with scratch() as d:
        out = os.path.join(d, "out")
        beside(["--tool=callgrind", f"--callgrind-out-file={out}"], hold_up, same=[], rounds=4,
               command=["valgrind"])


def test_a_directory_of_that_name_is_not_the_sessions():
    """In a container another user may make one where the session's is outside."""
    need_root()
    env = {k: v for k, v in ENV.items() if k not in ("TMPDIR", "XDG_RUNTIME_DIR")}
    r = subprocess.run([ANYPERF, "run", "--paranoid", "1", "--", "unshare", "-m", "sh", "-c",
                        FORGES], env=env, text=True, cwd="/", capture_output=True, check=False,
                       timeout=60)
    if r.returncode:
        raise Skip("nothing can be mounted")
    assert "made" in r.stderr and r.stdout == "1\n", r


def test_what_a_runtime_is_told_is_nobodys_to_change():
    """A fork of another thread has it as well, which may be another user's before it is read."""
    if not shutil.which("strace"):
        raise Skip("there is no strace")
    with scratch() as d:
        log = os.path.join(d, "log")
        r = subprocess.run(["strace", "-f", "-qq", "-o", log, "-e",
                            "trace=memfd_create,fcntl,execveat", ANYPERF, "run", "--", "sh", "-c",
                            "exec true"], env=ENV, check=False)
        if r.returncode:
            raise Skip("nothing can be traced")
        told, sealed, starts = set(), set(), 0
        with open(log, encoding="ascii") as f:
            for line in f:
                made = re.search(r'memfd_create\("anyperf-control".* = (\d+)$', line)
                seals = re.search(r"fcntl\((\d+), F_ADD_SEALS, .*F_SEAL_WRITE.* = 0$", line)
                if made:
                    told.add(made[1])
                elif seals:
                    sealed.add(seals[1])
                elif "execveat(" in line and "anyperf-rt" in line:
                    assert told and told <= sealed, (told, sealed, line)
                    told, sealed, starts = set(), set(), starts + 1
        assert starts == 2, starts


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
            return f.read().split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def content(path):
    """All that is below it."""
    found = {}
    for where, _, files in os.walk(path):
        found[where] = None
        for name in files:
            with open(os.path.join(where, name), encoding="utf-8") as f:
                found[os.path.join(where, name)] = f.read()
    return found


def swap(place, to):
    """What a session makes in @place comes to mean another directory, again and again."""
    for name in os.listdir(place):
        path = os.path.join(place, name)
        try:
            if not os.path.islink(path):
                os.rename(path, os.path.join(place, f"moved-{time.monotonic_ns()}"))
                os.symlink(to, path)
        except OSError:
            pass
    try:
        os.symlink(to, os.path.join(place, f"anyperf-view-{random.randrange(1000):06}"))
    except OSError:
        pass
    time.sleep(0.001)


def test_a_place_that_another_user_owns_leads_nowhere():
    need_root()
    script = "cat /proc/sys/kernel/perf_event_paranoid; sleep 0.1; " \
             "echo 2 >/proc/sys/kernel/perf_event_paranoid; cat /proc/sys/kernel/perf_event_paranoid"
    with scratch() as d:
        os.chmod(d, 0o711)
        precious = os.path.join(d, "precious")
        for path in ("proc/sys/kernel", "sys/devices/cpu", "sys/bus/event_source/devices"):
            os.makedirs(os.path.join(precious, path))
        for path in ("proc/sys/kernel/perf_event_paranoid", "sys/devices/cpu/type", "file"):
            with open(os.path.join(precious, path), "w", encoding="ascii") as f:
                f.write("-1\n")
        before = content(precious)
        for owner, mode in ((OTHER, 0o755), (OTHER, 0o1777), (0, 0o777), (0, 0o1777)):
            place = os.path.join(d, f"place-{owner}-{mode:o}")
            inner = os.path.join(place, "inner")
            os.makedirs(inner)
            os.chown(place, owner, owner)
            os.chmod(place, mode)
            # What is root's within another's directory is not kept either.
            for where in (place, inner):
                with Other(swap, place, precious):
                    for _ in range(2):
                        r = run("run", "--paranoid", "1", "--", "sh", "-c", script,
                                env={"XDG_RUNTIME_DIR": where, "TMPDIR": where})
                        assert (r.status, r.out, r.err) == (0, "1\n2\n", ""), (owner, mode, r)
                assert content(precious) == before, (owner, mode, content(precious), before)


# Opens events on all processes of the machine, the first of them first.
OPENS = r"""
opendir(my $all, "/proc");
for my $pid (1, grep(/^\d+$/, readdir($all))) {
    my $attr = pack("LLQx112", 0, 128, 1);
    substr($attr, 40, 8) = pack("Q", 0x60);
    syscall(298, $attr, $pid + 0, -1, -1, 0);
    $refused += $pid == 1 && $! ? 1 : 0;
}
print $refused ? "refused\n" : "opened\n";
"""


# The same beside a guest that is the first process of a namespace, and has a page that says so.
BESIDE = r"""
my $pid = open(my $first, "-|", "exec unshare -Urpf --kill-child sh -c 'echo; exec sleep 100'");
<$first>;
""" + OPENS + "kill(9, $pid);"


def test_a_session_without_rights_keeps_to_its_own():
    """It ends when they have: it has made no guest of the machine's first process."""
    need_root()
    mark = f"ANYPERF_UIDS={time.monotonic_ns()}"
    become = ["setpriv", f"--reuid={OTHER}", f"--regid={OTHER}", "--clear-groups", "env", mark]

    def left():
        for name in os.listdir("/proc"):
            try:
                with open(f"/proc/{name}/environ", "rb") as f:
                    if mark.encode() in f.read().split(b"\0"):
                        yield name
            except OSError:
                pass

    for command, out in ((["run", "--", "perl", "-e", OPENS], "refused\n"),
                         (["run", "--count", "--", "perl", "-e", OPENS], "refused\n"),
                         (["run", "--", "perl", "-e", BESIDE], "refused\n"),
                         (["stat", "--pmu=virtual", "-e", "instructions:u", "-p", "1"], "")):
        r = subprocess.run([*become, ANYPERF, *command], env=ENV, text=True, capture_output=True,
                           cwd="/", check=False, timeout=60)
        assert r.stdout == out and (r.returncode == 0) == (out != ""), r
        for _ in range(200):
            if not list(left()):
                break
            time.sleep(0.05)
        assert not list(left()), (command, list(left()))


main(globals())
