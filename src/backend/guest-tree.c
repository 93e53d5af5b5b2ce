#include "backend/guest-tree.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "abi/wire.h"
#include "session/wire/rendezvous.h"

/* Bytes of the tree that stand for entries of the table of runs. Of this process: a fork does not have it. */
static int lock_run(int fd, u32 index, short type)
{
	struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = index, .l_len = 1};

	return fcntl(fd, F_SETLK, &lock) ? -errno : 0;
}

static int open_run(struct guest_tree *tree, bool keep, char *why, size_t size)
{
	struct meter_runs *runs = meter_runs(tree->head);
	int err = 0;
	u32 i;

	for (i = 0; i < METER_RUNS; i++) {
		err = lock_run(tree->fd, i, F_WRLCK);
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
	tree->run = &runs->run[i];
	do
		tree->number = __atomic_add_fetch(&runs->last, 1, __ATOMIC_RELAXED) &
			       ~METER_RUN_KEEP;
	while (!tree->number);
	if (keep)
		tree->number |= METER_RUN_KEEP;
	tree->run->uncounted = 0;
	tree->run->refused = 0;
	tree->run->error = 0;
	__atomic_store_n(&tree->run->number, tree->number, __ATOMIC_RELEASE);
	return 0;
}

/* Pages that were kept for us are of use to who runs on, if anybody does. */
static void free_pages(const struct guest_tree *tree)
{
	u32 used = ap__tree_used(tree);

	for (u32 i = 0; i < used; i++) {
		const struct meter *seen = ap__tree_meter(tree, i);
		u32 exited = METER_EXITED;
		struct meter *m;

		if (!seen || __atomic_load_n(&seen->state, __ATOMIC_RELAXED) != METER_EXITED ||
		    __atomic_load_n(&seen->watch, __ATOMIC_SEQ_CST) & WIRE_WATCH_EXIT)
			continue;
		m = mmap(NULL, METER_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, tree->fd,
			 (off_t)meter_tree_offset(i));
		if (m == MAP_FAILED)
			return;
		if (__atomic_compare_exchange_n(&m->state, &exited, METER_FREE, false,
						__ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			meter_note_freed(tree->head, tree->number, i);
		munmap(m, METER_SIZE);
	}
}

static void close_run(struct guest_tree *tree)
{
	u32 i = (u32)(tree->run - meter_runs(tree->head)->run);

	__atomic_store_n(&tree->run->number, 0, __ATOMIC_SEQ_CST);
	if (tree->number & METER_RUN_KEEP)
		free_pages(tree);
	lock_run(tree->fd, i, F_UNLCK);
}

#define TREE_SIZE (((size_t)METER_TREE_SLOTS + 1) * METER_SIZE)

/* Maps the memory behind tree->fd; on failure that is closed. */
static int map_tree(struct guest_tree *tree, char *why, size_t len)
{
	u32 slots = session_tree_slots(tree->fd);
	void *map = mmap(NULL, meter_tree_offset(slots), PROT_READ, MAP_SHARED | MAP_NORESERVE,
			 tree->fd, 0);
	void *head = mmap(NULL, METER_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, tree->fd, 0);
	int err = -errno;

	if (map != MAP_FAILED && head != MAP_FAILED) {
		tree->map = map;
		tree->head = head;
		tree->slots = slots;
		return 0;
	}
	snprintf(why, len, "cannot map the counters: %s%s", strerror(-err),
		 err == -ENOMEM ? "; raise the limit of addresses (ulimit -v)" : "");
	if (map != MAP_FAILED)
		munmap(map, meter_tree_offset(slots));
	if (head != MAP_FAILED)
		munmap(head, METER_SIZE);
	close(tree->fd);
	tree->fd = -1;
	return err;
}

int ap__tree_join(struct guest_tree *tree, int fd, bool keep, char *why, size_t len)
{
	int err;

	*tree = (struct guest_tree){.fd = fd};
	err = map_tree(tree, why, len);
	if (err)
		return err;
	if (tree->head->magic == METER_TREE_MAGIC) {
		err = open_run(tree, keep, why, len);
	} else {
		snprintf(why, len, "the session was started by another version of anyperf");
		err = -EPROTO;
	}
	if (err)
		ap__tree_close(tree);
	return err;
}

/*
 * A limit on the size of files holds for memory in a file too, though most of it is never written,
 * and who goes over it gets a signal. So the limit is out of force for a moment.
 */
static int make_size(int fd)
{
	const struct timespec now = {0};
	struct rlimit limit, most;
	sigset_t xfsz, before;
	int err = 0;

	if (getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return ftruncate(fd, TREE_SIZE) ? -errno : 0;
	most = (struct rlimit){limit.rlim_max, limit.rlim_max};
	sigemptyset(&xfsz);
	sigaddset(&xfsz, SIGXFSZ);
	pthread_sigmask(SIG_BLOCK, &xfsz, &before);
	setrlimit(RLIMIT_FSIZE, &most);
	if (ftruncate(fd, TREE_SIZE))
		err = -errno;
	setrlimit(RLIMIT_FSIZE, &limit);
	if (err == -EFBIG && !sigismember(&before, SIGXFSZ))
		(void)sigtimedwait(&xfsz, NULL, &now);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return err;
}

int ap__tree_open(struct guest_tree *tree, u32 flags, u32 cache_mb, bool keep, char *why,
		  size_t len)
{
	int err;

	*tree = (struct guest_tree){
		.fd = memfd_create("anyperf-meters", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
	err = tree->fd < 0 ? -errno : make_size(tree->fd);
	if (!err && fcntl(tree->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		err = -errno;
	if (err) {
		snprintf(why, len, "cannot make shared memory for the counters: %s%s",
			 strerror(-err),
			 err == -EFBIG ? "; raise the limit of file sizes (ulimit -f)" : "");
		if (tree->fd >= 0)
			close(tree->fd);
		tree->fd = -1;
		return err;
	}
	err = map_tree(tree, why, len);
	if (err)
		return err;
	tree->head->slots = tree->slots;
	tree->head->magic = METER_TREE_MAGIC;
	tree->head->flags = flags;
	tree->head->cache_mb = cache_mb;
	err = open_run(tree, keep, why, len);
	if (err)
		ap__tree_close(tree);
	return err;
}

void ap__tree_close(struct guest_tree *tree)
{
	if (tree->fd < 0)
		return;
	if (tree->run)
		close_run(tree);
	munmap((void *)tree->map, meter_tree_offset(tree->slots));
	munmap(tree->head, METER_SIZE);
	close(tree->fd);
	tree->fd = -1;
}

void ap__tree_show(struct guest_tree *tree, u32 counters, u32 cpuid_signature)
{
	struct wire_view *view = (struct wire_view *)((u8 *)tree->head + WIRE_VIEW_IN);

	view_show(view, counters, cpuid_signature);
	__atomic_store_n(&view->magic, WIRE_MAGIC, __ATOMIC_RELEASE);
}

int ap__tree_failure(const struct guest_tree *tree, const char **text)
{
	/* The guest may write here at any time; what is shown is a bounded copy. */
	struct meter_runs *runs = meter_runs(tree->head);
	static char copy[sizeof(runs->text)];
	s32 err = __atomic_exchange_n(&tree->run->error, 0, __ATOMIC_ACQUIRE);

	memcpy(copy, runs->text, sizeof(copy) - 1);
	/* Another's may have failed at the same moment. */
	if (__atomic_load_n(&runs->text_of, __ATOMIC_ACQUIRE) != tree->number)
		copy[0] = '\0';
	*text = copy;
	return err < 0 && err > -4096 ? -err : 0;
}

u32 ap__tree_used(const struct guest_tree *tree)
{
	u32 used = __atomic_load_n(&tree->head->used, __ATOMIC_ACQUIRE);

	return used < tree->slots ? used : tree->slots;
}

const struct meter *ap__tree_meter(const struct guest_tree *tree, u32 index)
{
	const struct meter *m = (const struct meter *)(tree->map + meter_tree_offset(index));

	return __atomic_load_n(&m->run, __ATOMIC_ACQUIRE) == tree->number ? m : NULL;
}

u32 ap__tree_uncounted(const struct guest_tree *tree)
{
	return __atomic_load_n(&tree->run->uncounted, __ATOMIC_RELAXED);
}

bool ap__tree_uncounted_at(const struct guest_tree *tree, u32 i, struct meter_uncounted *u)
{
	const struct meter_uncounted *entry = &tree->head->uncounted[i];

	if (__atomic_load_n(&entry->state, __ATOMIC_ACQUIRE) != METER_UNCOUNTED_READY)
		return false;
	*u = *entry;
	u->path[sizeof(u->path) - 1] = u->why[sizeof(u->why) - 1] = '\0';
	return u->run == tree->number;
}

u32 ap__tree_refused(const struct guest_tree *tree)
{
	return __atomic_load_n(&tree->run->refused, __ATOMIC_RELAXED);
}

bool ap__tree_refusal_at(const struct guest_tree *tree, u32 i, struct meter_refusal *r)
{
	const struct meter_refusal *entry = meter_refusals(tree->head) + i;

	if (__atomic_load_n(&entry->run, __ATOMIC_ACQUIRE) != tree->number)
		return false;
	*r = *entry;
	r->attr.size = sizeof(r->attr);
	return r->count > 0;
}

void ap__tree_total(const struct guest_tree *tree, u64 total[METER_QUANTITIES])
{
	u32 used = ap__tree_used(tree);

	memset(total, 0, METER_QUANTITIES * sizeof(*total));
	for (u32 i = 0; i < used; i++) {
		const struct meter *m = ap__tree_meter(tree, i);

		for (u32 q = 0; m && q < METER_QUANTITIES; q++)
			total[q] += meter_sum(m, q) - m->run_base[q];
	}
}
