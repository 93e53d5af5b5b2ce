/*
 * The two views of the code cache: nothing is writable and executable at once, and after a fork
 * each process changes its own code only.
 */
#include "unit/dbt/guest.h"
#include "unit/test.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define FUNCTIONS 2000u
#define STRIDE    64u
#define ROUNDS    24u /* enough for exits that are shared to be linked */

static struct guest g;
static u8 *code;
static bool no_files;

static u8 *function(u32 i)
{
	return code + i * STRIDE;
}

/* mov eax, imm32; ret */
static void make(u32 i, u32 value)
{
	u8 *p = function(i);

	p[0] = 0xb8;
	memcpy(p + 1, &value, 4);
	p[5] = 0xc3;
}

static u64 call_all(u64 at, u64 n)
{
	u64 sum = 0;

	for (u64 i = 0; i < n; i++)
		sum += ((u32(*)(void))(at + i * STRIDE))();
	return sum;
}

static void begin(u64 cache_size)
{
	guest_init(DBT_CHECKS, DBT_MASK_ALL, cache_size, 0);
	guest_thread_init(&g);
	code = guest_code(FUNCTIONS * STRIDE, DBT_EXEC_WRITABLE);
	for (u32 i = 0; i < FUNCTIONS; i++)
		make(i, 1);
}

static u32 writable_and_executable(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512], perm[8];
	u32 found = 0;

	EXPECT(f);
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%*s %7s", perm) == 1 && perm[1] == 'w' && perm[2] == 'x')
			found++;
	if (f)
		fclose(f);
	return found;
}

static u64 all(u32 n)
{
	return guest_call(&g, call_all, (u64)code, n, 0);
}

/*
 * What both processes of a fork do: go through old code until exits are linked, make new code, and
 * change old code, all of it again and again. @mine: a value that the other one does not use. How
 * much came out wrong.
 */
static u32 go_on(u32 mine)
{
	u32 wrong = 0;

	for (u32 round = 0; round < ROUNDS; round++) {
		u64 changed = 0;

		wrong += all(FUNCTIONS / 2 + round) != FUNCTIONS / 2 + round;
		for (u32 i = round; i < FUNCTIONS; i += 97, changed++)
			make(i, mine + round);
		wrong += all(FUNCTIONS) != FUNCTIONS - changed + changed * (mine + round);
		for (u32 i = round; i < FUNCTIONS; i += 97)
			make(i, 1);
	}
	wrong += no_files ? 0 : writable_and_executable();
	dbt_check(g.t);
	return wrong;
}

/* Forks as the runtime does. 0 in the child. */
static pid_t fork_guest(void)
{
	pid_t pid;

	dbt_fork_prepare(g.t);
	dbt_fork_share();
	pid = fork();
	if (pid)
		dbt_fork_parent(g.t);
	else
		dbt_fork_child(g.t, (u32)getpid());
	return pid;
}

static void forks(u32 depth, u32 mine)
{
	pid_t pid;
	int status;

	EXPECT_EQ(all(FUNCTIONS / 2), FUNCTIONS / 2);
	pid = fork_guest();
	if (!pid) {
		u32 wrong = go_on(mine + 1000);

		if (depth)
			forks(depth - 1, mine + 10000);
		_exit(wrong ? 3 : 0);
	}
	EXPECT_EQ(go_on(mine), 0);
	EXPECT_EQ(waitpid(pid, &status, 0), pid);
	EXPECT_EQ(status, 0);
}

/* A process has one cache. */
static void alone(void (*run)(void))
{
	int status, failures = test_failures;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (!pid) {
		run();
		fflush(NULL);
		_exit(test_failures != failures);
	}
	EXPECT_EQ(waitpid(pid, &status, 0), pid);
	EXPECT_EQ(status, 0);
}

static void share(void)
{
	begin(8u << 20);
	for (u32 i = 0; i < 2; i++)
		forks(1, 100 + i);
}

TEST(who_forks_shares_code_and_changes_its_own)
{
	alone(share);
}

static void fill(void)
{
	struct dbt_stats stats;

	begin(1);
	for (u32 i = 0; i < 2; i++)
		forks(1, 100 + i);
	dbt_stats_read(&stats);
	EXPECT(stats.flushes);
}

TEST(a_full_cache_starts_afresh_in_each_of_them)
{
	alone(fill);
}

static void without_files(void)
{
	struct rlimit few;

	begin(8u << 20);
	getrlimit(RLIMIT_NOFILE, &few);
	few.rlim_cur = 3;
	EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
	no_files = true;
	for (u32 i = 0; i < 2; i++)
		forks(1, 100 + i);
}

/* Memory without a name has to do. */
TEST(code_goes_on_where_no_file_can_be_had)
{
	alone(without_files);
}

static void without_locked_memory(void)
{
	const struct rlimit some = {6u << 20, 6u << 20};

	begin(32u << 20);
	EXPECT_EQ(setrlimit(RLIMIT_MEMLOCK, &some), 0);
	EXPECT(getuid() || !setuid(65534));
	EXPECT_EQ(mlockall(MCL_FUTURE), 0);
	for (u32 i = 0; i < 2; i++)
		forks(1, 100 + i);
}

/* What is mapped is locked, and little may be: a smaller cache has to do. */
TEST(code_goes_on_where_little_may_be_locked)
{
	alone(without_locked_memory);
}

static u64 blocks(void)
{
	struct dbt_stats stats;

	dbt_stats_read(&stats);
	return stats.blocks;
}

#define OLD 10u
#define NEW 90u

/* How many blocks a child makes that calls functions which its parent has not called. */
static u32 made_by_child(void)
{
	int status;
	pid_t pid;

	dbt_learn(g.t);
	pid = fork_guest();
	if (!pid) {
		u64 before = blocks(), sum = all(OLD + NEW);

		dbt_check(g.t);
		_exit(sum == OLD + NEW ? (int)(blocks() - before) : 255);
	}
	EXPECT_EQ(waitpid(pid, &status, 0), pid);
	EXPECT(WIFEXITED(status));
	return (u32)WEXITSTATUS(status);
}

static struct dbt_told *related(u32 exec_flags)
{
	void *told = mmap(NULL, DBT_TOLD_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			  -1, 0);

	EXPECT(told != MAP_FAILED);
	guest_init(DBT_CHECKS, DBT_MASK_ALL, 8u << 20, 0);
	guest_thread_init(&g);
	code = guest_code(FUNCTIONS * STRIDE, exec_flags);
	for (u32 i = 0; i < FUNCTIONS; i++)
		make(i, 1);
	dbt_relatives(g.t, told);
	EXPECT_EQ(all(OLD), OLD);
	return told;
}

static void one_after_the_other(void)
{
	u64 before;

	related(DBT_EXEC_FILE);
	before = blocks();
	EXPECT(made_by_child() >= NEW);
	EXPECT_EQ(blocks(), before);
	for (u32 i = 0; i < 3; i++)
		EXPECT_EQ(made_by_child(), 0);
	EXPECT(blocks() >= before + NEW);
	dbt_check(g.t);
}

TEST(what_a_child_translates_the_next_one_need_not)
{
	alone(one_after_the_other);
}

/* Nobody has executed it here, and then it is other code: a file that was written to. */
static void changed(void)
{
	pid_t pid;
	int status;

	related(DBT_EXEC_FILE);
	made_by_child();
	EXPECT_EQ(made_by_child(), 0);
	for (u32 i = OLD; i < OLD + NEW; i += 9)
		make(i, 2);
	dbt_learn(g.t);
	pid = fork_guest();
	if (!pid)
		_exit(all(OLD + NEW) != OLD + NEW + NEW / 9);
	EXPECT_EQ(waitpid(pid, &status, 0), pid);
	EXPECT_EQ(status, 0);
	dbt_check(g.t);
	for (u32 i = OLD; i < OLD + NEW; i += 9)
		make(i, 1);
	EXPECT(made_by_child() <= NEW / 9);
	EXPECT_EQ(made_by_child(), 0);
}

/* Nor has the parent: what it translates for its children is not for itself. */
static void first_execution(void)
{
	related(DBT_EXEC_FILE);
	made_by_child();
	EXPECT_EQ(made_by_child(), 0);
	for (u32 i = OLD; i < OLD + NEW; i++)
		make(i, 3);
	EXPECT_EQ(all(OLD + NEW), OLD + 3 * NEW);
	dbt_check(g.t);
	/* They have the parent's own now. */
	EXPECT_EQ(made_by_child(), 255);
	dbt_check(g.t);
}

TEST(nor_does_the_parent_execute_it)
{
	alone(first_execution);
}

TEST(unless_it_has_changed_since)
{
	alone(changed);
}

/* Where it can be written it may be other code by now, and not all memory can be read here. */
static void writable(void)
{
	related(DBT_EXEC_WRITABLE);
	for (u32 i = 0; i < 3; i++)
		EXPECT(made_by_child() >= NEW);
}

static void no_file(void)
{
	related(0);
	for (u32 i = 0; i < 3; i++)
		EXPECT(made_by_child() >= NEW);
}

TEST(but_for_code_of_no_file)
{
	alone(no_file);
}

TEST(but_for_code_that_can_be_written)
{
	alone(writable);
}

/* Others can write there too: places where nothing is, between instructions, too many. */
static void anything(void)
{
	u64 *told = (u64 *)related(DBT_EXEC_FILE), before = blocks(), x = 1;

	for (u32 i = 1; i < DBT_TOLD_SIZE / 8; i++) {
		x = x * 6364136223846793005ull + 1442695040888963407ull;
		told[i] = i % 3 == 0 ? x : i % 3 == 1 ? ~0ull : (u64)code + (x >> 40) % 8192;
	}
	*(u32 *)told = ~0u;
	dbt_learn(g.t);
	EXPECT(blocks() > before);
	EXPECT_EQ(*(u32 *)told, 0);
	dbt_check(g.t);
	EXPECT(made_by_child() != 255);
	EXPECT_EQ(made_by_child(), 0);
}

TEST(whatever_is_told)
{
	alone(anything);
}
