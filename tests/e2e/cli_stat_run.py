#!/usr/bin/env python3
"""anyperf stat around a command: its start, its end, signals, repeats, delays, control."""
import os
import re
import signal
import subprocess
import time

from e2e import (ANYPERF, ENV, counts, main, may_measure_cpus, run, scratch, stat, stat_json,
                 table)

TOUCH = os.environ["E2E_TOUCH"]


def test_exit_status_is_the_commands():
    stat("-e", "cs", "true", status=0)
    stat("-e", "cs", "sh", "-c", "exit 3", status=3)
    stat("-e", "cs", "--", "sh", "-c", "kill -KILL $$", status=128 + 9)
    stat("-r", "2", "-e", "cs", "sh", "-c", "exit 4", status=4)


def test_an_untimely_end_is_said():
    kill = ["--", "sh", "-c", "kill -SEGV $$"]
    said = "anyperf stat: 'sh' was ended by signal 11 (Segmentation fault)\n"
    r = stat("-e", "cs", *kill, status=128 + 11)
    assert r.err.startswith(said) and "Performance counter" in r.err, r
    assert stat("-x,", "-e", "cs", *kill, status=139).err.startswith("# " + said)
    report, = stat_json("-e", "cs", *kill, status=139)
    assert report["signal"] == 11 and "timed_out" not in report, report
    assert "signal" not in stat_json("-e", "cs", "true")[0]
    # Of many runs the first that it happened to; and where the counts go to a file.
    r = stat("-r", "3", "-e", "cs", "-o", "/dev/null", *kill, status=139)
    assert r.err == said.replace("ended", "ended in run 1"), r
    # The shell's own commands are not ours to tell of.
    r = stat("-e", "cs", "sh", "-c", "sh -c 'kill -SEGV $$'; exit 3", status=3)
    assert "anyperf stat:" not in r.err, r

    by_us = "anyperf stat: 'sleep' was ended by --timeout, after 100 ms\n"
    r = stat("-e", "cs", "--timeout", "100", "sleep", "30", status=143)
    assert r.err.startswith(by_us), r
    report, = stat_json("-e", "cs", "--timeout", "100", "sleep", "30", status=143)
    assert report["timed_out"] and report["signal"] == 15, report
    # Who asked for the end knows it.
    p = start("-e", "cs", "sleep", "30")
    time.sleep(0.5)
    p.send_signal(signal.SIGTERM)
    _, err = p.communicate(timeout=20)
    assert "was ended" not in err and "Performance counter" in err, err


def on_a_terminal(*args):
    """What anyperf stat writes to one."""
    leader, follower = os.openpty()
    p = subprocess.Popen([ANYPERF, "stat", *args], stdin=follower, stdout=follower,
                         stderr=follower, env=ENV)
    os.close(follower)
    text = b""
    try:
        while piece := os.read(leader, 4096):
            text += piece
    except OSError:  # the other end is closed
        pass
    os.close(leader)
    p.wait(timeout=20)
    return text.decode()


def test_what_is_waited_for():
    if not may_measure_cpus():
        return
    args = ["-e", "cs", "--timeout", "100"]
    said = "counting what runs on all CPUs, for 100 ms"
    text = on_a_terminal(*args)
    assert said in text and text.index(said) < text.index("Performance counter"), text
    assert "counting what runs" not in on_a_terminal("-a", *args)
    assert "counting what runs" not in on_a_terminal(*args, "true")
    assert "counting what runs" not in stat(*args).err


def test_commands_that_cannot_start():
    with scratch() as d:
        def file(name, text, mode):
            path = os.path.join(d, name)
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            os.chmod(path, mode)
            return path
        cases = [
            ("no-such-program-anywhere", 127, "no directory of PATH has it"),
            (os.path.join(d, "absent"), 127, "No such file or directory"),
            (d, 126, "it is a directory"),
            (file("plain", "true\n", 0o644), 126, "it is not executable (chmod +x)"),
            (file("script", "#!/no/such/shell -e\n", 0o755), 127,
             "its first line names '/no/such/shell'"),
            (file("windows", "#!/bin/sh\r\n", 0o755), 127, "'/bin/sh' and a carriage return"),
            ("", 127, "the name is empty"),
        ]
        for command, status, why in cases:
            r = stat("-e", "cs", "--", command, status=status)
            assert why in r.err and "Performance counter" not in r.err, r
        # A program in the working directory that is not in PATH.
        file("here", "#!/bin/sh\n", 0o755)
        r = stat("-e", "cs", "here", status=127, cwd=d)
        assert "there is one here" in r.err, r
        # What execvp(3) makes of a script without a first line.
        stat("-e", "cs", file("bare", "exit 5\n", 0o755), status=5)


def test_a_name_does_not_steer_the_terminal():
    with scratch() as d:
        name = os.path.join(d, "a\033[31mb")
        os.symlink("/bin/true", name)
        r = stat("-e", "cs", "--", name)
        assert "a?[31mb" in r.err and "\033" not in r.err, r


def test_the_command_sees_what_it_would_without_us():
    seen = stat("-e", "cs", "sh", "-c",
                "grep -E 'SigBlk|SigIgn|SigCgt' /proc/self/status; ls /proc/self/fd").out.split()
    plain = subprocess.run(["sh", "-c",
                            "grep -E 'SigBlk|SigIgn|SigCgt' /proc/self/status; ls /proc/self/fd"],
                           capture_output=True, text=True, stdin=subprocess.DEVNULL, env=ENV,
                           check=True).stdout.split()
    assert seen == plain, (seen, plain)


def start(*args):
    return subprocess.Popen([ANYPERF, "stat", *args], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE,
                            text=True, env=ENV)


READY = "import sys,signal,time\n" \
        "for s in sys.argv[1:]: signal.signal(int(s), lambda n, f: sys.exit(40 + n))\n" \
        "print('ready', flush=True)\n" \
        "while True: time.sleep(5)\n"


def test_signals_are_forwarded():
    for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2,
                signal.SIGQUIT):
        p = start("-e", "cs", "--", "python3", "-c", READY, str(int(sig)))
        assert p.stdout.readline() == "ready\n"
        p.send_signal(sig)
        _, err = p.communicate(timeout=20)
        assert p.returncode == 40 + sig, (sig, p.returncode, err)
        assert "seconds time elapsed" in err


def test_a_shared_end_ends_us_the_same_way():
    p = start("-e", "cs", "--", "sh", "-c", "echo ready; exec sleep 20")
    assert p.stdout.readline() == "ready\n"
    p.send_signal(signal.SIGINT)
    _, err = p.communicate(timeout=20)
    assert p.returncode == -signal.SIGINT and "seconds time elapsed" in err, (p.returncode, err)


def test_sigchld_ignored_by_the_caller():
    r = subprocess.run(["sh", "-c", "trap '' CHLD; exec \"$@\"", "sh", ANYPERF, "stat", "-e", "cs",
                        "sh",
                        "-c", "exit 6"], capture_output=True, text=True, env=ENV, timeout=20,
                       check=False)
    assert r.returncode == 6, r
    r = subprocess.run(["python3", "-c", "import os,signal,sys\n"
                        "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
                        "os.execv(sys.argv[1], sys.argv[1:])", ANYPERF, "stat", "-e", "cs", "sh",
                        "-c", "exit 6"],
                       capture_output=True, text=True, env=ENV, timeout=20, check=False)
    assert r.returncode == 6, r


def test_repeat():
    r = stat("-r", "3", "-e", "task-clock,page-faults", TOUCH, "10")
    assert "(3 runs)" in r.err and re.search(r"\+- [\d.]+ seconds time elapsed", r.err), r
    report, = stat_json("--repeat=4", "-e", "page-faults", TOUCH, "100")
    c = counts(report)["page-faults"]
    assert report["runs"] == 4 and len(report["elapsed_per_run_s"]) == 4, report
    assert len(c["per_run"]) == 4, report
    assert abs(sum(c["per_run"]) / 4 - c["value"]) < 0.01, c
    r = stat("-r", "3", "--table", "-e", "cs", "true")
    rows = re.findall(r"^ +([\d.]+) \(([+-][\d.]+)\) #$", r.err, re.M)
    assert len(rows) == 3 and "# Final result:" in r.err, r
    # -r 0 goes on until a signal comes; every run is reported by itself.
    p = start("-r", "0", "-e", "cs", "sh", "-c", "echo run; sleep 0.1")
    for _ in range(3):
        assert p.stdout.readline() == "run\n"
    p.send_signal(signal.SIGTERM)
    _, err = p.communicate(timeout=20)
    assert err.count("Performance counter stats") >= 3, err


def test_null():
    r = stat("-n", "true")
    assert "seconds time elapsed" in r.err and not table(r.err), r
    assert stat_json("--null", "true")[0]["counts"] == []


def test_pre_post_sync():
    with scratch() as d:
        log = os.path.join(d, "log")
        stat("-r", "2", "-S", "--pre", f"echo pre >>{log}", "--post", f"echo post >>{log}", "-e",
             "cs", "--",
             "sh", "-c", f"echo run >>{log}")
        with open(log, encoding="utf-8") as f:
            assert f.read().split() == ["pre", "run", "post"] * 2
        r = stat("--sync", "--pre", "exit 3", "-e", "cs", "touch", os.path.join(d, "ran"),
                 status=125)
        assert "--pre: 'exit 3' failed with status 3" in r.err, r
        assert not os.path.exists(os.path.join(d, "ran")), r
        r = stat("--post", "kill -9 $$", "-e", "cs", "true", status=125)
        assert "status 137" in r.err, r


def test_inheritance():
    def faults(*options):
        report, = stat_json("-e", "page-faults", *options, TOUCH, "1000", "child")
        return counts(report)["page-faults"]["value"]
    assert faults() >= 2000 and 1000 <= faults("-i") < 2000
    assert 1000 <= faults("--no-inherit") < 2000


def test_delay():
    # Long enough for a machine that has much else to do.
    begun = time.monotonic()
    report, = stat_json("-D", "300", "--timeout", "1500", "-e", "task-clock,duration_time", TOUCH,
                        "spin", status=128 + 15)
    waited = time.monotonic() - begun
    c = counts(report)["task-clock"]
    assert c["status"] == "ok", report
    # The times, and what is related to them, are of what comes behind the delay.
    assert report["elapsed_s"] <= waited - 0.3, (waited, report)
    assert c["enabled_ns"] <= report["elapsed_s"] * 1e9, report
    duration = counts(report)["duration_time"]["value"]
    assert c["enabled_ns"] <= duration <= (waited - 0.3) * 1e9, report
    first, *_ = stat_json("-D", "300", "-I", "500", "--interval-count", "1", "-e", "task-clock",
                          TOUCH, "spin", status=128 + 15)
    assert first["at_s"] >= 0.5 and first["elapsed_s"] <= first["at_s"] - 0.3, first
    report, = stat_json("--delay", "60000", "-e", "task-clock,duration_time", "true")
    assert counts(report)["task-clock"]["status"] == "not-counted", report
    assert report["elapsed_s"] == counts(report)["duration_time"]["value"] == 0, report


def test_timeout():
    t = time.monotonic()
    r = stat("--timeout", "200", "-e", "cs", "sleep", "30", status=128 + 15)
    assert "seconds time elapsed" in r.err and time.monotonic() - t < 20
    # A program that is stopped gets its SIGTERM too.
    stat("--timeout=300", "-e", "cs", "sh", "-c", "kill -STOP $$; sleep 30", status=128 + 15)


def test_control_fd():
    ctl_r, ctl_w = os.pipe()
    ack_r, ack_w = os.pipe()
    p = subprocess.Popen([ANYPERF, "stat", "-j", "-D", "-1", "--control", f"fd:{ctl_r},{ack_w}",
                          "-e", "task-clock",
                          "sleep", "30"], pass_fds=(ctl_r, ack_w), stderr=subprocess.PIPE,
                         text=True, env=ENV)
    for word in ("ping", "enable", "disable", "evlist", "stop"):
        os.write(ctl_w, word.encode() + b"\n")
        assert os.read(ack_r, 100) == b"ack\n", word
    _, err = p.communicate(timeout=20)
    assert p.returncode == 128 + 15 and err.splitlines()[0] in ("task-clock", "task-clock:u"), err
    assert '"schema": "anyperf-stat-1"' in err
    for fd in (ctl_r, ctl_w, ack_r, ack_w):
        os.close(fd)


def until_it_ran(p):
    """Waits until the command below p has got some CPU time from now on."""
    with open(f"/proc/{p.pid}/task/{p.pid}/children", encoding="utf-8") as f:
        child = f.read().split()[0]

    def cpu_ns():
        with open(f"/proc/{child}/schedstat", encoding="utf-8") as f:
            return int(f.read().split()[0])
    begun = cpu_ns()
    while cpu_ns() < begun + 20_000_000:
        time.sleep(0.01)


def test_control_counts_only_while_enabled():
    with scratch() as d:
        ctl, ack = os.path.join(d, "ctl"), os.path.join(d, "ack")
        os.mkfifo(ctl)
        os.mkfifo(ack)
        # Held open all the time: what nobody holds open loses what was written, and the last
        # acknowledgement is followed by the end.
        answers = os.fdopen(os.open(ack, os.O_RDWR), "rb", buffering=0)
        p = start("-j", "-D", "-1", "--control", f"fifo:{ctl},{ack}", "-e", "task-clock", TOUCH,
                  "spin")

        def say(word):
            with open(ctl, "w", encoding="utf-8") as f:
                f.write(word + "\n")
            return answers.readline().decode()
        assert say("ping") == "ack\n"
        time.sleep(0.3)
        assert say("enable") == "ack\n"
        until_it_ran(p)
        assert say("disable") == "ack\n"
        time.sleep(0.3)
        assert say("stop") == "ack\n"
        _, err = p.communicate(timeout=20)
        import json
        answers.close()
        report = json.loads(err)
        c = counts(report)["task-clock"]
        assert c["status"] == "ok", report
        assert 0 < c["enabled_ns"] < report["elapsed_s"] * 1e9 - 400e6, report


def test_control_slips():
    for text, why in (("3", "neither fd: nor fifo:"), ("fd:x", "descriptor's number"),
                      ("fd:900", "not open"),
                      ("fd:2,x", "descriptor's number"),
                      ("fifo:/no/such", "cannot open '/no/such'")):
        r = stat("--control", text, "-e", "cs", "true", status=125)
        assert why in r.err, r
    r = subprocess.run(f"echo nonsense | '{ANYPERF}' stat --control fd:0 -e cs sleep 0.2",
                       shell=True,
                       capture_output=True, text=True, env=ENV, check=True)
    assert "'nonsense' is none of enable" in r.stderr, r


def test_what_does_not_go_together():
    for args in (["-x,", "-j", "true"], ["-n", "-e", "cs", "true"], ["-p", "1", "-a"],
                 ["--per-thread", "true"],
                 ["--per-core", "true"], ["-A", "true"], ["-r", "3", "-a"],
                 ["-r", "3", "-I", "100", "true"],
                 ["--table", "true"], ["--summary", "true"], ["-D", "-1", "true"],
                 ["--append", "true"],
                 ["--all-user", "--all-kernel", "true"], ["-a", "-A", "--per-core"],
                 ["-o", "/dev/null", "--log-fd",
                 "2", "true"], ["-p", "1", "-G", "x"]):
        r = stat(*args, status=125)
        assert r.err.startswith("anyperf stat: ") and "Performance" not in r.err, r


if __name__ == "__main__":
    main(globals())
