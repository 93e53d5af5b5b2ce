#!/usr/bin/env python3
"""anyperf record: what is recorded is read by perf, and said to be what it is; ends, losses and
limits are told. perf's own reading is asked where perf is installed."""
import os
import pty
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from e2e import ANYPERF, ENV, Skip, main, run, scratch

# Burns CPU time in one function, and touches fresh memory.
SPIN = os.environ["E2E_SPIN"]
USER = "cpu-clock:u"
MAGIC = b"PERFILE2"


def record(*args, status=0, **more):
    r = run("record", *args, **more)
    if r.status == 125 and re.search("perf_event_paranoid|seccomp|CAP_PERFMON|security module",
                                     r.err):
        raise Skip("the kernel lets nobody record here")
    assert r.status == status, r
    return r


def samples(r):
    """How many it says that it has recorded."""
    return int(re.search(r"anyperf record: (\d+) samples?, [\d.]+ MB", r.err)[1])


def perf(*args, stdin=None):
    """What perf prints, or None where it is not installed."""
    if not shutil.which("perf") or subprocess.run(["perf", "--version"], capture_output=True,
                                                  check=False).returncode:
        return None
    p = subprocess.run(["perf", *args], capture_output=True, text=True, errors="replace", env=ENV,
                       stdin=stdin, check=False, timeout=60)
    assert p.returncode == 0, (args, p.stderr)
    return p.stdout


def perf_samples(path, *options):
    """How many samples perf finds; None without perf."""
    text = perf("script", "-F", "time", *options, "-i", path)
    return None if text is None else len(text.split())


def check_samples(path, r, least=1):
    n = samples(r)
    assert n >= least, r
    found = perf_samples(path)
    assert found is None or found == n, (found, r)
    return n


def test_a_program_is_recorded():
    with scratch() as d:
        path = f"{d}/a.data"
        r = record("-e", USER, "-o", path, "--", SPIN, "200")
        check_samples(path, r, 20)
        assert "cpu-clock" not in r.err and "NO SAMPLES" not in r.err, r
        assert os.stat(path).st_mode & 0o777 == 0o600
        text = perf("report", "--stdio", "-i", path)
        assert text is None or re.search(r"\d\d\.\d\d% +spin +spin +\[\.\] burn", text), text
        header = perf("report", "--header-only", "-i", path)
        if header:
            for what in ("hostname", "os release", "arch", "nrcpus online",
                         f"cmdline : {os.path.realpath(ANYPERF)} record -e {USER} -o",
                         "event : name = cpu-clock:u", "time of first sample"):
                assert what in header, (what, header)
            ids = perf("buildid-list", "-i", path)
            assert re.search(r"^[0-9a-f]{16,40} .*/" + os.path.basename(SPIN) + "$", ids, re.M), ids


def test_a_file_says_of_the_machine_what_perf_says():
    said = r"^# (?:hostname|os release|arch|nrcpus|cpudesc|cpuid|total memory|sibling|CPU \d" \
           r"|node\d+ cpu list|CPU cache|  ?L\d|pmu mappings).*$"
    with scratch() as d:
        found = []
        for name in ("ours", "perfs"):
            path = f"{d}/{name}"
            if name == "ours":
                record("-e", USER, "-o", path, "--", SPIN, "20")
            elif perf("record", "-q", "-e", USER, "-o", path, SPIN, "20") is None:
                return
            header = perf("report", "--header-only", "-I", "-i", path)
            found.append([sorted(line.split()) for line in re.findall(said, header, re.M)])
        assert found[0] == found[1] and len(found[0]) > 8, found


def test_the_choice_of_the_event_is_announced():
    with scratch() as d:
        r = record("-o", f"{d}/a", "--", SPIN, "50")
        has_pmu = run("stat", "-e", "cycles", "--pmu", "kernel", "true").err.count("<not") == 0
        assert has_pmu or re.search("record: samples instructions:u, .*: .*PMU", r.err), r
        r = record("-o", f"{d}/a", "-C", "0", "--", SPIN, "50")
        assert has_pmu or re.search("record: samples cpu-clock, .*: .*PMU", r.err), r
        r = record("-q", "-o", f"{d}/a", "--", SPIN, "50")
        assert not r.err, r


def test_perf_data_is_the_default_and_the_old_one_is_kept():
    with scratch() as d:
        for _ in range(2):
            p = run_to_file("record", "-e", USER, "--", SPIN, "20", cwd=d)
            if p.returncode == 125 and "paranoid" in p.stderr:
                raise Skip("the kernel lets nobody record here")
            assert p.returncode == 0, p.stderr
        assert set(os.listdir(d)) == {"perf.data", "perf.data.old"}


def run_to_file(*args, **more):
    """As run(), with stdout a file."""
    with tempfile.TemporaryFile("w+") as out:
        p = subprocess.run([ANYPERF, *args], stdout=out, stderr=subprocess.PIPE, text=True,
                           timeout=60, env=ENV, stdin=subprocess.DEVNULL, check=False, **more)
    return p


def test_periods_and_frequencies():
    with scratch() as d:
        path = f"{d}/a"
        r = record("-e", "page-faults:u", "-c", "1", "-d", "-o", path, "--", SPIN, "1", "300")
        assert samples(r) >= 300, r
        text = perf("script", "-F", "event,addr", "-i", path)
        assert text is None or len(set(text.splitlines())) >= 300
        few = samples(record("-e", USER, "-F", "50", "-o", path, "--", SPIN, "300"))
        many = samples(record("-e", USER, "-F", "2000", "-o", path, "--", SPIN, "300"))
        assert 3 < few < many, (few, many)
        r = record("-e", USER, "-F", "max", "-v", "-o", path, "--", SPIN, "20")
        assert "as kernel.perf_event_max_sample_rate allows" in r.err, r
        for wrong in ("0", "x", "-1"):
            assert run("record", "-F", wrong, "true").status == 125
        r = run("record", "-F", "5", "-c", "5", "true")
        assert r.status == 125 and "exclude" in r.err, r


def test_call_chains():
    with scratch() as d:
        for mode in (["-g"], ["-g=fp"], ["--call-graph", "fp"], ["-g=dwarf"], ["-g=dwarf,1024"]):
            path = f"{d}/a"
            r = record("-e", USER, *mode, "-o", path, "--", SPIN, "100")
            assert samples(r), r
            text = perf("script", "-F", "ip,sym", "-i", path)
            if text is not None and "dwarf,1024" not in mode[0]:
                chains = re.findall(r"burn\n.*calls_burn\n.*main", text)
                assert len(chains) > samples(r) / 2, (mode, text)
        assert "none of fp, dwarf" in run("record", "-g=x", "true").err
        assert "size" in run("record", "-g=dwarf,x", "true").err
        # The CPU's own record of branches needs a PMU.
        r = run("record", "-e", USER, "-g=lbr", "-o", f"{d}/b", "true")
        assert r.status in (0, 125) and (r.status == 0 or re.search(r"branch|BRANCH", r.err)), r


def test_branches_need_a_pmu():
    with scratch() as d:
        for option in (["-b"], ["-j", "any_call,u"]):
            r = run("record", "-e", USER, *option, "-o", f"{d}/a", "true")
            assert r.status == 125 and "anyperf record: " in r.err and len(r.err) > 60, r
        r = run("record", "-j", "nonsense", "true")
        assert r.status == 125 and "'nonsense' is none of any, any_call" in r.err, r
        r = run("record", "-b", "-g=lbr", "true")
        assert r.status == 125 and "not with -b" in r.err, r


def test_registers():
    with scratch() as d:
        names = {"x86_64": "ip,sp", "aarch64": "pc,sp"}.get(os.uname().machine)
        if not names:
            raise Skip("the registers of this CPU have no names here")
        path = f"{d}/a"
        r = record("-e", USER, f"--user-regs={names}", "-o", path, "--", SPIN, "50")
        text = perf("script", "-F", "uregs", "-i", path)
        assert text is None or text.count("SP:0x") == samples(r), text
        record("-e", USER, "--user-regs=all", "-o", path, "--", SPIN, "20")
        r = run("record", "--user-regs=eip9", "-e", USER, "true")
        assert r.status == 125 and "'eip9' is no register" in r.err, r


def test_a_stream():
    with scratch() as d:
        for compress in ([], ["-z"], ["-z=5"], ["-z3"], ["--compression-level=3"]):
            path = f"{d}/stream"
            with open(path, "wb") as out:
                p = subprocess.run([ANYPERF, "record", "-e", USER, *compress, "-o", "-", "--",
                                    SPIN, "50"],
                                   stdout=out, stderr=subprocess.PIPE, text=True, env=ENV,
                                   timeout=60, check=False)
            if "libzstd" in p.stderr:
                continue
            assert p.returncode == 0, p.stderr
            with open(path, "rb") as f:
                assert f.read(16) == MAGIC + (16).to_bytes(8, sys.byteorder)
            n = int(re.search(r"(\d+) samples?", p.stderr)[1])
            with open(path, "rb") as f:
                text = perf("script", "-F", "time", "-i", "-", stdin=f)
            assert text is None or len(text.split()) == n


def test_a_pipe_as_stdout_gets_the_recording():
    """As with perf, so that `record | script` works; the program's own output goes to stderr."""
    p = subprocess.run([ANYPERF, "record", "-e", USER, "--", "sh", "-c", f"echo hello; {SPIN} 20"],
                       capture_output=True, env=ENV, timeout=60, check=False)
    if p.returncode == 0:
        assert p.stdout.startswith(MAGIC) and b"hello" in p.stderr, (p.stdout[:20], p.stderr)
        r = subprocess.run([ANYPERF, "script", "-F", "time"], input=p.stdout, capture_output=True,
                           env=ENV, timeout=60, check=False)
        n = int(re.search(rb"(\d+) samples?", p.stderr)[1])
        assert not r.stderr and len(r.stdout.split()) == n, (r, p.stderr)


def test_who_reads_the_stream_may_go():
    with subprocess.Popen([ANYPERF, "record", "-e", USER, "-F", "4000", "-o", "-", "--", SPIN,
                           "3000"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENV) as p:
        time.sleep(0.3)
        p.stdout.close()
        err = p.stderr.read()
        assert p.wait() == 125 and ("has gone" in err or "perf_event" in err), err


def test_compressed():
    with scratch() as d:
        path = f"{d}/a"
        r = run("record", "-e", USER, "-g", "-z", "-o", path, "--", SPIN, "100")
        if "libzstd" in r.err:
            assert r.status == 125, r
            return
        r = record("-e", USER, "-g", "-z", "-o", path, "--", SPIN, "100")
        check_samples(path, r)
        assert "22" in run("record", "-z=23", "true").err


def test_several_events_and_groups():
    with scratch() as d:
        path = f"{d}/a"
        r = record("-e", "page-faults:u", "-e", f"{{{USER},task-clock:u}}", "-c", "500000", "-o",
                   path,
                   "--", SPIN, "100")
        check_samples(path, r)
        names = perf("evlist", "-i", path)
        assert names is None or names.split()[:3] == ["page-faults:u", USER, "task-clock:u"], names


def test_children_and_threads():
    with scratch() as d:
        path = f"{d}/a"
        shell = ["sh", "-c", f"{SPIN} 100 & {SPIN} 100; wait"]
        r = record("-e", USER, "-o", path, "--", *shell)
        text = perf("script", "-F", "pid", "-i", path)
        assert samples(r) and (text is None or len(set(text.split())) >= 2), text
        r = run("record", "-e", USER, "-i", "-o", path, "--", "sh", "-c", f"{SPIN} 100; true")
        assert r.status == 0, r
        text = perf("script", "-F", "comm", "-i", path)
        assert text is None or "spin" not in text, text


class Running:
    """A program that burns CPU time until it is left."""

    def __enter__(self):
        self.p = subprocess.Popen([SPIN, "1000000"])
        time.sleep(0.1)
        return self.p

    def __exit__(self, *_):
        self.p.kill()
        self.p.wait()


def test_what_runs_already():
    with scratch() as d, Running() as p:
        path = f"{d}/a"
        for target in (["-p", p.pid], ["-t", p.pid], ["-i", "-t", p.pid]):
            r = record("-e", USER, *target, "--duration", "0.3", "-o", path)
            check_samples(path, r, 5)
            text = perf("script", "-F", "comm,ip,sym", "-i", path)
            assert text is None or re.search(r"spin +[0-9a-f]+ burn", text), text
        r = record("-e", USER, "-p", p.pid, "-o", path, "--", "sleep", "0.2")
        assert samples(r) > 3, r
        p.kill()
        p.wait()
        r = run("record", "-e", USER, "-p", p.pid, "-o", path)
        assert r.status == 125 and str(p.pid) in r.err, r
        r = run("record", "-e", USER, "-p", "1,x", "-o", path)
        assert r.status == 125 and "not a list of numbers" in r.err, r


def test_it_ends_with_what_it_records():
    with scratch() as d:
        with subprocess.Popen([SPIN, "400"]) as p:
            r = record("-e", USER, "-p", p.pid, "-o", f"{d}/a")
            assert samples(r), r


def said_on_terminal(args):
    """What record says on a terminal that is its stderr and stdout."""
    leader, follower = pty.openpty()
    with subprocess.Popen([ANYPERF, "record", *args], stdin=subprocess.DEVNULL, stdout=follower,
                          stderr=follower, env=ENV) as p:
        os.close(follower)
        out = b""
        try:
            while chunk := os.read(leader, 65536):
                out += chunk
        except OSError: # it has ended
            pass
    os.close(leader)
    return out.decode(), p.returncode


def test_progress():
    with scratch() as d, subprocess.Popen([SPIN, "100000"]) as p:
        args = ["-e", USER, "-o", f"{d}/a"]
        try:
            out, status = said_on_terminal([*args, "-p", str(p.pid), "--duration", "2.5"])
            command = said_on_terminal([*args, "--", SPIN, "1300"])[0]
            quiet = said_on_terminal([*args, "-q", "-p", str(p.pid), "--duration", "1.3"])[0]
            piped = run("record", *args, "-p", p.pid, "--duration", "1.3").err
        finally:
            p.kill()
    if "paranoid" in out or "CAP_PERFMON" in out:
        raise Skip("the kernel lets nobody record here")
    line, summary = out.rsplit("\r\033[K", 1)
    assert status == 0, out
    assert re.search(r"\ranyperf record: \d+ samples?, \d+\.\d MB so far", line), out
    assert re.match(r"anyperf record: \d+ samples?, [\d.]+ MB in ", summary), out
    # Not across what a command prints, and where nobody asked.
    assert "so far" not in command + quiet + piped, (command, quiet, piped)


def test_the_whole_machine():
    with scratch() as d, Running():
        for target in (["-a"], ["-C", "0"]):
            r = run("record", *target, "-e", "cpu-clock", "-o", f"{d}/a", "--", "sleep", "0.3")
            if r.status == 125 and re.search("paranoid|CAP_PERFMON|capabilit", r.err):
                raise Skip("may not record whole CPUs")
            assert r.status == 0, r
            check_samples(f"{d}/a", r)
        text = perf("script", "-F", "comm,cpu", "-i", f"{d}/a")
        assert text is None or set(re.findall(r"\[(\d+)\]", text)) == {"000"}, text


def test_descriptors_are_left_to_list_what_runs():
    """Events had taken all below the soft limit: names were missing, or the file was not made."""
    if run("record", "-a", "-o", "/dev/null", "true").status == 125:
        raise Skip("may not record whole CPUs")
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with scratch() as d:
        for limit in range(5, 16):
            for target in [], ["-a"]:
                r = run("record", *target, "-e", "cpu-clock", "-o", f"{d}/a", "--", "true",
                        preexec_fn=lambda n=limit: resource.setrlimit(resource.RLIMIT_NOFILE,
                                                                      (n, hard)))
                assert r.status == 0, (limit, r)
                names = re.findall(r" COMM .* comm=(\S+)", run("script", "-D", "-i", f"{d}/a").out)
                assert len(set(names)) > 1 or not target, (limit, names)


def test_cgroups():
    r = run("record", "-e", USER, "-G", "no-such-cgroup", "-o", "/dev/null", "true")
    assert r.status == 125 and re.search("cgroup|paranoid", r.err), r


def test_delay_and_control():
    with scratch() as d:
        path = f"{d}/a"
        late = samples(record("-e", USER, "-D", "100000", "-o", path, "--", SPIN, "50"))
        assert late == 0
        assert "NO SAMPLES" in record("-e", USER, "-D", "100000", "-o", path, "--", SPIN, "1").err
        fifo = f"{d}/ctl"
        os.mkfifo(fifo)
        with subprocess.Popen([ANYPERF, "record", "-e", USER, "-D", "-1", "--control",
                               f"fifo:{fifo}", "-o", path, "--", SPIN, "1000000"],
                              stderr=subprocess.PIPE, text=True, env=ENV) as p:
            time.sleep(0.2)
            with open(fifo, "w", encoding="utf-8") as f:
                f.write("ping\nevlist\nenable\n")
            time.sleep(0.3)
            with open(fifo, "w", encoding="utf-8") as f:
                f.write("nonsense\nstop\n")
            err = p.communicate()[1]
        if p.returncode != 125:
            assert f"{USER}\n" in err and "'nonsense' is none of" in err, err
            assert int(re.search(r"(\d+) samples?", err)[1]) > 3, err
        assert "--control" in run("record", "-D", "-1", "true").err


def test_buffers():
    with scratch() as d:
        path = f"{d}/a"
        check_samples(path, record("-e", USER, "-m", "2", "-o", path, "--", SPIN, "50"))
        check_samples(path, record("-e", USER, "-m", "64K", "-o", path, "--", SPIN, "50"))
        assert "number of pages" in run("record", "-m", "x", "true").err


def test_a_buffer_over_the_limit_shrinks():
    if os.getuid() != 0 or not shutil.which("setpriv"):
        raise Skip("needs another user, whom the limit holds")
    with tempfile.TemporaryDirectory(prefix="anyperf-test-", dir="/tmp") as d:
        os.chmod(d, 0o777)
        p = subprocess.run(["setpriv", "--reuid=65534", "--clear-groups", "--inh-caps=-all",
                            ANYPERF, "record", "-e",
                            USER, "-m", "65536", "-o", f"{d}/a", "--", SPIN, "20"], env=ENV,
                           capture_output=True, text=True, check=False)
        if p.returncode and "paranoid" in p.stderr:
            raise Skip("the kernel lets users not record")
        if "Permission denied" in p.stderr:
            raise Skip("another user cannot reach the build directory")
        assert p.returncode == 0 and "pages instead of 65536" in p.stderr, p.stderr


def test_losses_are_loud():
    with scratch() as d:
        path = f"{d}/a"
        r = record("-e", "page-faults:u", "-c", "1", "-g=dwarf,65528", "-m", "1", "-o", path, "--",
                   SPIN, "1", "3000")
        m = re.search(r"(\d+) SAMPLES? (?:ARE|IS) LOST", r.err)
        assert m and int(m[1]) > 0 and "try -m" in r.err, r
        text = perf("report", "--stdio", "--stats", "-i", path)
        assert text is None or re.search(r"LOST(_SAMPLES)? events", text), text


def test_ctrl_c_ends_cleanly():
    with scratch() as d:
        path = f"{d}/a"
        with subprocess.Popen([ANYPERF, "record", "-e", USER, "-o", path, "--", SPIN, "1000000"],
                              stderr=subprocess.PIPE, text=True, env=ENV,
                              start_new_session=True) as p:
            time.sleep(0.5)
            os.killpg(p.pid, signal.SIGINT)
            err = p.communicate()[1]
        if p.returncode == 125:
            raise Skip("the kernel lets nobody record here")
        assert p.returncode == -signal.SIGINT, (p.returncode, err)
        n = int(re.search(r"(\d+) samples?", err)[1])
        assert n > 3 and perf_samples(path) in (None, n), err


def times(command, path, stream):
    """The times of samples that a reader finds, and its exit status."""
    with open(path, "rb") as f:
        p = subprocess.run([*command, "script", "-F", "time", "-i", "-" if stream else path],
                           stdin=f, capture_output=True, text=True, errors="replace", env=ENV,
                           check=False, timeout=60)
    return re.findall(r"^ *(\d+\.\d+): *$", p.stdout, re.M), p.returncode, p.stderr


def test_killed_it_leaves_what_was_written():
    """At any moment: a file or stream, compressed or not, is read up to the break, by perf too."""
    moments = int(os.environ.get("E2E_MOMENTS", "2"))
    readers = [[ANYPERF]] + [["perf"]] * (perf("--version") is not None)
    most = 0
    with scratch() as d:
        path = f"{d}/a"
        for options in ([], ["-z"], ["-o", "-"], ["-z", "-o", "-"]):
            stream = "-" in options
            for _ in range(moments):
                with open(path, "wb") as f:
                    with subprocess.Popen(
                            [ANYPERF, "record", "-e", USER, "-g", "-m", "4", "-F", "20000",
                             *options, *([] if stream else ["-o", path]), "--", "sh", "-c",
                             f"{SPIN} 300 100; {SPIN} 1000"],
                            stdout=f if stream else None, stderr=subprocess.DEVNULL, env=ENV,
                            start_new_session=True) as p:
                        time.sleep(random.uniform(0.05, 1))
                        p.kill()
                    try:
                        os.killpg(p.pid, signal.SIGKILL)
                    except ProcessLookupError:
                        pass
                if not os.path.getsize(path):
                    continue # before it had written anything
                found = [times(reader, path, stream) for reader in readers]
                assert all(f[:2] == (found[0][0], 0) for f in found), (options, found)
                most = max(most, len(found[0][0]))
    if not most:
        raise Skip("the kernel lets nobody record here")
    assert most > 100, most


def test_a_full_disk():
    with scratch() as d:
        path = f"{d}/a"
        for options, room in ([], 60000), (["-z"], 12000):
            def limit():
                signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
                resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
            p = subprocess.run([ANYPERF, "record", "-e", "page-faults:u", "-c", "1", "-g", *options,
                                "-o", path, "--", SPIN, "1", "3000"],
                               capture_output=True, text=True, env=ENV, preexec_fn=limit,
                               check=False)
            if "paranoid" in p.stderr:
                raise Skip("the kernel lets nobody record here")
            if "libzstd" in p.stderr:
                continue
            assert p.returncode == 125 and "can be read, recording ends here" in p.stderr, p.stderr
            assert os.path.getsize(path) <= room
            # Those that were taken are not those that are in the file.
            assert re.search(r"MB are in", p.stderr) and "samples" not in p.stderr, p.stderr
            found = perf_samples(path)
            assert found is None or found > 50, found
            mine = run("script", "-i", path, "-F", "time")
            assert mine.status == 0 and found in (None, len(mine.out.split())), (mine, found)


def test_the_newest_are_kept():
    with scratch() as d:
        path = f"{d}/a"
        r = record("-e", "page-faults:u", "-c", "1", "--overwrite", "-m", "1", "-o", path, "--",
                   SPIN, "1", "3000")
        n = check_samples(path, r)
        assert 10 < n < 1000, r
        text = perf("script", "-F", "ip,sym", "-i", path)
        assert text is None or "touch" in text, text
        assert "signal" in run("record", "--overwrite", "--switch-output=1M", "true").err


def test_files_one_after_the_other():
    with scratch() as d:
        path = f"{d}/a"
        r = record("-e", "page-faults:u", "-c", "1", "-g", "--switch-output=100K", "-m", "8", "-o",
                   path,
                   "--", SPIN, "1", "6000")
        files = sorted(os.listdir(d))
        assert len(files) >= 2, (files, r)
        assert all(re.fullmatch(r"a\.\d{16}(\.\d+)?", f) for f in files), files
        counts = [perf_samples(f"{d}/{f}") for f in files]
        assert None in counts or sum(counts) == samples(r), (counts, r)
    with scratch() as d:
        path = f"{d}/a"
        with subprocess.Popen([ANYPERF, "record", "-e", USER, "--switch-output", "-o", path, "--",
                               SPIN, "1000000"],
                              stderr=subprocess.PIPE, text=True, env=ENV) as p:
            for _ in range(2):
                time.sleep(0.3)
                p.send_signal(signal.SIGUSR2)
            time.sleep(0.3)
            p.terminate()
            err = p.communicate()[1]
        assert p.returncode == 125 or len(os.listdir(d)) == 3, (os.listdir(d), err)
        assert run("record", "--switch-output=x", "true").status == 125
        assert run("record", "--switch-output=2s", "-o", "-", "true").status == 125


def test_tracepoints():
    with scratch() as d:
        path = f"{d}/a"
        event = "syscalls:sys_enter_getppid"
        r = run("record", "-e", event, "-o", path, "--", SPIN, "1")
        if r.status == 125:
            raise Skip("no tracepoints here")
        r = run("record", "-e", "sched:sched_process_exec", "--filter", 'filename ~ "*true"', "-o",
                path,
                "--", "sh", "-c", "/bin/true; /bin/echo; exit 0")
        assert r.status == 0 and samples(r) == 1, r
        text = perf("script", "-F", "event,trace", "-i", path)
        assert text is None or "filename=/bin/true" in text, text
        r = run("record", "--filter", "x", "-e", event, "true")
        assert r.status == 125 and "-e before it" in r.err, r
        r = run("record", "-e", USER, "--filter", "x", "true")
        assert r.status == 125 and "is no tracepoint" in r.err, r


def test_wrong_calls():
    r = run("record")
    assert r.status == 125 and "nothing to record" in r.err, r
    r = run("record", "-e", USER, "-o", "/nonexistent/dir/a", "--", "true")
    assert r.status == 125 and "/nonexistent/dir/a" in r.err, r
    with scratch() as d:
        r = run("record", "-e", USER, "-o", f"{d}/a", "--", "/nonexistent/program")
        assert r.status == 127 and "/nonexistent/program" in r.err, r
        assert record("-e", USER, "-o", f"{d}/a", "--", "sh", "-c", "exit 7", status=7)
        r = run("record", "-e", "no-such-event", "-o", f"{d}/a", "true")
        assert r.status == 125 and "no-such-event" in r.err, r
    r = run("record", "--intr-regs", "true")
    assert r.status == 125 and "--user-regs" in r.err, r
    assert run("record", "--duration", "x", "true").status == 125
    assert run("record", "-p", "1", "-a", "true").status == 125


if __name__ == "__main__":
    main(globals())
