/* Profiles and messages of `anyperf valgrind`. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <anyperf/api.h>

#include "base/check.h"
#include "calls/callgrind-file.h"
#include "cli/valgrind/valgrind-priv.h"

struct name_text {
	char *text; /* owned */
	size_t n, room;
};

static void add(struct name_text *t, const char *text, size_t n)
{
	if (t->n + n + 1 > t->room) {
		t->room = (t->n + n + 1) * 2;
		t->text = realloc(t->text, t->room);
		CHECK(t->text);
	}
	memcpy(t->text + t->n, text, n);
	t->n += n;
	t->text[t->n] = 0;
}

static char *bad_name(struct name_text *t, const char *option, const char *format)
{
	command_error(&cmd_valgrind, "%s=%s: behind a percent sign comes p, q{VARIABLE}, n or %%",
		      option, format);
	free(t->text);
	return NULL;
}

char *valgrind_file_name(const char *option, const char *format, u32 pid)
{
	struct name_text t = {.text = NULL};
	char number[16], name[128];

	add(&t, "", 0);
	for (const char *p = format; *p; p++) {
		const char *end, *value;

		if (*p != '%') {
			add(&t, p, 1);
			continue;
		}
		switch (*++p) {
		case '%': add(&t, "%", 1); break;
		case 'p':
			snprintf(number, sizeof(number), "%u", pid);
			add(&t, number, strlen(number));
			break;
		case 'n': add(&t, "0", 1); break;
		case 'q':
			end = p[1] == '{' ? strchr(p, '}') : NULL;
			if (!end || (size_t)(end - p - 2) >= sizeof(name))
				return bad_name(&t, option, format);
			snprintf(name, sizeof(name), "%.*s", (int)(end - p - 2), p + 2);
			value = getenv(name);
			if (!value) {
				command_error(&cmd_valgrind,
					      "%s=%s: the environment variable %s is not set",
					      option, format, name);
				free(t.text);
				return NULL;
			}
			add(&t, value, strlen(value));
			p = end;
			break;
		default: return bad_name(&t, option, format);
		}
	}
	return t.text;
}

/* A copy, as the command has the descriptor itself. */
static int open_descriptor(struct valgrind_job *job)
{
	long fd = job->opts.log_fd;
	int copy = fcntl((int)fd, F_DUPFD_CLOEXEC, 3);
	FILE *log = copy >= 0 ? fdopen(copy, "w") : NULL;

	if (log) {
		job->log = log;
		return 0;
	}
	command_error(&cmd_valgrind, "--log-fd: descriptor %ld cannot be written to: %s", fd,
		      strerror(errno));
	if (copy >= 0)
		close(copy);
	return -1;
}

int valgrind_open_log(struct valgrind_job *job)
{
	char *name;

	job->log = stderr;
	if (job->opts.log_fd >= 0 && job->opts.log_file)
		return command_error(&cmd_valgrind, "--log-file and --log-fd are two places for "
						    "messages; choose one");
	if (job->opts.log_fd >= 0)
		return open_descriptor(job);
	if (!job->opts.log_file)
		return 0;
	name = valgrind_file_name("--log-file", job->opts.log_file, job->pid);
	if (!name)
		return -1;
	job->log = fopen(name, "we");
	if (!job->log) {
		command_error(&cmd_valgrind, "--log-file: cannot write to '%s': %s", name,
			      strerror(errno));
		job->log = stderr;
		free(name);
		return -1;
	}
	free(name);
	return 0;
}

void valgrind_say(struct valgrind_job *job, u32 pid, const char *fmt, ...)
{
	va_list ap;

	if (job->opts.quiet)
		return;
	if (job->in_line)
		putc('\n', job->log);
	job->in_line = false;
	fprintf(job->log, "==%u== ", pid);
	va_start(ap, fmt);
	vfprintf(job->log, fmt, ap);
	va_end(ap);
	putc('\n', job->log);
}

void valgrind_print(struct traced_program *p, const char *text, bool marked)
{
	struct valgrind_job *job = valgrind_job_of(p);

	for (; *text; text++) {
		if (marked && !job->in_line)
			fprintf(job->log, "**%u** ", p->pid);
		putc(*text, job->log);
		job->in_line = *text != '\n';
	}
	fflush(job->log);
}

/* Where the profile of @pid goes, but for what parts and threads have behind it; to be freed. */
static char *output_name(const struct valgrind_opts *o, u32 pid)
{
	if (o->tool == TOOL_CALLGRIND)
		return valgrind_file_name("--callgrind-out-file",
					  o->callgrind_out ?: "callgrind.out.%p", pid);
	return valgrind_file_name("--cachegrind-out-file", o->cachegrind_out ?: "cachegrind.out.%p",
				  pid);
}

/* 0, or the errno with which a file of that name could not be written. */
static int why_not(const char *name, const char *folder)
{
	struct stat st;

	if (!name[0])
		return ENOENT;
	if (!stat(name, &st) && S_ISDIR(st.st_mode))
		return EISDIR;
	return (access(name, F_OK) ? access(folder, W_OK | X_OK) : access(name, W_OK)) ? errno : 0;
}

int valgrind_check_output(const struct valgrind_job *job)
{
	char *name = output_name(&job->opts, job->pid), *folder, *slash;
	int bad = 0, err;

	if (!name)
		return -1;
	folder = strdup(name);
	CHECK(folder);
	slash = strrchr(folder, '/');
	if (slash)
		slash[slash == folder] = '\0';
	err = why_not(name, slash ? folder : ".");
	if (err)
		bad = command_error(&cmd_valgrind, "cannot write to '%s': %s; nothing was run",
				    name, strerror(err));
	free(folder);
	free(name);
	return bad ? -1 : 0;
}

static void cannot_write(struct valgrind_job *job, const char *name)
{
	command_error(&cmd_valgrind, "cannot write to '%s': %s", name, strerror(errno));
	job->lost = true;
}

/* What cannot be written is counted all the same. */
static FILE *open_output(struct valgrind_job *job, const char *name, const char *mode)
{
	FILE *f = fopen(name, mode);

	if (f)
		return f;
	cannot_write(job, name);
	return fopen("/dev/null", "we");
}

static void find_line(void *data, u64 pc, struct calls_line *line)
{
	const struct traced_program *p = data;
	struct code_place place;

	(void)code_view_find(p->trace->code, p->pid, pc, &place);
	code_view_line(p->trace->code, p->pid, pc, &place);
	*line = (struct calls_line){.file = place.file,
				    .line = place.line,
				    .address = place.address,
				    .function = place.function};
}

/* Of callgrind; parts that are not the last one have their number behind the name. */
static void write_callgrind(struct traced_program *p, const struct calls_profile *profile,
			    const char *trigger, const char *base)
{
	const struct valgrind_opts *o = &valgrind_job_of(p)->opts;
	struct callgrind_style style = {
		.instr = o->dump_instr,
		.line = o->dump_line,
		/* Numbers are those of a part. */
		.compress_strings = o->compress_strings && !o->combine_dumps,
		.compress_pos = o->compress_pos,
		.creator = "anyperf-callgrind",
		.command = p->command ? p->command : valgrind_job_of(p)->command,
		.pid = p->pid,
		.part = p->parts,
		.thread = p->number,
		.trigger = trigger,
		.appending = o->combine_dumps && p->parts > 1,
		.caches = o->cache_sim,
		.branches = o->branch_sim,
		.machine = o->cache_sim ? &valgrind_job_of(p)->caches : NULL,
		.find = find_line,
		.data = p,
	};
	char name[4096], part[16] = "", thread[16] = "";
	FILE *f;

	if (trigger && !o->combine_dumps)
		snprintf(part, sizeof(part), ".%u", p->parts);
	if (p->number)
		snprintf(thread, sizeof(thread), "-%02u", p->number);
	snprintf(name, sizeof(name), "%s%s%s", base, part, thread);
	f = open_output(valgrind_job_of(p), name, style.appending ? "ae" : "we");
	if (!f)
		return;
	callgrind_write(f, profile, &style, &p->total);
	if (ferror(f) | fclose(f))
		cannot_write(valgrind_job_of(p), name);
}

static void write_cachegrind(struct traced_program *p, const struct calls_profile *profile,
			     const char *name)
{
	const struct valgrind_opts *o = &valgrind_job_of(p)->opts;
	const struct callgrind_style style = {
		.command = p->command ? p->command : valgrind_job_of(p)->command,
		.caches = o->cache_sim,
		.branches = o->branch_sim,
		.machine = o->cache_sim ? &valgrind_job_of(p)->caches : NULL,
		.find = find_line,
		.data = p};
	FILE *f = open_output(valgrind_job_of(p), name, "we");

	if (!f)
		return;
	cachegrind_write(f, profile, &style, &p->total);
	if (ferror(f) | fclose(f))
		cannot_write(valgrind_job_of(p), name);
}

static void write_one(struct traced_program *p, const char *trigger, u32 part)
{
	const struct valgrind_opts *o = &valgrind_job_of(p)->opts;
	struct calls_profile profile;
	char *name = output_name(o, p->pid);

	if (!name)
		return;
	calls_take(p->graph, &profile);
	p->parts = part;
	if (o->tool == TOOL_CALLGRIND)
		write_callgrind(p, &profile, trigger, name);
	else
		write_cachegrind(p, &profile, name);
	calls_profile_release(&profile);
	free(name);
}

void valgrind_write(struct traced_program *p, const char *trigger)
{
	u32 part = p->parts + 1;
	struct traced_program *q;

	if (trigger && valgrind_job_of(p)->opts.tool != TOOL_CALLGRIND)
		return;
	if (!trigger) {
		write_one(p, NULL, part);
		return;
	}
	/* Parts are of all threads, some of which may have begun since the last one. */
	for (q = p->trace->programs; q; q = q->next)
		if (q->space == p->space && q->pid == p->pid && q->parts >= part)
			part = q->parts + 1;
	for (q = p->trace->programs; q; q = q->next)
		if (q->space == p->space && q->pid == p->pid)
			write_one(q, trigger, part);
}
