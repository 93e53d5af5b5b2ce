"""Recordings made by hand: a sample at each address that a test asks for."""
import struct


def record(kind, misc, payload):
    payload += b"\0" * (-len(payload) % 8)
    return struct.pack("<IHH", kind, misc, 8 + len(payload)) + payload


def sampled(path, file, start, size, offset, addresses, name="made", event_id=None, reads=(),
            chain=()):
    """Writes the recording @path of a process of this @name that maps @file and is sampled at
    @addresses. With @reads each sample has a READ section of its (id, value)s there; @event_id is
    the one of them that the file knows. With @chain each sample has that call chain."""
    user, pid = 2, 4242
    comm = record(3, user, struct.pack("<II", pid, pid) + name.encode() + b"\0")
    mapped = record(1, user, struct.pack("<IIQQQ", pid, pid, start, size, offset)
                    + file.encode() + b"\0")
    samples = [struct.pack("<QIIQ", ip, pid, pid, 1000 + i) for i, ip in enumerate(addresses)]
    for i, values in enumerate(reads):
        samples[i] += struct.pack("<Q", len(values))
        samples[i] += b"".join(struct.pack("<QQ", value, number) for number, value in values)
    if chain:
        chain = (2**64 - 512, *chain)  # PERF_CONTEXT_USER
        samples = [s + struct.pack(f"<Q{len(chain)}Q", len(chain), *chain) for s in samples]
    samples = [record(9, user, sample) for sample in samples]
    data = b"".join([comm, mapped, *samples])
    # A software clock, by IP, TID and TIME; of user mode; without sample ids on other records.
    sample_type, read_format = (7 | 1 << 4, 1 << 2 | 1 << 3) if reads else (7, 0)
    sample_type |= (1 << 5) * bool(chain)
    attr = struct.pack("<IIQQQQQ", 1, 128, 0, 1000000, sample_type, read_format,
                       1 << 5 | 1 << 6 | 1 << 8 | 1 << 9)
    ids = struct.pack("<Q", event_id) if event_id else b""
    head = 104 + len(ids)
    attr += b"\0" * (128 - len(attr)) + struct.pack("<QQ", 104, len(ids))
    header = struct.pack("<8sQQ", b"PERFILE2", 104, len(attr))
    header += struct.pack("<QQQQQQ", head, len(attr), head + len(attr), len(data), 0, 0)
    header += b"\0" * 32
    with open(path, "wb") as f:
        f.write(header + ids + attr + data)
