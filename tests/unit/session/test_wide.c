/*
 * What it costs the session to look for all guests: counted in files that it opens, of which each
 * is a good deal of the time that who asks has to wait, and in system calls that it makes.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "session/session-priv.h"
#include "unit/session/mock-guest.h"
#include "unit/test.h"

#define THREADS 1000u

static u32 opened; /* files by the session, which runs in the test's own process */
static u32 calls;  /* of the functions below, likewise */

/*
 * Instead of libc's syscall(), under that name: with six arguments, which are in registers whatever
 * the caller gives. Asked for one by one they would be looked for on the stack.
 */
long counted_syscall(long nr, long a, long b, long c, long d, long e, long f) __asm__("syscall");

long counted_syscall(long nr, long a, long b, long c, long d, long e, long f)
{
	long (*libc)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");

	calls++;
	return libc(nr, a, b, c, d, e, f);
}

int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
	memset(set, 0, size);
	return syscall(SYS_sched_getaffinity, pid, size, set) < 0 ? -1 : 0;
}

off_t lseek(int fd, off_t at, int whence)
{
	return syscall(SYS_lseek, fd, at, whence);
}

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
	int cpu; /* that one is given this before anybody counts; -1: none */
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

/* As the runtime says it of a program that calls sched_setaffinity(2). */
static void give_cpu(struct mock *g)
{
	const struct meter *m = (struct meter *)((u8 *)g->segment + segment_offset(shared->one));
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(shared->cpu, &set);
	g->segment->bound = 1;
	NEED(sched_setaffinity((pid_t)m->tid, sizeof(set), &set) == 0);
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
	if (shared->cpu >= 0)
		give_cpu(g);
	NEED(mock_hello(g, -1, 0) == 0);
	step_done(1);
	NEED(mock_open(g, &attr, -1, 0, WIRE_NO_EVENT, 0, &h) >= 0);
	step_done(3);
	NEED(mock_read(g, h, &word, sizeof(word)) == 8);
	step_done(5);
	/* What was looked at a moment ago would not be looked at again. */
	usleep(10000);
	((struct meter *)((u8 *)g->segment + segment_offset(shared->one)))->count[0][0] += 10;
	NEED(mock_read(g, h, &word, sizeof(word)) == 8);
	step_done(7);
}

#define MOVES 100u

static s64 tell_moved(struct mock *g, s32 tid)
{
	g->slot->args.moved.tid = tid;
	return mock_call(g, WIRE_OP_MOVED);
}

/* Each of them says where it may run; and then somebody says it of a thread that is not there. */
static void many_move(struct mock *g)
{
	const struct meter *m;
	u32 last;

	many_sleep(g);
	last = shared->one;
	for (u32 i = 0; i < MOVES; i++) {
		m = (struct meter *)((u8 *)g->segment + segment_offset(last - i % 10));
		NEED(tell_moved(g, (s32)m->tid) == 0);
	}
	step_done(9);
	NEED(tell_moved(g, (s32)getppid()) == 0);
	NEED(tell_moved(g, 0x3fffffff) == 0);
	NEED(tell_moved(g, -5) == 0);
	step_done(11);
}

static u32 most_calls; /* by serve_until(), likewise */
static u32 all_calls;

/* The most files that the session has opened in one go. */
static u32 serve_until(struct session *s, u32 step)
{
	u32 most = 0;

	most_calls = all_calls = 0;
	while (__atomic_load_n(&shared->step, __ATOMIC_ACQUIRE) != step) {
		opened = calls = 0;
		session_run(s, 1);
		all_calls += calls;
		most = opened > most ? opened : most;
		most_calls = calls > most_calls ? calls : most_calls;
	}
	return most;
}

/*
 * The files that it has opened while it met the threads, and its system calls; their turn comes
 * later, if any.
 */
static u32 serve_meeting(struct session *s, u32 step)
{
	u32 meeting = 0;

	most_calls = 0;

	while (__atomic_load_n(&shared->step, __ATOMIC_ACQUIRE) != step) {
		u32 before = s->guests.by_tid.n;

		opened = calls = 0;
		session_run(s, 1);
		if (s->guests.by_tid.n > before) {
			meeting += opened;
			most_calls += calls;
		}
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

static struct session *start(int cpu)
{
	struct session_config config = {.paranoid = SESSION_PARANOID_HOST, .segment_fd = -1};
	struct session *s = NULL;
	char why[300];

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	NEED(shared != MAP_FAILED && !session_new(&config, &s, why, sizeof(why)));
	shared->cpu = cpu;
	return s;
}

TEST(many_threads_and_an_event_of_a_cpu)
{
	struct session *s = start(-1);
	int status, fd;
	pid_t pid;
	u32 most;

	pid = mock_fork(s, many_sleep);
	serve_until(s, 1);
	next(2);
	/* It was three for each, and then one for every fourth. */
	EXPECT(serve_meeting(s, 3) < THREADS / 10);
	EXPECT_EQ(s->guests.by_tid.n, THREADS + 1);
	/* Each is asked for once, whether it is there. It was three calls for each. */
	EXPECT(most_calls >= THREADS && most_calls < THREADS / 2 * 3);
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
	/* It was two for each at each look. */
	EXPECT(most_calls < THREADS / 4);
	next(6);
	most = serve_until(s, 7);
	EXPECT(most >= 1 && most < THREADS / 10);
	EXPECT(most_calls < THREADS / 4);
	next(8);
	while (waitpid(pid, &status, WNOHANG) == 0)
		session_run(s, 5);
	EXPECT_EQ(status, 0);
	session_free(s);
	munmap(shared, sizeof(*shared));
}

static int last_cpu(void)
{
	cpu_set_t set;
	int cpu = CPU_SETSIZE - 1;

	NEED(sched_getaffinity(0, sizeof(set), &set) == 0);
	while (!CPU_ISSET(cpu, &set))
		cpu--;
	return cpu;
}

/* It sleeps, as all do, and is where it was put before it executes anything else. */
TEST(one_of_many_threads_was_given_a_cpu)
{
	struct session *s = start(last_cpu());
	pid_t pid = mock_fork(s, many_sleep);
	struct hash_link *l;
	int status;

	serve_until(s, 1);
	next(2);
	serve_until(s, 3);
	l = hash_find(&s->guests.by_meter, shared->one);
	EXPECT(l && task_cpu(container_of(l, struct guest_thread, by_meter)->task) == shared->cpu);
	for (u32 step = 4; step < 8; step += 2) {
		next(step);
		serve_until(s, step + 1);
	}
	next(8);
	while (waitpid(pid, &status, WNOHANG) == 0)
		session_run(s, 5);
	EXPECT_EQ(status, 0);
	session_free(s);
	munmap(shared, sizeof(*shared));
}

#define LOOKS 20u

static void all_move(struct session *s, void *arg)
{
	(void)arg;
	for (u32 i = 0; i < LOOKS; i++)
		wide_moved(s);
}

/* Where each of thousands says where it may run, all would be asked as often. */
TEST(threads_that_move_are_looked_for_alone)
{
	struct session *s = start(-1);
	pid_t pid = mock_fork(s, many_move);
	int status;

	for (u32 step = 1; step < 9; step += 2) {
		serve_until(s, step);
		if (step == 7)
			for (int i = 0; i < 1000 && unplaced(s); i++)
				session_run(s, 5);
		next(step + 1);
	}
	serve_until(s, 9);
	/* Two calls and a file for each move, and some looks between. */
	EXPECT(all_calls >= MOVES && most_calls < THREADS / 4);
	next(10);
	serve_until(s, 11);
	EXPECT_EQ(s->guests.by_tid.n, THREADS + 1);
	/* After a long look for all there is a rest, and they are looked for behind it. */
	calls = 0;
	instant_run(s, all_move, NULL);
	EXPECT(calls >= 2 * THREADS && calls < LOOKS / 2 * 2 * THREADS);
	s->wide.rest_until = session_now() + 2000000000;
	s->wide.looked = 0;
	calls = 0;
	instant_run(s, all_move, NULL);
	EXPECT(calls < THREADS);
	EXPECT(s->wide.moved);
	for (int i = 0; i < 2000 && s->wide.moved; i++)
		session_run(s, 5);
	EXPECT(!s->wide.moved);
	next(12);
	while (waitpid(pid, &status, WNOHANG) == 0)
		session_run(s, 5);
	EXPECT_EQ(status, 0);
	session_free(s);
	munmap(shared, sizeof(*shared));
}

#define DEAD 6000u

/* Pages of threads that are not there, as many as one likes. */
static void name_nobody(struct mock *g)
{
	struct pe_attr attr = mock_attr();
	u64 h;

	NEED(mock_hello(g, -1, 0) == 0);
	for (u32 i = 0; i < DEAD; i++) {
		struct meter *m =
			(struct meter *)((u8 *)g->segment + segment_offset(mock_take_meter(g)));

		m->pid = (u32)getpid();
		m->tid = 0x3fff0000 + i;
		m->state = METER_RUNNING;
	}
	NEED(mock_open(g, &attr, -1, 0, WIRE_NO_EVENT, 0, &h) >= 0);
	step_done(1);
}

static void meet(struct session *s, void *arg)
{
	(void)arg;
	guests_meet(s);
}

TEST(pages_of_nobody_are_not_all_looked_at)
{
	struct session *s = start(-1);
	pid_t pid = mock_fork(s, name_nobody);
	u32 all = 0;
	int status;

	serve_until(s, 1);
	/* Once through all in any case, and /proc with it; then it is the same again. */
	for (int i = 0; i < 4; i++)
		instant_run(s, meet, NULL);
	for (int i = 0; i < 2; i++) {
		calls = opened = 0;
		instant_run(s, meet, NULL);
		EXPECT(calls < DEAD * 5 / 6 && opened < 100);
		all += calls;
	}
	EXPECT(all >= DEAD && all < DEAD + 500);
	next(2);
	while (waitpid(pid, &status, WNOHANG) == 0)
		session_run(s, 5);
	EXPECT_EQ(status, 0);
	session_free(s);
	munmap(shared, sizeof(*shared));
}
