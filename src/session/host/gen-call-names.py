#!/usr/bin/env python3
"""Writes the system calls of syscall.tbl with the numbers that the kernel's headers give them:

    gen-call-names.py TBL OUTPUT

Each is a line CALL(name, number), for an X-macro. The kernel's tracepoints are called by its
functions, of which a few have other names than the calls.
"""
import sys

RENAMED = {"stat": "newstat", "fstat": "newfstat", "lstat": "newlstat", "uname": "newuname",
           "sendfile": "sendfile64", "umount2": "umount"}

table, output = sys.argv[1:]
with open(table, encoding="utf-8") as f:
    names = [line.split()[0] for line in f if line.strip() and not line.startswith("#")]
with open(output, "w", encoding="utf-8") as f:
    f.write("/* Generated from syscall.tbl; do not edit. */\n")
    for name in names:
        f.write(f"#ifdef __NR_{name}\nCALL({RENAMED.get(name, name)}, __NR_{name})\n#endif\n")
