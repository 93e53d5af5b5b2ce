#include "cli/reading.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/cursor.h"
#include "data/feature.h"

/* "0-3,8" */
static int parse_set(struct reading *r, struct reading_set *set, const char *text,
		     const char *option)
{
	const char *p = text;

	while (p && *p) {
		struct reading_range range;
		char *end;

		range.from = range.to = strtoull(p, &end, 10);
		if (end == p)
			goto bad;
		if (*end == '-') {
			p = end + 1;
			range.to = strtoull(p, &end, 10);
			if (end == p || range.to < range.from)
				goto bad;
		}
		if (*end && *end != ',')
			goto bad;
		set->range = realloc(set->range, (set->n + 1) * sizeof(range));
		CHECK(set->range);
		set->range[set->n++] = range;
		p = *end ? end + 1 : end;
	}
	return 0;
bad:
	return command_error(r->cmd, "%s: '%s' is not a list of numbers like 1,4-7", option, text);
}

static bool in_set(const struct reading_set *set, u64 n)
{
	for (u32 i = 0; i < set->n; i++)
		if (n >= set->range[i].from && n <= set->range[i].to)
			return true;
	return !set->range;
}

/* Seconds with up to nine digits behind the point, as ns. */
static bool parse_time(const char *text, const char **rest, u64 *ns)
{
	char *end;
	u64 seconds = strtoull(text, &end, 10), part = 0;
	u32 digits = 0;

	if (end == text || seconds > UINT64_MAX / 1000000000 - 1)
		return false;
	if (*end == '.')
		for (end++; *end >= '0' && *end <= '9' && digits < 9; end++, digits++)
			part = part * 10 + (u64)(*end - '0');
	for (; digits < 9; digits++)
		part *= 10;
	*ns = seconds * 1000000000 + part;
	*rest = end;
	return true;
}

static int parse_times(struct reading *r)
{
	const char *p = r->filter.time;

	r->to = UINT64_MAX;
	if (!p)
		return 0;
	if (*p != ',' && !parse_time(p, &p, &r->from))
		goto bad;
	if (*p == ',' && p[1] && (!parse_time(p + 1, &p, &r->to) || *p))
		goto bad;
	if ((*p && *p != ',') || r->from > r->to)
		goto bad;
	return 0;
bad:
	return command_error(r->cmd, "--time: '%s' is not START,STOP in seconds, as in 12.5,14",
			     r->filter.time);
}

/* What perf record --kcore and --threads make. Of the latter samples are in files of their own. */
static int open_in_folder(struct reading *r, const char *name)
{
	char path[4096];

	snprintf(path, sizeof(path), "%.4000s/data.0", name);
	if (!access(path, F_OK))
		return command_error(
			r->cmd,
			"'%s' is a folder with a file for each thread of perf record --threads, "
			"which perf reads and anyperf does not; record without it",
			name);
	snprintf(path, sizeof(path), "%.4000s/data", name);
	close(r->fd);
	r->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (r->fd < 0)
		return command_error(r->cmd, "'%s' is a folder, and no recording: %s: %s", name,
				     path, strerror(errno));
	return 0;
}

static int open_input(struct reading *r, const char **name)
{
	struct stat st;

	*name = r->filter.input;
	if (!*name)
		*name = !fstat(STDIN_FILENO, &st) && S_ISFIFO(st.st_mode) ? "-" : "perf.data";
	if (!strcmp(*name, "-")) {
		*name = "stdin";
		r->fd = STDIN_FILENO;
		return 0;
	}
	r->fd = open(*name, O_RDONLY | O_CLOEXEC);
	if (r->fd < 0)
		return command_error(
			r->cmd, "cannot read '%s': %s%s", *name, strerror(errno),
			errno == ENOENT && !r->filter.input ? "; `anyperf record` makes it" : "");
	return !fstat(r->fd, &st) && S_ISDIR(st.st_mode) ? open_in_folder(r, *name) : 0;
}

int reading_open(struct reading *r, const struct command *cmd, const struct reading_filter *filter,
		 enum reading_order order)
{
	const char *name;
	struct ap_error err;
	char text[1100];

	*r = (struct reading){.cmd = cmd, .filter = *filter, .order = order, .fd = -1};
	if (parse_times(r) || parse_set(r, &r->pids, filter->pids, "--pid") ||
	    parse_set(r, &r->tids, filter->tids, "--tid") ||
	    parse_set(r, &r->cpus, filter->cpus, "--cpu") || open_input(r, &name))
		return -1;
	if (data_reader_open(&r->data, r->fd, name, &err))
		return command_error(cmd, "%s", ap_error_text(&err, text, sizeof(text)));
	if (r->cpus.range && order)
		reading_needs(r, (struct reading_need){
					 PERF_SAMPLE_CPU, "--cpu", "CPU",
					 "`anyperf record` records it without -i and --exact"});
	data_rounds_init(&r->rounds);
	r->rounds.live = order == READING_LIVE;
	r->view = sym_view_new();
	CHECK(r->view);
	return 0;
}

void reading_close(struct reading *r)
{
	sym_unwinder_free(r->unwinder);
	free(r->arch);
	free(r->machine);
	free(r->windows);
	data_rounds_release(&r->rounds);
	data_parts_release(&r->parts);
	data_reader_close(r->data);
	sym_view_free(r->view);
	free(r->pids.range);
	free(r->tids.range);
	free(r->cpus.range);
	if (r->fd > STDERR_FILENO)
		close(r->fd);
}

/* Those of a stream come at its end, too late for what was shown; it does without. */
static void learn_build_ids(struct reading *r)
{
	struct data_build_id id;
	struct cursor c;
	const void *bytes;
	size_t len;

	r->ids_known = true;
	bytes = data_reader_feature(r->data, DATA_BUILD_ID, &len);
	c = cursor_over(bytes, bytes ? len : 0);
	while (cursor_left(&c) >= sizeof(id)) {
		const char *path;
		size_t rest;

		memcpy(&id, cursor_bytes(&c, sizeof(id)), sizeof(id));
		if (id.header.size <= sizeof(id))
			return;
		rest = id.header.size - sizeof(id);
		path = cursor_bytes(&c, rest);
		if (!path || !memchr(path, 0, rest))
			return;
		/* perf wrote 20 bytes whatever the size before it said it. */
		sym_view_build_id(r->view, path, id.id,
				  id.header.misc & DATA_MISC_BUILD_ID_SIZE ? id.size : 20);
	}
}

static void learn_map(struct reading *r, const struct ap_record_mmap *map)
{
	struct elf_build_id id = {.size = 0};

	if (map->build_id)
		id = elf_build_id_made(map->build_id, map->build_id_size);
	sym_view_map(r->view, map->pid, map->addr, map->len, map->pgoff, map->filename,
		     id.size ? &id : NULL);
}

static void learn(struct reading *r, const struct ap_record *rec)
{
	if (!r->ids_known)
		learn_build_ids(r);
	switch (rec->type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		if (r->data_maps || !(rec->misc & PERF_RECORD_MISC_MMAP_DATA))
			learn_map(r, &rec->mmap);
		break;
	case PERF_RECORD_COMM: sym_view_comm(r->view, rec->comm.tid, rec->comm.comm); break;
	case PERF_RECORD_FORK:
		sym_view_fork(r->view, rec->task.pid, rec->task.tid, rec->task.ppid,
			      rec->task.ptid);
		break;
	case PERF_RECORD_LOST:
	case PERF_RECORD_LOST_SAMPLES: r->lost += rec->lost.lost; break;
	default: break;
	}
}

bool reading_lists(const char *list, const char *name)
{
	const char *p = list;

	while (p && *p && name) {
		size_t len = strcspn(p, ",");

		if (strlen(name) == len && !strncmp(p, name, len))
			return true;
		p += len + (p[len] == ',');
	}
	return !list;
}

static bool is_wanted(const struct reading *r, const struct data_item *item)
{
	const struct ap_sample_id *id = &item->record.id;
	char room[16];

	if (item->record.type != PERF_RECORD_SAMPLE)
		return true;
	return id->time >= r->from && id->time <= r->to && in_set(&r->pids, id->pid) &&
	       in_set(&r->tids, id->tid) &&
	       (!r->cpus.range || ((id->has & PERF_SAMPLE_CPU) && in_set(&r->cpus, id->cpu))) &&
	       reading_lists(r->filter.comms, reading_comm(r, item, room));
}

void reading_needs(struct reading *r, struct reading_need need)
{
	CHECK(r->nr_needs < READING_NEEDS);
	r->need[r->nr_needs++] = need;
}

static bool is_dummy(const struct data_event *e)
{
	return e->attr.type == PERF_TYPE_SOFTWARE && e->attr.config == PERF_COUNT_SW_DUMMY;
}

/* A stream names its events as it goes, in front of their records. */
static bool has_needs(struct reading *r)
{
	for (; r->events_seen < data_reader_events(r->data); r->events_seen++) {
		const struct data_event *e = data_reader_event(r->data, r->events_seen);

		for (u32 i = 0; i < r->nr_needs; i++) {
			const struct reading_need *need = &r->need[i];

			/* A dummy tells of threads and mappings, and has no samples. */
			if ((e->attr.sample_type & need->any_of) || is_dummy(e))
				continue;
			r->refused = true;
			command_error(r->cmd, "%s: the samples of '%s' have no %s%s%s",
				      need->option, reading_event_name(r, (int)r->events_seen),
				      need->part, need->instead ? "; " : "",
				      need->instead ? need->instead : "");
			return false;
		}
	}
	return true;
}

int reading_next(struct reading *r, struct data_item *item)
{
	struct ap_error err;
	char text[1100];
	int n;

	for (;;) {
		r->is_part = r->order && data_parts_next(&r->parts, r->data, item);
		if (r->is_part) {
			if (is_wanted(r, item))
				return 1;
			continue;
		}
		n = r->order ? data_rounds_next(&r->rounds, r->data, item, &err)
			     : data_reader_next(r->data, item, &err);
		if (!has_needs(r))
			return 0;
		if (n < 0)
			command_error(r->cmd, "%s", ap_error_text(&err, text, sizeof(text)));
		/* Without a library that it wants none of its samples is read. */
		r->refused |= n == -ENOENT;
		if (n <= 0)
			return 0;
		r->unwound = false;
		if (item->decoded)
			learn(r, &item->record);
		if (r->order && data_parts_begin(&r->parts, item))
			continue;
		if (!r->order || is_wanted(r, item))
			return 1;
	}
}

#define CHANGED_SAID 5u

/* What a reader of a recording can see of it is that functions are addresses. */
struct changed {
	const struct reading *r;
	u32 n;
};

static void say_changed(const char *path, bool there, void *data)
{
	struct changed *c = data;

	if (c->n++ < CHANGED_SAID)
		command_error(c->r->cmd,
			      there ? "'%s' was built anew since it was recorded: its functions "
				      "are shown as addresses"
				    : "'%s' is not there any more: its functions are shown as "
				      "addresses",
			      path);
}

void reading_say_losses(const struct reading *r)
{
	struct changed changed = {.r = r};

	if (r->lost)
		command_error(r->cmd, "%" PRIu64 " samples were lost when it was recorded",
			      r->lost);
	if (r->parts.unknown)
		command_error(r->cmd,
			      "%" PRIu64 " samples are left out: the recording knows none of the "
			      "events that they have counts of",
			      r->parts.unknown);
	sym_view_changed(r->view, say_changed, &changed);
	if (changed.n > CHANGED_SAID)
		command_error(r->cmd, "so is it with %u other files", changed.n - CHANGED_SAID);
}

const char *reading_comm(const struct reading *r, const struct data_item *item, char *room)
{
	const char *comm = sym_view_name(r->view, item->record.id.tid);

	if (*comm)
		return comm;
	if (!item->record.id.tid)
		return "swapper";
	snprintf(room, 16, ":%d", (int)item->record.id.tid);
	return room;
}

void reading_find(const struct reading *r, const struct data_item *item, u64 addr, bool kernel,
		  struct sym_place *place)
{
	sym_view_find(r->view, item->record.id.pid, addr, kernel, place);
}

u64 reading_period(const struct reading *r, const struct data_item *item)
{
	const struct data_event *e = data_reader_event(r->data,
						       item->event < 0 ? 0 : (u32)item->event);

	if (r->is_part || !e || (e->attr.sample_type & PERF_SAMPLE_PERIOD))
		return item->record.sample.period;
	return e->attr.freq ? 1 : e->attr.sample_period;
}

bool reading_in_kernel(const struct data_item *item)
{
	return (item->record.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
}

const char *reading_arch(struct reading *r)
{
	const void *bytes;
	size_t len;

	if (!r->arch) {
		bytes = data_reader_feature(r->data, DATA_ARCH, &len);
		if (bytes)
			r->arch = data_feature_text(bytes, len);
	}
	return r->arch ? r->arch : "";
}

/* What the PMU can, by @name; kept in *value. */
static const char *cap(struct reading *r, const char *name, char **value)
{
	const void *bytes;
	size_t len;

	if (!*value) {
		bytes = data_reader_feature(r->data, DATA_CPU_PMU_CAPS, &len);
		if (bytes)
			*value = data_feature_value(bytes, len, name);
	}
	return *value;
}

const char *reading_machine(struct reading *r)
{
	return cap(r, "machine", &r->machine);
}

const char *reading_windows(struct reading *r)
{
	return cap(r, "machine_windows", &r->windows);
}

const char *reading_event_name(const struct reading *r, int event)
{
	const struct data_event *e = event >= 0 ? data_reader_event(r->data, (u32)event) : NULL;

	return e && e->name ? e->name : "unknown";
}
