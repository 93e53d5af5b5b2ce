"""What the tests of the command line share. A test is a script of functions test_*, each of which
is run; the name of the binary is the first argument, further ones are names of tests. Exit status
0, 1, or 77 if all that ran skipped."""
import ctypes
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import traceback

ANYPERF = os.path.abspath(sys.argv[1])
TOOLS = os.path.dirname(os.path.abspath(__file__))
BUILD = os.environ.get("E2E_BUILD", "")
# The translator, and with it the virtual PMU, is for programs of x86-64.
HAS_RUNTIME = os.uname().machine == "x86_64"

# Texts are compared as the C locale prints them.
ENV = {k: v for k, v in os.environ.items() if not k.startswith("LC_")
       and k not in ("LANG", "NO_COLOR")}


class Skip(Exception):
    pass


class Result:
    def __init__(self, args, process):
        self.args = args
        self.status = process.returncode
        self.out = process.stdout
        self.err = process.stderr

    def __repr__(self):
        return f"{' '.join(self.args)}\n  status {self.status}\n  stdout: {self.out}\n  stderr: {self.err}"


def run(*args, env=None, timeout=60, stdin=None, **more):
    """Runs anyperf with args."""
    args = [ANYPERF, *map(str, args)]
    process = subprocess.run(args, capture_output=True, text=True, timeout=timeout, check=False,
                             env={**ENV, **(env or {})}, stdin=stdin or subprocess.DEVNULL, **more)
    return Result(args, process)


def stat(*args, status=0, **more):
    """Runs anyperf stat and expects its exit status."""
    r = run("stat", *args, **more)
    assert r.status == status, r
    return r


def stat_json(*args, **more):
    """The reports of anyperf stat -j, in order."""
    r = stat("-j", *args, **more)
    return [json.loads(line) for line in r.err.splitlines()]


def plain(name):
    """Without the :u that is added where the user may not measure the kernel."""
    return name[:-2] if name.endswith(":u") else name


def counts(report):
    """event -> count of a report without aggregation."""
    return {plain(c["event"]): c for c in report["counts"]}


def may_measure_cpus():
    """Whether this user may measure whole CPUs; if not, it is checked that the reason is said."""
    r = run("stat", "-a", "-e", "context-switches", "true")
    if r.status == 0:
        return True
    assert r.status == 125 and re.search("perf_event_paranoid|CAP_PERFMON|capabilit", r.err), r
    return False


def table(text):
    """event -> (count, rest of the line) of a table for people."""
    rows = {}
    for line in text.splitlines():
        m = re.match(r"^ *(<not counted>|<not supported>|[\d,.]+) +(?:msec )?([\w:/{}=,-]+)(?: +(.*))?$", line)
        if m and not line.startswith(" Performance") and "seconds" not in line:
            rows[plain(m[2])] = (m[1], m[3] or "")
    return rows


def scratch():
    return tempfile.TemporaryDirectory(prefix="anyperf-test-")


def uncounted(directory):
    """A program that the translator must leave to the kernel: of another user, or not to be
    read."""
    path = shutil.copy("/bin/true", directory)
    if os.getuid() == 0:
        os.chown(path, 65534, 65534)
        os.chmod(path, 0o4755)
    else:
        os.chmod(path, 0o111)
    return path


def hung(number, frame):
    raise TimeoutError("this test hangs")


def refuse(number, errno, argument=0, bits=0):
    """For a new process: this system call answers that, as on a kernel without it or in a sandbox;
    with @bits only if one of them is in that argument."""
    class Program(ctypes.Structure):
        _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.c_char_p)]

    libc = ctypes.CDLL(None)
    code = b"".join(struct.pack("HBBI", *line) for line in (
        (0x20, 0, 0, 0),                    # the number
        (0x15, 0, 3, number),
        (0x20, 0, 0, 16 + 8 * argument),
        (0x45, 0, 1, bits) if bits else (0x05, 0, 0, 0),
        (0x06, 0, 0, 0x00050000 | errno),   # SECCOMP_RET_ERRNO
        (0x06, 0, 0, 0x7fff0000)))          # SECCOMP_RET_ALLOW
    program = Program(6, code)

    def install():
        if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.byref(program), 0, 0):
            os._exit(99)
    return install


def main(names):
    signal.signal(signal.SIGALRM, hung)
    # A shell's background commands ignore these, and what we start would, too.
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    failed = skipped = passed = 0
    for name, test in list(names.items()):
        if not name.startswith("test_") or (sys.argv[2:] and name not in sys.argv[2:]):
            continue
        try:
            signal.alarm(50)
            test()
            signal.alarm(0)
            passed += 1
            print("ok  ", name)
        except Skip as why:
            skipped += 1
            print("skip", name, why)
        except Exception:  # every failure is reported, and the next test run
            failed += 1
            print("FAIL", name)
            traceback.print_exc(file=sys.stdout)
    sys.exit(1 if failed else 77 if skipped and not passed else 0)
