/* A session's life and its event loop. */
#include "session/session.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "abi/trace.h"
#include "session/session-priv.h"
#include "session/task/probe-places.h"

#define BATCH 64

u64 session_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (u64)ts.tv_sec * 1000000000 + (u64)ts.tv_nsec;
}

static int say(char *why, size_t len, int err, const char *what)
{
	snprintf(why, len, "%s: %s", what, strerror(-err));
	return err;
}

int poll_source_add(int epoll, int fd, struct poll_source *p, enum poll_source_kind kind,
		    u32 events)
{
	struct epoll_event ev = {.events = events, .data.ptr = p};

	p->kind = kind;
	return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

/*
 * Guests' events, sockets and shared memory are descriptors, files and addresses of ours: as many
 * and as large as we may have. Beyond that a call fails; it does not kill us. What all guests ask
 * for takes our CPU time, which no limit of one program is meant for.
 */
static void raise_limits(void)
{
	static const int limits[] = {RLIMIT_NOFILE, RLIMIT_FSIZE, RLIMIT_AS, RLIMIT_DATA,
				     RLIMIT_CPU};

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		struct rlimit lim;

		if (getrlimit(limits[i], &lim) == 0 && lim.rlim_cur < lim.rlim_max) {
			lim.rlim_cur = lim.rlim_max;
			setrlimit(limits[i], &lim);
		}
	}
	signal(SIGXFSZ, SIG_IGN);
}

static void take_machine(struct session *s)
{
	struct machine_mistake why;

	memcpy(&s->machine, s->config.run.machine, sizeof(s->machine));
	if (!MODEL_IS_FED || !s->machine.version || machine_check(&s->machine, &why))
		memset(&s->machine, 0, sizeof(s->machine));
}

static u32 own_slots(void)
{
	struct rlimit addresses = {RLIM_INFINITY, RLIM_INFINITY};

	getrlimit(RLIMIT_AS, &addresses);
	return session_segment_slots(&addresses);
}

static int make_segment(struct session *s, char *why, size_t len)
{
	const off_t size = (off_t)segment_offset(SEGMENT_SLOTS);
	bool ours = s->config.segment_fd < 0;

	if (ours) {
		s->meters.fd = sealed_memory_new("anyperf-meters", (size_t)size);
		if (s->meters.fd < 0)
			return say(why, len, s->meters.fd, "making the meters");
	} else {
		if (!sealed_memory_is(s->config.segment_fd, (size_t)size))
			return say(why, len, -EINVAL, "the counter segment can be cut or is short");
		s->meters.fd = fcntl(s->config.segment_fd, F_DUPFD_CLOEXEC, 3);
		if (s->meters.fd < 0)
			return say(why, len, -errno, "taking the counter segment");
	}
	if (ours || !s->config.run.slots || s->config.run.slots > SEGMENT_SLOTS)
		s->config.run.slots = ours ? own_slots() : SEGMENT_SLOTS;
	s->meters.slots = s->config.run.slots;
	s->meters.segment = mmap(NULL, segment_offset(s->meters.slots), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_NORESERVE, s->meters.fd, 0);
	if (s->meters.segment == MAP_FAILED) {
		s->meters.segment = NULL;
		return say(why, len, -errno, "mapping the meters (ulimit -v)");
	}
	madvise(s->meters.segment, segment_offset(s->meters.slots), MADV_DONTDUMP);
	if (ours)
		__atomic_store_n(&s->meters.segment->magic, SEGMENT_MAGIC, __ATOMIC_RELEASE);
	s->checked = s->config.run.flags & SEGMENT_VERIFY;
	take_machine(s);
	s->shown.view = (struct wire_view *)((u8 *)s->meters.segment + WIRE_VIEW_IN);
	return 0;
}

static int host_paranoid(void)
{
	FILE *f = fopen("/proc/sys/kernel/perf_event_paranoid", "re");
	int v = 2;

	if (f) {
		if (fscanf(f, "%d", &v) != 1)
			v = 2;
		fclose(f);
	}
	return v;
}

/* The number under which the host knows a PMU, or -1. */
static s32 host_type(const char *pmu)
{
	char path[128];
	s32 type = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/bus/event_source/devices/%s/type", pmu);
	f = fopen(path, "re");
	if (f) {
		if (fscanf(f, "%d", &type) != 1)
			type = -1;
		fclose(f);
	}
	return type;
}

static int make_core(struct session *s, char *why, size_t len)
{
	struct cpuid_profile profile;
	struct core_config config = {
		.ops = &session_core_ops,
		.ctx = s,
		.nr_cpus = s->nr_cpus,
	};
	const struct run_config *run = &s->config.run;
	char windows[32];
	struct cpu_pmu_config cpu = {
		.source = &s->pmus.cpu_source,
		.kernel_mode = s->config.ignore_kernel ? CPU_KERNEL_IGNORE : CPU_KERNEL_REFUSE,
		.counters = s->config.counters,
		.rdpmc = CPU_RDPMC_MAPPED,
		.machine = s->machine.version ? s->machine.name : NULL,
		.modeled = &s->machine,
		.windows = run->window ? windows : NULL,
		.machine_samples = true,
	};
	struct probe_pmu_config probes = {
		.kprobe_type = host_type("kprobe"),
		.uprobe_type = host_type("uprobe"),
		.host = &s->pmus.probe_host,
	};
	int host = host_paranoid(), err;

	/* As ap__model_windows_text(). */
	if (run->window_every)
		snprintf(windows, sizeof(windows), "%u/%u", run->window, run->window_every);
	else
		snprintf(windows, sizeof(windows), "auto");
	err = cpuid_profile_find(s->config.cpuid_profile, &profile, why, len);
	if (err)
		return err;
	/* Raw codes and tables go together. */
	cpu.vendor = profile.amd ? CPU_VENDOR_AMD : CPU_VENDOR_INTEL;
	cpu.is_zen = profile.zen;
	cpu.is_zen1 = profile.zen1;
	cpu.pmu_name = profile.pmu;
	if (s->config.paranoid != SESSION_PARANOID_HOST)
		config.sysctl.paranoid = s->config.paranoid;
	else
		config.sysctl.paranoid = s->config.ignore_kernel || host > 2 ? host : 2;
	s->core = core_new(&config);
	if (!s->core)
		return say(why, len, -ENOMEM, "making the perf subsystem");
	s->pmus.cpu_source = (struct pmu_source){.read = meters_read,
						 .want = meters_want,
						 .estimated = run->window ? meters_estimated : NULL,
						 .ctx = s,
						 .have = BIT(CPU_WHAT_MAX) - 1,
						 .arm = trace_arm,
						 .disarm = trace_disarm};
	s->pmus.software_source = (struct pmu_source){.read = software_read,
						      .ctx = s,
						      .have = software_have(),
						      .listen = trace_listen,
						      .unlisten = trace_unlisten,
						      .forget = trace_forget,
						      .stops = kernel_stops_have()};
	s->pmus.probe_host = (struct probe_host){.ctx = s,
						 .tracepoint = tracepoint_find,
						 .file = probe_file_find,
						 .reserve = data_watch_reserve,
						 .release = data_watch_release,
						 .kernel_open = kernel_probe_open,
						 .kernel_close = kernel_probe_close,
						 .kernel_count = kernel_probe_count,
						 .kernel_filter = kernel_probe_filter,
						 .kernel_bpf = kernel_probe_bpf,
						 .arm = trace_probe_arm,
						 .disarm = trace_probe_disarm};
	err = cpu_pmu_new(s->core, &cpu, &s->pmus.cpu);
	if (!err)
		err = translator_pmu_new(s->core, &cpu, &s->pmus.translator);
	if (!err)
		err = cpu.machine && profile.amd ? ibs_pmu_new(s->core, &cpu, &s->pmus.ibs) : 0;
	if (!err)
		err = software_pmu_new(s->core, &s->pmus.software_source, &s->pmus.software);
	if (!err)
		err = probe_pmus_new(s->core, &probes, &s->pmus.probes);
	if (err)
		return say(why, len, err, "registering the PMUs");
	if (s->config.segment_fd < 0) {
		s->config.run.counters = s->config.counters;
		s->config.run.cpuid_signature = profile.signature;
	}
	s->shown.view->flags |= software_from_proc();
	return 0;
}

/* Whether the kernel has what a session needs. */
static int is_possible(char *why, size_t len)
{
	int fd = (int)syscall(SYS_pidfd_open, getpid(), 0), err = -errno;

	if (fd >= 0) {
		close(fd);
		return 0;
	}
	snprintf(why, len, "pidfd_open(2) %s; `anyperf run` runs programs that need no counts",
		 err == -ENOSYS  ? "is missing, which Linux has from 5.3 on (or a sandbox hides it)"
		 : err == -EPERM ? "is forbidden by a sandbox"
				 : "fails");
	return err;
}

int session_new(const struct session_config *config, struct session **session, char *why,
		size_t len)
{
	struct session *s = calloc(1, sizeof(*s));
	int err;

	if (len)
		why[0] = 0;
	err = is_possible(why, len);
	if (err) {
		free(s);
		return err;
	}
	if (!s)
		return say(why, len, -ENOMEM, "making a session");
	s->config = *config;
	s->guests.own_pid = getpid();
	s->loop.all = s->loop.ends = s->loop.timer = s->wide.timer = s->bootstraps.listen =
		s->bootstraps.guest_end = s->meters.fd = -1;
	/* Guests may be shown more than there are. */
	s->nr_cpus = (u32)max_u64((u64)sysconf(_SC_NPROCESSORS_CONF), config->run.cpus);
	guests_init(&s->guests);
	perf_files_init(&s->files);
	list_init(&s->cgroups);
	list_init(&s->kernel_probes);
	list_init(&s->traces);
	list_init(&s->instant.invalid);
	list_init(&s->bootstraps.open);
	list_init(&s->bootstraps.dead);
	raise_limits();
	allowance_pool_init(&s->memory);

	err = make_segment(s, why, len);
	if (!err)
		err = make_core(s, why, len);
	if (err)
		goto fail;

	s->loop.all = epoll_create1(EPOLL_CLOEXEC);
	s->loop.ends = epoll_create1(EPOLL_CLOEXEC);
	s->loop.timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	s->wide.timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (s->loop.all < 0 || s->loop.ends < 0 || s->loop.timer < 0 || s->wide.timer < 0 ||
	    poll_source_add(s->loop.all, s->wide.timer, &s->wide.poll, POLL_SOURCE_LOOK, EPOLLIN) ||
	    poll_source_add(s->loop.all, s->loop.ends, &s->loop.ends_poll, POLL_SOURCE_ENDS,
			    EPOLLIN) ||
	    poll_source_add(s->loop.all, s->loop.timer, &s->loop.timer_poll, POLL_SOURCE_TIMER,
			    EPOLLIN)) {
		err = say(why, len, -errno, "making the session's descriptors");
		goto fail;
	}
	err = config->waited_for ? bootstrap_add(s, config->bootstrap)
				 : bootstrap_open(s, &s->bootstraps.guest_end);
	if (err) {
		say(why, len, err, "opening the session's bootstrap socket");
		goto fail;
	}
	if (config->name) {
		err = listen_open(s, config->name, why, len);
		if (!err &&
		    poll_source_add(s->loop.all, s->bootstraps.listen, &s->bootstraps.listen_poll,
				    POLL_SOURCE_LISTEN, EPOLLIN))
			err = say(why, len, -errno, "listening");
		if (err)
			goto fail;
	}
	*session = s;
	return 0;
fail:
	session_free(s);
	return err;
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

/* What the batch that is over may have named. */
static void free_deferred(struct session *s)
{
	struct guest_process *p, *tmp;
	struct perf_file *c, *ctmp;
	struct bootstrap *d, *dtmp;

	list_for_each_entry_safe (d, dtmp, &s->bootstraps.dead, link)
		bootstrap_free(d);
	list_for_each_entry_safe (p, tmp, &s->guests.dead, link)
		guest_process_free(p);
	list_for_each_entry_safe (c, ctmp, &s->files.dead, link)
		perf_file_free(c);
}

static void end_all(struct session *s, void *arg)
{
	struct guest_process *p, *tmp;
	struct perf_file *c, *ctmp;

	(void)arg;
	list_for_each_entry_safe (c, ctmp, &s->files.all, link)
		perf_file_closed(c);
	list_for_each_entry_safe (p, tmp, &s->guests.processes, link)
		guest_process_end(p);
}

void session_free(struct session *s)
{
	struct bootstrap *d, *dtmp;

	if (!s)
		return;
	list_for_each_entry_safe (d, dtmp, &s->bootstraps.open, link)
		bootstrap_free(d);
	/* One that was not made whole has no ends to drain, and nothing to end. */
	if (s->loop.ends >= 0)
		instant_run(s, end_all, NULL);
	free_deferred(s);
	if (s->core)
		core_free(s->core);
	cgroups_forget(s);
	cpu_pmu_free(s->pmus.cpu);
	cpu_pmu_free(s->pmus.translator);
	ibs_pmu_free(s->pmus.ibs);
	software_pmu_free(s->pmus.software);
	probe_pmus_free(s->pmus.probes);
	cpu_switches_free(s);
	tracepoints_free(s->pmus.tracepoints);
	view_remove(s);
	closer_end(s->bootstraps.closer);
	close_fd(s->bootstraps.guest_end);
	close_fd(s->bootstraps.listen);
	close_fd(s->loop.timer);
	close_fd(s->wide.timer);
	close_fd(s->loop.ends);
	close_fd(s->loop.all);
	refusals_release(&s->refusals);
	if (s->meters.segment)
		munmap(s->meters.segment, segment_offset(s->meters.slots));
	close_fd(s->meters.fd);
	perf_files_release(&s->files);
	guests_release(&s->guests);
	free(s);
}

int session_segment_fd(const struct session *s)
{
	return s->meters.fd;
}

int session_bootstrap_fd(const struct session *s)
{
	return s->bootstraps.guest_end;
}

void session_close_bootstrap(struct session *s)
{
	close_fd(s->bootstraps.guest_end);
	s->bootstraps.guest_end = -1;
}

void session_check(struct session *s)
{
	core_check(s->core);
	snapshots_check(s);
}

bool session_is_over(const struct session *s)
{
	return list_empty(&s->bootstraps.open) && list_empty(&s->guests.processes);
}

static void run_timer(struct session *s, void *arg)
{
	(void)arg;
	core_timer_run(s->core);
}

static void timer_fired(struct session *s)
{
	u64 times;

	if (read(s->loop.timer, &times, sizeof(times)) == sizeof(times))
		instant_run(s, run_timer, NULL);
}

void session_run(struct session *s, int timeout_ms)
{
	struct epoll_event ev[BATCH];
	int n;

	n = epoll_wait(s->loop.all, ev, BATCH, timeout_ms);
	for (int i = 0; i < n; i++) {
		struct poll_source *p = ev[i].data.ptr;

		if (p->gone)
			continue;
		switch (p->kind) {
		case POLL_SOURCE_BOOTSTRAP:
			bootstrap_read(s, container_of(p, struct bootstrap, poll));
			break;
		case POLL_SOURCE_SOCK:
			sock_read(container_of(p, struct guest_process, sock_poll));
			break;
		case POLL_SOURCE_LISTEN: listen_accept(s); break;
		case POLL_SOURCE_TIMER: timer_fired(s); break;
		case POLL_SOURCE_LOOK: wide_tick(s); break;
		case POLL_SOURCE_RECORDS:
		case POLL_SOURCE_ENDS: instant_run(s, NULL, NULL); break;
		case POLL_SOURCE_PIDFD:
		case POLL_SOURCE_PERF_FILE: break;
		}
	}
	serve_busy_poll(s);
	free_deferred(s);
}
