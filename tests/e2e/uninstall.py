#!/usr/bin/env python3
"""What `make install` has copied goes again, and nothing else: uninstall.py SOURCE BUILD."""
import os
import subprocess
import sys
import tempfile


def files(top):
    return sorted(os.path.join(folder, n) for folder, _, names in os.walk(top) for n in names)


def main():
    source, build = (os.path.abspath(p) for p in sys.argv[1:])
    with tempfile.TemporaryDirectory(prefix="anyperf-test-") as d:
        # A blank, and a name that is ours, in front of where it goes; and another's beside it.
        here, other = os.path.join(d, "anyperf of mine"), os.path.join(d, "anyperf")
        os.mkdir(other)
        with open(os.path.join(other, "kept"), "w", encoding="ascii"):
            pass
        subprocess.run(["meson", "install", "-C", build, "--no-rebuild", "--quiet", "--destdir",
                        here], check=True, stdout=subprocess.DEVNULL)
        libs = {os.path.dirname(f) for f in files(here) if "libanyperf.so" in f}
        assert libs, files(here)
        foreign = [os.path.join(lib, name) for lib in libs
                   for name in ("libanyperf.so.9", "libanyperf.sofoo")]
        for path in foreign:
            with open(path, "w", encoding="ascii"):
                pass
        # As make does it.
        made = subprocess.run(["make", "-n", "-C", source, f"BUILD={build}", f"DESTDIR={here}",
                               "uninstall"], check=True, capture_output=True, text=True).stdout
        assert f'scripts/uninstall {build} "{here}"' in made, made
        subprocess.run([os.path.join(source, "scripts/uninstall"), build, here], check=True)
        assert files(here) == sorted(foreign), files(here)
        assert os.path.isdir(here) and files(other) == [os.path.join(other, "kept")]
        # A second time there is nothing, and that is no error.
        subprocess.run([os.path.join(source, "scripts/uninstall"), build, here], check=True)
    print("ok   uninstall")


main()
