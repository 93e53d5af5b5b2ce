/* What tasks have done is kept as long as it matters to what runs. */
#include "unit/test.h"

#include <linux/perf_event.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "data/task-log.h"

struct told {
	struct perf_event_header h;
	u32 pid, ppid, tid, ptid;
	u64 tag;
};

static u64 tags;

static void tell(struct data_task_log *log, u32 type, u32 pid, u32 ppid, u32 tid)
{
	const struct told t = {
		.h = {.type = type, .size = sizeof(t)},
		.pid = pid,
		.ppid = ppid,
		.tid = tid,
		.ptid = ppid,
		.tag = ++tags,
	};

	data_task_log_add(log, &t, sizeof(t));
}

/* The tags that are left, as a text of their last digits. */
static const char *left(const struct data_task_log *log)
{
	static char text[100];
	struct told t;
	u32 n = 0;

	for (size_t at = 0; at < log->len; at += sizeof(t)) {
		memcpy(&t, log->bytes + at, sizeof(t));
		text[n++] = (char)('0' + t.tag % 10);
	}
	text[n] = 0;
	return text;
}

/* A process that has gone. */
static u32 gone(void)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	EXPECT_EQ(waitpid(pid, NULL, 0), pid);
	return (u32)pid;
}

TEST(only_what_tells_of_tasks_is_kept)
{
	struct data_task_log log = {0};

	tags = 0;
	tell(&log, PERF_RECORD_COMM, 1, 0, 1);
	tell(&log, PERF_RECORD_SAMPLE, 1, 0, 1);
	tell(&log, PERF_RECORD_MMAP2, 1, 0, 1);
	tell(&log, PERF_RECORD_LOST, 1, 0, 1);
	tell(&log, PERF_RECORD_KSYMBOL, 1, 0, 1);
	data_task_log_trim(&log);
	EXPECT_STREQ(left(&log), "135");
	data_task_log_release(&log);
}

/* Samples of one that has ended may be in buffers until all have been emptied once more. */
TEST(an_end_is_believed_when_all_before_it_was_read)
{
	struct data_task_log log = {0};
	u32 pid = gone(), me = (u32)getpid();

	tags = 0;
	tell(&log, PERF_RECORD_COMM, me, 0, me);
	tell(&log, PERF_RECORD_COMM, pid, 0, pid);
	tell(&log, PERF_RECORD_EXIT, pid, me, pid);
	data_task_log_trim(&log);
	EXPECT_STREQ(left(&log), "123");
	data_task_log_pass(&log);
	data_task_log_trim(&log);
	EXPECT_STREQ(left(&log), "123");
	tell(&log, PERF_RECORD_MMAP2, me, 0, me);
	data_task_log_pass(&log);
	data_task_log_trim(&log);
	EXPECT_STREQ(left(&log), "14");
	data_task_log_release(&log);
}

TEST(who_lives_is_kept)
{
	struct data_task_log log = {0};
	u32 me = (u32)getpid();

	tags = 0;
	tell(&log, PERF_RECORD_COMM, me, 0, me);
	/* A thread's end, and the first thread's while others go on. */
	tell(&log, PERF_RECORD_EXIT, me, 1, me + 1);
	tell(&log, PERF_RECORD_EXIT, me, 1, me);
	data_task_log_pass(&log);
	data_task_log_pass(&log);
	data_task_log_trim(&log);
	EXPECT_STREQ(left(&log), "123");
	data_task_log_release(&log);
}

/* What is mapped in a process that was forked is told of the one that it was forked from. */
TEST(whom_one_that_lives_was_forked_from_is_kept)
{
	struct data_task_log log = {0};
	u32 first = gone(), second = gone(), other = gone(), me = (u32)getpid();

	tags = 0;
	tell(&log, PERF_RECORD_MMAP2, first, 0, first);
	tell(&log, PERF_RECORD_FORK, second, first, second);
	tell(&log, PERF_RECORD_FORK, other, first, other);
	tell(&log, PERF_RECORD_FORK, me, second, me);
	tell(&log, PERF_RECORD_EXIT, other, first, other);
	tell(&log, PERF_RECORD_EXIT, second, first, second);
	tell(&log, PERF_RECORD_EXIT, first, 1, first);
	data_task_log_pass(&log);
	data_task_log_pass(&log);
	data_task_log_trim(&log);
	/* Ends behind the last one that mattered go first, for they are seen first. */
	EXPECT_STREQ(left(&log), "124");
	data_task_log_release(&log);
}

/* A number may have been given again. */
TEST(who_comes_after_an_end_is_kept)
{
	struct data_task_log log = {0};
	u32 pid = gone();

	tags = 0;
	tell(&log, PERF_RECORD_COMM, pid, 0, pid);
	tell(&log, PERF_RECORD_EXIT, pid, 1, pid);
	tell(&log, PERF_RECORD_COMM, pid, 0, pid);
	data_task_log_pass(&log);
	data_task_log_pass(&log);
	data_task_log_trim(&log);
	EXPECT_STREQ(left(&log), "3");
	data_task_log_release(&log);
}

TEST(it_grows_with_what_runs)
{
	struct data_task_log log = {0};
	u32 pid = gone();

	for (u32 i = 0; i < 200000; i++) {
		tell(&log, PERF_RECORD_MMAP2, pid, 0, pid);
		tell(&log, PERF_RECORD_EXIT, pid, 1, pid);
		if (i % 100 == 0)
			data_task_log_pass(&log);
	}
	EXPECT(log.len < 2u << 20);
	EXPECT(log.len > 0);
	data_task_log_release(&log);
}
