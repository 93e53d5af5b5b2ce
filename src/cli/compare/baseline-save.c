/* Keeps what was counted as a baseline: --save and --update. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "cli/compare/compare-facts.h"
#include "cli/compare/compare-symbols.h"
#include "cli/json.h"

static void write_counts(struct json *j, const struct compare_side *side)
{
	json_array(j, "counts");
	for (u32 i = 0; i < side->nr_counts; i++) {
		const struct side_count *c = &side->counts[i];

		if (!c->runs)
			continue;
		json_object(j, NULL);
		json_str(j, "event", c->name);
		json_u64(j, "min", side_count_min(c));
		json_u64(j, "value", side_count_median(c));
		json_u64(j, "max", side_count_max(c));
		json_end(j);
	}
	json_end(j);
}

/* The largest functions. Of one that is not among them it is known how much it was at most. */
static void write_symbols(struct json *j, const struct compare_job *job, u32 side)
{
	const struct symbol_row **rows = calloc(SYMBOLS_KEPT, sizeof(*rows));
	u64 left_out;
	u32 n;

	CHECK(rows);
	n = symbols_to_keep(job, side, rows, &left_out);
	json_object(j, "symbols");
	for (u32 i = 0; i < n; i++)
		json_u64(j, rows[i]->name, rows[i]->count[side]);
	json_end(j);
	if (left_out)
		json_u64(j, "symbols_left_out", left_out);
	free(rows);
}

static void write_baseline(const struct compare_job *job, FILE *out)
{
	const struct compare_side *side = &job->sides[job->nr_sides - 1];
	struct compare_facts facts;
	char name[100], hex[17];
	struct json j;

	compare_facts_of(job, side, &facts);
	json_begin_lines(&j, out);
	json_object(&j, NULL);
	json_str(&j, "schema", BASELINE_SCHEMA);
	json_array(&j, "command");
	for (u32 i = 0; side->argv[i]; i++)
		json_str(&j, NULL, side->argv[i]);
	json_end(&j);
	if (job->opts.from) {
		json_str(&j, "from", job->opts.from);
		json_str(&j, "to", job->opts.to);
	}
	if (*job->input_hash)
		json_str(&j, "input", job->input_hash);
	json_str(&j, "build_id", facts.build_id);
	json_object(&j, "environment");
	for (char **entry = job->environment; *entry; entry++) {
		compare_hash(*entry, hex);
		json_str(&j, compare_variable(*entry, name, sizeof(name)), hex);
	}
	json_end(&j);
	json_str(&j, "cpu_vendor", facts.vendor);
	json_str(&j, "cpu_features", facts.features);
	if (facts.cpus)
		json_u64(&j, "cpus", facts.cpus);
	if (*facts.machine)
		json_str(&j, "machine", facts.machine);
	json_str(&j, "libc", facts.libc);
	json_u64(&j, "seed", facts.seed);
	json_str(&j, "directory", facts.directory);
	json_u64(&j, "user", facts.user);
	json_str(&j, "kernel", facts.kernel);
	json_u64(&j, "stack_limit", facts.stack);
	deterministic_not_fixed_json(&j, side->nondet);
	write_counts(&j, side);
	if (job->symbols.period)
		write_symbols(&j, job, job->nr_sides - 1);
	json_end(&j);
	json_finish(&j);
}

static const char *path_of(const struct compare_job *job)
{
	const struct compare_opts *o = &job->opts;

	return o->save ? o->save : o->update ? o->baseline : NULL;
}

static int say_unwritable(const struct compare_job *job)
{
	return command_error(&cmd_compare, "cannot write '%s': %s", path_of(job), strerror(errno));
}

/* A device, a pipe, or a link to no file yet: nothing is put in its place. */
static bool is_special(const char *path)
{
	struct stat st;

	return stat(path, &st) ? !lstat(path, &st) : !S_ISREG(st.st_mode);
}

/*
 * A new file beside @path, or beside what that is a link to; *@name is what it is to be called in
 * the end. Both names are the caller's to free. -1 with errno.
 */
static int open_fresh(const char *path, char **fresh, char **name)
{
	struct stat st;
	mode_t mask;
	int fd;

	*name = realpath(path, NULL);
	if (!*name)
		*name = strdup(path);
	CHECK(*name);
	*fresh = malloc(strlen(*name) + sizeof(".XXXXXX"));
	CHECK(*fresh);
	sprintf(*fresh, "%s.XXXXXX", *name);
	fd = mkstemp(*fresh);
	if (fd < 0)
		return -1;
	mask = umask(0);
	umask(mask);
	(void)!fchmod(fd, stat(*name, &st) ? 0666 & ~mask : st.st_mode & 07777);
	return fd;
}

int compare_baseline_try(const struct compare_job *job)
{
	const char *path = path_of(job);
	char *fresh, *name;
	int fd;

	if (!path || is_special(path))
		return 0;
	fd = open_fresh(path, &fresh, &name);
	if (fd < 0)
		say_unwritable(job);
	else
		unlink(fresh);
	if (fd >= 0)
		close(fd);
	free(fresh);
	free(name);
	return fd < 0 ? -1 : 0;
}

static bool write_all(const struct compare_job *job, FILE *out)
{
	bool bad;

	write_baseline(job, out);
	bad = fflush(out) || ferror(out);
	return fclose(out) || bad;
}

/* Into a new file first: who is interrupted has the old one, and who comes second wins. */
int compare_baseline_save(const struct compare_job *job)
{
	const char *path = path_of(job);
	char *fresh = NULL, *name = NULL;
	FILE *out = NULL;
	bool bad;
	int fd;

	if (!path)
		return 0;
	if (is_special(path)) {
		out = fopen(path, "we");
		return !out || write_all(job, out) ? say_unwritable(job) : 0;
	}
	fd = open_fresh(path, &fresh, &name);
	out = fd < 0 ? NULL : fdopen(fd, "w");
	bad = !out || write_all(job, out) || rename(fresh, name);
	if (bad) {
		say_unwritable(job);
		if (fd >= 0)
			unlink(fresh);
	}
	free(fresh);
	free(name);
	return bad ? -1 : 0;
}
