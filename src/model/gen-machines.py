#!/usr/bin/env python3
"""Makes a table of the machines' texts, so that they are in the library whatever is installed."""
import os
import sys

with open(sys.argv[1], "w", encoding="ascii") as out:
    out.write("/* Made by gen-machines.py. */\n#include \"model/machines.h\"\n\n"
              "const struct machine_shipped machines_shipped[] = {\n")
    for path in sys.argv[2:]:
        name = os.path.basename(path).removesuffix(".machine")
        with open(path, encoding="ascii") as f:
            lines = f.read().splitlines()
        out.write(f'\t{{"{name}",\n')
        for line in lines:
            quoted = line.replace("\\", "\\\\").replace('"', '\\"')
            out.write(f'\t "{quoted}\\n"\n')
        out.write("\t},\n")
    out.write("\t{0},\n};\n")
