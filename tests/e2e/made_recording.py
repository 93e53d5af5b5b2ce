"""Recordings made by hand: a sample at each address that a test asks for."""
import struct


def record(kind, misc, payload):
    payload += b"\0" * (-len(payload) % 8)
    return struct.pack("<IHH", kind, misc, 8 + len(payload)) + payload


def sampled(path, file, start, size, offset, addresses, name="made"):
    """Writes the recording @path of a process of this @name that maps @file and is sampled at
    @addresses."""
    user, pid = 2, 4242
    comm = record(3, user, struct.pack("<II", pid, pid) + name.encode() + b"\0")
    mapped = record(1, user, struct.pack("<IIQQQ", pid, pid, start, size, offset)
                    + file.encode() + b"\0")
    samples = [record(9, user, struct.pack("<QIIQ", ip, pid, pid, 1000 + i))
               for i, ip in enumerate(addresses)]
    data = b"".join([comm, mapped, *samples])
    # A software clock, by IP, TID and TIME; of user mode; without sample ids on other records.
    attr = struct.pack("<IIQQQQQ", 1, 128, 0, 1000000, 7, 0, 1 << 5 | 1 << 6 | 1 << 8 | 1 << 9)
    attr += b"\0" * (128 - len(attr)) + struct.pack("<QQ", 0, 0)
    head = 104
    header = struct.pack("<8sQQ", b"PERFILE2", head, len(attr))
    header += struct.pack("<QQQQQQ", head, len(attr), head + len(attr), len(data), 0, 0)
    header += b"\0" * 32
    with open(path, "wb") as f:
        f.write(header + attr + data)
