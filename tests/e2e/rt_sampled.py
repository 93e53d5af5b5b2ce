#!/usr/bin/env python3
"""The runtime's samples, without a session: as many as periods have passed, to the last one, at the
same instructions whatever the period, and the same in each run."""
import os
import subprocess

from e2e import main

SAMPLED = os.environ["E2E_SAMPLED"]
RUNTIME = os.environ["ANYPERF_RUNTIME"]
INSTRUCTIONS, BRANCHES = 0, 1
CHAIN, STACK = 1, 2


def sampled(quantity, period, wants, *program):
    p = subprocess.run([SAMPLED, RUNTIME, str(quantity), str(period), str(wants), *program],
                       env={}, capture_output=True, text=True, timeout=60)
    assert p.returncode == 0, (p.returncode, p.stderr)
    lines = [line.split() for line in p.stdout.splitlines()]
    number = {line[0]: int(line[1]) for line in lines if line[0] in ("count", "samples")}
    samples = [line for line in lines if line[0].startswith("0x")]
    return number["count"], number["samples"], samples


def test_number_of_samples():
    count, none, _ = sampled(INSTRUCTIONS, 0, 0, "/bin/true")
    assert none == 0
    for period in (1, 7, 1000, 10007, count, count + 1):
        assert sampled(INSTRUCTIONS, period, 0, "/bin/true")[:2] == (count, count // period), period
    for period in (1, 100, 1009):
        branches, samples, _ = sampled(BRANCHES, period, 0, "/bin/true")
        assert samples == branches // period, period


def test_nonsense():
    """What a session never asks for neither ends a program nor hangs it, nor changes its count."""
    count = sampled(INSTRUCTIONS, 0, 0, "/bin/true")[0]
    told = 0
    for seed in range(40):
        seen, _, ((_, length),) = sampled(INSTRUCTIONS, f"noise{seed}", 0, "/bin/true")
        assert seen == count, seed
        told += int(length) > 0
    assert told > 10, told


def test_same_instructions():
    """Each tenth sample of a period is one of ten times the period."""
    often = sampled(INSTRUCTIONS, 500, 0, "/bin/true")[2]
    seldom = sampled(INSTRUCTIONS, 5000, 0, "/bin/true")[2]
    assert len(seldom) > 10 and often[9::10][:len(seldom)] == seldom
    assert sampled(INSTRUCTIONS, 500, 0, "/bin/true")[2] == often


def test_facts():
    for *_, word, stack in sampled(INSTRUCTIONS, 5000, CHAIN | STACK, "/bin/true")[2]:
        used, size = map(int, stack.split("/"))
        assert word == "stack" and 0 < used <= size <= 256


def test_programs_of_a_process():
    """The deadline goes on in the next program of the process."""
    for period in (1000, 100003):
        count, samples, _ = sampled(INSTRUCTIONS, period, 0, "/bin/sh", "-c", "exec /bin/true")
        assert samples == count // period


if __name__ == "__main__":
    main(globals())
