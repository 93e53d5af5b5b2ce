#!/usr/bin/env python3
"""anyperf script: its text is perf script's, of our recordings and of perf's; fields, filters, JSON
and the dump of every record; files that end before their end."""
import json
import os
import re
import shutil
import subprocess
import time

from e2e import ANYPERF, ENV, Skip, main, run, scratch
from made_recording import sampled

SPIN = os.environ["E2E_SPIN"]
USER = "cpu-clock:u"


def record(path, *args):
    r = run("record", *args[:-1], "-o", path, "--", *args[-1])
    if r.status == 125 and re.search("perf_event_paranoid|seccomp|CAP_PERFMON|security module",
                                     r.err):
        raise Skip("the kernel lets nobody record here")
    assert r.status == 0, r
    return int(re.search(r"(\d+) samples?", r.err)[1])


def script(path, *args, status=0):
    r = run("script", "-i", path, *args)
    assert r.status == status, r
    return r.out


def perf(*args, stdin=None):
    """What perf prints; skips where it is not installed."""
    if not shutil.which("perf") or subprocess.run(["perf", "--version"], capture_output=True,
                                                  check=False).returncode:
        raise Skip("perf is not installed")
    p = subprocess.run(["perf", *args], capture_output=True, text=True, errors="replace", env=ENV,
                       stdin=stdin, check=False, timeout=60)
    assert p.returncode == 0, (args, p.stderr)
    return p.stdout


def same_as_perf(path, *args):
    ours, theirs = script(path, *args), perf("script", "-i", path, *args)
    assert ours, path
    if ours != theirs:
        # Where a file has a symbol without a size in front perf finds one or the other.
        for mine, other in zip(ours.splitlines(), theirs.splitlines()):
            assert mine == other or "_init+" in other, (path, args, mine, other)
        assert len(ours.splitlines()) == len(theirs.splitlines()), (path, args)


def test_the_text_is_perfs():
    with scratch() as d:
        for name, args in (("plain", []), ("chain", ["-g"]), ("fixed", ["-c", "1000000", "-g"]),
                           ("two", ["-e", "page-faults:u", "-g"])):
            record(f"{d}/{name}", "-e", USER, *args, [SPIN, "60", "20"])
            same_as_perf(f"{d}/{name}")


def code_of(path):
    """Where sections with code begin in a file, how long they are, and what they are called."""
    out = subprocess.run(["readelf", "-SW", path], capture_output=True, text=True, env=ENV,
                         check=True).stdout
    return [(int(offset, 16), int(size, 16), name) for name, offset, size in re.findall(
        r"\] (\S+) +PROGBITS +[0-9a-f]+ ([0-9a-f]+) ([0-9a-f]+) \S+ +AX", out)]


def libraries(path):
    """What it loads, as files."""
    out = subprocess.run(["ldd", path], capture_output=True, text=True, env=ENV, check=True).stdout
    return re.findall(r"=> (/\S+)", out)


def test_all_of_a_file_is_named_as_perf_names_it():
    # Debug files of libraries, where there are any, know nothing of the slots of their calls, and
    # many functions of libc have several names.
    shell = os.path.realpath("/bin/sh")
    with scratch() as d:
        for path in {shell, ANYPERF, *libraries(shell), *libraries(shutil.which("perf") or shell)}:
            base = 0x7f0000000000
            at = [base + offset + i for offset, size, name in code_of(path)
                  for i in range(0, size, 4 if ".plt" in name else 64)]
            sampled(f"{d}/a", path, base, os.path.getsize(path) + 4095 & ~4095, 0, at)
            args = ["-i", f"{d}/a", "-F", "ip,sym,symoff,dso"]
            for mine, theirs in zip(script(*args[1:]).splitlines(),
                                    perf("script", *args).splitlines(), strict=True):
                assert mine == theirs or "_init+" in theirs, (path, mine, theirs)  # see above


def chains(text):
    """The first line of each sample with the frames below it."""
    samples = [s.splitlines() for s in text.split("\n\n") if s.strip()]
    return [(s[0], [line.strip() for line in s[1:]]) for s in samples]


def is_part(part, whole):
    rest = iter(whole)
    return all(frame in rest for frame in part)


def test_copied_stacks_are_followed():
    """perf's unwinder may leave out what it finds no tables for, or lose its way behind that; what
    it finds in mapped files is what is found here, in this order."""
    with scratch() as d:
        record(f"{d}/ours", "-e", USER, "-g=dwarf", [SPIN, "60", "20"])
        perf("record", "-q", "-e", USER, "--call-graph", "dwarf", "-o", f"{d}/perfs", SPIN, "60")
        for path in (f"{d}/ours", f"{d}/perfs"):
            mine = chains(script(path))
            deep = 0
            for (head, frames), (other, theirs) in zip(
                    mine, chains(perf("script", "--no-inline", "-i", path)), strict=True):
                known = [f for f in theirs if not f.endswith("([unknown])")]
                assert head == other and is_part(known, frames), (head, frames, theirs)
                names = [f.split()[1].split("+")[0] for f in frames]
                if names[0] != "burn":
                    continue
                assert names[1:3] == ["calls_burn", "main"] and names[-1] == "_start", frames
                deep += 1
            assert deep > len(mine) / 2, mine
        children = run("report", "-i", f"{d}/ours", "--children")
        assert re.search(r"^ +(9|100)\d?\.\d+% .* main *$", children.out, re.M), children
        sample = [json.loads(s) for s in script(f"{d}/ours", "--json").splitlines()]
        assert any("main" in [f.get("symbol") for f in s["callchain"]] for s in sample), sample[0]


def test_a_copied_stack_at_a_return():
    """The tables say of rbp then that it is where it has just been popped from, below the copy."""
    if not shutil.which("nm"):
        raise Skip("nm is not installed")
    symbols = subprocess.run(["nm", "-S", SPIN], capture_output=True, text=True, check=True).stdout
    start, size = (int(n, 16) for n in re.search(r"(\w+) (\w+) t burn$", symbols, re.M).groups())
    with open(SPIN, "rb") as f:
        f.seek(start + size - 1)
        if f.read(1) != b"\xc3":
            raise Skip("burn() does not end in a return of x86-64")
    with scratch() as d:
        r = run("record", "-e", f"uprobe:{SPIN}:burn+{size - 1:#x}", "-g=dwarf", "-o", f"{d}/a",
                "--", SPIN, "30")
        if r.status == 125:
            raise Skip("may not make uprobes here")
        found = chains(script(f"{d}/a"))
        for _, frames in found:
            names = [f.split()[1].split("+")[0] for f in frames]
            assert names[:3] == ["burn", "calls_burn", "main"] and names[-1] == "_start", frames
        assert found


def test_of_perfs_own_recordings():
    perf("--version")
    with scratch() as d:
        for name, args in (("plain", []), ("chain", ["-g"]), ("pids", ["-T", "--sample-cpu",
                                                                       "-d"])):
            p = subprocess.run(["perf", "record", "-q", "-e", USER, *args, "-o", f"{d}/{name}",
                                SPIN, "60"], capture_output=True, text=True, check=False, env=ENV)
            if p.returncode:
                raise Skip("perf may not record here")
            if name != "pids":
                same_as_perf(f"{d}/{name}")
            same_as_perf(f"{d}/{name}", "-F", "comm,pid,tid,time,event,ip,sym,symoff,dso")
        with open(f"{d}/stream", "wb") as out:
            subprocess.run(["perf", "record", "-q", "-e", USER, "-o", "-", SPIN, "40"], stdout=out,
                           stderr=subprocess.DEVNULL, check=True, env=ENV)
        with open(f"{d}/stream", "rb") as f:
            r = run("script", "-i", "-", stdin=f)
        with open(f"{d}/stream", "rb") as f:
            assert r.status == 0 and r.out == perf("script", "-i", "-", stdin=f), r
        p = subprocess.run(["perf", "record", "-q", "-z", "-g", "-e", USER, "-o", f"{d}/z", SPIN,
                            "60"],
                           capture_output=True, check=False, env=ENV)
        if not p.returncode and run("script", "-i", f"{d}/z").status == 0:
            same_as_perf(f"{d}/z")


def test_fields():
    with scratch() as d:
        path = f"{d}/a"
        n = record(path, "-e", USER, "-g", "-d", "--user-regs=all", [SPIN, "50"])
        out = script(path, "-F", "comm,tid,sym,ip")
        assert out.count("burn\n") >= n / 2 and "calls_burn" in out and "(/" not in out, out
        assert re.search(r"^ *spin +\d+ *\n?", script(path, "-F", "comm,pid"), re.M)
        assert "cpu-clock:u:" not in script(path, "-F", "-event")
        assert "(/" not in script(path, "-F", "-dso")
        assert re.search(r"\bSP:0x[0-9a-f]+ ", script(path, "-F", "+uregs")) or \
            os.uname().machine not in ("x86_64", "aarch64")
        same_as_perf(path, "-F", "ip,sym,uregs")
        for other in "addr", "data_src", "brstack", "period", "trace", "symoff":
            script(path, "-F", f"comm,{other}")
        r = run("script", "-i", path, "-F", "nonsense")
        assert r.status == 2 and "'nonsense' is none of comm, pid" in r.err, r
        assert run("script", "-i", path, "-F", "comm,+ip").status == 2
        assert re.search(r"\d\.\d{9}:", script(path, "--ns"))


def test_fields_that_no_sample_has():
    with scratch() as d:
        path = f"{d}/a"
        record(path, "-i", "-e", USER, [SPIN, "20"])
        for field, what in (("addr", "address; `anyperf record -d` records it"),
                            ("data_src", "source of data; `anyperf record -d` records it"),
                            ("weight", "weight"), ("phys_addr", "physical address"),
                            ("cpu", "CPU; `anyperf record` records it without -i and --exact"),
                            ("uregs", "registers; `anyperf record --user-regs=all` records them")):
            for fields in f"comm,{field}", f"+{field}":
                r = run("script", "-i", path, "-F", fields)
                assert r.status == 2 and not r.out, r
                assert f"-F {field}: the samples of '{USER}' have no {what}" in r.err, r
        script(path, "-F", "-cpu")
        script(path, "-F", "comm,addr", "--json")
        sampled(f"{d}/b", SPIN, 0x400000, 0x10000, 0, [0x401000])
        r = run("script", "-i", f"{d}/b", "-F", "cpu")
        assert r.status == 2 and "-F cpu: the samples of" in r.err, r


def test_names_steer_no_terminal():
    with scratch() as d:
        evil = "a\033[31m\nb\x7f\u009bc"
        shutil.copy("/bin/true", f"{d}/{evil}")
        sampled(f"{d}/a", f"{d}/{evil}", 0x400000, 0x10000, 0, [0x401000], evil)
        for args in [], ["-D"]:
            out = script(f"{d}/a", *args)
            assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", out), ascii(out)
            assert out.count("a?[31m?b???c") == 2, ascii(out)
        assert len(script(f"{d}/a").splitlines()) == 1
        assert json.loads(script(f"{d}/a", "--json"))["comm"] == evil


def test_filters():
    with scratch() as d:
        path = f"{d}/a"
        record(path, "-e", USER, ["sh", "-c", f"{SPIN} 60; {SPIN} 60"])
        times = [float(t) for t in re.findall(r"(\d+\.\d+):", script(path, "-F", "time"))]
        assert times == sorted(times) and len(times) > 10
        half = times[len(times) // 2]
        early, late = script(path, "--time", f",{half:.6f}"), script(path, "--time", f"{half:.6f},")
        assert 0 < len(early.splitlines()) < len(times) and 0 < len(late.splitlines()) < len(times)
        pids = set(script(path, "-F", "pid", "-c", "spin").split())
        assert len(pids) == 2, pids
        one = script(path, "-F", "pid", "--pid", min(pids))
        assert set(one.split()) == {min(pids)} == set(script(path, "-F", "tid", "--tid",
                                                             min(pids)).split())
        assert not script(path, "-c", "nobody,none")
        assert not script(path, "-C", "4000-5000")
        cpus = script(path, "-F", "cpu", "-C", "0-4095").split()
        assert len(cpus) == len(times) and cpus[0].startswith("[")
        for wrong in (["--time", "x"], ["--tid", "a"], ["-C", "1-"]):
            assert run("script", "-i", path, *wrong).status == 2, wrong


def test_json():
    with scratch() as d:
        path = f"{d}/a"
        n = record(path, "-e", USER, "-g", [SPIN, "50"])
        samples = [json.loads(line) for line in script(path, "--json").splitlines()]
        assert len(samples) == n
        s = samples[-1]
        assert list(s)[0] == "schema" and s["schema"] == "anyperf-script-1"
        assert s["event"] == USER and s["comm"] == "spin" and s["mode"] == "user", s
        assert s["time_ns"] > 0 and s["pid"] == s["tid"] and s["ip"].startswith("0x")
        chains = [[f.get("symbol") for f in s["callchain"]] for s in samples]
        assert any(c[:3] == ["burn", "calls_burn", "main"] for c in chains), chains
        with open(os.path.join(os.path.dirname(__file__), "../../doc/json.md"),
                  encoding="utf-8") as f:
            page = f.read().split("## `anyperf-script-1`")[1].split("\n## ")[0]
        for s in samples:
            for member in [*s, *s["callchain"][0]]:
                assert f"`{member}`" in page, member


def test_every_record():
    with scratch() as d:
        path = f"{d}/a"
        n = record(path, "-e", USER, [SPIN, "50"])
        out = script(path, "-D")
        assert len(re.findall(r"^0x[0-9a-f]+ SAMPLE misc=0x2 ", out, re.M)) == n, out
        assert re.search(r"MMAP2 .*filename=.*spin", out) and "COMM " in out
        assert re.search(r"^0x[0-9a-f]+ FINISHED_ROUND", out, re.M)
        if shutil.which("perf"):
            theirs = perf("script", "-D", "-i", path)
            offsets = re.findall(r" (0x[0-9a-f]+) \[0x[0-9a-f]+\]: PERF_RECORD_SAMPLE", theirs)
            assert sorted(offsets) == sorted(re.findall(r"^(0x[0-9a-f]+) SAMPLE", out, re.M))


def test_tracepoints():
    with scratch() as d:
        path = f"{d}/a"
        r = run("record", "-e", "sched:sched_process_exec", "-o", path, "--", "sh", "-c",
                "/bin/true; exit 0")
        if r.status:
            raise Skip("no tracepoints here")
        out = script(path)
        assert re.search(r"sched:sched_process_exec: filename=/bin/true pid=\d+ old_pid=\d+\n",
                         out), out
        with open(f"{d}/stream", "wb") as f:
            subprocess.run([ANYPERF, "record", "-q", "-e", "sched:sched_process_exec", "-o", "-",
                            "--", "sh", "-c", "/bin/true; exit 0"], stdout=f, check=True, env=ENV)
        assert "filename=/bin/true" in script(f"{d}/stream")


def test_stubs_of_shared_libraries():
    """A breakpoint on the stub through which a function of libc is called."""
    if not shutil.which("gcc") or not shutil.which("objdump"):
        raise Skip("needs gcc and objdump")
    with scratch() as d:
        with open(f"{d}/a.c", "w", encoding="utf-8") as f:
            f.write("#include <unistd.h>\nint main(void) { return getppid() == -1; }\n")
        subprocess.run(["gcc", "-no-pie", "-fcf-protection=none", "-Wl,-z,lazy", "-o", f"{d}/prog",
                        f"{d}/a.c"], check=True)
        text = subprocess.run(["objdump", "-d", "-j", ".plt", f"{d}/prog"], capture_output=True,
                              text=True, check=True).stdout
        stub = re.search(r"^0*([0-9a-f]+) <getppid@plt>", text, re.M)
        r = run("record", "-e", f"mem:0x{stub[1]}:x:u", "-c", "1", "-o", f"{d}/a", "--", f"{d}/prog")
        if r.status:
            raise Skip("no breakpoints here")
        out = script(f"{d}/a", "-F", "ip,sym,symoff")
        if not out:
            raise Skip("breakpoints are never met here")
        assert f"{stub[1]} getppid@plt+0x0\n" in out, out


def test_a_linked_debug_file():
    """As gdb finds it: beside the file, in .debug, below /usr/lib/debug; if it is the one."""
    if not shutil.which("gcc") or not shutil.which("objcopy"):
        raise Skip("needs gcc and objcopy")
    with scratch() as d:
        prog, debug = f"{d}/bin/prog", f"{d}/bin/prog.debug"
        os.mkdir(f"{d}/bin")
        os.mkdir(f"{d}/bin/.debug")
        with open(f"{d}/a.c", "w", encoding="utf-8") as f:
            f.write("static void hidden(void) { }\nint main(void) { hidden(); }\n")
        subprocess.run(["gcc", "-g", "-no-pie", "-Wl,--build-id=none", "-o", prog, f"{d}/a.c"],
                       check=True)
        at = int(re.search(r"(\w+) t hidden$", subprocess.run(
            ["nm", prog], capture_output=True, text=True, check=True).stdout, re.M)[1], 16)
        subprocess.run(["objcopy", "--only-keep-debug", prog, debug], check=True)
        subprocess.run(["objcopy", "--strip-all", f"--add-gnu-debuglink={debug}", prog],
                       check=True)
        sampled(f"{d}/a", prog, 0x400000, 0x10000, 0, [at])

        def name():
            line = run("report", "-i", f"{d}/a", "-s", "line").out
            return script(f"{d}/a", "-F", "ip,sym").split()[1], "a.c:1" in line
        assert name() == ("hidden", True)
        shutil.move(debug, f"{d}/bin/.debug/prog.debug")
        assert name()[0] == "hidden"
        p = subprocess.run(["unshare", "-m", "sh", "-c", f"mount -t tmpfs none /usr/lib/debug && "
                            f"mkdir -p /usr/lib/debug{d}/bin && "
                            f"mv {d}/bin/.debug/prog.debug /usr/lib/debug{d}/bin && "
                            f"{ANYPERF} script -i {d}/a -F ip,sym; "
                            f"mv /usr/lib/debug{d}/bin/prog.debug {d}/bin/.debug"],
                           capture_output=True, text=True, env=ENV, check=False)
        assert "hidden" in p.stdout or "unshare" in p.stderr or "mount" in p.stderr, p
        with open(f"{d}/bin/.debug/prog.debug", "ab") as f:
            f.write(b"\n")
        assert name() == ("[unknown]", False)


def test_through_a_pipe():
    with subprocess.Popen([ANYPERF, "record", "-q", "-e", USER, "-o", "-", "--", SPIN, "50"],
                          stdout=subprocess.PIPE, env=ENV) as p:
        r = run("script", stdin=p.stdout)
        p.stdout.close()
        if p.wait() == 125:
            raise Skip("the kernel lets nobody record here")
    assert r.status == 0 and r.out.count("burn") > 5, r


def test_what_ends_before_its_end():
    with scratch() as d:
        path = f"{d}/a"
        # Of a shorter one two thirds of the file may be all of its records.
        record(path, "-e", USER, "-g", [SPIN, "400"])
        whole = script(path, "-F", "time").split()
        with open(path, "rb") as f:
            data = f.read()
        with open(f"{d}/cut", "wb") as f:
            f.write(data[:len(data) * 2 // 3])
        r = run("script", "-i", f"{d}/cut", "-F", "time")
        assert r.status == 0 and "ends in the middle of a record at offset" in r.err, r
        # Of what other buffers had at the same time some may be behind the break.
        times = r.out.split()
        assert 0 < len(times) < len(whole) and times == [t for t in whole if t in set(times)]
        for name, text in (("empty", b""), ("other", b"hello, world, this is no recording")):
            with open(f"{d}/{name}", "wb") as f:
                f.write(text)
            r = run("script", "-i", f"{d}/{name}")
            assert r.status == 2 and "is not a perf.data file" in r.err, r
        r = run("script", "-i", f"{d}/none")
        assert r.status == 2 and "No such file" in r.err, r
        r = run("script", cwd=d)
        assert r.status == 2 and "`anyperf record` makes it" in r.err, r
        assert run("script", "operand").status == 2
        assert "--json" in run("script", "-g", "python").err


def test_a_full_disk_is_an_error():
    with scratch() as d:
        record(f"{d}/a", "-e", USER, [SPIN, "20"])
        for command in ("script", "report"):
            with open("/dev/full", "w", encoding="utf-8") as full:
                r = subprocess.run([ANYPERF, command, "-i", f"{d}/a"], stdout=full, text=True,
                                   stderr=subprocess.PIPE, env=ENV, check=False)
            assert r.returncode == 2 and r.stderr.count("cannot write") == 1, r


def test_who_reads_the_text_may_go():
    with scratch() as d:
        path = f"{d}/a"
        record(path, "-e", "page-faults:u", "-c", "1", "-g", [SPIN, "1", "3000"])
        with subprocess.Popen([ANYPERF, "script", "-i", path], stdout=subprocess.PIPE,
                              env=ENV) as p:
            p.stdout.read(10)
            p.stdout.close()
            assert p.wait(timeout=20) in (2, -13)


if __name__ == "__main__":
    main(globals())
