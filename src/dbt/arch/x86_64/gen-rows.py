#!/usr/bin/env python3
"""Turns the instruction lists into the decoder's tables: gen-rows.py OUT LIST...

One line of a list is one or more opcodes of one map:

    MAP OPCODES CONSTRAINTS... OPERANDS... EFFECTS...   # mnemonics

MAP          1 0f 38 3a (legacy); v1 v2 v3 (VEX); x8 x9 xa (XOP); e1 e2 e3 e5 e6 (EVEX)
OPCODES      hex bytes and ranges: 00,10-17
constraints  np 66 f3 f2 (lists; none: any), w0 w1, l0 l1 l2 l12 (vector length), mem reg
             (modrm.mod), /N (modrm.reg), rm=N (modrm.rm). The first line that matches is taken.
operands     KIND SIZE [.ACCESS]: kind G modrm.reg, E modrm.rm register or memory, R the same if
             it is a register, M the same if it is memory, B vvvv, O register in the opcode, A rax.
             Access: read by default, .w written, .x both, .n neither.
             Size: b w d q 1 2 4 8 bytes; v operand size; z v but at most 4; y 4 or (W) 8;
             a address size; for M also a number of bytes, x h f g: whole, half, quarter, eighth of
             the vector, u: 8 or the whole (movddup), p far pointer, e s: x87 environment, state,
             n: nothing, ?: the machine's state decides.
             H: vvvv is a vector register (without H or B it must be 1111).
immediates   ib ub (byte), iw iz iv id, ibb (two bytes), iwb (enter), jb jz (branch), moffs
implicit     ir= iw= lists of ax cx dx bx sp bp si di; mr= mw= memory that no operand names
flags        fr= fw= fu=: read, written, undefined; letters of OSZAPCD
others       the names in ATTRS, cf=, sp=, shift=
"""
import re
import sys

MAPS = ["1", "0f", "38", "3a", "v1", "v2", "v3", "x8", "x9", "xa", "e1", "e2", "e3", "e5", "e6"]
PP = {"np": 1, "66": 2, "f3": 4, "f2": 8}
REGS = {n: i for i, n in enumerate(["ax", "cx", "dx", "bx", "sp", "bp", "si", "di"])}
FLAGS = {"C": 0x1, "P": 0x4, "A": 0x10, "Z": 0x40, "S": 0x80, "D": 0x400, "O": 0x800}
SIZES = {"b": "B1", "w": "B2", "d": "B4", "q": "B8", "v": "V", "z": "Z", "y": "Y", "a": "A", "x": "X",
         "h": "H", "f": "F", "g": "G", "u": "U", "p": "P", "e": "ENV", "s": "STATE", "n": "B0",
         "?": "ANY", "0": "B0", "1": "B1", "2": "B2", "4": "B4", "8": "B8", "10": "B10", "16": "B16",
         "32": "B32", "48": "B48", "64": "B64", "512": "B512"}
FIELDS = {"E": "rm", "R": "rm", "G": "reg", "B": "vvvv", "O": "opr", "A": "acc"}
ACCESS = {"": 1, "w": 2, "x": 3, "n": 0}
IMMS = ["ib", "ub", "iw", "iz", "iv", "id", "ibb", "iwb", "jb", "jz", "moffs"]
ATTRS = {
    "lock": "X_LOCK", "push": "X_PUSH", "pop": "X_POP", "d64": "X_D64", "f64": "X_F64", "cc": "X_CC",
    "branch": "INSN_BRANCH", "vec": "INSN_VECTOR", "noaddr": "INSN_NOADDR",
    "prefetch": "INSN_PREFETCH", "memcond": "INSN_MEM_COND", "cmov": "X_CMOV", "ivar": "X_IVAR",
    "string": "X_STRING", "repz": "X_REPZ", "gcond": "X_GCOND", "vsib": "INSN_VSIB",
    "crreg": "X_CRREG", "bitmem": "X_BITMEM", "notrack": "X_NOTRACK", "cmpxchg": "X_CMPXCHG",
}
FIXES = ["nop90", "lea", "cmpxchg8", "ret", "retf", "call", "callf", "enter", "leave",
         "loop", "syscall", "uiret", "imm3", "imm1"]
EVEX = {"k": "EV_K", "kreq": "EV_KREQ", "z": "EV_Z", "zreg": "EV_ZREG", "rb": "EV_RB",
        "bc2": "EV_BC2", "bc4": "EV_BC4", "bc8": "EV_BC8", "n1": "EV_N1", "n2": "EV_N2",
        "n4": "EV_N4", "n8": "EV_N8"}


def byte_list(text):
    for part in text.split(","):
        low, _, high = part.partition("-")
        yield from range(int(low, 16), int(high or low, 16) + 1)


def mask(text):
    return sum(1 << n for n in byte_list(text))


def parse(tokens):
    """The line's match and effect, as C initialisers."""
    match = {"pp": 0, "w": 3, "l": 7, "mod": 3, "reg": 0xFF, "rm": 0xFF}
    eff = {}
    attr, evex = [], []
    implicit = {"ir": 0, "iw": 0}
    flags = {"fr": 0, "fw": 0, "fu": 0}
    vvvv = False
    for t in tokens:
        if all(p in PP for p in t.split(",")):
            for p in t.split(","):
                match["pp"] |= PP[p]
        elif t in ("w0", "w1"):
            match["w"] = 1 << int(t[1])
        elif re.fullmatch(r"l[012]+", t):
            match["l"] = sum(1 << int(c) for c in t[1:])
        elif t in ("mem", "reg"):
            match["mod"] = 1 if t == "mem" else 2
        elif t[0] == "/":
            match["reg"] = mask(t[1:])
        elif t.startswith("rm="):
            match["rm"] = mask(t[3:])
        elif t in IMMS:
            eff["imm"] = "IMM_" + t.upper()
        elif t[:3] in ("ir=", "iw="):
            for r in t[3:].split(","):
                implicit[t[:2]] |= 1 << REGS[r]
        elif t[:3] in ("fr=", "fw=", "fu="):
            flags[t[:2]] = sum(FLAGS[c] for c in t[3:])
        elif t[:3] in ("mr=", "mw="):
            eff["mem_r" if t[1] == "r" else "mem_w"] = "SZ_" + SIZES[t[3:]]
        elif t.startswith("cf="):
            eff["cf"] = "CF_" + t[3:]
        elif t.startswith("sp="):
            eff["special"] = "SP_" + t[3:]
        elif t.startswith("shift="):
            eff["fix"] = "FIX_SHIFT_" + t[6:].upper()
        elif t in FIXES:
            eff["fix"] = "FIX_" + t.upper()
        elif t in ATTRS:
            attr.append(ATTRS[t])
        elif t in EVEX:
            evex.append(EVEX[t])
        elif t == "H":
            vvvv = True
        else:
            m = re.fullmatch(r"([GERMBOA])([a-z?]|\d+)(?:\.([wxn]))?", t)
            if not m:
                raise ValueError(f"what is {t}?")
            kind, size, access = m.groups()
            acc, size = ACCESS[access or ""], "SZ_" + SIZES[size]
            if kind in "EM":
                if acc & 1:
                    eff["mem_r"] = size
                if acc & 2:
                    eff["mem_w"] = size
                eff.setdefault("mem_r", "SZ_B0")
            if kind in "ERGBOA":
                eff[FIELDS[kind]] = f"{size} | {acc} << 6"
            vvvv |= kind == "B"
    if vvvv:
        attr.append("X_VVVV")
    eff["attr"] = " | ".join(attr) or "0"
    eff["evex"] = " | ".join(evex) or "0"
    eff["gpr_r"], eff["gpr_w"] = hex(implicit["ir"]), hex(implicit["iw"])
    for k, v in flags.items():
        eff["fl_" + k[1]] = hex(v)
    match["pp"] = match["pp"] or 15
    return match, eff


MODRM = {
    "1": mask("00-03,08-0b,10-13,18-1b,20-23,28-2b,30-33,38-3b,63,69,6b,80-8f,c0-c1,c6-c7,d0-d3,"
              "d8-df,f6-f7,fe-ff"),
    "0f": mask("00-03,0d,0f-1f,20-23,28-2f,40-76,78-7f,90-9f,a3-a7,ab-c7,d0-ff"),
}

# The tables that insn_scan() knows: all but XOP and EVEX.
SCANNED = 7
COND = [0x800, 0x1, 0x40, 0x41, 0x80, 0x4, 0x880, 0x8C0]


def has_modrm(key):
    """Whether the opcode has a modrm byte: all of the other maps have one but vzeroupper."""
    name, op = MAPS[key[0]], key[1]
    if name in MODRM:
        return MODRM[name] >> op & 1
    return (name, op) != ("v1", 0x77)


def shape(eff, op, modrm):
    """What insn_scan() has to know of an effect, or None if only insn_decode() can tell."""
    attr = eff["attr"].split(" | ")
    fix, imm = eff.get("fix", "FIX_NONE"), eff.get("imm", "IMM_NONE")
    if "cf" in eff or eff.get("special", "SP_ENDBR") != "SP_ENDBR":
        return None
    if fix not in ("FIX_NONE", "FIX_LEA", "FIX_NOP90", "FIX_LEAVE", "FIX_SHIFT_I", "FIX_SHIFT_C"):
        return None
    if imm not in ("IMM_NONE", "IMM_IB", "IMM_UB", "IMM_IZ", "IMM_IV"):
        return None
    if {"X_STRING", "X_CRREG", "X_F64", "INSN_VSIB"} & set(attr):
        return None
    read, written = int(eff["fl_r"], 16), int(eff["fl_w"], 16)
    if "X_CC" in attr:
        read |= COND[(op & 15) >> 1]
    if fix == "FIX_SHIFT_C":
        written = 0  # the count may be 0
    bits = ["SCAN_VVVV"] if "X_VVVV" in attr else []
    bits += ["SCAN_MODRM"] if modrm else []
    if fix == "FIX_SHIFT_I":
        operand = eff.get("reg") or eff.get("rm")
        if operand.startswith("SZ_B1 "):
            return None
        bits.append("SCAN_SHIFT")
    return f"{{{read:#x}, {written:#x}, {imm}, {' | '.join(bits) or '0'}}}"


def matches(m, vex, pp, mod, reg):
    """Whether a row matches these whatever the rest is: yes, no, or None, it depends."""
    if not (m["pp"] >> pp & 1 and m["mod"] >> mod & 1 and m["reg"] >> reg & 1):
        return False
    lengths = 3 if vex else 1
    if not (m["l"] & lengths and m["w"]):
        return False
    if m["l"] & lengths == lengths and m["w"] == 3 and (m["rm"] == 0xFF or not mod):
        return True
    return None


def scan_cell(ms, order, key, at):
    for m, e in ms:
        hit = matches(m, key[0] >= 4, *at)
        if hit:
            return shape(order[e], key[1], has_modrm(key))
        if hit is None:
            return None
    return None


def write_scan(f, table, order):
    shapes, classes, index = {None: 0}, {}, {}
    cells = [(pp, int(mod == 3), reg) for pp in range(4) for mod in range(4) for reg in range(8)]
    for key, ms in sorted(table.items()):
        if key[0] < SCANNED:
            found = [scan_cell(ms, order, key, at) for at in cells]
            of = tuple(shapes.setdefault(cell, len(shapes)) for cell in found)
            index[key] = classes.setdefault(of, len(classes))
    f.write("\nconst struct insn_shape insn_shapes[] = {\n")
    f.writelines(f"\t{s or '{0}'},\n" for s in shapes)
    f.write("};\n\nconst u8 insn_scan_cells[][128] = {\n")
    f.writelines("\t{" + ", ".join(map(str, c)) + "},\n" for c in classes)
    f.write("};\n\nconst u8 insn_modrm[2][32] = {\n")
    for m in MODRM.values():
        f.write("\t{" + ", ".join(str(m >> n & 255) for n in range(0, 256, 8)) + "},\n")
    f.write(f"}};\n\nconst u8 insn_scan_class[{SCANNED}][256] = {{\n")
    none = classes.get((0,) * len(cells))
    for m in range(SCANNED):
        f.write("\t{" + ", ".join(str(index.get((m, op), none)) for op in range(256)) + "},\n")
    f.write("};\n")
    assert none is not None and len(shapes) < 256 and len(classes) < 256


def main(out_path, *lists):
    table, effects, order = {}, {}, []
    for path in lists:
        with open(path, encoding="utf-8") as f:
            for n, line in enumerate(f, 1):
                tokens = line.split("#")[0].split()
                if not tokens:
                    continue
                try:
                    match, eff = parse(tokens[2:])
                except (ValueError, KeyError) as e:
                    sys.exit(f"{path}:{n}: {e}")
                key = tuple(sorted(eff.items()))
                if key not in effects:
                    effects[key] = len(order)
                    order.append(eff)
                for op in byte_list(tokens[1]):
                    table.setdefault((MAPS.index(tokens[0]), op), []).append((match, effects[key]))
    rows, first, seen = [], {}, {}
    for key, ms in sorted(table.items()):
        text = []
        for i, (m, e) in enumerate(ms):
            wl = m["w"] | m["l"] << 2 | m["mod"] << 5 | (0x80 if i == len(ms) - 1 else 0)
            text.append(f"{{{m['pp']}, {wl:#x}, {m['reg']:#x}, {m['rm']:#x}, {e}}},")
        chain = tuple(text)
        if chain not in seen:
            seen[chain] = len(rows) + 1
            rows += text
        first[key] = seen[chain]
    with open(out_path, "w", encoding="utf-8") as f:
        f.write("/* Made by gen-rows.py from the insns-*.txt lists. */\n")
        f.write('#include "dbt/arch/x86_64/decode-priv.h"\n\n')
        f.write("const struct insn_effect insn_effects[] = {\n")
        for eff in order:
            f.write("\t{" + ", ".join(f".{k} = {v}" for k, v in eff.items()
                                      if v not in ("0", "0x0")) + "},\n")
        f.write("};\n\nconst struct insn_row insn_rows[] = {\n\t{0},\n")
        f.writelines(f"\t{r}\n" for r in rows)
        f.write(f"}};\n\nconst u16 insn_first[{len(MAPS)}][256] = {{\n")
        for m in range(len(MAPS)):
            cells = [first.get((m, op), 0) for op in range(256)]
            if any(cells):
                f.write(f"\t[{m}] = {{" + ", ".join(map(str, cells)) + "},\n")
        f.write("};\n")
        write_scan(f, table, order)


main(*sys.argv[1:])
