/*
 * PURPOSE: the session, put together from its parts, for the files of this folder. Each part has a
 * header of its own that says what it is for, what it owns, and what happens in which order.
 */
#ifndef SESSION_SESSION_PRIV_H
#define SESSION_SESSION_PRIV_H

#include "abi/meter.h"
#include "abi/modeled.h"
#include "abi/wire.h"
#include "base/list.h"
#include "core/call.h"
#include "core/event/event.h"
#include "model/machine.h"
#include "pmu/drivers.h"
#include "pmu/probes.h"
#include "session/host/cgroups.h"
#include "session/host/core-ops.h"
#include "session/host/cpuid-profile.h"
#include "session/host/file-id.h"
#include "session/host/pids.h"
#include "session/host/proc-text.h"
#include "session/host/settings.h"
#include "session/host/tracepoints.h"
#include "session/host/view.h"
#include "session/poll-source.h"
#include "session/sealed-memory.h"
#include "session/session.h"
#include "session/task/allowance.h"
#include "session/task/clock.h"
#include "session/task/cpu-switches.h"
#include "session/task/data-watches.h"
#include "session/task/guests.h"
#include "session/task/instant.h"
#include "session/task/kernel-probes.h"
#include "session/task/kernel-stops.h"
#include "session/task/meters.h"
#include "session/task/thread-records.h"
#include "session/task/thread-trace.h"
#include "session/task/track.h"
#include "session/task/wide.h"
#include "session/wire/bootstrap.h"
#include "session/wire/closer.h"
#include "session/wire/fd-message.h"
#include "session/wire/ops.h"
#include "session/wire/perf-file.h"
#include "session/wire/refusals.h"
#include "session/wire/rendezvous.h"
#include "session/wire/serve.h"
#include "session/wire/snapshot.h"

_Static_assert(sizeof(struct counter_segment) <= WIRE_VIEW_IN,
	       "the view is behind the segment's header");

/* The PMUs of the core, and where their numbers come from: session.c. */
struct session_pmus {
	struct pmu *cpu, *translator, *software;
	struct pmu *ibs; /* NULL: there is none */
	struct probe_pmus *probes;
	struct probe_host probe_host;
	struct tracepoints *tracepoints; /* host/tracepoints.h; NULL: nobody has asked yet */
	struct pmu_source cpu_source, software_source;
};

/* What the loop waits for: session.c. */
struct session_loop {
	int all;  /* epoll of everything */
	int ends; /* nested: epoll of deaths and closes, which instant_run() drains */
	struct poll_source ends_poll;
	int timer; /* core_timer_run() is wanted */
	struct poll_source timer_poll;
	struct poll_source records_poll; /* of all threads' buffers */
};

struct session {
	struct session_config config;
	u32 nr_cpus;
	bool checked; /* SEGMENT_VERIFY: every instant ends with a look at all invariants */
	struct core *core;
	struct session_pmus pmus;
	struct session_loop loop;
	struct machine machine; /* whose model counts; a checked copy; version 0: there is none */

	struct meters meters;
	struct guests guests;
	struct allowance_pool memory; /* of what they announce */
	struct instant instant;
	struct wide wide;
	struct list traces; /* struct thread_trace of task/thread-trace.c */
	bool holding;       /* some of their threads wait for a reader */
	/*
	 * What samples of CPUs say was counted, over all tasks, must not go back with their time:
	 * so threads' entries are taken in its order; when the last one was.
	 */
	bool in_order;
	u64 told_at;
	bool untold;         /* some of them have other probes than their threads know */
	u32 track_watch;     /* task/track.h: what guests are to tell besides; enum wire_watch */
	bool track_switches; /* task/thread-records.h: somebody asks */
	bool track_records;  /* likewise, or for something else that the kernel records */
	struct cpu_switches **cpu_switches; /* of each CPU whose switches somebody asks for */
	struct list kernel_probes;          /* struct record_probe, likewise */
	bool kernel_probes_off;             /* some of them have gone off within the instant */
	bool track_build_ids;               /* somebody wants those of mappings */
	bool track_files; /* there are probes of files: guests are to tell what they map */

	struct bootstraps bootstraps;
	struct perf_files files;
	struct busy_poll busy_poll;
	struct call *call; /* in progress; NULL: none */
	struct refusals refusals;

	struct shown shown;
	struct list cgroups; /* host/cgroups.c */
};

/* session.c: CLOCK_MONOTONIC, ns */
u64 session_now(void);
/* Walks everything and CHECK()s the session's and the core's invariants. Within an instant. */
void session_check(struct session *s);

#endif
