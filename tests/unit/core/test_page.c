/* When the user page is updated, and what a reader may see of that [PAGE]. */
#include "unit/test.h"

#include <signal.h>

#include "unit/core/fake.h"

static struct fake *f;

/* What a child leaves is on the original's page at once, whoever runs [PAGE-04, INH-03]. */
TEST(the_page_has_what_a_child_left)
{
	struct perf_event_mmap_page *page;
	struct pe_attr attr = fake_attr();
	struct event *child;
	int fd;

	f = fake_new(4);
	attr.inherit = 1;
	/* Only one that is bound to a CPU has a page and copies. */
	fd = fake_open(f, &attr, 0, 0, -1);
	EXPECT(fd >= 0);
	EXPECT_EQ(fake_map(f, fd, 1, true), 0);
	page = fake_page(f, fd);
	fake_fork(f, 100, 101, false);
	child = list_first(&fake_event(f, fd)->children, struct event, child_link);
	/* No update of the original's own comes after this one. */
	EXPECT_EQ(fake_ioctl(f, fd, PERF_EVENT_IOC_DISABLE, 0), 0);
	EXPECT_EQ(page->offset, 0);
	child->count = 30;
	child->time_enabled = 50;
	child->time_running = 40;
	fake_exit(f, 101);
	EXPECT_EQ(page->offset, 30);
	EXPECT_EQ(page->time_enabled, 50);
	EXPECT_EQ(page->time_running, 40);
	fake_free(f);
}

#ifdef __x86_64__
#define TRAP_FLAG 0x100ull

/* What a reader would see after every single instruction of an update. */
static struct {
	const volatile struct perf_event_mmap_page *page;
	u64 enabled, running;
	s64 offset;
	u32 odd;     /* looks at an odd lock */
	u32 changed; /* looks at an even lock, and at something new */
	u32 torn;    /* of these, those at a part of it */
} watched;

static void look(int sig)
{
	bool is_new = watched.page->time_enabled != watched.enabled;

	(void)sig;
	if (watched.page->lock % 2) {
		watched.odd++;
		return;
	}
	watched.changed += is_new;
	watched.torn += (watched.page->time_running != watched.running) != is_new ||
			(watched.page->offset != watched.offset) != is_new;
}

/* The lock is odd from before the first word that changes until after the last [PAGE-02]. */
TEST(user_page_is_locked_while_it_changes)
{
	struct pe_attr attr = fake_attr();
	struct sigaction step = {.sa_handler = look}, before;
	struct event *event;
	u32 lock;
	int fd;

	f = fake_new(1);
	fd = fake_open(f, &attr, 0, -1, -1);
	EXPECT(fd >= 0);
	event = fake_event(f, fd);
	EXPECT_EQ(fake_map(f, fd, 1, true), 0);
	/* Off its counter all three words change with what was counted. */
	fake_advance(f, 50);
	fake_ioctl(f, fd, PERF_EVENT_IOC_DISABLE, 0);
	watched.page = fake_page(f, fd);
	watched.enabled = watched.page->time_enabled;
	watched.running = watched.page->time_running;
	watched.offset = watched.page->offset;
	lock = watched.page->lock;
	event->count += 7;
	event->time_enabled += 9;
	event->time_running += 8;
	EXPECT_EQ(sigaction(SIGTRAP, &step, &before), 0);
	__builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() | TRAP_FLAG);
	event_page_update(event);
	__builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() & ~TRAP_FLAG);
	EXPECT_EQ(sigaction(SIGTRAP, &before, NULL), 0);
	EXPECT(watched.odd > 0);
	EXPECT(watched.changed > 0);
	EXPECT_EQ(watched.torn, 0);
	EXPECT_EQ(watched.page->lock, lock + 2);
	EXPECT_EQ(watched.page->offset, watched.offset + 7);
	EXPECT_EQ(watched.page->time_enabled, watched.enabled + 9);
	EXPECT_EQ(watched.page->time_running, watched.running + 8);
	fake_free(f);
}
#endif
