#!/usr/bin/env python3
"""Turns syscall.tbl, whose head says what its words mean, into C:

    gen-syscalls.py TBL TABLE.c STUBS.c

TABLE.c defines syscall_rows[] (syscall-table.h). STUBS.c is for the unit test: empty functions in
place of those that the rows name, and the rows' names with their numbers.
"""
import re
import sys

BITS = {"notify": "SYSCALL_NOTIFY", "always": "SYSCALL_PERF_ALWAYS"}
NONDET = ["pids", "time", "cpu_time", "threads", "processes", "io", "signals", "machine",
          "addresses", "cpus"]
STRUCTS = {"int": "int", "siginfo": "siginfo_t", "rusage": "struct rusage",
           "sockaddr": "struct __kernel_sockaddr_storage", "io_event": "struct io_event",
           "epoll_event": "struct epoll_event"}
FILLS = {"iovec": "FILL_IOVEC", "msghdr": "FILL_MSGHDR", "mmsghdr": "FILL_MMSGHDR",
         "iocb": "FILL_IOCB"}
FUNCTIONS = {"guest": "SYSCALL_GUEST", "perf": "SYSCALL_PERF",
             "deterministic": "SYSCALL_NONDET"}
# Where the functions are declared.
HEADERS = ["arch", "deterministic/deterministic-run", "load/execve", "load/images", "mm/mm",
           "perf/perf-priv", "proc/maps-query", "proc/memory-file", "proc/proc-files",
           "proc/proc-lists", "sandbox/seccomp", "signal/signal", "syscall/fd", "syscall/syscall",
           "task/limits", "task/path-pages", "task/process", "task/shared-mm"]


def argument(text):
    if not re.fullmatch(r"[0-5]", text):
        raise ValueError(f"'{text}' is no argument")
    return int(text)


def arguments(text):
    """A bit for each of a list of arguments."""
    return sum(1 << argument(n) for n in text.split(","))


def fill(text):
    """One A:SIZE, as the initialiser of a struct syscall_fill."""
    arg, size = text.split(":")
    f = [f".arg = {argument(arg)}"]
    m = re.fullmatch(r"(?:(\w+)\*|(\d)\+)?a(\d)", size)
    count = m and argument(m[3])
    unit = m[1] if m else size
    if unit in FILLS:
        f.append(f".kind = {FILLS[unit]}")
    elif unit in STRUCTS:
        f += [".kind = FILL_BYTES", f".unit = sizeof({STRUCTS[unit]})"]
    elif m and not unit:
        f += [".kind = FILL_BYTES", ".unit = 1"]
    else:
        raise ValueError(f"'{size}' is no size")
    if m:
        f += [".counted = 1", f".count = {count}"]
        if m[2]:
            f.append(f".more = {m[2]}")
    return "{" + ", ".join(f) + "}"


def parse(words):
    """The row, as a dictionary of members of struct syscall_row, and its steps."""
    row, steps = {}, []
    for word in words:
        key, _, value = word.partition("=")
        function = re.fullmatch(r"(guest|perf|deterministic)_\w+", word)
        if function:
            member = function[1] + "_call"
            steps.append(FUNCTIONS[function[1]])
            if member in row:
                raise ValueError(f"two functions of {function[1]}")
            row[member] = word
        elif key == "fd":
            row["fds"] = arguments(value)
            steps.append("SYSCALL_FD")
        elif key == "at":
            row["dirs"] = arguments(value)
            steps.append("SYSCALL_FD")
        elif key == "sends" and value in ("msghdr", "mmsghdr"):
            steps += ["SYSCALL_FD", "SYSCALL_SENDS" if value == "msghdr" else "SYSCALL_SENDS_MANY"]
        elif key == "path":
            row["path"] = argument(value)
            steps.append("SYSCALL_PATH")
        elif key == "atflags":
            row["atflags"] = argument(value)
            steps.append("SYSCALL_ATFLAGS")
        elif key == "nondet":
            what, _, when = value.partition("?")
            if not set(what.split(",")) <= set(NONDET):
                raise ValueError(f"what is {what}?")
            row["nondet"] = " | ".join("NONDET_" + w.upper() for w in what.split(","))
            steps.append("SYSCALL_NONDET")
            if when == "again":
                steps.append("SYSCALL_NONDET_AGAIN")
            elif when:
                row["nondet_arg"] = argument(when.removeprefix("a"))
                steps.append("SYSCALL_NONDET_ARG")
        elif key == "fill":
            fills = [fill(f) for f in value.split(",")]
            row["fill"] = "{" + ", ".join(fills) + "}"
            steps.append("SYSCALL_FILL")
        elif key == "mask":
            row["mask"] = argument(value.lstrip("*"))
            steps.append("SYSCALL_MASK_PAIR" if value[0] == "*" else "SYSCALL_MASK")
        elif word in BITS:
            steps.append(BITS[word])
        else:
            raise ValueError(f"what is {word}?")
    if "SYSCALL_PERF_ALWAYS" in steps and "perf_call" not in row:
        raise ValueError("'always' without perf_on_NAME")
    if "SYSCALL_NOTIFY" in steps and "guest_call" not in row:
        raise ValueError("'notify' without guest_NAME")
    return row, list(dict.fromkeys(steps))


def read(path):
    """The rows of the table: name to words, in their order."""
    rows, last = {}, ""
    with open(path, encoding="utf-8") as f:
        for n, line in enumerate(f, 1):
            words = line.split("#")[0].split()
            if not words:
                continue
            name = words.pop(0)
            try:
                if name <= last:
                    raise ValueError(f"{name} does not belong behind {last}")
                if not words:
                    raise ValueError(f"{name} has no effect; say 'plain'")
                rows[name] = [] if words == ["plain"] else words
                parse(rows[name])
            except ValueError as e:
                sys.exit(f"{path}:{n}: {e}")
            last = name
    return rows


def write_table(path, rows):
    with open(path, "w", encoding="utf-8") as f:
        f.write("/* Made by gen-syscalls.py from syscall.tbl. */\n"
                '#include "rt/syscall/syscall-table.h"\n\n'
                '#include "abi/meter.h"\n')
        f.writelines(f'#include "rt/{h}.h"\n' for h in HEADERS)
        f.write('#include "sys/uapi.h"\n\n'
                "#include <linux/aio_abi.h>\n#include <linux/eventpoll.h>\n"
                "#include <linux/resource.h>\n#include <linux/signal.h>\n"
                "#include <linux/socket.h>\n\n"
                "const struct syscall_row syscall_rows[SYSCALLS] = {\n")
        for name, words in rows.items():
            row, steps = parse(words)
            if not row:
                continue
            row = {"steps": " | ".join(steps), **row}
            f.write(f"\t[__NR_{name}] = {{\n")
            f.writelines(f"\t\t.{member} = {value},\n" for member, value in row.items())
            f.write("\t},\n")
        f.write("};\n")


def write_stubs(path, rows):
    names = sorted({w for words in rows.values() for w in words
                    if re.fullmatch(r"(guest|perf|deterministic)_\w+", w)})
    with open(path, "w", encoding="utf-8") as f:
        f.write("/* Made by gen-syscalls.py from syscall.tbl. */\n"
                '#include "unit/rt/syscall-names.h"\n\n#include "sys/uapi.h"\n\n')
        for n in names:
            f.write(f"void {n}(void);\nvoid {n}(void)\n{{\n}}\n")
        f.write("\nconst struct syscall_name syscall_names[] = {\n")
        for n in rows:
            row = f'\t{{"{n}", __NR_{n}, {int(not rows[n])}}},\n'
            # Some that need nothing are newer than the headers.
            f.write(row if rows[n] else f"#ifdef __NR_{n}\n{row}#endif\n")
        f.write("\t{0, 0, 0},\n};\n")


if __name__ == "__main__":
    table = read(sys.argv[1])
    write_table(sys.argv[2], table)
    write_stubs(sys.argv[3], table)
