#!/usr/bin/env python3
"""The model with cachegrind's geometry, fed with the addresses that valgrind's lackey sees, against
cachegrind itself: the same misses of I1, D1 and LL."""
import os
import re
import subprocess
import tempfile

from e2e import ENV, Skip, main

LACKEY = os.environ["E2E_LACKEY"]
MOST = int(os.environ.get("E2E_PROGRAMS", "10"))
TEXT = os.path.abspath(__file__)
PROGRAMS = [
    ["true"],
    ["sort", TEXT],
    ["sha256sum", TEXT],
    ["wc", TEXT],
    ["grep", "-E", "a.*(b|c)d?e", TEXT],
    ["sed", "s/import/export/", TEXT],
    ["gzip", "-c", TEXT],
    ["od", "-c", "-N", "400", TEXT],
    ["seq", "3000"],
    ["ls", "-lR", os.path.dirname(TEXT)],
]
GEOMETRIES = [
    ("32768,8,64", "32768,8,64", "8388608,16,64"),
    # Small, so that all of them miss; direct-mapped; lines of 32 bytes.
    ("4096,1,32", "2048,2,32", "32768,4,32"),
]
EVENTS = ["Ir", "I1mr", "ILmr", "Dr", "D1mr", "DLmr", "Dw", "D1mw", "DLmw"]


def valgrind(args, program, **more):
    # Their auxiliary vectors and environments are alike, so that addresses are.
    return subprocess.run(["valgrind", *args, *program], stdout=subprocess.DEVNULL,
                          env={**ENV, "LC_ALL": "C"}, timeout=120, check=False, **more)


def cachegrind(geometry, program, directory):
    out = os.path.join(directory, "cachegrind.out")
    i1, d1, ll = geometry
    r = valgrind(["--tool=cachegrind", "--cache-sim=yes", f"--I1={i1}", f"--D1={d1}", f"--LL={ll}",
                  f"--cachegrind-out-file={out}"], program, stderr=subprocess.PIPE)
    assert r.returncode == 0, r
    with open(out, encoding="utf-8", errors="replace") as f:
        text = f.read()
    events = re.search(r"^events: (.*)$", text, re.M)[1].split()
    return dict(zip(events, map(int, re.search(r"^summary: (.*)$", text, re.M)[1].split())))


def model(geometry, trace):
    with open(trace, encoding="utf-8") as f:
        r = subprocess.run([LACKEY, *geometry], stdin=f, capture_output=True, text=True, check=True)
    return {name: int(n) for name, n in (line.split() for line in r.stdout.splitlines())}


def near(ours, theirs):
    return abs(ours - theirs) <= max(theirs / 100, 8)


def compare(program):
    try:
        subprocess.run(["valgrind", "--version"], capture_output=True, check=True)
    except FileNotFoundError as e:
        raise Skip("valgrind is not installed") from e
    with tempfile.TemporaryDirectory() as directory:
        trace = os.path.join(directory, "trace")
        r = valgrind(["--tool=lackey", "--trace-mem=yes", f"--log-file={trace}"], program,
                     stderr=subprocess.DEVNULL)
        assert r.returncode == 0, (program, r)
        for geometry in GEOMETRIES:
            ours, theirs = model(geometry, trace), cachegrind(geometry, program, directory)
            for event in EVENTS:
                assert near(ours[event], theirs[event]), (program, geometry, event, ours, theirs)


# A test each: a test may take a minute.
for _program in PROGRAMS[:MOST]:
    globals()["test_" + _program[0]] = lambda program=_program: compare(program)

if __name__ == "__main__":
    main(globals())
