#!/usr/bin/env python3
"""anyperf report: the same shares and samples as perf report's, of our recordings and of perf's;
children, keys, filters, JSON."""
import itertools
import json
import os
import re
import shutil
import subprocess

from e2e import ANYPERF, ENV, HAS_RUNTIME, Skip, main, run, scratch
from made_recording import sampled

SPIN = os.environ["E2E_SPIN"]
NAMESAKES = os.environ["E2E_NAMESAKES"]
USER = "cpu-clock:u"


def record(path, *args):
    r = run("record", *args[:-1], "-o", path, "--", *args[-1])
    if r.status == 125 and re.search("perf_event_paranoid|seccomp|CAP_PERFMON|security module",
                                     r.err):
        raise Skip("the kernel lets nobody record here")
    assert r.status == 0, r
    return int((re.search(r"(\d+) samples?", r.err) or [0, 0])[1])


def report(path, *args):
    r = run("report", "-i", path, *args)
    assert r.status == 0, r
    return r.out


ROW = r"^ +([\d.]+%) +(?:([\d.]+%) +)?(\d+)  (\S.*?) +(\S+) +(\[[.k]\]) (.+?) *$"


def rows(text):
    """Each row without its blanks, in the order of text: equal shares may change places."""
    return sorted(tuple(g for g in m if g) for m in re.findall(ROW, text, re.M))


def perf_rows(path, *args):
    if not shutil.which("perf") or subprocess.run(["perf", "--version"], capture_output=True,
                                                  check=False).returncode:
        raise Skip("perf is not installed")
    p = subprocess.run(["perf", "report", "--stdio", "-n", "-g", "none", *args, "-i", path],
                       capture_output=True, text=True, env=ENV, check=True, timeout=60)
    return rows(p.stdout)


def test_the_same_as_perf():
    with scratch() as d:
        for name, args in (("plain", []), ("chain", ["-g"]), ("faults", ["-e", "page-faults:u"])):
            path = f"{d}/{name}"
            n = record(path, "-e", USER, *args, ["sh", "-c",
                                                 f"{SPIN} 60 50; ls -R /etc >/dev/null 2>&1; true"])
            mine = rows(report(path))
            assert mine and mine == perf_rows(path, "--no-children"), (name, mine)
            assert sum(int(r[1]) for r in mine) == n, (mine, n)


def test_children():
    with scratch() as d:
        path = f"{d}/a"
        n = record(path, "-e", USER, "-g", [SPIN, "80"])
        out = report(path, "--children")
        found = {r[-1]: r for r in rows(out)}
        # Its own are few: it looks at the clock now and then.
        assert float(found["main"][0][:-1]) > 80 and int(found["main"][2]) < n / 5, out
        assert int(found["burn"][2]) > n / 2
        theirs = {r[-1]: r[:3] for r in perf_rows(path, "--children")}
        for symbol in ("burn", "calls_burn", "main"):
            assert found[symbol][:3] == theirs[symbol], (symbol, found[symbol], theirs[symbol])


def test_lines_of_callers():
    """They are those of the calls, not of what comes behind them."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "spin.c"),
              encoding="utf-8") as f:
        call = next(i for i, l in enumerate(f, 1) if "\tburn(20000);" in l)
    with scratch() as d:
        record(f"{d}/a", "-e", USER, "-g", [SPIN, "80"])
        r = json.loads(run("report", "--json", "--children", "-s", "sym,line", "-i",
                           f"{d}/a").out.splitlines()[0])
        found = {x["line"]: x["children_percent"] for x in r["rows"]
                 if x.get("symbol") == "calls_burn" and "line" in x}
        if found:  # a program that was built without debug information has none
            assert found[call] > 50, (call, found)


def test_keys():
    with scratch() as d:
        path = f"{d}/a"
        n = record(path, "-e", USER, ["sh", "-c", f"{SPIN} 60; true"])
        assert re.search(rf"^ +100\.00% +{n}$", report(path, "-s", ""), re.M), report(path, "-s", "")
        by_comm = report(path, "--sort", "comm")
        assert "spin" in by_comm and "burn" not in by_comm and "Symbol" not in by_comm
        by_symbol = report(path, "-s", "sym", "--stdio")
        assert re.search(r"\d\d\.\d\d% +\d+  \[\.\] burn", by_symbol), by_symbol
        assert "Shared Object" in report(path, "-s", "dso") and "nobody" not in report(path)
        only = report(path, "-c", "spin")
        assert "100.00%" not in report(path) or "spin" in only
        assert "# no samples" in report(path, "-c", "nobody")
        r = run("report", "-i", path, "-s", "x")
        assert r.status == 2 and "'x' is none of pid, tid, cpu, comm, dso" in r.err, r


def test_tasks_and_cpus():
    with scratch() as d:
        path = f"{d}/a"
        n = record(path, "-e", USER, ["sh", "-c", f"{SPIN} 80 & {SPIN} 160; wait"])
        r = json.loads(run("report", "--json", "-s", "tid,comm", "-i", path).out.splitlines()[0])
        spins = [x for x in r["rows"] if x["comm"] == "spin"]
        assert len({x["tid"] for x in spins}) >= 2, r
        one, two = sorted(x["percent"] for x in spins)[-2:]
        assert one < two, r
        # The smaller one is left out of a table of what has more.
        r = json.loads(run("report", "--json", "-s", "pid", "--percent-limit", (one + two) / 2,
                           "-i", path).out.splitlines()[0])
        assert [x["percent"] for x in r["rows"]] == [two] and r["rows"][0]["pid"] > 1, r
        text = report(path, "-s", "cpu,tid,comm")
        assert re.search(r"^# Overhead +Samples +Tid  CPU  Command", text, re.M), text
        mine = {int(cpu): share for share, cpu in
                re.findall(r"^ +(\d+\.\d\d%) +\d+ +(\d+)$", report(path, "-s", "cpu"), re.M)}
        assert sum(float(share[:-1]) for share in mine.values()) > 99.9 and n, mine
        if shutil.which("perf"):
            p = subprocess.run(["perf", "report", "--stdio", "-s", "cpu", "-i", path], env=ENV,
                               capture_output=True, text=True, check=True, timeout=60)
            assert mine == {int(cpu): share for share, cpu in
                            re.findall(r"^ +(\d+\.\d\d%) +(\d+)", p.stdout, re.M)}, p.stdout
        all_rows, some = (json.loads(run("report", "--json", "--group", "-s", "tid,sym", *limit,
                                         "-i", path).out.splitlines()[0])["rows"]
                          for limit in ([], ["--percent-limit=1"]))
        assert 0 < len(some) < len(all_rows) and some == all_rows[:len(some)], (some, all_rows)
        r = run("report", "-i", path, "--percent-limit=x")
        assert r.status == 2 and "'x' is no share in percent" in r.err, r
        record(f"{d}/b", "-e", USER, "-i", [SPIN, "5"])
        r = run("report", "-i", f"{d}/b", "-s", "cpu")
        assert r.status == 2 and "--sort=cpu: the samples of" in r.err, r


def test_namesakes():
    """Functions of one name are rows of their own; what programs are called begins no row."""
    with scratch() as d:
        path = f"{d}/a"
        record(path, "-e", USER, [NAMESAKES])
        out = report(path)
        shares = [float(m) for m in re.findall(r"^ +([\d.]+)% .*\[\.\] work$", out, re.M)]
        assert len(shares) == 2 and min(shares) > 15, out
        assert "a?[31m?b" in out and "\033" not in out, out
        for sort in ("comm", "dso", "sym,srcline"):
            assert "\033" not in report(path, "-s", sort)


def test_variables_of_one_name():
    if not HAS_RUNTIME:
        return
    with scratch() as d:
        path = f"{d}/a"
        record(path, "--exact", "-d", "-e", "L1-dcache-stores", [NAMESAKES, "quick"])
        out = report(path, "-s", "data")
        assert re.findall(r"^ +[\d.]+% +(\d+)  \S+ +things$", out, re.M) == ["64", "32"], out


def test_functions_of_cxx_by_their_names():
    if not HAS_RUNTIME:
        return
    with scratch() as d:
        counts = []
        for name in ("other(long)", "other", "oth?r", "_Z5otherl"):
            r = run("record", "--exact", f"--toggle={name}", "-o", f"{d}/a", "--", NAMESAKES, "quick")
            counts.append((re.findall(r"(\d+) instructions were", r.err) or [r.err])[0])
        if "work" in report(f"{d}/a"):
            raise Skip("there is no libstdc++, which reads names of C++")
        assert counts[0] == counts[1] == counts[2] and int(counts[0]) > 1000, counts
        assert counts[3] == "0", counts


def test_lines_of_runs():
    """With chains lines are those of runs of instructions, which is said."""
    if not HAS_RUNTIME:
        return
    said = "of each the line where it begins"
    with scratch() as d:
        for options, keys, told in ((["-g"], "line", True), (["-g"], "sym", False),
                                    ([], "line", False)):
            record(f"{d}/a", "--exact", *options, [NAMESAKES, "quick"])
            r = run("report", "-i", f"{d}/a", "-s", keys)
            assert r.status == 0 and (said in r.err) == told, (options, keys, r)


def test_a_fifo():
    with scratch() as d:
        os.mkfifo(f"{d}/fifo")
        with open(f"{d}/a", "wb") as out, subprocess.Popen(["cat", f"{d}/fifo"], stdout=out) as cat:
            r = run("record", "-e", USER, "-o", f"{d}/fifo", "--", SPIN, "60")
            cat.wait(timeout=20)
        if r.status == 125:
            raise Skip("the kernel lets nobody record here")
        assert r.status == 0 and "in the stream" in r.err, r
        assert "burn" in report(f"{d}/a"), r
        # What the command prints goes elsewhere, whatever the pipe is called.
        with open(f"{d}/b", "wb") as out:
            p = subprocess.run([ANYPERF, "record", "-e", USER, "-o", "/dev/stdout", "--", "sh", "-c",
                                f"echo printed; {SPIN} 60; :"], env=ENV, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, timeout=60, check=False)
            out.write(p.stdout)
        assert b"printed" in p.stderr and "burn" in report(f"{d}/b"), p.stderr
        r = run("record", "--switch-output", "-o", f"{d}/fifo", "--", "true")
        assert r.status == 125 and "--switch-output makes files, and" in r.err, r


def test_folders_of_perf():
    with scratch() as d:
        record(f"{d}/data", "-e", USER, [SPIN, "60"])
        assert report(d) == report(f"{d}/data")
        shutil.copy(f"{d}/data", f"{d}/data.0")
        r = run("report", "-i", d)
        assert r.status == 2 and "a file for each thread of perf record --threads" in r.err, r
        os.mkdir(f"{d}/empty")
        r = run("report", "-i", f"{d}/empty")
        assert r.status == 2 and "is a folder, and no recording" in r.err, r


def test_files_of_one_name():
    """Each is a row of its own, and called so that they can be told apart."""
    with scratch() as d:
        for folder in "one", "two":
            os.mkdir(f"{d}/{folder}")
            shutil.copy(SPIN, f"{d}/{folder}/twin")
        shutil.copy(SPIN, f"{d}/other")
        record(f"{d}/a", "-e", USER, ["sh", "-c",
                                      f"{d}/one/twin 60; {d}/two/twin 60; {d}/other 60"])
        for keys in "dso", "dso,sym":
            found = set(re.findall(r"^ +[\d.]+% +\d+  (\S+)", report(f"{d}/a", "-s", keys), re.M))
            assert {f"{d}/one/twin", f"{d}/two/twin", "other"} <= found, found


def test_files_that_have_changed():
    with scratch() as d:
        program = f"{d}/spin"
        shutil.copy(SPIN, program)
        record(f"{d}/a", "-e", USER, [program, "60"])

        def said():
            # perf may keep a copy in a home.
            r = run("report", "-i", f"{d}/a", env={"HOME": d})
            assert r.status == 0, r
            return r.err

        assert not said()
        # Another build, whose id has another byte.
        code = other_build(program)
        os.remove(program)
        assert f"'{program}' is not there any more: its functions are shown as addresses" in said()
        with open(program, "wb") as f:
            f.write(code)
        assert f"'{program}' was built anew since it was recorded: its functions" in said()


def other_build(program):
    """Its bytes with another build id, of the same length."""
    notes = subprocess.run(["readelf", "-n", program], capture_output=True, text=True,
                           check=True).stdout
    build = bytes.fromhex(re.search("Build ID: ([0-9a-f]+)", notes)[1])
    with open(program, "rb") as f:
        code = f.read()
    assert code.count(build) == 1
    return code.replace(build, bytes([build[0] ^ 1]) + build[1:])


def test_files_that_are_replaced_while_they_are_recorded():
    """What has been executed is told, not what lies there at the end."""
    pmus = [["-e", USER]] + [["-e", "instructions:u"], ["--exact"]] * HAS_RUNTIME
    for words in pmus:
        with scratch() as d:
            program, other = f"{d}/spin", f"{d}/other"
            shutil.copy(SPIN, program)
            with open(other, "wb") as f:
                f.write(other_build(program))
            os.chmod(other, 0o755)
            record(f"{d}/a", *words, ["sh", "-c", f"{program} 60; mv {other} {program}; :"])
            r = run("report", "-i", f"{d}/a", "--no-children", env={"HOME": d})
            assert f"'{program}' was built anew" in r.err and "burn" not in r.out, (words, r)
            # Both have run: each has what is its own.
            shutil.copy(SPIN, program)
            with open(other, "wb") as f:
                f.write(other_build(program))
            os.chmod(other, 0o755)
            record(f"{d}/a", *words, ["sh", "-c", f"{program} 60; mv {other} {program}; "
                                                  f"{program} 60; :"])
            r = run("report", "-i", f"{d}/a", "--no-children", env={"HOME": d})
            assert f"'{program}' was built anew" in r.err, (words, r)
            named = re.findall(r"^ +([\d.]+%) .* \[\.\] (?!0x)\w", r.out, re.M)
            half = sum(float(x[:-1]) for x in named)
            assert 25 < half < 75, (words, r)


def test_build_ids_of_perfs_mappings():
    if not shutil.which("perf"):
        raise Skip("compares with perf, which is not installed")
    with scratch() as d:
        program = f"{d}/spin"
        shutil.copy(SPIN, program)
        p = subprocess.run(["perf", "record", "-q", "--buildid-mmap", "-e", USER, "-o", f"{d}/a",
                            program, "60"], env={**ENV, "HOME": d}, capture_output=True,
                           check=False)
        if p.returncode:
            raise Skip("this perf, or the kernel, does not")
        with open(f"{d}/other", "wb") as f:
            f.write(other_build(program))
        os.rename(f"{d}/other", program)
        r = run("report", "-i", f"{d}/a", env={"HOME": d})
        assert f"'{program}' was built anew" in r.err, r


def test_what_a_group_has_read():
    """Of {a,b}:S only the leader samples, and says how often the other has happened."""
    with scratch() as d:
        path = f"{d}/a"
        n = record(path, "--no-inherit", "-e", "{cpu-clock:u,page-faults:u}:S", [SPIN, "60", "700"])
        mine = rows(report(path))
        of = {r["event"]: r for r in map(json.loads, report(path, "--json").splitlines())}
        leader, member = of["cpu-clock:uS"], of["page-faults:uS"]
        assert leader["samples"] == n and 0 < member["samples"] <= n, of
        assert 0 < member["period"] < 1000, of
        both = json.loads(report(path, "--json", "--group"))
        assert [e["period"] for e in both["events"]] == [leader["period"], member["period"]], both
        assert mine == perf_rows(path, "--no-children", "--no-group"), mine


def test_cpus_of_a_recording_without_them():
    with scratch() as d:
        record(f"{d}/a", "-i", "-e", USER, [SPIN, "20"])
        with open(f"{d}/stream", "wb") as out:
            subprocess.run([ANYPERF, "record", "-q", "-i", "-e", USER, "-o", "-", "--", SPIN, "20"],
                           stdout=out, check=True, env=ENV)
        for command, name in itertools.product(("report", "script"), ("a", "stream")):
            r = run(command, "-i", f"{d}/{name}", "-C", "0")
            assert r.status == 2 and not r.out, r
            assert f"--cpu: the samples of '{USER}' have no CPU; `anyperf record`" in r.err, r


def test_json():
    with scratch() as d:
        path = f"{d}/a"
        n = record(path, "-e", USER, "-g", [SPIN, "60"])
        r = json.loads(report(path, "--json", "--children"))
        assert list(r)[0] == "schema" and r["schema"] == "anyperf-report-1" and r["samples"] == n
        assert sum(row["samples"] for row in r["rows"]) == n and r["lost"] == 0
        top = [row["symbol"] for row in r["rows"]
               if row["children_percent"] > 80 and "symbol" in row]
        assert {"main", "calls_burn", "burn"} <= set(top), top
        with open(os.path.join(os.path.dirname(__file__), "../../doc/json.md"),
                  encoding="utf-8") as f:
            page = f.read().split("## `anyperf-report-1`")[1].split("\n## ")[0]
        for member in [*r, *(m for row in r["rows"] for m in row)]:
            assert f"`{member}`" in page, member


def test_losses_are_told():
    with scratch() as d:
        path = f"{d}/a"
        record(path, "-e", "page-faults:u", "-c", "1", "-g=dwarf,65528", "-m", "1", [SPIN, "1",
                                                                                     "3000"])
        r = run("report", "-i", path)
        assert r.status == 0 and re.search(r"report: \d+ samples were lost", r.err), r


def test_samples_of_unknown_events_are_told():
    """Of a group that was read, whose events the file does not name."""
    with scratch() as d:
        at = [0x401000, 0x401010, 0x401020]
        reads = [[(7, 10)], [(8, 10), (9, 5)], [(9, 6)]]
        said = "2 samples are left out: the recording knows none of the events"
        sampled(f"{d}/a", SPIN, 0x400000, 0x10000, 0, at, event_id=7, reads=reads)
        for command in "report", "script":
            r = run(command, "-i", f"{d}/a")
            assert r.status == 0 and said in r.err, r
        assert len(run("script", "-i", f"{d}/a").out.splitlines()) == 1
        reads[1][0] = (7, 20)
        sampled(f"{d}/a", SPIN, 0x400000, 0x10000, 0, at[:2], event_id=7, reads=reads[:2])
        assert not run("report", "-i", f"{d}/a").err


def test_a_recording_without_names():
    """As of a recorder that was killed: events have the names of their attrs."""
    with scratch() as d:
        sampled(f"{d}/a", SPIN, 0x400000, 0x10000, 0, [0x401000, 0x401010])
        assert "2 samples of cpu-clock:u" in run("report", "-i", f"{d}/a").out
        assert json.loads(run("report", "-j", "-i", f"{d}/a").out)["event"] == "cpu-clock:u"
        assert run("script", "-i", f"{d}/a").out.count(" cpu-clock:u: ") == 2


def test_callers_without_symbols():
    """They have the addresses that the chain has."""
    with scratch() as d:
        sampled(f"{d}/a", "/nothing/there", 0x400000, 0x1000, 0, [0x400010],
                chain=[0x400010, 0x400023, 1])
        out = report(f"{d}/a", "--children", "-s", "sym")
        rows_of = re.findall(r"0x([0-9a-f]{16})$", out, re.M)
        assert sorted(int(x, 16) for x in rows_of) == [1, 0x10, 0x23], out


def test_wrong_calls():
    with scratch() as d:
        r = run("report", "-i", f"{d}/none")
        assert r.status == 2 and "No such file" in r.err, r
        assert run("report", "x").status == 2
        for args in (["-C", "5-1"], ["--pid", "9-1"]):
            record(f"{d}/a", "-e", USER, [SPIN, "1"])
            r = run("report", "-i", f"{d}/a", *args)
            assert r.status == 2 and f"'{args[1]}' is not a list of numbers" in r.err, r


if __name__ == "__main__":
    main(globals())
