#include "backend/virtual.h"

#include "backend/image-keeper.h"
#include "backend/translations.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abi/modeled.h"
#include "backend/remote.h"
#include "backend/runtime.h"
#include "backend/session-process.h"
#include "session/host/cpuid-profile.h"
#include "session/wire/rendezvous.h"

/* A process that waits to become a guest. */
struct waiting {
	pid_t pid;
	bool adopted; /* the session knows it */
	struct waiting *next;
};

struct virtual_pmu {
	pthread_mutex_t lock; /* guards all below */
	struct virtual_opts opts;
	struct guest_segment segment;
	char machine[MACHINE_NAME]; /* of the segment; "": none */
	int runtime;                /* anyperf-rt; -1: not looked for */
	struct guest_images images;
	int keeper_inside;            /* of images.keeper, until somebody reads it, else -1 */
	int bootstrap;                /* the guests' end; -1: none */
	int bootstrap_inside;         /* while no session reads it, else -1 */
	bool joined;                  /* the session is that of another */
	struct remote_client *remote; /* NULL: no session has been needed */
	struct waiting *waiting;
	char **words;             /* the last command, for who looks at processes; NULL or owned */
	int no_session;           /* -errno: one was to be started and could not be */
	char no_session_why[300]; /* then a sentence */
};

/* Why the last call of this thread failed. */
static __thread struct refusal refusal;

int ap__virtual_check_model(const char *name, char *why, size_t len)
{
	struct cpuid_profile profile;

	if (!strcmp(name, CPUID_PROFILE_LEVEL)) {
		snprintf(why, len, "'%s' is no model; --cpu-features shows a level", name);
		return -EINVAL;
	}
	return cpuid_profile_find(name, &profile, why, len);
}

struct virtual_opts *ap__virtual_opts(struct virtual_pmu *v)
{
	return &v->opts;
}

int ap__virtual_new(struct virtual_pmu **out, const struct virtual_opts *opts)
{
	struct virtual_pmu *v = calloc(1, sizeof(*v));

	if (!v)
		return -ENOMEM;
	pthread_mutex_init(&v->lock, NULL);
	v->opts = *opts;
	/* A level has a model of its own, which the events' codes follow. */
	if (v->opts.cpu != METER_CPU_HOST)
		strcpy(v->opts.session.cpuid_profile, CPUID_PROFILE_LEVEL);
	v->images.fd = v->images.keeper = v->keeper_inside = v->segment.fd = v->runtime =
		v->bootstrap = v->bootstrap_inside = -1;
	*out = v;
	return 0;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void free_words(char **words)
{
	for (char **word = words; word && *word; word++)
		free(*word);
	free(words);
}

void ap__virtual_free(struct virtual_pmu *v)
{
	if (!v)
		return;
	ap__remote_close(v->remote);
	ap__segment_close(&v->segment);
	close_fd(&v->images.fd);
	close_fd(&v->images.keeper);
	close_fd(&v->keeper_inside);
	close_fd(&v->runtime);
	close_fd(&v->bootstrap);
	close_fd(&v->bootstrap_inside);
	while (v->waiting) {
		struct waiting *w = v->waiting;

		v->waiting = w->next;
		free(w);
	}
	free_words(v->words);
	pthread_mutex_destroy(&v->lock);
	free(v);
}

_Static_assert(sizeof(struct machine) <= RUN_CONFIG_MACHINE, "room for a machine");

static void take_machine(struct virtual_pmu *v)
{
	struct machine_mistake why;
	struct machine m;

	memcpy(&m, v->segment.config.machine, sizeof(m));
	if (MODEL_IS_FED && m.version && !machine_check(&m, &why))
		memcpy(v->machine, m.name, sizeof(m.name));
}

const struct run_config *ap__virtual_config(const struct virtual_pmu *v)
{
	return &v->segment.config;
}

const char *ap__virtual_machine(const struct virtual_pmu *v)
{
	return v->machine;
}

/*
 * An option that is the whole session's and differs from what @session has, or cannot be compared.
 */
static const char *decided(const struct virtual_opts *opts, const struct run_config *session)
{
	u32 missing = opts->segment_flags & ~session->flags;

	if (opts->segment_flags & SEGMENT_DETERMINISTIC)
		return "--deterministic";
	if (opts->session.counters)
		return "--counters";
	if (*opts->session.cpuid_profile)
		return "--cpu-model";
	if (opts->session.paranoid != SESSION_PARANOID_HOST)
		return "--paranoid";
	if (opts->kernel_mode_given)
		return "--kernel-mode";
	if (missing & SEGMENT_STRICT)
		return "--strict";
	if (missing & SEGMENT_VERIFY)
		return "--verify";
	if (opts->cache_mb && opts->cache_mb != session->cache_mb)
		return "--cache-size";
	if (opts->machine_given &&
	    memcmp(&opts->machine, session->machine, sizeof(opts->machine)) != 0)
		return "--machine";
	if (opts->beside == MODEL_BESIDE_YES && opts->beside != session->beside)
		return "--model-beside";
	if (opts->windows_given &&
	    (opts->window != session->window || opts->window_every != session->window_every))
		return "--model-windows";
	return NULL;
}

/* -ECONNREFUSED: no session has that name. */
static int join(struct virtual_pmu *v, char *why, size_t len)
{
	const char *name = v->opts.session.name, *option;
	struct run_config config;
	int segment_fd, err;

	err = ap__session_join(name, &config, &segment_fd, &v->bootstrap, why, len);
	if (err)
		return err;
	err = ap__segment_join(&v->segment, segment_fd, &config, v->opts.keep, why, len);
	option = err ? NULL : decided(&v->opts, &v->segment.config);
	if (option) {
		ap__segment_close(&v->segment);
		snprintf(why, len,
			 "the session '%s' runs already; its first command decides about %s", name,
			 option);
		err = -EEXIST;
	}
	if (err) {
		close_fd(&v->bootstrap);
	} else {
		v->joined = true;
		take_machine(v);
	}
	return err;
}

static int make_segment(struct virtual_pmu *v, char *why, size_t len)
{
	const struct virtual_opts *o = &v->opts;
	struct cpuid_profile profile;
	struct run_config config = {
		.flags = o->segment_flags,
		.cache_mb = o->cache_mb,
		.cpu = o->cpu,
		.cpus = o->cpus,
		.counters = o->session.counters,
		.beside = o->beside,
		.window = o->window,
		.window_every = o->window_every,
		.seed = o->seed,
		.nr_profiled = o->nr_profiled,
		.filter_sets = o->filter_sets,
		.filter_shift = o->filter_shift,
		.filter_lines = o->filter_lines,
	};
	int err;

	if (cpuid_profile_find(*o->session.cpuid_profile ? o->session.cpuid_profile : NULL,
			       &profile, why, len))
		return -EINVAL;
	config.cpuid_signature = profile.signature;
	memcpy(config.machine, &o->machine, sizeof(o->machine));
	memcpy(config.profiled, o->profiled, sizeof(config.profiled));
	err = ap__segment_open(&v->segment, &config, o->keep, why, len);
	if (err)
		return err;
	take_machine(v);
	err = bootstrap_pair(&v->bootstrap_inside, &v->bootstrap);
	if (err) {
		snprintf(why, len, "making the session's bootstrap socket: %s", strerror(-err));
		ap__segment_close(&v->segment);
	}
	return err;
}

static int start_session(struct virtual_pmu *v, char *why, size_t len)
{
	v->opts.session.config = v->segment.config;
	v->no_session = ap__session_start(&v->opts.session, v->segment.fd, v->bootstrap_inside,
					  v->words, why, len);
	snprintf(v->no_session_why, sizeof(v->no_session_why), "%s", v->no_session ? why : "");
	/* Who has written to it gets ENODEV then. */
	close_fd(&v->bootstrap_inside);
	return v->no_session;
}

static int need_images(struct virtual_pmu *v, char *why, size_t len)
{
	switch (v->opts.translations) {
	case TRANSLATIONS_OFF: return 0;
	case TRANSLATIONS_TREE:
		/* Where there can be none programs run as well, but slower. */
		(void)!ap__image_keeper_pair(&v->keeper_inside, &v->images.keeper);
		return 0;
	case TRANSLATIONS_USER: break;
	}
	v->images.fd = ap__translations_open(&v->images.seed, why, len);
	if (v->images.fd < 0)
		return v->images.fd;
	/* Now and then is enough. */
	if (getpid() % 16 == 0)
		ap__translations_trim(v->images.fd, TRANSLATIONS_MOST);
	return 0;
}

/*
 * The segment, with the runtime to run programs in it. A session that was named is started if it
 * must be.
 */
static int need_segment(struct virtual_pmu *v, bool start_named, char *why, size_t len)
{
	bool named = *v->opts.session.name;
	int err = 0;

	if (v->runtime < 0)
		v->runtime = ap__runtime_open("rt", "anyperf-rt", why, len);
	if (v->runtime < 0)
		return v->runtime;
	if (v->segment.fd >= 0)
		return 0;
	if (!(v->opts.segment_flags & SEGMENT_DETERMINISTIC) && v->images.fd < 0 &&
	    v->images.keeper < 0)
		err = need_images(v, why, len);
	if (err)
		return err;
	if (named)
		err = join(v, why, len);
	if (!named || (err == -ECONNREFUSED && start_named)) {
		err = make_segment(v, why, len);
		/* Others may look for one that has a name. */
		if (!err && named)
			err = start_session(v, why, len);
	}
	return err;
}

static int need_session(struct virtual_pmu *v, char *why, size_t len)
{
	int err;

	if (v->remote)
		return 0;
	err = need_segment(v, false, why, len);
	if (!err && v->bootstrap_inside >= 0)
		err = start_session(v, why, len);
	/* Nobody would ever answer. */
	if (!err && v->no_session) {
		snprintf(why, len, "%s", v->no_session_why);
		err = v->no_session;
	}
	if (err)
		return err;
	err = ap__remote_open(v->bootstrap, &v->remote);
	if (err)
		snprintf(why, len, "the session does not answer: %s", strerror(-err));
	return err;
}

int ap__virtual_make_segment(struct virtual_pmu *v, char *why, size_t len)
{
	int err;

	pthread_mutex_lock(&v->lock);
	err = need_segment(v, true, why, len);
	pthread_mutex_unlock(&v->lock);
	return err;
}

int ap__virtual_make_session(struct virtual_pmu *v, char *why, size_t len)
{
	int err;

	pthread_mutex_lock(&v->lock);
	err = need_session(v, why, len);
	pthread_mutex_unlock(&v->lock);
	return err;
}

int ap__virtual_fd(struct virtual_pmu *v)
{
	return v->bootstrap_inside;
}

int ap__virtual_keeper_fd(struct virtual_pmu *v)
{
	return v->keeper_inside;
}

void ap__virtual_keep(struct virtual_pmu *v)
{
	pthread_mutex_lock(&v->lock);
	if (v->keeper_inside >= 0)
		(void)!ap__image_keeper_start(v->keeper_inside);
	v->keeper_inside = -1;
	pthread_mutex_unlock(&v->lock);
}

int ap__virtual_answer(struct virtual_pmu *v, char *why, size_t len)
{
	struct pollfd p = {.fd = v->bootstrap_inside, .events = POLLIN};
	int err = 0;

	/* With all guests gone it is readable as well. */
	pthread_mutex_lock(&v->lock);
	if (v->bootstrap_inside >= 0 && poll(&p, 1, 0) == 1 && !(p.revents & POLLHUP))
		err = start_session(v, why, len);
	else if (p.revents & POLLHUP)
		close_fd(&v->bootstrap_inside);
	pthread_mutex_unlock(&v->lock);
	return err;
}

int ap__virtual_leave(struct virtual_pmu *v, char *why, size_t len)
{
	struct pollfd p = {.fd = v->bootstrap_inside, .events = POLLIN};
	int err = 0;

	pthread_mutex_lock(&v->lock);
	close_fd(&v->bootstrap);
	if (v->bootstrap_inside >= 0 && (poll(&p, 1, 0) == 0 || !(p.revents & POLLHUP)))
		err = start_session(v, why, len);
	pthread_mutex_unlock(&v->lock);
	return err;
}

static char **copy_words(char *const *argv)
{
	size_t n = 0;
	char **words;

	while (argv[n])
		n++;
	words = calloc(n + 1, sizeof(*words));
	for (size_t i = 0; words && i < n; i++) {
		words[i] = strdup(argv[i]);
		if (!words[i])
			break;
	}
	return words;
}

int ap__virtual_launch(struct virtual_pmu *v, char *const *argv, struct guest_launch **launch,
		       char *why, size_t len)
{
	int err;

	why[0] = 0;
	pthread_mutex_lock(&v->lock);
	free_words(v->words);
	v->words = copy_words(argv);
	err = need_segment(v, true, why, len);
	/* The keeper of another command before has that command's images. */
	if (!err && v->images.keeper >= 0 && v->keeper_inside < 0) {
		close_fd(&v->images.keeper);
		(void)!ap__image_keeper_pair(&v->keeper_inside, &v->images.keeper);
	}
	if (!err)
		err = ap__guest_prepare(launch, &v->segment, &v->images, v->runtime, v->bootstrap,
					v->bootstrap_inside, argv);
	pthread_mutex_unlock(&v->lock);
	return err;
}

int ap__virtual_made(struct virtual_pmu *v, pid_t pid)
{
	struct waiting *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->pid = pid;
	pthread_mutex_lock(&v->lock);
	w->next = v->waiting;
	v->waiting = w;
	pthread_mutex_unlock(&v->lock);
	return 0;
}

void ap__virtual_started(struct virtual_pmu *v, pid_t pid)
{
	pthread_mutex_lock(&v->lock);
	for (struct waiting **w = &v->waiting; *w; w = &(*w)->next) {
		struct waiting *found = *w;

		if (found->pid != pid)
			continue;
		*w = found->next;
		free(found);
		break;
	}
	pthread_mutex_unlock(&v->lock);
}

void ap__virtual_ended(struct virtual_pmu *v)
{
	pthread_mutex_lock(&v->lock);
	if (v->remote)
		ap__remote_sync(v->remote);
	pthread_mutex_unlock(&v->lock);
}

const struct guest_segment *ap__virtual_segment(const struct virtual_pmu *v)
{
	return v->segment.fd >= 0 ? &v->segment : NULL;
}

static int adopt(struct virtual_pmu *v, pid_t pid)
{
	int err = 0;

	for (struct waiting *w = v->waiting; w; w = w->next) {
		if (w->pid != pid || w->adopted)
			continue;
		err = ap__remote_adopt(v->remote, pid);
		w->adopted = !err;
	}
	return err;
}

/* The sentence goes into two names, which are shorter than it may be. Returns @err. */
static int refuse_why(int err, const char *why)
{
	size_t len = strlen(why);
	const char *rest = len < REFUSAL_NAME ? "" : why + REFUSAL_NAME - 1;

	return refusal_set(&refusal, err, CAUSE_NO_SESSION,
			   &(const struct refusal_args){.name = {why, rest}});
}

/* What a call of the session's gave, with its reason if it failed. */
static s64 answered(const struct virtual_pmu *v, s64 ret)
{
	if (ret < 0)
		refusal = *ap__remote_refusal(v->remote);
	return ret;
}

static int open_event(struct virtual_pmu *v, struct pe_attr *attr, pid_t pid, int cpu, int leader,
		      u64 flags)
{
	char why[300];
	int err = need_session(v, why, sizeof(why));

	if (err)
		return refuse_why(err, why);
	err = adopt(v, pid);
	if (!err)
		err = ap__remote_event(v->remote, attr, pid, cpu, leader, flags);
	return (int)answered(v, err);
}

static int be_open(void *be, struct pe_attr *attr, pid_t pid, int cpu, int leader, u64 flags)
{
	struct virtual_pmu *v = be;
	int fd;

	pthread_mutex_lock(&v->lock);
	fd = open_event(v, attr, pid, cpu, leader, flags);
	pthread_mutex_unlock(&v->lock);
	return fd;
}

static int be_close(void *be, int handle)
{
	struct virtual_pmu *v = be;
	int err;

	pthread_mutex_lock(&v->lock);
	err = (int)answered(v, ap__remote_event_close(v->remote, handle));
	pthread_mutex_unlock(&v->lock);
	return err;
}

static ssize_t be_read(void *be, int handle, void *buf, size_t len)
{
	struct virtual_pmu *v = be;
	ssize_t n;

	pthread_mutex_lock(&v->lock);
	n = answered(v, ap__remote_read(v->remote, handle, buf, len));
	pthread_mutex_unlock(&v->lock);
	return n;
}

static int be_ioctl(void *be, int handle, unsigned long request, unsigned long arg)
{
	struct virtual_pmu *v = be;
	int err;

	pthread_mutex_lock(&v->lock);
	err = (int)answered(v, ap__remote_ioctl(v->remote, handle, request, arg));
	pthread_mutex_unlock(&v->lock);
	return err;
}

static int be_mmap(void *be, int handle, size_t len, u64 offset, bool writable, void **out)
{
	struct virtual_pmu *v = be;
	int err;

	pthread_mutex_lock(&v->lock);
	err = (int)answered(v, ap__remote_mmap(v->remote, handle, len, offset, writable, out));
	pthread_mutex_unlock(&v->lock);
	return err;
}

static int be_munmap(void *be, void *base, size_t len)
{
	struct virtual_pmu *v = be;
	int err;

	pthread_mutex_lock(&v->lock);
	err = ap__remote_munmap(v->remote, base, len);
	pthread_mutex_unlock(&v->lock);
	return err;
}

static s64 be_lossless(void *be, int handle)
{
	struct virtual_pmu *v = be;
	s64 n;

	pthread_mutex_lock(&v->lock);
	n = answered(v, ap__remote_lossless(v->remote, handle));
	pthread_mutex_unlock(&v->lock);
	return n;
}

static void be_heard(void *be, int handle)
{
	struct virtual_pmu *v = be;

	pthread_mutex_lock(&v->lock);
	ap__remote_heard(v->remote, handle);
	pthread_mutex_unlock(&v->lock);
}

static const struct refusal *be_refusal(void *be)
{
	(void)be;
	return &refusal;
}

/*
 * Without one its files are looked for where nothing is: the machine's own would be the wrong ones.
 */
static const char *be_root(void *be)
{
	struct virtual_pmu *v = be;
	const char *root = NULL;
	char why[300];

	pthread_mutex_lock(&v->lock);
	if (!need_session(v, why, sizeof(why)))
		root = ap__remote_root(v->remote);
	pthread_mutex_unlock(&v->lock);
	return root ? root : "/dev/null";
}

const struct ap__backend_ops ap__backend_virtual = {
	.name = "session",
	.core_pmu = "cpu",
	.root = be_root,
	.open = be_open,
	.close = be_close,
	.read = be_read,
	.ioctl = be_ioctl,
	.mmap = be_mmap,
	.munmap = be_munmap,
	.lossless = be_lossless,
	.heard = be_heard,
	.maps_inherited = true,
	.refusal = be_refusal,
};
