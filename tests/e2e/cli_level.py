#!/usr/bin/env python3
"""The CPU of --cpu-features=x86-64-v2 and -v3: to the last bit what stands here, whatever machine
it runs on, and xsave writes no more than that CPU's would."""
import os
import subprocess

from e2e import Skip, main, run, stat_json

LEVEL = os.environ["E2E_LEVEL"]
SIGNATURE = "50654"
HWCAP = "7888111"


def every(leaf, values):
    """The line of a leaf that does not depend on the subleaf."""
    return [f"{leaf}.{sub} {values}" for sub in range(5)]


def shown(v3):
    """What level.c prints."""
    one = "3cd83201" if v3 else "982201"
    lines = every("0", "d 756e6547 6c65746e 49656e69")
    lines += every("1", f"{SIGNATURE} 10800 {one} {HWCAP}") + every("2", "ff01 0 0 0")
    lines += ["4.0 121 1c0003f 3f 0", "4.1 122 1c0003f 3f 0", "4.2 143 3c0003f 3ff 0",
              "4.3 163 3c0003f 3fff 0"]
    lines += ["7.0 0 128 0 0"] * v3 + every("a", "7300802 0 0 0")
    lines += ["b.0 0 1 100 0", "b.1 0 1 201 0", "b.2 0 0 2 0", "b.3 0 0 3 0", "b.4 0 0 4 0"]
    lines += ["d.0 7 340 340 0", "d.2 100 240 0 0"] * v3
    lines += every("80000000", "80000008 0 0 0")
    lines += every("80000001", f"0 0 {'21' if v3 else '1'} 20100800")
    name = f"anyperf x86-64-v{3 if v3 else 2} CPU".encode().ljust(48, b"\0")
    for part in range(3):
        words = [int.from_bytes(name[16 * part + 4 * i:][:4], "little") for i in range(4)]
        if any(words):
            lines += every(f"8000000{2 + part}", " ".join(f"{w:x}" for w in words))
    lines += every("80000006", "0 0 4008040 0") + every("80000008", "3030 0 0 0")
    lines += ["xcr0 7"] * v3 + ["auxv 51 1000", f"auxv 16 {HWCAP}", "auxv 26 0"]
    return lines + [f"sysconf {n}" for n in (32768, 8, 1 << 20, 16 << 20, 4096)]


def deterministic(level, *command, options=()):
    r = run("run", "--deterministic", f"--cpu-features={level}", *options, *command)
    if "lacks some of the features" in r.err:
        raise Skip("this CPU has not that level")
    assert r.status == 0, r
    return r.out


def test_everything_that_can_be_asked():
    for level in ("x86-64-v2", "x86-64-v3"):
        lines = deterministic(level, LEVEL).splitlines()
        assert lines == shown(level == "x86-64-v3"), (lines, shown(level == "x86-64-v3"))
    # It is another CPU than the machine's, which is shown without a level.
    native = subprocess.run([LEVEL], capture_output=True, text=True, check=True).stdout
    host = run("run", "--deterministic", "--cpu-features=host", LEVEL).out.splitlines()
    assert native.splitlines()[0].split()[2:] == host[0].split()[2:], (native, host)
    assert native.splitlines() != shown(True), native


def test_files_say_the_same():
    for level, has, lacks in (("x86-64-v2", "sse4_2", "avx2"), ("x86-64-v3", "avx2", "avx512f")):
        text = deterministic(level, "cat", "/proc/cpuinfo", options=["--cpus=3"])
        cpus = [dict(line.split(":", 1) for line in cpu.splitlines())
                for cpu in text.strip().split("\n\n")]
        cpus = [{k.strip(): v.strip() for k, v in cpu.items()} for cpu in cpus]
        assert [cpu["processor"] for cpu in cpus] == ["0", "1", "2"], text
        for cpu in cpus:
            assert cpu["vendor_id"] == "GenuineIntel" and cpu["siblings"] == "3", cpu
            assert cpu["model name"] == f"anyperf {level} CPU" and cpu["model"] == "85", cpu
            assert has in cpu["flags"].split() and lacks not in cpu["flags"].split(), cpu
        # Without --cpus only their number is the machine's, which is named.
        text = deterministic(level, "cat", "/proc/cpuinfo")
        assert text.count("processor\t") == os.cpu_count(), text

    def named(*command, options=()):
        report = stat_json("--deterministic", "--cpu-features=x86-64-v2", *options, "-e",
                           "instructions", "--", *command)[0]
        return report["deterministic"]["not_fixed"]

    assert named("cat", "/proc/cpuinfo", options=["--cpus=2"]) == []
    assert named("cat", "/proc/cpuinfo") == ["CPUs"]
    assert named("cat", "/sys/devices/system/cpu/cpu0/topology/core_id", options=["--cpus=2"]) \
        == ["CPUs"]


def test_xsave_writes_what_the_cpu_has():
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        dirty = ["dirty"] if " avx512f " in f.read() else []
    assert deterministic("x86-64-v3", LEVEL, "xsave", *dirty) == "ok\n"
    # It is seen if it does.
    if dirty:
        r = run("run", "--deterministic", LEVEL, "xsave", *dirty)
        assert r.status == 2 and "components" in r.out, r


def test_events_follow_the_model():
    """Codes of Intel's: 0xc4 are branches, 0xc0 instructions."""
    r = stat_json("--deterministic", "--cpu-features=x86-64-v2", "-e",
                  "branches:u,r00c4:u,instructions:u,r00c0:u", "--", "true")[0]
    counts = [c["value"] for c in r["counts"]]
    assert counts[0] == counts[1] and counts[2] == counts[3], r
    for command in "stat", "run":
        r = run(command, "--deterministic", "--cpu-features=x86-64-v2", "--cpu-model=host", "true")
        assert r.status == 125 and "shows a model of its own" in r.err, r
        # Its name alone would show AVX-512 of a machine as another vendor's.
        r = run(command, "--cpu-model=level", "true")
        assert r.status == 125 and "'level' is no model" in r.err, r


if __name__ == "__main__":
    main(globals())
