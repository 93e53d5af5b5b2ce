#!/usr/bin/env python3
"""anyperf compare where files and descriptors are not what they are elsewhere: a sentence each, no
file is lost, and no device replaced."""
import json
import os
import stat as status_of
import subprocess
import sys

from e2e import ANYPERF, ENV, main, scratch

FAST = ["--counts-only", "--warmup=0"]


def compare(*args, status=0, **more):
    p = subprocess.run([ANYPERF, "compare", *args], env=ENV, capture_output=True, text=True,
                       check=False, timeout=60, **more)
    assert p.returncode == status, p
    return p


def shell(text, *args, **more):
    return subprocess.run(["sh", "-c", text, "sh", ANYPERF, *args], env=ENV, capture_output=True,
                          text=True, check=False, timeout=60, **more)


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def test_descriptors_that_are_closed():
    p = shell('"$1" compare --counts-only --warmup=0 -- true --vs true >&-')
    assert p.returncode == 125 and "cannot write to standard output" in p.stderr, p
    with scratch() as d:
        # Commands find what they always do, and nothing of ours.
        probe = f"cat; readlink /proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2 >> {d}/fds"
        p = shell('"$1" compare --counts-only --warmup=0 -o "$3" -- sh -c "$2" --vs true '
                  '<&- >&- 2>&-', probe, f"{d}/out")
        assert p.returncode == 0 and "exact" in read(f"{d}/out"), (p, read(f"{d}/out"))
        lines = set(read(f"{d}/fds").splitlines())
        assert lines == {"/dev/null", f"{d}/fds"}, lines


def test_where_a_baseline_is_kept():
    with scratch() as d:
        kept, link = os.path.join(d, "kept"), os.path.join(d, "link")
        # A link stays one, and a file as readable as it was.
        os.symlink("kept", link)
        compare("--save", link, "--", "true")
        assert os.path.islink(link) and json.loads(read(kept))["schema"], d
        assert status_of.S_IMODE(os.stat(kept).st_mode) == 0o666 & ~os.umask(0o022), d
        os.chmod(kept, 0o640)
        compare("--baseline", link, "--update", "--", "true")
        assert status_of.S_IMODE(os.stat(kept).st_mode) == 0o640 and os.path.islink(link), d
        # What is no file is written to.
        os.mkfifo(os.path.join(d, "pipe"))
        with subprocess.Popen(["cat", os.path.join(d, "pipe")], stdout=subprocess.PIPE) as cat:
            compare("--save", os.path.join(d, "pipe"), "--", "true")
            assert json.loads(cat.communicate()[0])["counts"], cat
        full = os.path.join(d, "full")
        if not os.geteuid():
            os.mknod(full, 0o666 | status_of.S_IFCHR, os.makedev(1, 7))
            try:
                os.close(os.open(full, os.O_WRONLY))
            except PermissionError:
                full = None  # devices do not work here
            if full:
                p = compare("--save", full, "--", "true", status=125)
                assert "No space left" in p.stderr and status_of.S_ISCHR(os.stat(full).st_mode), p
        # Where none can be written that is said before anything runs.
        ran = os.path.join(d, "ran")
        for where in (os.path.join(d, "none", "b"), os.path.join(kept, "b")):
            p = compare("--save", where, "--", "touch", ran, status=125)
            assert f"cannot write '{where}'" in p.stderr and not os.path.exists(ran), p
        assert sorted(os.listdir(d)) == sorted({"kept", "link", "pipe", *["full"] * bool(
            os.path.exists(os.path.join(d, "full")))}), os.listdir(d)


def test_a_baseline_from_a_pipe():
    with scratch() as d:
        kept, pipe = os.path.join(d, "kept"), os.path.join(d, "pipe")
        os.mkfifo(pipe)
        p = compare("--baseline", pipe, "--", "true", status=2)
        assert "it is a pipe, and nobody writes to it" in p.stderr and not p.stdout, p
        compare("--save", kept, "--", "true")
        p = subprocess.run(["bash", "-c", '"$1" compare --baseline <(sleep 0.3; cat "$2") -- true',
                            "bash", ANYPERF, kept], env=ENV, capture_output=True, text=True,
                           check=False, timeout=60)
        assert p.returncode == 0 and "exact" in p.stdout, p


def test_several_that_update_at_once():
    with scratch() as d:
        kept = os.path.join(d, "kept")
        many = [subprocess.Popen([ANYPERF, "compare", "--baseline", kept, "--update", "--", "true"],
                                 env=ENV, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
                for _ in range(8)]
        for p in many:
            assert not p.communicate(timeout=60)[1] and not p.returncode, p.args
        assert json.loads(read(kept))["counts"] and os.listdir(d) == ["kept"], os.listdir(d)


def test_a_baseline_that_breaks_off():
    with scratch() as d:
        kept, cut = os.path.join(d, "kept"), os.path.join(d, "cut")
        compare("--save", kept, "--", "true")
        whole = read(kept)
        for n in range(len(whole) - 2):
            with open(cut, "w", encoding="utf-8") as f:
                f.write(whole[:n])
            p = compare("--baseline", cut, "--fail-if=instructions>0", "--", "true", status=2)
            assert p.stderr.startswith(f"anyperf compare: cannot compare with '{cut}': it is no "
                                       "JSON: line "), (n, p)
            assert p.stderr.count("\n") == 1 and not p.stdout, (n, p)
        # What it says is not taken for a line of ours, nor for a terminal's.
        b = json.loads(whole)
        b["libc"] = "x\n::error::planted\x1b[2J"
        with open(cut, "w", encoding="utf-8") as f:
            json.dump(b, f)
        p = compare("--baseline", cut, "--", "true", status=2)
        assert "planted" in p.stderr and p.stderr.count("\n") == 1 and "\x1b" not in p.stderr, p


def test_who_is_left_behind_is_named():
    p = compare(*FAST, "--", "sh", "-c", "sleep 2 &", "--vs", "sh", "-c", ":")
    assert "A made use of what varies between runs: pids, processes." in p.stdout, p
    assert "B made use" not in p.stdout or "B made use of what varies between runs: pids." \
        in p.stdout, p


if __name__ == "__main__":
    sys.exit(main(globals()))
