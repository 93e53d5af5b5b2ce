/*
 * A failure is a failure for those who do not ask for the reason too: each function that takes a
 * struct ap_error, with every input that it refuses, answers the same with and without one, and
 * leaves its result alone. check-headers sees to it that none is left out here.
 */
#include "unit/lib/fake-ring.h"
#include "unit/lib/fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/hw_breakpoint.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/types.h"
#include "lib/spec/spec-priv.h"

static struct ap_error told;

/* @call, in which the reason is `err`. */
#define REFUSED(want, call)                                                                     \
	do {                                                                                    \
		struct ap_error *err = &told;                                                   \
		int with_, without_;                                                            \
                                                                                                \
		memset(err, 0, sizeof(*err));                                                   \
		with_ = (call);                                                                 \
		if (with_ != (want))                                                            \
			TEST_FAIL("%s = %d (%s), expected %d", #call, with_, told.why, (want)); \
		else if (err->code != (want) || !err->why[0])                                   \
			TEST_FAIL("%s: the error says %d: %s", #call, err->code, err->why);     \
		err = NULL;                                                                     \
		without_ = (call);                                                              \
		if (without_ != (want))                                                         \
			TEST_FAIL("%s = %d without a reason, expected %d", #call, without_,     \
				  (want));                                                      \
	} while (0)

/* Results are written on success only. */
#define UNTOUCHED ((void *)&told)

static void refuse_text(const char *machine, const char *text, int want)
{
	struct ap_machine *m = machine_of(machine);
	struct ap_specs *s = UNTOUCHED;
	int before = test_failures;

	REFUSED(want, ap_specs_parse(&s, m, text, err));
	EXPECT(s == UNTOUCHED);
	if (test_failures != before)
		fprintf(stderr, "the text was \"%.200s\" on %s\n", text,
			machine ? machine : "this machine");
	ap_machine_free(m);
}

TEST(descriptions)
{
	static const struct {
		const char *text;
		int want;
	} texts[] = {
		{"", -EINVAL},
		{" ", -EINVAL},
		{",", -EINVAL},
		{"cs,", -EINVAL},
		{"{cs", -EINVAL},
		{"{", -EINVAL},
		{"r11111111111111111", -EINVAL},
		{"cs}", -EINVAL},
		{"{}", -EINVAL},
		{"{cs}x", -EINVAL},
		{"{cs}:?", -EINVAL},
		{"cs{cs}", -EINVAL},
		{"/cs/", -EINVAL},
		{"cpu_core/cs", -EINVAL},
		{"cs:?", -EINVAL},
		{"sched:x:y:z", -EINVAL},
		{"sched:a:b:u", -EINVAL},
		{"cycles:pppp", -EINVAL},
		{"1:99999999999999999999", -EINVAL},
		{"4294967296:1", -EINVAL},
		{"no-such-event", -ENOENT},
		{"no-such-event:u", -ENOENT},
		{"no::such", -ENOENT},
		{"L1-icache-stores", -ENOENT},
		{"sched:no_such_event", -ENOENT},
		{"no_such_system:*", -ENOENT},
		{"nosuch/event=1/", -ENOENT},
		{"cpu_core/nosuch/", -ENOENT},
		{"cpu_core/nosuch=1/", -ENOENT},
		{"cpu_core/event=x/", -EINVAL},
		{"cpu_core/event=0x100/", -EINVAL},
		{"cpu_core/event=99999999999999999999/", -EINVAL},
		{"cpu_core/,/", -EINVAL},
		{"cpu_core/config/", -EINVAL},
		{"cpu_core/period=x/", -EINVAL},
		{"cpu_core/branch_type=x/", -EINVAL},
		{"mem:x", -EINVAL},
		{"mem:0x10/3", -EINVAL},
		{"mem:0x10:q", -EINVAL},
		{"mem:0x10:rx", -EINVAL},
		{"kprobe:+1", -EINVAL},
		{"kprobe:f+x", -EINVAL},
		{"uprobe:/bin/true", -EINVAL},
		{"uprobe:/no/such/file:main", -ENOENT},
		{"uprobe:/dev/null:main", -ENOEXEC},
		{"uprobe:/proc/self/exe:no_such_function", -ENOENT},
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		refuse_text("intel-hybrid", texts[i].text, texts[i].want);
	/* Without a PMU of the CPU, a tracefs, or probes. */
	refuse_text("amd", "sched:sched_switch", -ENOENT);
	refuse_text("no-such-machine", "cpu/cycles/", -ENOENT);
	refuse_text("no-such-machine", "kprobe:f", -ENOENT);
	/* One whose files bound a term, and one that can do nothing of the kind. */
	refuse_text("arm64-biglittle", "armv8_cortex_a720/stall_slot,threshold=256/", -EINVAL);
	refuse_text("arm64-biglittle", "armv8_cortex_a520/stall_slot,threshold=1/", -EINVAL);
}

TEST(more_events_than_there_may_be)
{
	size_t n = AP__MAX_SPECS + 1;
	char *text = malloc(3 * n);

	ASSERT(text);
	for (size_t i = 0; i < n; i++)
		memcpy(text + 3 * i, "cs,", 3);
	text[3 * n - 1] = '\0';
	refuse_text("amd", text, -E2BIG);
	free(text);
}

static void refuse_counters(int want, const char *text, const struct ap_target *target)
{
	struct ap_machine *m = machine_of(NULL);
	struct ap_counters *c = UNTOUCHED;
	struct ap_sampler *sampler = UNTOUCHED;
	struct ap_specs *s = NULL;

	ASSERT(ap_specs_parse(&s, m, text, &told) == 0);
	REFUSED(want, ap_counters_open(&c, m, s, target, NULL, err));
	EXPECT(c == UNTOUCHED);
	REFUSED(want, ap_sampler_open(&sampler, m, s, target, NULL, err));
	EXPECT(sampler == UNTOUCHED);
	ap_specs_free(s);
	ap_machine_free(m);
}

TEST(targets)
{
	struct ap_target t = {.size = sizeof(t)};
	pid_t none = INT32_MAX;

	t.cpus = "x";
	refuse_counters(-EINVAL, "cs:u", &t);
	t.cpus = "1048575";
	refuse_counters(-EINVAL, "cs:u", &t);
	t.cpus = NULL;
	t.cgroup = "/no/such/cgroup";
	refuse_counters(-ENOENT, "cs:u", &t);
	t.cgroup = NULL;
	t.pids = &none;
	t.npids = 1;
	refuse_counters(-ESRCH, "cs:u", &t);
	t.npids = 0;
	t.tids = &none;
	t.ntids = 1;
	refuse_counters(-ESRCH, "cs:u", &t);
	t.ntids = 0;
	refuse_counters(-ENOENT, "1:999:u", NULL);
}

TEST(a_list_without_events)
{
	struct ap_machine *m = machine_of(NULL);
	struct ap_sampler *sampler = UNTOUCHED;
	struct ap_counters *c = UNTOUCHED;
	struct ap_specs none = {0};

	REFUSED(-EINVAL, ap_counters_open(&c, m, &none, NULL, NULL, err));
	REFUSED(-EINVAL, ap_sampler_open(&sampler, m, &none, NULL, NULL, err));
	EXPECT(c == UNTOUCHED);
	EXPECT(sampler == UNTOUCHED);
	ap_machine_free(m);
}

TEST(all_in_one)
{
	struct ap_sampler_opts opts = {.size = sizeof(opts), .period = 1, .freq = 1};
	struct ap_sampler *s = UNTOUCHED;
	struct ap_counters *c = UNTOUCHED;

	REFUSED(-ENOENT, ap_counters_open_text(&c, "no-such-event", err));
	REFUSED(-EINVAL, ap_counters_open_text(&c, "cs,", err));
	REFUSED(-ENOENT, ap_counters_open_text(&c, "1:999:u", err));
	EXPECT(c == UNTOUCHED);
	REFUSED(-ENOENT, ap_sampler_open_text(&s, "no-such-event", NULL, err));
	REFUSED(-EINVAL, ap_sampler_open_text(&s, "cs:u", &opts, err));
	opts = (struct ap_sampler_opts){.size = sizeof(opts),
					.flags = AP_SAMPLER_OVERWRITE | AP_SAMPLER_TASKS};
	REFUSED(-EINVAL, ap_sampler_open_text(&s, "cs:u", &opts, err));
	opts = (struct ap_sampler_opts){.size = sizeof(opts), .pages = 3};
	REFUSED(-EINVAL, ap_sampler_open_text(&s, "cs:u", &opts, err));
	EXPECT(s == UNTOUCHED);
}

static struct pe_attr counting(u32 type, u64 config)
{
	return (struct pe_attr){.type = type,
				.size = sizeof(struct pe_attr),
				.config = config,
				.disabled = 1,
				.exclude_kernel = 1,
				.exclude_hv = 1};
}

static void refuse_open(int want, struct ap_machine *m, struct pe_attr a,
			const struct ap_event_opts *opts)
{
	struct ap_event *e = UNTOUCHED;

	REFUSED(want, ap_event_open(&e, m, (struct perf_event_attr *)&a, opts, err));
	EXPECT(e == UNTOUCHED);
}

TEST(an_event_that_does_not_open)
{
	struct pe_attr cs = counting(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES), a;
	struct ap_event_opts opts = {.size = sizeof(opts)};
	struct ap_place place = {.tid = 0, .cpu = -2};
	struct ap_machine *m = machine_of(NULL);

	opts.place = &place;
	refuse_open(-EINVAL, m, cs, &opts);
	place = (struct ap_place){.tid = INT32_MAX, .cpu = -1};
	refuse_open(-ESRCH, m, cs, &opts);
	place = (struct ap_place){.tid = -1, .cpu = -1};
	refuse_open(-EINVAL, m, cs, &opts);
	opts.place = NULL;
	opts.cgroup = "/no/such/cgroup";
	refuse_open(-ENOENT, m, cs, &opts);
	a = cs;
	a.size = 8;
	refuse_open(-E2BIG, m, a, NULL);
	a = cs;
	a.freq = 1;
	a.sample_period = UINT64_MAX;
	refuse_open(-EINVAL, m, a, NULL);
	refuse_open(-ENOENT, m, counting(PERF_TYPE_SOFTWARE, 999), NULL);
	ap_machine_free(m);
}

TEST(what_is_asked_of_an_event)
{
	struct pe_attr cs = counting(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES);
	struct pe_attr mem = counting(PERF_TYPE_BREAKPOINT, 0), often = cs, inherited = cs;
	struct ap_event *e = NULL, *sampling = NULL, *other = NULL, *breakpoint = NULL;
	struct ap_place cpu = {.tid = 0, .cpu = 0};
	struct ap_event_opts opts = {.size = sizeof(opts), .place = &cpu};
	struct ap_machine *m = machine_of(NULL);
	uint32_t ids[4];
	unsigned int n;

	mem.bp_type = HW_BREAKPOINT_W;
	mem.bp_addr = (u64)(uintptr_t)&told;
	mem.bp_len = HW_BREAKPOINT_LEN_4;
	often.freq = 1;
	often.sample_period = 1;
	inherited.inherit = 1;
	ASSERT(ap_event_open(&e, m, (struct perf_event_attr *)&cs, NULL, &told) == 0);
	ASSERT(ap_event_open(&sampling, m, (struct perf_event_attr *)&often, NULL, &told) == 0);
	ASSERT(ap_event_open(&other, m, (struct perf_event_attr *)&cs, &opts, &told) == 0);

	REFUSED(-EINVAL, ap_event_refresh(e, 0, err));
	REFUSED(-EINVAL, ap_event_refresh(e, 1, err));
	REFUSED(-EINVAL, ap_event_set_period(e, 1, err));
	REFUSED(-EINVAL, ap_event_set_period(sampling, UINT64_MAX, err));
	REFUSED(-EINVAL, ap_event_set_period(sampling, INT32_MAX, err));
	REFUSED(-EINVAL, ap_event_set_filter(e, "x == 1", err));
	REFUSED(-EBADF, ap_event_set_bpf(e, -1, err));
	n = 77;
	REFUSED(-EINVAL, ap_event_query_bpf(e, ids, ARRAY_SIZE(ids), &n, err));
	EXPECT_EQ(n, 77);
	REFUSED(-EOPNOTSUPP, ap_event_modify(e, ap_event_attr(e), err));
	REFUSED(-EINVAL, ap_event_set_output(e, other, err));
	REFUSED(-EINVAL, ap_event_pause_output(e, true, err));
	/* All of the four breakpoint registers may be taken. */
	if (!ap_event_open(&breakpoint, m, (struct perf_event_attr *)&mem, NULL, NULL)) {
		mem.bp_type = 0;
		mem.exclude_user = 1;
		REFUSED(-EINVAL, ap_event_modify(breakpoint, (struct perf_event_attr *)&mem, err));
	}
	ap_event_close(breakpoint);
	ap_event_close(other);
	ap_event_close(sampling);
	ap_event_close(e);
	ASSERT(ap_event_open(&e, m, (struct perf_event_attr *)&inherited, NULL, &told) == 0);
	REFUSED(-EINVAL, ap_event_map_self(e, err));
	ap_event_close(e);
	ap_machine_free(m);
}

static void refuse_map(int want, struct ap_event *e, unsigned int pages)
{
	struct ap_ring_opts opts = {.size = sizeof(opts), .pages = pages};
	struct ap_ring *r = UNTOUCHED;

	REFUSED(want, ap_ring_map(&r, e, &opts, err));
	EXPECT(r == UNTOUCHED);
}

/* The answers differ from call to call where a record is passed over, so it is written again. */
static int next_of_bytes(struct fake *f, struct ap_ring *r, struct ap_event *e,
			 struct ap_error *err)
{
	static const u64 zeros[4];
	struct ap_record rec;

	fake_write_bytes(f, ap_event_fd(e), zeros, sizeof(zeros));
	return ap_ring_next(r, &rec, err);
}

TEST(buffers)
{
	static struct fake fake;
	struct ap_machine *m = fake_machine(&fake);
	struct pe_attr ips = counting(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY), more;
	struct ap_event *e = NULL, *other = NULL;
	struct ap_ring_opts opts = {.size = sizeof(opts), .pages = 1};
	struct ap_ring *r = NULL;

	ips.sample_type = PERF_SAMPLE_IP;
	ips.sample_period = 1;
	more = ips;
	more.sample_type |= PERF_SAMPLE_TIME;
	ASSERT(ap_event_open(&e, m, (struct perf_event_attr *)&ips, NULL, &told) == 0);
	ASSERT(ap_event_open(&other, m, (struct perf_event_attr *)&more, NULL, &told) == 0);
	refuse_map(-EINVAL, e, 3);
	fake.limit = FAKE_PAGE;
	refuse_map(-EPERM, e, 4);
	fake.limit = 0;
	ASSERT(ap_ring_map(&r, e, &opts, &told) == 0);
	refuse_map(-EINVAL, e, 1);
	REFUSED(-EINVAL, ap_ring_add(r, other, err));
	REFUSED(-EINVAL, ap_ring_snapshot(r, err));
	REFUSED(-EBADMSG, next_of_bytes(&fake, r, e, err));
	ap_ring_unmap(r);
	ap_event_close(other);
	ap_event_close(e);
	ap_machine_free(m);
}

static int sampler_next_of_bytes(struct fake *f, struct ap_sampler *s, struct ap_error *err)
{
	static const u64 zeros[4];
	struct ap_record rec;
	int r;

	fake_write_bytes(f, ap_event_fd(ap_counters_event(ap_sampler_counters(s), 0, 0)), zeros,
			 sizeof(zeros));
	r = ap_sampler_next(s, &rec, err);
	/* The round of the last call may have to end first. */
	return r ? r : ap_sampler_next(s, &rec, err);
}

static int keep_all(const void *records, size_t len, void *data)
{
	(void)records;
	(void)len;
	(void)data;
	return 0;
}

static int sampler_drain_of_bytes(struct fake *f, struct ap_sampler *s, struct ap_error *err)
{
	static const u64 zeros[4];

	fake_write_bytes(f, ap_event_fd(ap_counters_event(ap_sampler_counters(s), 0, 0)), zeros,
			 sizeof(zeros));
	return ap_sampler_drain(s, keep_all, NULL, err);
}

TEST(samplers)
{
	struct ap_sampler_opts newest = {.size = sizeof(newest), .flags = AP_SAMPLER_OVERWRITE};
	static struct fake fake;
	struct ap_machine *m = fake_machine(&fake);
	struct ap_sampler *s = NULL;
	struct ap_specs *specs;

	ASSERT(ap_specs_parse(&specs, m, "page-faults:u", &told) == 0);
	ASSERT(ap_sampler_open(&s, m, specs, NULL, NULL, &told) == 0);
	REFUSED(-EINVAL, ap_sampler_snapshot(s, err));
	REFUSED(-EBADMSG, sampler_next_of_bytes(&fake, s, err));
	REFUSED(-EBADMSG, sampler_drain_of_bytes(&fake, s, err));
	ap_sampler_close(s);
	ASSERT(ap_sampler_open(&s, m, specs, NULL, &newest, &told) == 0);
	REFUSED(-EINVAL, ap_sampler_drain(s, keep_all, NULL, err));
	ap_sampler_close(s);
	ap_specs_free(specs);
	ap_machine_free(m);
}

TEST(records)
{
	static const u64 no_record[2];
	const struct ap_layout unknown = {.sample_type = UINT64_MAX}, plain = {0};
	struct perf_event_header h = {.type = PERF_RECORD_SAMPLE, .size = 16};
	u64 bytes[2] = {0};
	struct ap_record rec;

	memcpy(bytes, &h, sizeof(h));
	REFUSED(-EINVAL, ap_record_decode(&rec, (const char *)no_record + 4, 8, &plain, err));
	REFUSED(-ENODATA, ap_record_decode(&rec, no_record, 4, &plain, err));
	REFUSED(-EBADMSG, ap_record_decode(&rec, no_record, 16, &plain, err));
	REFUSED(-ENODATA, ap_record_decode(&rec, bytes, 8, &plain, err));
	REFUSED(-EOPNOTSUPP, ap_record_decode(&rec, bytes, 16, &unknown, err));
}

static int run_and_wait(struct ap_machine *m, const char *program, struct ap_error *err)
{
	char *argv[] = {(char *)program, NULL};
	struct ap_command *c;
	int r;

	if (ap_command_new(&c, m, argv, NULL, &told))
		return 0;
	r = ap_command_wait(c, 0, NULL, err);
	ap_command_free(c);
	return r;
}

TEST(commands)
{
	char program[] = "true", *none[] = {NULL}, *yes[] = {program, NULL};
	struct ap_target target = {.size = sizeof(target)};
	struct ap_machine *m = machine_of(NULL);
	struct ap_command *c = UNTOUCHED;

	REFUSED(-EINVAL, ap_command_new(&c, m, none, NULL, err));
	EXPECT(c == UNTOUCHED);
	REFUSED(-ENOENT, run_and_wait(m, "/no/such/program", err));
	REFUSED(-EACCES, run_and_wait(m, "/", err));
	ASSERT(ap_command_new(&c, m, yes, NULL, &told) == 0);
	EXPECT_EQ(ap_command_wait(c, 0, NULL, NULL), 1);
	REFUSED(-ECHILD, ap_command_wait(c, 0, NULL, err));
	target.command = c;
	refuse_counters(-ESRCH, "cs:u", &target);
	ap_command_free(c);
	ap_machine_free(m);
}

/* A flag that there is not yet is refused wherever flags can be given. */
TEST(flags_of_a_later_library)
{
	struct ap_open_opts open = {.size = sizeof(open), .flags = 1u << 31};
	struct ap_sampler_opts sampling = {.size = sizeof(sampling), .flags = 1u << 31};
	struct ap_ring_opts ring = {.size = sizeof(ring), .flags = 1u << 31};
	struct ap_virtual_opts virtual_pmu = {.size = sizeof(virtual_pmu), .flags = 1u << 31};
	struct ap_machine_opts opts = {.size = sizeof(opts), .virtual_pmu = &virtual_pmu};
	struct ap_machine *m = machine_of(NULL), *other = UNTOUCHED;
	struct pe_attr cs = counting(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES);
	char program[] = "true", *yes[] = {program, NULL};
	struct ap_counters *counters = UNTOUCHED;
	struct ap_sampler *sampler = UNTOUCHED;
	struct ap_ring *mapped = UNTOUCHED;
	struct ap_command *c = NULL;
	struct ap_event *e = NULL;
	struct ap_specs *specs;

	ASSERT(ap_specs_parse(&specs, m, "cs:u", &told) == 0);
	ASSERT(ap_event_open(&e, m, (struct perf_event_attr *)&cs, NULL, &told) == 0);
	ASSERT(ap_command_new(&c, m, yes, NULL, &told) == 0);
	REFUSED(-EINVAL, ap_counters_open(&counters, m, specs, NULL, &open, err));
	REFUSED(-EINVAL, ap_sampler_open(&sampler, m, specs, NULL, &sampling, err));
	sampling.flags = 0;
	sampling.open_flags = 1u << 31;
	REFUSED(-EINVAL, ap_sampler_open(&sampler, m, specs, NULL, &sampling, err));
	REFUSED(-EINVAL, ap_ring_map(&mapped, e, &ring, err));
	REFUSED(-EINVAL, ap_command_wait(c, 1u << 31, NULL, err));
	EXPECT_STREQ(told.remedy, "this is libanyperf 0.1.0");
	EXPECT_EQ(ap_machine_new(&other, &opts), -EINVAL);
	virtual_pmu.flags = 0;
	virtual_pmu.cpu_model = "no-such-cpu";
	EXPECT_EQ(ap_machine_new(&other, &opts), -EINVAL);
	virtual_pmu.cpu_model = NULL;
	opts.pmu = AP_PMU_VIRTUAL + 1;
	EXPECT_EQ(ap_machine_new(&other, &opts), -EINVAL);
	EXPECT(counters == UNTOUCHED && sampler == UNTOUCHED && mapped == UNTOUCHED &&
	       other == UNTOUCHED);
	ap_command_free(c);
	ap_event_close(e);
	ap_specs_free(specs);
	ap_machine_free(m);
}

/* Without descriptors nobody knows whether a tracepoint is there. */
TEST(tracepoints_without_descriptors)
{
	struct ap_machine *m = machine_of("intel-hybrid");
	struct ap_specs *s = UNTOUCHED;
	struct rlimit before, none;

	ASSERT(!getrlimit(RLIMIT_NOFILE, &before));
	none = (struct rlimit){.rlim_cur = 0, .rlim_max = before.rlim_max};
	ASSERT(!setrlimit(RLIMIT_NOFILE, &none));
	REFUSED(-EMFILE, ap_specs_parse(&s, m, "sched:sched_switch", err));
	EXPECT_EQ(told.cause, AP_CAUSE_FD_LIMIT);
	REFUSED(-EMFILE, ap_specs_parse(&s, m, "sched:*", err));
	EXPECT_EQ(told.cause, AP_CAUSE_FD_LIMIT);
	ASSERT(!setrlimit(RLIMIT_NOFILE, &before));
	EXPECT(s == UNTOUCHED);
	ap_machine_free(m);
}

static int any_pmu(const struct ap_pmu *pmu, void *data)
{
	(void)pmu;
	(void)data;
	return 0;
}

static int any_event(const struct ap_listed *event, void *data)
{
	(void)event;
	(void)data;
	return -EPIPE;
}

TEST(machines)
{
	struct ap_virtual_opts elsewhere = {.size = sizeof(elsewhere), .session = "/no/such/thing"};
	struct ap_machine_opts opts = {
		.size = sizeof(opts), .pmu = AP_PMU_VIRTUAL, .virtual_pmu = &elsewhere};
	struct ap_machine *nowhere = machine_of("no-such-machine"), *m = machine_of(NULL);
	struct ap_machine *virtual_one;

	REFUSED(-ENOENT, ap_pmus_each(nowhere, any_pmu, NULL, err));
	REFUSED(-ENOENT, ap_event_probe(m, "no-such-event", err));
	REFUSED(-EINVAL, ap_event_probe(m, "", err));
	REFUSED(-ENOENT, ap_event_probe(m, "1:999:u", err));
	/* What the callback says comes back as it is; it is not the library's refusal. */
	EXPECT_EQ(ap_events_each(m, NULL, any_event, NULL, &told), -EPIPE);
	EXPECT_EQ(ap_events_each(m, NULL, any_event, NULL, NULL), -EPIPE);
	/* A path is no session's name; it is refused here, or when the session is wanted. */
	if (!ap_machine_new(&virtual_one, &opts)) {
		EXPECT(ap_machine_choose(virtual_one, "instructions:u", &told) < 0);
		REFUSED(told.code, ap_machine_choose(virtual_one, "instructions:u", err));
		ap_machine_free(virtual_one);
	}
	ap_machine_free(nowhere);
	ap_machine_free(m);
}
