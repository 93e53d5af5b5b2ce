"""Runs a command natively and under `anyperf run`, and says every difference that its user could
see.

A case is a name, a command, and what to prepare. Both runs get the same fresh directory (the same
path, emptied between), the same environment and the same standard input. Compared are standard
output, standard error, exit status or terminating signal, and the tree of files left behind: names,
kinds, permissions, contents, targets of links.
"""
import hashlib
import itertools
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile


class Case:
    """command: a list; stdin: text; files: {name: text} to be there; mode of those that begin with
    #! is 755. needs: programs without which the case is left out, by name. ignore: names of files
    whose contents differ from run to run. stderr: False where it holds pids or times. wants: its
    output natively on a machine that has what is looked at; elsewhere it is left out."""

    def __init__(self, name, command, stdin="", files=None, needs=(), ignore=(), stderr=True,
                 timeout=60, env=None, setup=None, status=None, options=(), wants=None):
        self.name, self.command, self.stdin = name, command, stdin
        self.files, self.needs, self.ignore = files or {}, needs, ignore
        self.stderr, self.timeout, self.env, self.setup = stderr, timeout, env or {}, setup
        self.options = options  # of `anyperf run`
        self.wants = wants
        self.status = status  # what it must end with natively, where that is part of the test


def snapshot(top, ignore):
    tree = {}
    for folder, folders, names in os.walk(top):
        for name in folders + names:
            path = os.path.join(folder, name)
            rel = os.path.relpath(path, top)
            st = os.lstat(path)
            entry = [stat.S_IFMT(st.st_mode), oct(stat.S_IMODE(st.st_mode))]
            if stat.S_ISLNK(st.st_mode):
                entry.append(os.readlink(path))
            elif stat.S_ISREG(st.st_mode) and rel not in ignore:
                with open(path, "rb") as f:
                    entry.append(hashlib.sha256(f.read()).hexdigest()[:16])
            tree[rel] = entry
    return tree


def prepare(top, case):
    shutil.rmtree(top, ignore_errors=True)
    os.makedirs(top)
    for name, text in case.files.items():
        path = os.path.join(top, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        if text.startswith("#!"):
            os.chmod(path, 0o755)
    if case.setup:
        case.setup(top)


def run_once(top, case, prefix):
    prepare(top, case)
    env = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": top, "LC_ALL": "C", "TZ": "UTC",
           "LANG": "C", **case.env}
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, \
            tempfile.TemporaryFile() as inp:
        inp.write(case.stdin.encode())
        inp.seek(0)
        p = subprocess.Popen(prefix + case.command, cwd=top, env=env, stdin=inp, stdout=out,
                             stderr=err, start_new_session=True)
        late = False
        try:
            p.wait(case.timeout)
        except subprocess.TimeoutExpired:
            late = True
            os.killpg(p.pid, signal.SIGKILL)
            p.wait()
        out.seek(0)
        err.seek(0)
        return {"status": "still running" if late else p.returncode, "output": out.read(),
                "errors": err.read() if case.stderr else b"", "files": snapshot(top, case.ignore)}


def describe(key, native, ours):
    if key == "files":
        names = sorted(set(native) | set(ours))
        return "; ".join(f"{n}: natively {native.get(n)}, here {ours.get(n)}"
                         for n in names if native.get(n) != ours.get(n))
    if key in ("output", "errors"):
        a, b = native.splitlines(), ours.splitlines()
        lines = [f"line {n + 1}: natively {left!r:.300}, here {right!r:.300}"
                 for n, (left, right) in enumerate(itertools.zip_longest(a, b)) if left != right]
        return "\n          ".join(lines[:5] + [f"and {len(lines) - 5} more"] * (len(lines) > 5))
    return f"natively {native}, here {ours}"


def check(anyperf, case):
    """True if there is no difference; None if the case was left out."""
    missing = [n for n in case.needs if not shutil.which(n) and not os.path.exists(n)]
    if missing:
        print(f"-    {case.name}: {', '.join(missing)} is not installed")
        return None
    with tempfile.TemporaryDirectory(prefix="anyperf-unchanged-") as base:
        top = os.path.join(base, "w")
        native = run_once(top, case, [])
        if case.wants is not None and native["output"] != case.wants:
            print(f"-    {case.name}: natively there was {native['output']!r:.60}")
            return None
        ours = run_once(top, case, [anyperf, "run", *case.options, "--"])
    bad = [f"{k}: {describe(k, native[k], ours[k])}" for k in native if native[k] != ours[k]]
    if case.status is not None and native["status"] != case.status:
        bad.append(f"natively it ended with {native['status']}, the test wants {case.status}: "
                   f"{native['errors'][-300:]!r}")
    if native["status"] == "still running":
        bad.append("natively it did not end either")
    print(f"{'FAIL' if bad else 'ok  '} {case.name}")
    for b in bad:
        print("     " + b)
    if "errors" in "".join(bad) or (bad and ours["errors"]):
        print("     its errors: " + repr(ours["errors"][-400:]))
    sys.stdout.flush()
    return not bad


def main(cases, argv, named=()):
    """SCRIPT ANYPERF [NAME...]: all cases, or those whose name contains one of NAME.

    Without one of the cases NAMED the whole counts as skipped, which tests/allowed-skips would have
    to allow."""
    anyperf, wanted = os.path.abspath(argv[0]), argv[1:]
    chosen = [c for c in cases if not wanted or any(w in c.name for w in wanted)]
    results = [check(anyperf, c) for c in chosen]
    ran = [r for r in results if r is not None]
    print(f"{sum(ran)} of {len(ran)} cases the same, {len(results) - len(ran)} left out")
    if not ran or not all(ran):
        return 1
    have = {c.name for c, r in zip(chosen, results) if r}
    lost = [n for n in named if n not in have and not wanted]
    if lost:
        print(f"must not be left out: {', '.join(lost)}; `scripts/install-deps --test --long` installs what Debian has")
    return 77 if lost else 0
