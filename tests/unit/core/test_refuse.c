/*
 * Causes that no other test has to do with. The others stand beside the rules that they are about,
 * as EXPECT_REFUSED(), or are the rows of test_open.c; scripts/check-refusals asks for a test of
 * each.
 */
#include "unit/test.h"

#include "core/core-priv.h"
#include "unit/core/fake.h"

static struct fake *f;

static int open_here(const struct pe_attr *attr)
{
	return fake_open(f, attr, 0, -1, -1);
}

TEST(fields_of_the_attr)
{
	struct pe_attr attr = fake_attr();

	f = fake_new(4);
	attr.reserved_3 = 8;
	EXPECT_REFUSED(f, open_here(&attr), -EINVAL, ATTR_AUX_ACTION);
	EXPECT_EQ(core_refusal(f->core)->number[0], 8);
	attr.reserved_3 = AUX_PAUSE;
	EXPECT_REFUSED(f, open_here(&attr), -EINVAL, AUX_PAUSE_GROUP);
	attr = fake_attr();
	attr.aux_output = 1;
	f->hw.pmu.caps |= PMU_CAP_AUX_OUTPUT;
	EXPECT_REFUSED(f, open_here(&attr), -EINVAL, AUX_OUTPUT_GROUP);
	attr = fake_attr();
	attr.aux_sample_size = 64;
	EXPECT_REFUSED(f, open_here(&attr), -EINVAL, AUX_SAMPLE_GROUP);
	attr = fake_attr();
	attr.sample_type = PERF_SAMPLE_BRANCH_STACK;
	attr.branch_sample_type = PERF_SAMPLE_BRANCH_USER;
	EXPECT_REFUSED(f, open_here(&attr), -EINVAL, BRANCH_KIND);
	EXPECT_STREQ(
		fake_why(f),
		"attr.branch_sample_type names no kind of branch, only privilege levels; set at "
		"least PERF_SAMPLE_BRANCH_ANY");
	attr = fake_attr();
	attr.sigtrap = attr.remove_on_exec = 1;
	EXPECT_REFUSED(f, fake_open(f, &attr, -1, 0, -1), -EINVAL, SIGTRAP_TASK);
	fake_free(f);
}

TEST(what_paranoid_says)
{
	struct pe_attr attr = fake_attr();

	f = fake_new(4);
	f->perfmon = f->sys_admin = false;
	attr.exclude_kernel = 0;
	EXPECT_REFUSED(f, open_here(&attr), -EACCES, PARANOID_KERNEL);
	EXPECT_STREQ(
		fake_why(f),
		"counts the kernel too, which kernel.perf_event_paranoid=2 forbids without "
		"CAP_PERFMON; count user mode only (modifier :u, exclude_kernel = 1); or as root: "
		"sysctl kernel.perf_event_paranoid=1; or give the program CAP_PERFMON (setcap "
		"cap_perfmon=ep FILE), or run as root");
	attr.exclude_user = 1;
	EXPECT_REFUSED(f, open_here(&attr), -EACCES, PARANOID_KERNEL_ONLY);
	EXPECT(!strstr(fake_why(f), ":u"));
	attr = fake_attr();
	EXPECT_EQ(core_set_paranoid(f->core, 3), 0);
	fake_close(f, open_here(&attr));
	f->core->sysctl.paranoid_3_refuses = true;
	EXPECT_REFUSED(f, open_here(&attr), -EACCES, PARANOID_ALL);
	fake_free(f);
}

static int any_init(struct event *event)
{
	return event->attr.type == (u32)event->pmu->type ? 0 : -ENOENT;
}

/* The leader's PMU has hardware events of its own already. */
TEST(a_group_on_two_pmus)
{
	struct pe_attr attr = fake_attr();
	struct pmu other;
	int leader;

	f = fake_new(4);
	other = f->hw.pmu;
	other.name = "other";
	other.type = -1;
	other.task_size = other.cpu_size = 0;
	other.sched_task = NULL;
	other.destroy = NULL;
	other.event_init = any_init;
	EXPECT_EQ(pmu_register(f->core, &other), 0);
	leader = open_here(&attr);
	EXPECT(leader >= 0);
	attr.type = (u32)other.type;
	EXPECT_REFUSED(f, fake_open(f, &attr, 0, -1, leader), -EINVAL, GROUP_PMU);
	EXPECT_CONTAINS(fake_why(f), "the group is on the PMU fake, this event is other's");
	fake_free(f);
}

TEST(too_many_pmus)
{
	static struct pmu pmus[CORE_MAX_PMUS];
	static char names[CORE_MAX_PMUS][8];
	int err = 0;
	u32 n;

	f = fake_new(4);
	for (n = 0; n < CORE_MAX_PMUS && !err; n++) {
		snprintf(names[n], sizeof(names[n]), "p%u", n);
		pmus[n] = f->hw.pmu;
		pmus[n].name = names[n];
		pmus[n].type = -1;
		pmus[n].task_size = pmus[n].cpu_size = 0;
		pmus[n].sched_task = NULL;
		err = pmu_register(f->core, &pmus[n]);
	}
	EXPECT_REFUSED(f, err, -ENOSPC, PMU_TOO_MANY);
	fake_free(f);
}

/* One that is gone and still there, because an event of its own refers to it. */
TEST(a_task_that_is_ending)
{
	struct pe_attr attr = fake_attr();
	struct open_call call = {
		.attr = &attr, .attr_len = sizeof(attr), .cpu = -1, .group_fd = -1};

	f = fake_new(4);
	call.caller = fake_task(f, 100)->task;
	EXPECT(open_here(&attr) >= 0);
	fake_exit(f, 100);
	EXPECT_REFUSED(f, perf_open(f->core, &call), -ESRCH, TASK_ENDING);
	fake_free(f);
}

/* A second-hand reason does not hide the first one, and a success leaves none. */
TEST(the_first_reason_stays)
{
	struct pe_attr attr = fake_attr();

	f = fake_new(4);
	f->hw.init_err = -EINVAL;
	EXPECT_REFUSED(f, open_here(&attr), -EINVAL, PMU_CONFIG);
	EXPECT_EQ(core_refusal(f->core)->err, -EINVAL);
	(void)core_refuse(f->core, -EACCES, CPU_OFFLINE, .number = {7});
	EXPECT_EQ(core_refuse_default(f->core, -EPERM, NO_PLACE), -EPERM);
	EXPECT_EQ(core_refusal(f->core)->cause, CAUSE_CPU_OFFLINE);
	f->hw.init_err = 0;
	EXPECT(open_here(&attr) >= 0);
	EXPECT_EQ(core_refusal(f->core)->cause, CAUSE_NONE);
	EXPECT_STREQ(fake_why(f), "");
	fake_free(f);
}
