#!/usr/bin/env python3
"""LeakSanitizer finds under `anyperf run` what it finds natively: it traces the program's threads
and reads their registers, which are to be the program's."""
import json
import os
import re
import subprocess

from e2e import ANYPERF, main

LEAKING = os.environ["E2E_LEAKING"]


def leaks(*command):
    p = subprocess.run(command, capture_output=True, text=True, timeout=120,
                       env=os.environ | {"ASAN_OPTIONS": "detect_leaks=1"})
    found = re.findall(r"leak of (\d+) byte\(s\) in (\d+) object", p.stderr)
    return p.returncode, sorted(found), sorted(re.findall(r"SUMMARY: .*", p.stderr)), p.stderr


def natively():
    """What is left of a pointer on some stack hides one of the four at times."""
    for _ in range(5):
        native = leaks(LEAKING)
        if native[0] and len(native[1]) == 4:
            return native
    raise AssertionError(native)


def test_leaks_are_found():
    native = natively()
    for _ in range(3):
        here = leaks(ANYPERF, "run", "--", LEAKING)
        assert here[:3] == native[:3], (here, native)


def test_they_are_whoever_looks_at_the_program():
    native = natively()
    for options in (["record", "-q", "-o", "/dev/null", "-e", "instructions:u", "-c", "10007"],
                    ["record", "--exact", "-q", "-o", "/dev/null"],
                    ["stat", "--machine", "zen4", "--model-beside=yes", "-e", "branch-misses:u"]):
        here = leaks(ANYPERF, *options, "--", LEAKING)
        assert here[:3] == native[:3], (options, here, native)


def test_those_of_a_child_are_too():
    native = leaks(LEAKING, "fork")
    assert native[0] and {n for n, _ in native[1]} == {"300", "400"}, native
    here = leaks(ANYPERF, "run", "--count", "-j", "--", LEAKING, "fork")
    assert here[:3] == native[:3], (here, native)
    # Whose leaks are looked for by a clone that shares its memory is counted.
    total = json.loads(here[3].splitlines()[-1])["total"]
    assert total["instructions"] > 1000000, total


if __name__ == "__main__":
    main(globals())
