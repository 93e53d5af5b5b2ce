/*
 * Threads that sleep, execute something now and then, end, and have others come after them, and
 * processes that become other programs: what events of all CPUs have counted of them is what an
 * inherited event has. To be run alone in its session; prints what is between the two, before and
 * after, of each quantity.
 */
#include <linux/futex.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS  40
#define ROUNDS   200
#define SPINS    1000
#define CPUS_MAX 64

static struct sleeper {
	pthread_t thread;
	uint32_t turn; /* how often it was woken; odd: it is to end */
	uint32_t done;
	uint32_t first; /* the turn before its own ones */
} sleepers[THREADS];

static long cpus;
static int cpu_events[2][CPUS_MAX], own_events[2];

static long wait_while(uint32_t *word, uint32_t value)
{
	return syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void *sleep_and_spin(void *arg)
{
	struct sleeper *me = arg;
	uint32_t seen = me->first, turn = seen;

	__atomic_store_n(&me->done, seen, __ATOMIC_RELEASE);
	do {
		while (turn == seen) {
			wait_while(&me->turn, seen);
			turn = __atomic_load_n(&me->turn, __ATOMIC_ACQUIRE);
		}
		seen = turn;
		for (volatile uint32_t i = 0; i < SPINS + seen % 7; i++)
			;
		__atomic_store_n(&me->done, seen, __ATOMIC_RELEASE);
	} while (!(seen & 1));
	return NULL;
}

static void begin(struct sleeper *s)
{
	s->turn = s->first = s->turn & ~1u;
	s->done = ~s->turn;
	if (pthread_create(&s->thread, NULL, sleep_and_spin, s))
		exit(3);
}

/* Not waited for: events are read while it runs. */
static void wake(struct sleeper *s, uint32_t by)
{
	__atomic_fetch_add(&s->turn, by, __ATOMIC_RELEASE);
	syscall(SYS_futex, &s->turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static int open_event(uint64_t config, int pid, int cpu)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_HARDWARE,
				       .size = sizeof(attr),
				       .config = config,
				       .inherit = pid == 0,
				       .exclude_kernel = 1,
				       .exclude_hv = 1};
	int fd = (int)syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0) {
		perror("perf_event_open");
		exit(2);
	}
	return fd;
}

static uint64_t value(int fd)
{
	uint64_t n;

	if (read(fd, &n, sizeof(n)) != sizeof(n))
		exit(4);
	return n;
}

/* How much more all CPUs have than the threads. Executed twice, it is in both alike. */
static int64_t surplus(int which)
{
	int64_t sum = -(int64_t)value(own_events[which]);

	for (long cpu = 0; cpu < cpus; cpu++)
		sum += (int64_t)value(cpu_events[which][cpu]);
	return sum;
}

static void settle(void)
{
	for (int i = 0; i < THREADS; i++)
		while (__atomic_load_n(&sleepers[i].done, __ATOMIC_ACQUIRE) !=
		       __atomic_load_n(&sleepers[i].turn, __ATOMIC_RELAXED))
			sched_yield();
}

/* What does not change any more: they sleep. */
static int64_t surplus_at_rest(int which)
{
	int64_t last = surplus(which), now;
	cpu_set_t all, first;
	int same = 0;

	/* What this thread executes in between is of the CPU that is read first. */
	sched_getaffinity(0, sizeof(all), &all);
	CPU_ZERO(&first);
	CPU_SET(0, &first);
	if (sched_setaffinity(0, sizeof(first), &first))
		exit(77);
	while (same < 5) {
		usleep(20000);
		now = surplus(which);
		same = now == last ? same + 1 : 0;
		last = now;
	}
	sched_setaffinity(0, sizeof(all), &all);
	return last;
}

/* It sleeps, and is looked at; becomes another program, and is looked at again. */
static uint64_t run_program(void)
{
	uint64_t before = value(own_events[0]);
	pid_t pid = fork();

	if (pid == 0) {
		usleep(30000);
		execl("/bin/sh", "sh", "-c",
		      "sleep 0.05; i=0; while [ $i -lt 1000 ]; do i=$((i + 1)); done; sleep 0.05",
		      (char *)NULL);
		_exit(5);
	}
	if (pid < 0 || waitpid(pid, NULL, 0) != pid)
		exit(5);
	return value(own_events[0]) - before;
}

int main(void)
{
	static const uint64_t config[2] = {PERF_COUNT_HW_INSTRUCTIONS,
					   PERF_COUNT_HW_BRANCH_INSTRUCTIONS};
	int64_t before[2], after[2];
	uint64_t counted, alone, looked_at;

	cpus = sysconf(_SC_NPROCESSORS_ONLN);
	if (cpus > CPUS_MAX)
		return 77;
	for (int i = 0; i < 2; i++)
		own_events[i] = open_event(config[i], 0, -1);
	for (int i = 0; i < THREADS; i++)
		begin(&sleepers[i]);
	settle();
	alone = run_program();
	for (int i = 0; i < 2; i++)
		for (long cpu = 0; cpu < cpus; cpu++)
			cpu_events[i][cpu] = open_event(config[i], -1, (int)cpu);
	for (int i = 0; i < 2; i++)
		before[i] = surplus_at_rest(i);
	counted = value(own_events[0]);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		struct sleeper *s = &sleepers[round * 7 % THREADS];

		wake(s, round % 5 ? 2 : 1);
		if (round % 50 == 0) {
			looked_at = run_program();
			/* Where it is mapped makes a difference of some hundred. */
			if (looked_at < alone / 50 * 49 || looked_at > alone / 50 * 51) {
				printf("%lu, alone %lu\n", (unsigned long)looked_at,
				       (unsigned long)alone);
				return 1;
			}
		}
		if (round % 3 == 0)
			surplus((int)round & 1);
		if (round % 5 == 0) {
			pthread_join(s->thread, NULL);
			begin(s);
		}
	}
	settle();
	for (int i = 0; i < 2; i++)
		after[i] = surplus_at_rest(i);
	counted = value(own_events[0]) - counted;
	for (int i = 0; i < 2; i++)
		printf("%ld %ld\n", (long)before[i], (long)after[i]);
	/* Each iteration is three instructions and more. */
	if (counted < 3 * SPINS * ROUNDS) {
		printf("%lu only\n", (unsigned long)counted);
		return 1;
	}
	return before[0] == after[0] && before[1] == after[1] ? 0 : 1;
}
