#include "rt/proc/shown-text.h"

#include "rt/mm/region.h"
#include "rt/syscall/fd.h"
#include "sys/string.h"

#define ROOM_FIRST 0x10000u
#define ROOM_MOST  (64ul << 20) /* smaps of some 50,000 mappings */

static bool grow(struct shown_text *x, size_t need)
{
	size_t room = x->room ? x->room : ROOM_FIRST;
	char *at;

	while (room < need)
		room *= 2;
	at = room <= ROOM_MOST ? region_map(room) : NULL;
	if (!at)
		return false;
	if (x->at) {
		memcpy(at, x->at, x->used);
		region_unmap(x->at, x->room);
	}
	x->at = at;
	x->room = room;
	return true;
}

void shown_put(struct shown_text *x, const char *s, size_t len)
{
	if (x->lost || (x->used + len > x->room && !grow(x, x->used + len))) {
		x->lost = true;
		return;
	}
	memcpy(x->at + x->used, s, len);
	x->used += len;
}

void shown_drop(struct shown_text *x)
{
	if (x->at)
		region_unmap(x->at, x->room);
	memset(x, 0, sizeof(*x));
}

long shown_open(struct shown_text *x, const char *name, bool cloexec)
{
	long fd = x->lost ? -ENOMEM : fd_for_guest(name, x->at, x->used, cloexec);

	shown_drop(x);
	return fd;
}
