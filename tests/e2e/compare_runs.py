"""What the tests of anyperf compare share: its programs, and how it is called and read."""
import json
import os
import sys

import compare_schema
import e2e
from e2e import run

FIXED = os.environ["E2E_FIXED"]  # 200,005 instructions for each word of its command line
REGION = os.environ["E2E_REGION"]
QUANTITIES = ["time", "cpu-time", "peak-memory", "faults"]


def compare(*args, status=0, times=False, **more):
    r = run("compare", *([] if times else ["--counts-only", "--warmup", "0"]), *args, **more)
    assert r.status == status, r
    return r


def compared(*args, **more):
    r = json.loads(compare("--format", "json", *args, **more).out)
    compare_schema.check(r, compare_schema.COMPARE)
    return r


def vs(*commands):
    """The command line's end: commands with --vs between them."""
    words = ["--"]
    for i, c in enumerate(commands):
        words += ["--vs"] * (i > 0) + list(c)
    return words


def fixed(words):
    return [FIXED] + ["x"] * (words - 1)


def region(*numbers):
    return [REGION, *map(str, numbers)]


def judged(limit, *commands, status, options=(), **more):
    r = compared(*options, "--fail-if", limit, *vs(*commands), status=status, **more)
    for g in r["gates"]:
        assert g["gate"] == limit and g["text"].startswith(f"{limit}: "), g
    return [(g["of"], g["result"]) for g in r["gates"]]


def baseline(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def edited(path, **members):
    b = {**baseline(path), **members}
    with open(path, "w", encoding="utf-8") as f:
        json.dump({k: v for k, v in b.items() if v is not None}, f)


def main(names):
    """Without addresses that are fixed next to nothing of it holds."""
    r = compared(*vs(["true"], ["true"]))
    if "addresses" in r["commands"][0]["not_fixed"]:
        print("personality(2) is forbidden here")
        sys.exit(77)
    e2e.main(names)
