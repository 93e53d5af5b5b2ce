#!/usr/bin/env python3
"""anyperf compare as a gate for CI: limits, baselines, and the forms that CI systems show."""
import csv
import io
import json
import os
import re
import shutil
import struct
import subprocess

import compare_schema
from compare_runs import (FIXED, QUANTITIES, baseline, compare, compared, edited, fixed, judged,
                          main, region, vs)
from e2e import ANYPERF, ENV, TOOLS, scratch

NONDET = os.environ["E2E_NONDET"]
TURN = 200000


def test_gates_on_counts():
    one, more = fixed(1), fixed(2)
    for limit, result in (("instructions>+0%", "broken"), ("instructions:u>+99.9%", "broken"),
                          ("instructions>+100%", "held"), ("instructions>+200000", "held"),
                          ("instructions>199999", "broken"), ("branches>+99999", "broken"),
                          ("branches<+100000", "held"), ("branches<100001", "broken"),
                          ("instructions<-1%", "held")):
        assert judged(limit, one, more, status=result == "broken") == [("B", result)], limit
    # One instruction more is found, and none is none.
    assert judged("instructions>0", one, one, status=0) == [("B", "held")]
    assert judged("instructions>0", one, more, one, more, status=1) == [
        ("B", "broken"), ("C", "held"), ("D", "broken")]
    r = compare("--fail-if=instructions>5", "--fail-if", "branches>+1000%", *vs(one, more),
                status=1)
    assert "\n  instructions>5: broken: B is +200000.\n  branches>+1000%: held: B is +" in r.out, r
    # What varies breaks a gate only if all of its range lies beyond.
    clock = ["python3", "-I", "-S", "-c", "import time\nend = time.monotonic_ns() + 3000000\n"
             "while time.monotonic_ns() < end: pass"]
    assert judged("instructions>+10%", ["true"], clock, status=1) == [("B", "broken")]
    # Of nothing to something is more than any percentage, of nothing to nothing is none.
    taken = ("-e", "anyperf/indirect/")
    assert judged("anyperf/indirect/>5%", one, one, status=0, options=taken) == [("B", "held")]
    assert judged("anyperf/indirect/>5%", one, ["true"], status=1, options=taken) == [
        ("B", "broken")]


def test_gates_on_times():
    more = {"times": True, "options": ("--runs=6", "--warmup=0", "--time-only")}
    # So much slower that no noise of a busy machine reaches it.
    slow = ["sleep", "0.7"]
    assert judged("time>+20ms", ["true"], slow, status=1, **more) == [("B", "broken")]
    assert judged("time>+50%", ["true"], slow, status=1, **more) == [("B", "broken")]
    assert judged("time>+200s", ["true"], slow, status=0, **more) == [("B", "held")]
    assert judged("cpu-time>+200s", ["true"], slow, status=0, **more) == [("B", "held")]
    assert judged("time<-20ms", slow, ["true"], status=1, **more) == [("B", "broken")]
    assert judged("peak-memory>+1MB", ["true"], ["python3", "-c", "1"], status=1,
                  **more) == [("B", "broken")]
    assert judged("faults>+100%", ["true"], ["python3", "-c", "1"], status=1,
                  **more) == [("B", "broken")]
    # Too few runs to tell.
    r = compare("--time-only", "--runs=3", "--fail-if=time>5%", *vs(["true"], slow), times=True,
                status=2)
    assert "time>5%: inconclusive: B is +" in r.out and "of fewer than 6 runs" in r.out, r


def test_gates_that_cannot_be():
    for limit, said in (("instructions", "no name with a limit"), ("time>x", "no number"),
                        ("cycles>5%", "cycles is not counted; -e cycles counts it"),
                        ("time>5%", "with --counts-only there are none"),
                        ("instructions>5ms", "a count has none")):
        r = compare("--fail-if", limit, *vs(["true"], ["true"]), status=125)
        assert said in r.err and not r.out, r
    for limit, said in (("instructions>5%", "with --time-only there are none"),
                        ("time>5", "wants a unit that fits"), ("faults>5kB", "wants a unit")):
        r = compare("--time-only", "--fail-if", limit, *vs(["true"], ["true"]), times=True,
                    status=125)
        assert said in r.err and not r.out, r
    # It was to be counted, and could not be.
    r = compare("-e", "instructions,cycles", "--fail-if=cycles>5%", *vs(["true"], ["true"]),
                status=2)
    assert "cycles>5%: not to be told of B: " in r.out and "does not see" in r.out, r
    # A command that fails is not judged.
    r = compare("--fail-if=instructions>-100%", *vs(["true"], ["false"]), status=2)
    assert "broken" not in r.out + r.err, r


def test_markdown():
    r = compare("--format=markdown", "--name", "a|b", "--fail-if=instructions>0",
                *vs(fixed(1), fixed(2)), status=1)
    lines = r.out.splitlines()
    assert lines[0] == f"- **a\\|b**: '{FIXED}'".replace("_", "\\_"), r
    table = lines.index("| | a\\|b | B | change | |")
    assert lines[table + 1] == "|---|---:|---:|---:|---|", r
    assert lines[table + 2] == "| instructions:u | 200005 | 400005 | +99.998 % | exact |", r
    assert "- instructions>0: broken: B is +200000." in lines, r
    r = compare("--format", "markdown", *vs(["true"], [NONDET, "pids"]))
    assert r.out.endswith("B made use of what varies between runs: pids.\n"), r
    r = compare("--format=markdown", "--time-only", "--runs=6", *vs(["true"], ["true"]), times=True)
    assert re.search(r"^\| time \| [\d.]+ .s \| [\d.]+ .s \| [+-][\d.]+ % "
                     r"\([+-][\d.]+ to [+-][\d.]+\) \| ", r.out, re.M), r


def test_csv():
    r = compare("--format=csv", "--runs=6", "--name", 'a,"b"', *vs(fixed(1), fixed(2), ["true"]),
                times=True)
    rows = list(csv.DictReader(io.StringIO(r.out)))
    assert [x["what"] for x in rows] == (["instructions:u", "branches:u"] + QUANTITIES) * 2, r
    assert {x["of"] for x in rows} == {"B", "C"} and {x["against"] for x in rows} == {'a,"b"'}, r
    first = rows[0]
    assert (first["first"], first["second"], first["verdict"]) == ("200005", "400005", "exact"), r
    assert first["change_percent"] == first["low_percent"] == first["high_percent"] == "99.997500"
    for x in rows:
        assert float(x["low_percent"]) <= float(x["change_percent"]) <= float(x["high_percent"]), x
    assert [x["unit"] for x in rows[:6]] == ["", "", "s", "s", "bytes", ""], r
    # What nothing can be divided by has no percentages.
    r = compare("--format=csv", "-e", "anyperf/indirect/", *vs(fixed(1), ["true"]))
    row = list(csv.DictReader(io.StringIO(r.out)))[0]
    assert row["first"] == "0" and row["change_percent"] == row["low_percent"] == "", r


def test_github():
    with scratch() as d:
        summary = os.path.join(d, "summary")
        env = {"GITHUB_STEP_SUMMARY": summary}
        r = compare("--format=github", "--fail-if=instructions>+0.1%", "--fail-if=branches<0",
                    *vs(fixed(1), fixed(2)), env=env, status=1)
        assert r.out.endswith("::error title=anyperf compare::instructions>+0.1%25: broken: B is "
                              "+99.998 %25\n"), r
        assert r.out.count("::") == 2 and "exact" in r.out, r
        with open(summary, encoding="utf-8") as f:
            assert "| instructions:u | 200005 | 400005 | +99.998 % | exact |\n" in f.read()
        r = compare("--format=github", "-e", "cycles,instructions", "--fail-if=cycles>0",
                    *vs(["true"], ["true"]), status=2)
        assert "::warning title=anyperf compare::cycles>0: not to be told" in r.out, r
        # What a command is called begins no line, where the runner takes orders.
        r = compare("--format=github", *vs(["true"], ["echo", "x\n::error::y", "\x1b[2J"]))
        assert "\n::" not in r.out and "\x1b" not in r.out and "'echo x ::error::y  [2J'" in r.out
        # One more is behind what other steps wrote; where it cannot stand is said.
        size = os.path.getsize(summary)
        compare("--format=github", *vs(["true"], ["true"]), env=env)
        assert os.path.getsize(summary) > size
        r = compare("--format=github", *vs(["true"], ["true"]), env={"GITHUB_STEP_SUMMARY": d},
                    status=125)
        assert "cannot write the summary" in r.err, r


def test_baseline():
    with scratch() as d:
        program, kept = os.path.join(d, "program"), os.path.join(d, "baseline.json")
        shutil.copy(FIXED, program)
        r = compare("--save", kept, "--", program, "x")
        assert re.search(r"^  instructions:u +400005  exact$", r.out, re.M) and not r.err, r
        b = baseline(kept)
        compare_schema.check(b, compare_schema.BASELINE)
        assert b["schema"] == "anyperf-baseline-1" and b["command"] == [program, "x"], b
        assert b["counts"][0] == {"event": "instructions:u", "min": 2 * TURN + 5,
                                  "value": 2 * TURN + 5, "max": 2 * TURN + 5}, b
        assert b["environment"].keys() >= {"PATH"} and b["not_fixed"] == [], b
        assert os.environ["PATH"] not in json.dumps(b) and os.listdir(d) != [], b
        # The same again is the same, and the same file.
        with open(kept, encoding="utf-8") as f:
            text = f.read()
        compare("--save=" + kept, "--", program, "x")
        with open(kept, encoding="utf-8") as f:
            assert f.read() == text and text.count("\n") > 20
        assert sorted(os.listdir(d)) == ["baseline.json", "program"], os.listdir(d)
        r = compared("--baseline", kept, "--fail-if=instructions>0", "--", program, "x")
        assert [c["name"] for c in r["commands"]] == ["baseline", "A"], r
        assert r["commands"][0]["baseline"] == kept and r["gates"][0]["result"] == "held", r
        assert r["comparisons"][0]["counts"][0]["change"] == 0, r
        assert "of the same build" in compare("--baseline", kept, "--", program, "x").out
        # Another build, with one turn more in a hundred thousand.
        with open(program, "rb") as f:
            code = f.read()
        assert code.count(struct.pack("<I", 100000)) == 1
        with open(program, "wb") as f:
            f.write(code.replace(struct.pack("<I", 100000), struct.pack("<I", 100001)))
        r = compared("--baseline", kept, "--fail-if=instructions>0", "--", program, "x", status=1)
        assert r["comparisons"][0]["counts"][0]["change"] == 4, r
        # The counts become the new baseline if somebody says so.
        assert baseline(kept) == b
        r = compare("--baseline", kept, "--update", "--fail-if=instructions>0", "--", program, "x",
                    status=1)
        assert baseline(kept)["counts"][0]["value"] == 2 * TURN + 9, r
        compare("--baseline", kept, "--fail-if=instructions>0", "--", program, "x")
        # Some programs look at where they run, and who runs them.
        assert "baseline was made" not in compare("--baseline", kept, "--", program, "x").out
        r = compare("--baseline", kept, "--", program, "x", cwd=d)
        assert "The baseline was made in another directory: a program that asks" in r.out, r
        text = baseline(kept)
        edited(kept, user=os.getuid() + 1)
        r = compared("--baseline", kept, "--", program, "x", cwd=d)
        assert r["baseline_made"] == "in another directory by another user", r
        r = compare("--baseline", kept, "--format=markdown", "--", program, "x")
        assert "The baseline was made by another user: " in r.out, r
        edited(kept, user=text["user"], kernel="2.4")
        r = compare("--baseline", kept, "--", program, "x")
        assert "The baseline was made under another kernel: " in r.out, r
        edited(kept, kernel=text["kernel"])
        r = subprocess.run(["sh", "-c", 'ulimit -s 4000; exec "$@"', "sh", ANYPERF, "compare",
                            "--baseline", kept, "--format=json", "--", program, "x"], env=ENV,
                           capture_output=True, text=True, check=True)
        assert json.loads(r.stdout)["baseline_made"] == "with another limit of the stack", r
        fresh = os.path.join(d, "fresh.json")
        r = compare("--baseline", fresh, "--update", "--", program, "x")
        assert baseline(fresh) == baseline(kept) and not r.err, r


def test_baselines_of_another_input():
    with scratch() as d:
        kept, one, other = (os.path.join(d, name) for name in ("kept.json", "one", "other"))
        for path, text in (one, "5\n"), (other, "5\n5\n"):
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
        compare("--save", kept, "--input", one, "--", "cat")
        for options, said in (([], "standard input was a file (--input FILE); --update keeps"),
                              (["--input", other], "the standard input, had something else")):
            r = compare("--baseline", kept, *options, "--", "cat", status=2)
            assert said in r.err and not r.out, r
        # Wherever it lies.
        os.rename(one, f"{one}-moved")
        compare("--baseline", kept, "--input", f"{one}-moved", "--", "cat")
        compare("--save", kept, "--", "cat")
        r = compare("--baseline", kept, "--input", other, "--", "cat", status=2)
        assert f"standard input was /dev/null, and is {other}" in r.err, r


def test_limits_that_were_not_tested():
    with scratch() as d:
        kept = os.path.join(d, "kept.json")
        for words in 1, 2:
            r = compare("--baseline", kept, "--update", "--fail-if=instructions>0", "--",
                        *fixed(words), status=2)
            assert "no limit of --fail-if was tested: there was nothing to compare with" in r.err, r
            compare("--baseline", kept, "--update", "--fail-if=instructions>0", "--", *fixed(words))


def test_command_lines_of_other_lengths():
    """What reads its name has more to do with a longer one."""
    with scratch() as d:
        short, long = (os.path.join(d, name) for name in ("true", "true" * 20))
        for path in short, long:
            shutil.copy(shutil.which("true"), path)
        for a, b, said in ((short, long, "B's command line is 76 bytes longer than A's"),
                           (long, short, "B's command line is 76 bytes shorter than A's")):
            for options in [], ["--format=markdown"]:
                r = compare(*options, *vs([a], [b]))
                assert said in r.out, r
        assert "command line is" not in compare(*vs([short], [short])).out
        # They read no name.
        assert "command line is" not in compare(*vs(fixed(1), [*fixed(1)])).out


def test_numbers_of_a_locale():
    """Shares have a point, so groups of digits have none, in whatever locale."""
    if not shutil.which("localedef"):
        return
    with scratch() as d:
        if subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", f"{d}/de_DE.UTF-8"],
                          capture_output=True, check=False).returncode:
            return
        r = compare(*vs(fixed(1), fixed(2)), env={"LOCPATH": d, "LC_ALL": "de_DE.UTF-8"})
        assert re.search(r" 200005 +400005 +\+200000 +\+99\.99", r.out), r


def test_baselines_that_do_not_fit():
    with scratch() as d:
        kept = os.path.join(d, "baseline.json")

        def refused(said, *options, command=("--", "true")):
            r = compare("--baseline", kept, *options, *command, status=2)
            assert said in r.err and not r.out, (said, r)
            return r

        def save(*options, **more):
            compare("--save", kept, *options, "--", "true", **more)

        refused("No such file or directory; --save FILE makes one")
        for text, said in (("", "it is no JSON: line 1 has"),
                           ("{\n'}", "it is no JSON: line 2 has"),
                           ("[]", "no baseline of anyperf"), ("{}", "no baseline of anyperf"),
                           ('{"schema": "anyperf-stat-1"}', "no baseline of anyperf"),
                           ('{"schema": "anyperf-baseline-9"}', "of another version: "
                            "anyperf-baseline-9, and this is anyperf-baseline-1"),
                           ('{"schema": "anyperf-baseline-1"}', "it lacks its counts"),
                           (" " * (1 << 21), "it is larger than 1024 kB")):
            with open(kept, "w", encoding="utf-8") as f:
                f.write(text)
            refused(said)
        os.unlink(kept)
        os.mkdir(kept)
        refused("Is a directory")
        os.rmdir(kept)
        save()
        refused("the command line was another; --update keeps", command=("--", "true", "x"))
        refused("the seed was 0 and is 4", "--seed=4")
        refused("the environment has NEW now", "--env", "NEW=1")
        refused("PATH of the environment was another (--env PATH=VALUE sets it)", "--env",
                "PATH=/usr/bin:/bin:/sbin")
        refused("the CPU shown was host ", "--cpu-features", "x86-64-v2")
        for member, said in (("cpu_vendor", "the CPU's vendor was Other and is "),
                             ("cpu_features", "the CPU shown was Other and is host "),
                             ("libc", "the C library was Other and is ")):
            save()
            edited(kept, **{member: "Other"})
            refused(said)
            edited(kept, **{member: None})
            refused("it does not say ")
        save("--env", "GONE=1")
        refused("the environment had GONE")
        # Several at once are all named, and a new one is made on request.
        r = refused("the environment had GONE; the seed was 0 and is 4", "--seed=4")
        r = compare("--baseline", kept, "--update", "--seed=4", "--", "true")
        assert "is made anew, without a comparison: the environment had GONE" in r.err, r
        compare("--baseline", kept, "--seed=4", "--", "true")
        # Counts that it does not have are not compared, and gates on them not judged.
        r = compare("--baseline", kept, "--seed=4", "-e", "instructions,anyperf/taken/",
                    "--fail-if=anyperf/taken/>1%", "--", "true", status=2)
        assert re.search(r"anyperf/taken/u +<not counted> +[1-9].*\n +the baseline has no count of it",
                         r.out), r
        edited(kept, counts=[{"event": "instructions:u", "min": 5, "value": 4, "max": 9}, 7])
        r = compare("--baseline", kept, "--seed=4", "--", "true")
        assert r.out.count("the baseline has no count of it") == 2, r
        for args, said in (("--save a --baseline b", "--save is for the first time"),
                           ("--update", "--update is for --baseline"),
                           ("--save a --pmu=kernel", "--save is for counts of the virtual PMU"),
                           ("--name=a --name=b --save a", "2 names for 1 command")):
            r = compare(*args.split(), "--", "true", status=125)
            assert said in r.err, r
        assert "for one command" in compare("--save", kept, *vs(["true"], ["true"]), status=125).err
        r = compare("--time-only", "--save", kept, "--", "true", status=125, times=True)
        assert "with --time-only there are none" in r.err, r
        r = compare("--save", os.path.join(d, "no", "where"), "--", "true", status=125)
        assert "cannot write '" in r.err and "No such file" in r.err, r


def test_a_baseline_of_another_machine():
    """With a level of CPU features and a number of CPUs another machine of the vendor counts the
    same: one with another model of CPU, and another number of them."""
    asks = ["python3", "-I", "-S", "-c", "import os; sum(range(len(os.sched_getaffinity(0)) * 99))"]
    level = ["--cpu-features=x86-64-v2", "--cpus=3", "--env=PYTHONHASHSEED=0"]
    with scratch() as d:
        kept = os.path.join(d, "baseline.json")
        compare("--save", kept, *level, "--", *asks)
        b = baseline(kept)
        assert b["cpus"] == 3 and b["cpu_features"] == "x86-64-v2", b
        cpu = str(min(os.sched_getaffinity(0)))
        r = subprocess.run(["taskset", "-c", cpu, ANYPERF, "compare", "--baseline", kept,
                            "--fail-if=instructions>0", "--fail-if=instructions<0", *level, "--",
                            *asks], capture_output=True, text=True, env=ENV, check=False)
        assert r.returncode == 0 and not r.stderr, r
        # Another vendor's machine would show the same: nothing of ours is in it.
        assert b["cpu_vendor"] == "any" and "avx512" not in json.dumps(b), b
        # One of before, when each vendor's had a model of its own.
        with open(kept, "w", encoding="utf-8") as f:
            json.dump({**b, "cpu_vendor": "AuthenticAMD"}, f)
        r = compare("--baseline", kept, *level, "--", *asks, status=2)
        assert "the CPU's vendor was AuthenticAMD and is any" in r.err, r
        # Without them the number of CPUs is the machine's, and says so if it is another.
        compare("--save", kept, "--env=PYTHONHASHSEED=0", "--", *asks)
        if baseline(kept)["cpus"] == 9:
            return
        r = compare("--baseline", kept, "--cpus=9", "--env=PYTHONHASHSEED=0", "--", *asks, status=2)
        assert f"was told {baseline(kept)['cpus']} then and 9 now; --cpus=" in r.err, r
        # Who does not ask is not kept from comparing.
        compare("--save", kept, "--", "true")
        assert "cpus" not in baseline(kept)
        compare("--baseline", kept, "--cpus=9", "--", "true")


def template(name, begin, end):
    """The script of a template in contrib, as the runner's YAML gives it to the shell."""
    with open(os.path.join(TOOLS, "../../contrib", name), encoding="utf-8") as f:
        text = f.read()
    assert len(text.splitlines()) <= 22, name
    lines = text.split(begin, 1)[1].split(end, 1)[0].splitlines()
    return ("\n" if end == "\0" else " ").join(line.strip() for line in lines)


def test_templates_for_ci():
    scripts = [template("github/action.yml", "run: |\n", "\0"),
               template("gitlab/anyperf.yml", "- >-\n", "    - cat")]
    with scratch() as d:
        kept = os.path.join(d, "baseline.json")
        options = ["--cpu-features=x86-64-v2", "--cpus=2"]
        compare("--save", kept, *options, "--env=PATH=/usr/local/bin:/usr/bin:/bin", "--",
                FIXED, "x")
        path = os.path.dirname(ANYPERF) + ":" + ENV["PATH"]
        for script in scripts:
            for command, status, said in ((f"{FIXED} x", 0, "+0.000 %"), (FIXED, 2, "")):
                p = subprocess.run(["bash", "-e", "-c", script], cwd=d, capture_output=True,
                                   text=True, check=False,
                                   env={**ENV, "PATH": path, "COMMAND": command, "BASELINE": kept,
                                        "LIMIT": "instructions>+0.1%", "OPTIONS": options[0] + " "
                                        + options[1]})
                assert p.returncode == status, (script, p)
                out = p.stdout
                if "--output=anyperf.markdown" in script and not status:
                    with open(os.path.join(d, "anyperf.markdown"), encoding="utf-8") as f:
                        out += f.read()
                assert said in out, (script, p)
                assert status == 0 or "the command line was another" in p.stderr, p


def test_by_symbol_with_a_baseline():
    old, new = region(1, 100000, 300000), region(1, 100000, 300000, 700)
    with scratch() as d:
        kept = os.path.join(d, "kept")
        compare("--save", kept, "--by=symbol", "--", *old)
        b = baseline(kept)
        assert list(b["symbols"]) == sorted(b["symbols"]), b
        assert sum(b["symbols"].values()) == b["counts"][0]["value"], b
        assert "symbols_left_out" not in b and len(b["symbols"]) <= 500, b
        # As if it had done less in one function.
        b["symbols"]["main"] -= 5
        with open(kept, "w", encoding="utf-8") as f:
            json.dump(b, f)
        r = json.loads(compare("--baseline", kept, "--by=symbol", "--format=json", "--", *old).out)
        assert r["comparisons"][0]["symbols"] == [{"symbol": "main", "change": 5, "exact": True,
                                                   "may_be_off": 0}], r
        # A function that is not among those that were kept may have been there.
        b["symbols_left_out"] = b["symbols"].pop("main") + 5
        with open(kept, "w", encoding="utf-8") as f:
            json.dump(b, f)
        r = json.loads(compare("--baseline", kept, "--by=symbol", "--format=json", "--", *old).out)
        assert r["comparisons"][0]["symbols"] == [], r
        del b["symbols"]
        with open(kept, "w", encoding="utf-8") as f:
            json.dump(b, f)
        r = compare("--baseline", kept, "--by=symbol", "--", *old, status=2)
        assert "it has no counts of functions; --save FILE --by symbol keeps them" in r.err, r
        compare("--baseline", kept, "--by=symbol", "--update", "--", *old)
        assert baseline(kept)["symbols"], kept
        r = compare("--save", kept, "--by=symbol", "-e", "branches", "--", *new, status=125)
        assert "--by symbol is for instructions where a baseline keeps it" in r.err, r


if __name__ == "__main__":
    main(globals())
