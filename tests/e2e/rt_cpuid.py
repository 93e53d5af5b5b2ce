#!/usr/bin/env python3
"""What cpuid says of the CPU that a thread is on, which the runtime remembers from one program to
the next, is what that CPU says."""
import os
import platform
import subprocess
import sys

from e2e import ANYPERF, ENV, HAS_RUNTIME, Skip, main

# Leaves that name the CPU, or what it shares with others: SDM and APM, CPUID.
PROGRAM = r"""
import ctypes, mmap, os, sys
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
# push rbx; mov eax, edi; mov ecx, esi; mov r8, rdx; cpuid; store eax, ebx, ecx, edx at r8; pop rbx; ret
code.write(bytes.fromhex("53 89f8 89f1 4989d0 0fa2 418900 41895804 41894808 4189500c 5b c3"))
call = ctypes.CFUNCTYPE(None, ctypes.c_uint, ctypes.c_uint, ctypes.c_void_p)(
    ctypes.addressof(ctypes.c_char.from_buffer(code)))
for cpu in sorted(os.sched_getaffinity(0)) * 2:
    os.sched_setaffinity(0, {cpu})
    for leaf, sub in (1, 0), (0xb, 0), (0xb, 1), (0x8000001e, 0), (0x8000001d, 3), (0x19, 0):
        regs = (ctypes.c_uint * 4)()
        call(leaf, sub, regs)
        print(cpu, hex(leaf), sub, [hex(r) for r in regs])
sys.stdout.flush()
os.sched_setaffinity(0, range(os.cpu_count()))
if len(sys.argv) < 3:
    os.execv(sys.executable, [sys.executable, "-c", sys.argv[1], sys.argv[1], "again"])
"""


def said(*command):
    p = subprocess.run([*command, sys.executable, "-c", PROGRAM, PROGRAM], capture_output=True,
                       text=True, check=False, timeout=120, env=ENV)
    assert p.returncode == 0, p
    return p.stdout.splitlines()


def test_each_cpu_says_what_it_says():
    if not HAS_RUNTIME or platform.machine() != "x86_64":
        raise Skip("there is no translator for this CPU")
    natively = said()
    assert len(natively) > 20, natively
    assert said(ANYPERF, "run", "--cpu-model=host", "--") == natively


if __name__ == "__main__":
    main(globals())
