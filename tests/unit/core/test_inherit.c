/* fork, exit, exec, cgroups [INH]. */
#include "unit/test.h"

#include "unit/core/fake.h"

#define ENABLED PERF_FORMAT_TOTAL_TIME_ENABLED
#define RUNNING PERF_FORMAT_TOTAL_TIME_RUNNING

static struct fake *f;

static struct pe_attr inheriting(void)
{
	struct pe_attr attr = fake_attr();

	attr.inherit = 1;
	attr.read_format = ENABLED | RUNNING;
	return attr;
}

static int open_attr(struct pe_attr attr, int group)
{
	int fd = fake_open(f, &attr, 0, -1, group);

	EXPECT(fd >= 0);
	return fd;
}

static struct event *child_of(int fd)
{
	return list_first(&fake_event(f, fd)->children, struct event, child_link);
}

TEST(children_count_into_the_original)
{
	int fd;

	f = fake_new(4);
	fake_fork(f, 100, 99, false); /* older than the event: never counted [INH-01] */
	fd = open_attr(inheriting(), -1);
	fake_fork(f, 100, 101, false);
	fake_fork(f, 101, 102, true); /* of a child: on the original all the same [INH-02] */
	EXPECT(child_of(fd)->parent == fake_event(f, fd));
	fake_advance(f, 100);
	fake_read(f, fd);
	EXPECT_EQ(f->words[0], 300);
	EXPECT_EQ(f->words[1], 300);
	EXPECT_EQ(f->words[2], 300);
	core_check(f->core);
	fake_exit(f, 101);
	fake_advance(f, 10);
	fake_read(f, fd);
	EXPECT_EQ(f->words[0], 320);
	EXPECT_EQ(f->words[1], 320);
	fake_exit(f, 102);
	fake_exit(f, 99);
	fake_read(f, fd);
	EXPECT_EQ(f->words[0], 320);
	EXPECT_EQ(fake_event(f, fd)->child_count, 210);
	fake_free(f);
}

/* Own and living children's counts go to 0, what dead ones left stays [INH-04]. */
TEST(reset_does_not_reach_the_dead)
{
	int fd;

	f = fake_new(4);
	fd = open_attr(inheriting(), -1);
	fake_fork(f, 100, 101, false);
	fake_advance(f, 445);
	fake_exit(f, 101);
	fake_fork(f, 100, 102, false);
	fake_advance(f, 17);
	EXPECT_EQ(fake_count(f, fd), 445 + 445 + 34);
	fake_ioctl(f, fd, PERF_EVENT_IOC_RESET, 0);
	EXPECT_EQ(fake_count(f, fd), 445);
	fake_exit(f, 102);
	EXPECT_EQ(fake_count(f, fd), 445);
	fake_free(f);
}

TEST(enable_and_disable_act_on_the_family)
{
	int fd;

	f = fake_new(4);
	fd = open_attr(inheriting(), -1);
	fake_fork(f, 100, 101, false);
	fake_ioctl(f, fd, PERF_EVENT_IOC_DISABLE, 0);
	EXPECT_EQ(child_of(fd)->state, EVENT_OFF);
	fake_advance(f, 10);
	fake_ioctl(f, fd, PERF_EVENT_IOC_ENABLE, 0);
	EXPECT_EQ(child_of(fd)->state, EVENT_ACTIVE);
	fake_advance(f, 5);
	EXPECT_EQ(fake_count(f, fd), 10);
	fake_free(f);
}

/* The parent's state decides, not attr.disabled [INH-06]. */
TEST(state_of_a_child)
{
	struct pe_attr attr = inheriting();
	int on, off;

	f = fake_new(4);
	attr.disabled = 1;
	on = open_attr(attr, -1);
	fake_ioctl(f, on, PERF_EVENT_IOC_ENABLE, 0);
	attr.disabled = 0;
	off = open_attr(attr, -1);
	fake_ioctl(f, off, PERF_EVENT_IOC_DISABLE, 0);
	fake_fork(f, 100, 101, false);
	EXPECT_EQ(child_of(on)->state, EVENT_ACTIVE);
	EXPECT_EQ(child_of(off)->state, EVENT_OFF);
	fake_free(f);
}

TEST(only_threads)
{
	struct pe_attr attr = inheriting();
	int fd;

	f = fake_new(4);
	attr.inherit_thread = 1;
	fd = open_attr(attr, -1);
	fake_fork(f, 100, 101, false);
	EXPECT(!child_of(fd));
	fake_fork(f, 100, 102, true);
	EXPECT(child_of(fd));
	fake_free(f);
}

TEST(sigtrap_needs_the_handlers)
{
	struct pe_attr attr = inheriting();
	struct fake_task *t;
	struct task *child;
	int fd;

	f = fake_new(4);
	attr.sigtrap = attr.remove_on_exec = 1;
	fd = open_attr(attr, -1);
	t = fake_task(f, 100);
	EXPECT_EQ(task_fork(t->task, 101, 101, false, true, t, &child), 0);
	EXPECT(!child_of(fd));
	task_exit(child);
	/* With its handlers it has the event, and without them the others. */
	EXPECT_EQ(task_fork(t->task, 102, 102, false, false, t, &child), 0);
	EXPECT(child_of(fd));
	task_exit(child);
	fd = open_attr(inheriting(), -1);
	EXPECT_EQ(task_fork(t->task, 103, 103, false, true, t, &child), 0);
	EXPECT(child_of(fd));
	task_exit(child);
	fake_free(f);
}

TEST(groups_keep_their_shape)
{
	struct pe_attr attr = inheriting();
	struct event *child;
	int leader, member, late;

	f = fake_new(4);
	attr.read_format = PERF_FORMAT_GROUP | ENABLED | PERF_FORMAT_ID;
	leader = open_attr(attr, -1);
	member = open_attr(attr, leader);
	fake_fork(f, 100, 101, false);
	child = child_of(leader);
	EXPECT_EQ(child->nr_siblings, 1);
	EXPECT(child_of(member)->leader == child);
	fake_advance(f, 10);
	EXPECT_EQ(fake_read(f, leader), 48);
	EXPECT_EQ(f->words[0], 2);
	EXPECT_EQ(f->words[1], 20);
	EXPECT_EQ(f->words[2], 20);
	EXPECT_EQ(f->words[3], event_id(fake_event(f, leader)));
	EXPECT_EQ(f->words[4], 20);
	EXPECT_EQ(f->words[5], event_id(fake_event(f, member)));
	/* A member that came later is not in the child's group [READ-13, ERR-17]. */
	late = open_attr(attr, leader);
	EXPECT_REFUSED(f, fake_read(f, leader), -ECHILD, GROUP_CHILDREN);
	fake_exit(f, 101);
	EXPECT_EQ(fake_read(f, leader), 64);
	fake_close(f, late);
	core_check(f->core);
	fake_free(f);
}

/*
 * As many members as the parent's, but not of the same history: the kernel does not compare deeper.
 */
TEST(a_member_that_came_and_went)
{
	struct pe_attr attr = inheriting();
	int leader, late;

	f = fake_new(4);
	attr.read_format = PERF_FORMAT_GROUP;
	leader = open_attr(attr, -1);
	open_attr(attr, leader);
	fake_fork(f, 100, 101, false);
	late = open_attr(attr, leader);
	fake_close(f, late);
	EXPECT_REFUSED(f, fake_read(f, leader), -ECHILD, GROUP_CHILDREN);
	fake_exit(f, 101);
	EXPECT_EQ(fake_read(f, leader), 24);
	/* Before the fork it does not matter. */
	late = open_attr(attr, leader);
	fake_close(f, late);
	fake_fork(f, 100, 102, false);
	EXPECT_EQ(fake_read(f, leader), 24);
	fake_free(f);
}

/* A child's group that lost a member the parent got back has the number, not the shape. */
TEST(group_generation)
{
	struct pe_attr attr = inheriting();
	int leader, member;

	f = fake_new(4);
	attr.read_format = PERF_FORMAT_GROUP;
	leader = open_attr(attr, -1);
	member = open_attr(attr, leader);
	fake_fork(f, 100, 101, false);
	fake_close(f, member);
	member = open_attr(attr, leader);
	EXPECT_REFUSED(f, fake_read(f, leader), -ECHILD, GROUP_CHILDREN);
	fake_free(f);
}

/* The group form shows the last child's LOST, the single form the original's [READ-17]. */
TEST(lost_with_living_children)
{
	struct pe_attr attr = inheriting();
	int group, single;

	f = fake_new(4);
	attr.read_format = PERF_FORMAT_GROUP | PE_FORMAT_LOST;
	group = open_attr(attr, -1);
	attr.read_format = PE_FORMAT_LOST;
	single = open_attr(attr, -1);
	fake_event(f, group)->lost_samples = 145;
	fake_event(f, single)->lost_samples = 145;
	fake_fork(f, 100, 101, false);
	fake_read(f, group);
	EXPECT_EQ(f->words[2], 0);
	fake_read(f, single);
	EXPECT_EQ(f->words[1], 145);
	fake_exit(f, 101);
	fake_read(f, group);
	EXPECT_EQ(f->words[2], 145);
	fake_free(f);
}

TEST(closing_the_original_ends_the_children)
{
	int leader, member;

	f = fake_new(4);
	leader = open_attr(inheriting(), -1);
	member = open_attr(inheriting(), leader);
	fake_fork(f, 100, 101, false);
	fake_close(f, leader);
	core_check(f->core);
	EXPECT_EQ(child_of(member)->state, EVENT_ACTIVE);
	fake_advance(f, 10);
	EXPECT_EQ(fake_count(f, member), 20);
	fake_close(f, member);
	EXPECT_EQ(f->frees, 4);
	fake_free(f);
}

TEST(the_parent_dies_before_the_child)
{
	struct pe_attr attr = inheriting();
	int fd;

	f = fake_new(4);
	fake_add_task(f, 200, 200);
	fd = fake_open(f, &attr, 200, -1, -1);
	fake_fork(f, 200, 201, false);
	fake_advance(f, 10);
	fake_exit(f, 200);
	EXPECT(!event_target_gone(fake_event(f, fd)));
	fake_advance(f, 5);
	/* And the child goes on having children. */
	fake_fork(f, 201, 202, false);
	fake_advance(f, 1);
	EXPECT_EQ(fake_count(f, fd), 10 + 16 + 1);
	fake_exit(f, 201);
	EXPECT(!event_target_gone(fake_event(f, fd)));
	fake_exit(f, 202);
	EXPECT(event_target_gone(fake_event(f, fd)));
	EXPECT_EQ(fake_count(f, fd), 27);
	fake_free(f);
}

TEST(a_fork_that_fails_leaves_nothing)
{
	u32 frees;
	int fd;

	f = fake_new(4);
	fd = open_attr(inheriting(), -1);
	f->hw.init_err = -ENOSPC;
	frees = f->frees;
	EXPECT(!fake_fork(f, 100, 101, false));
	EXPECT(!child_of(fd));
	EXPECT_EQ(f->frees, frees);
	f->hw.init_err = 0;
	EXPECT(fake_fork(f, 100, 101, false));
	core_check(f->core);
	fake_free(f);
}

/* Of cpu-wide events it has no effect [INH-10]. */
TEST(cpu_wide_events_are_not_inherited)
{
	struct pe_attr attr = inheriting();
	int fd;

	f = fake_new(4);
	fd = fake_open(f, &attr, -1, 0, -1);
	fake_fork(f, 100, 101, false);
	EXPECT(!child_of(fd));
	fake_free(f);
}

/* [ATTR-18] */
TEST(inherit_stat_reports_each_child)
{
	struct pe_attr attr = inheriting();
	const struct {
		struct perf_event_header header;
		u32 pid, tid;
		u64 count, id;
	} * record;
	int fd;

	f = fake_new(4);
	attr.inherit_stat = 1;
	attr.read_format = PERF_FORMAT_ID;
	fd = fake_open(f, &attr, 0, 0, -1);
	EXPECT_EQ(fake_map(f, fd, 2, true), 0);
	fake_fork(f, 100, 101, false);
	fake_advance(f, 33);
	EXPECT_EQ(fake_page(f, fd)->data_head, 0);
	fake_exit(f, 101);
	/* [REC-07] */
	EXPECT_EQ(fake_page(f, fd)->data_head, 32);
	record = (const void *)((const u8 *)fake_page(f, fd) + 4096);
	EXPECT_EQ(record->header.type, PERF_RECORD_READ);
	EXPECT_EQ(record->pid, 101);
	EXPECT_EQ(record->tid, 101);
	EXPECT_EQ(record->count, 33);
	EXPECT_EQ(record->id, event_id(fake_event(f, fd)));
	EXPECT_EQ(fake_count(f, fd), 66);
	fake_free(f);
}

TEST(children_have_ids_of_their_own)
{
	int fd;

	f = fake_new(4);
	fd = open_attr(inheriting(), -1);
	fake_fork(f, 100, 101, false);
	EXPECT_EQ(child_of(fd)->id, 2);
	EXPECT_EQ(event_id(child_of(fd)), 1);
	fd = open_attr(inheriting(), -1);
	EXPECT_EQ(event_id(fake_event(f, fd)), 3);
	fake_free(f);
}

TEST(a_thousand_forks)
{
	int fd;

	f = fake_new(4);
	fd = open_attr(inheriting(), -1);
	for (int i = 0; i < 1000; i++) {
		fake_fork(f, 100, 1000 + i, false);
		fake_advance(f, 1);
		fake_exit(f, 1000 + i);
	}
	EXPECT_EQ(fake_count(f, fd), 2000);
	fake_free(f);
}

/* [ATTR-19] */
TEST(enable_on_exec)
{
	struct pe_attr attr = fake_attr();
	int fd, member;

	f = fake_new(4);
	attr.disabled = attr.enable_on_exec = 1;
	fd = open_attr(attr, -1);
	attr.enable_on_exec = attr.disabled = 0;
	member = open_attr(attr, fd);
	fake_advance(f, 10);
	task_exec(fake_task(f, 100)->task);
	EXPECT_EQ(fake_event(f, fd)->state, EVENT_ACTIVE);
	EXPECT_EQ(fake_event(f, member)->state, EVENT_ACTIVE);
	fake_advance(f, 10);
	fake_ioctl(f, fd, PERF_EVENT_IOC_DISABLE, 0);
	/* Once. */
	task_exec(fake_task(f, 100)->task);
	fake_advance(f, 10);
	EXPECT_EQ(fake_count(f, fd), 10);
	EXPECT_EQ(fake_count(f, member), 10);
	fake_free(f);
}

TEST(enable_on_exec_in_a_child)
{
	struct pe_attr attr = inheriting();
	int fd;

	f = fake_new(4);
	attr.disabled = attr.enable_on_exec = 1;
	fd = open_attr(attr, -1);
	fake_fork(f, 100, 101, false);
	fake_advance(f, 10);
	task_exec(fake_task(f, 101)->task);
	fake_advance(f, 10);
	EXPECT_EQ(child_of(fd)->state, EVENT_ACTIVE);
	EXPECT_EQ(fake_event(f, fd)->state, EVENT_OFF);
	EXPECT_EQ(fake_count(f, fd), 10);
	fake_free(f);
}

/* [ATTR-40] */
TEST(remove_on_exec)
{
	struct pe_attr attr = inheriting();
	int fd, stays;

	f = fake_new(4);
	stays = open_attr(attr, -1);
	attr.remove_on_exec = 1;
	fd = open_attr(attr, -1);
	fake_fork(f, 100, 101, false);
	fake_advance(f, 10);
	task_exec(fake_task(f, 101)->task);
	EXPECT(!child_of(fd));
	fake_advance(f, 10);
	EXPECT_EQ(fake_count(f, fd), 30);
	task_exec(fake_task(f, 100)->task);
	EXPECT_EQ(fake_event(f, fd)->state, EVENT_EXIT);
	EXPECT(event_target_gone(fake_event(f, fd)));
	EXPECT(!fake_event(f, fd)->owner);
	fake_advance(f, 10);
	EXPECT_EQ(fake_count(f, fd), 30);
	EXPECT_EQ(fake_count(f, stays), 60);
	core_check(f->core);
	fake_free(f);
}

/* It is no longer there when a hardware event joins its group of software events. */
TEST(remove_on_exec_of_a_member)
{
	struct pe_attr attr = fake_attr();
	int leader, member, stays;

	f = fake_new(4);
	attr.type = PERF_TYPE_SOFTWARE;
	attr.config = PERF_COUNT_SW_DUMMY;
	leader = open_attr(attr, -1);
	stays = open_attr(attr, leader);
	attr.remove_on_exec = 1;
	member = open_attr(attr, leader);
	task_exec(fake_task(f, 100)->task);
	EXPECT_EQ(fake_event(f, member)->state, EVENT_EXIT);
	EXPECT(open_attr(fake_attr(), leader) >= 0);
	core_check(f->core);
	EXPECT_EQ(fake_event(f, member)->state, EVENT_EXIT);
	EXPECT_EQ(fake_event(f, stays)->state, EVENT_ACTIVE);
	fake_close(f, leader);
	core_check(f->core);
	fake_free(f);
}

/* A leader that goes leaves its members held, until it is closed. */
TEST(remove_on_exec_of_a_leader)
{
	struct pe_attr attr = fake_attr();
	int leader, member;

	f = fake_new(4);
	attr.remove_on_exec = 1;
	leader = open_attr(attr, -1);
	member = open_attr(fake_attr(), leader);
	fake_advance(f, 10);
	task_exec(fake_task(f, 100)->task);
	core_check(f->core);
	fake_advance(f, 10);
	EXPECT_EQ(fake_count(f, member), 10);
	fake_close(f, leader);
	task_sched_in(fake_task(f, 100)->task, 1);
	fake_advance(f, 10);
	EXPECT_EQ(fake_count(f, member), 20);
	fake_free(f);
}

/* An exec out of reach: events end, those that the task opened keep their descriptors. */
TEST(uncounted)
{
	int fd;

	f = fake_new(4);
	fd = open_attr(fake_attr(), -1);
	fake_advance(f, 10);
	task_uncount(fake_task(f, 100)->task);
	fake_advance(f, 10);
	EXPECT_EQ(fake_count(f, fd), 10);
	EXPECT(event_target_gone(fake_event(f, fd)));
	EXPECT_EQ(task_cpu(fake_task(f, 100)->task), 0);
	fd = open_attr(fake_attr(), -1);
	fake_advance(f, 5);
	EXPECT_EQ(fake_count(f, fd), 5);
	fake_free(f);
}

/* A cgroup's clock runs while one of its tasks, or of its descendants', is on the CPU [FLAG-03]. */
TEST(cgroup_events)
{
	struct pe_attr attr = fake_attr();
	struct cgroup *root, *inner, *other;
	struct task *task;
	int on_root, on_inner, on_other, plain;

	f = fake_new(8);
	root = cgroup_new(f->core, NULL, 1);
	inner = cgroup_new(f->core, root, 2);
	other = cgroup_new(f->core, root, 3);
	f->cgroup_fds[0] = root;
	f->cgroup_fds[1] = inner;
	f->cgroup_fds[2] = other;
	task = fake_task(f, 100)->task;
	task_set_cgroup(task, root);
	EXPECT_EQ(task_cpu(task), 0);
	attr.read_format = ENABLED | RUNNING;
	on_root = fake_open_as(f, 100, &attr, 3000, 0, -1, OPEN_FLAG_PID_CGROUP);
	on_inner = fake_open_as(f, 100, &attr, 3001, 0, -1, OPEN_FLAG_PID_CGROUP);
	on_other = fake_open_as(f, 100, &attr, 3002, 0, -1, OPEN_FLAG_PID_CGROUP);
	plain = fake_open(f, &attr, -1, 0, -1);
	fake_advance(f, 10);
	task_set_cgroup(task, inner);
	core_check(f->core);
	fake_advance(f, 5);
	task_sched_in(task, 1);
	fake_advance(f, 1000);
	fake_read(f, on_root);
	EXPECT_EQ(f->words[1], 15);
	EXPECT_EQ(f->words[2], 15);
	fake_read(f, on_inner);
	EXPECT_EQ(f->words[1], 5);
	EXPECT_EQ(f->words[2], 5);
	fake_read(f, on_other);
	EXPECT_EQ(f->words[1], 0);
	fake_read(f, plain);
	EXPECT_EQ(f->words[1], 1015);
	/* Children are where their parent is. */
	fake_fork(f, 100, 101, false);
	EXPECT(task_in_cgroup(fake_task(f, 101)->task, inner));
	fake_free(f);
}
