#include "session/task/kernel-stops.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "abi/trace.h"
#include "record/coding.h"

#define PAGE         4096u
#define NSEC_PER_SEC 1000000000ull
/* A stop costs some ten microseconds of the thread's time, which the kernel's own clock takes. */
#define SHORTEST_NS 100000u
/* Records of one system call of the guest's, as one that touches new memory; less if it must be. */
#define PAGES_MOST 64u

/* And PERIOD, if the guest has it: the kernel then has other samples [SAMP-09]. */
#define RECORDED (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR)

struct stop_sample {
	struct perf_event_header header;
	u64 id, ip, time, addr, more[3];
};

/* THROTTLE and LOST, with their sample_id. */
struct stop_throttle {
	struct perf_event_header header;
	u64 time, id, stream_id;
};

struct stop_lost {
	struct perf_event_header header;
	u64 id, lost;
};

static int open_event_on(const struct pe_attr *attr, s32 tid, int cpu, int group)
{
	return (int)syscall(SYS_perf_event_open, attr, tid, cpu, group, PERF_FLAG_FD_CLOEXEC);
}

static int open_event(const struct pe_attr *attr, s32 tid, int group)
{
	return open_event_on(attr, tid, -1, group);
}

struct pe_attr kernel_event_attr(u64 sample_type)
{
	return (struct pe_attr){
		.type = PERF_TYPE_SOFTWARE,
		.size = PE_ATTR_SIZE_VER7,
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = sample_type,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};
}

static void make_stop(struct pe_attr *attr, u64 config)
{
	attr->config = config;
	attr->sample_period = 1;
	attr->disabled = 1;
	attr->sigtrap = 1;
	attr->remove_on_exec = 1;
	attr->sig_data = TRACE_SIG_DATA;
}

/*
 * The kernel looks for the group after it has asked whether the event is allowed, and before it
 * makes it.
 */
static bool may_stop(u64 config, bool kernel)
{
	struct pe_attr attr = kernel_event_attr(RECORDED);

	make_stop(&attr, config);
	attr.exclude_kernel = !kernel;
	return open_event(&attr, 0, INT_MAX) < 0 && errno == EBADF;
}

bool kernel_stops_by_timer(void)
{
	static int by_timer = -1;

	if (by_timer < 0)
		by_timer = !may_stop(PERF_COUNT_SW_CPU_CLOCK, false);
	return by_timer;
}

/* What says of ADDR more than where it is: two words, as PERIOD is one. */
static u64 about_addr(void)
{
	static u64 bits;
	struct pe_attr attr = kernel_event_attr(RECORDED | PERF_SAMPLE_PHYS_ADDR);

	if (bits)
		return bits;
	make_stop(&attr, PERF_COUNT_SW_PAGE_FAULTS);
	if (open_event(&attr, 0, INT_MAX) < 0 && errno == EBADF)
		bits = PERF_SAMPLE_PHYS_ADDR | PERF_SAMPLE_DATA_PAGE_SIZE;
	else
		bits = PERF_SAMPLE_DATA_PAGE_SIZE | PERF_SAMPLE_CODE_PAGE_SIZE;
	return bits;
}

static void take_more(struct kernel_note *note, const struct stop_sample *sample)
{
	u64 words = (sample->header.size - offsetof(struct stop_sample, more)) / sizeof(u64);
	const u64 *at = sample->more;

	note->period = words & 1 ? *at++ : 0;
	if (words < 2)
		return;
	note->phys_addr = about_addr() & PERF_SAMPLE_PHYS_ADDR ? *at++ : 0;
	note->page_size = *at;
}

u64 kernel_stops_have(void)
{
	const u64 in_time = BIT(PERF_COUNT_SW_CPU_CLOCK) | BIT(PERF_COUNT_SW_TASK_CLOCK);
	const u64 in_user = in_time | BIT(PERF_COUNT_SW_PAGE_FAULTS) |
			    BIT(PERF_COUNT_SW_PAGE_FAULTS_MIN) | BIT(PERF_COUNT_SW_PAGE_FAULTS_MAJ);
	/* The kernel does them, and has no samples of them for who leaves it out. */
	const u64 in_kernel = BIT(PERF_COUNT_SW_CONTEXT_SWITCHES) |
			      BIT(PERF_COUNT_SW_CPU_MIGRATIONS);

	if (kernel_stops_by_timer())
		return in_time;
	if (!may_stop(PERF_COUNT_SW_CPU_CLOCK, true))
		return in_user;
	return in_user | in_kernel |
	       (may_stop(PERF_COUNT_SW_CGROUP_SWITCHES, true) ? BIT(PERF_COUNT_SW_CGROUP_SWITCHES)
							      : 0);
}

void kernel_stops_init(struct kernel_stops *ks)
{
	*ks = (struct kernel_stops){.fd = -1};
}

void kernel_stops_release(struct kernel_stops *ks)
{
	if (ks->pages)
		munmap(ks->pages, PAGE + ks->size);
	if (ks->fd >= 0)
		close(ks->fd);
	kernel_stops_init(ks);
}

/* The memory is locked, of which there may be little. */
static int open_buffer(struct kernel_stops *ks, const struct pe_attr *attr, s32 tid, int cpu)
{
	int err;

	if (ks->fd >= 0)
		return 0;
	ks->fd = open_event_on(attr, tid, cpu, -1);
	if (ks->fd < 0)
		return -errno;
	for (size_t n = PAGES_MOST; n; n /= 4) {
		void *at = mmap(NULL, PAGE + n * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, ks->fd,
				0);

		if (at != MAP_FAILED) {
			ks->pages = at;
			ks->size = n * PAGE;
			ks->tail = 0;
			return 0;
		}
	}
	err = -errno;
	kernel_stops_release(ks);
	return err;
}

int kernel_buffer_open(struct kernel_stops *ks, const struct pe_attr *attr, s32 tid)
{
	return open_buffer(ks, attr, tid, -1);
}

int kernel_cpu_buffer_open(struct kernel_stops *ks, const struct pe_attr *attr, int cpu)
{
	return open_buffer(ks, attr, -1, cpu);
}

static bool is_fault(u64 config)
{
	return config == PERF_COUNT_SW_PAGE_FAULTS || config == PERF_COUNT_SW_PAGE_FAULTS_MIN ||
	       config == PERF_COUNT_SW_PAGE_FAULTS_MAJ;
}

u64 kernel_stop_period(const struct pe_attr *attr, u64 period)
{
	if (attr->config != PERF_COUNT_SW_CPU_CLOCK && attr->config != PERF_COUNT_SW_TASK_CLOCK)
		return period;
	if (attr->freq)
		return min_u64(period, NSEC_PER_SEC / SHORTEST_NS);
	return period < SHORTEST_NS ? SHORTEST_NS : period;
}

int kernel_stop_open(struct kernel_stops *ks, s32 tid, const struct pe_attr *guests, u64 *id)
{
	struct pe_attr attr = kernel_event_attr(RECORDED);
	int fd, err = kernel_buffer_open(ks, &attr, tid);

	if (err)
		return err;
	make_stop(&attr, guests->config);
	attr.sample_period = kernel_stop_period(guests, guests->sample_period);
	attr.sample_type |= guests->sample_type & PERF_SAMPLE_PERIOD;
	if (guests->sample_type & (PERF_SAMPLE_PHYS_ADDR | PERF_SAMPLE_DATA_PAGE_SIZE))
		attr.sample_type |= about_addr();
	attr.freq = guests->freq;
	attr.exclude_user = guests->exclude_user;
	attr.exclude_kernel = guests->exclude_kernel;
	attr.exclude_idle = guests->exclude_idle;
	/* The kernel's, as when it writes a thread's rseq area, may be at any instruction. */
	if (is_fault(guests->config) && attr.exclude_kernel)
		attr.sig_data = TRACE_SIG_FAULT;
	fd = open_event(&attr, tid, -1);
	if (fd < 0 && !attr.exclude_kernel) {
		attr.exclude_kernel = 1;
		fd = open_event(&attr, tid, -1);
	}
	if (fd < 0)
		return -errno;
	if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ks->fd) || ioctl(fd, PERF_EVENT_IOC_ID, id)) {
		err = -errno;
		close(fd);
		return err;
	}
	return fd;
}

static int open_watch(const struct pe_attr *guests, s32 tid, int cpu)
{
	struct pe_attr attr = kernel_event_attr(RECORDED | about_addr());
	int fd;

	make_stop(&attr, 0);
	attr.type = PERF_TYPE_BREAKPOINT;
	attr.bp_type = guests->bp_type;
	attr.bp_addr = guests->bp_addr;
	attr.bp_len = guests->bp_len;
	attr.exclude_kernel = guests->exclude_kernel;
	attr.sig_data = TRACE_SIG_WATCH;
	fd = open_event_on(&attr, tid, cpu, -1);
	if (fd < 0 && !attr.exclude_kernel && (errno == EACCES || errno == EPERM)) {
		attr.exclude_kernel = 1;
		fd = open_event_on(&attr, tid, cpu, -1);
	}
	return fd < 0 ? -errno : fd;
}

int kernel_watch_open(struct kernel_stops *ks, s32 tid, const struct pe_attr *guests, u64 *id)
{
	struct pe_attr attr = kernel_event_attr(RECORDED);
	int fd, err = kernel_buffer_open(ks, &attr, tid);

	if (err)
		return err;
	fd = open_watch(guests, tid, -1);
	if (fd < 0)
		return fd;
	if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ks->fd) || ioctl(fd, PERF_EVENT_IOC_ID, id)) {
		err = -errno;
		close(fd);
		return err;
	}
	return fd;
}

int kernel_watch_hold(const struct pe_attr *guests, int cpu)
{
	return open_watch(guests, 0, cpu);
}

int kernel_event_open(const struct pe_attr *attr, s32 tid)
{
	int fd = open_event(attr, tid, -1);

	return fd < 0 ? -errno : fd;
}

static void copy_out(const struct kernel_stops *ks, u64 at, void *to, size_t len)
{
	const u8 *records = (const u8 *)ks->pages + PAGE;
	size_t offset = at % ks->size, first = min_u64(len, ks->size - offset);

	memcpy(to, records + offset, first);
	memcpy((u8 *)to + first, records, len - first);
}

/* False: it is none that is wanted. */
static bool note_of(const struct kernel_stops *ks, const struct perf_event_header *header,
		    struct kernel_note *note)
{
	union {
		struct stop_sample sample;
		struct stop_throttle throttle;
		struct stop_lost lost;
	} r;

	memset(&r, 0, sizeof(r));
	copy_out(ks, ks->tail, &r, min_u64(header->size, sizeof(r)));
	*note = (struct kernel_note){.type = header->type, .misc = header->misc};
	switch (header->type) {
	case PERF_RECORD_SAMPLE:
		note->id = r.sample.id;
		note->ip = r.sample.ip;
		note->time = r.sample.time;
		note->addr = r.sample.addr;
		take_more(note, &r.sample);
		return true;
	case PERF_RECORD_THROTTLE:
	case PERF_RECORD_UNTHROTTLE:
		note->id = r.throttle.id;
		note->time = r.throttle.time;
		return true;
	case PERF_RECORD_LOST:
		note->id = r.lost.id;
		note->lost = r.lost.lost;
		return true;
	default: return false;
	}
}

bool kernel_stops_next(struct kernel_stops *ks, u64 time, struct kernel_note *note)
{
	struct perf_event_mmap_page *page = ks->pages;
	struct perf_event_header header;
	bool found = false;
	u64 head;

	if (!page)
		return false;
	head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
	while (!found && ks->tail != head) {
		copy_out(ks, ks->tail, &header, sizeof(header));
		if (header.size < sizeof(header))
			break;
		found = note_of(ks, &header, note);
		if (found && note->time > time)
			return false;
		ks->tail += header.size;
		__atomic_store_n(&page->data_tail, ks->tail, __ATOMIC_RELEASE);
	}
	return found;
}

bool kernel_record_next(struct kernel_stops *ks, u64 common, u64 time, struct kernel_record *record)
{
	const struct ap_layout layout = {.sample_type = common, .sample_id_all = true};
	struct perf_event_mmap_page *page = ks->pages;
	u64 head, at = 0;
	size_t place;

	if (!page)
		return false;
	head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
	if (ks->tail == head)
		return false;
	copy_out(ks, ks->tail, &record->header, sizeof(record->header));
	if (record->header.size < sizeof(record->header))
		return false;
	copy_out(ks, ks->tail, record->bytes, record->header.size);
	/* In a sample the place follows from what is in front, of which IP is more. */
	place = record->header.type == PERF_RECORD_SAMPLE
			? sizeof(record->header) + 3 * sizeof(u64)
			: ap__record_time_at(record->header.type, record->header.size, &layout);
	if (place && place + sizeof(at) <= record->header.size)
		memcpy(&at, record->bytes + place, sizeof(at));
	if (at > time)
		return false;
	ks->tail += record->header.size;
	__atomic_store_n(&page->data_tail, ks->tail, __ATOMIC_RELEASE);
	return true;
}
