#!/usr/bin/env python3
"""An event costs the session the same among few and among many. Instructions are counted, not
time: those of a session and of a guest without a runtime, which opens and closes events
(tests/unit/session/scale.c)."""
import json
import os

from e2e import Skip, main, run

MANY = 4000


def instructions(events, pairs, *how):
    r = run("run", "--count", "-j", "--", os.environ["E2E_SCALE"], str(events), str(pairs), *how)
    if r.status == 77:
        raise Skip(f"{MANY} descriptors are not to be had")
    assert r.status == 0, r
    return json.loads(r.err.splitlines()[-1])["total"]["instructions"]


def pair(events, *how):
    """Instructions of an open and a close beside so many events."""
    return (instructions(events, 220, *how) - instructions(events, 20, *how)) / 200


def test_a_pair_of_open_and_close_among_many():
    few, many = pair(10), pair(MANY)
    assert few > 1000, few
    assert many < 1.5 * few, (few, many)


def test_a_pair_among_many_that_hang_up():
    few, many = pair(20, "hung"), pair(MANY, "hung")
    assert many < 1.5 * few, (few, many)


def test_many_cost_as_many_times_as_much():
    half, whole = instructions(MANY // 2, 0), instructions(MANY, 0)
    # What does not depend on their number is in both.
    assert whole < 2.2 * half, (half, whole)


def test_a_meter_that_is_never_whole():
    honest, forged = pair(10, "large"), pair(10, "forged")
    assert honest > 1000, honest
    # It was a thousand times as much.
    assert forged < 10 * honest, (honest, forged)


main(globals())
