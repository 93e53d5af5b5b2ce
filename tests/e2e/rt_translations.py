#!/usr/bin/env python3
"""What is translated is kept for the other programs of a run (--translations=tree) and for later
runs (=user), and whatever becomes of the folder, programs do what they do and count what they
execute."""
import contextlib
import ctypes
import json
import mmap
import os
import re
import shutil
import struct
import subprocess
import sys
import time

from e2e import ANYPERF, ENV, Skip, main, scratch

FIXED = os.environ["E2E_FIXED"]
HEADED = os.environ["E2E_HEADED"]
PROGRAMS = ([FIXED], [FIXED, *["x"] * 20], ["/bin/true"], ["sort", "/etc/passwd"],
            ["sh", "-c", "ls / | wc -l; exec sort /etc/passwd"])


def counted(cache, *command, status=0, who="user"):
    """Instructions and branches, and the output."""
    p = subprocess.run([ANYPERF, "stat", "-j", f"--translations={who}", "-e",
                        "instructions:u,branches:u", "--", *command],
                       capture_output=True, text=True, check=False, timeout=120, env={**ENV, "XDG_CACHE_HOME": cache})
    assert p.returncode == status, (command, p)
    counts = json.loads(p.stderr.splitlines()[-1])["counts"]
    return [c["value"] for c in counts], p.stdout


def run_tree(cache, *command, status=0, who="tree"):
    p = subprocess.run([ANYPERF, "run", f"--translations={who}", "--", *command],
                       capture_output=True, text=True, check=False, timeout=120,
                       env={**ENV, "XDG_CACHE_HOME": cache})
    assert p.returncode == status, (command, p)
    return p.stdout


def alike(one, other, program):
    """Where a program's way depends on its stack's address, or a fork on the scheduler, nearly."""
    if program[0] == FIXED:
        return one == other
    return one[1] == other[1] and all(abs(a - b) < a / 50 for a, b in zip(one[0], other[0]))


def kept(cache):
    folder = f"{cache}/anyperf/translations"
    return {name: os.stat(f"{folder}/{name}").st_size for name in os.listdir(folder)
            if name != "seed"}


def test_what_is_kept_counts_alike():
    with scratch() as cache:
        for program in PROGRAMS:
            first = counted(cache, *program)
            files = None
            # Of a pipeline's processes, which end at once, each keeps what it has seen the others
            # not keep: after a few runs nothing is new.
            for _ in range(8):
                if files == kept(cache):
                    break
                files = kept(cache)
                again = counted(cache, *program)
                assert alike(first, again, program), (program, first, again)
            assert len(files) >= 1 and kept(cache) == files, (program, files, kept(cache))
        assert oct(os.stat(f"{cache}/anyperf/translations").st_mode)[-3:] == "700"


def test_no_place_to_keep_them():
    """Who asks for kept translations is told; counts of the kernel's would be none at all."""
    with scratch() as cache:
        os.symlink(f"{cache}/nowhere/at-all", f"{cache}/dangling")
        for way in (["run"], ["stat", "-e", "instructions:u", "--pmu=virtual"],
                    ["stat", "-e", "instructions:u"]):
            p = subprocess.run([ANYPERF, *way, "--translations=user", "--", "/bin/true"],
                               env={**ENV, "XDG_CACHE_HOME": f"{cache}/dangling"},
                               capture_output=True, text=True, timeout=60)
            if way[-1] == "instructions:u" and p.returncode == 0:
                assert "<not supported>" not in p.stderr and "(kernel PMU" in p.stderr, p
                continue
            assert p.returncode == 125, p
            assert "dangling/anyperf/translations" in p.stderr, p
            assert "set XDG_CACHE_HOME" in p.stderr, p


def test_small_programs_grow_one_image():
    with scratch() as cache:
        sizes = []
        for program in (["/bin/true"], ["sort", "/etc/passwd"], ["sed", "p", "/etc/passwd"]):
            right = counted(cache, *program, who="off")
            for _ in range(3):
                now = counted(cache, *program)
                assert alike(right, now, program), (program, right, now)
            sizes.append(kept(cache))
        assert all(len(s) == 1 for s in sizes) and sizes[0].keys() == sizes[2].keys(), sizes
        assert [*sizes[0].values()] < [*sizes[1].values()] < [*sizes[2].values()], sizes
        # A large one has its own, and what it began with stays as it is.
        for program in ([sys.executable, "-c", "import json"], ["perl", "-e", "1"]):
            before = kept(cache)
            counted(cache, *program)
            assert len(kept(cache)) == len(before) + 1, (program, before, kept(cache))
            assert before.items() <= kept(cache).items(), (program, before, kept(cache))


CALLS = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
print(library.headed(int(sys.argv[2])) if sys.argv[2:] else None)
"""


def test_a_library_whose_headers_are_in_its_code():
    """It is mapped whole as code, and then its data over that; its code is found again."""
    def largest():
        return max(kept(cache).values())

    with scratch() as cache:
        loads, calls = ([sys.executable, "-S", "-c", CALLS, HEADED, *n] for n in ([], ["-1"]))
        for _ in range(3):
            assert run_tree(cache, *loads, who="user") == "None\n"
        before = largest()
        right = counted(cache, *calls, who="off")
        assert right[1] == "40000\n", right
        assert alike(right, counted(cache, *calls), calls)
        assert largest() > before + before // 8, (before, largest())
        # What another run has added is not added once more.
        after = largest()
        for _ in range(3):
            assert alike(right, counted(cache, *calls), calls)
            assert largest() == after, (after, largest())


# Functions of a file that is mapped where the kernel puts it, another place each time.
ELSEWHERE = """
import ctypes, mmap, sys
with open(sys.argv[1], "rb") as f:
    n = len(f.read()) // 16
    code = mmap.mmap(f.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
with open(sys.argv[1], "rb") as f:
    at = libc.mmap(None, n * 16, 5, 2, f.fileno(), 0)
kind = ctypes.CFUNCTYPE(ctypes.c_int)
print(sum(kind(at + 16 * i)() for i in range(n)))
"""


def test_what_lies_elsewhere_each_time_is_not_kept():
    """Nobody finds it again: an image does not grow by it with each run."""
    with scratch() as cache:
        path = f"{cache}/functions"
        with open(path, "wb") as f:
            for i in range(6000):
                f.write((b"\xb8" + i.to_bytes(4, "little") + b"\xc3").ljust(16, b"\xcc"))
        sizes = []
        for _ in range(6):
            said = run_tree(cache, sys.executable, "-c", ELSEWHERE, path, who="user")
            assert said == f"{sum(range(6000))}\n", said
            sizes.append(sum(kept(cache).values()))
        # The first has them, since what is written is the cache as it is.
        assert sizes[-1] <= sizes[1] and sizes[-1] == sizes[-2], sizes


def test_however_a_program_ends():
    """With threads that still run, by whichever of them, and as another program."""
    begin = ("import os, threading, time; "
             "[threading.Thread(target=time.sleep, args=(60,), daemon=True).start() "
             "for _ in range(3)]; ")
    ends = {"all": (begin + "os._exit(3)", 3),
            "thread": (begin + "threading.Thread(target=os._exit, args=(4,)).start(); "
                       "time.sleep(60)", 4),
            "exec": (begin + "os.execv('/bin/sh', ['sh', '-c', 'exit 5'])", 5),
            "no exec": (begin + "\ntry: os.execv('/bin/sh', ['sh', 'x' * (1 << 18)])\n"
                        "except OSError: os._exit(6)", 6)}
    for name, (script, status) in ends.items():
        with scratch() as cache:
            for _ in range(3):
                run_tree(cache, sys.executable, "-c", script, status=status, who="user")
                assert max(kept(cache).values()) > 2 << 20, (name, kept(cache))


def damage(path, how):
    size = os.stat(path).st_size
    os.chmod(path, 0o600)
    if how == "empty":
        os.truncate(path, 0)
    elif how == "short":
        os.truncate(path, size * 2 // 3)
    elif how == "foreign":
        os.chmod(path, 0o644)
    elif how == "link":
        os.rename(path, path + ".x")
        os.symlink(path + ".x", path)
    elif how == "pipe":
        os.remove(path)
        os.mkfifo(path, 0o600)
    else:
        with open(path, "r+b") as f:
            f.seek(int(size * how))
            byte = f.read(1)[0]
            f.seek(int(size * how))
            f.write(bytes([byte ^ 0x10]))


def test_a_folder_that_is_damaged():
    with scratch() as cache:
        right = counted(cache, "sort", "/etc/passwd")
        # What was found whole is not summed up again until somebody writes to it.
        counted(cache, "sort", "/etc/passwd")
        for how in ("empty", "short", "foreign", "link", "pipe", 0, 0.001, 0.1, 0.3, 0.5, 0.7, 0.9,
                    0.9999):
            for name in kept(cache):
                damage(f"{cache}/anyperf/translations/{name}", how)
            now = counted(cache, "sort", "/etc/passwd")
            assert alike(right, now, ["sort"]), (how, right, now)
            for name in kept(cache):
                os.remove(f"{cache}/anyperf/translations/{name}")
            for _ in range(2):
                counted(cache, "sort", "/etc/passwd")


def test_a_seed_that_is_a_pipe():
    with scratch() as cache:
        right = counted(cache, FIXED)
        damage(f"{cache}/anyperf/translations/seed", "pipe")
        for _ in range(2):
            assert counted(cache, FIXED) == right


def replace(path):
    with open(path + ".new", "wb") as f:
        f.write(os.urandom(os.stat(path).st_size))
    os.chmod(path + ".new", 0o400)
    os.replace(path + ".new", path)


def test_a_folder_that_changes_meanwhile():
    """What a program has taken stays, whatever becomes of its name. Nobody writes to an image by
    mistake: it is mapped, and who has mapped it would execute that."""
    program = [sys.executable, "-c", "import json; print('ready', flush=True); input(); "
               "print(len(json.dumps(list(range(5000)))))"]
    command = [ANYPERF, "stat", "-j", "-e", "instructions:u,branches:u"]

    def go(cache, who, change):
        with subprocess.Popen([*command, f"--translations={who}", "--", *program], text=True,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env={**ENV, "XDG_CACHE_HOME": cache}) as p:
            ready = p.stdout.readline()
            assert ready == "ready\n", (change, ready, p.stderr.read())
            if change:
                for name in kept(cache):
                    change(f"{cache}/anyperf/translations/{name}")
            out, err = p.communicate("\n", timeout=60)
        assert p.returncode == 0 and len(err.splitlines()) == 1, (change, p.returncode, err)
        return [c["value"] for c in json.loads(err)["counts"]], out

    with scratch() as cache:
        right = go(cache, "off", None)
        for change in (None, replace, os.remove):
            for meanwhile in (None, None, change, None):
                now = go(cache, "user", meanwhile)
                assert alike(right, now, program), (change, meanwhile, right, now)
            modes = {os.stat(f"{cache}/anyperf/translations/{n}").st_mode & 0o777
                     for n in kept(cache)}
            assert modes == {0o400}, modes


def test_an_image_that_is_cut_off_meanwhile():
    """As a library would do it, that ends who has mapped it; but it is not called a bug of ours."""
    program = [sys.executable, "-c", "import json; print('ready', flush=True); input(); "
               "print(len(json.dumps(list(range(5000)))))"]
    with scratch() as cache:
        env = {**ENV, "XDG_CACHE_HOME": cache}
        command = [ANYPERF, "run", "--translations=user", "--", *program]
        for _ in range(2):
            subprocess.run(command, input="\n", text=True, env=env, check=True, timeout=60,
                           stdout=subprocess.DEVNULL)
        with subprocess.Popen(command, text=True, env=env, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
            assert p.stdout.readline() == "ready\n"
            for name in kept(cache):
                path = f"{cache}/anyperf/translations/{name}"
                os.chmod(path, 0o600)
                os.truncate(path, 0)
            err = p.communicate("\n", timeout=60)[1]
        assert p.returncode and "a bug" not in err, (p.returncode, err)
        assert "check failed" not in err, err
        said = subprocess.run(command, input="\n", text=True, env=env, check=True, timeout=60,
                              stdout=subprocess.PIPE).stdout
        assert said == "ready\n28890\n", said


def test_a_folder_that_is_full():
    """A half of an image is none, and leaves nothing behind."""
    script = """mount -t tmpfs -o mode=700,size=$1k tmpfs "$2" || exit 77
        shift 2
        for i in 1 2 3; do "$@" || exit; done
        ls -A "$XDG_CACHE_HOME/anyperf/translations" >&2"""
    program = ["perl", "-e", "print 1"]
    for size in (16, 256):
        with scratch() as cache:
            p = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", str(size), cache,
                                ANYPERF, "run", "--translations=user", "--", *program],
                               capture_output=True, text=True, check=False, timeout=60,
                               env={**ENV, "XDG_CACHE_HOME": cache})
            if p.returncode in (1, 77) and not p.stdout:
                raise Skip("no file system may be mounted: " + p.stderr)
            assert (p.returncode, p.stdout, p.stderr) == (0, "111", "seed\n"), (size, p)


def test_another_cache_has_images_of_its_own():
    with scratch() as cache:
        counted(cache, "/bin/true")
        before = kept(cache)
        for _ in range(2):
            p = subprocess.run([ANYPERF, "run", "--translations=user", "--cache-size=16", "--",
                                "/bin/true"], check=True, timeout=60,
                               env={**ENV, "XDG_CACHE_HOME": cache})
            assert p.returncode == 0
            now = kept(cache)
            assert len(now) == len(before) + 1 and before.items() <= now.items(), (before, now)
            counted(cache, "/bin/true")
            assert kept(cache) == now, (now, kept(cache))


def as_nobody(path):
    """Root may write anywhere: a user who may not."""
    os.chown(path, 65534, 65534)
    for name in os.listdir(path):
        as_nobody(f"{path}/{name}") if os.path.isdir(f"{path}/{name}") \
            else os.chown(f"{path}/{name}", 65534, 65534)


def test_a_folder_that_may_not_be_written_to():
    """What is there is taken, nothing is added, and nobody sees a difference."""
    user = {"user": 65534, "group": 65534} if os.geteuid() == 0 else {}
    with scratch() as cache:
        os.chmod(os.path.dirname(cache), 0o755)
        def go(*command):
            return subprocess.run([ANYPERF, "run", "--translations=user", "--", *command],
                                  capture_output=True, text=True, check=False, timeout=60,
                                  env={**ENV, "XDG_CACHE_HOME": cache}, **user)
        if user:
            as_nobody(cache)
        first = go("sort", "/etc/passwd")
        if first.returncode == 125:
            raise Skip("another user cannot run the build")
        folder = f"{cache}/anyperf/translations"
        os.chmod(folder, 0o500)
        before = kept(cache)
        for command in (("sort", "/etc/passwd"), ("perl", "-e", "print 1"), ("ls", "/")):
            natively = subprocess.run(command, capture_output=True, text=True, check=True)
            p = go(*command)
            assert (p.returncode, p.stdout, p.stderr) == (0, natively.stdout, ""), (command, p)
        assert kept(cache) == before, (before, kept(cache))
        os.chmod(folder, 0o700)


def test_another_program_of_the_same_name():
    with scratch() as cache:
        path = f"{cache}/program"
        shutil.copy(FIXED, path)
        first = counted(cache, path)
        for _ in range(2):
            shutil.copy("/bin/true", path)
            other = counted(cache, path)
            assert other != first
            shutil.copy(FIXED, path)
            assert counted(cache, path) == first
            # In place, with its times as they were: the change of the inode is seen.
            times = os.stat(path)
            with open(path, "r+b") as f:
                f.write(f.read())
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
            assert counted(cache, path) == first


def test_several_at_once():
    with scratch() as cache:
        run = [ANYPERF, "run", "--translations=user", "--", "sh", "-c",
               "for i in 1 2 3 4 5; do sort /etc/passwd | wc -l; done"]
        at_once = [subprocess.Popen(run, stdout=subprocess.PIPE, text=True,
                                    env={**ENV, "XDG_CACHE_HOME": cache}) for _ in range(6)]
        said = {p.communicate(timeout=120)[0] for p in at_once}
        assert len(said) == 1 and all(p.returncode == 0 for p in at_once), said
        assert not [n for n in kept(cache) if "." in n], kept(cache)


def test_files_lie_where_they_lay():
    """The same addresses in each run of a folder's, others with another or without."""
    def maps(*options, cache):
        p = subprocess.run([ANYPERF, "run", *options, "--", "cat", "/proc/self/maps"],
                           capture_output=True, text=True, check=True, timeout=60,
                           env={**ENV, "XDG_CACHE_HOME": cache})
        return re.findall(r"^(\w+)-\w+ r.xp .*?(\S+)$", p.stdout, re.M)

    with scratch() as one, scratch() as other:
        at = [m for m in maps("--translations=user", cache=one) if m[1][0] == "/"]
        assert len(at) >= 3
        assert [m for m in maps("--translations=user", cache=one) if m[1][0] == "/"] == at
        assert not set(at) & set(maps("--translations=user", cache=other))
        assert not set(at) & set(maps("--translations=off", cache=one))


def code_of_files(text):
    return re.findall(r"^(\w+)-\w+ r.xp .*?(/\S+)$", text, re.M)


def test_a_tree_counts_alike_and_leaves_nothing():
    with scratch() as cache:
        program = ["sh", "-c", "for i in 1 2 3 4 5; do sort /etc/passwd | wc -l; ls /; done"]
        right = counted(cache, *program, who="off")
        for _ in range(3):
            now = counted(cache, *program, who="tree")
            assert alike(right, now, program), (right, now)
        assert not os.listdir(cache)


def test_a_tree_has_places_of_its_own():
    with scratch() as cache:
        show = ["sh", "-c", "cat /proc/self/maps; echo ==; cat /proc/self/maps; true"]
        runs = [[code_of_files(t) for t in run_tree(cache, *show).split("==")] for _ in range(2)]
        for one, other in runs:
            assert len(one) >= 3 and one == other, (one, other)
        assert not set(runs[0][0]) & set(runs[1][0])


def test_places_are_where_sanitizers_expect_files():
    """ThreadSanitizer knows its program by its addresses, and has ended it if it was lower."""
    for _ in range(8):
        with scratch() as cache:
            places = [at for at, _ in code_of_files(run_tree(cache, "cat", "/proc/self/maps"))]
            assert places and all(int(at, 16) >= 0x7e8000000000 for at in places), places


def modeled(cache, events, *command, who="user"):
    """What each event counts with a model of a machine."""
    p = subprocess.run([ANYPERF, "stat", "-j", f"--translations={who}", "-e", events,
                        "--machine=zen4", "--", *command], text=True, capture_output=True,
                       check=True, timeout=120, env={**ENV, "XDG_CACHE_HOME": cache})
    return {c["event"]: c["value"] for c in json.loads(p.stderr.splitlines()[-1])["counts"]}


def near(one, other, percent):
    return all(abs(other[e] - n) <= n * percent / 100 for e, n in one.items())


def test_who_is_not_modeled_keeps_what_it_translates():
    """Most of many processes are not seen by the model of a machine."""
    script = "i=0; while [ $i -lt 40 ]; do /bin/true; i=$((i + 1)); done"
    exact = "instructions:u,branches:u"
    with scratch() as cache:
        plain = modeled(cache, exact, "sh", "-c", script)
    with scratch() as cache:
        for _ in range(2):
            seen = modeled(cache, f"{exact},branch-misses:u", "sh", "-c", script)
            assert kept(cache)
            assert near(plain, seen, 2), (plain, seen)


def test_who_is_modeled_keeps_what_it_translates():
    """Code that traces too, with its descriptions: it tells the same from an image."""
    exact = "instructions:u,branches:u"
    events = f"{exact},cycles:u,branch-misses:u,L1-dcache-load-misses:u"
    # Seen whole; in windows; by branches alone, with words of the trace and no accesses.
    for program, events, percent in (([FIXED], events, 3), (["/bin/true"], events, 10),
                                     (["perl", "-e", "1 for 1 .. 100000"], events, 20),
                                     ([FIXED], f"{exact},branch-misses:u", 3)):
        with scratch() as cache:
            first = modeled(cache, events, *program, who="off")
            for i in range(3):
                again = modeled(cache, events, *program)
                assert near(first, again, percent), (program, first, again)
                counted_here = {e: n for e, n in first.items() if e in exact}
                assert near(counted_here, again, 0.1), (program, first, again)
                if i == 0:
                    files = kept(cache)
            assert files and kept(cache) == files, (program, files, kept(cache))


def test_a_tree_is_the_default():
    show = ["sh", "-c", "cat /proc/self/maps; echo ==; cat /proc/self/maps; true"]
    for options, alike_here in ([], True), (["--translations=off"], False):
        p = subprocess.run([ANYPERF, "run", *options, "--", *show], capture_output=True, text=True,
                           check=True, timeout=120, env=ENV)
        one, other = (code_of_files(t) for t in p.stdout.split("=="))
        assert len(one) >= 3 and (one == other) == alike_here, (options, one, other)


def tree_memory(pid):
    """Descriptors, as paths, of what the run of process pid keeps in memory."""
    pids = [pid]
    for p in pids:
        # What has ended meanwhile has none.
        with contextlib.suppress(FileNotFoundError):
            for task in os.listdir(f"/proc/{p}/task"):
                with open(f"/proc/{p}/task/{task}/children", encoding="ascii") as f:
                    pids += f.read().split()
        with contextlib.suppress(FileNotFoundError):
            for fd in os.listdir(f"/proc/{p}/fd"):
                fd = f"/proc/{p}/fd/{fd}"
                with contextlib.suppress(FileNotFoundError):
                    if os.readlink(fd).startswith("/memfd:anyperf-translations"):
                        yield fd


def tree_images(pid):
    """Sizes of what the run of process pid keeps in memory; 0: asked for, and not there yet."""
    for path in tree_memory(pid):
        with open(path, "rb") as f:
            words = struct.unpack("512Q", f.read(4096))
        return {name: (place & 0xffffffff) * 4096
                for name, place in zip(words[2::2], words[3::2]) if name}
    return {}


def tree_images_with(pid, asked):
    """tree_images(), when who keeps them has come to it: one is asked for, or they are there."""
    for _ in range(200):
        images = tree_images(pid)
        if images and (0 in images.values()) == asked:
            break
        time.sleep(0.05)
    return images


def test_each_run_of_a_command_is_a_tree():
    with subprocess.Popen([ANYPERF, "stat", "--pmu=virtual", "-r", "2", "--", "sh", "-c",
                           "true | cat; echo ready; read go"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                          bufsize=1, env=ENV) as p:
        for _ in range(2):
            assert p.stdout.readline() == "ready\n"
            assert list(tree_memory(p.pid))
            p.stdin.write("go\n")
        p.stdin.close()
        assert p.wait(50) == 0


def not_writable(fd):
    for attempt in (lambda: os.pwrite(fd, b"x" * 4096, 4096), lambda: os.ftruncate(fd, 4096),
                    lambda: mmap.mmap(fd, 4096)):
        try:
            attempt()
        except PermissionError:
            continue
        return False
    return True


def test_a_tree_is_not_written_to():
    """By nobody who has it open, root or not; what others execute is what was kept."""
    with subprocess.Popen([ANYPERF, "run", "--translations=tree", "--", "sh", "-c",
                           'while read go; do ls / | wc -l; done'],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=ENV) as p:
        said = set()
        for _ in range(3):
            p.stdin.write("go\n")
            p.stdin.flush()
            said.add(p.stdout.readline())
            paths = list(tree_memory(p.pid))
            assert paths
            for path in paths:
                # One that its program has just closed is not there any more.
                with contextlib.suppress(FileNotFoundError), \
                        open(path, "r+b", buffering=0) as f:
                    assert not_writable(f.fileno()), path
        p.stdin.close()
    assert p.returncode == 0 and len(said) == 1, (p.returncode, said)


def test_a_tree_keeps_a_large_program_when_it_runs_again():
    for program, large in (("/bin/true",), False), ((sys.executable, "-c", "import json"), True):
        with subprocess.Popen([ANYPERF, "run", "--translations=tree", "--", "sh", "-c",
                               'while read go; do "$@"; echo $?; done', "sh", *program],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                              env=ENV) as p:
            images = []
            while len(images) < 3:
                p.stdin.write("go\n")
                p.stdin.flush()
                assert p.stdout.readline() == "0\n", program
                images.append(tree_images_with(p.pid, asked=large and not images))
            p.stdin.close()
        assert p.returncode == 0, (program, p.returncode)
        first, second, third = (max(i.values(), default=0) for i in images)
        if large:
            assert first <= 4 << 20 < second, (program, images)
            assert 0 in images[0].values() and 0 not in images[1].values(), (program, images)
        else:
            assert 0 < first <= 4 << 20, (program, images)
        assert third >= second, (program, images)


def test_a_tree_keeps_at_once_what_others_have_started():
    """As a compiler's pass, started by the compiler that make has started."""
    with subprocess.Popen([ANYPERF, "run", "--translations=tree", "--", "sh", "-c",
                           'sh -c \'"$@"; echo $?\' sh "$@"; read go', "sh", sys.executable, "-c",
                           "import json"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True, env=ENV) as p:
        assert p.stdout.readline() == "0\n"
        images = tree_images_with(p.pid, asked=False)
        assert max(images.values(), default=0) > 4 << 20, images
        p.stdin.close()
        p.wait(50)


def test_who_is_sampled_keeps_what_it_translates():
    """It counts with deadlines from its beginning, as the program before it did."""
    period, rounds = 1009, 4
    with scratch() as d:
        (once, _), _ = counted(d, FIXED, who="off")
        with subprocess.Popen([ANYPERF, "record", "-q", "-e", "instructions:u", "-c", str(period), "-o",
                               f"{d}/a", "--", "sh", "-c",
                               f'while read go; do {FIXED}; sort /etc/passwd | wc -l; done'],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                              env=ENV) as p:
            said = set()
            for _ in range(rounds):
                p.stdin.write("go\n")
                p.stdin.flush()
                said.add(p.stdout.readline())
            images = tree_images_with(p.pid, asked=False)
            p.stdin.close()
        assert p.returncode == 0 and len(said) == 1, (p.returncode, said)
        assert max(images.values(), default=0) > 0, images
        r = subprocess.run([ANYPERF, "script", "-i", f"{d}/a", "-F", "comm,ip"], text=True,
                           capture_output=True, check=True, env=ENV, timeout=60)
    samples = [line.split()[0] for line in r.stdout.splitlines()]
    assert samples.count(os.path.basename(FIXED)) == rounds * (once // period), (once, r.stdout)


def deny(*calls):
    """A filter of system calls, as containers have one: those fail with EPERM."""
    n, code = len(calls), [(0x20, 0, 0, 0)]
    code += [(0x15, n - i, 0, call) for i, call in enumerate(calls)]
    code += [(6, 0, 0, 0x7fff0000), (6, 0, 0, 0x00050001)]
    text = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *c) for c in code))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(code),
                                                      ctypes.addressof(text)))
    libc = ctypes.CDLL(None)
    assert not libc.prctl(38, 1, 0, 0, 0) and not libc.syscall(317, 1, 0, program)


def test_a_tree_whose_memory_is_not_read():
    """Who keeps images may not read another process's memory: they are sent to him."""
    process_vm_readv = 310
    with subprocess.Popen([ANYPERF, "run", "--translations=tree", "--", "sh", "-c",
                           "while read go; do sort /etc/passwd | wc -l; done"],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=ENV,
                          preexec_fn=lambda: deny(process_vm_readv)) as p:
        said = set()
        for _ in range(3):
            p.stdin.write("go\n")
            p.stdin.flush()
            said.add(p.stdout.readline())
        assert len(said) == 1 and max(tree_images_with(p.pid, asked=False).values()) > 0, said
        p.stdin.close()
    assert p.returncode == 0, p.returncode


def test_who_is_confined_is_on_its_own():
    """Another user, a sandbox, another namespace: nobody executes what comes from there, and
    addresses are drawn anew."""
    cat = "os.execvp('cat', ['cat', '/proc/self/maps'])"
    ways = {"nothing": "os.getuid()", "same": "os.setresuid(*os.getresuid())",
            "privileges": "libc.prctl(38, 1, 0, 0, 0)",
            "strict": "libc.prctl(38, 1, 0, 0, 0); assert not libc.syscall(317, 1, 0, prog)"}
    if os.geteuid() == 0:
        ways |= {"user": "os.setresuid(0, 0, 1)", "group": "os.setresgid(0, 0, 1)",
                 "root": "os.chroot('/')",
                 "child": "os.waitpid(p, 0) and os._exit(0) if (p := os.fork()) "
                          "else os.setresuid(0, 0, 1)"}
    begin = ("import ctypes, os; libc = ctypes.CDLL(None); "
             "code = ctypes.create_string_buffer(bytes([6, 0, 0, 0, 0, 0, 255, 127])); "
             "prog = ctypes.create_string_buffer(bytes([1]) + bytes(7) + "
             "ctypes.addressof(code).to_bytes(8, 'little')); ")
    with scratch() as cache:
        for name, way in ways.items():
            script = f"{begin}{way}; {cat}"
            out = run_tree(cache, "sh", "-c", 'cat /proc/self/maps; echo ==; "$@"; true', "sh",
                           sys.executable, "-c", script)
            one, other = (code_of_files(t) for t in out.split("=="))
            assert len(one) >= 3 and len(other) >= 3, (name, out)
            if name in ("nothing", "same"):
                assert one == other, (name, one, other)
            else:
                assert not set(one) & set(other), (name, one, other)


def test_who_may_write_no_files():
    for who in ("tree", "user"):
        with scratch() as cache:
            said = run_tree(cache, "sh", "-c",
                            "ulimit -f 0; for i in 1 2 3; do ls / >&2; done; echo $?", who=who)
            assert said == "0\n", (who, said)


def doctor(cache, *options):
    p = subprocess.run([ANYPERF, "doctor", *options], capture_output=True, text=True, check=False,
                       timeout=60, env={**ENV, "XDG_CACHE_HOME": cache})
    assert p.returncode in (0, 1), p
    return p


def fact(cache):
    facts = json.loads(doctor(cache, "--json").stdout)["facts"]
    return next(f for f in facts if f["id"] == "translations")


def test_doctor_shows_and_clears():
    with scratch() as cache:
        assert fact(cache)["value"] == "none" and not os.listdir(cache)
        assert doctor(cache, "--clear-translations").stdout == "removed 0 files, 0.0 MB\n"
        where = code_of_files(run_tree(cache, "cat", "/proc/self/maps", who="user"))
        now = fact(cache)
        assert now["value"].startswith("1 files, ") and "512 MB" in now["value"], now
        assert "--clear-translations" in now["remedy"], now
        p = doctor(cache, "--clear-translations")
        assert p.returncode == 0 and p.stdout.startswith("removed 1 files, "), p
        assert not os.listdir(f"{cache}/anyperf/translations")
        again = code_of_files(run_tree(cache, "cat", "/proc/self/maps", who="user"))
        assert not set(where) & set(again), (where, again)
        os.chmod(f"{cache}/anyperf/translations", 0o755)
        assert fact(cache)["state"] == "limited", fact(cache)
        p = doctor(cache, "--clear-translations")
        assert p.returncode == 1 and "is not this user's alone" in p.stderr and kept(cache), p


def test_places_that_are_none():
    with scratch() as d:
        os.makedirs(f"{d}/wide/anyperf/translations")
        os.chmod(f"{d}/wide/anyperf/translations", 0o755)
        with open(f"{d}/file", "w", encoding="utf-8"):
            pass
        for cache, why in ((f"{d}/wide", "is not this user's alone"), (f"{d}/file", "translations=off")):
            p = subprocess.run([ANYPERF, "run", "--translations=user", "--", "true"],
                               capture_output=True, text=True, check=False, timeout=60,
                               env={**ENV, "XDG_CACHE_HOME": cache})
            assert p.returncode == 125 and why in p.stderr, p


def test_who_keeps_images_is_asked_out_of_others_sight():
    """Other threads of the program open files meanwhile, and are given the lowest number free; and
    they see and set the limit of descriptors."""
    if not shutil.which("strace"):
        raise Skip("there is no strace")
    with scratch() as d:
        log = os.path.join(d, "log")
        r = subprocess.run(["sh", "-c", 'ulimit -S -n 500; exec "$@"', "-", "strace", "-f", "-qq",
                            "-o", log, "-e", "trace=ppoll,sendmsg,pipe2,prlimit64", ANYPERF,
                            "run", "--translations=tree", "--", "sh", "-c", "env true; env true"],
                           env=ENV, check=False, timeout=120)
        if r.returncode:
            raise Skip("nothing can be traced")
        with open(log, encoding="ascii", errors="replace") as f:
            text = f.read()
    # Without events: until the other end is closed.
    waits = [int(n) for n in re.findall(r"ppoll\(\[\{fd=(\d+), events=0\}", text)]
    sent = re.findall(r"SCM_RIGHTS, cmsg_data=\[(\d+), (\d+)\]", text)
    assert waits and min(waits) >= 64, (waits, text[:2000])
    assert any(int(pipe) >= 64 for _, pipe in sent), sent
    asks = set()
    for line in text.splitlines():
        pid, call = line.split(None, 1)
        if "pipe2(" in call and "O_CLOEXEC" in call:
            asks.add(pid)
        elif "ppoll(" in call:
            asks.discard(pid)
        assert pid not in asks or "RLIMIT_NOFILE, {" not in call, text[:2000]


if __name__ == "__main__":
    sys.exit(main(globals()))
