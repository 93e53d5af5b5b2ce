#!/usr/bin/env python3
"""Turns i386.tbl, whose head says what its words mean, into C: gen-i386.py TBL I386.c I386.h"""
import sys

HOW = {"twin": "I386_TWIN", "translated": "I386_TRANSLATED", "refused": "I386_REFUSED"}


def read(path):
    """The rows: (number, name, how), in their order."""
    rows = []
    with open(path, encoding="utf-8") as f:
        for n, line in enumerate(f, 1):
            words = line.split("#")[0].split()
            if not words:
                continue
            if len(words) != 3 or words[2] not in HOW:
                sys.exit(f"{path}:{n}: a row is NUMBER NAME and one of {' '.join(HOW)}")
            if rows and int(words[0]) <= rows[-1][0]:
                sys.exit(f"{path}:{n}: {words[0]} does not belong behind {rows[-1][0]}")
            rows.append((int(words[0]), words[1], words[2]))
    return rows


def main(table, c_path, h_path):
    rows = read(table)
    with open(h_path, "w", encoding="utf-8") as f:
        f.write("/* Made by gen-i386.py from i386.tbl: calls by their numbers there. */\n"
                "#ifndef RT_ARCH_X86_64_I386_H\n#define RT_ARCH_X86_64_I386_H\n\n"
                '#include "base/types.h"\n\n')
        f.writelines(f"#define I386_NR_{name} {nr}\n" for nr, name, _ in rows)
        f.write(f"\n#define I386_CALLS {rows[-1][0] + 1}\n\n"
                "enum i386_how {\n\tI386_GATE,\n" + "".join(f"\t{h},\n" for h in HOW.values()) +
                "};\n\nstruct i386_call {\n\tu8 how;   /* enum i386_how */\n"
                "\tu16 twin; /* the 64-bit call */\n};\n\n"
                "extern const struct i386_call i386_calls[I386_CALLS];\n\n#endif\n")
    with open(c_path, "w", encoding="utf-8") as f:
        f.write("/* Made by gen-i386.py from i386.tbl. */\n"
                '#include "rt/arch/x86_64/i386.h"\n\n#include <asm/unistd.h>\n\n'
                "const struct i386_call i386_calls[I386_CALLS] = {\n")
        for nr, name, how in rows:
            twin = f", __NR_{name}" if how == "twin" else ""
            f.write(f"\t[{nr}] = {{{HOW[how]}{twin}}},\n")
        f.write("};\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
