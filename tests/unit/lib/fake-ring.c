#include "unit/lib/fake-ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/machine/machine-priv.h"
#include "record/coding.h"

static int fake_open(void *be, struct pe_attr *attr, pid_t pid, int cpu, int leader, u64 flags)
{
	struct fake *f = be;

	(void)pid;
	(void)leader;
	(void)flags;
	for (int i = 0; i < FAKE_EVENTS; i++)
		if (!f->events[i].open) {
			f->events[i] = (struct fake_event){
				.open = true, .cpu = cpu, .output = i, .id = 1000 + f->next_id++};
			memcpy(&f->events[i].attr, attr, attr->size);
			return i;
		}
	return -EMFILE;
}

static int fake_close(void *be, int handle)
{
	((struct fake *)be)->events[handle].open = false;
	return 0;
}

static ssize_t fake_read(void *be, int handle, void *buf, size_t len)
{
	const struct fake_event *e = &((struct fake *)be)->events[handle];
	size_t size = ap_read_size(e->attr.read_format, 1);
	u64 *words = buf;

	if (len < size || (e->attr.read_format & PERF_FORMAT_GROUP))
		return -ENOSPC;
	memset(buf, 0, size);
	if (e->attr.read_format & PE_FORMAT_LOST)
		words[size / 8 - 1] = e->lost_total;
	return (ssize_t)size;
}

static int fake_ioctl(void *be, int handle, unsigned long request, unsigned long arg)
{
	struct fake *f = be;
	struct fake_event *e = &f->events[handle];

	switch (request) {
	case PERF_EVENT_IOC_ID: *(u64 *)arg = e->id; return 0;
	case PERF_EVENT_IOC_SET_OUTPUT:
		if ((int)arg >= 0 &&
		    (e->map || !f->events[arg].map || f->events[arg].cpu != e->cpu))
			return -EINVAL;
		e->output = (int)arg < 0 ? handle : (int)arg;
		return 0;
	case PERF_EVENT_IOC_PAUSE_OUTPUT: f->events[e->output].paused = arg; return 0;
	default: return 0;
	}
}

static int fake_mmap(void *be, int handle, size_t len, u64 offset, bool writable, void **out)
{
	struct fake *f = be;
	struct fake_event *e = &f->events[handle];

	if (offset || e->map || (e->attr.inherit && e->cpu < 0) || e->output != handle)
		return -EINVAL;
	if (writable == e->attr.write_backward && len > FAKE_PAGE)
		return -EACCES;
	if (f->limit && f->mapped + len > f->limit)
		return -EPERM;
	e->map = aligned_alloc(FAKE_PAGE, len);
	if (!e->map)
		return -ENOMEM;
	memset(e->map, 0, len);
	e->map_len = len;
	e->head = 0;
	f->mapped += len;
	*out = e->map;
	return 0;
}

static int fake_munmap(void *be, void *base, size_t len)
{
	struct fake *f = be;

	for (int i = 0; i < FAKE_EVENTS; i++)
		if (f->events[i].map == base && f->events[i].map_len == len) {
			f->events[i].map = NULL;
			f->mapped -= len;
			free(base);
			return 0;
		}
	return -EINVAL;
}

static const struct ap__backend_ops fake_ops = {
	.name = "fake",
	.open = fake_open,
	.close = fake_close,
	.read = fake_read,
	.ioctl = fake_ioctl,
	.mmap = fake_mmap,
	.munmap = fake_munmap,
};

struct ap_machine *fake_machine(struct fake *f)
{
	struct ap_machine *m;

	if (ap_machine_new(&m, NULL))
		abort();
	ap__machine_set_backend(m, &fake_ops, f);
	return m;
}

struct perf_event_mmap_page *fake_page(struct fake *f, int handle)
{
	return (struct perf_event_mmap_page *)f->events[f->events[handle].output].map;
}

static void put(struct fake_event *buffer, u64 pos, const void *bytes, size_t len)
{
	u64 size = buffer->map_len - FAKE_PAGE;

	for (size_t i = 0; i < len; i++)
		buffer->map[FAKE_PAGE + ((pos + i) & (size - 1))] = ((const u8 *)bytes)[i];
}

/* As the kernel's __perf_output_begin(): a byte always stays free; backward nothing is full. */
static bool reserve(struct fake_event *buffer, size_t len, u64 *pos)
{
	struct perf_event_mmap_page *page = (struct perf_event_mmap_page *)buffer->map;
	u64 size = buffer->map_len - FAKE_PAGE;

	if (!buffer->map || buffer->paused || len > size)
		return false;
	if (buffer->attr.write_backward) {
		buffer->head -= len;
		*pos = buffer->head;
		return true;
	}
	if (((page->data_tail - buffer->head - 1) & (size - 1)) < len)
		return false;
	*pos = buffer->head;
	buffer->head += len;
	return true;
}

bool fake_write_bytes(struct fake *f, int handle, const void *bytes, size_t len)
{
	struct fake_event *e = &f->events[handle], *buffer = &f->events[e->output];
	struct ap_record lost = {.type = PERF_RECORD_LOST,
				 .id = {.id = e->id},
				 .lost = {.id = e->id, .lost = buffer->lost}};
	struct ap_layout layout;
	u8 first[128];
	int head = 0;
	u64 pos;

	if (buffer->lost) {
		ap_layout_init(&layout, (struct perf_event_attr *)&e->attr);
		head = ap__record_encode(&lost, &layout, first, sizeof(first));
		if (head < 0)
			abort();
	}
	if (!reserve(buffer, (size_t)head + len, &pos)) {
		buffer->lost++;
		e->lost_total++;
		return false;
	}
	put(buffer, pos, first, (size_t)head);
	put(buffer, pos + (size_t)head, bytes, len);
	buffer->lost = 0;
	__atomic_store_n(&((struct perf_event_mmap_page *)buffer->map)->data_head, buffer->head,
			 __ATOMIC_RELEASE);
	return true;
}

bool fake_write(struct fake *f, int handle, struct ap_record *rec)
{
	static u64 bytes[RECORD_MAX / 8];
	struct ap_layout layout;
	int len;

	ap_layout_init(&layout, (struct perf_event_attr *)&f->events[handle].attr);
	rec->id.id = f->events[handle].id;
	len = ap__record_encode(rec, &layout, bytes, sizeof(bytes));
	if (len < 0)
		abort();
	return fake_write_bytes(f, handle, bytes, (size_t)len);
}
