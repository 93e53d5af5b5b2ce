#!/usr/bin/env python3
"""Help, slips, manual pages and completions: all that is made from the option tables; and what is
the same for every command."""
import os
import re
import shutil
import subprocess

from e2e import ANYPERF, ENV, HAS_RUNTIME, TOOLS, main, run, scratch


def commands():
    return re.findall(r"^  (\w+) ", run("help").out, re.M)


def options(command):
    """[(letter or None, long name or None)] of --help."""
    found = []
    for m in re.finditer(r"^  (?:-(\w))?(?:, |    )?(?:--([\w-]+))?", run(command, "--help").out,
                         re.M):
        if m[1] or m[2]:
            found.append((m[1], m[2]))
    return found


def test_no_argument_lists_the_commands():
    r = run()
    assert r.status == 2 and "stat" in r.err and not r.out, r
    assert run("--help").status == 0 and run("-h").out == run("help").out


def test_version():
    for spelling in ("--version", "version", "-v"):
        assert re.fullmatch(r"anyperf \d+\.\d+\.\d+\n", run(spelling).out)
    import json
    v = json.loads(run("version", "--json").out)
    assert v["schema"] == "anyperf-version-1" and v["kernel"] == os.uname().release
    assert json.loads(run("version", "-j").out) == v


def test_help_of_every_command():
    assert {"stat", "list", "doctor", "version", "help"} <= set(commands())
    for c in commands():
        short, full, letter = run(c, "--help"), run("help", c), run(c, "-h")
        assert short.status == full.status == 0 and short.out == letter.out, c
        assert short.out.startswith("usage: anyperf " + c), short
        assert not short.err and not full.err
        for _, name in options(c):
            assert not name or "--" + name in full.out, (c, name)
        assert max(map(len, full.out.splitlines())) <= 100, c


def test_commands_of_perf():
    for command in {"top", "annotate", "c2c", "report"} - set(commands()):
        r = run(command)
        assert r.status == 2 and f"'{command}' is a command of perf" in r.err, r
        assert "did you mean" not in r.err, r
    for command in ("record", "report"):
        r = run("stat", command, "true")
        assert r.status == 127 and f"perf's `stat {command}` is not here" in r.err, r


def test_mistyped_commands_and_options():
    for wrong, right in (("sta", "stat"), ("lits", "list"), ("docter", "doctor")):
        r = run(wrong)
        assert r.status == 2 and f"did you mean {right}?" in r.err, r
    r = run("zzzzzzzz")
    assert r.status == 2 and "did you mean" not in r.err, r
    r = run("--all-cpus", "stat")
    assert r.status == 2 and "options of a command follow it" in r.err, r
    r = run("stat", "--evnet", "cs", "true")
    assert r.status == 125 and "did you mean --event?" in r.err, r
    r = run("list", "--chek")
    assert r.status == 2 and "did you mean --check?" in r.err, r
    r = run("help", "sta")
    assert r.status == 2 and "no command 'sta'" in r.err, r
    r = run("stat", "-e", "page-fautls", "true")
    assert r.status == 125 and "page-faults" in r.err, r
    for c in ("doctor", "version", "help"):
        assert run(c, "one", "two").status == 2


def test_manual_pages():
    docs = subprocess.run([ANYPERF, "--dump-docs", "man", "anyperf"], capture_output=True,
                          text=True,
                          check=True).stdout
    for c in commands():
        assert f"anyperf {c}" in docs
        page = subprocess.run([ANYPERF, "--dump-docs", "man", c], capture_output=True, text=True,
                              check=True).stdout
        for letter, name in options(c):
            if name:
                assert re.search(rf"\\-\\-{name}\b", page.replace("no\\-", "no-")), (c, name)
            else:
                assert rf"\-{letter}" in page, (c, letter)
        if shutil.which("man"):
            lint = subprocess.run(["man", "--warnings", "-l", "-"], input=page, capture_output=True,
                                  text=True, env={**ENV, "LC_ALL": "C.UTF-8"}, check=False)
            assert lint.returncode == 0 and not lint.stderr, (c, lint.stderr)
            for section in ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "SEE ALSO"):
                assert section in lint.stdout, (c, section)


def test_the_build_makes_every_page():
    with open(os.path.join(TOOLS, "../../src/cli/meson.build"), encoding="utf-8") as f:
        listed = re.search(r"cli_commands = \[(.*?)\]", f.read(), re.S)[1]
    assert set(re.findall(r"'(\w+)'", listed)) == set(commands())


def completion(shell):
    r = run("--dump-docs", shell)
    assert r.status == 0 and not r.err
    return r.out


def test_completions():
    for shell, checker in (("bash", ["bash", "-n"]), ("zsh", ["zsh", "-n"]),
                           ("fish", ["fish", "-n"])):
        text = completion(shell)
        for c in commands():
            for letter, name in options(c):
                if shell == "fish":
                    assert not name or f"-l {name} " in text, (c, name)
                else:
                    assert not name or f"--{name}" in text, (c, name)
        if shutil.which(checker[0]):
            path = os.path.join(os.environ.get("TMPDIR", "/tmp"),
                                f"anyperf-completion-{os.getpid()}")
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            try:
                subprocess.run([*checker, path], check=True, capture_output=True)
            finally:
                os.unlink(path)
    assert run("--dump-docs", "csh").status == 2


def test_what_cannot_be_written_is_an_error():
    texts = [["list"], ["list", "--json"], ["list", "-n"], ["help"], ["help", "stat"], ["version"],
             ["version", "-j"], ["stat", "--help"], ["doctor"], ["--dump-docs", "bash"]]
    for args in texts:
        with open("/dev/full", "w", encoding="utf-8") as full:
            r = subprocess.run([ANYPERF, *args], stdout=full, stderr=subprocess.PIPE, text=True,
                               env=ENV, check=False)
        assert r.returncode == (125 if args[0] == "stat" else 2), (args, r)
        assert "cannot write the output: No space left" in r.stderr, (args, r)
    # Nothing to write is nothing lost.
    closed = ["sh", "-c", '"$0" stat -o /dev/null -e cs true >&-', ANYPERF]
    assert subprocess.run(closed, env=ENV, check=False).returncode == 0
    reports = [["stat", "-e", "cs", "true"]]
    if HAS_RUNTIME:
        reports += [["run", "--count", "true"]]
    for args in reports:
        with open("/dev/full", "w", encoding="utf-8") as full:
            r = subprocess.run([ANYPERF, *args], stderr=full, env=ENV, check=False)
        assert r.returncode == 125, (args, r)


def test_standard_descriptors_that_are_shut():
    """What we open does not come in their place, and a program finds them as it does natively."""
    if not HAS_RUNTIME:
        return
    with scratch() as d:
        data = os.path.join(d, "data")
        for shut in ["2>&- <&-", ">&- 2>&- <&-"]:
            script = f'"$0" record -o {data} -e instructions:u -c 10007 sh -c : {shut}'
            subprocess.run(["bash", "-c", script, ANYPERF], env=ENV, check=False)
            r = subprocess.run([ANYPERF, "report", "-i", data], capture_output=True, text=True,
                               env=ENV, check=True)
            assert "no samples" not in r.stdout, r
            found = []
            for command in ["", '"$0" run ']:
                script = f"{command}sh -c 'cd /proc/self/fd && echo * >{d}/fds' {shut}"
                subprocess.run(["bash", "-c", script, ANYPERF], env=ENV, check=True)
                with open(f"{d}/fds", encoding="utf-8") as f:
                    found.append(f.read())
            assert found[0] == found[1], found


def complete(*words):
    """What bash offers for the last of the words."""
    script = completion("bash") + """
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _anyperf; printf '%s\\n' "${COMPREPLY[@]}"
"""
    env = {**ENV, "PATH": os.path.dirname(ANYPERF) + ":" + ENV["PATH"]}
    r = subprocess.run(["bash", "-c", script, "bash", *words], capture_output=True, text=True,
                       env=env,
                       check=True)
    return r.stdout.split()


def test_bash_completes():
    assert complete("anyperf", "st") == ["stat"]
    assert complete("anyperf", "stat", "--per-c") == ["--per-core"]
    assert "page-faults" in complete("anyperf", "stat", "-e", "page-")
    assert complete("anyperf", "stat", "-e", "cs,minor-f") == ["cs,minor-faults"]
    assert "--output" in complete("anyperf", "stat", "--o")
    assert "--no-scale" in complete("anyperf", "stat", "--no-s")
    assert "true" in complete("anyperf", "stat", "-r", "3", "tru")
    assert complete("anyperf", "help", "doc") == ["doctor"]
    assert complete("anyperf", "machine", "neoverse-n") == ["neoverse-n1"]
    assert complete("anyperf", "stat", "--machine", "cachegr") == ["cachegrind"]
    assert complete("anyperf", "stat", "--event", "=", "minor-f") == ["minor-faults"]
    for words in (["stat", "--translations", "=", ""], ["stat", "--translations", ""]):
        assert complete("anyperf", *words) == ["off", "tree", "user"], words
    # Where the words are in the argument's name; what is in capitals stands for something.
    assert complete("anyperf", "valgrind", "--tool", "=", "") == ["callgrind", "cachegrind"]
    assert complete("anyperf", "valgrind", "--dump-instr", "=", "y") == ["yes"]
    assert complete("anyperf", "record", "--call-graph", "=", "d") == ["dwarf"]
    assert complete("anyperf", "stat", "--model-windows", "=", "") == ["no", "auto"]
    assert "none" in complete("anyperf", "stat", "--machine", "=", "")
    # Another program behind --vs.
    assert complete("anyperf", "compare", "ls", "--v") == ["--vs"]
    assert complete("anyperf", "compare", "--", "ls", "-l", "--vs", "ls", "--v") == ["--vs"]
    assert "true" in complete("anyperf", "compare", "ls", "-l", "--vs", "tru")
    assert complete("anyperf", "compare", "ls", "--vs", "ls", os.path.abspath(__file__)[:-1]) == \
        [os.path.abspath(__file__)]
    # Readline has colons as words of their own, and puts back what stands behind the last.
    assert complete("anyperf", "stat", "-e", "cs", ":", "u,minor-f") == ["u,minor-faults"]
    assert complete("anyperf", "stat", "--event", "=", "cs", ":", "u,minor-f") == ["u,minor-faults"]
    assert complete("anyperf", "stat", "-e", "cs", ":", "u", "--per-c") == ["--per-core"]
    listed = run("list", "-n", "tracepoint").out.split()
    for name in [n for n in listed if n.count(":") == 1][:1]:
        system, event = name.split(":")
        assert event in complete("anyperf", "stat", "-e", system, ":", event[:3]), name
        assert event in complete("anyperf", "stat", "-e", system, ":"), name
        assert event in complete("anyperf", "list", system, ":", event), name


def test_every_option_is_tested():
    used = ""
    for name in os.listdir(TOOLS):
        path = os.path.join(TOOLS, name)
        if os.path.isfile(path) and os.path.realpath(path) != os.path.realpath(__file__):
            with open(path, encoding="utf-8") as f:
                used += f.read()
    for c in commands():
        for letter, name in options(c):
            if name == "help":  # test_help_of_every_command
                continue
            long = name and re.search(rf"(?<![\w-])--{name}(?![\w-])", used)
            short = letter and re.search(rf"[\"' ]-{letter}", used)
            assert long or short, f"no test uses --{name} or -{letter} of anyperf {c}"


if __name__ == "__main__":
    main(globals())
