#!/usr/bin/env python3
"""`anyperf valgrind`: command lines of callgrind and cachegrind, the files that their tools read,
and the numbers of callgrind itself where it is installed."""
import os
import re
import select
import shutil
import signal
import subprocess
import tempfile
import time

from e2e import ANYPERF, ENV, TOOLS, Skip, main, run

CALLED = os.environ["E2E_CALLED"]
FILLED = os.environ["E2E_FILLED"]
STORED = os.environ["E2E_STORED"]
REQUESTS = os.environ.get("E2E_REQUESTS")
LEFT = os.environ.get("E2E_LEFT")
# Neither knows of the other's AVX-512 and REP, so both go without.
PLAIN = {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW,-ERMS,-FSRM,-AVX2"}


class Profile:
    """The functions, calls and sums of a file of callgrind's."""

    def __init__(self, path):
        self.names, self.self, self.calls, self.heads, self.objects = {}, {}, {}, [], {}
        self.events, self.columns = {}, []
        self.summary = self.totals = 0
        fn = called = positions = calls = ob = None
        with open(path, encoding="utf-8", errors="replace") as f:
            for line in f.read().split("\n"):
                key, _, text = line.partition("=")
                if line.startswith("positions:"):
                    positions = len(line.split()) - 1
                elif re.match(r"[a-z]+:", line):
                    self.heads.append(line)
                    if line.startswith("events:"):
                        self.columns = line.split()[1:]
                    if m := re.match(r"(summary|totals): (\d+)", line):
                        setattr(self, m[1], int(m[2]))
                elif key == "ob":
                    ob = self.name("ob", text)
                elif key == "fn":
                    fn = self.name("fn", text)
                    self.objects.setdefault(fn, ob)
                elif key == "cfn":
                    called = self.name("fn", text)
                elif key in ("fl", "fi", "fe", "cfi", "cob"):
                    self.name("ob" if key == "cob" else "fl", text)
                elif key == "calls":
                    calls = int(text.split()[0])
                elif line and line[0] in "0123456789+-*":
                    cost = int(line.split()[positions])
                    if calls is None:
                        self.self[fn] = self.self.get(fn, 0) + cost
                        events = self.events.setdefault(fn, dict.fromkeys(self.columns, 0))
                        for name, n in zip(self.columns, line.split()[positions:]):
                            events[name] += int(n)
                        continue
                    edge = self.calls.setdefault((fn, called), [0, 0])
                    edge[0] += calls
                    edge[1] += cost
                    calls = None

    def name(self, kind, text):
        m = re.fullmatch(r"\((\d+)\)(?: (.*))?", text)
        if not m:
            return text
        if m[2] is not None:
            self.names[kind, m[1]] = m[2]
        return self.names[kind, m[1]]

    def own(self):
        """What does not depend on where the kernel has put things."""
        fns = {f for f, o in self.objects.items() if o == CALLED}
        return ({f: n for f, n in self.self.items() if f in fns},
                {e: n for e, n in self.calls.items()
                 if e[0] in fns and e[1] in ("leaf", "tail", "fib", "fib'2")})


def valgrind(*args, **more):
    return run("valgrind", *args, **more)


def profile(*options, program=(CALLED,), status=0, env=None):
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "out")
        r = valgrind("--tool=callgrind", f"--callgrind-out-file={path}", *options, *program,
                     env={**ENV, **PLAIN, **(env or {})})
        assert r.status == status, r
        return {name[4:]: Profile(os.path.join(d, name)) for name in os.listdir(d)}, r


def test_the_graph():
    files, r = profile()
    p = files[""]
    assert p.calls["main", "leaf"][0] == 10, p.calls
    assert p.calls["main", "tail"][0] == 5 and p.calls["tail", "leaf"][0] == 5
    assert p.calls["tail", "leaf"][1] == p.self["leaf"] * 5 // 20, p.self
    # longjmp ends what was called; the handler is nobody's call.
    assert p.calls["main", "catches"][0] == 3 and p.calls["catches", "leaf"][0] == 3
    assert p.calls["jumps", "jumps'2"][0] == 3 and p.calls["jumps'2", "jumps'2"][0] == 6
    assert p.calls["signals", "leaf"][0] == 1 and ("signals", "handler") not in p.calls
    assert p.calls["handler", "leaf"][0] == 1
    assert p.calls["main", "fib"][0] == 1 and p.calls["fib", "fib'2"][0] > 0, p.calls
    assert ("fib'2", "fib") not in p.calls
    assert p.calls["main", "fib"][1] == p.self["fib"] + p.self["fib'2"]
    assert sum(p.self.values()) == p.totals
    assert "==" in r.err and "Collected : " in r.err, r


def test_it_is_callgrinds():
    if not shutil.which("valgrind"):
        return
    ours = profile("--dump-instr=yes")[0][""]
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "out")
        subprocess.run(["valgrind", "-q", "--tool=callgrind", "--dump-instr=yes",
                        f"--callgrind-out-file={path}", CALLED],
                       env={**ENV, **PLAIN}, check=True, capture_output=True)
        theirs = Profile(path)
    # The dynamic loader has more to load there, and sees another CPU.
    own = {f for f, o in theirs.objects.items() if o == CALLED and not f.startswith("0x")}
    assert {"main", "fib'2", "leaf", "jumps", "handler"} <= own, own
    for f in own:
        assert ours.self.get(f) == theirs.self[f], (f, ours.self.get(f), theirs.self[f])
    edges = {e: n for e, n in theirs.calls.items() if e[0] in own and e[1] in own}
    for e, n in edges.items():
        # Inclusive costs have the loader in them where a function was bound meanwhile.
        assert e in ours.calls and ours.calls[e][0] == n[0], (e, n, ours.calls.get(e))
        # What brings a handler back is counted here, and not there.
        if e[1] in ("leaf", "tail", "fib", "fib'2") and e[0] != "handler":
            assert ours.calls[e] == n, (e, n, ours.calls[e])
    assert len(edges) > 10, edges


SIMULATED = ["--cache-sim=yes", "--branch-sim=yes", "--I1=32768,8,64", "--D1=32768,8,64",
             "--LL=1048576,16,64"]


def near(a, b):
    return abs(a - b) <= 8 + b / 100


def test_simulation():
    p = profile(*SIMULATED, program=(CALLED, "walks"))[0][""]
    assert p.columns == ("Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw Bc Bcm Bi Bim").split()
    walks, turns = p.events["walks"], p.events["turns"]
    # Two rounds over 32768 lines, which are in neither cache; every second of them is written.
    assert near(walks["D1mr"], 65536) and near(walks["DLmr"], 65536), walks
    assert near(walks["D1mw"], 16384 + 64) and near(walks["DLmw"], 16384 + 64), walks
    assert walks["I1mr"] <= 8 and walks["Bcm"] < 40, walks
    assert near(walks["Bc"], 65536 + 16384 + 64), walks
    assert turns["Bi"] == 3000 and 1500 < turns["Bim"] < 2800, turns
    assert 800 < turns["Bcm"] < 2300, turns
    assert "desc: LL cache: 1048576 B, 64 B, 16-way associative" in p.heads, p.heads
    # Inclusive costs have all of it.
    if not shutil.which("valgrind"):
        return
    other = theirs(*SIMULATED, CALLED, "walks")[""]
    for fn in ("walks", "turns"):
        for name in other.columns:
            a, b = p.events[fn][name], other.events[fn][name]
            assert a == b if name in ("Ir", "Dr", "Dw", "Bc", "Bi") else near(a, b), (
                fn, name, a, b)
    for options in (["--cache-sim=yes"], ["--branch-sim=yes"]):
        ours, other = profile(*options)[0][""], theirs(*options, CALLED)[""]
        assert ours.columns == other.columns
        for fn, n in ours.events.items():
            if ours.objects[fn] != CALLED or fn[0] in "0(" or fn not in other.events:
                continue
            for name in ("Ir", "Dr", "Dw", "Bc", "Bi"):
                assert n.get(name) == other.events[fn].get(name), (fn, name, n, other.events[fn])


def test_simulation_of_cachegrind():
    def lines(tool, *options):
        with tempfile.TemporaryDirectory() as d:
            path = os.path.join(d, "out")
            args = ["--tool=cachegrind", f"--cachegrind-out-file={path}", *options, CALLED, "walks"]
            if tool:
                subprocess.run([tool, "-q", *args], env={**ENV, **PLAIN}, check=True,
                               capture_output=True)
            else:
                r = valgrind(*args, env={**ENV, **PLAIN})
                assert r.status == 0 and "LL miss rate:" in r.err, r
                if "--branch-sim=yes" in options:
                    assert "Mispred rate:" in r.err, r
                if shutil.which("cg_annotate"):
                    r = subprocess.run(["cg_annotate", path], capture_output=True, text=True,
                                       check=True)
                    assert "walks" in r.stdout and "malformed" not in r.stderr, r
            fn, events, found = None, None, {}
            with open(path, encoding="utf-8") as f:
                for line in f:
                    if line.startswith("fn="):
                        fn = line[3:].strip()
                    elif line.startswith("events:"):
                        events = line.split()[1:]
                    elif line[0].isdigit() and fn in ("walks", "turns"):
                        sums = found.setdefault(fn, dict.fromkeys(events, 0))
                        for name, n in zip(events, line.split()[1:]):
                            sums[name] += int(n)
            return events, found

    for options in (SIMULATED[2:], SIMULATED[1:]):
        events, found = lines(None, *options)
        assert events[:9] == "Ir I1mr ILmr Dr D1mr DLmr Dw D1mw DLmw".split(), events
        assert near(found["walks"]["D1mr"], 65536 + 64), found
        if shutil.which("valgrind"):
            other_events, other = lines("valgrind", *options)
            assert events == other_events
            for fn in found:
                for name in events:
                    a, b = found[fn][name], other[fn][name]
                    assert a == b if name in ("Ir", "Dr", "Dw", "Bc", "Bi") else near(a, b), (
                        fn, name, a, b)


def test_annotate():
    with tempfile.TemporaryDirectory() as d:
        callgrind, cachegrind = os.path.join(d, "cl"), os.path.join(d, "cg")
        assert valgrind("-q", "--tool=callgrind", f"--callgrind-out-file={callgrind}",
                        CALLED).status == 0
        assert valgrind("-q", "--tool=cachegrind", "--cache-sim=no",
                        f"--cachegrind-out-file={cachegrind}", CALLED).status == 0
        for tool, path in (("callgrind_annotate", callgrind), ("cg_annotate", cachegrind)):
            if shutil.which(tool):
                r = subprocess.run([tool, path], capture_output=True, text=True, check=True)
                assert "fib" in r.stdout and "PROGRAM TOTALS" in r.stdout, r
                assert "malformed" not in r.stderr, r
        with open(cachegrind, encoding="utf-8") as f:
            text = f.read()
        lines = sum(int(line.split()[1]) for part in text.split("fn=fib\n")[1:]
                    for line in re.match(r"(\d+ \d+\n)*", part)[0].splitlines())
        p = Profile(callgrind)
        assert lines == p.self["fib"] + p.self["fib'2"], (lines, p.self)
        assert "\nevents: Ir\n" in text and "\nsummary: " in text


def test_collecting_and_parts():
    whole = profile()[0][""]
    files = profile("--toggle-collect=fib")[0]
    p = files[""]
    assert set(p.self) == {"fib", "fib'2"} and p.summary == p.totals
    assert p.totals == whole.calls["main", "fib"][1]
    assert profile("--toggle-collect=f?b")[0][""].self == p.self
    assert set(profile("--toggle-collect=cat*", "--toggle-collect=x")[0][""].calls) >= {
        ("catches", "jumps")}
    assert not profile("--collect-atstart=no")[0][""].self
    assert not profile("--instr-atstart=no")[0][""].self
    files = profile("--dump-before=fib", "--dump-after=tail", "--zero-before=catches")[0]
    assert set(files) == {"", "1", "2", "3", "4", "5", "6"}, set(files)
    assert any("Trigger: --dump-after=tail" in h for h in files["1"].heads)
    assert any("Trigger: --dump-before=fib" in h for h in files["6"].heads)
    assert any("Trigger: Program termination" in h for h in files[""].heads)
    assert sum(files[""].self.get(f, 0) for f in ("fib", "fib'2")) == p.totals
    assert files["6"].self["leaf"] < whole.self["leaf"]
    one = profile("--dump-before=fib", "--combine-dumps=yes")[0]
    assert set(one) == {""} and sum("part:" in h for h in one[""].heads) == 2
    assert one[""].own() == whole.own()
    levels = profile("--separate-recs=1")[0][""]
    assert levels.self["fib"] == p.totals
    assert "leaf" not in profile("--fn-skip=leaf")[0][""].self
    assert any("[PLT]" in f for f in profile("--skip-plt=no")[0][""].self)


def test_lines_of_clang():
    # It writes no ranges of units, by which libdw finds them.
    clang = shutil.which("clang")
    if not clang:
        return
    with tempfile.TemporaryDirectory() as d:
        program = os.path.join(d, "called")
        subprocess.run([clang, "-g", "-O1", "-o", program, os.path.join(TOOLS, "called.c"),
                        "-lpthread"], check=True, capture_output=True)
        r = valgrind("-q", "--tool=cachegrind", "--cache-sim=no",
                     f"--cachegrind-out-file={d}/out", program)
        assert r.status == 0 and not r.err, r
        with open(f"{d}/out", encoding="utf-8") as f:
            text = f.read()
    part = re.search(r"fl=\S*called\.c\n(?:.|\n)*?fn=fib\n((?:\d+ \d+\n)+)", text)
    assert part and all(int(line.split()[0]) > 1 for line in part[1].splitlines()), text[-3000:]


def test_forms_of_the_file():
    whole = profile()[0][""]
    for options in (["--compress-strings=no"], ["--compress-pos=no"], ["--dump-instr=yes"],
                    ["--dump-instr=yes", "--dump-line=no", "--compress-pos=no"]):
        p = profile(*options)[0][""]
        assert p.own() == whole.own(), options


def test_files_and_messages():
    with tempfile.TemporaryDirectory() as d:
        r = valgrind("--tool=callgrind", f"--callgrind-out-file={d}/c.%p.%q{{WHERE}}.%%",
                     f"--log-file={d}/log", CALLED, env={**ENV, "WHERE": "here"})
        assert r.status == 0 and not r.err, r
        names = sorted(os.listdir(d))
        assert re.fullmatch(r"c\.\d+\.here\.%", names[0]) and names[1] == "log", names
        with open(f"{d}/log", encoding="utf-8") as f:
            assert "Collected" in f.read()
        r = valgrind("--tool=callgrind", f"--callgrind-out-file={d}/%q{{NOT_SET}}", "true")
        assert "NOT_SET is not set" in r.err, r
        r = valgrind("--tool=callgrind", f"--callgrind-out-file={d}/%z", "true")
        assert "behind a percent sign" in r.err, r
        for tool in "callgrind", "cachegrind":
            r = valgrind(f"--tool={tool}", f"--{tool}-out-file={d}/no/such", "touch", f"{d}/ran")
            assert r.status == 125 and "cannot write to" in r.err and "nothing was run" in r.err, r
            for name in "", d:
                r = valgrind(f"--tool={tool}", f"--{tool}-out-file={name}", "touch", f"{d}/ran")
                assert r.status == 125 and "nothing was run" in r.err, (name, r)
            # A FIFO that nobody reads is waited for, and a signal ends that.
            os.mkfifo(f"{d}/fifo-{tool}")
            with subprocess.Popen([ANYPERF, "valgrind", "-q", f"--tool={tool}",
                                   f"--{tool}-out-file={d}/fifo-{tool}", "true"],
                                  env=ENV) as p:
                while p.poll() is None:
                    time.sleep(0.5)
                    p.terminate()
            assert p.returncode == -signal.SIGTERM, p.returncode
            # What only the end shows loses the file, and not what was counted.
            os.mkdir(f"{d}/gone")
            r = valgrind(f"--tool={tool}", f"--{tool}-out-file={d}/gone/c", "rmdir", f"{d}/gone")
            assert r.status == 125 and "cannot write to" in r.err, r
            assert re.search(r"I +refs: +[1-9]", r.err), r
        assert not os.path.exists(f"{d}/ran")
        r = valgrind("--tool=callgrind", f"--log-file={d}/no/such", "true")
        assert r.status == 125 and "--log-file: cannot write" in r.err, r
        with open(f"{d}/log", "w+", encoding="ascii") as log:
            to = f"--log-fd={log.fileno()}"
            files = "--tool=callgrind", "--callgrind-out-file=/dev/null"
            # The command has it, too.
            r = valgrind(*files, to, "sh", "-c", f"echo here >&{log.fileno()}",
                         pass_fds=[log.fileno()])
            assert r.status == 0 and not r.err, r
            log.seek(0)
            said = log.read()
            assert "here" in said and re.search(r"==\d+== .*refs", said), said
            r = valgrind(*files, to, f"--log-file={d}/other", "true", pass_fds=[log.fileno()])
            assert r.status == 125 and "choose one" in r.err, r
        r = valgrind(*files, "--log-fd=700", "true")
        assert r.status == 125 and "descriptor 700" in r.err, r


def test_children():
    shell = ("sh", "-c", "true; /bin/true; exit 3")
    files, _ = profile(program=shell, status=3)
    assert set(files) == {""}
    with tempfile.TemporaryDirectory() as d:
        r = valgrind("-q", "--tool=callgrind", "--trace-children=yes",
                     f"--callgrind-out-file={d}/%p", *shell)
        assert r.status == 3 and not r.err, r
        assert len(os.listdir(d)) == 2, os.listdir(d)
        # Each says how it was started; what is given to us as we have been given it.
        commands = [h for f in os.listdir(d) for h in Profile(os.path.join(d, f)).heads
                    if h.startswith("cmd: ")]
        assert sorted(commands) == ["cmd: /bin/true", "cmd: " + " ".join(shell)], commands


def test_threads_and_forks():
    with tempfile.TemporaryDirectory() as d:
        r = valgrind("-q", "--tool=callgrind", f"--callgrind-out-file={d}/%p", CALLED, "threads")
        assert r.status == 0 and not r.err, r
        parts = sorted((Profile(os.path.join(d, f)) for f in os.listdir(d)),
                       key=lambda p: -p.totals)
    assert len(parts) == 2, parts
    assert parts[0].calls["thread", "tail"][0] == 200, parts[0].calls
    assert parts[0].calls["tail", "leaf"][0] == 200
    assert "tail" not in parts[1].self and parts[1].self["leaf"] == parts[0].self["leaf"] / 200


def test_more_code_than_there_is_room_for():
    r = run("stat", "-j", "-e", "instructions:u", FILLED)
    counted = int(re.search(r'"value": ?"?(\d+)', r.out + r.err)[1])
    with tempfile.TemporaryDirectory() as d:
        r = valgrind("--tool=cachegrind", "--cache-sim=no", f"--cachegrind-out-file={d}/out",
                     FILLED)
        with open(f"{d}/out", encoding="utf-8") as f:
            text = f.read()
    assert r.status == 0, r
    said = re.search(r"(\d+) instructions are counted, but not where they are", r.err)
    assert said and int(said[1]) > 1000000, r
    total = int(re.search(r"^summary: (\d+)", text, re.M)[1])
    assert abs(total - counted) < 10000, (total, counted)


def test_separate_threads():
    def parts(tool, *options):
        with tempfile.TemporaryDirectory() as d:
            args = ["-q", "--tool=callgrind", "--separate-threads=yes",
                    f"--callgrind-out-file={d}/%p", *options, CALLED, "threads"]
            if tool:
                subprocess.run([tool, *args], env={**ENV, **PLAIN}, check=True,
                               capture_output=True)
            else:
                r = valgrind(*args, env={**ENV, **PLAIN})
                assert r.status == 0 and not r.err, r
            return {re.sub(r"^\d+", "", f): Profile(os.path.join(d, f))
                    for f in sorted(os.listdir(d))
                    if "-" in f and "thread" in Profile(os.path.join(d, f)).self}, os.listdir(d)

    found, names = parts(None)
    # In the order in which they were made; the last one is still there at the fork.
    assert set(found) == {"-02", "-03", "-04", "-05"}, names
    assert all(p.calls["thread", "tail"][0] == 50 for p in found.values()), found
    assert all("thread: " + str(int(n[1:])) in p.heads for n, p in found.items()), names
    assert sum(re.fullmatch(r"\d+-01", n) is not None for n in names) == 2, names
    # The program of a child begins with 01 again, and one thread has one file.
    with tempfile.TemporaryDirectory() as d:
        r = valgrind("-q", "--tool=callgrind", "--separate-threads=yes", "--trace-children=yes",
                     f"--callgrind-out-file={d}/%p", "sh", "-c", f"{CALLED}; true")
        assert r.status == 0 and not r.err, r
        files = {f: Profile(os.path.join(d, f)) for f in os.listdir(d)}
        assert len(files) == 2 and all(f.endswith("-01") for f in files), files.keys()
        assert all(p.totals > 10000 for p in files.values()), files
    _, names = parts(None, "--dump-before=exit")
    assert any(re.fullmatch(r"\d+\.1-01", n) for n in names), names
    assert any(re.fullmatch(r"\d+\.1-02", n) for n in names), names


def test_the_end_is_the_programs():
    r = valgrind("-q", "--tool=callgrind", "--callgrind-out-file=/dev/null", "sh", "-c",
                 "kill -TERM $$")
    assert r.status == -signal.SIGTERM, r
    r = valgrind("-q", "--tool=callgrind", "--callgrind-out-file=/dev/null", "/no/such/program")
    assert r.status == 127, r


def test_a_reader_that_was_killed_is_not_waited_for():
    """Programs hand over nothing more then; they waited for a minute each."""
    script = "echo $$; read -r line; i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; echo done"
    callgrind = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    for command, waits in ((callgrind, False), (callgrind, True),
                           (["record", "--exact", "-g", "-o", "/dev/null"], False)):
        reader = subprocess.Popen([ANYPERF, *command, "sh", "-c", script], env=ENV, text=True,
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE)
        pid = int(reader.stdout.readline())
        if waits:
            reader.send_signal(signal.SIGSTOP)
            reader.stdin.write("go on\n")
            reader.stdin.flush()
            time.sleep(1)
        reader.kill()
        reader.wait()
        # The other ends of the pipes are the program's.
        if not waits:
            reader.stdin.write("go on\n")
            reader.stdin.flush()
        said = select.select([reader.stdout], [], [], 40)[0] and reader.stdout.readline()
        if not said:
            os.kill(pid, signal.SIGKILL)
        reader.communicate()
        assert said == "done\n", (command, said)


def theirs(*args):
    """The same of callgrind."""
    with tempfile.TemporaryDirectory() as d:
        subprocess.run(["valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={d}/out",
                        *args], env={**ENV, **PLAIN}, check=True, capture_output=True)
        return {name[4:]: Profile(os.path.join(d, name)) for name in os.listdir(d)}


def of_program(p, program=REQUESTS):
    fns = {f for f, o in p.objects.items() if o == program and f[0] not in "0("}
    return ({f: n for f, n in p.self.items() if f in fns},
            {e: n for e, n in p.calls.items() if e[0] in fns and e[1] in fns})


def test_functions_that_are_left():
    if not LEFT:
        raise Skip("there is no C++")
    p = profile(program=(LEFT,))[0][""]
    for name in ("sorts", "within", "thrower(int)", "catcher(int)"):
        assert name in p.self and name + "'2" not in p.self, (name, of_program(p, LEFT))
    # Each level has ended by an exception, in a part of the function that may lie elsewhere.
    ended = sum(n[0] for e, n in p.calls.items()
                if e[0].startswith("deep(int)") and e[1] == "Guard::~Guard()")
    assert ended == 23, of_program(p, LEFT)
    assert p.calls["main", "again"][0] == p.calls["again", "leaf"][0] == 10, of_program(p, LEFT)
    assert p.calls["again'2", "leaf"][0] == 20, of_program(p, LEFT)
    assert p.calls["main", "sorts"][0] == p.calls["sorts", "qsort"][0] == 10, of_program(p, LEFT)
    if not shutil.which("valgrind"):
        return
    for options in ([], ["--toggle-collect=qsort"], ["--toggle-collect=longjmp"],
                    ["--toggle-collect=*cold*"], ["--fn-skip=sorts"], ["--fn-skip=qsort"],
                    ["--fn-skip=deep*"], ["--fn-skip=catcher*"]):
        ours, other = profile(*options, program=(LEFT,))[0][""], theirs(*options, LEFT)[""]
        (self, calls), (their_self, their_calls) = of_program(ours, LEFT), of_program(other, LEFT)
        assert self == their_self, (options, self, their_self)
        # Inclusive costs have in them what depends on which libraries there are: the unwinder's,
        # and the loader's.
        counts, their_counts = ({e: n[0] for e, n in c.items()} for c in (calls, their_calls))
        assert counts == their_counts, (options, counts, their_counts)
        for e, n in their_calls.items():
            if e[1] in ("leaf", "Guard::~Guard()"):
                assert calls[e] == n, (options, e, calls[e], n)


def test_client_requests():
    if not REQUESTS:
        raise Skip("there is no valgrind/callgrind.h")
    r = run("run", "--", REQUESTS)
    assert r.out == "0 0\n", r
    for options, what, parts in (
            ([], "none", {""}),
            (["--collect-atstart=no"], "toggle", {""}),
            (["--instr-atstart=no"], "start", {""}),
            (["--dump-instr=yes"], "dump", {"", "1", "2", "3"}),
            ([], "join", {"", "1", "2", "3", "4", "5", "6"}),
            ([], "zero", {"", "1"})):
        files, r = profile(*options, program=(REQUESTS, what))
        assert r.out == ("1 0\n" if what == "none" else ""), r
        assert set(files) == parts, (what, set(files))
        if what == "toggle":
            assert files[""].calls["main", "measured"][0] == 3
            assert files[""].totals < 3 * 100 * 2 * 10
        if what == "dump":
            assert "desc: Trigger: Client Request" in files["1"].heads, files["1"].heads
            assert "desc: Trigger: Client Request: second" in files["2"].heads
            assert files["1"].self["work"] > files["2"].self["work"]
        # A part has what threads have done that were waited for before, and no other has.
        for _ in range(5 if what == "join" else 0):
            files, _ = profile(program=(REQUESTS, what))
            assert all(p.calls["thread", "measured"][0] == 1 for name, p in files.items() if name)
            assert ("thread", "measured") not in files[""].calls, files[""].calls
        # Behind ZERO_STATS callgrind counts two instructions more there.
        if not shutil.which("valgrind") or what == "join":
            continue
        for name, p in theirs(*options, REQUESTS, what).items():
            assert of_program(files[name]) == of_program(p), (what, name, of_program(files[name]),
                                                              of_program(p))


# printf(3) says what a text should be; Valgrind knows fewer conversions.
def test_what_client_requests_print():
    if not REQUESTS:
        raise Skip("there is no valgrind/callgrind.h")
    for options in ([], ["-q"], ["--tool=cachegrind"]):
        r = run("valgrind", "--tool=callgrind", *options, "--callgrind-out-file=/dev/null",
                "--cachegrind-out-file=/dev/null", "--", REQUESTS, "print")
        mark = re.search(r"^(\*\*\d+\*\*) text$", r.err, re.M)[1]
        lines = [line for line in r.err.splitlines() if line.startswith("**")]
        assert all(line.startswith(mark + " ") for line in lines), lines
        assert [line[len(mark) + 1:] for line in lines] == r.out.splitlines(), (r.out, lines)
        assert "-q" in options or "\n==" in r.err[r.err.index("no end of the line"):], r
    with tempfile.TemporaryDirectory() as folder:
        log = folder + "/log"
        r = run("valgrind", "--tool=callgrind", "--log-file=" + log,
                "--callgrind-out-file=/dev/null", REQUESTS, "print")
        assert not r.err and "** text\n" in open(log).read(), r
    r = run("valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", REQUESTS, "lie")
    assert r.out == "14\n14\n11\n1\n1\n1\n", r
    assert r.err.count("(bad address)") == 3, r


def test_requests_of_the_core():
    if not REQUESTS:
        raise Skip("there is no valgrind/callgrind.h")
    files, r = profile(program=(REQUESTS, "ask"))
    assert set(files) == {"", "1", "2"}, set(files)
    assert "desc: Trigger: dump a hint" in files["1"].heads, files["1"].heads
    assert "desc: Trigger: dump" in files["2"].heads, files["2"].heads
    assert "blocks: 0 99 0\npools: 99 99\nstacks: 1\nothers: 99 99\nthreads: 0\n" in r.out, r
    assert "line: 0\n" in r.out and "nonsense: 1\n" in r.out and "dumps: 1\n" in r.out, r
    assert "\nn_errs_found 0 n_errs_shown 0\n" in r.err, r
    if shutil.which("valgrind"):
        out = subprocess.run(["valgrind", "-q", "--tool=callgrind",
                              "--callgrind-out-file=/dev/null", REQUESTS, "ask"],
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
        assert r.out == out, (r.out, out)


# What was accessed while nothing was simulated is in no cache, nor what another thread has used
# the cache for since.
def test_caches_that_have_forgotten():
    if not REQUESTS:
        raise Skip("there is no valgrind/callgrind.h")
    options = ["--instr-atstart=no", *SIMULATED]
    parts = profile(*options, program=(REQUESTS, "cold"))[0]
    # `sink` may be in the way of one line.
    for part in ("1", ""):
        met = parts[part].events["touches"]
        assert 64 <= met["D1mr"] <= 66, (part, met)
    if shutil.which("valgrind"):
        for part, p in theirs(*options, REQUESTS, "cold").items():
            assert 64 <= p.events["touches"]["D1mr"] <= 66, (part, p.events["touches"])


# Elements of strings that signals interrupt are accesses as well.
def test_strings_that_are_interrupted():
    parts, r = profile(*SIMULATED, program=(STORED,))
    quiet = profile(*SIMULATED, program=(STORED, "quiet"))[0][""].events["store"]
    assert int(r.out) > 3, r
    met = parts[""].events["store"]
    assert met["Dw"] == quiet["Dw"] >= 20 << 20, (met, quiet)
    assert met["Ir"] == quiet["Ir"] and near(met["D1mw"], quiet["D1mw"]), (met, quiet)


def test_options():
    def refused(*args, **more):
        r = valgrind(*args, "true", **more)
        assert r.status == 125 and not r.out, r
        return r.err

    assert "memcheck" in refused()
    assert "does not have this tool" in refused("--tool=massif")
    assert "--collect-jumps=yes" in refused("--tool=callgrind", "--collect-jumps=yes")
    assert "--separate-callers=2" in refused("--tool=callgrind", "--separate-callers=2")
    for option in ("--separate-callers2=f", "--separate-recs10=f", "--fn-group1=f"):
        assert option in refused("--tool=callgrind", option)
    assert "--simulate-wb=yes" in refused("--tool=callgrind", "--simulate-wb=yes")
    for cache in ("--I1", "--D1", "--LL"):
        assert "SIZE,WAYS,LINE" in refused("--tool=cachegrind", cache + "=x")
        assert "SIZE,WAYS,LINE" in refused("--tool=callgrind", cache + "=x")
    assert "one size" in refused("--tool=callgrind", "--simulate-cache=yes", "--I1=32768,8,32")
    assert "neither yes nor no" in refused("--tool=callgrind", "--cache-sim=maybe")
    assert "--dump-bb=yes" in refused("--tool=callgrind", env={**ENV,
                                                              "VALGRIND_OPTS": "--dump-bb=yes"})
    for slip in ("--toggle-colect=leaf", "--foo", "--vgd=no", "--vgdbs=no", "--leak-check=full"):
        assert f"unknown option: {slip}" in refused("--tool=callgrind", slip)
    fine = ["--tool=callgrind", "--memcheck:leak-check=full", "--vgdb=no", "--collect-jumps=no", "--callgrind-out-file=/dev/null",
            "--main-stacksize=100", "--error-limit=no"]
    r = valgrind(*fine, "-q", "true")
    assert r.status == 0 and not r.err, r
    r = valgrind(*fine, "--verbose", "true")
    assert "--vgdb=no makes no difference" in r.err, r
    r = valgrind("-q", "--callgrind-out-file=/dev/null", "true",
                 env={**ENV, "VALGRIND_OPTS": "--tool=callgrind --quiet"})
    assert r.status == 0 and not r.err, r
    r = valgrind("--tool=callgrind")
    assert r.status == 125 and "no command" in r.err, r


def test_harnesses_ask_for_the_version():
    for args in (["--version"], ["-q", "--tool=callgrind", "--version"], ["--version", "true"]):
        r = valgrind(*args)
        assert r.status == 0 and not r.err, r
        assert re.fullmatch(r"valgrind-3\.\d+\.\d+\n", r.out), r
        if shutil.which("valgrind"):
            theirs = subprocess.run(["valgrind", *args], capture_output=True, text=True,
                                    check=True).stdout
            assert re.fullmatch(r"valgrind-3\.\d+\.\d+\n", theirs), theirs
    r = valgrind("--version", env={**ENV, "VALGRIND_OPTS": "-v"})
    assert r.status == 0 and re.fullmatch(r"valgrind-3\.\d+\.\d+-anyperf-.+\n", r.out), r
    # The program's own.
    r = valgrind("-q", "--tool=callgrind", "--callgrind-out-file=/dev/null", "ls", "--version")
    assert r.status == 0 and "coreutils" in r.out, r
    for asked in ("-h", "--help", "--help-debug", "--help-dyn-options"):
        r = valgrind(asked)
        assert r.status == 0 and r.out.startswith("usage: anyperf valgrind") and not r.err, r


main(globals())
