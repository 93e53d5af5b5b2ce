#!/usr/bin/env python3
"""anyperf machine: the list, a machine as a text that can be read again, and what is refused."""
import json
import os
import tempfile

from e2e import main, run


def names():
    return [line.split()[0] for line in run("machine").out.splitlines()]


def refused(text):
    with tempfile.NamedTemporaryFile("w", suffix=".machine") as f:
        f.write(text)
        f.flush()
        r = run("machine", f.name)
    assert r.status == 2 and not r.out, r
    return r.err


def test_list():
    assert names()[-1] == "host" and {"skylake-server", "zen4", "neoverse-n1", "cachegrind"} <= \
        set(names())
    listed = json.loads(run("machine", "--json").out)
    assert listed["schema"] == "anyperf-machine-1"
    assert [m["name"] for m in listed["machines"]] == names()


def test_each_is_a_text_that_it_can_be_read_from():
    for name in names():
        shown = run("machine", name)
        assert shown.status == 0 and f"\nmachine {name}\n" in shown.out, shown
        with tempfile.NamedTemporaryFile("w", suffix=".machine") as f:
            f.write(shown.out)
            f.flush()
            assert run("machine", f.name).out == shown.out
        document = json.loads(run("machine", name, "-j").out)
        assert document["machine"] == name and document["l1d"]["size"] >= 4096, document
        assert document["class"]["int"]["uops"] == 1


def test_a_file_whose_name_is_a_machines():
    with tempfile.TemporaryDirectory() as d:
        text = run("machine", "zen2").out.replace("machine zen2", "machine mine")
        with open(os.path.join(d, "zen2"), "w", encoding="utf-8") as f:
            f.write(text)
        assert run("machine", "./zen2", cwd=d).out == text
        assert "\nmachine zen2\n" in run("machine", "zen2", cwd=d).out


def test_geometry():
    r = run("machine", "cachegrind", "--I1", "16384,4,64", "--D1=8192,2,64", "--LL",
            "1048576,16,64")
    assert "l1i size 16K ways 4 " in r.out and "l1d size 8K ways 2 " in r.out, r
    assert "ll size 1M ways 16 " in r.out, r
    for wrong, why in (("16384,4", "SIZE,WAYS,LINE"), ("16384,4,32", "one size for all caches"),
                       ("16384,3,64", "cannot be divided"), ("-1,3,64", "SIZE,WAYS,LINE")):
        r = run("machine", "cachegrind", "--LL", wrong)
        assert r.status == 2 and why in r.err, r
    assert run("machine", "--LL", "16384,4,64").status == 2


def test_refused():
    r = run("machine", "zen22")
    assert r.status == 2 and "did you mean zen2" in r.err, r
    assert run("machine", "zen2", "zen3").status == 2
    assert "No such file" in run("machine", "./none").err
    assert "Is a directory" in run("machine", "/").err
    good = run("machine", "zen2").out
    assert "line 1: a machine's text begins with `anyperf-machine 1`" in refused("hello\n")
    assert "line 5: l1i ways: it must be from 1 to 1024" in refused(
        good.replace("l1i size 32K ways 8", "l1i size 32K ways 0"))
    assert "line 5: l1i: it has no field 'spede'" in refused(
        good.replace("l1i size 32K ways 8", "l1i spede 32K ways 8"))
    assert "line 8: ll size: '16Q' is no number" in refused(
        good.replace("ll size 16M", "ll size 16Q"))
    assert "core: it is missing" in refused(
        "\n".join(x for x in good.splitlines() if not x.startswith("core ")))
    assert "longer than 65536 bytes" in refused(good + "#\n" * 40000)


if __name__ == "__main__":
    main(globals())
