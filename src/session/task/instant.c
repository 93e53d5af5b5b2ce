#include "session/task/instant.h"

#include <sys/epoll.h>

#include "session/session-priv.h"

#define BATCH 64

/* Each ends at a moment of its own: what was looked at for one does not hold for the next. */
static void drain_ends(struct session *s)
{
	struct epoll_event ev[BATCH];
	int n;

	s->instant.draining = true;
	do {
		n = epoll_wait(s->loop.ends, ev, BATCH, 0);
		for (int i = 0; i < n; i++) {
			struct poll_source *p = ev[i].data.ptr;

			if (p->gone)
				continue;
			if (p->kind == POLL_SOURCE_PIDFD)
				guest_process_end(container_of(p, struct guest_process, pid_poll));
			else
				perf_file_closed(container_of(p, struct perf_file, poll));
			s->instant.number++;
		}
	} while (n == BATCH);
	perf_files_probe(s);
	s->instant.draining = false;
}

void instant_run(struct session *s, void (*body)(struct session *s, void *arg), void *arg)
{
	CHECK(!s->instant.open);
	s->instant.open = true;
	s->instant.begun++;
	s->instant.number++;
	traces_drain(s);
	records_drain_all(s);
	drain_ends(s);
	if (body)
		body(s, arg);
	traces_settle(s);
	kernel_probes_settle(s);
	traces_hold(s);
	snapshots_revalidate(s);
	if (s->checked)
		session_check(s);
	snapshots_allow(s);
	s->instant.caller = NULL;
	s->instant.open = false;
}

u64 instant_wall_time(struct session *s)
{
	instant_check(s);
	if (s->instant.wall_number != s->instant.number) {
		s->instant.wall_number = s->instant.number;
		s->instant.wall_time = session_now();
	}
	return s->instant.wall_time;
}
