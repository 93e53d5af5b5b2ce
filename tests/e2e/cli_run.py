#!/usr/bin/env python3
"""The options of anyperf run. What the counts and the virtual PMU are held to stands in other
tests."""
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import time

from e2e import ANYPERF, ENV, Skip, main, run, scratch, uncounted

TOUCH = os.environ["E2E_TOUCH"]


def counted(*options, program=(TOUCH, "10")):
    r = run("run", "--count", "-j", *options, "--", *program)
    assert r.status == 0, r
    return json.loads(r.err)


def test_exit_status():
    assert run("run", "sh", "-c", "exit 3").status == 3
    assert run("run", "no-such-program-anywhere").status == 127
    assert run("run", "--nonsense", "true").status == 125
    assert run("run").status == 125


def test_counts():
    report = counted()
    assert report["total"]["instructions"] > report["total"]["branches"] > 0, report
    assert report["times"] == "translated" and report["elapsed_s"] > 0, report
    assert report["user_s"] >= 0 and report["sys_s"] >= 0, report
    assert json.loads(run("run", "--count", "--json", TOUCH,
                          "10").err)["total"].keys() == report["total"].keys()
    r = run("run", "--count", "-v", TOUCH, "10")
    assert re.search(r"\d+ +instructions", r.err), r
    assert len(run("run", "--count", "--verbose", TOUCH, "10", "child").err) > len(
        run("run", "--count", TOUCH, "10", "child").err)
    with scratch() as d:
        for option in ("-o", "--output"):
            path = os.path.join(d, option)
            r = run("run", "--count", option, path, "true")
            with open(path, encoding="utf-8") as f:
                assert "instructions" in f.read() and not r.err, r


def test_processes_of_namespaces():
    """Two namespaces are not one process 1, and children are below who has made them."""
    inside = "unshare -Urpf sh -c 'true & wait'"
    if subprocess.run(["sh", "-c", inside], capture_output=True, check=False).returncode:
        raise Skip("there are no namespaces of one's own here")
    r = run("run", "-j", "--", "sh", "-c", f"{inside}; {inside}; true")
    assert r.status == 0, r
    processes = json.loads(r.err)["processes"]
    pids = {p["pid"]: p for p in processes}
    assert len(pids) == len(processes) == 7 and 1 not in pids, processes
    assert all(p["ppid"] in pids for p in processes[1:]), processes
    assert all(t["tid"] == p["pid"] for p in processes for t in p["threads"]), processes
    r = run("run", "--count", "-v", "--", "sh", "-c", f"{inside}; true")
    assert r.status == 0 and not re.search(r"^ +[1-9] +[1-9] ", r.err, re.M), r


def test_a_report_that_cannot_be_written():
    for form in ("--count", "-j"):
        r = run("run", form, "-o", "/dev/full", "true")
        assert r.status == 125 and "cannot write to '/dev/full': No space" in r.err, r
        with open("/dev/full", "w", encoding="utf-8") as full:
            r = subprocess.run([ANYPERF, "run", form, "--", "true"], stderr=full, check=False)
        assert r.returncode == 125, r


def test_translator_options_change_no_result():
    plain = run("run", "sh", "-c", "echo $((6 * 7)); exit 5")
    assert plain.status == 5 and plain.out == "42\n", plain
    for options in (["--verify"], ["--check"], ["--strict"], ["--cache-size", "1"], ["--cache-size=64"],
                    ["--session", f"anyperf-test-{os.getpid()}"]):
        r = run("run", *options, "sh", "-c", "echo $((6 * 7)); exit 5")
        assert (r.status, r.out) == (5, "42\n"), r
    assert run("run", "--cache-size", "0", "true").status == 125


def test_what_was_not_counted():
    with scratch() as d:
        path = uncounted(d)
        command = ["sh", "-c", f"{path}; exit 4"]
        note = f"anyperf run: not counted: {path} ("
        # Who counts is told, whoever it is that counts.
        r = run("run", "--count", *command)
        assert r.status == 4 and note in r.err, r
        r = run("run", ANYPERF, "stat", "-e", "instructions:u", *command)
        assert r.status == 4 and note in r.err, r
        r = run("run", *command)
        assert (r.status, r.out, r.err) == (4, "", ""), r
        # JSON has it, and nothing stands beside it.
        for args in (["run", "-j"], ["stat", "-j", "--pmu=virtual", "-e", "instructions"],
                     ["stat", "-j", "--pmu=virtual", "-r", "2", "-e", "instructions"]):
            r = run(*args, *command)
            named = json.loads(r.err)["uncounted"]
            assert r.status == 4 and len(named) == (2 if "-r" in args else 1), r
            for program in named:
                assert program["path"] == path and program["why"] and program["pid"] > 1, r
        assert json.loads(run("stat", "-j", "--pmu=virtual", "-e", "instructions",
                              "true").err)["uncounted"] == []
        assert "uncounted" not in json.loads(run("stat", "-j", "--pmu=kernel", "-e", "cs",
                                                 "true").err)
        # On the terminal, whatever the form and wherever the counts go; columns keep their shape.
        note = note.replace("run", "stat", 1)
        out = os.path.join(d, "counts")
        for args in ([], ["-v"], ["-j", "-o", out], ["-o", out], ["-I", "1000"],
                     ["-x,", "-o", out]):
            r = run("stat", "--pmu=virtual", "-e", "instructions", *args, *command)
            assert r.status == 4 and len(re.findall("^" + re.escape(note), r.err, re.M)) == 1, r
        r = run("stat", "--pmu=virtual", "-e", "instructions", "-x,", *command)
        assert r.status == 4 and r.err.startswith("# " + note), r


def test_what_the_program_finds():
    for n in ("2", "3"):
        r = run("run", "--paranoid", n, "cat", "/proc/sys/kernel/perf_event_paranoid")
        assert r.out == n + "\n", r
    assert run("run", "--paranoid", "9", "true").status == 125
    assert run("run", "--kernel-mode", "both", "true").status == 125


def measured(*options, events):
    """What anyperf stat reports when it is itself the guest."""
    r = run("run", *options, "--", ANYPERF, "stat", "-j", "-e", events, TOUCH, "2000")
    assert r.status == 0, r
    return {c["event"]: c for c in json.loads(r.err)["counts"]}


def files_mapped(text):
    """What a program's own maps have of files, and how many mappings nobody may use."""
    found = re.findall(r"^\S+ (\S+) (\S+) \S+ [1-9]\d* +(/\S+)$", text, re.M)
    return found, len(re.findall(r"^\S+ ---p ", text, re.M))


def test_programs_are_mapped_as_by_a_kernel():
    native = subprocess.run(["cat", "/proc/self/maps"], stdout=subprocess.PIPE, text=True,
                            env=ENV, check=True)
    r = run("run", "cat", "/proc/self/maps")
    files, unusable = files_mapped(r.out)
    assert r.status == 0 and sorted(files) == sorted(files_mapped(native.stdout)[0]), r
    assert unusable == files_mapped(native.stdout)[1], r


def test_limits_of_memory_set_from_outside():
    """Who is no guest knows nothing of our memory, and leaves no room for it."""
    script = "echo $$; read -r l; for i in 1 2 3; do (f() { echo $1; }; f $i); done; ulimit -v"
    guest = subprocess.Popen([ANYPERF, "run", "--", "sh", "-c", script], env=ENV, text=True,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    pid = int(guest.stdout.readline())
    most = resource.prlimit(pid, resource.RLIMIT_AS)[1]
    resource.prlimit(pid, resource.RLIMIT_AS, (60 << 20, most))
    out, err = guest.communicate("go on\n", timeout=60)
    assert (guest.returncode, out) == (0, "1\n2\n3\n61440\n"), (out, err)


def test_limits_of_files_are_for_files():
    """RLIMIT_FSIZE holds for memory that is a file, too; what the runtime writes there is not the
    program's."""
    for limit in "-f 0", "-S -f 0", "-f 100":
        script = f"ulimit {limit}; ls / | wc -l; sh -c 'exec sh -c \"echo deeper\"' | cat"
        native = subprocess.run(["sh", "-c", script], capture_output=True, text=True, env=ENV,
                                check=True)
        r = run("run", "sh", "-c", script)
        assert (r.status, r.out, r.err) == (0, native.stdout, ""), r
        r = run("run", "--count", "sh", "-c", script)
        assert r.out == native.stdout, r


def test_a_session_that_dies_before_it_answers():
    """The process that waits to become the program has no copy of its socket's other end."""
    if not shutil.which("strace"):
        raise Skip("there is no strace")
    with scratch() as d:
        calls = "epoll_wait,epoll_pwait,epoll_pwait2"
        p = subprocess.run(["strace", "-f", "-qq", "-o", os.path.join(d, "log"), "-e",
                            f"trace={calls}", "-e", f"inject={calls}:signal=SIGKILL:when=1",
                            ANYPERF, "run", "--count", "--", "true"], capture_output=True,
                           text=True, env=ENV, timeout=30, check=False)
        if "ptrace" in p.stderr and "Operation not permitted" in p.stderr:
            raise Skip("this machine does not let a process trace its child")
        assert p.returncode == 125 and "the session does not answer" in p.stderr, p


SUPERVISED = """
import ctypes, os, struct
libc = ctypes.CDLL(None)
class Program(ctypes.Structure):
    _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.c_char_p)]
code = struct.pack("HBBI", 6, 0, 0, 0x7fff0000)
libc.prctl(38, 1, 0, 0, 0)
assert libc.syscall(317, 1, 8, ctypes.byref(Program(1, code))) > 2
copy = os.memfd_create("copy", 0)
os.write(copy, open("/bin/true", "rb").read())
os.fchmod(copy, 0o111)
if not os.getuid():
    os.setuid(65534)
try:
    os.execv(f"/proc/self/fd/{copy}", ["true"])
except OSError as e:
    print(e.errno)
"""


def test_a_sandbox_that_cannot_be_kept():
    """A filter with a listener (SECCOMP_FILTER_FLAG_NEW_LISTENER) is served by a filter of ours,
    which does not hold for a program that runs natively: that is not started, and says why."""
    r = run("run", "--", sys.executable, "-c", SUPERVISED)
    assert (r.status, r.out) == (0, "1\n"), r
    assert "is not started" in r.err and "a supervisor listens" in r.err, r


def test_the_virtual_pmu():
    c = measured(events="instructions:u,branches:u")
    assert all(v["status"] == "ok" and v["running_percent"] == 100 for v in c.values()), c
    # Kernel mode is refused, and then measured without; or ignored.
    assert list(measured("--kernel-mode=refuse", events="instructions")) == ["instructions:u"]
    ignored = list(measured("--kernel-mode", "ignore", events="instructions"))
    assert ignored == ["instructions"] or (os.getuid() and ignored == ["instructions:u"]), ignored


def test_a_limit_on_counters():
    # A group that is larger than the PMU is refused, with the reason.
    c = measured("--counters", "2", events="{instructions:u,branches:u}")
    assert all(v["status"] == "ok" for v in c.values()), c
    c = measured("--counters", "1", events="{instructions:u,branches:u}")
    assert c["branches:u"]["status"] == "not-supported", c
    assert c["branches:u"]["reason"]["cause"] == "group", c
    assert run("run", "--counters", "0", "true").status == 125


# What another one writes to a file that is mapped a child sees that executes it for the first time.
WRITTEN = r"""
import ctypes, os, tempfile
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
with tempfile.TemporaryFile() as f:
    f.truncate(4096)
    at = libc.mmap(None, ctypes.c_size_t(4096), 5, 2, f.fileno(), ctypes.c_long(0))
    for value in range(1, 6):
        os.pwrite(f.fileno(), bytes((0xb8, value, 0, 0, 0, 0xc3)), 0)
        child = os.fork()
        if not child:
            os._exit(ctypes.CFUNCTYPE(ctypes.c_int)(at)())
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), end=" ", flush=True)
"""


def test_a_file_that_is_written_is_not_executed():
    """As natively. That one which is executed may be written is a difference (doc/runtime.md)."""
    with scratch() as d:
        program = shutil.copy(shutil.which("sleep"), d)
        with open(program, "ab"):
            r = run("run", "--", program, "0")
            assert r.status == 126 and "Text file busy" in r.err, r
            r = run("run", "--", "sh", "-c", f"{program} 0")
            assert r.status == 126 and "Text file busy" in r.err, r
        guest = subprocess.Popen([ANYPERF, "run", "--", "sh", "-c",
                                  f"{program} 100 & echo; read -r x; kill $!"], env=ENV,
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        guest.stdout.readline()
        # It may be about to begin, which is asked of the kernel for a moment.
        for wait in *[0.1] * 100, 0:
            try:
                with open(program, "r+b"):
                    break
            except OSError:
                if not wait:
                    raise
                time.sleep(wait)
        guest.communicate(b"go on\n", timeout=60)
        assert guest.returncode == 0, guest


def test_children_execute_what_a_file_has_now():
    for more in (), ("--translations=off",), ("--count",):
        r = run("run", *more, "--", sys.executable, "-c", WRITTEN)
        assert r.out == "1 2 3 4 5 ", (more, r)


if __name__ == "__main__":
    main(globals())
