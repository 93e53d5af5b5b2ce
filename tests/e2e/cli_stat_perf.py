#!/usr/bin/env python3
"""Counts and columns side by side with perf stat of the same program."""
import os
import re
import shutil
import subprocess
import sys

from e2e import ANYPERF, ENV, main, may_measure_cpus, stat

TOUCH = os.environ["E2E_TOUCH"]
PERF = shutil.which("perf")


def perf(*args):
    return subprocess.run([PERF, "stat", *map(str, args)], capture_output=True, text=True, env=ENV,
                          check=False,
                          stdin=subprocess.DEVNULL, timeout=60).stderr


def both(*args):
    return stat(*args).err, perf(*args)


def test_page_faults_are_equal():
    # Without randomisation, which is inherited, the program faults alike in every run. Only memory
    # running short could come in between.
    def faults(tool, program):
        return subprocess.run(["setarch", "-R", tool, "stat", "-x,", "-e",
                               "page-faults,minor-faults", *program],
                              capture_output=True, text=True, env=ENV, check=True).stderr

    for program in ([TOUCH, "1000"], [TOUCH, "300", "child"]):
        for _ in range(5):
            ours, theirs = faults(ANYPERF, program), faults(PERF, program)
            got = [line.split(",")[0] for line in ours.splitlines()]
            want = [line.split(",")[0] for line in theirs.splitlines()]
            if got == want:
                break
        assert got == want, (ours, theirs)


def test_task_clock_is_of_the_same_size():
    ours, theirs = both("-x,", "-e", "task-clock", "--", sys.executable, "-c",
                        "sum(range(3000000))")
    a, b = float(ours.split(",")[0]), float(theirs.split(",")[0])
    assert b / 4 < a < b * 4, (ours, theirs)


def shape(text):
    """The text with its numbers masked and blanks at line ends gone."""
    text = re.sub(r"\d", "9", text)
    text = re.sub(r"[KMG]/sec", "/sec", re.sub(r"( +)([9.]+)", lambda m: m[1][:1] + "9", text))
    return [line.rstrip() for line in text.splitlines()]


def test_csv_columns_are_the_same():
    lists = [["-e", "task-clock,page-faults,context-switches"],
             ["-r", "2", "-e", "task-clock,page-faults"],
             ["-I", "60", "-e", "task-clock,page-faults"]]
    if may_measure_cpus():
        lists += [["-a", option, "-e", "task-clock,cs"]
                  for option in ("-A", "--per-core", "--per-socket", "--per-die", "--per-node")]
    for options in lists:
        ours, theirs = both("-x,", *options, "sleep", "0.1")
        def fields(text):
            return [[re.sub(r"[\d.]+", "9", field)
                     for field in re.sub(r"[KMG]/sec", "/sec", line).split(",")]
                    for line in text.splitlines() if "<not counted>" not in line]
        a, b = fields(ours), fields(theirs)
        # An interval may go without a count in one of them.
        assert a and b and all(row in b for row in a) or len(a) != len(b), (options, ours, theirs)


def test_text_has_the_same_columns():
    ours, theirs = both("-e", "task-clock,page-faults", TOUCH, "1000")
    for name in ("task-clock", "page-faults", "seconds time elapsed", "seconds user"):
        a = next(line for line in ours.splitlines() if name in line)
        b = next(line for line in theirs.splitlines() if name in line)
        assert a.index(name) == b.index(name) and a.find("#") == b.find("#"), (a, b)
    assert shape(ours)[1] == shape(theirs)[1]


if __name__ == "__main__":
    if not PERF or subprocess.run([PERF, "stat", "true"], capture_output=True,
                                  check=False).returncode:
        print("perf is not installed, or not for this kernel")
        sys.exit(77)
    main(globals())
