#!/usr/bin/env python3
"""Several commands in one session: anyperf run --session."""
import concurrent.futures
import ctypes
import json
import os
import re
import resource
import socket
import subprocess
import sys
import time

from e2e import ANYPERF, ENV, Skip, main, run, scratch, uncounted

FIXED = os.environ["E2E_FIXED"]  # 200,005 instructions, wherever it lies
STARVED = os.environ["E2E_STARVED"]


class Session:
    """A session whose first command lives as long as the with statement, and goes on making
    processes."""

    def __init__(self, *options):
        self.name = f"test-{os.getpid()}-{time.monotonic_ns()}"
        self.options = options

    def __enter__(self):
        script = "echo here; while ! read -r -t 0.02 line; do /bin/true; done; /bin/true; exit 3"
        self.first = subprocess.Popen([ANYPERF, "run", "--session", self.name, *self.options, "--",
                                       "bash", "-c", script],
                                      env=ENV, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE,
                                      text=True)
        assert self.first.stdout.readline() == "here\n"
        return self

    def run(self, *args, **more):
        return run("run", "--session", self.name, *args, **more)

    def end(self):
        out, err = self.first.communicate("end\n")
        return self.first.returncode, out, err

    def __exit__(self, *why):
        if self.first.returncode is None:
            self.end()


def own_total(report):
    return sum(t["instructions"] for p in report["processes"] for t in p["threads"])


def test_a_joined_run_reports_its_own():
    alone = json.loads(run("run", "-j", "--", FIXED).err)["total"]
    assert alone["instructions"] == 200005, alone
    # Its grandchild works on when its child is dead; nobody is between the two.
    orphan = ["sh", "-c", "(/bin/true; (sleep 0.3; exec /bin/true) & ) ; sleep 0.6"]
    with Session("-j") as s:
        for _ in range(2):
            r = s.run("-j", "--", FIXED)
            report = json.loads(r.err)
            assert report["total"] == alone and len(report["processes"]) == 1, report
            r = s.run("--count", "--", FIXED)
            assert f"{alone['instructions']} " in r.err.replace(",", ""), (alone, r)
            report = json.loads(s.run("-j", "--", *orphan).err)
            comms = sorted(p["comm"] for p in report["processes"])
            assert comms.count("true") == 2 and "bash" not in comms, report
            assert own_total(report) == report["total"]["instructions"], report
        table_of = s.run("-v", "--", "/bin/true").err
        assert len(re.findall(r"^ +\d+ +\d+  \w+ ", table_of, re.M)) == 1, table_of
        status, _, err = s.end()
    first = json.loads(err)
    assert status == 3 and first["processes"][0]["comm"] == "bash", first
    assert {p["comm"] for p in first["processes"]} <= {"bash", "true"}, first
    assert own_total(first) == first["total"]["instructions"], first


def test_two_joined_runs_at_once():
    """Pages go from one command's threads to another's, but not while somebody wants to know about
    the first."""
    script = ["sh", "-c", "i=0; while [ $i -lt 20 ]; do i=$((i+1)); /bin/true; done"]
    with Session() as s:
        command = [ANYPERF, "run", "--session", s.name, "-o", "/dev/stdout", "--count", "--",
                   *script]
        totals = []
        for _ in range(2):
            both = [subprocess.Popen(command, env=ENV, stdout=subprocess.PIPE, text=True)
                    for _ in range(2)]
            for p in both:
                out = p.communicate()[0]
                assert p.returncode == 0, out
                totals.append(int(re.search(r"([\d,]+) +instructions", out)[1].replace(",", "")))
    r = run("run", "-o", "/dev/stdout", "--count", "--", *script)
    alone = int(re.search(r"([\d,]+) +instructions", r.out)[1].replace(",", ""))
    # Addresses differ between runs, and with them what a shell does, a little.
    assert all(abs(t - alone) < alone / 100 for t in totals), (totals, alone)


def pages_used(name):
    """How many pages of the counter segment were ever in use, as its header says: who joins gets
    the segment."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        s.connect(f"\0anyperf-{os.getuid()}-{name}")
        _, (segment,), _, _ = socket.recv_fds(s, 8, 1)
        used = int.from_bytes(os.pread(segment, 4, 8), "little")
        os.close(segment)
        return used


def test_a_session_does_not_grow():
    """Whatever a run wants to know of each of its threads, what it has used is used again when it
    is over."""
    script = ["sh", "-c", "i=0; while [ $i -lt 9 ]; do i=$((i+1)); /bin/true; done"]
    with Session() as s:
        for _ in range(3):
            assert s.run("-j", "--", *script).status == 0
        before = pages_used(s.name)
        assert before >= 10, before
        for _ in range(10):
            assert s.run("-j", "--", *script).status == 0
            assert s.run("--count", "--", *script).status == 0
            with subprocess.Popen([ANYPERF, "run", "--session", s.name, "--count", "--",
                                   "/bin/true"], env=ENV,
                                  stderr=subprocess.DEVNULL) as killed:
                killed.kill()
        assert pages_used(s.name) < before + 40, (before, pages_used(s.name))


KILLED = """
"$@" & while ! pgrep -x sleep >/dev/null; do sleep 0.05; done
pkill -9 -x anyperf-session; wait $!; echo "status $?" >&2
"""


def test_who_lost_its_session_says_so():
    """In a PID namespace, so that no other test's is killed."""
    apart = ["unshare", "-mpf", "--mount-proc", "bash", "-c", KILLED, "bash", ANYPERF]
    if subprocess.run(["unshare", "-mpf", "--mount-proc", "pkill", "-0", "-x", "sh|unshare|pkill"],
                      capture_output=True, check=False).returncode > 1:
        raise Skip("no PID namespaces, or no pkill")
    sleep = ["-e", "instructions:u", "--", "sleep", "3"]
    with scratch() as d:
        for what in [["stat", "--pmu=virtual"],
                     ["record", "--pmu=virtual", "-c", "1000", "-o", os.path.join(d, "data")]]:
            r = subprocess.run([*apart, *what, *sleep], capture_output=True, text=True, env=ENV,
                               timeout=60, check=False)
            assert "the session of the virtual PMU was killed" in r.stderr, r
            assert f"status {125 if what[0] == 'record' else 0}" in r.stderr, r


def short_of_addresses():
    """16 GB that nobody can raise, root included (PR_CAPBSET_DROP of CAP_SYS_RESOURCE)."""
    ctypes.CDLL(None).prctl(24, 24, 0, 0, 0)
    resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30))


def test_a_child_that_cannot_be_made_costs_nothing():
    """Nor, whichever step of making it fails, a page or a mapping."""
    with Session() as s:
        assert s.run("--", STARVED, "3", preexec_fn=short_of_addresses).status == 0
        before = pages_used(s.name)
        out = s.run("--", STARVED, "3", preexec_fn=short_of_addresses).out
        made, failed, refused, grown = (int(n) for n in re.findall(r"-?\d+", out))
        assert made and failed > 100 and refused == 60 and not grown, out
        # Those of its three threads, which end with it, are found when more are in use.
        assert pages_used(s.name) <= before + 2 + 3, (before, pages_used(s.name))
    # A forked child does not keep what only its parent's other tasks had.
    assert run("run", "--", STARVED, "1", "30").out == "generations 30 grown 0\n"


IMPOSTOR = """
import os, socket, sys
user, name, full, sends = int(sys.argv[1]), sys.argv[2], sys.argv[3] == "True", sys.argv[4:]
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
if user != os.getuid():
    os.setuid(user)
s.bind(f"\\0anyperf-{name}")
s.listen(0 if full else 128)
others = []
while full:
    others.append(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
    others[-1].setblocking(False)
    full = others[-1].connect_ex(f"\\0anyperf-{name}") == 0
print("here", flush=True)
for _ in sends:
    c = s.accept()[0]
    cut = os.memfd_create("cut")
    os.truncate(cut, 1 << 40)
    pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    socket.send_fds(c, [bytes(8)], [cut])
    socket.send_fds(c, [bytes(8)], [pair[0].fileno()])
sys.stdin.read()
"""


def impostor(user, *sends, full=False):
    """What a command says to a session's name that this process has taken. full: so many have
    connected that nobody else can."""
    name = f"impostor-{os.getpid()}-{time.monotonic_ns()}"
    with subprocess.Popen([sys.executable, "-c", IMPOSTOR, str(user), f"{os.getuid()}-{name}",
                           str(full), *sends],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as p:
        assert p.stdout.readline() == "here\n"
        said = []
        for command in (["run", "--session", name, "--", "echo", "started"],
                        ["stat", "-e", "instructions", "--session", name, "-p", str(os.getpid())]):
            r = run(*command)
            assert r.status == 125 and not r.out and name in r.err, r
            said.append(r.err)
        p.stdin.close()
    return said


def test_who_answers_is_not_believed_by_its_name():
    for err in impostor(os.getuid(), "to run", "to stat"):
        assert "is no session" in err, err
    if os.getuid() == 0:  # who is not root cannot be anybody else
        for err in impostor(65534):
            assert "another user" in err, err


def test_who_does_not_answer_is_not_waited_for():
    """Nor where nobody else can connect. Each says so after ten seconds."""
    with concurrent.futures.ThreadPoolExecutor() as both:
        for said in both.map(lambda full: impostor(os.getuid(), full=full), (False, True)):
            for err in said:
                assert "does not answer" in err, err


ENDING = """
import socket, sys, time
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.bind(f"\\0anyperf-{sys.argv[1]}")
s.listen(128)
print("here", flush=True)
time.sleep(0.3)
"""


def test_who_ends_is_no_session_any_more():
    """Its name is taken until it has ended, and who has connected until then is hung up on."""
    name = f"ending-{os.getpid()}"
    with subprocess.Popen([sys.executable, "-c", ENDING, f"{os.getuid()}-{name}"],
                          stdout=subprocess.PIPE, text=True) as p:
        assert p.stdout.readline() == "here\n"
        r = run("run", "--session", name, "--", "echo", "started")
    assert r.status == 0 and r.out == "started\n", r


def test_a_joined_run_names_its_own_failures():
    with Session("--count") as s, scratch() as d:
        path = uncounted(d)
        command = ["sh", "-c", f"{path}; exit 4"]
        r = s.run("--count", "--", *command)
        assert r.status == 4 and f"not counted: {path} (" in r.err, r
        r = s.run("--count", "--", "/bin/true")
        assert r.status == 0 and "not counted" not in r.err, r
        # The list is short; who came before does not fill it.
        for _ in range(14):
            r = s.run("-j", "--", *command)
            assert [u["path"] for u in json.loads(r.err.splitlines()[-1])["uncounted"]] == [path], r
        r = s.run("--", path)
        assert r.status == 126 and "cannot run" in r.err, r
        assert s.run("--", "/bin/true").status == 0
        status, _, err = s.end()
        assert status == 3 and "instructions" in err and "not counted" not in err, err
        assert "cannot run" not in err, err


if __name__ == "__main__":
    main(globals())
