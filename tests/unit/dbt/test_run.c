/* Guest code runs as it does natively, and what it retires is counted exactly. */
#include "unit/dbt/guest.h"
#include "unit/dbt/snippets.h"
#include "unit/test.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

u64 snip_fault(u64 *p), snip_gs(u64 *p), snip_readonly(u64 *sp);
u64 snip_withdrawn(void *sp, void *to, u64 unused);
extern char snip_readonly_back[], snip_withdrawn_back[];
u64 snip_to(void *to, u64 a, u64 b);
extern char snip_fault_at[];

struct counts {
	u64 q[METER_QUANTITIES];
};

static struct counts counts_now(void)
{
	struct counts c;

	for (u32 q = 0; q < METER_QUANTITIES; q++)
		c.q[q] = guest_count(guest_main(), q);
	return c;
}

static u64 since(const struct counts *c, enum meter_quantity q)
{
	return guest_count(guest_main(), q) - c->q[q];
}

TEST(counts_a_loop)
{
	for (u64 n = 1; n < 40; n += 7) {
		struct counts c = counts_now();

		EXPECT_EQ(guest_call(guest_main(), snip_loop, n, 0, 0), n * (n + 1) / 2 + 1);
		EXPECT_EQ(since(&c, METER_INSTRUCTIONS), 2 + 3 * n + 2);
		EXPECT_EQ(since(&c, METER_BRANCHES), n + 1);
		EXPECT_EQ(since(&c, METER_CONDITIONAL), n);
		EXPECT_EQ(since(&c, METER_TAKEN), n - 1);
		EXPECT_EQ(since(&c, METER_RETURNS), 1);
	}
}

TEST(a_rep_counts_once)
{
	struct counts c = counts_now();

	guest_call(guest_main(), snip_rep, 1000, 0, 0);
	EXPECT_EQ(since(&c, METER_INSTRUCTIONS), 5);
	EXPECT_EQ(since(&c, METER_BRANCHES), 1);
}

TEST(a_transaction_aborts_at_once)
{
	struct counts c = counts_now();

	/* It has none: tests/e2e/unchanged/segments.c. */
	if (__builtin_cpu_is("amd"))
		return;
	EXPECT_EQ(guest_call(guest_main(), snip_transaction, 7, 0, 0), 0);
	EXPECT_EQ(guest_main()->t->regs.gpr[DBT_RDX] & 0xff, 1);
	EXPECT_EQ(since(&c, METER_INSTRUCTIONS), 6);
}

TEST(counts_every_kind_of_branch)
{
	for (int i = 0; i < 3; i++) {
		struct counts c = counts_now();

		EXPECT_EQ(guest_call(guest_main(), snip_branches, 0, 0, 0), 2);
		EXPECT_EQ(since(&c, METER_INSTRUCTIONS), 18);
		EXPECT_EQ(since(&c, METER_BRANCHES), 8);
		EXPECT_EQ(since(&c, METER_CONDITIONAL), 2);
		EXPECT_EQ(since(&c, METER_TAKEN), 0);
		EXPECT_EQ(since(&c, METER_CALLS), 2);
		EXPECT_EQ(since(&c, METER_RETURNS), 3);
		EXPECT_EQ(since(&c, METER_INDIRECT), 2);
	}
}

TEST(flags_survive)
{
	for (u64 a = 0; a < 256; a += 15)
		for (u64 b = 1; b < 256; b += 50)
			EXPECT_EQ(guest_call(guest_main(), snip_flags, a, b, 0), snip_flags(a, b));
}

TEST(the_red_zone_survives)
{
	for (int i = 0; i < 3; i++)
		EXPECT_EQ(guest_call(guest_main(), snip_redzone, 0, 0, 0), 66);
}

TEST(calls_return)
{
	EXPECT_EQ(guest_call(guest_main(), snip_fib, 20, 0, 0), 6765);
	EXPECT_EQ(guest_call(guest_main(), snip_table, 1000, 0, 0), snip_table(1000));
	for (int i = 0; i < 3; i++)
		EXPECT_EQ(guest_call(guest_main(), snip_longjmp, 0, 0, 0), 2);
}

static void interrupt_everywhere(const void *fn, u64 a);

TEST(what_is_spilled_comes_back)
{
	for (int i = 0; i < 3; i++)
		EXPECT_EQ(guest_call(guest_main(), snip_spilled, 0, 0, 0), 0xc5);
	for (u64 n = 100; n < 20000; n *= 3) {
		struct counts c = counts_now();

		EXPECT_EQ(guest_call(guest_main(), snip_deep, n, 0, 0), n * (n + 1) / 2);
		EXPECT_EQ(since(&c, METER_INSTRUCTIONS), 8 * n + 4);
		EXPECT_EQ(since(&c, METER_RETURNS), n + 1);
	}
}

TEST(a_return_needs_no_writable_stack)
{
	u64 *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	page[16] = (u64)snip_readonly_back;
	mprotect(page, 4096, PROT_READ);
	for (int i = 0; i < 3; i++) {
		struct counts c = counts_now();

		EXPECT_EQ(guest_call(guest_main(), snip_readonly, (u64)&page[16], 0, 0), 42);
		EXPECT_EQ(since(&c, METER_INSTRUCTIONS), 8);
		EXPECT_EQ(since(&c, METER_RETURNS), 2);
	}
	interrupt_everywhere(snip_readonly, (u64)&page[16]);
}

static u64 *withdrawn;

/* Takes the permission as soon as the return has put a native address there. */
static void withdraw(const u64 *gregs)
{
	if (gregs[2] /* r10 */ == 1 && dbt_in_cache(withdrawn[511]))
		mprotect(withdrawn, 4096, PROT_READ);
}

TEST(a_return_needs_no_stack_that_stays_writable)
{
	struct guest *g = guest_main();

	withdrawn = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (u64 i = 0; i < 6; i++) {
		u64 to = i % 2 ? (u64)snip_withdrawn_back : 0;
		struct counts c = counts_now();

		g->step = i < 2 ? 0 : ~0ull;
		g->on_step = withdraw;
		EXPECT_EQ(guest_call(g, snip_withdrawn, (u64)&withdrawn[512], to, 0), 42 + i % 2);
		EXPECT_EQ(since(&c, METER_INSTRUCTIONS), 13 + i % 2);
		EXPECT_EQ(since(&c, METER_RETURNS), 2);
		EXPECT_EQ(guest_call(g, snip_withdrawn, (u64)&withdrawn[512], to, 0),
			  i < 2 ? 42 + i % 2 : ~0ull);
		mprotect(withdrawn, 4096, PROT_READ | PROT_WRITE);
	}
	g->step = 0;
	g->on_step = NULL;
	munmap(withdrawn, 4096);
}

TEST(gs_is_the_guests)
{
	u64 words[4] = {0, 30, 12, 0};

	EXPECT_EQ(guest_call(guest_main(), snip_gs, (u64)words, 0, 0), 42);
	EXPECT_EQ(words[3], 42);
}

TEST(a_fault_gives_the_state_before_it)
{
	struct counts c = counts_now();
	u64 value = 37;

	EXPECT_EQ(guest_call(guest_main(), snip_fault, 8, 0, 0), ~0ull);
	EXPECT_EQ(guest_main()->fault_sig, SIGSEGV);
	EXPECT_EQ(guest_main()->fault_addr, 8);
	EXPECT_EQ(guest_main()->fault_pc, (u64)snip_fault_at);
	EXPECT_EQ(guest_main()->t->regs.gpr[DBT_RAX], 5);
	EXPECT_EQ(since(&c, METER_INSTRUCTIONS), 1);
	/* As a handler that mends the cause and returns. */
	guest_main()->t->regs.gpr[DBT_RDI] = (u64)&value;
	EXPECT_EQ(guest_run(guest_main()), 0);
	EXPECT_EQ(guest_main()->t->regs.gpr[DBT_RAX], 42);
	EXPECT_EQ(since(&c, METER_INSTRUCTIONS), 3);
}

/* Interrupts after each native instruction in turn: result and counts must not depend on it. */
static void interrupt_everywhere(const void *fn, u64 a)
{
	struct guest *g = guest_main();
	struct counts c;
	u64 want, n[METER_QUANTITIES];

	guest_call(g, fn, a, 0, 0);
	c = counts_now();
	want = guest_call(g, fn, a, 0, 0);
	for (u32 q = 0; q < METER_QUANTITIES; q++)
		n[q] = since(&c, q);
	for (g->step = 1;; g->step++) {
		u64 step = g->step;

		c = counts_now();
		EXPECT_EQ(guest_call(g, fn, a, 0, 0), want);
		for (u32 q = 0; q < METER_QUANTITIES; q++)
			if (since(&c, q) != n[q])
				TEST_FAIL(
					"after %llu native instructions: quantity %u is %llu, not %llu",
					(unsigned long long)step, q,
					(unsigned long long)since(&c, q), (unsigned long long)n[q]);
		if (g->stepped < step || test_failures)
			break;
	}
	g->step = 0;
}

TEST(signals_anywhere)
{
	interrupt_everywhere(snip_loop, 3);
	interrupt_everywhere(snip_rep, 20);
	interrupt_everywhere(snip_branches, 0);
	interrupt_everywhere(snip_flags, 200);
	interrupt_everywhere(snip_redzone, 0);
	interrupt_everywhere(snip_fib, 4);
	interrupt_everywhere(snip_table, 9);
	interrupt_everywhere(snip_longjmp, 0);
	interrupt_everywhere(snip_spilled, 0);
	interrupt_everywhere(snip_deep, 3);
	interrupt_everywhere(snip_vector, 3);
}

static u64 burn(u64 n)
{
	volatile u64 x = 1;
	char text[64];

	for (u64 i = 0; i < n; i++) {
		x = x * 6364136223846793005ull + snip_fib(5);
		if (i % 64 == 0)
			snprintf(text, sizeof(text), "%llu %f", (unsigned long long)x,
				 (double)i / 3);
	}
	return x;
}

TEST(a_storm_of_signals_changes_nothing)
{
	struct itimerval tick = {{0, 300}, {0, 300}}, off = {{0, 0}, {0, 0}};
	struct counts c;
	u64 want, n, before;

	guest_call(guest_main(), burn, 3000, 0, 0);
	c = counts_now();
	want = guest_call(guest_main(), burn, 3000, 0, 0);
	n = since(&c, METER_INSTRUCTIONS);
	EXPECT_EQ(want, burn(3000));
	before = guest_main()->interrupts;
	setitimer(ITIMER_REAL, &tick, NULL);
	for (int i = 0; i < 30; i++) {
		c = counts_now();
		EXPECT_EQ(guest_call(guest_main(), burn, 3000, 0, 0), want);
		EXPECT_EQ(since(&c, METER_INSTRUCTIONS), n);
	}
	setitimer(ITIMER_REAL, &off, NULL);
	EXPECT(guest_main()->interrupts > before);
}

static u8 *test_code(u64 size, u32 flags)
{
	guest_main();
	return guest_code(size, flags);
}

/* mov eax, imm32; ret */
static void write_return(u8 *p, u32 value)
{
	p[0] = 0xb8;
	memcpy(p + 1, &value, 4);
	p[5] = 0xc3;
}

TEST(rewritten_code_runs_as_rewritten)
{
	u8 *p = test_code(8192, DBT_EXEC_WRITABLE);

	for (u32 i = 0; i < 100; i++) {
		write_return(p, i);
		EXPECT_EQ(guest_call(guest_main(), p, 0, 0, 0), i);
		EXPECT_EQ(guest_call(guest_main(), p, 0, 0, 0), i);
	}
}

TEST(code_may_change_unseen)
{
	u8 *p = test_code(4096, DBT_EXEC_CHECKED);

	for (u32 i = 0; i < 20; i++) {
		write_return(p, i);
		EXPECT_EQ(guest_call(guest_main(), p, 0, 0, 0), i);
	}
}

/*
 * Blocks that compare their bytes are linked like others: calls, loops, side exits and returns
 * among them.
 */
TEST(signals_anywhere_in_code_that_may_change)
{
	static const u8 code[] = {
		0x53, 0x31, 0xc0,                                  /* push rbx; xor eax, eax */
		0xe8, 0x0b, 0,    0,    0,                         /* 1: call 2f */
		0x48, 0xff, 0xcf, 0x75, 0xf6,                      /* dec rdi; jnz 1b */
		0x5b, 0xc3, 0x90, 0x90, 0x90, 0x90,                /* pop rbx; ret */
		0x48, 0x89, 0x44, 0x24, 0xf8,                      /* 2: mov [rsp - 8], rax */
		0x48, 0x83, 0xc0, 0x03, 0xa8, 0x01,                /* add rax, 3; test al, 1 */
		0x74, 0x04, 0x48, 0x83, 0xe8, 0x01,                /* je 3f; sub rax, 1 */
		0x48, 0x8d, 0x15, 0x02, 0,    0,    0, 0xff, 0xe2, /* 3: lea rdx, [4f]; jmp rdx */
		0xc3,                                              /* 4: ret */
	};
	u8 *p = test_code(4096, DBT_EXEC_CHECKED);

	memcpy(p, code, sizeof(code));
	EXPECT_EQ(guest_call(guest_main(), p, 1000, 0, 0), 2000);
	interrupt_everywhere(p, 3);
	/* Not at the head of what is entered, but in the middle of what is linked. */
	p[0x1b] = 5;
	EXPECT_EQ(guest_call(guest_main(), p, 1000, 0, 0), 4000);
}

TEST(code_may_change_what_it_is_about_to_execute)
{
	/* mov byte [rip+1], dil ; mov eax, 0 (its first immediate byte was just written) ; ret */
	static const u8 code[] = {0x40, 0x88, 0x3d, 1, 0, 0, 0, 0xb8, 0, 0, 0, 0, 0xc3};
	u8 *p = test_code(4096, DBT_EXEC_WRITABLE);

	memcpy(p, code, sizeof(code));
	for (u32 i = 0; i < 50; i++)
		EXPECT_EQ(guest_call(guest_main(), p, i, 0, 0), i);
}

TEST(a_full_cache_makes_room)
{
	u32 n = 131072, wrong = 0;
	u8 *p = test_code(n * 64, 0);
	struct dbt_stats before, after;

	dbt_stats_read(&before);
	for (u32 i = 0; i < n; i++)
		write_return(p + i * 64, i);
	for (u32 i = 0; i < n; i++)
		wrong += guest_call(guest_main(), p + i * 64, 0, 0, 0) != i;
	dbt_stats_read(&after);
	EXPECT_EQ(wrong, 0);
	EXPECT(after.flushes - before.flushes >= 2);
}

/* Where the cache has been emptied the first block is at 0, as every program's first one is. */
TEST(what_goes_to_the_first_block_of_all_is_linked)
{
	static const u8 loop[] = {0xff, 0xcf, 0x75, 0xfc, 0xc3}; /* dec edi; jnz; ret */
	u8 *p = test_code(4096, 0);
	struct dbt_stats before, after;

	memcpy(p, loop, sizeof(loop));
	dbt_set_mask(guest_main()->t, DBT_MASK_COUNT);
	dbt_set_mask(guest_main()->t, DBT_MASK_ALL);
	dbt_stats_read(&before);
	guest_call(guest_main(), p, 1000, 0, 0);
	dbt_stats_read(&after);
	EXPECT_EQ(after.blocks - before.blocks, 1);
	EXPECT_EQ(after.links - before.links, 1);
}

/* The lookup of an indirect branch's target must not cost flags, whatever it finds on the way. */
TEST(flags_survive_indirect_branches)
{
	/*
	 * One defines the flags before it reads them, and the other does not; they are as far apart
	 * as the numbers of a lookup table repeat.
	 */
	static const u8 dead[] = {0x29, 0xc0, 0xc3}; /* sub eax, eax; ret */
	static const u8 live[] = {0xb8, 0,    0,    0,   0,
				  0x0f, 0x92, 0xc0, 0xc3}; /* mov eax, 0; setb al; ret */
	u8 *p = test_code(512 << 10, 0), *q = p + (256 << 10);

	memcpy(p, dead, sizeof(dead));
	memcpy(q, live, sizeof(live));
	for (u32 i = 0; i < 4; i++) {
		EXPECT_EQ(guest_call(guest_main(), snip_to, (u64)p, 3, 3), 0);
		EXPECT_EQ(guest_call(guest_main(), snip_to, (u64)q, 3, 5), 1);
		EXPECT_EQ(guest_call(guest_main(), snip_to, (u64)p, 3, 3), 0);
		EXPECT_EQ(guest_call(guest_main(), snip_to, (u64)q, 5, 3), 0);
	}
}

TEST(removed_code_does_not_run)
{
	u8 *p = test_code(4096, 0);

	write_return(p, 7);
	EXPECT_EQ(guest_call(guest_main(), p, 0, 0, 0), 7);
	dbt_exec_remove(guest_main()->t, (u64)p, 4096);
	EXPECT_EQ(guest_call(guest_main(), p, 0, 0, 0), ~0ull);
	EXPECT_EQ(guest_main()->fault_addr, (u64)p);
	dbt_exec_add(guest_main()->t, (u64)p, 4096, 0);
	write_return(p, 8);
	EXPECT_EQ(guest_call(guest_main(), p, 0, 0, 0), 8);
	dbt_check(guest_main()->t);
}

static void *other_thread(void *arg)
{
	struct guest g;
	u64 want = *(u64 *)arg;

	guest_thread_init(&g);
	for (int i = 0; i < 40; i++)
		EXPECT_EQ(guest_call(&g, burn, 2000, 0, 0), want);
	guest_thread_exit(&g);
	return NULL;
}

TEST(threads_share_the_cache_while_it_is_flushed)
{
	pthread_t threads[3];
	u64 want = burn(2000);
	struct dbt_stats before, after;

	/* It may be nearly full, and would be flushed for that. */
	dbt_set_mask(guest_main()->t, DBT_MASK_COUNT);
	dbt_set_mask(guest_main()->t, DBT_MASK_ALL);
	dbt_stats_read(&before);
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, other_thread, &want);
	for (u32 i = 0; i < 60; i++) {
		usleep(2000);
		dbt_set_mask(guest_main()->t, i & 1 ? DBT_MASK_ALL : DBT_MASK_COUNT);
	}
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	dbt_stats_read(&after);
	EXPECT_EQ(after.flushes - before.flushes, 60);
	dbt_check(guest_main()->t);
}

/* Guest code: writes a function, calls it, again and again. */
static u64 write_and_call(u64 p, u64 n)
{
	u64 sum = 0;

	for (u64 i = 0; i < n; i++) {
		*(volatile u32 *)(p + 1) = (u32)i;
		sum += ((u32(*)(void))p)();
	}
	return sum;
}

static void *rewriting_thread(void *arg)
{
	struct guest g;
	bool *stop = arg;

	guest_thread_init(&g);
	while (!__atomic_load_n(stop, __ATOMIC_RELAXED)) {
		u8 *p = guest_code(4096, DBT_EXEC_WRITABLE);

		write_return(p, 0);
		EXPECT_EQ(guest_call(&g, write_and_call, (u64)p, 40, 0), 40 * 39 / 2);
		dbt_exec_remove(g.t, (u64)p, 4096);
		munmap(p, 4096);
	}
	guest_thread_exit(&g);
	return NULL;
}

TEST(code_is_rewritten_while_the_cache_is_flushed)
{
	pthread_t threads[2];
	bool stop = false;

	guest_main();
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, rewriting_thread, &stop);
	for (u32 i = 0; i < 300; i++) {
		usleep(500);
		dbt_set_mask(guest_main()->t, i & 1 ? DBT_MASK_ALL : DBT_MASK_COUNT);
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	dbt_check(guest_main()->t);
}

/* A page's last owner was in exit(2), and who reads it must not take it for that one's count. */
TEST(who_takes_a_meter_may_count)
{
	struct guest *g = guest_main();

	meter_park(dbt_meter(g->t));
	EXPECT(dbt_meter(g->t)->parked);
	dbt_meter_attach(g->t);
	EXPECT_EQ(dbt_meter(g->t)->parked, 0);
}
