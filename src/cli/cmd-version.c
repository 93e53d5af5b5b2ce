#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <anyperf/machine.h>
#include <anyperf/pmu.h>

#include "backend/runtime.h"
#include "base/check.h"
#include "cli/cmd.h"
#include "cli/commit.h"
#include "cli/json.h"

struct version_opts {
	bool json, build_options;
};

static const struct option options[] = {
	{OPTION_FLAG, 0, "build-options", .offset = offsetof(struct version_opts, build_options),
	 .help = "also print what belongs into a bug report: commit, compiler, kernel, CPU, PMUs, "
		 "runtime"},
	{OPTION_FLAG, 'j', "json", .offset = offsetof(struct version_opts, json),
	 .help = "print a JSON object (doc/json.md), with all of that"},
	{0},
};

/* What a bug report needs to know. */
struct build_facts {
	struct utsname host;
	long cpus;
	char cpu[256];          /* the model, "" if it is not told */
	char runtime[PATH_MAX]; /* the path of anyperf-rt, "" if there is none */
	char why[300];          /* then, why */
	char **pmus;            /* owned, with its strings */
	u32 nr_pmus;
};

/* Text of the line "@key : text" of the first CPU in /proc/cpuinfo, behind what @buf holds. */
static void cpuinfo(const char *key, const char *label, char *buf, size_t size)
{
	FILE *f = fopen("/proc/cpuinfo", "re");
	size_t have = strlen(buf);
	char line[256], *text;

	while (f && fgets(line, sizeof(line), f) && *line != '\n') {
		size_t n = strlen(key);

		if (strncmp(line, key, n) != 0 || (line[n] != '\t' && line[n] != ' '))
			continue;
		text = strchr(line, ':');
		if (!text || text[1] != ' ')
			continue;
		text[strcspn(text, "\n")] = '\0';
		snprintf(buf + have, size - have, "%s%s%s", have ? ", " : "", label, text + 2);
		break;
	}
	if (f)
		fclose(f);
}

static int add_pmu(const struct ap_pmu *pmu, void *data)
{
	struct build_facts *b = data;

	b->pmus = realloc(b->pmus, (b->nr_pmus + 1) * sizeof(*b->pmus));
	CHECK(b->pmus);
	b->pmus[b->nr_pmus] = strdup(pmu->name);
	CHECK(b->pmus[b->nr_pmus]);
	b->nr_pmus++;
	return 0;
}

static void find_runtime(struct build_facts *b)
{
	int fd = ap__runtime_open("rt", "anyperf-rt", b->why, sizeof(b->why));
	char link[32];
	ssize_t n;

	if (fd < 0)
		return;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, b->runtime, sizeof(b->runtime) - 1);
	if (n < 0)
		snprintf(b->runtime, sizeof(b->runtime), "found, but /proc does not say where");
	close(fd);
}

static void look(struct build_facts *b)
{
	struct ap_machine *m;

	memset(b, 0, sizeof(*b));
	uname(&b->host);
	b->cpus = sysconf(_SC_NPROCESSORS_ONLN);
	/* x86 has a name; arm64 has numbers. */
	cpuinfo("model name", "", b->cpu, sizeof(b->cpu));
	cpuinfo("cpu family", "family ", b->cpu, sizeof(b->cpu));
	cpuinfo("model", "model ", b->cpu, sizeof(b->cpu));
	cpuinfo("CPU implementer", "implementer ", b->cpu, sizeof(b->cpu));
	cpuinfo("CPU part", "part ", b->cpu, sizeof(b->cpu));
	cpuinfo("stepping", "stepping ", b->cpu, sizeof(b->cpu));
	if (!ap_machine_new(&m, NULL)) {
		(void)ap_pmus_each(m, add_pmu, b, NULL);
		ap_machine_free(m);
	}
	find_runtime(b);
}

static void release(struct build_facts *b)
{
	for (u32 i = 0; i < b->nr_pmus; i++)
		free(b->pmus[i]);
	free(b->pmus);
}

static void print_text(const struct build_facts *b)
{
	printf("  commit    %s\n", *ANYPERF_COMMIT ? ANYPERF_COMMIT : "not known");
	printf("  compiler  %s%s\n", strstr(__VERSION__, "lang") ? "" : "gcc ", __VERSION__);
	printf("  kernel    %s %s\n", b->host.sysname, b->host.release);
	printf("  machine   %s, %ld CPUs\n", b->host.machine, b->cpus);
	printf("  CPU       %s\n", *b->cpu ? b->cpu : "not known");
	printf("  PMUs     ");
	for (u32 i = 0; i < b->nr_pmus; i++)
		printf("%s %s", i ? "," : "", b->pmus[i]);
	printf("%s\n", b->nr_pmus ? "" : " none");
	printf("  runtime   %s\n", *b->runtime ? b->runtime : b->why);
}

static void print_json(const struct build_facts *b)
{
	struct json j;

	json_begin(&j, stdout);
	json_object(&j, NULL);
	json_str(&j, "schema", "anyperf-version-1");
	json_str(&j, "version", ap_version());
	json_str(&j, "commit", ANYPERF_COMMIT);
	json_str(&j, "kernel", b->host.release);
	json_str(&j, "machine", b->host.machine);
	json_str(&j, "compiler", __VERSION__);
	json_s64(&j, "cpus", b->cpus);
	json_str(&j, "cpu", b->cpu);
	json_array(&j, "pmus");
	for (u32 i = 0; i < b->nr_pmus; i++)
		json_str(&j, NULL, b->pmus[i]);
	json_end(&j);
	json_str(&j, "runtime", *b->runtime ? b->runtime : NULL);
	json_end(&j);
	json_finish(&j);
}

static int run(int argc, char **argv)
{
	struct version_opts opts = {0};
	int first = options_parse(&cmd_version, &opts, argc, argv);
	struct build_facts b;

	if (first < 0)
		return command_leave_status(&cmd_version, first);
	if (first < argc) {
		command_error(&cmd_version, "takes no argument, not '%s'", argv[first]);
		return cmd_version.failure;
	}
	if (!opts.json)
		printf("anyperf %s\n", ap_version());
	if (!opts.json && !opts.build_options)
		return 0;
	look(&b);
	if (opts.json)
		print_json(&b);
	else
		print_text(&b);
	release(&b);
	return 0;
}

const struct command cmd_version = {
	.name = "version",
	.summary = "print the version",
	.synopsis = "[--build-options] [--json]",
	.description =
		"Prints the version of anyperf and of the library that is part of it; with "
		"--build-options also what belongs into a bug report: the commit it was built "
		"of, the compiler, the running kernel, the CPU, the kernel's PMUs, and the "
		"runtime of the virtual PMU or why there is none. `anyperf doctor` says what "
		"works.",
	.options = options,
	.failure = 2,
	.run = run,
};
