#!/usr/bin/env python3
"""LeakSanitizer finds under `anyperf run` what it finds natively: it traces the program's threads
and reads their registers, which are to be the program's."""
import os
import re
import subprocess

from e2e import ANYPERF, main

LEAKING = os.environ["E2E_LEAKING"]


def leaks(*command):
    p = subprocess.run(command, capture_output=True, text=True, timeout=120,
                       env=os.environ | {"ASAN_OPTIONS": "detect_leaks=1"})
    found = re.findall(r"leak of (\d+) byte\(s\) in (\d+) object", p.stderr)
    return p.returncode, sorted(found), re.findall(r"SUMMARY: .*", p.stderr), p.stderr


def test_leaks_are_found():
    native = leaks(LEAKING)
    assert native[0] and len(native[1]) == 4, native
    for _ in range(3):
        here = leaks(ANYPERF, "run", "--", LEAKING)
        assert here[:3] == native[:3], (here, native)


if __name__ == "__main__":
    main(globals())
