/*
 * Opening on kernels that are older than the attr, played by a backend that checks attrs as they
 * do; and weak groups, user-mode fallback and self reads where a kernel would be needed that is not
 * here.
 */
#include "unit/lib/fixture.h"

#include <errno.h>

#include "lib/machine/machine-priv.h"

struct old_kernel {
	u32 size;              /* of the attr that it knows */
	u64 read_format;       /* bits that it knows */
	u64 bits;              /* of attr.flags that it knows */
	u64 open_flags;        /* it knows */
	unsigned int slots;    /* events that a group may have, 0: any number */
	bool no_kernel;        /* refuses exclude_kernel == 0 with EACCES */
	bool no_pmu;           /* and then type 0 with ENOENT */
	bool no_inherit_group; /* refuses inherit with PERF_FORMAT_GROUP */
	bool no_long_access; /* refuses arm64's config1 of 64 bits for user mode with EOPNOTSUPP */
	unsigned int opens, granted, closes, members;
	struct pe_attr last; /* accepted */
	u64 last_flags;
	int last_leader;
};

static int old_open(void *be, struct pe_attr *attr, pid_t pid, int cpu, int leader, u64 flags)
{
	struct old_kernel *k = be;
	const u8 *bytes = (const u8 *)attr;

	(void)pid;
	(void)cpu;
	k->opens++;
	if (flags & ~k->open_flags)
		return -EINVAL;
	for (u32 i = k->size; i < attr->size; i++)
		if (bytes[i]) {
			attr->size = k->size;
			return -E2BIG;
		}
	if (attr->read_format & ~k->read_format || attr->flags & ~k->bits)
		return -EINVAL;
	if (k->no_kernel && !attr->exclude_kernel)
		return -EACCES;
	if (k->no_pmu && attr->type == PERF_TYPE_HARDWARE)
		return -ENOENT;
	if (k->no_inherit_group && attr->inherit && (attr->read_format & PERF_FORMAT_GROUP))
		return -EINVAL;
	if (k->no_long_access && (attr->config1 & 3) == 3)
		return -EOPNOTSUPP;
	if (leader < 0)
		k->members = 0;
	if (k->slots && k->members == k->slots)
		return -EINVAL;
	k->members++;
	k->granted++;
	k->last = *attr;
	k->last_flags = flags;
	k->last_leader = leader;
	return 100 + (int)k->opens;
}

static int old_close(void *be, int handle)
{
	struct old_kernel *k = be;

	(void)handle;
	k->closes++;
	return 0;
}

static int old_ioctl(void *be, int handle, unsigned long request, unsigned long arg)
{
	(void)be;
	(void)handle;
	(void)request;
	(void)arg;
	return 0;
}

static int old_mmap(void *be, int handle, size_t len, u64 offset, bool writable, void **out)
{
	static u64 page[512];

	(void)be;
	(void)handle;
	(void)len;
	(void)offset;
	(void)writable;
	*out = page;
	return 0;
}

static int old_munmap(void *be, void *base, size_t len)
{
	(void)be;
	(void)base;
	(void)len;
	return 0;
}

static const struct ap__backend_ops old_ops = {
	.name = "old",
	.open = old_open,
	.close = old_close,
	.ioctl = old_ioctl,
	.mmap = old_mmap,
	.munmap = old_munmap,
};

static struct ap_error err;

static struct ap_machine *machine_on(struct old_kernel *k)
{
	struct ap_machine *m = machine_of("amd");

	ap__machine_set_backend(m, &old_ops, k);
	return m;
}

#define EVERYTHING .size = 136, .read_format = 31, .bits = ~0ull, .open_flags = 15

static int open_one(struct old_kernel *k, const struct pe_attr *attr, struct ap_event **e,
		    struct ap_machine **m)
{
	*m = machine_on(k);
	*e = NULL;
	memset(&err, 0, sizeof(err));
	return ap_event_open(e, *m, (const struct perf_event_attr *)attr, NULL, &err);
}

TEST(the_smallest_size_is_sent)
{
	static const struct {
		struct pe_attr attr;
		u32 size;
	} cases[] = {
		{{.type = 1, .size = PE_ATTR_SIZE_VER9}, PE_ATTR_SIZE_VER0},
		{{.type = 1, .size = PE_ATTR_SIZE_VER9, .config2 = 1}, PE_ATTR_SIZE_VER1},
		{{.type = 1, .size = PE_ATTR_SIZE_VER9, .branch_sample_type = 1},
		 PE_ATTR_SIZE_VER2},
		{{.type = 1, .size = PE_ATTR_SIZE_VER9, .sample_stack_user = 8}, PE_ATTR_SIZE_VER3},
		{{.type = 1, .size = PE_ATTR_SIZE_VER9, .sample_regs_intr = 1}, PE_ATTR_SIZE_VER4},
		{{.type = 1, .size = PE_ATTR_SIZE_VER9, .aux_watermark = 1}, PE_ATTR_SIZE_VER5},
		{{.type = 1, .size = PE_ATTR_SIZE_VER9, .aux_sample_size = 1}, PE_ATTR_SIZE_VER6},
		{{.type = 1, .size = PE_ATTR_SIZE_VER9, .sig_data = 1}, PE_ATTR_SIZE_VER7},
		{{.type = 1, .size = PE_ATTR_SIZE_VER9, .config3 = 1}, PE_ATTR_SIZE_VER8},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct old_kernel k = {EVERYTHING};
		struct ap_machine *m;
		struct ap_event *e;

		EXPECT_EQ(open_one(&k, &cases[i].attr, &e, &m), 0);
		EXPECT_EQ(k.last.size, cases[i].size);
		ap_event_close(e);
		EXPECT_EQ(k.closes, 1);
		ap_machine_free(m);
	}
}

TEST(every_old_kernel_takes_an_old_attr)
{
	static const u32 sizes[] = {64, 72, 80, 96, 104, 112, 120, 128, 136};

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct old_kernel k = {EVERYTHING};
		struct pe_attr attr = {.type = 1, .size = sizeof(attr)};
		struct ap_machine *m;
		struct ap_event *e;

		k.size = sizes[i];
		EXPECT_EQ(open_one(&k, &attr, &e, &m), 0);
		EXPECT_EQ(k.opens, 1);
		ap_event_close(e);
		ap_machine_free(m);
	}
}

TEST(a_needed_field_that_is_unknown_is_named)
{
	struct old_kernel k = {EVERYTHING};
	struct pe_attr attr = {.type = 1, .size = sizeof(attr), .config3 = 5};
	struct ap_machine *m;
	struct ap_event *e;

	k.size = 128;
	EXPECT_EQ(open_one(&k, &attr, &e, &m), -E2BIG);
	EXPECT_EQ(err.cause, AP_CAUSE_KERNEL_OLD);
	EXPECT_CONTAINS(err.why, "field config3");
	EXPECT_CONTAINS(err.why, "128 of 136");
	ap_machine_free(m);
	attr = (struct pe_attr){.type = 1, .size = sizeof(attr), .sample_max_stack = 5};
	k.size = PE_ATTR_SIZE_VER4;
	EXPECT_EQ(open_one(&k, &attr, &e, &m), -E2BIG);
	EXPECT_CONTAINS(err.why, "sample_max_stack");
	ap_machine_free(m);
}

TEST(bad_sizes_are_not_sent)
{
	struct old_kernel k = {EVERYTHING};
	struct pe_attr attr = {.type = 1, .size = 63};
	struct ap_machine *m;
	struct ap_event *e;

	EXPECT_EQ(open_one(&k, &attr, &e, &m), -E2BIG);
	EXPECT_EQ(k.opens, 0);
	ap_machine_free(m);
	attr.size = 0; /* means VER0 [SIZE-08] */
	EXPECT_EQ(open_one(&k, &attr, &e, &m), 0);
	EXPECT_EQ(k.last.size, 64);
	ap_event_close(e);
	ap_machine_free(m);
}

TEST(what_is_not_essential_is_dropped_and_only_that)
{
	struct old_kernel k = {EVERYTHING};
	struct pe_attr attr = {.type = 1,
			       .size = sizeof(attr),
			       .read_format = 3 | PE_FORMAT_LOST,
			       .mmap = 1,
			       .mmap2 = 1,
			       .ksymbol = 1,
			       .exclude_guest = 1};
	struct ap_machine *m;
	struct ap_event *e, *second;

	/* 5.x: no LOST. */
	k.read_format = 15;
	EXPECT_EQ(open_one(&k, &attr, &e, &m), 0);
	EXPECT_EQ(k.last.read_format, 3);
	EXPECT(k.last.mmap2 && k.last.ksymbol && k.last.exclude_guest);
	EXPECT_EQ(ap_event_attr(e)->read_format, 3);
	/* The second event does not try again. */
	k.opens = 0;
	EXPECT_EQ(ap_event_open(&second, m, (struct perf_event_attr *)&attr, NULL, &err), 0);
	EXPECT_EQ(k.opens, 1);
	ap_event_close(second);
	ap_event_close(e);
	ap_machine_free(m);

	/* 3.10: none of LOST, ksymbol, mmap2, CLOEXEC. */
	k = (struct old_kernel){EVERYTHING, .slots = 0};
	k.read_format = 15;
	k.bits = (1ull << 23) - 1;
	k.open_flags = 7;
	EXPECT_EQ(open_one(&k, &attr, &e, &m), 0);
	EXPECT_EQ(k.last.read_format, 3);
	EXPECT(!k.last.mmap2 && !k.last.ksymbol && k.last.mmap && k.last.exclude_guest);
	EXPECT_EQ(k.last_flags, 0);
	ap_event_close(e);
	EXPECT_EQ(k.closes, k.granted); /* also what trials opened */
	ap_machine_free(m);

	/* An essential bit stays, and its absence is an error. */
	attr = (struct pe_attr){.type = 1, .size = sizeof(attr), .write_backward = 1};
	k = (struct old_kernel){EVERYTHING};
	k.bits = (1ull << 27) - 1;
	EXPECT_EQ(open_one(&k, &attr, &e, &m), -EINVAL);
	ap_machine_free(m);
	/* To count guests only is what was asked for, so exclude_host is never dropped. */
	attr = (struct pe_attr){
		.type = 1, .size = sizeof(attr), .exclude_host = 1, .exclude_guest = 1};
	k = (struct old_kernel){EVERYTHING};
	k.bits = (1ull << 19) - 1;
	EXPECT_EQ(open_one(&k, &attr, &e, &m), -EINVAL);
	ap_machine_free(m);
	k.bits = (1ull << 20) - 1;
	EXPECT_EQ(open_one(&k, &attr, &e, &m), -EINVAL);
	ap_machine_free(m);
}

static int open_text(struct old_kernel *k, const char *text, unsigned int flags,
		     struct ap_machine **m, struct ap_specs **s, struct ap_counters **c)
{
	struct ap_open_opts opts = {.size = sizeof(opts), .flags = flags};
	int r;

	*m = machine_on(k);
	*s = NULL;
	*c = NULL;
	r = ap_specs_parse(s, *m, text, &err);
	return r ? r : ap_counters_open(c, *m, *s, NULL, &opts, &err);
}

TEST(a_weak_group_falls_apart_when_it_does_not_fit)
{
	struct old_kernel k = {EVERYTHING, .slots = 2};
	struct ap_counters *c;
	struct ap_machine *m;
	struct ap_specs *s;

	EXPECT_EQ(open_text(&k, "{cycles,instructions,branches}:W", 0, &m, &s, &c), 0);
	EXPECT_EQ(k.last_leader, -1);
	EXPECT(!(k.last.read_format & PERF_FORMAT_GROUP));
	EXPECT(k.last.disabled);
	ap_counters_close(c);
	EXPECT_EQ(k.closes, k.granted); /* also those of the group that failed */
	ap_specs_free(s);
	ap_machine_free(m);
	k = (struct old_kernel){EVERYTHING, .slots = 2};
	EXPECT_EQ(open_text(&k, "{cycles,instructions,branches}", 0, &m, &s, &c), -EINVAL);
	EXPECT_EQ(err.cause, AP_CAUSE_GROUP);
	EXPECT_CONTAINS(err.remedy, ":W");
	EXPECT_EQ(k.closes, k.granted);
	ap_specs_free(s);
	ap_machine_free(m);
}

TEST(user_mode_is_the_fallback_if_asked_for)
{
	struct ap_open_opts opts = {.size = sizeof(opts), .flags = AP_OPEN_USER_FALLBACK};
	struct old_kernel k = {EVERYTHING, .no_kernel = true};
	struct ap_counters *c;
	struct ap_machine *m;
	struct ap_specs *s;

	EXPECT_EQ(open_text(&k, "cycles", AP_OPEN_USER_FALLBACK, &m, &s, &c), 0);
	EXPECT(ap_counters_user_only(c, 0));
	EXPECT(k.last.exclude_kernel && k.last.exclude_hv);
	ap_counters_close(c);
	ap_specs_free(s);
	ap_machine_free(m);
	EXPECT_EQ(open_text(&k, "cycles", 0, &m, &s, &c), -EACCES);
	ap_specs_free(s);
	ap_machine_free(m);
	/* The user said kernel: the fallback would not be what he wants. */
	EXPECT_EQ(open_text(&k, "cycles:k", AP_OPEN_USER_FALLBACK, &m, &s, &c), -EACCES);
	ap_specs_free(s);
	ap_machine_free(m);
	/* Nor if he said it by the attr, as --all-kernel does: what is left would count nothing. */
	m = machine_on(&k);
	EXPECT_EQ(ap_specs_parse(&s, m, "cycles", &err), 0);
	ap_specs_at(s, 0)->attr->exclude_user = 1;
	EXPECT_EQ(ap_counters_open(&c, m, s, NULL, &opts, &err), -EACCES);
	ap_specs_free(s);
	ap_machine_free(m);
}

/* The kernel checks rights before it looks for the PMU; what helps nobody is not to be shown. */
TEST(the_fallback_failing_for_its_own_reason_is_told)
{
	struct old_kernel k = {EVERYTHING, .no_kernel = true, .no_pmu = true};
	struct ap_counters *c;
	struct ap_machine *m;
	struct ap_specs *s;

	EXPECT_EQ(open_text(&k, "cycles", AP_OPEN_USER_FALLBACK, &m, &s, &c), -ENOENT);
	EXPECT_EQ(err.cause, AP_CAUSE_UNSUPPORTED);
	ap_specs_free(s);
	ap_machine_free(m);
}

TEST(groups_that_cannot_be_inherited_are_read_singly)
{
	struct old_kernel k = {EVERYTHING, .no_inherit_group = true};
	struct ap_counters *c;
	struct ap_machine *m;
	struct ap_specs *s;

	EXPECT_EQ(open_text(&k, "{cycles,instructions}", AP_OPEN_INHERIT, &m, &s, &c), 0);
	EXPECT(k.last.inherit);
	EXPECT_EQ(k.last.read_format, 3);
	EXPECT(k.last_leader >= 0);
	ap_counters_close(c);
	ap_specs_free(s);
	ap_machine_free(m);
}

TEST(attrs_of_stat)
{
	struct old_kernel k = {EVERYTHING};
	struct ap_counters *c;
	struct ap_machine *m;
	struct ap_specs *s;

	/* What perf stat asks for [STAT-02, STAT-04], and that exec switches it on [STAT-03]. */
	EXPECT_EQ(open_text(&k, "cycles", AP_OPEN_INHERIT | AP_OPEN_ON_EXEC, &m, &s, &c), 0);
	EXPECT(k.last.disabled && k.last.inherit && k.last.enable_on_exec && k.last.exclude_guest);
	EXPECT_EQ(k.last.read_format, 3);
	EXPECT_EQ(k.last.sample_period, 0);
	EXPECT_EQ(k.last_flags, PERF_FLAG_FD_CLOEXEC);
	ap_counters_close(c);
	ap_specs_free(s);
	ap_machine_free(m);
	EXPECT_EQ(open_text(&k, "{cycles,instructions}", AP_OPEN_ON_EXEC, &m, &s, &c), 0);
	EXPECT(!k.last.disabled && !k.last.enable_on_exec);
	EXPECT_EQ(k.last.read_format, 15);
	ap_counters_close(c);
	ap_specs_free(s);
	ap_machine_free(m);
	EXPECT_EQ(open_text(&k, "{cycles:D,instructions}", AP_OPEN_PINNED, &m, &s, &c), 0);
	EXPECT(!k.last.pinned);
	ap_counters_close(c);
	ap_specs_free(s);
	ap_machine_free(m);
}

/* [FILE-14] */
TEST(hybrid_events_open_only_on_their_cpus)
{
	struct old_kernel k = {EVERYTHING};
	struct ap_machine *m = machine_of("intel-hybrid");
	struct ap_target t = {.size = sizeof(t), .cpus = "14-17"};
	struct ap_counters *c;
	struct ap_specs *s;

	ap__machine_set_backend(m, &old_ops, &k);
	ASSERT(ap_specs_parse(&s, m, "cycles,cs", &err) == 0);
	ASSERT(ap_counters_open(&c, m, s, &t, NULL, &err) == 0);
	EXPECT_EQ(ap_counters_places(c), 4);
	EXPECT_EQ(k.opens, 2 + 2 + 4);
	EXPECT(ap_counters_event(c, 0, 0) && !ap_counters_event(c, 0, 2));
	EXPECT(!ap_counters_event(c, 1, 0) && ap_counters_event(c, 1, 3));
	ap_counters_close(c);
	ap_specs_free(s);
	/* All of them, from the tree; and an event that has no CPU among those asked for. */
	t.cpus = "all";
	ASSERT(ap_specs_parse(&s, m, "cs", &err) == 0);
	ASSERT(ap_counters_open(&c, m, s, &t, NULL, &err) == 0);
	EXPECT_EQ(ap_counters_places(c), 24);
	ap_counters_close(c);
	ap_specs_free(s);
	t.cpus = "3";
	ASSERT(ap_specs_parse(&s, m, "energy-pkg", &err) == 0);
	EXPECT_EQ(ap_counters_open(&c, m, s, &t, NULL, &err), -EINVAL);
	EXPECT_EQ(err.cause, AP_CAUSE_CPU);
	EXPECT_CONTAINS(err.why, "counts on the CPUs 0 only");
	EXPECT_EQ(ap_counters_open(&c, m, s, NULL, NULL, &err), -EINVAL);
	EXPECT_CONTAINS(err.why, "whole CPUs, not tasks");
	ap_specs_free(s);
	ap_machine_free(m);
}

/* config1 of the only event of @text. */
static u64 asked_of(const char *fixture, const char *text, unsigned int flags,
		    const struct ap_target *target, struct old_kernel *k)
{
	struct ap_open_opts opts = {.size = sizeof(opts), .flags = flags};
	struct ap_machine *m = machine_of(fixture);
	struct ap_counters *c;
	struct ap_specs *s;

	ap__machine_set_backend(m, &old_ops, k);
	if (ap_specs_parse(&s, m, text, &err) || ap_counters_open(&c, m, s, target, &opts, &err)) {
		TEST_FAIL("%s: %s", text, err.why);
		return ~0ULL;
	}
	ap_counters_close(c);
	ap_specs_free(s);
	ap_machine_free(m);
	return k->last.config1;
}

/* [ARM-13, ARM-16, ARM-18] */
TEST(self_reads_ask_for_user_access)
{
	struct ap_target cpu = {.size = sizeof(cpu), .cpus = "0"};
	struct old_kernel k = {EVERYTHING, .no_long_access = true};

	EXPECT_EQ(asked_of("arm64", "instructions:u", AP_OPEN_SELF_READ, NULL, &k), 2);
	EXPECT_EQ(asked_of("arm64", "L1-dcache-loads:u", AP_OPEN_SELF_READ, NULL, &k), 2);
	EXPECT_EQ(asked_of("arm64", "r8:u", AP_OPEN_SELF_READ, NULL, &k), 2);
	EXPECT_EQ(asked_of("arm64", "inst_retired:u", AP_OPEN_SELF_READ, NULL, &k), 2);
	EXPECT_EQ(asked_of("arm64", "instructions:u", AP_OPEN_PINNED, NULL, &k), 0);
	EXPECT_EQ(asked_of("arm64", "cs:u", AP_OPEN_SELF_READ, NULL, &k), 0);
	EXPECT_EQ(asked_of("arm64", "instructions:u", AP_OPEN_SELF_READ, &cpu, &k), 0);
	EXPECT_EQ(
		asked_of("arm64", "instructions:u", AP_OPEN_SELF_READ | AP_OPEN_INHERIT, NULL, &k),
		0);
	EXPECT_EQ(
		asked_of("arm64", "instructions:u", AP_OPEN_SELF_READ | AP_OPEN_AS_GIVEN, NULL, &k),
		0);
	/* Two counters of 32 bits are not for user mode; the event counts without. */
	EXPECT_EQ(asked_of("arm64", "armv8_pmuv3_0/inst_retired,long=1/u", AP_OPEN_SELF_READ, NULL,
			   &k),
		  1);
	/* By name alone where cores differ; elsewhere there is nothing to ask for. */
	EXPECT_EQ(asked_of("arm64-biglittle", "armv8_cortex_a720/inst_retired/u", AP_OPEN_SELF_READ,
			   NULL, &k),
		  0);
	EXPECT_EQ(asked_of("arm64-biglittle", "armv8_cortex_a720/inst_retired,rdpmc=1/u",
			   AP_OPEN_SELF_READ, NULL, &k),
		  2);
	EXPECT_EQ(asked_of("amd", "instructions:u", AP_OPEN_SELF_READ, NULL, &k), 0);
}
