/* Events and features, from a file's sections or a stream's records. */
#include "data/reader-priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bitmap.h"
#include "base/cursor.h"
#include "lib/refusal/fail.h"
#include "lib/spec/names.h"
#include "record/coding.h"

void data_meta_release(struct data_meta *m)
{
	for (u32 i = 0; i < m->nr_events; i++) {
		free((char *)m->events[i].name);
		free(m->events[i].ids);
	}
	free(m->events);
	free(m->layouts);
	free(m->ids);
	data_features_release(&m->features);
	*m = (struct data_meta){0};
}

/* Room for one more of @each bytes; arrays grow by doubling. */
static bool room_for(void **array, u32 n, size_t more, size_t each)
{
	u64 want = (u64)n + more, room = 1;
	void *p;

	if (n && (n & (n - 1)) && ((n ^ want) < n || want == n))
		return true;
	while (room < want)
		room *= 2;
	p = realloc(*array, room * each);
	if (p)
		*array = p;
	return p;
}

/* Whoever is killed leaves a file without names. */
static char *name_by_attr(const struct pe_attr *attr)
{
	char name[80];

	ap__attr_name((const struct perf_event_attr *)attr, name, sizeof(name));
	return strdup(name);
}

int data_meta_add_event(struct data_meta *m, const void *attr, size_t len, const void *ids,
			size_t nr)
{
	struct data_event e = {.members = 1};
	size_t n = len < sizeof(e.attr) ? len : sizeof(e.attr);

	if (len < PE_ATTR_SIZE_VER0 || m->nr_events >= DATA_MAX_EVENTS ||
	    nr > DATA_MAX_IDS - m->nr_ids)
		return -EBADMSG;
	memcpy(&e.attr, attr, n);
	e.attr.size = (u32)n;
	e.ids = malloc(nr * sizeof(u64) + 1);
	e.name = name_by_attr(&e.attr);
	if (!e.ids || !e.name ||
	    !room_for((void **)&m->events, m->nr_events, 1, sizeof(*m->events)) ||
	    !room_for((void **)&m->layouts, m->nr_events, 1, sizeof(*m->layouts)) ||
	    !room_for((void **)&m->ids, m->nr_ids, nr, sizeof(*m->ids))) {
		free((char *)e.name);
		free(e.ids);
		return -ENOMEM;
	}
	if (nr)
		memcpy(e.ids, ids, nr * sizeof(u64));
	e.nr_ids = (u32)nr;
	for (size_t i = 0; i < nr; i++)
		m->ids[m->nr_ids++] = (struct data_id){e.ids[i], m->nr_events};
	m->unsorted = true;
	m->layouts[m->nr_events] = (struct ap_layout){0};
	ap_layout_init(&m->layouts[m->nr_events], (const struct perf_event_attr *)&e.attr);
	m->alike = m->alike && ap__layout_same(&m->layouts[0], &m->layouts[m->nr_events]);
	m->events[m->nr_events++] = e;
	return 0;
}

static int compare_ids(const void *a, const void *b)
{
	const struct data_id *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

int data_meta_event_of(struct data_meta *m, u64 id)
{
	struct data_id key = {.id = id}, *found;

	if (m->unsorted && m->nr_ids)
		qsort(m->ids, m->nr_ids, sizeof(*m->ids), compare_ids);
	m->unsorted = false;
	found = id && m->nr_ids ? bsearch(&key, m->ids, m->nr_ids, sizeof(key), compare_ids) : NULL;
	return found ? (int)found->event : -1;
}

/* The bytes of a section, to be freed; it must lie within the file. */
static void *read_section(int fd, struct data_section s, u64 file_size)
{
	u8 *bytes;
	size_t at = 0;

	if (s.offset > file_size || s.size > file_size - s.offset)
		return NULL;
	bytes = malloc(s.size + 1);
	while (bytes && at < s.size) {
		ssize_t n = pread(fd, bytes + at, s.size - at, (off_t)(s.offset + at));

		if (n <= 0) {
			free(bytes);
			return NULL;
		}
		at += (size_t)n;
	}
	return bytes;
}

static int bad_header(const char *name, const char *what, struct ap_error *err)
{
	return ap__fail(err, -EBADMSG, AP_CAUSE_FILE, "%s: %s", name, what);
}

static int read_attrs(struct data_meta *m, const struct data_header *h, int fd, u64 file_size,
		      const char *name, struct ap_error *err)
{
	size_t attr_size = h->attr_size - sizeof(struct data_section);
	u8 *attrs;
	int r = 0;

	if (h->attr_size < PE_ATTR_SIZE_VER0 + sizeof(struct data_section) || h->attr_size > 4096)
		return bad_header(name, "its header says that attrs have an impossible size", err);
	attrs = read_section(fd, h->attrs, file_size);
	if (!attrs)
		return bad_header(name, "its attrs are beyond its end", err);
	for (u64 at = 0; !r && h->attrs.size - at >= h->attr_size; at += h->attr_size) {
		struct data_section s;
		u8 *ids;

		memcpy(&s, attrs + at + attr_size, sizeof(s));
		ids = read_section(fd, s, file_size);
		r = ids ? data_meta_add_event(m, attrs + at, attr_size, ids, s.size / sizeof(u64))
			: -EBADMSG;
		free(ids);
	}
	free(attrs);
	if (r == -ENOMEM)
		return ap__fail_memory(err);
	return r ? bad_header(name, "an event of its header cannot be read", err) : 0;
}

/* Behind the records. They are of use only, so what is wrong with them is no error. */
static void read_features(struct data_meta *m, const struct data_header *h, int fd, u64 file_size)
{
	u64 at = h->data.offset + h->data.size;
	u32 bit;

	bitmap_for_each (bit, h->features, 256) {
		struct data_section s, *found;

		found = read_section(fd, (struct data_section){at, sizeof(s)}, file_size);
		if (!found)
			return;
		s = *found;
		free(found);
		at += sizeof(s);
		if (bit >= DATA_FEATURES || m->features.of[bit].bytes)
			continue;
		m->features.of[bit] = (struct data_piece){read_section(fd, s, file_size),
							  (size_t)s.size};
		if (m->features.of[bit].bytes)
			data_meta_take_feature(m, bit);
		else
			m->features.of[bit].len = 0;
	}
}

int data_meta_read_header(struct data_meta *m, struct data_header *h, int fd, u64 file_size,
			  const char *name, struct ap_error *err)
{
	int r;

	if (pread(fd, h, sizeof(*h), 0) != (ssize_t)sizeof(*h))
		return bad_header(name, "it ends within its header", err);
	if (h->size != sizeof(*h))
		return bad_header(name, "its header has a size that is not known", err);
	if (h->data.offset > file_size)
		return bad_header(name, "its records are beyond its end", err);
	if (h->data.size > UINT64_MAX - h->data.offset)
		return bad_header(name, "its header says that its records have an impossible size",
				  err);
	r = read_attrs(m, h, fd, file_size, name, err);
	if (r)
		return r;
	read_features(m, h, fd, file_size);
	return 0;
}

static void set_name(struct data_event *e, const char *name)
{
	char *copy = strdup(name);

	if (!copy)
		return;
	free((char *)e->name);
	e->name = copy;
}

/* EVENT_DESC: how many events, size of their attrs; of each attr, how many ids, name, ids. */
static void take_descriptions(struct data_meta *m, const struct data_piece *p)
{
	struct cursor c = cursor_over(p->bytes, p->len);
	u32 nr = cursor_u32(&c), size = cursor_u32(&c);

	for (u32 i = 0; i < nr && i < m->nr_events && !c.torn; i++) {
		u32 ids, len;
		const char *name;

		cursor_bytes(&c, size);
		ids = cursor_u32(&c);
		len = cursor_u32(&c);
		name = cursor_bytes(&c, len);
		if (name && memchr(name, 0, len))
			set_name(&m->events[i], name);
		cursor_bytes(&c, (size_t)ids * sizeof(u64));
	}
}

/* GROUP_DESC: number of groups; then name, index of the leader, number of members of each. */
static void take_groups(struct data_meta *m, const struct data_piece *p)
{
	struct cursor c = cursor_over(p->bytes, p->len);
	u32 nr = cursor_u32(&c);

	for (u32 i = 0; i < nr && !c.torn; i++) {
		u32 leader, members;

		cursor_bytes(&c, cursor_u32(&c));
		leader = cursor_u32(&c);
		members = cursor_u32(&c);
		if (!c.torn && leader < m->nr_events && members <= m->nr_events - leader)
			m->events[leader].members = members;
	}
}

void data_meta_take_feature(struct data_meta *m, u64 feature)
{
	if (feature == DATA_EVENT_DESC)
		take_descriptions(m, &m->features.of[feature]);
	else if (feature == DATA_GROUP_DESC)
		take_groups(m, &m->features.of[feature]);
}

/* The attr says itself how long it is; ids follow. */
static void take_attr(struct data_meta *m, const struct perf_event_header *h)
{
	const u8 *body = (const u8 *)(h + 1);
	size_t len = h->size - sizeof(*h);
	struct pe_attr attr;

	if (len < PE_ATTR_SIZE_VER0)
		return;
	memcpy(&attr, body, PE_ATTR_SIZE_VER0);
	if (!attr.size)
		attr.size = PE_ATTR_SIZE_VER0;
	if (attr.size < PE_ATTR_SIZE_VER0 || attr.size > len)
		return;
	(void)!data_meta_add_event(m, body, attr.size, body + attr.size,
				   (len - attr.size) / sizeof(u64));
}

static void take_update(struct data_meta *m, const struct perf_event_header *h)
{
	struct cursor c = cursor_over(h + 1, h->size - sizeof(*h));
	u64 what = cursor_u64(&c), id = cursor_u64(&c);
	size_t len = cursor_left(&c);
	const char *text = (const char *)c.pos;
	int event = data_meta_event_of(m, id);

	if (what == DATA_UPDATE_NAME && event >= 0 && !c.torn && memchr(text, 0, len))
		set_name(&m->events[event], text);
}

static void take_feature_record(struct data_meta *m, const struct perf_event_header *h)
{
	struct cursor c = cursor_over(h + 1, h->size - sizeof(*h));
	u64 feature = cursor_u64(&c);
	struct data_piece *p;

	if (c.torn || feature >= DATA_FEATURES || m->features.of[feature].bytes)
		return;
	p = &m->features.of[feature];
	if (data_piece_add(p, c.pos, cursor_left(&c)))
		data_meta_take_feature(m, feature);
}

void data_meta_take_record(struct data_meta *m, const struct perf_event_header *h)
{
	switch (h->type) {
	case DATA_HEADER_ATTR: take_attr(m, h); break;
	case DATA_EVENT_UPDATE: take_update(m, h); break;
	case DATA_HEADER_FEATURE: take_feature_record(m, h); break;
	case DATA_HEADER_BUILD_ID:
		/* One after the other they are what the feature is. Bounded as the events are. */
		if (m->features.of[DATA_BUILD_ID].len < (1 << 26))
			(void)!data_piece_add(&m->features.of[DATA_BUILD_ID], h, h->size);
		break;
	default: break;
	}
}
