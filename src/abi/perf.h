/*
 * PURPOSE: perf_event's shapes as both worlds and both backends use them: <linux/perf_event.h>,
 * plus what is newer than the header of the oldest distribution that we build on. No code.
 *
 * struct pe_attr is struct perf_event_attr as of attr size VER9 with all its bits named; its first
 * bytes are those of every older version, so a pointer may be cast to the system's type as long as
 * `size` tells how much is meant.
 */
#ifndef ABI_PERF_H
#define ABI_PERF_H

#include <linux/perf_event.h>

#include "base/types.h"

/* Sizes by name [SIZE-01..07]. */
#define PE_ATTR_SIZE_VER0 64
#define PE_ATTR_SIZE_VER1 72
#define PE_ATTR_SIZE_VER2 80
#define PE_ATTR_SIZE_VER3 96
#define PE_ATTR_SIZE_VER4 104
#define PE_ATTR_SIZE_VER5 112
#define PE_ATTR_SIZE_VER6 120
#define PE_ATTR_SIZE_VER7 128
#define PE_ATTR_SIZE_VER8 136 /* config3, Linux 6.3 */
#define PE_ATTR_SIZE_VER9 144 /* config4 */

/*
 * attr.type of the PMU "anyperf", which sessions have and no kernel: what the translator counts.
 * attr.config is an enum meter_quantity (abi/meter.h). The kernel numbers its own from 6 on.
 */
#define PE_TYPE_ANYPERF 0x4150
#define PE_TYPE_IBS     0x4151 /* ibs_op, with a model of a machine on AMD's CPUs */

struct pe_attr {
	u32 type;
	u32 size;
	u64 config;
	union {
		u64 sample_period;
		u64 sample_freq;
	};
	u64 sample_type;
	u64 read_format;
	union {
		u64 flags; /* all the bits below at once */
		struct {
			u64 disabled : 1, inherit : 1, pinned : 1, exclusive : 1, exclude_user : 1,
				exclude_kernel : 1, exclude_hv : 1, exclude_idle : 1, mmap : 1,
				comm : 1, freq : 1, inherit_stat : 1, enable_on_exec : 1, task : 1,
				watermark : 1, precise_ip : 2, mmap_data : 1, sample_id_all : 1,
				exclude_host : 1, exclude_guest : 1, exclude_callchain_kernel : 1,
				exclude_callchain_user : 1, mmap2 : 1, comm_exec : 1,
				use_clockid : 1, context_switch : 1, write_backward : 1,
				namespaces : 1, ksymbol : 1, bpf_event : 1, aux_output : 1,
				cgroup : 1, text_poke : 1, build_id : 1, inherit_thread : 1,
				remove_on_exec : 1, sigtrap : 1, reserved_1 : 26;
		};
	};
	union {
		u32 wakeup_events;
		u32 wakeup_watermark;
	};
	u32 bp_type;
	union {
		u64 bp_addr;
		u64 kprobe_func;
		u64 uprobe_path;
		u64 config1;
	};
	union {
		u64 bp_len;
		u64 kprobe_addr;
		u64 probe_offset;
		u64 config2;
	};
	u64 branch_sample_type;
	u64 sample_regs_user;
	u32 sample_stack_user;
	s32 clockid;
	u64 sample_regs_intr;
	u32 aux_watermark;
	u16 sample_max_stack;
	u16 reserved_2;
	u32 aux_sample_size;
	u32 reserved_3; /* newer kernels: aux_action */
	u64 sig_data;
	u64 config3;
	u64 config4;
};

_Static_assert(sizeof(struct pe_attr) == PE_ATTR_SIZE_VER9, "attr layout");
_Static_assert(__builtin_offsetof(struct pe_attr, wakeup_events) == 48, "attr layout");
_Static_assert(__builtin_offsetof(struct pe_attr, config3) == 128, "attr layout");

/* Newer than some system headers. */
#define PE_FORMAT_LOST            (1u << 4)
#define PE_SAMPLE_BRANCH_COUNTERS (1u << 19) /* Linux 6.8 */

#endif
