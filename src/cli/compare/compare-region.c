#include "cli/compare/compare-region.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abi/perf.h"
#include "base/check.h"
#include "base/cursor.h"
#include "cli/compare/compare-facts.h"
#include "elf/elf-file.h"
#include "sym/symbols.h"

/* Where Linux puts a program that can lie anywhere, if it does not choose by chance [x86-64]. */
#define PIE_BASE 0x555555554000ull

#define PAGE 4096ull

#define PAGES  1024 /* of a buffer: 4 MB are some 30,000 samples */
#define VALUES 32   /* of one sample's group */

struct program_file {
	char path[4096];
	void *bytes;
	size_t len;
};

/* Behind the contents' beginning, at @vaddr: how far away the place is, and its name. */
static u64 place_of(struct cursor desc, u64 vaddr, const char *name)
{
	const char *away = cursor_bytes(&desc, 8), *text;
	size_t len = cursor_left(&desc);
	s64 distance;

	text = cursor_bytes(&desc, len);
	if (!away || !text || len != strlen(name) + 1 || memcmp(text, name, len) != 0)
		return 0;
	memcpy(&distance, away, sizeof(distance));
	return vaddr + (u64)distance;
}

u32 mark_places_in(const void *notes, size_t len, u64 vaddr, const char *name,
		   u64 places[MARK_PLACES_MAX])
{
	struct cursor c = cursor_over(notes, len);
	u32 n = 0;

	while (cursor_left(&c) >= 12) {
		u32 name_len = cursor_u32(&c), desc_len = cursor_u32(&c);
		const void *owner, *desc;
		u64 at, found;
		size_t rest;

		(void)cursor_u32(&c); /* the type */
		owner = cursor_bytes(&c, ALIGN_UP((size_t)name_len, 4));
		at = vaddr + len - cursor_left(&c);
		desc = cursor_bytes(&c, desc_len);
		if (!owner || !desc)
			break;
		found = place_of(cursor_over(desc, desc_len), at, name);
		if (found && n < MARK_PLACES_MAX)
			places[n] = found;
		n += found != 0;
		rest = ALIGN_UP((size_t)desc_len, 4) - desc_len;
		cursor_bytes(&c, rest < cursor_left(&c) ? rest : cursor_left(&c));
	}
	return n;
}

static u32 mark_places(const struct program_file *f, const char *name, u64 places[MARK_PLACES_MAX])
{
	struct elf_section notes;
	struct elf_file file;

	if (!elf_file_open(&file, f->bytes, f->len) ||
	    !elf_file_find(&file, ".note.anyperf", &notes) || notes.offset > f->len ||
	    notes.size > f->len - notes.offset)
		return 0;
	return mark_places_in((const u8 *)f->bytes + notes.offset, notes.size, notes.addr, name,
			      places);
}

enum program_kind {
	PROGRAM_NONE,   /* nothing that is executed by itself */
	PROGRAM_FIXED,  /* it lies at the file's addresses */
	PROGRAM_PIE,    /* with a dynamic loader: all such lie at one address */
	PROGRAM_STATIC, /* position-independent without one: wherever there is room */
};

static enum program_kind kind_of(const struct program_file *f)
{
	struct elf_segment segment;
	struct elf_file file;
	Elf64_Ehdr head;

	if (!elf_file_open(&file, f->bytes, f->len) || !file.is64 || f->len < sizeof(head))
		return PROGRAM_NONE;
	memcpy(&head, f->bytes, sizeof(head));
	if (head.e_type == ET_EXEC)
		return PROGRAM_FIXED;
	for (u32 i = 0; i < file.phnum; i++)
		if (elf_file_segment(&file, i, &segment) && segment.type == PT_INTERP)
			return PROGRAM_PIE;
	return PROGRAM_STATIC;
}

/* The first mapping of @f that a record tells of; false: it tells of another. */
static bool bias_of(const struct program_file *f, const char *path, const struct ap_record *rec,
		    u64 *bias)
{
	struct elf_segment segment;
	struct elf_file file;

	if ((rec->type != PERF_RECORD_MMAP && rec->type != PERF_RECORD_MMAP2) ||
	    strcmp(rec->mmap.filename, path) != 0 || !elf_file_open(&file, f->bytes, f->len))
		return false;
	for (u32 i = 0; i < file.phnum; i++) {
		if (!elf_file_segment(&file, i, &segment) || segment.type != PT_LOAD ||
		    ALIGN_DOWN(segment.offset, PAGE) != rec->mmap.pgoff)
			continue;
		*bias = rec->mmap.addr - ALIGN_DOWN(segment.vaddr, PAGE);
		return true;
	}
	return false;
}

/* Runs the command to see where its program comes to lie, as it then always does. */
static bool probe_bias(struct compare_job *job, struct compare_side *side,
		       const struct program_file *f, u64 *bias)
{
	struct ap_sampler_opts opts = AP_OPTS(ap_sampler_opts, .period = 1, .pages = 64,
					      .flags = AP_SAMPLER_SHRINK | AP_SAMPLER_TASKS,
					      .open_flags = AP_OPEN_ON_EXEC);
	struct ap_target target = AP_OPTS(ap_target);
	struct ap_command *command;
	struct ap_specs *specs = NULL;
	struct ap_sampler *sampler;
	char *path = realpath(f->path, NULL);
	struct compare_end end;
	struct ap_record rec;
	struct ap_error err;
	bool found = false;

	if (!path || ap_specs_parse(&specs, side->machine, "dummy:u", &err) ||
	    compare_new(job, side, side->machine, &command)) {
		free(path);
		ap_specs_free(specs);
		return false;
	}
	target.command = command;
	if (ap_sampler_open(&sampler, side->machine, specs, &target, &opts, &err)) {
		ap_command_free(command);
	} else {
		if (!compare_run(job, side, command, &end))
			while (!found && ap_sampler_next(sampler, &rec, &err) > 0)
				found = bias_of(f, path, &rec, bias);
		ap_sampler_close(sampler);
	}
	ap_specs_free(specs);
	free(path);
	return found;
}

/* How far from its addresses in the file a program lies; false after saying why not. */
static bool find_bias(struct compare_job *job, struct compare_side *side,
		      const struct program_file *f, u64 *bias)
{
	enum program_kind kind = kind_of(f);

	*bias = kind == PROGRAM_PIE ? PIE_BASE : 0;
	if (kind == PROGRAM_STATIC && !probe_bias(job, side, f, bias)) {
		command_error(&cmd_compare, "--from: it cannot be told where '%s' was loaded to",
			      f->path);
		return false;
	}
	if (kind == PROGRAM_NONE)
		command_error(&cmd_compare,
			      "--from: '%s' is no program whose addresses are known: a script, "
			      "for instance",
			      f->path);
	return kind != PROGRAM_NONE;
}

static bool map_program(const struct compare_job *job, const char *name, struct program_file *f)
{
	struct stat st;
	int fd;

	*f = (struct program_file){.bytes = MAP_FAILED};
	if (!compare_find_program(job, name, f->path, sizeof(f->path)))
		return false;
	fd = open(f->path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && !fstat(fd, &st) && st.st_size > 0) {
		f->len = (size_t)st.st_size;
		f->bytes = mmap(NULL, f->len, PROT_READ, MAP_PRIVATE, fd, 0);
	}
	if (fd >= 0)
		close(fd);
	return f->bytes != MAP_FAILED;
}

/* Where @name is in a program that runs; 0 after saying that it is nowhere. */
static u32 find_places(const struct program_file *f, u64 bias, const char *name, const char *option,
		       u64 places[MARK_PLACES_MAX])
{
	struct sym_symbols *symbols = sym_symbols_load(f->path, NULL);
	u32 n = 1;

	places[0] = symbols ? sym_symbols_address(symbols, name) : 0;
	sym_symbols_free(symbols);
	if (!places[0])
		n = mark_places(f, name, places);
	if (!n)
		command_error(&cmd_compare,
			      "%s: '%s' has neither a function nor a mark of the name %s", option,
			      f->path, name);
	if (n > MARK_PLACES_MAX) {
		command_error(&cmd_compare,
			      "%s: '%s' has %u copies of the mark %s; at most %d "
			      "can be watched",
			      option, f->path, n, name, MARK_PLACES_MAX);
		n = 0;
	}
	for (u32 i = 0; i < n; i++)
		places[i] += bias;
	return n;
}

/* A group for each place. */
static void add_groups(char *text, size_t size, const u64 *places, u32 n, const char *events)
{
	for (u32 i = 0; i < n; i++) {
		size_t len = strlen(text);

		snprintf(text + len, size - len, "%s{mem:0x%llx:x,%s}:Su", len ? "," : "",
			 (unsigned long long)places[i], events);
	}
}

char *compare_region_events(struct compare_job *job, struct compare_side *side, const char *events)
{
	u64 from[MARK_PLACES_MAX], to[MARK_PLACES_MAX], bias = 0;
	struct program_file f;
	char *text = NULL;
	size_t size = (size_t)2 * MARK_PLACES_MAX * (strlen(events) + 50);
	u32 nr_from, nr_to;

	if (strpbrk(events, "{}")) {
		command_error(&cmd_compare, "--from and --to take no groups of events");
		return NULL;
	}
	if (!map_program(job, side->argv[0], &f)) {
		command_error(&cmd_compare, "--from: cannot read the program '%s'", side->argv[0]);
		return NULL;
	}
	if (find_bias(job, side, &f, &bias)) {
		nr_from = find_places(&f, bias, job->opts.from, "--from", from);
		nr_to = nr_from ? find_places(&f, bias, job->opts.to, "--to", to) : 0;
		if (nr_to) {
			text = calloc(1, size);
			CHECK(text);
			add_groups(text, size, from, nr_from, events);
			add_groups(text, size, to, nr_to, events);
			side->from_places = nr_from;
		}
	}
	munmap(f.bytes, f.len);
	return text;
}

int compare_region_open(const struct compare_side *side, struct ap_command *command,
			struct ap_sampler **s, struct ap_error *err)
{
	struct ap_target target = AP_OPTS(ap_target, .command = command);
	struct ap_sampler_opts opts = AP_OPTS(ap_sampler_opts, .period = 1, .pages = PAGES,
					      .flags = AP_SAMPLER_SHRINK,
					      .open_flags = AP_OPEN_ON_EXEC | AP_OPEN_INHERIT);

	/* Where other programs have something else are the addresses of this one. */
	for (u32 i = 0; i < ap_specs_count(side->specs); i++)
		((struct pe_attr *)ap_specs_at(side->specs, i)->attr)->inherit_thread = 1;
	return ap_sampler_open(s, side->machine, side->specs, &target, &opts, err);
}

/* What a thread has counted when it came to the place of --from. */
struct passing {
	u32 tid;
	u32 depth; /* 0: it is outside */
	u64 start[VALUES];
};

struct passings {
	struct passing *all;
	u32 n;
	bool nested; /* the places are a pair's, so that the outermost of a recursion counts */
};

static struct passing *passing_of(struct passings *p, u32 tid)
{
	/* The last one first: a thread rarely takes one sample only. */
	for (u32 i = p->n; i--;)
		if (p->all[i].tid == tid)
			return &p->all[i];
	p->all = realloc(p->all, (p->n + 1) * sizeof(*p->all));
	CHECK(p->all);
	p->all[p->n] = (struct passing){.tid = tid};
	return &p->all[p->n++];
}

/* Whether @from and @to are the two places of ANYPERF_BEGIN() and ANYPERF_END() of one name. */
static bool is_pair(const char *from, const char *to)
{
	size_t len = strlen(to) > 4 ? strlen(to) - 4 : 0;

	return len && !strncmp(from, to, len) && !strcmp(from + len, ".begin") &&
	       !strcmp(to + len, ".end");
}

/* Whether a sample is of one of the last groups, which are at the places of --to. */
static bool is_end(const struct compare_side *side, const struct ap_record *rec)
{
	u32 n = ap_specs_count(side->specs), of_group = side->nr_counts + 1;

	for (u32 i = side->from_places * of_group; i < n; i += of_group)
		if (ap_specs_at(side->specs, i)->attr->bp_addr == rec->sample.ip)
			return true;
	return false;
}

/* One sample; the number of passes that it ends. */
static int take_sample(const struct compare_side *side, const struct ap_record *rec,
		       struct passings *passings, u64 *sums)
{
	const struct ap_read_block *read = &rec->sample.read;
	struct passing *p = passing_of(passings, rec->id.tid);
	struct ap_value v[VALUES];
	int n = ap_read_decode(read->bytes, read->len, read->format, v, VALUES);

	if (n != (int)side->nr_counts + 1)
		return 0;
	if (!is_end(side, rec)) {
		for (u32 i = 0; i < side->nr_counts && !p->depth; i++)
			p->start[i] = v[i + 1].value;
		p->depth += !p->depth || passings->nested;
		return 0;
	}
	if (!p->depth || --p->depth)
		return 0;
	for (u32 i = 0; i < side->nr_counts; i++)
		sums[i] += v[i + 1].value - p->start[i];
	return 1;
}

/* The number of passes; or -1 after a sentence. */
static int say_passes(const struct compare_side *side, const struct passings *p, int passes,
		      u64 lost)
{
	u32 deepest = 0;

	for (u32 i = 0; i < p->n; i++)
		deepest = p->all[i].depth > deepest ? p->all[i].depth : deepest;
	if (lost)
		return command_error(&cmd_compare,
				     "%s reaches the places of --from and --to too often: %llu "
				     "times beyond what the buffer holds",
				     side->name, (unsigned long long)lost);
	if (deepest > 1)
		return command_error(&cmd_compare,
				     "a thread of %s begins the part %u times more often than it "
				     "ends it, so it cannot be told which end belongs to which "
				     "beginning",
				     side->name, deepest);
	if (!passes)
		return command_error(&cmd_compare,
				     "no thread of %s has gone from the place of --from to that of "
				     "--to",
				     side->name);
	return passes;
}

int compare_region_read(const struct compare_job *job, const struct compare_side *side,
			struct ap_sampler *s, u64 *sums)
{
	struct passings p = {.nested = is_pair(job->opts.from, job->opts.to)};
	struct ap_record rec;
	struct ap_error err;
	int passes = 0, r;
	u64 lost = 0;

	(void)ap_sampler_disable(s);
	while ((r = ap_sampler_next(s, &rec, &err)) != 0)
		if (r > 0 && rec.type == PERF_RECORD_SAMPLE)
			passes += take_sample(side, &rec, &p, sums);
	(void)ap_sampler_lost(s, &lost);
	passes = say_passes(side, &p, passes, lost);
	free(p.all);
	return passes;
}
