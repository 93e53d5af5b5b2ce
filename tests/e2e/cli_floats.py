#!/usr/bin/env python3
"""What programs calculate with floating-point numbers is counted exactly, under the codes that the
CPU that is shown has for it."""
import os

from e2e import Skip, main, run, scratch, stat_json

CALCULATING = os.environ["E2E_CALCULATING"]
# Of an Intel server of 2017, on any machine.
LEVEL = ("--deterministic", "--cpu-features", "x86-64-v3")
MACHINE = ("--machine", "skylake-server")
TURNS = 1000


def flags():
    with open("/proc/cpuinfo") as f:
        return next(line for line in f if line.startswith("flags")).split()


def is_zen():
    with open("/proc/cpuinfo") as f:
        text = f.read()
    return "AuthenticAMD" in text and int(text.split("cpu family\t: ")[1].split()[0]) >= 0x17


def counted(codes, *options, command):
    report, = stat_json(*options, *MACHINE, *(a for c in codes for a in ("-e", f"r{c:x}:u")),
                        "--", *command)
    return [next(c["value"] for c in report["counts"] if c["event"] == f"r{code:x}:u")
            for code in codes]


def check(expected, *options, command=(CALCULATING,)):
    values = counted(expected, *options, command=command)
    wrong = {hex(code): (got, want) for got, (code, want) in zip(values, expected.items())
             if got != want}
    assert not wrong, wrong


# FP_ARITH_INST_RETIRED: scalar double, single, 128 bits double, single, 256, 512.
INTEL = {0x1c7: 1, 0x2c7: 3, 0x4c7: 3, 0x8c7: 4, 0x10c7: 0, 0x20c7: 0, 0x40c7: 0, 0x80c7: 0,
         0x03c7: 4, 0xfcc7: 7}
# Adds (1 + 4 + 2, and 4 of dpps), multiplications (1 + 2, 4), divisions (1 + 2), fused.
AMD = {0x103: 11, 0x203: 7, 0x403: 3, 0x803: 0, 0xf03: 21}


def times_turns(per_turn):
    return {code: n * TURNS for code, n in per_turn.items()}


def test_as_intel_counts():
    check(times_turns(INTEL), *LEVEL)
    if "fma" not in flags():
        raise Skip("this CPU has no fused multiplication")
    # What fuses counts twice.
    check(times_turns(INTEL | {0x02c7: 5, 0x10c7: 2, 0x20c7: 1, 0x03c7: 6, 0xfcc7: 10}), *LEVEL,
          command=(CALCULATING, "fma"))


def test_as_intel_counts_masked():
    if "avx512f" not in flags():
        raise Skip("this CPU has no AVX-512")
    check(times_turns(INTEL | {0x02c7: 5, 0x10c7: 2, 0x20c7: 1, 0x40c7: 2, 0x80c7: 2, 0x03c7: 6,
                               0xfcc7: 14}), *LEVEL, command=(CALCULATING, "fma", "avx512"))


def test_as_amd_counts():
    if not is_zen():
        raise Skip("this CPU is not AMD's")
    check(times_turns(AMD) | {0x1cb: 3 * TURNS + 1, 0x2cb: 2 * TURNS, 0x4cb: 10 * TURNS + 3})
    if "fma" not in flags():
        raise Skip("this CPU has no fused multiplication")
    # vaddps of 8; fused of 4 and of 1.
    check(times_turns(AMD | {0x103: 19, 0x803: 10, 0xf03: 39}), command=(CALCULATING, "fma"))


def test_as_amd_counts_masked():
    if not is_zen() or "avx512f" not in flags():
        raise Skip("this CPU has no AVX-512, or is not AMD's")
    check(times_turns(AMD | {0x103: 19, 0x203: 15, 0x403: 11, 0x803: 42, 0xf03: 87}),
          command=(CALCULATING, "fma", "avx512"))


def test_they_sample():
    with scratch() as d:
        data = os.path.join(d, "perf.data")
        p = run("record", "-q", "-o", data, *MACHINE, "-e", "r203:u" if is_zen() else "r1c7:u",
                "-c", "100", "--", CALCULATING)
        if not is_zen():
            raise Skip("this CPU is not AMD's")
        assert p.status == 0, p
        lines = run("script", "-i", data, "-F", "ip").out.splitlines()
        assert len(set(lines)) > 1, lines
        # mulsd, mulpd, dpps.
        assert len(set(lines)) <= 3, set(lines)


main(globals())
