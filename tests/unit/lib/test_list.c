/* Enumerating PMUs and events, and the facts for the doctor, on fixtures and on this machine. */
#include "unit/lib/fixture.h"

#include <errno.h>
#include <pthread.h>

struct found {
	int n, kinds;
	const char *look_for; /* name */
	char desc[128], encoding[128], unit[32], pmu[64];
	char last[128];
	bool unsorted;
};

static int note(const struct ap_listed *e, void *data)
{
	struct found *f = data;

	f->n++;
	f->kinds |= (int)e->kind;
	EXPECT(e->name[0] && e->desc[0] && e->alias && e->encoding && e->unit && e->pmu);
	if (e->kind == AP_KIND_PMU && f->last[0] && strcmp(f->last, e->pmu) > 0)
		f->unsorted = true;
	if (e->kind == AP_KIND_PMU)
		snprintf(f->last, sizeof(f->last), "%s", e->pmu);
	if (f->look_for && strcmp(e->name, f->look_for) == 0) {
		snprintf(f->desc, sizeof(f->desc), "%s", e->desc);
		snprintf(f->encoding, sizeof(f->encoding), "%s", e->encoding);
		snprintf(f->unit, sizeof(f->unit), "%s", e->unit);
		snprintf(f->pmu, sizeof(f->pmu), "%s", e->pmu);
	}
	return 0;
}

static int list(const char *machine, unsigned int kinds, const char *glob, struct found *f)
{
	struct ap_list_opts opts = {.size = sizeof(opts), .kinds = kinds, .glob = glob};
	struct ap_machine *m = machine_of(machine);
	int r = ap_events_each(m, &opts, note, f, NULL);

	ap_machine_free(m);
	return r;
}

TEST(all_kinds_of_events)
{
	struct found f = {.look_for = "power/energy-pkg/"};

	EXPECT_EQ(list("intel-hybrid", 0, NULL, &f), 0);
	EXPECT_EQ(f.kinds, AP_KIND_ALL & ~AP_KIND_PFM);
	EXPECT_STREQ(f.unit, "Joules");
	EXPECT_STREQ(f.pmu, "power");
	EXPECT_STREQ(f.encoding, "power/event=0x02/");
	EXPECT(!f.unsorted);
	f = (struct found){.look_for = "sched:sched_switch"};
	EXPECT_EQ(list("intel-hybrid", AP_KIND_TRACEPOINT, NULL, &f), 0);
	EXPECT_EQ(f.n, 7);
	EXPECT_STREQ(f.encoding, "type=2 config=0x13a");
	f = (struct found){.look_for = "LLC-stores"};
	EXPECT_EQ(list("amd", AP_KIND_CACHE, NULL, &f), 0);
	EXPECT_STREQ(f.encoding, "type=3 config=0x102");
	EXPECT_STREQ(f.desc, "Writes of the last level cache");
}

TEST(globs_select_by_name_and_alias)
{
	struct found f = {0};

	EXPECT_EQ(list("amd", 0, "cs", &f), 0);
	EXPECT_EQ(f.n, 1);
	f = (struct found){0};
	EXPECT_EQ(list("amd", 0, "*FAULTS", &f), 0);
	EXPECT_EQ(f.n, 5);
	f = (struct found){0};
	EXPECT_EQ(list("intel-hybrid", 0, "sched:*", &f), 0);
	EXPECT_EQ(f.n, 3);
	f = (struct found){0};
	EXPECT_EQ(list("amd", 0, "nothing*", &f), 0);
	EXPECT_EQ(f.n, 0);
}

static int parse_it(const struct ap_listed *e, void *data)
{
	struct ap_specs *s;
	struct ap_error err;
	int *n = data;

	if (e->kind == AP_KIND_FORM)
		return 0;
	/* The event that takes a parameter says so. */
	if (ap_specs_parse(&s, *(struct ap_machine **)(n + 2), e->name, &err)) {
		EXPECT_CONTAINS(err.why, "needs a value");
		return 0;
	}
	n[0]++;
	ap_specs_free(s);
	if (e->alias[0]) {
		EXPECT_EQ(ap_specs_parse(&s, *(struct ap_machine **)(n + 2), e->alias, &err), 0);
		ap_specs_free(s);
	}
	return 0;
}

TEST(what_is_listed_can_be_parsed)
{
	static const char *const machines[] = {"intel-hybrid", "amd", "arm64-biglittle"};

	for (size_t i = 0; i < ARRAY_SIZE(machines); i++) {
		struct {
			int n, pad;
			struct ap_machine *m;
		} arg = {.m = machine_of(machines[i])};

		EXPECT_EQ(ap_events_each(arg.m, NULL, parse_it, &arg, NULL), 0);
		EXPECT(arg.n > 60);
		ap_machine_free(arg.m);
	}
}

static int stop(const struct ap_listed *e, void *data)
{
	(void)e;
	(*(int *)data)++;
	return 42;
}

TEST(a_callback_can_end_it)
{
	struct ap_machine *m = machine_of("amd");
	int calls = 0;

	EXPECT_EQ(ap_events_each(m, NULL, stop, &calls, NULL), 42);
	EXPECT_EQ(calls, 1);
	ap_machine_free(m);
}

static int count_pmu(const struct ap_pmu *pmu, void *data)
{
	int *n = data;

	n[0]++;
	n[1] += pmu->core;
	if (strcmp(pmu->name, "cpu_core") == 0) {
		EXPECT_EQ(pmu->type, 4);
		EXPECT_STREQ(pmu->cpus, "0-15");
		EXPECT_STREQ(pmu->formats[0], "cmask config:24-31");
		EXPECT_STREQ(pmu->caps[1], "max_precise 3");
		EXPECT(pmu->caps[3] == NULL);
	}
	return 0;
}

TEST(pmus)
{
	struct ap_machine *m = machine_of("intel-hybrid");
	int n[2] = {0};
	struct ap_error err;

	EXPECT_EQ(ap_pmus_each(m, count_pmu, n, &err), 0);
	EXPECT_EQ(n[0], 13);
	EXPECT_EQ(n[1], 2);
	ap_machine_free(m);
	m = machine_of("no-such-machine");
	EXPECT_EQ(ap_pmus_each(m, count_pmu, n, &err), -ENOENT);
	EXPECT_CONTAINS(err.why, "cannot be read");
	ap_machine_free(m);
}

struct facts {
	int n;
	char all[4096]; /* "id=value;" */
};

static int note_fact(const struct ap_fact *f, void *data)
{
	struct facts *facts = data;
	size_t have = strlen(facts->all);

	facts->n++;
	EXPECT(f->id[0] && f->title[0] && f->value[0] && f->effect && f->remedy);
	/* Whatever is not good says what it means and, if bad, what to do. */
	if (f->state == AP_FACT_LIMITED || f->state == AP_FACT_BAD)
		EXPECT(f->effect[0]);
	snprintf(facts->all + have, sizeof(facts->all) - have, "%s=%s;", f->id, f->value);
	return 0;
}

TEST(facts_of_another_machine)
{
	struct ap_machine *m = machine_of("intel-hybrid");
	struct facts f = {0};

	EXPECT_EQ(ap_machine_facts(m, note_fact, &f), 0);
	EXPECT_CONTAINS(f.all, "cpu-pmu=cpu_core, cpu_atom;");
	EXPECT_CONTAINS(f.all, "paranoid=4;");
	EXPECT_CONTAINS(f.all, "sample-rate=63000 Hz;");
	EXPECT_CONTAINS(f.all, "mlock=516 KiB;");
	EXPECT_CONTAINS(f.all, "yama=1;");
	EXPECT_CONTAINS(f.all, "kptr-restrict=1;");
	EXPECT_CONTAINS(f.all, "nmi-watchdog=on;");
	EXPECT_CONTAINS(f.all, "tracefs=/sys/kernel/tracing/events, 3 subsystems;");
	EXPECT_CONTAINS(f.all, "cgroups=version 2;");
	ap_machine_free(m);
}

static int user_access(const struct ap_fact *f, void *effect)
{
	if (strcmp(f->id, "perf-user-access") == 0)
		*(char **)effect = strdup(f->effect);
	return 0;
}

/* Who reads without a system call on arm64: it does not come by itself [ARM-12, ARM-13, ARM-16]. */
TEST(facts_of_user_access)
{
	static const char *const said[][2] = {{"arm64", "AP_OPEN_SELF_READ"},
					      {"arm64-biglittle", "cores of one kind"}};

	for (size_t i = 0; i < ARRAY_SIZE(said); i++) {
		struct ap_machine *m = machine_of(said[i][0]);
		char *effect = NULL;

		EXPECT_EQ(ap_machine_facts(m, user_access, &effect), 0);
		EXPECT_CONTAINS(effect, "rdpmc=1");
		EXPECT_CONTAINS(effect, said[i][1]);
		free(effect);
		ap_machine_free(m);
	}
}

TEST(facts_of_this_machine)
{
	static const char *const always[] = {
		"kernel=",   "perf-event-open=", "cpu-pmu=", "paranoid=", "capabilities=",
		"fd-limit=", "seccomp=",         "yama=",    "tracefs=",  "cgroups="};
	struct ap_machine *m = machine_of(NULL);
	struct facts f = {0};

	EXPECT_EQ(ap_machine_facts(m, note_fact, &f), 0);
	for (size_t i = 0; i < ARRAY_SIZE(always); i++)
		EXPECT_CONTAINS(f.all, always[i]);
	ap_machine_free(m);
}

TEST(probing)
{
	struct ap_machine *m = machine_of(NULL);
	struct ap_error err;

	EXPECT_EQ(ap_event_probe(m, "page-faults:u", &err), 0);
	EXPECT_EQ(ap_event_probe(m, "1:999:u", &err), -ENOENT);
	EXPECT_CONTAINS(err.why, "999");
	EXPECT_EQ(ap_event_probe(m, "no-such-thing", &err), -ENOENT);
	ap_machine_free(m);
}

/*
 * One machine, several threads: parsing, listing and forgetting at once. For TSan's and ASan's
 * eyes.
 */
static void *hammer(void *arg)
{
	struct ap_machine *m = arg;
	struct ap_error err;
	struct ap_specs *s;

	for (int i = 0; i < 50; i++) {
		if (ap_specs_parse(&s, m, "{cycles,instructions}:u,mem-loads", &err) == 0)
			ap_specs_free(s);
		if (ap_specs_parse(&s, m, "no-such-event", &err) == 0)
			abort();
	}
	return NULL;
}

TEST(a_machine_serves_several_threads)
{
	struct ap_machine *m = machine_of("intel-hybrid");
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		ASSERT(pthread_create(&threads[i], NULL, hammer, m) == 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	ap_machine_free(m);
}
