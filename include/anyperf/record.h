/*
 * PURPOSE: the records that perf_event writes: what each carries, and decoding one from its bytes.
 * The bytes are the same in a ring buffer and in a perf.data file.
 *
 * What a record holds beyond its header depends on the attr of the event that wrote it: struct
 * ap_layout is that part of an attr. perf_event_open(2) describes each field under "MMAP layout";
 * the structs here have the kernel's names.
 *
 * These are pure functions: no system call, no allocation, nothing is kept. They believe no length
 * that they read. Pointers in a decoded record point into the bytes that it was decoded from and
 * live as long.
 */
#ifndef ANYPERF_RECORD_H
#define ANYPERF_RECORD_H

#include <anyperf/error.h>
#include <anyperf/read.h>
#include <linux/perf_event.h>

AP_BEGIN_DECLS

/* Types newer than some systems' <linux/perf_event.h>. */
enum ap_record_type {
	AP_RECORD_CALLCHAIN_DEFERRED = 22, /* Linux 6.19 */
};

/*
 * What an attr says about the bytes of its event's records. All zero: records without a trailer, no
 * samples. Samples with a bit that this library does not know cannot be decoded; records of other
 * types can.
 */
struct ap_layout {
	uint64_t sample_type;        /* PERF_SAMPLE_*: the fields of samples and trailers */
	uint64_t read_format;        /* PERF_FORMAT_*: the fields of read blocks */
	uint64_t branch_sample_type; /* PERF_SAMPLE_BRANCH_*: the parts of a branch stack */
	uint64_t sample_regs_user;   /* one bit for each register in the sample */
	uint64_t sample_regs_intr;
	bool sample_id_all; /* records other than SAMPLE end with a trailer, struct ap_sample_id */
};

/* Takes the layout out of @attr, of which @attr->size bytes are read (0: VER0, 64). */
AP_API void ap_layout_init(struct ap_layout *layout, const struct perf_event_attr *attr);

/*
 * Who, when and where: the fields that a SAMPLE and the trailer of any other record have in common.
 * `has` tells which are there; the others are 0.
 */
struct ap_sample_id {
	uint64_t has;       /* PERF_SAMPLE_TID, TIME, ID, STREAM_ID, CPU, IDENTIFIER */
	uint32_t pid, tid;  /* TID: in the pid namespace of whoever opened the event */
	uint64_t time;      /* TIME: ns of the kernel's own clock, or of attr.clockid */
	uint64_t id;        /* ID or IDENTIFIER: the event, as ap_event_id() tells it */
	uint64_t stream_id; /* STREAM_ID: the same, but an inheriting child's is its own */
	uint32_t cpu;       /* CPU */
};

/* Counts inside a record: ap_read_decode(bytes, len, format, ...) gives the values. */
struct ap_read_block {
	uint64_t format; /* PERF_FORMAT_* */
	size_t len;
	const uint8_t *bytes;
};

struct ap_bytes {
	size_t len;
	const uint8_t *bytes;
};

/*
 * Return addresses, the innermost first. Among them are markers: what follows PERF_CONTEXT_KERNEL
 * was in the kernel, what follows PERF_CONTEXT_USER in user mode. The kernel's value behind marker
 * -640 is no address but the cookie of the CALLCHAIN_DEFERRED record that brings the user part.
 */
struct ap_callchain {
	uint64_t nr;
	const uint64_t *ips;
};

static inline bool ap_callchain_is_marker(uint64_t ip)
{
	return ip >= (uint64_t)PERF_CONTEXT_MAX;
}

/* Branches, the last one taken first. */
struct ap_branch_stack {
	uint64_t nr;
	uint64_t hw_idx; /* with PERF_SAMPLE_BRANCH_HW_INDEX; all ones if the hardware gives none */
	const struct perf_branch_entry *entries;
	const uint64_t
		*counters; /* with PERF_SAMPLE_BRANCH_COUNTERS one for each entry, else NULL */
};

/* Registers: the values of the bits of `mask`, the lowest bit first. */
struct ap_regs {
	uint64_t abi;  /* enum perf_sample_regs_abi; NONE (0): there are no values */
	uint64_t mask; /* 0 if there are no values */
	const uint64_t *values;
};

/* The value of register @reg, a bit's number (PERF_REG_X86_IP ...). False: it was not sampled. */
AP_API bool ap_regs_get(const struct ap_regs *regs, unsigned int reg, uint64_t *value);

/* A copy of the top of the user stack. */
struct ap_stack {
	size_t len;        /* as many bytes as there was room for; 0: none was taken */
	uint64_t dyn_size; /* so many of them are the stack's, at most `len` */
	const uint8_t *bytes;
};

/* SAMPLE. Fields that are not in sample_type are 0; pid, tid, time, id, cpu are in ap_record.id. */
struct ap_sample {
	uint64_t ip;
	uint64_t addr;
	uint64_t period;
	struct ap_read_block read;     /* PERF_SAMPLE_READ */
	struct ap_callchain callchain; /* PERF_SAMPLE_CALLCHAIN */
	struct ap_bytes raw;           /* PERF_SAMPLE_RAW; its length includes padding */
	struct ap_branch_stack branch_stack;
	struct ap_regs regs_user;
	struct ap_stack stack_user;
	uint64_t weight;   /* WEIGHT: all of it. WEIGHT_STRUCT: var1_dw in bits 0-31, var2_w in */
	uint64_t data_src; /* 32-47, var3_w in 48-63 */
	uint64_t transaction; /* PERF_TXN_* */
	struct ap_regs regs_intr;
	uint64_t phys_addr;
	uint64_t cgroup; /* as in CGROUP records */
	uint64_t data_page_size;
	uint64_t code_page_size;
	struct ap_bytes aux;
};

/* MMAP and MMAP2. */
struct ap_record_mmap {
	uint32_t pid, tid;
	uint64_t addr, len, pgoff;
	const char *filename; /* "//anon", "[heap]", "[vdso]" ... where there is no file */
	/* The rest is MMAP2's. It has a build id if misc has PERF_RECORD_MISC_MMAP_BUILD_ID. */
	uint32_t maj, min;
	uint64_t ino, ino_generation;
	uint32_t prot, flags;    /* as mmap(2) */
	const uint8_t *build_id; /* 20 bytes; NULL: none */
	uint8_t build_id_size;   /* so many of them are the build id */
};

/* LOST: records that found no room since the last LOST. LOST_SAMPLES: dropped by the hardware. */
struct ap_record_lost {
	uint64_t id; /* 0 in LOST_SAMPLES */
	uint64_t lost;
};

/* COMM; misc says PERF_RECORD_MISC_COMM_EXEC if it is due to an execve. */
struct ap_record_comm {
	uint32_t pid, tid;
	const char *comm;
};

/* FORK and EXIT. */
struct ap_record_task {
	uint32_t pid, ppid, tid, ptid;
	uint64_t time;
};

/* THROTTLE and UNTHROTTLE: too many samples, the event pauses until the next tick. */
struct ap_record_throttle {
	uint64_t time, id, stream_id;
};

/* READ: what a child that ends has counted, with attr.inherit_stat. */
struct ap_record_read {
	uint32_t pid, tid;
	struct ap_read_block read;
};

/* AUX: there is new data in the AUX area. */
struct ap_record_aux {
	uint64_t aux_offset, aux_size;
	uint64_t flags; /* PERF_AUX_FLAG_* */
};

struct ap_record_itrace_start {
	uint32_t pid, tid;
};

/* SWITCH_CPU_WIDE: the next task if misc has SWITCH_OUT, else the last. SWITCH: nothing. */
struct ap_record_switch {
	uint32_t next_prev_pid, next_prev_tid;
};

struct ap_record_namespaces {
	uint32_t pid, tid;
	uint64_t nr; /* of links, by NET_NS_INDEX ... */
	const struct perf_ns_link_info *links;
};

struct ap_record_ksymbol {
	uint64_t addr;
	uint32_t len;
	uint16_t ksym_type; /* PERF_RECORD_KSYMBOL_TYPE_* */
	uint16_t flags;     /* PERF_RECORD_KSYMBOL_FLAGS_* */
	const char *name;
};

struct ap_record_bpf_event {
	uint16_t type; /* PERF_BPF_EVENT_* */
	uint16_t flags;
	uint32_t id;
	const uint8_t *tag; /* 8 bytes */
};

struct ap_record_cgroup {
	uint64_t id;
	const char *path;
};

/* TEXT_POKE: the kernel changed its own code. */
struct ap_record_text_poke {
	uint64_t addr;
	uint16_t old_len, new_len;
	const uint8_t *old_bytes, *new_bytes;
};

struct ap_record_aux_output_hw_id {
	uint64_t hw_id;
};

/* CALLCHAIN_DEFERRED: the user part of the call chains that carry the same cookie. */
struct ap_record_callchain_deferred {
	uint64_t cookie;
	struct ap_callchain callchain;
};

struct ap_record {
	uint32_t type; /* PERF_RECORD_*; those from 64 on exist only in perf.data files */
	uint16_t misc; /* PERF_RECORD_MISC_* */
	uint16_t size; /* in bytes, with the header */
	bool known;    /* false: this library does not know the type; only `id` may be filled in */
	const void *bytes;      /* the record itself, from its header on */
	struct ap_sample_id id; /* from the trailer, or the sample's own */
	__extension__ union {
		struct ap_record_mmap mmap; /* MMAP, MMAP2 */
		struct ap_record_lost lost; /* LOST, LOST_SAMPLES */
		struct ap_record_comm comm;
		struct ap_record_task task;         /* FORK, EXIT */
		struct ap_record_throttle throttle; /* THROTTLE, UNTHROTTLE */
		struct ap_record_read read;
		struct ap_sample sample;
		struct ap_record_aux aux;
		struct ap_record_itrace_start itrace_start;
		struct ap_record_switch context_switch; /* SWITCH_CPU_WIDE */
		struct ap_record_namespaces namespaces;
		struct ap_record_ksymbol ksymbol;
		struct ap_record_bpf_event bpf_event;
		struct ap_record_cgroup cgroup;
		struct ap_record_text_poke text_poke;
		struct ap_record_aux_output_hw_id aux_output_hw_id;
		struct ap_record_callchain_deferred callchain_deferred;
	};
};

/*
 * Decodes the record at the beginning of @bytes, which is on a multiple of 8 and of which @len may
 * be read. Fields that a newer kernel has added to a record are skipped, and so are whole records
 * of unknown types. Returns the bytes that the record takes, or
 *   -ENODATA     the record's end is not within @len: there must be more, or the stream was cut
 *   -EBADMSG     this is no record, or not one of this layout; the reason says what does not fit
 *   -EOPNOTSUPP  the layout has bits that this library does not know
 *   -EINVAL      @bytes is not on a multiple of 8
 */
AP_API AP_MUST_CHECK int ap_record_decode(struct ap_record *rec, const void *bytes, size_t len,
					  const struct ap_layout *layout, struct ap_error *err);

/*
 * Which event wrote the record, in a stream of several whose layouts differ: all of them must have
 * PERF_SAMPLE_IDENTIFIER and sample_id_all, which put the id at a fixed place. @len bytes may be
 * read. -ENODATA or -EBADMSG as above; -ENOENT for the types from 64 on, which have none.
 */
AP_API AP_MUST_CHECK int ap_record_event_id(const void *bytes, size_t len, uint64_t *id);

/* "MMAP2" for PERF_RECORD_MMAP2; NULL for a type that this library does not know. */
AP_API const char *ap_record_name(uint32_t type);

AP_END_DECLS

#endif
