#include "cli/compare/compare-facts.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif

#include "abi/meter.h"
#include "cli/modeled-events.h"
#include "elf/build-id.h"
#include "lib/machine/machine-pmu.h"

u64 compare_hash_more(u64 hash, const char *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		hash = (hash ^ (u8)bytes[i]) * 0x100000001b3;
	return hash;
}

void compare_hash(const char *text, char hex[17])
{
	u64 hash = compare_hash_more(COMPARE_HASH, text, strlen(text));

	snprintf(hex, 17, "%016llx", (unsigned long long)hash);
}

/* The first CPU's @key in /proc/cpuinfo, behind what @text has; its hash if @hashed. */
static void add_cpuinfo(const char *key, bool hashed, char text[FACT_SIZE])
{
	FILE *f = fopen("/proc/cpuinfo", "re");
	size_t len = strlen(key), have = strlen(text), size = 0;
	char *line = NULL, hex[17];

	while (f && getline(&line, &size, f) > 1) {
		const char *value = strchr(line, ':');

		if (strncmp(line, key, len) != 0 || (line[len] != '\t' && line[len] != ' ') ||
		    !value)
			continue;
		line[strcspn(line, "\n")] = 0;
		value += 1 + (value[1] == ' ');
		compare_hash(value, hex);
		snprintf(text + have, FACT_SIZE - have, "%s%s", have ? " " : "",
			 hashed ? hex : value);
		break;
	}
	free(line);
	if (f)
		fclose(f);
}

bool compare_find_program(const struct compare_job *job, const char *name, char *path, size_t size)
{
	const char *dir = NULL;

	if (strchr(name, '/')) {
		snprintf(path, size, "%s", name);
		return true;
	}
	for (char **entry = job->environment; *entry; entry++)
		if (!strncmp(*entry, "PATH=", 5))
			dir = *entry + 5;
	while (dir) {
		size_t len = strcspn(dir, ":");

		snprintf(path, size, "%.*s%s%s", (int)len, dir, len ? "/" : "", name);
		if (!access(path, X_OK))
			return true;
		dir = dir[len] ? dir + len + 1 : NULL;
	}
	return false;
}

static void build_id_of(const char *path, char text[41])
{
	struct elf_build_id id;

	text[0] = 0;
	if (elf_build_id_of_file(path, &id))
		elf_build_id_text(&id, text);
}

/* That of this process: programs load the same one, unless they bring their own. */
static void find_libc(char text[FACT_SIZE])
{
	FILE *f = fopen("/proc/self/maps", "re");
	char *line = NULL, id[41] = "";
	size_t size = 0;
	const char *version = "";

#ifdef __GLIBC__
	version = gnu_get_libc_version();
#endif
	while (f && getline(&line, &size, f) > 0) {
		char *path = strchr(line, '/');

		if (!path || (!strstr(path, "/libc.so") && !strstr(path, "/libc-")))
			continue;
		path[strcspn(path, "\n")] = 0;
		build_id_of(path, id);
		break;
	}
	free(line);
	if (f)
		fclose(f);
	snprintf(text, FACT_SIZE, "%s%s%s%s", *version ? "glibc " : "unknown", version,
		 *id ? " " : "", id);
}

/* Without what a distribution makes of the number. */
static void find_kernel(char *text, size_t size)
{
	struct utsname name;
	size_t len;

	uname(&name);
	len = strcspn(name.release, ".");
	len += name.release[len] ? 1 + strspn(name.release + len + 1, "0123456789") : 0;
	snprintf(text, size, "%.*s", (int)len, name.release);
}

static void find_machine(const struct compare_side *side, char text[FACT_SIZE])
{
	bool modeled = false;

	for (u32 i = 0; i < side->nr_counts; i++)
		modeled |= side->counts[i].runs && modeled_event(ap_specs_at(side->specs, i)->attr);
	text[0] = 0;
	if (modeled && !ap__pmu_modeled(side->machine, text, FACT_SIZE))
		text[0] = 0;
}

void compare_facts_of(const struct compare_job *job, const struct compare_side *side,
		      struct compare_facts *facts)
{
	const struct deterministic_opts *d = &job->opts.deterministic;
	struct rlimit stack;
	char path[4096];

	*facts = (struct compare_facts){.seed = (u64)d->seed};
	if (compare_find_program(job, side->argv[0], path, sizeof(path)))
		build_id_of(path, facts->build_id);
	snprintf(facts->features, FACT_SIZE, "%s", d->cpu ? d->cpu : "host");
	/* Of a level is the same CPU shown on all machines; if it changes, so must this word. */
	snprintf(facts->vendor, FACT_SIZE, "any");
	if (!d->cpu || !strcmp(d->cpu, "host")) {
		facts->vendor[0] = 0;
		add_cpuinfo("vendor_id", false, facts->vendor);
		add_cpuinfo("cpu family", false, facts->features);
		add_cpuinfo("model", false, facts->features);
		add_cpuinfo("stepping", false, facts->features);
		add_cpuinfo("flags", true, facts->features);
	}
	find_libc(facts->libc);
	compare_hash(getcwd(path, sizeof(path)) ? path : "", facts->directory);
	facts->user = geteuid();
	find_kernel(facts->kernel, sizeof(facts->kernel));
	if (!getrlimit(RLIMIT_STACK, &stack) && stack.rlim_cur != RLIM_INFINITY)
		facts->stack = stack.rlim_cur;
	find_machine(side, facts->machine);
	if (d->cpus)
		facts->cpus = (u32)d->cpus;
	else if (side->nondet & NONDET_CPUS)
		facts->cpus = (u32)sysconf(_SC_NPROCESSORS_ONLN);
}
