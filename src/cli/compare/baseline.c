/*
 * A baseline: the counts of a command on another day, in a file that stands beside the source. What
 * the counts depend on is kept with them, and a run that has not the same is not compared.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "cli/compare/compare-facts.h"
#include "cli/compare/compare-symbols.h"
#include "cli/json-reader.h"
#include "cli/json.h"

#define MOST_KB 1024

struct baseline {
	struct json_text json;
	char **argv; /* owned; its strings are the JSON's */
	char elsewhere[160];
};

/* What differs, as a list in a sentence. */
struct differences {
	char text[1200];
	size_t len;
};

static void printf_like(2, 3) differ(struct differences *d, const char *fmt, ...)
{
	va_list ap;
	size_t from;

	if (d->len + 2 >= sizeof(d->text))
		return;
	if (d->len)
		d->len += (size_t)snprintf(d->text + d->len, sizeof(d->text) - d->len, "; ");
	va_start(ap, fmt);
	from = d->len;
	d->len += (size_t)vsnprintf(d->text + d->len, sizeof(d->text) - d->len, fmt, ap);
	va_end(ap);
	/* What the file says must not look like something of ours: a log reads lines. */
	for (char *c = d->text + from; *c; c++)
		if ((u8)*c < ' ' || *c == 0x7f)
			*c = '?';
}

static int refuse(struct compare_job *job, const char *what)
{
	job->status = 2;
	compare_progress(job, "%s", "");
	return command_error(&cmd_compare, "cannot compare with '%s': %s", job->opts.baseline,
			     what);
}

/* Does not wait for somebody who might write to a pipe some day. */
static FILE *open_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd >= 0)
		(void)fcntl(fd, F_SETFL, 0);
	return fd < 0 ? NULL : fdopen(fd, "r");
}

static bool is_pipe(FILE *f)
{
	struct stat st;

	return !fstat(fileno(f), &st) && S_ISFIFO(st.st_mode);
}

/* The whole file. 0, -ENOENT, or another error with a sentence. */
static int read_file(const char *path, char **bytes, size_t *len, char *why, size_t size)
{
	FILE *f = open_file(path);
	size_t most = (size_t)MOST_KB * 1024;
	int err = 0;

	snprintf(why, size, "%s", strerror(errno));
	if (!f)
		return errno == ENOENT ? -ENOENT : -EINVAL;
	*bytes = malloc(most + 1);
	CHECK(*bytes);
	errno = 0;
	*len = fread(*bytes, 1, most + 1, f);
	if (ferror(f)) {
		snprintf(why, size, "%s", strerror(errno));
		err = -EINVAL;
	} else if (*len > most) {
		snprintf(why, size, "it is larger than %d kB, as no baseline is", MOST_KB);
		err = -EINVAL;
	} else if (!*len && is_pipe(f)) {
		snprintf(why, size, "it is a pipe, and nobody writes to it");
		err = -EINVAL;
	}
	fclose(f);
	if (err)
		free(*bytes);
	return err;
}

/* Whether it is a baseline of this version; else @why says what it is. */
static bool is_ours(const struct json_text *t, char *why, size_t size)
{
	const char *schema = json_member_text(t, t->values, "schema");
	const struct json_value *counts = json_member(t, t->values, "counts", JSON_ARRAY);
	const struct json_value *command = json_member(t, t->values, "command", JSON_ARRAY);

	if (!schema || strncmp(schema, "anyperf-baseline-", 17) != 0)
		snprintf(why, size, "it is no baseline of anyperf");
	else if (strcmp(schema, BASELINE_SCHEMA) != 0)
		snprintf(why, size, "it is a baseline of another version: %.40s, and this is %s",
			 schema, BASELINE_SCHEMA);
	else if (!counts || !command)
		snprintf(why, size, "it lacks its %s", counts ? "command" : "counts");
	else
		return true;
	return false;
}

/* 0, -ENOENT, or -EINVAL with a sentence in @why. */
static int load(const char *path, struct json_text *t, char *why, size_t size)
{
	char *bytes, what[100];
	size_t len;
	int err = read_file(path, &bytes, &len, why, size);

	if (err)
		return err;
	err = json_read(t, bytes, len, what, sizeof(what));
	free(bytes);
	if (err) {
		snprintf(why, size, "it is no JSON: %s", what);
		return err;
	}
	if (is_ours(t, why, size))
		return 0;
	json_release(t);
	return -EINVAL;
}

static void take_argv(struct baseline *b)
{
	const struct json_text *t = &b->json;
	const struct json_value *command = json_member(t, t->values, "command", JSON_ARRAY);
	u32 n = 0;

	b->argv = calloc(t->nr_values + 1, sizeof(*b->argv));
	CHECK(b->argv);
	for (const struct json_value *v = json_first(t, command); v; v = json_next(t, v))
		b->argv[n++] = (char *)(v->kind == JSON_STRING ? v->text : "");
}

static bool is_same_argv(char *const *a, char *const *b)
{
	for (; *a && *b; a++, b++)
		if (strcmp(*a, *b) != 0)
			return false;
	return !*a && !*b;
}

static void compare_text(const struct json_text *t, const char *key, const char *what,
			 const char *now, struct differences *d)
{
	const char *was = json_member_text(t, t->values, key);

	if (!was)
		differ(d, "it does not say %s", what);
	else if (strcmp(was, now) != 0)
		differ(d, "%s was %.160s and is %s", what, was, now);
}

const char *compare_variable(const char *entry, char *name, size_t size)
{
	snprintf(name, size, "%.*s", (int)strcspn(entry, "="), entry);
	return name;
}

/* Whether the environment has a variable of that name. */
static bool has_variable(const struct compare_job *job, const char *name)
{
	size_t len = strlen(name);

	for (char **entry = job->environment; *entry; entry++)
		if (!strncmp(*entry, name, len) && (*entry)[len] == '=')
			return true;
	return false;
}

static void compare_variables(const struct compare_job *job, const struct json_text *t,
			      struct differences *d)
{
	const struct json_value *was = json_member(t, t->values, "environment", JSON_OBJECT);
	char name[100], hex[17];

	if (!was) {
		differ(d, "it does not say what the environment was");
		return;
	}
	for (char **entry = job->environment; *entry; entry++) {
		const char *hash = json_member_text(t, was,
						    compare_variable(*entry, name, sizeof(name)));

		compare_hash(*entry, hex);
		if (!hash)
			differ(d, "the environment has %s now", name);
		else if (strcmp(hash, hex) != 0)
			differ(d, "%s of the environment was another (--env %s=VALUE sets it)",
			       name, name);
	}
	for (const struct json_value *v = json_first(t, was); v; v = json_next(t, v))
		if (!has_variable(job, v->key))
			differ(d, "the environment had %.100s", v->key);
}

static void compare_region(const struct compare_job *job, const struct json_text *t,
			   struct differences *d)
{
	const char *from = json_member_text(t, t->values, "from");
	const char *to = json_member_text(t, t->values, "to");
	const char *now_from = job->opts.from ? job->opts.from : "the beginning";
	const char *now_to = job->opts.to ? job->opts.to : "the end";

	from = from ? from : "the beginning";
	to = to ? to : "the end";
	if (strcmp(from, now_from) != 0 || strcmp(to, now_to) != 0)
		differ(d, "it was counted from %.100s to %.100s and is from %.100s to %.100s", from,
		       to, now_from, now_to);
}

static void compare_input(const struct compare_job *job, const struct json_text *t,
			  struct differences *d)
{
	const char *was = json_member_text(t, t->values, "input");
	const char *now = *job->input_hash ? job->opts.input : NULL;

	if (!was && now)
		differ(d, "standard input was /dev/null, and is %.100s", now);
	else if (was && !now)
		differ(d, "standard input was a file (--input FILE)");
	else if (was && strcmp(was, job->input_hash) != 0)
		differ(d, "%.100s, the standard input, had something else", now);
}

static void compare_facts(const struct compare_job *job, const struct baseline *b,
			  struct differences *d)
{
	const struct compare_side *side = &job->sides[1];
	const struct json_text *t = &b->json;
	struct compare_facts now;
	u64 seed;

	compare_facts_of(job, side, &now);
	if (!is_same_argv(b->argv, side->argv))
		differ(d, "the command line was another");
	compare_input(job, t, d);
	compare_variables(job, t, d);
	compare_region(job, t, d);
	compare_text(t, "cpu_vendor", "the CPU's vendor", now.vendor, d);
	compare_text(t, "cpu_features", "the CPU shown", now.features, d);
	compare_text(t, "libc", "the C library", now.libc, d);
	if (!json_member_u64(t, t->values, "seed", &seed))
		differ(d, "it does not say the seed");
	else if (seed != now.seed)
		differ(d, "the seed was %llu and is %llu", (unsigned long long)seed,
		       (unsigned long long)now.seed);
}

/* The baseline's count of an event, if it has one. */
static void take_count(const struct json_text *t, const char *event, struct side_count *c)
{
	const struct json_value *counts = json_member(t, t->values, "counts", JSON_ARRAY);

	c->refused = true;
	snprintf(c->why.why, sizeof(c->why.why), "the baseline has no count of it");
	for (const struct json_value *v = json_first(t, counts); v; v = json_next(t, v)) {
		const char *name = json_member_text(t, v, "event");
		u64 min, median, max;

		if (!name || strcmp(name, event) != 0 || !json_member_u64(t, v, "min", &min) ||
		    !json_member_u64(t, v, "value", &median) ||
		    !json_member_u64(t, v, "max", &max) || min > median || median > max)
			continue;
		c->refused = false;
		c->run[0] = min;
		c->run[1] = max;
		c->run[2] = median;
		c->runs = 3;
		return;
	}
}

/* What of it some programs look at; NULL: it is all the same. */
static const char *elsewhere(struct baseline *b, const struct compare_facts *now)
{
	const struct json_text *t = &b->json;
	const char *directory = json_member_text(t, t->values, "directory");
	const char *kernel = json_member_text(t, t->values, "kernel");
	char *at = b->elsewhere;
	u64 user, stack;

	*at = 0;
	if (directory && strcmp(directory, now->directory) != 0)
		at += sprintf(at, "in another directory");
	if (json_member_u64(t, t->values, "user", &user) && user != now->user)
		at += sprintf(at, "%sby another user", *b->elsewhere ? " " : "");
	if (kernel && strcmp(kernel, now->kernel) != 0)
		at += sprintf(at, "%sunder another kernel", *b->elsewhere ? " " : "");
	if (json_member_u64(t, t->values, "stack_limit", &stack) && stack != now->stack)
		sprintf(at, "%swith another limit of the stack", *b->elsewhere ? " " : "");
	return *b->elsewhere ? b->elsewhere : NULL;
}

static char *title_of(const struct compare_job *job, const struct baseline *b,
		      const struct compare_facts *now)
{
	const char *was = json_member_text(&b->json, b->json.values, "build_id");
	char *title = malloc(strlen(job->opts.baseline) + 40);

	CHECK(title);
	sprintf(title, "'%s'%s", job->opts.baseline,
		!was || !*was || !*now->build_id ? ""
		: !strcmp(was, now->build_id)    ? ", of the same build"
						 : ", of another build");
	return compare_line(title);
}

static void take_side(struct compare_job *job, struct baseline *b)
{
	const struct compare_side *now = &job->sides[1];
	struct compare_side *side = &job->sides[0];
	struct compare_facts facts;

	compare_facts_of(job, now, &facts);
	job->elsewhere = elsewhere(b, &facts);
	side->argv = b->argv;
	side->name = "baseline";
	side->title = title_of(job, b, &facts);
}

/* What was counted of each event that is counted now, under the name that it has come to. */
static void take_counts(struct compare_job *job)
{
	const struct compare_side *now = &job->sides[1];
	struct compare_side *side = &job->sides[0];

	side->nr_counts = now->nr_counts;
	side->counts = calloc(side->nr_counts, sizeof(*side->counts));
	CHECK(side->counts);
	side->count_runs = COUNT_RUNS_MIN;
	for (u32 i = 0; i < side->nr_counts; i++) {
		side->counts[i].name = strdup(now->counts[i].name);
		CHECK(side->counts[i].name);
		take_count(&job->stored->json, side->counts[i].name, &side->counts[i]);
	}
}

/* --update without a baseline that fits: there is one command, whose counts are kept. */
static int go_alone(struct compare_job *job)
{
	job->status = 0;
	compare_baseline_free(job);
	job->sides[0] = job->sides[1];
	job->sides[1] = (struct compare_side){0};
	job->nr_sides = 1;
	return 0;
}

int compare_baseline_load(struct compare_job *job)
{
	struct differences d = {0};
	char why[200], text[1400];
	int err;

	job->stored = calloc(1, sizeof(*job->stored));
	CHECK(job->stored);
	err = load(job->opts.baseline, &job->stored->json, why, sizeof(why));
	if (err == -ENOENT && job->opts.update)
		return go_alone(job);
	if (err && job->opts.update) {
		command_error(&cmd_compare, "'%s' is made anew: %s", job->opts.baseline, why);
		return go_alone(job);
	}
	if (err) {
		snprintf(text, sizeof(text), "%s%s", why,
			 err == -ENOENT ? "; --save FILE makes one" : "");
		return refuse(job, text);
	}
	take_argv(job->stored);
	compare_facts(job, job->stored, &d);
	if (d.len && job->opts.update) {
		command_error(&cmd_compare, "'%s' is made anew, without a comparison: %s",
			      job->opts.baseline, d.text);
		return go_alone(job);
	}
	if (d.len) {
		snprintf(text, sizeof(text), "%s; --update keeps new counts in it", d.text);
		return refuse(job, text);
	}
	take_side(job, job->stored);
	return 0;
}

int compare_baseline_symbols(struct compare_job *job)
{
	const struct json_text *t = &job->stored->json;
	const struct json_value *all = json_member(t, t->values, "symbols", JSON_OBJECT);
	u64 count;

	/* Nothing is shown of a change from what is not known, but new counts are kept. */
	if (!all && job->opts.update) {
		job->symbols.left_out = UINT64_MAX;
		return 0;
	}
	if (!all)
		return refuse(job, "it has no counts of functions; --save FILE --by symbol keeps "
				   "them, as --update does");
	for (const struct json_value *v = json_first(t, all); v; v = json_next(t, v))
		if (json_member_u64(t, all, v->key, &count))
			symbol_find(&job->symbols, v->key)->count[0] = count;
	if (!json_member_u64(t, t->values, "symbols_left_out", &job->symbols.left_out))
		job->symbols.left_out = 0;
	return 0;
}

int compare_baseline_check(struct compare_job *job)
{
	struct compare_facts now;
	const char *machine;
	char text[500];
	u64 cpus;

	if (!job->stored)
		return 0;
	take_counts(job);
	compare_facts_of(job, &job->sides[1], &now);
	machine = json_member_text(&job->stored->json, job->stored->json.values, "machine");
	if (machine && *now.machine && strcmp(machine, now.machine) != 0 && !job->opts.update) {
		snprintf(text, sizeof(text),
			 "it was counted with the model of %.100s, and now with that of %.100s; "
			 "--machine NAME chooses one",
			 machine, now.machine);
		return refuse(job, text);
	}
	if (!now.cpus ||
	    !json_member_u64(&job->stored->json, job->stored->json.values, "cpus", &cpus) ||
	    cpus == now.cpus || job->opts.update)
		return 0;
	snprintf(text, sizeof(text),
		 "the program asked how many CPUs there are, and was told %llu then and %u now; "
		 "--cpus=%llu tells it the same",
		 (unsigned long long)cpus, now.cpus, (unsigned long long)cpus);
	return refuse(job, text);
}

void compare_baseline_free(struct compare_job *job)
{
	if (!job->stored)
		return;
	json_release(&job->stored->json);
	free(job->stored->argv);
	free(job->stored);
	job->stored = NULL;
}
