/*
 * PURPOSE: a virtual PMU of one's own, as a backend: its counter segment, the programs that are
 * started under it, the session that plays the kernel for them, and events of that session.
 *
 * Everything is made when it is first needed. The segment comes with the first program, or with the
 * session; the session with the first event, or when somebody looks what PMUs there are. Programs
 * that run by then find it behind the socket that they were given.
 *
 * Lifetime: ap__virtual_new() to ap__virtual_free(); who still runs then goes on, and its session
 * with it. Locking: its own; any thread may call. Errors: 0 or -errno with a sentence in @why, cut
 * to @len bytes.
 */
#ifndef BACKEND_VIRTUAL_H
#define BACKEND_VIRTUAL_H

#include "abi/modeled.h"
#include "abi/session-start.h"
#include "backend/backend.h"
#include "backend/guest.h"
#include "model/machine.h"

struct virtual_pmu;

/* Strings are copied. */
struct virtual_opts {
	struct session_start session; /* all but the magic */
	u32 segment_flags;            /* enum counter_segment_flags */
	u32 cache_mb;                 /* 0: as large as usual */
	u32 nr_profiled;              /* as in struct run_config */
	u8 profiled[PROFILED_EVENTS];
	u64 seed;               /* of SEGMENT_DETERMINISTIC */
	u32 cpu;                /* enum meter_cpu, of the same */
	u32 cpus;               /* how many there are, of the same; 0: the machine's */
	bool kernel_mode_given; /* SESSION_START_IGNORE_KERNEL, or its absence, was asked for */
	/* Whom translations are for besides the process; not with SEGMENT_DETERMINISTIC. */
	enum {
		TRANSLATIONS_OFF,
		TRANSLATIONS_TREE,
		TRANSLATIONS_USER,
	} translations;
	u32 beside;      /* enum model_beside */
	u16 filter_sets; /* this and the next two as in struct run_config */
	u8 filter_shift;
	u8 filter_lines;
	/* Both as in struct run_config. */
	u32 window, window_every;
	bool windows_given;     /* they, or that there are none, were asked for */
	bool keep;              /* pages of ended threads are kept for a report */
	bool machine_given;     /* `machine`, or that there is none, was asked for */
	struct machine machine; /* whose model counts what depends on one; version 0: none */
};

/* Is there a CPU @name for CPUID to show here? 0, or -EINVAL with a sentence. */
must_check int ap__virtual_check_model(const char *name, char *why, size_t len);

/* Touches nothing but memory. -ENOMEM. */
must_check int ap__virtual_new(struct virtual_pmu **out, const struct virtual_opts *opts);
void ap__virtual_free(struct virtual_pmu *v);

/* What it was made with; to be changed before anything else is asked of it. */
struct virtual_opts *ap__virtual_opts(struct virtual_pmu *v);

/*
 * Finds the runtime and makes the segment; or joins the running session of the name that was given.
 */
must_check int ap__virtual_make_segment(struct virtual_pmu *v, char *why, size_t len);

/* Has a session as well. A session that was named and is not there is not started. */
must_check int ap__virtual_make_session(struct virtual_pmu *v, char *why, size_t len);

/*
 * Readable, until there is a session, when a program has something to say to it or the last one has
 * ended: then ap__virtual_answer() starts one, or does nothing. -1: there is nothing to wait for.
 */
int ap__virtual_fd(struct virtual_pmu *v);
must_check int ap__virtual_answer(struct virtual_pmu *v, char *why, size_t len);

/*
 * Readable, until somebody keeps them, when programs have translations to share, or the last one
 * has ended: ap__virtual_keep() keeps them. -1: there is nothing to wait for.
 */
int ap__virtual_keeper_fd(struct virtual_pmu *v);
void ap__virtual_keep(struct virtual_pmu *v);

/* If programs still run, they find a session when we have gone. */
must_check int ap__virtual_leave(struct virtual_pmu *v, char *why, size_t len);

/*
 * For the program @argv: 0 with *@launch for ap__guest_become() in the child, which is to be told
 * to ap__virtual_made(); or an errno of ap__guest_prepare() with @why "".
 */
must_check int ap__virtual_launch(struct virtual_pmu *v, char *const *argv,
				  struct guest_launch **launch, char *why, size_t len);

/*
 * Process @pid waits to execute what was prepared: events that are opened on it between these two
 * miss nothing of it. -ENOMEM.
 */
must_check int ap__virtual_made(struct virtual_pmu *v, pid_t pid);
void ap__virtual_started(struct virtual_pmu *v, pid_t pid);

/*
 * One of our processes has ended and is about to be waited for: the session takes notice while
 * /proc still has it.
 */
void ap__virtual_ended(struct virtual_pmu *v);

/*
 * The name of the machine whose model counts: the segment's. "": there is none, or no segment yet.
 */
const char *ap__virtual_machine(const struct virtual_pmu *v);
/* How it is seen, once that is known. */
const struct run_config *ap__virtual_config(const struct virtual_pmu *v);

/* For reports; NULL: there is none yet. */
const struct guest_segment *ap__virtual_segment(const struct virtual_pmu *v);

extern const struct ap__backend_ops ap__backend_virtual; /* its `be` is a struct virtual_pmu */

#endif
