#include "backend/guest-segment.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "abi/modeled-profile.h"
#include "abi/wire.h"
#include "session/wire/rendezvous.h"

/*
 * Bytes of the segment that stand for entries of the table of runs. Of this process: a fork does
 * not have it.
 */
static int lock_run(int fd, u32 index, short type)
{
	struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = index, .l_len = 1};

	return fcntl(fd, F_SETLK, &lock) ? -errno : 0;
}

static int open_run(struct guest_segment *segment, bool keep, char *why, size_t size)
{
	struct meter_runs *runs = meter_runs(segment->head);
	int err = 0;
	u32 i;

	for (i = 0; i < METER_RUNS; i++) {
		err = lock_run(segment->fd, i, F_WRLCK);
		if (err != -EAGAIN && err != -EACCES)
			break;
	}
	if (i == METER_RUNS) {
		snprintf(
			why, size,
			"%u commands run in this session at this moment, and no more of them can be "
			"told apart",
			METER_RUNS);
		return err;
	}
	if (err) {
		snprintf(why, size, "cannot tell the commands of the session apart: %s",
			 strerror(-err));
		return err;
	}
	segment->run = &runs->run[i];
	do
		segment->number = __atomic_add_fetch(&runs->last, 1, __ATOMIC_RELAXED) &
				  ~METER_RUN_KEEP;
	while (!segment->number);
	if (keep)
		segment->number |= METER_RUN_KEEP;
	segment->run->uncounted = 0;
	segment->run->refused = 0;
	segment->run->error = 0;
	__atomic_store_n(&segment->run->number, segment->number, __ATOMIC_RELEASE);
	return 0;
}

/* Pages that were kept for us are of use to who runs on, if anybody does. */
static void free_pages(const struct guest_segment *segment)
{
	u32 used = ap__segment_used(segment);

	for (u32 i = 0; i < used; i++) {
		const struct meter *seen = ap__segment_meter(segment, i);
		u32 exited = METER_EXITED;
		struct meter *m;

		if (!seen || __atomic_load_n(&seen->state, __ATOMIC_RELAXED) != METER_EXITED ||
		    __atomic_load_n(&seen->watch, __ATOMIC_SEQ_CST) & WIRE_WATCH_EXIT)
			continue;
		m = mmap(NULL, METER_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, segment->fd,
			 (off_t)segment_offset(i));
		if (m == MAP_FAILED)
			return;
		if (__atomic_compare_exchange_n(&m->state, &exited, METER_FREE, false,
						__ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			meter_note_freed(segment->head, i);
		munmap(m, METER_SIZE);
	}
}

static void close_run(struct guest_segment *segment)
{
	u32 i = (u32)(segment->run - meter_runs(segment->head)->run);

	__atomic_store_n(&segment->run->number, 0, __ATOMIC_SEQ_CST);
	if (segment->number & METER_RUN_KEEP)
		free_pages(segment);
	lock_run(segment->fd, i, F_UNLCK);
}

#define FILES_ENOUGH 64u /* descriptors; who may have so many keeps his limit */

static const int lifted[LIFTED_LIMITS] = {
	[LIFTED_AS] = RLIMIT_AS, [LIFTED_DATA] = RLIMIT_DATA, [LIFTED_FILES] = RLIMIT_NOFILE};

/*
 * Soft limits are for our commands, which are told of those of memory (abi/control.h) and get that
 * of descriptors back (guest.c). What we map besides is gigabytes of addresses, and some
 * descriptors have to be had.
 */
static void lift_limits(struct guest_segment *segment)
{
	for (size_t i = 0; i < ARRAY_SIZE(lifted); i++) {
		struct rlimit *was = &segment->limits[i];
		struct rlimit most;

		*was = (struct rlimit){RLIM_INFINITY, RLIM_INFINITY};
		getrlimit(lifted[i], was);
		if (i == LIFTED_FILES && was->rlim_cur >= FILES_ENOUGH)
			was->rlim_max = was->rlim_cur;
		most = (struct rlimit){was->rlim_max, was->rlim_max};
		if (was->rlim_cur != most.rlim_cur)
			setrlimit(lifted[i], &most);
	}
}

static void restore_limits(const struct guest_segment *segment)
{
	for (size_t i = 0; i < ARRAY_SIZE(lifted); i++)
		if (segment->limits[i].rlim_cur != segment->limits[i].rlim_max)
			setrlimit(lifted[i], &segment->limits[i]);
}

static off_t segment_size(u32 flags, bool profiled)
{
	if (profiled)
		return (off_t)modeled_profile_offset(MODELED_PROFILES);
	return (off_t)(flags & (SEGMENT_EXACT | SEGMENT_TRACED) ? path_space_offset(PATH_SPACES)
								: segment_offset(SEGMENT_SLOTS));
}

/* Maps the memory behind segment->fd; on failure that is closed, and the limits are as before. */
static int map_segment(struct guest_segment *segment, char *why, size_t len)
{
	u32 slots = segment->config.slots;
	void *map, *head;
	int err;

	map = mmap(NULL, segment_offset(slots), PROT_READ, MAP_SHARED | MAP_NORESERVE, segment->fd,
		   0);
	head = mmap(NULL, METER_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, segment->fd, 0);
	err = -errno;
	if (map != MAP_FAILED && head != MAP_FAILED) {
		segment->map = map;
		segment->head = head;
		return 0;
	}
	snprintf(why, len, "cannot map the counters: %s%s", strerror(-err),
		 err == -ENOMEM ? "; raise the limit of addresses (ulimit -v)" : "");
	if (map != MAP_FAILED)
		munmap(map, segment_offset(slots));
	if (head != MAP_FAILED)
		munmap(head, METER_SIZE);
	restore_limits(segment);
	close(segment->fd);
	segment->fd = -1;
	return err;
}

int ap__segment_join(struct guest_segment *segment, int fd, const struct run_config *config,
		     bool keep, char *why, size_t len)
{
	int err;

	*segment = (struct guest_segment){.fd = fd, .config = *config};
	lift_limits(segment);
	if (!config->slots || config->slots > SEGMENT_SLOTS)
		segment->config.slots = SEGMENT_SLOTS;
	err = map_segment(segment, why, len);
	if (err)
		return err;
	err = open_run(segment, keep, why, len);
	if (err)
		ap__segment_close(segment);
	return err;
}

/*
 * A limit on the size of files holds for memory in a file too, though most of it is never written,
 * and who goes over it gets a signal. So the limit is out of force for a moment.
 */
static int make_size(int fd, off_t size)
{
	const struct timespec now = {0};
	struct rlimit limit, most;
	sigset_t xfsz, before;
	int err = 0;

	if (getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return ftruncate(fd, size) ? -errno : 0;
	most = (struct rlimit){limit.rlim_max, limit.rlim_max};
	sigemptyset(&xfsz);
	sigaddset(&xfsz, SIGXFSZ);
	pthread_sigmask(SIG_BLOCK, &xfsz, &before);
	setrlimit(RLIMIT_FSIZE, &most);
	if (ftruncate(fd, size))
		err = -errno;
	setrlimit(RLIMIT_FSIZE, &limit);
	if (err == -EFBIG && !sigismember(&before, SIGXFSZ))
		(void)sigtimedwait(&xfsz, NULL, &now);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return err;
}

int ap__segment_open(struct guest_segment *segment, const struct run_config *config, bool keep,
		     char *why, size_t len)
{
	int err;

	*segment = (struct guest_segment){.config = *config};
	lift_limits(segment);
	segment->fd = memfd_create("anyperf-meters", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	segment->config.slots = session_segment_slots(&segment->limits[LIFTED_AS]);
	err = segment->fd < 0
		      ? -errno
		      : make_size(segment->fd, segment_size(config->flags, config->nr_profiled));
	if (!err && fcntl(segment->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		err = -errno;
	if (err) {
		snprintf(why, len, "cannot make shared memory for the counters: %s%s",
			 strerror(-err),
			 err == -EFBIG    ? "; raise the limit of file sizes (ulimit -f)"
			 : err == -EMFILE ? "; raise the limit of descriptors (ulimit -n)"
					  : "");
		restore_limits(segment);
		if (segment->fd >= 0)
			close(segment->fd);
		segment->fd = -1;
		return err;
	}
	err = map_segment(segment, why, len);
	if (err)
		return err;
	segment->head->magic = SEGMENT_MAGIC;
	err = open_run(segment, keep, why, len);
	if (err)
		ap__segment_close(segment);
	return err;
}

void ap__segment_close(struct guest_segment *segment)
{
	if (segment->fd < 0)
		return;
	if (segment->run)
		close_run(segment);
	munmap((void *)segment->map, segment_offset(segment->config.slots));
	munmap(segment->head, METER_SIZE);
	restore_limits(segment);
	close(segment->fd);
	segment->fd = -1;
}

bool ap__segment_faults_of_proc(const struct guest_segment *segment, bool user_only)
{
	const struct wire_view *view =
		(const struct wire_view *)((const u8 *)segment->head + WIRE_VIEW_IN);
	u32 flags = __atomic_load_n(&view->flags, __ATOMIC_RELAXED);

	return flags & (user_only ? WIRE_VIEW_PROC_USER : WIRE_VIEW_PROC_ALL);
}

/* A guest's bytes on their way to a terminal; @size with the closing NUL. */
static void make_text(char *text, size_t size)
{
	text[size - 1] = '\0';
	for (; *text; text++)
		if (iscntrl((unsigned char)*text))
			*text = '?';
}

int ap__segment_failure(const struct guest_segment *segment, const char **text)
{
	/* The guest may write here at any time; what is shown is a bounded copy. */
	struct meter_runs *runs = meter_runs(segment->head);
	static char copy[sizeof(runs->text)];
	s32 err = __atomic_exchange_n(&segment->run->error, 0, __ATOMIC_ACQUIRE);

	memcpy(copy, runs->text, sizeof(copy) - 1);
	/* Another's may have failed at the same moment. */
	if (__atomic_load_n(&runs->text_of, __ATOMIC_ACQUIRE) != segment->number)
		copy[0] = '\0';
	make_text(copy, sizeof(copy));
	*text = copy;
	return err < 0 && err > -4096 ? -err : 0;
}

u32 ap__segment_used(const struct guest_segment *segment)
{
	u32 used = __atomic_load_n(&segment->head->used, __ATOMIC_ACQUIRE);

	return used < segment->config.slots ? used : segment->config.slots;
}

const struct meter *ap__segment_meter(const struct guest_segment *segment, u32 index)
{
	const struct meter *m = (const struct meter *)(segment->map + segment_offset(index));
	off_t begin = (off_t)segment_offset(index), data = lseek(segment->fd, begin, SEEK_DATA);

	/*
	 * How many there are is the guests' word. One that is not there would be made by looking.
	 */
	if (data > begin || (data < 0 && errno == ENXIO))
		return NULL;
	return __atomic_load_n(&m->run, __ATOMIC_ACQUIRE) == segment->number ? m : NULL;
}

u32 ap__segment_no_allocator(const struct guest_segment *segment, char name[16])
{
	memcpy(name, segment->head->no_allocator_in, 16);
	make_text(name, 16);
	return __atomic_load_n(&segment->head->no_allocator, __ATOMIC_RELAXED);
}

u32 ap__segment_uncounted(const struct guest_segment *segment)
{
	return __atomic_load_n(&segment->run->uncounted, __ATOMIC_RELAXED);
}

bool ap__segment_uncounted_at(const struct guest_segment *segment, u32 i, struct meter_uncounted *u)
{
	const struct meter_uncounted *entry = &segment->head->uncounted[i];

	if (__atomic_load_n(&entry->state, __ATOMIC_ACQUIRE) != METER_UNCOUNTED_READY)
		return false;
	*u = *entry;
	make_text(u->path, sizeof(u->path));
	make_text(u->why, sizeof(u->why));
	return u->run == segment->number;
}

u32 ap__segment_refused(const struct guest_segment *segment)
{
	return __atomic_load_n(&segment->run->refused, __ATOMIC_RELAXED);
}

bool ap__segment_refusal_at(const struct guest_segment *segment, u32 i, struct meter_refusal *r)
{
	const struct meter_refusal *entry = meter_refusals(segment->head) + i;

	if (__atomic_load_n(&entry->run, __ATOMIC_ACQUIRE) != segment->number)
		return false;
	*r = *entry;
	make_text(r->comm, sizeof(r->comm));
	r->attr.size = sizeof(r->attr);
	return r->count > 0;
}
