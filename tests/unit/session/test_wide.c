/*
 * What it costs the session to look for all guests: counted in files that it opens, of which each
 * is a good deal of the time that who asks has to wait.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "session/session-priv.h"
#include "unit/session/mock-guest.h"
#include "unit/test.h"

#define THREADS 1000u

static u32 opened; /* files by the session, which runs in the test's own process */

/* Instead of libc's. */
int open(const char *path, int flags, ...)
{
	mode_t mode;
	va_list ap;

	va_start(ap, flags);
	mode = flags & O_CREAT ? va_arg(ap, mode_t) : 0;
	va_end(ap);
	opened++;
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

/* What the two processes tell each other. */
static struct {
	u32 step;
	u32 threads;
	u32 one; /* meter of one of them */
} * shared;

static void step_done(u32 step)
{
	__atomic_store_n(&shared->step, step, __ATOMIC_RELEASE);
	while (__atomic_load_n(&shared->step, __ATOMIC_ACQUIRE) == step)
		usleep(1000);
}

/* It exists, and counts nothing. */
static void *sleeper(void *meter)
{
	struct meter *m = meter;

	m->pid = (u32)getpid();
	m->tid = (u32)gettid();
	__atomic_store_n(&m->state, METER_RUNNING, __ATOMIC_RELEASE);
	__atomic_fetch_add(&shared->threads, 1, __ATOMIC_RELEASE);
	pause();
	return NULL;
}

static void many_sleep(struct mock *g)
{
	struct pe_attr attr = mock_attr();
	pthread_attr_t small;
	pthread_t thread;
	u64 h, word;

	attr.disabled = 0;
	NEED(pthread_attr_init(&small) == 0);
	NEED(pthread_attr_setstacksize(&small, 65536) == 0);
	for (u32 i = 0; i < THREADS; i++) {
		u32 index = mock_take_meter(g);

		shared->one = index;
		NEED(pthread_create(&thread, &small, sleeper,
				    (u8 *)g->segment + segment_offset(index)) == 0);
	}
	while (__atomic_load_n(&shared->threads, __ATOMIC_ACQUIRE) < THREADS)
		usleep(1000);
	NEED(mock_hello(g, -1, 0) == 0);
	step_done(1);
	NEED(mock_open(g, &attr, -1, 0, WIRE_NO_EVENT, 0, &h) >= 0);
	step_done(3);
	NEED(mock_read(g, h, &word, sizeof(word)) == 8);
	step_done(5);
	((struct meter *)((u8 *)g->segment + segment_offset(shared->one)))->count[0][0] += 10;
	NEED(mock_read(g, h, &word, sizeof(word)) == 8);
	step_done(7);
}

/* The most files that the session has opened in one go. */
static u32 serve_until(struct session *s, u32 step)
{
	u32 most = 0;

	while (__atomic_load_n(&shared->step, __ATOMIC_ACQUIRE) != step) {
		opened = 0;
		session_run(s, 1);
		most = opened > most ? opened : most;
	}
	return most;
}

/* The files that it has opened while it met the threads; their turn comes later, if any. */
static u32 serve_meeting(struct session *s, u32 step)
{
	u32 meeting = 0;

	while (__atomic_load_n(&shared->step, __ATOMIC_ACQUIRE) != step) {
		u32 before = s->guests.by_tid.n;

		opened = 0;
		session_run(s, 1);
		if (s->guests.by_tid.n > before)
			meeting += opened;
	}
	return meeting;
}

static void next(u32 step)
{
	__atomic_store_n(&shared->step, step, __ATOMIC_RELEASE);
}

static u32 unplaced(const struct session *s)
{
	struct guest_process *p;
	struct guest_thread *th;
	u32 n = 0;

	list_for_each_entry (p, &s->guests.processes, link)
		list_for_each_entry (th, &p->threads, link)
			n += th->tid != p->pid && th->place.state != PLACE_ASKED;
	return n;
}

TEST(many_threads_and_an_event_of_a_cpu)
{
	struct session_config config = {.paranoid = SESSION_PARANOID_HOST, .segment_fd = -1};
	struct session *s = NULL;
	char why[300];
	int status, fd;
	pid_t pid;
	u32 most;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	EXPECT(shared != MAP_FAILED && !session_new(&config, &s, why, sizeof(why)));
	pid = mock_fork(s, many_sleep);
	serve_until(s, 1);
	next(2);
	/* It was three for each, and then one for every fourth. */
	EXPECT(serve_meeting(s, 3) < THREADS / 10);
	EXPECT_EQ(s->guests.by_tid.n, THREADS + 1);
	/* Nor is there an event of the kernel's for each, which nobody has asked for. */
	fd = dup(0);
	EXPECT(fd < 100);
	close(fd);
	/* The turn of the rest comes, once. */
	for (int i = 0; i < 1000 && unplaced(s); i++)
		session_run(s, 5);
	EXPECT_EQ(unplaced(s), 0);
	/* Nobody has executed anything, so everybody is where he was. */
	next(4);
	EXPECT(serve_until(s, 5) < THREADS / 10);
	next(6);
	most = serve_until(s, 7);
	EXPECT(most >= 1 && most < THREADS / 10);
	next(8);
	while (waitpid(pid, &status, WNOHANG) == 0)
		session_run(s, 5);
	EXPECT_EQ(status, 0);
	session_free(s);
	munmap(shared, sizeof(*shared));
}
