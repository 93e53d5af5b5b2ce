#!/usr/bin/env python3
"""A uprobe of the machine in a file that a guest executes: the kernel puts a breakpoint instruction
into the guest's pages too, which is not the guest's."""
import ctypes
import os
import shutil
import struct
import subprocess
import tempfile

from e2e import ANYPERF, Skip, main

FIXED = os.environ["E2E_FIXED"]
TYPE = "/sys/bus/event_source/devices/uprobe/type"
PERF_EVENT_OPEN = 298


def entry_offset(path):
    """Where in the file the program's first instruction is."""
    with open(path, "rb") as f:
        image = f.read()
    entry, headers = struct.unpack_from("<QQ", image, 24)
    for i in range(struct.unpack_from("<H", image, 56)[0]):
        kind, _, offset, address, _, size = struct.unpack_from("<IIQQQQ", image, headers + 56 * i)
        if kind == 1 and address <= entry < address + size:
            return offset + entry - address
    raise AssertionError("the program has no first instruction")


def open_uprobe(path, offset):
    """On every process; the descriptor, or None."""
    name = ctypes.create_string_buffer(path.encode())
    with open(TYPE, encoding="ascii") as f:
        kind = int(f.read())
    attr = struct.pack("<IIQQQQQIIQQ", kind, 72, 0, 0, 0, 0, 0, 0, 0, ctypes.addressof(name),
                       offset)
    fd = ctypes.CDLL(None).syscall(PERF_EVENT_OPEN, attr, -1, 0, -1, 0)
    return None if fd < 0 else fd


def test_guest_runs_on():
    if not os.path.exists(TYPE):
        raise Skip("this kernel has no uprobes")
    with tempfile.TemporaryDirectory() as d:
        program = shutil.copy(FIXED, d)
        want = subprocess.run([program], capture_output=True, check=False)
        fd = open_uprobe(program, entry_offset(program))
        if fd is None:
            raise Skip("uprobes are not for us")
        try:
            got = subprocess.run([ANYPERF, "run", "--", program], capture_output=True, check=False)
        finally:
            os.close(fd)
        assert (got.returncode, got.stdout) == (want.returncode, want.stdout), got


if __name__ == "__main__":
    main(globals())
