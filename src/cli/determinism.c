#include "cli/determinism.h"

#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <anyperf/command.h>

#include "backend/virtual.h"
#include "cli/number.h"
#include "lib/command.h"

/* As the library takes them. */
const char *const deterministic_cpu_words[] = {"host", "x86-64-v2", "x86-64-v3", NULL};

#define NONDET_UNCOUNTED (1u << NONDET_SOURCES)

/* By bit number of enum nondet_source; doc/json.md lists them. */
static const char *const names[] = {
	"pids",    "wall time",       "CPU time",  "threads", "processes",       "I/O",
	"signals", "machine's state", "addresses", "CPUs",    "directory order", "uncounted",
};

_Static_assert(ARRAY_SIZE(names) == NONDET_SOURCES + 1, "a name for each, and one more");

static bool is_known_cpu(const char *cpu)
{
	for (int i = 0; deterministic_cpu_words[i]; i++)
		if (!strcmp(cpu, deterministic_cpu_words[i]))
			return true;
	return false;
}

int deterministic_check(const struct command *cmd, const struct deterministic_opts *opts)
{
	if (opts->cpu && !is_known_cpu(opts->cpu))
		return command_error(cmd, "--cpu-features is host, x86-64-v2 or x86-64-v3");
	if (!opts->on && (opts->cpu || opts->seed || opts->cpus))
		return command_error(cmd, "--seed, --cpus and --cpu-features are for "
					  "--deterministic");
	return 0;
}

int deterministic_check_model(const struct command *cmd, const struct deterministic_opts *opts,
			      const char *model)
{
	char why[300];

	if (model && opts->cpu && strcmp(opts->cpu, "host") != 0)
		return command_error(cmd,
				     "--cpu-features=%s shows a model of its own; leave "
				     "--cpu-model=%s out",
				     opts->cpu, model);
	if (model && ap__virtual_check_model(model, why, sizeof(why)))
		return command_error(cmd, "--cpu-model: %s", why);
	return 0;
}

/*
 * Those that a program's own doing leads to: a fault, abort(3), a write to a pipe without readers.
 */
static bool own_end(int sig)
{
	switch (sig) {
	case SIGSEGV:
	case SIGBUS:
	case SIGFPE:
	case SIGILL:
	case SIGTRAP:
	case SIGSYS:
	case SIGABRT:
	case SIGPIPE: return true;
	default: return false;
	}
}

/*
 * A guest that has not ended with the command: how far it has come, and so how much it has counted,
 * is a matter of time.
 */
static bool is_something_left(const struct guest_segment *segment)
{
	for (u32 i = 0, used = ap__segment_used(segment); i < used; i++) {
		const struct meter *m = ap__segment_meter(segment, i);
		struct meter_ids ids;

		if (!m || __atomic_load_n(&m->state, __ATOMIC_ACQUIRE) != METER_RUNNING)
			continue;
		ids = meter_ids(m);
		if (!syscall(SYS_tgkill, ids.pid, ids.tid, 0))
			return true;
	}
	return false;
}

u32 deterministic_sources(struct ap_machine *m, int status)
{
	const struct guest_segment *segment = ap__machine_segment(m);
	u32 nondet = segment ? __atomic_load_n(&segment->head->nondet, __ATOMIC_RELAXED) : 0;
	unsigned int uncounted;

	(void)ap_machine_uncounted(m, NULL, NULL, &uncounted);
	nondet &= (1u << NONDET_SOURCES) - 1;
	if (WIFSIGNALED(status) && !own_end(WTERMSIG(status)))
		nondet |= NONDET_SIGNALS;
	if (segment && is_something_left(segment))
		nondet |= NONDET_PROCESSES;
	if (uncounted)
		nondet |= NONDET_UNCOUNTED;
	return nondet;
}

void deterministic_names(u32 nondet, char *text, size_t size)
{
	size_t len = 0;

	text[0] = 0;
	for (u32 i = 0, n = 0; i < ARRAY_SIZE(names) && len < size; i++)
		if (nondet & 1u << i)
			len += (size_t)snprintf(text + len, size - len, "%s%s", n++ ? ", " : "",
						names[i]);
}

void deterministic_text(u64 seed, u32 nondet, char *text, size_t size)
{
	char used[200];

	if (!nondet) {
		snprintf(text, size,
			 "Deterministic (seed %llu): instructions and branches are %s 0, since "
			 "nothing was used that varies.",
			 (unsigned long long)seed, number_plus_minus());
		return;
	}
	deterministic_names(nondet, used, sizeof(used));
	snprintf(text, size,
		 "Deterministic (seed %llu), but for what was used of: %s. Counts may differ "
		 "between runs.",
		 (unsigned long long)seed, used);
}

void deterministic_not_fixed_json(struct json *j, u32 nondet)
{
	json_array(j, "not_fixed");
	for (u32 i = 0; i < ARRAY_SIZE(names); i++)
		if (nondet & 1u << i)
			json_str(j, NULL, names[i]);
	json_end(j);
}

void deterministic_json(struct json *j, u64 seed, u32 nondet)
{
	json_object(j, "deterministic");
	json_u64(j, "seed", seed);
	deterministic_not_fixed_json(j, nondet);
	json_end(j);
}
