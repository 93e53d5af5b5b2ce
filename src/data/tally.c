#include "data/tally.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "record/coding.h"

void data_tally_init(struct data_tally *t, const struct ap_layout *layout)
{
	*t = (struct data_tally){.layout = *layout};
}

void data_tally_release(struct data_tally *t)
{
	for (u32 i = 0; i < t->room; i++)
		free(t->files[i].name);
	free(t->files);
	*t = (struct data_tally){0};
}

/* Where @name is in the table, or belongs. There is always room. */
static struct data_file *place_of(struct data_file *files, u32 room, const char *name)
{
	u32 hash = 2166136261u;

	for (const char *p = name; *p; p++)
		hash = (hash ^ (u8)*p) * 16777619u;
	for (u32 i = hash & (room - 1);; i = (i + 1) & (room - 1))
		if (!files[i].name || !strcmp(files[i].name, name))
			return &files[i];
}

static bool grow(struct data_tally *t)
{
	u32 room = t->room ? t->room * 2 : 64;
	struct data_file *files = calloc(room, sizeof(*files));

	if (!files)
		return false;
	for (u32 i = 0; i < t->room; i++)
		if (t->files[i].name)
			*place_of(files, room, t->files[i].name) = t->files[i];
	free(t->files);
	t->files = files;
	t->room = room;
	return true;
}

/* Without memory a file has no build id: no reason to end a recording. */
static void add_file(struct data_tally *t, const struct ap_record_mmap *map)
{
	struct data_file *file;

	if (t->nr_files * 2 >= t->room && !grow(t))
		return;
	file = place_of(t->files, t->room, map->filename);
	if (file->name)
		return;
	file->name = strdup(map->filename);
	file->build_id_size = map->build_id ? map->build_id_size : 0;
	if (file->build_id_size)
		memcpy(file->build_id, map->build_id, sizeof(file->build_id));
	else
		file->ino = map->ino;
	t->nr_files += file->name != NULL;
}

static void look_at_map(struct data_tally *t, const void *bytes, size_t len)
{
	struct ap_record rec;
	const char *why;

	/* What the trailer looks like does not matter here, so it need not be the first event's. */
	if (ap__record_decode(&rec, bytes, len, &t->layout, &why) < 0)
		return;
	if (rec.type == PERF_RECORD_MMAP2 && !(rec.mmap.prot & PROT_EXEC))
		return;
	if (!(rec.misc & PERF_RECORD_MISC_MMAP_DATA) && rec.mmap.filename[0] == '/' &&
	    rec.mmap.filename[1] != '/')
		add_file(t, &rec.mmap);
}

static void look_at_time(struct data_tally *t, const u8 *bytes, size_t size)
{
	size_t at = ap__record_time_at(PERF_RECORD_SAMPLE, size, &t->layout);
	u64 time;

	if (!at)
		return;
	memcpy(&time, bytes + at, sizeof(time));
	if (!t->first || time < t->first)
		t->first = time;
	if (time > t->last)
		t->last = time;
}

void data_tally_add(struct data_tally *t, const void *records, size_t len)
{
	const u8 *p = records, *end = p + len;
	struct perf_event_header h;

	for (; (size_t)(end - p) >= sizeof(h); p += h.size) {
		u64 words[2];

		memcpy(&h, p, sizeof(h));
		if (h.size < sizeof(h) || h.size > (size_t)(end - p))
			return;
		if (h.type == PERF_RECORD_SAMPLE) {
			t->samples++;
			look_at_time(t, p, h.size);
		} else if (h.type == PERF_RECORD_LOST && h.size >= sizeof(h) + sizeof(words)) {
			memcpy(words, p + sizeof(h), sizeof(words));
			t->lost += words[1];
		} else if (h.type == PERF_RECORD_MMAP || h.type == PERF_RECORD_MMAP2) {
			look_at_map(t, p, h.size);
		}
	}
}
