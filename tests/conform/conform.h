/*
 * PURPOSE: the harness of the conformance programs: ordinary C programs that call
 * perf_event_open(2) and say what they observe. Each runs on the kernel and under `anyperf run`,
 * and must say the same.
 *
 * A file of CONFORM()s is one program. Every CONFORM runs in a child of its own, so that
 * descriptors, credentials and death stay there; a child that hangs or dies fails its group. A
 * check names the row of the behaviour matrix it shows.
 *
 *   prog [NAME]             runs those whose name contains NAME; lines `ok ROW text`,
 *                           `not ok ROW text (observed ...)`, `skip ROW text: why`
 *   prog --observe [NAME]   lines `ROW text = observation`, the same in every run and in both
 *                           worlds; ` (unexpected)` ends those that the matrix does not expect
 *   prog --list             the names
 *
 * Exit: 0 all passed (skips allowed), 1 some failed, 77 the kernel lets nobody use perf events
 * here.
 *
 * Text is a constant and unique within a program: tests/conform/differences refers to it. What is
 * printed as an observation must not depend on time, addresses, pids or ids.
 */
#ifndef CONFORM_H
#define CONFORM_H

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi/perf.h"

struct conform {
	const char *name;
	void (*run)(void);
};

#define CONFORM(fn)                                                                    \
	static void conform_##fn(void);                                                \
	static const struct conform conform_entry_##fn = {#fn, conform_##fn};          \
	static const struct conform *const conform_ptr_##fn                            \
		__attribute__((used, section("conform_tests"))) = &conform_entry_##fn; \
	static void conform_##fn(void)

/*
 * What the program does after exec_self(): prog --exec NAME ARG runs it and exits with what it
 * returns. Checks are made before or by others; it answers through descriptors.
 */
struct conform_exec {
	const char *name;
	int (*run)(int arg);
};

#define CONFORM_EXEC(fn)                                                                     \
	static int conform_exec_##fn(int arg);                                               \
	static const struct conform_exec conform_exec_entry_##fn = {#fn, conform_exec_##fn}; \
	static const struct conform_exec *const conform_exec_ptr_##fn                        \
		__attribute__((used, section("conform_execs"))) = &conform_exec_entry_##fn;  \
	static int conform_exec_##fn(int arg)

/* Replaces this process by the program's CONFORM_EXEC of that name. */
void exec_self(const char *name, int arg) __attribute__((noreturn));

/*
 * The condition holds. What follows the text is a printf format and values, shown when it does not.
 */
#define CHECK_ROW(row, cond, text, ...) check_row(row, cond, text, __VA_ARGS__)
void check_row(const char *row, bool ok, const char *text, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* An exact value; it is the observation. */
void check_val(const char *row, const char *text, long long got, long long want);

/*
 * Page faults that an event counted. The virtual PMU's count may have a few more, which the runtime
 * takes where it executes code for the first time after a fork, since the pages that it then writes
 * are still the other process's; doc/differences.md. The observation is WANT then. What has run
 * before is checked without this.
 */
void check_faults(const char *row, const char *text, long long got, long long want);
bool faults_are(long long got, long long want);

/*
 * A result as 0 or -errno (of try_open, ev_ioctl, ...) against 0 or an errno, which is the
 * observation.
 */
void check_err(const char *row, const char *text, long result, int want_errno);

/* Exactly N more checks are not possible here, for the reason given. */
void skip_row(const char *row, const char *text, const char *why);

/*
 * Ends this CONFORM (or the part of it that runs in this process) when a step that is no check
 * fails.
 */
#define NEED(cond)                                       \
	do {                                             \
		if (!(cond))                             \
			conform_broken(__LINE__, #cond); \
	} while (0)
void conform_broken(int line, const char *what) __attribute__((noreturn));

/* The world. */
int paranoid(void); /* /proc/sys/kernel/perf_event_paranoid as shown here, 2 when unreadable */
bool capable(void); /* holds CAP_PERFMON or CAP_SYS_ADMIN */
bool virtual_world(void); /* under anyperf run: the runner sets CONFORM_WORLD=virtual */
bool have_pmu(void);      /* user-mode instructions can be counted */
bool kernel_at_least(int major, int minor);

/* An attr that every user may open on his own tasks: user mode only, disabled, attr size 128. */
struct pe_attr ev_attr(u32 type, u64 config);
struct pe_attr sw_attr(u64 config);

/* What a siginfo_t says of an attr.sigtrap, which older headers do not know. */
struct perf_siginfo {
	int signo, error, code, pad;
	u64 addr, data;
	u32 type, flags;
};

#define TRAP_BY_PERF 6

/* All return the result or -errno. */
long ev_open(const struct pe_attr *attr, pid_t pid, int cpu, int group, unsigned long flags);
long ev_self(struct pe_attr attr); /* on the calling thread, a leader */
long ev_read(int fd, void *buf, size_t len);
long ev_ioctl(int fd, unsigned long request, unsigned long arg);

/* Like ev_open, but what was opened is closed again: 0 or -errno. */
long try_open(const struct pe_attr *attr, pid_t pid, int cpu, int group, unsigned long flags);
long try_self(struct pe_attr attr);

/* Reads eight bytes, or dies trying. */
u64 ev_count(int fd);
u64 ev_id(int fd);

/* The calling thread, alone on @cpu. */
void run_on(int cpu);

/*
 * Takes exactly N minor page faults in user mode: fresh private pages, touched once. The first call
 * of a process may take more (of code and data of its own), so warm up before counting.
 */
void touch_pages(int n);

/* Runs fn in a child, as nobody when we are root. Waits for it. */
void as_nobody(void (*fn)(void));
void in_child(void (*fn)(void));

/* A child that runs fn each time it is told, to be measured from outside. */
struct worker {
	pid_t pid;
	int tell, told;
};
void worker_start(struct worker *w, void (*fn)(void));
void worker_work(struct worker *w); /* fn has run once more when this returns */
void worker_end(struct worker *w);  /* it has exited and is reaped when this returns */

void sleep_ms(int ms);
void spin_ms(int ms); /* of CPU time of this thread */

#endif
