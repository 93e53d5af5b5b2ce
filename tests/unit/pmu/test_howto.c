/* The driver of doc/howto-add-pmu.md, taken out of the page: it must do what the page says. */
#include "unit/test.h"

#include "howto_driver.h"
#include "unit/core/fake.h"

static struct fake *f;
static struct pedometer driver;

/* One step each 100 ns that a task runs. */
static u64 steps(void *ctx, struct task *task)
{
	(void)ctx;
	return ((struct fake_task *)task_host(task))->counter / 100;
}

static void setup(void)
{
	struct pedometer_config config = {.steps = steps};

	f = fake_new(1);
	fake_exit(f, 100);
	EXPECT_EQ(pedometer_register(f->core, &driver, &config), 0);
	fake_add_task(f, 100, 100);
}

static struct pe_attr step_attr(void)
{
	return (struct pe_attr){.type = (u32)driver.pmu.type,
				.size = PE_ATTR_SIZE_VER8,
				.config = 1,
				.exclude_kernel = 1,
				.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED |
					       PERF_FORMAT_TOTAL_TIME_RUNNING};
}

/* A driver is a table of operations [DES-10]. */
TEST(counts_and_refuses)
{
	struct pe_attr attr;
	int fd;

	setup();
	attr = step_attr();
	fd = fake_open(f, &attr, 0, -1, -1);
	EXPECT(fd >= 0);
	fake_advance(f, 1000);
	EXPECT_EQ(fake_count(f, fd), 10);
	fake_ioctl(f, fd, PERF_EVENT_IOC_DISABLE, 0);
	fake_advance(f, 1000);
	EXPECT_EQ(fake_count(f, fd), 10);
	EXPECT_EQ(fake_open(f, &attr, -1, 0, -1), -EOPNOTSUPP);
	EXPECT_CONTAINS(fake_why(f), "pedometer counts tasks");
	attr.config = 2;
	EXPECT_EQ(fake_open(f, &attr, 0, -1, -1), -EINVAL);
	attr.config = 1;
	attr.sample_period = 5;
	EXPECT_EQ(fake_open(f, &attr, 0, -1, -1), -EOPNOTSUPP);
	fake_free(f);
}

TEST(three_events_share_two_counters)
{
	struct pe_attr attr;
	int fds[3];

	setup();
	attr = step_attr();
	for (int i = 0; i < 3; i++)
		fds[i] = fake_open(f, &attr, 0, -1, -1);
	fake_advance(f, 30 * 4000000);
	for (int i = 0; i < 3; i++) {
		fake_read(f, fds[i]);
		EXPECT_EQ(f->words[1], 120000000);
		EXPECT_EQ(f->words[2], 80000000);
		EXPECT_EQ(f->words[0], 800000);
	}
	fake_free(f);
}

static void collect(void *arg, const char *path, const char *text)
{
	strcat(strcat(strcat(arg, path), "="), text);
}

TEST(its_directory)
{
	char all[512] = "";

	setup();
	pmu_files(&driver.pmu, collect, all);
	EXPECT_STREQ(all, "type=7\nperf_event_mux_interval_ms=4\nuevent=format/event=config:0-7\n"
			  "events/steps=event=0x01\n");
	fake_free(f);
}
