/* The ioctls on counting events, and what they refuse [IOC-*]. */
#include "conform/conform.h"

static int dummy(u64 period)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_DUMMY);
	long fd;

	attr.sample_period = period;
	fd = ev_self(attr);
	NEED(fd >= 0);
	return (int)fd;
}

static int faults(void)
{
	long fd = ev_self(sw_attr(PERF_COUNT_SW_PAGE_FAULTS));

	NEED(fd >= 0);
	return (int)fd;
}

CONFORM(numbers)
{
	check_val("IOC-01", "ENABLE", PERF_EVENT_IOC_ENABLE, 0x2400);
	check_val("IOC-02", "DISABLE", PERF_EVENT_IOC_DISABLE, 0x2401);
	check_val("IOC-08", "ID", PERF_EVENT_IOC_ID, 0x80082407);
	check_val("IOC-12", "MODIFY_ATTRIBUTES", PERF_EVENT_IOC_MODIFY_ATTRIBUTES, 0x4008240b);
}

CONFORM(enable)
{
	int fd = faults();

	touch_pages(8);
	touch_pages(10);
	check_val("IOC-01", "disabled: counts nothing", (long long)ev_count(fd), 0);
	check_err("IOC-01", "ENABLE returns", ev_ioctl(fd, PERF_EVENT_IOC_ENABLE, 0), 0);
	touch_pages(10);
	check_err("IOC-01", "ENABLE again", ev_ioctl(fd, PERF_EVENT_IOC_ENABLE, 0), 0);
	touch_pages(10);
	check_err("IOC-02", "DISABLE returns", ev_ioctl(fd, PERF_EVENT_IOC_DISABLE, 0), 0);
	check_faults("IOC-01", "two ENABLEs count once", (long long)ev_count(fd), 20);
	touch_pages(10);
	check_err("IOC-02", "DISABLE again", ev_ioctl(fd, PERF_EVENT_IOC_DISABLE, 0), 0);
	check_faults("IOC-02", "disabled: the value stays", (long long)ev_count(fd), 20);
	ev_ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	touch_pages(10);
	check_faults("IOC-01", "enabled again: goes on from there", (long long)ev_count(fd), 30);
	check_err("IOC-04", "RESET returns", ev_ioctl(fd, PERF_EVENT_IOC_RESET, 0), 0);
	check_faults("IOC-04", "RESET while it runs", (long long)ev_count(fd), 0);
	touch_pages(5);
	check_faults("IOC-04", "after RESET: it still runs", (long long)ev_count(fd), 5);
}

CONFORM(reset_disabled)
{
	int fd = faults();

	touch_pages(8);
	ev_ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	touch_pages(3);
	ev_ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	ev_ioctl(fd, PERF_EVENT_IOC_RESET, 0);
	touch_pages(3);
	check_val("IOC-04", "RESET does not enable", (long long)ev_count(fd), 0);
}

CONFORM(ids)
{
	int fd = dummy(0), other = dummy(0), copy = dup(fd);
	u64 a = 0, b = 0, c = 0;

	check_err("IOC-08", "ID", ev_ioctl(fd, PERF_EVENT_IOC_ID, (unsigned long)&a), 0);
	NEED(ev_ioctl(copy, PERF_EVENT_IOC_ID, (unsigned long)&b) == 0);
	NEED(ev_ioctl(other, PERF_EVENT_IOC_ID, (unsigned long)&c) == 0);
	CHECK_ROW("IOC-08", a == b && a != 0, "the id belongs to the event, not to the descriptor",
		  "%lu and %lu", a, b);
	CHECK_ROW("READ-09", a != c, "another event has another id", "%lu and %lu", a, c);
	check_err("IOC-08", "ID to no address", ev_ioctl(fd, PERF_EVENT_IOC_ID, 0), EFAULT);
	close(other);
	other = dummy(0);
	NEED(ev_ioctl(other, PERF_EVENT_IOC_ID, (unsigned long)&b) == 0);
	CHECK_ROW("READ-09", b != c && b != a, "ids are not reused", "%lu after %lu", b, c);
}

CONFORM(counting)
{
	int fd = dummy(0);
	u64 one = 1;

	check_err("IOC-03", "REFRESH of a counting event", ev_ioctl(fd, PERF_EVENT_IOC_REFRESH, 1),
		  EINVAL);
	check_err("IOC-05", "PERIOD of a counting event",
		  ev_ioctl(fd, PERF_EVENT_IOC_PERIOD, (unsigned long)&one), EINVAL);
	check_err("IOC-05", "PERIOD of a counting event from no address",
		  ev_ioctl(fd, PERF_EVENT_IOC_PERIOD, 0), EFAULT);
}

CONFORM(set_output)
{
	int fd = dummy(0), target = dummy(0), null = open("/dev/null", O_RDONLY);

	check_err("IOC-06", "SET_OUTPUT to -1 with nothing set",
		  ev_ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, (unsigned long)-1), 0);
	check_err("IOC-06", "SET_OUTPUT to 2^32 - 1, which is no descriptor",
		  ev_ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, 0xffffffff), EBADF);
	check_err("IOC-06", "SET_OUTPUT to /dev/null",
		  ev_ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, (unsigned long)null), EBADF);
	check_err("IOC-06", "SET_OUTPUT to a closed descriptor",
		  ev_ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, 999), EBADF);
	check_err("IOC-06", "SET_OUTPUT to itself",
		  ev_ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, (unsigned long)fd), EINVAL);
	check_err("IOC-06", "SET_OUTPUT to an event without a buffer",
		  ev_ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, (unsigned long)target), EINVAL);
}

CONFORM(others)
{
	struct pe_attr attr = sw_attr(PERF_COUNT_SW_DUMMY);
	u32 query[8] = {4};
	int fd = dummy(0);

	check_err("IOC-07", "SET_FILTER of a software event",
		  ev_ioctl(fd, PERF_EVENT_IOC_SET_FILTER, (unsigned long)"x"), EINVAL);
	check_err("IOC-09", "SET_BPF of a bad descriptor",
		  ev_ioctl(fd, PERF_EVENT_IOC_SET_BPF, 999), EBADF);
	check_err("IOC-09", "SET_BPF of a descriptor of something else",
		  ev_ioctl(fd, PERF_EVENT_IOC_SET_BPF, (unsigned long)fd), EINVAL);
	check_err("IOC-10", "PAUSE_OUTPUT without a buffer",
		  ev_ioctl(fd, PERF_EVENT_IOC_PAUSE_OUTPUT, 1), EINVAL);
	if (capable())
		check_err("IOC-11", "QUERY_BPF of a software event",
			  ev_ioctl(fd, PERF_EVENT_IOC_QUERY_BPF, (unsigned long)query), EINVAL);
	check_err("IOC-12", "MODIFY_ATTRIBUTES of a software event",
		  ev_ioctl(fd, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, (unsigned long)&attr), EOPNOTSUPP);
	attr.type = PERF_TYPE_BREAKPOINT;
	check_err("IOC-12", "MODIFY_ATTRIBUTES to another type",
		  ev_ioctl(fd, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, (unsigned long)&attr), EINVAL);
	check_err("IOC-12", "MODIFY_ATTRIBUTES from no address",
		  ev_ioctl(fd, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, 0), EFAULT);
	attr.size = 1;
	check_err("IOC-12", "MODIFY_ATTRIBUTES with a bad size",
		  ev_ioctl(fd, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, (unsigned long)&attr), E2BIG);
	check_err("IOC-14", "ioctl 0x240c", ev_ioctl(fd, 0x240c, 0), ENOTTY); /* [ERR-17] */
	check_err("IOC-14", "ioctl 0", ev_ioctl(fd, 0, 0), ENOTTY);
	check_err("IOC-14", "TCGETS", ev_ioctl(fd, 0x5401, (unsigned long)query), ENOTTY);
	check_err("IOC-14", "ID with another size", ev_ioctl(fd, 0x80042407, (unsigned long)query),
		  ENOTTY);
	check_err("IOC-14", "ENABLE with the upper half set", ev_ioctl(fd, 0xffffffff00002400UL, 0),
		  0);
}

CONFORM(not_perf)
{
	int null = open("/dev/null", O_RDWR), fds[2];

	NEED(null >= 0 && pipe(fds) == 0);
	check_err("IOC-14", "ENABLE of /dev/null", ev_ioctl(null, PERF_EVENT_IOC_ENABLE, 0),
		  ENOTTY);
	check_err("IOC-14", "ENABLE of a pipe", ev_ioctl(fds[0], PERF_EVENT_IOC_ENABLE, 0), ENOTTY);
	check_err("IOC-14", "ENABLE of a closed descriptor",
		  ev_ioctl(999, PERF_EVENT_IOC_ENABLE, 0), EBADF);
}
