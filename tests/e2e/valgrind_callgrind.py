#!/usr/bin/env python3
"""`anyperf valgrind` against callgrind itself, function by function and call by call, of programs
that people use. What differs is known by its reason, and stands in doc/callgrind.md; anything else
fails. E2E_PROGRAMS says how many of the programs."""
import collections
import os
import re
import shutil
import subprocess
import tempfile

from e2e import ANYPERF, ENV, HAS_RUNTIME, Skip, main

# Both see the same CPU then: neither AVX2 nor REP in the C library.
TUNABLES = ("glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW,-ERMS,-FSRM,-AVX2,-XSAVEC,"
            "Fast_Unaligned_Load")
BASE = {"GLIBC_TUNABLES": TUNABLES, "PYTHONHASHSEED": "0", "PERL_HASH_SEED": "0",
        "LC_ALL": "C", "PATH": "/usr/bin:/bin"}
CALLGRIND = shutil.which("valgrind.bin") or shutil.which("valgrind")

PROGRAMS = {
    "gzip": ["gzip", "-6", "-c", "text"],
    "sort": ["sort", "-r", "text"],
    "sed": ["sed", "-e", "s/alike/different/g", "text"],
    "mawk": ["mawk", "{n[$1 % 100] += $1} END {for (i in n) s += n[i]; print s}", "text"],
    "perl": ["perl", "-e",
             'my %h; $h{$_ % 1000}++ for 1..5000; print join(",", map {$h{$_}} sort keys %h)'],
    "bash": ["bash", "-c", "for ((i = 0; i < 300; i++)); do a=$((a + i)); done; echo $a"],
    "dash": ["dash", "-c", "i=0; while [ $i -lt 500 ]; do i=$((i+1)); done; echo $i"],
    "sha256sum": ["sha256sum", "text"],
    "xz": ["xz", "-1", "-c", "text"],
    "tar": ["tar", "-c", "-f", "-", "--mtime=2020-01-01", "text", "sums"],
    "sqlite3": ["sqlite3", ":memory:", "create table t (a, b); with recursive n(i) as (select 1 "
                "union all select i + 1 from n where i < 300) insert into t select i, i * i from n; "
                "select sum(b) from t where a % 7 = 3;"],
    "bc": ["bc", "-q", "sums"],
}

# Functions that may do otherwise there, each with the reason.
EXPLAINED = [
    # Reads clocks by system calls there, and by the vDSO here.
    (r"(.*/libc.*|)", r"(__)?(clock_)?(get)?time(ofday)?(@.*|_syscall|_vsyscall)?|_dl_vdso_vsym"),
    # What is mapped where, and what the kernel tells a program.
    (r".*/ld-linux.*", r".*"),
    (r"vdso|\[vdso\]", r".*"),
    # Is chosen by what the CPU has.
    (r".*/libc.*", r"(init|__x86)_cacheinfo.*|strstr|cpu_features.*|intel_check_word.*|handle_(intel|amd).*"),
    # Writes numbers of processes and times.
    (r".*/bash", r"fmtumax"),
    # The last system call does not return.
    (r".*/libc.*", r"_?_Exit|_exit"),
    # Takes another way by how its operands are aligned, which lie elsewhere.
    (r".*/libc.*", r"__(str|stp|mem|raw)[a-z]*_(sse|ssse|avx)[0-9]*(_unaligned.*)?"
                   r"|__GI_str.*|strcoll_l|strchrnul"),
]


class Costs:
    """By object, function and instruction, and calls by function and function."""

    def __init__(self, path):
        self.insn = collections.Counter()
        self.edges = {}
        at = called = calls = None
        names = {}
        with open(path, encoding="utf-8", errors="replace") as f:
            for line in f:
                key, _, text = line.rstrip("\n").partition("=")
                if key in ("ob", "fl", "fn", "cob", "cfn", "cfi", "fi", "fe"):
                    names[key] = text
                    if key == "ob":
                        at = (text, None)
                    elif key == "fn":
                        at = (names["ob"], text)
                        names.pop("cob", None)
                    elif key == "cfn":
                        called = (names.pop("cob", names["ob"]), text)
                elif key == "calls":
                    calls = int(text.split()[0])
                elif line.startswith("0x"):
                    address, cost = (int(x, 0) for x in line.split()[:3:2])
                    if calls is None:
                        self.insn[(*at, address)] += cost
                        continue
                    edge = self.edges.setdefault((at, called), [0, 0])
                    edge[0] += calls
                    edge[1] += cost
                    calls = None


def explained(fn):
    return any(re.fullmatch(o, fn[0]) and re.fullmatch(f, re.sub(r"'\d+$", "", fn[1]))
               for o, f in EXPLAINED)


def sections(path):
    """Where code of no section that Valgrind knows lies: it is nobody's there."""
    out = subprocess.run(["readelf", "-SW", path], capture_output=True, text=True,
                         check=True).stdout
    return [(int(m[2], 16), int(m[2], 16) + int(m[3], 16))
            for m in re.finditer(r"\] (\.init|\.fini|\.plt\.got) +PROGBITS +(\w+) \w+ (\w+)", out)]


def repeated(path, addresses):
    """Those that repeat themselves."""
    found = set()
    for a in addresses:
        out = subprocess.run(["objdump", "-d", "--no-show-raw-insn", f"--start-address={a:#x}",
                              f"--stop-address={a + 15:#x}", path], capture_output=True, text=True,
                             check=True).stdout
        if re.search(rf"^ +{a:x}:\s+repn?[ze]? ", out, re.M):
            found.add(a)
    return found


def run_both(args, where):
    theirs, ours = os.path.join(where, "theirs"), os.path.join(where, "ours")
    options = ["-q", "--tool=callgrind", "--dump-instr=yes", "--compress-strings=no",
               "--compress-pos=no"]

    def one(command, env, path):
        r = subprocess.run([*command, *options, f"--callgrind-out-file={path}", *args], cwd=where,
                           env=env, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        assert r.returncode in (0, 1) and not r.stderr, (args, r)
        return r.stdout

    r = subprocess.run([CALLGRIND, "-q", "--tool=none", "/usr/bin/env"], cwd=where, env=BASE,
                       capture_output=True, text=True, check=True)
    seen = dict(line.split("=", 1) for line in r.stdout.splitlines())
    out = one([CALLGRIND], BASE, theirs)
    # Valgrind's own library and variables are part of what the program sees.
    assert out == one(["setarch", "-R", ANYPERF, "valgrind"], seen, ours)
    return Costs(theirs), Costs(ours)


def compare(name, where):
    theirs, ours = run_both(PROGRAMS[name], where)
    nobodys = {}
    differs = set()
    reps = 0

    def is_nobodys(fn):
        """Of no object, as one of the two sees it."""
        if fn[0] == "???":
            return True
        if not os.path.exists(fn[0]):
            return False
        if fn[0] not in nobodys:
            nobodys[fn[0]] = sections(fn[0])
        m = re.fullmatch(r"0x([0-9a-f]+)('\d+)?", fn[1])
        return bool(m) and any(a <= int(m[1], 16) < b for a, b in nobodys[fn[0]])

    wrong = collections.defaultdict(list)
    for key in theirs.insn.keys() | ours.insn.keys():
        if theirs.insn[key] != ours.insn[key]:
            differs.add(key[:2])
            if not is_nobodys(key[:2]) and not explained(key[:2]):
                wrong[key[:2]].append(key[2])
    for fn, addresses in list(wrong.items()):
        known = repeated(fn[0], addresses)
        reps += len(known)
        if known == set(addresses):
            del wrong[fn]
    assert not wrong, (name, [
        (fn, sum(theirs.insn[(*fn, a)] for a in at), sum(ours.insn[(*fn, a)] for a in at),
         [hex(a) for a in at[:4]]) for fn, at in wrong.items()])
    # Whose inclusive costs have such a function in them.
    calls = collections.defaultdict(set)
    for a, b in theirs.edges.keys() | ours.edges.keys():
        calls[b].add(a)
    todo = [fn for fn in calls.keys() | differs if fn in differs or is_nobodys(fn) or explained(fn)]
    above = set(todo)
    while todo:
        for fn in calls[todo.pop()]:
            if fn not in above:
                above.add(fn)
                todo.append(fn)
    equal = 0
    for edge in theirs.edges.keys() | ours.edges.keys():
        if any(is_nobodys(fn) or explained(fn) for fn in edge):
            continue
        a, b = theirs.edges.get(edge, [0, 0]), ours.edges.get(edge, [0, 0])
        assert a[0] == b[0], (name, edge, a, b)
        if edge[1] not in above:
            assert a[1] == b[1], (name, edge, a, b)
            equal += 1
    functions = {key[:2] for key in theirs.insn}
    print(f"     {name}: {len(functions - differs)} of {len(functions)} functions and {equal} of "
          f"{len(theirs.edges)} calls are equal, {reps} instructions repeat")
    assert len(differs) < len(functions) / 4, differs


def test_programs():
    if not HAS_RUNTIME or not CALLGRIND or not shutil.which("callgrind_annotate"):
        raise Skip("valgrind is not installed")
    names = [n for n in PROGRAMS if shutil.which(n)]
    with tempfile.TemporaryDirectory() as d:
        with open(os.path.join(d, "text"), "w", encoding="ascii") as f:
            f.writelines(f"{i} some words that are alike and more\n" for i in range(1, 1001))
        with open(os.path.join(d, "sums"), "w", encoding="ascii") as f:
            f.write("s = 0\nfor (i = 0; i < 300; i++) s += i * i\ns\nquit\n")
        for name in names[:int(os.environ.get("E2E_PROGRAMS", len(names)))]:
            compare(name, d)


main(globals())
