/*
 * PURPOSE: the kernel's end of ring buffers, for tests without a kernel: a backend whose events are
 * slots and whose buffers are memory of the test's, written as the kernel writes them (RING-03..08;
 * those who use it hold the rows). Records come from the encoder. Nothing counts: reads give zeros
 * and how many records were lost.
 */
#ifndef UNIT_LIB_FAKE_RING_H
#define UNIT_LIB_FAKE_RING_H

#include <anyperf/anyperf.h>

#include "abi/perf.h"

#define FAKE_PAGE   4096
#define FAKE_EVENTS 64

struct fake_event {
	bool open;
	struct pe_attr attr;
	int cpu;
	int output; /* the slot whose buffer it writes to; its own at first */
	u64 id;
	u8 *map; /* the user page, then the records; NULL: none. It ends where the memory ends */
	size_t map_len;
	u64 head;
	u64 lost;       /* since the last LOST record */
	u64 lost_total; /* of this event, PERF_FORMAT_LOST */
	bool paused;
};

struct fake {
	struct fake_event events[FAKE_EVENTS]; /* handles are slots */
	u64 next_id;
	size_t limit; /* bytes that may be mapped at a time; 0: any number */
	size_t mapped;
};

/* Makes the events of a new machine live in @f, which is zeroed. Freed with ap_machine_free(). */
struct ap_machine *fake_machine(struct fake *f);

/* What @handle's event writes: @rec with its layout and its id. False: there was no room. */
bool fake_write(struct fake *f, int handle, struct ap_record *rec);

/* The same with bytes that may be anything. */
bool fake_write_bytes(struct fake *f, int handle, const void *bytes, size_t len);

/* Where @handle's records go. */
struct perf_event_mmap_page *fake_page(struct fake *f, int handle);

#endif
