/*
 * More code than the cache holds: everything is forgotten time and again, and goes on as if it were
 * not.
 */
#include "unit/dbt/guest.h"
#include "unit/test.h"

#include <pthread.h>
#include <string.h>

#define FUNCTIONS 30000u
#define STRIDE    16u

static u8 *code;

/* Guest code: calls every function; each returns its number. */
static u64 call_all(u64 at, u64 n)
{
	u64 sum = 0;

	for (u64 i = 0; i < n; i++)
		sum += ((u32(*)(void))(at + i * STRIDE))();
	return sum;
}

static void *calls(void *arg)
{
	struct guest g;

	(void)arg;
	guest_thread_init(&g);
	for (u32 i = 0; i < 3; i++) {
		u64 before = guest_count(&g, METER_RETURNS);

		EXPECT_EQ(guest_call(&g, call_all, (u64)code, FUNCTIONS, 0),
			  (u64)FUNCTIONS * (FUNCTIONS - 1) / 2);
		EXPECT_EQ(guest_count(&g, METER_RETURNS) - before, FUNCTIONS + 1);
	}
	guest_thread_exit(&g);
	return NULL;
}

TEST(a_full_cache_starts_afresh)
{
	static struct guest g;
	struct dbt_stats stats;
	pthread_t threads[2];

	guest_init(DBT_CHECKS, DBT_MASK_ALL, 1u << 20, 0);
	guest_thread_init(&g);
	code = guest_code(FUNCTIONS * STRIDE, 0);
	for (u32 i = 0; i < FUNCTIONS; i++) {
		u8 *p = code + i * STRIDE;

		p[0] = 0xb8; /* mov eax, imm32; ret */
		memcpy(p + 1, &i, 4);
		p[5] = 0xc3;
	}
	for (u32 i = 0; i < ARRAY_SIZE(threads); i++)
		pthread_create(&threads[i], NULL, calls, NULL);
	for (u32 i = 0; i < ARRAY_SIZE(threads); i++)
		pthread_join(threads[i], NULL);
	dbt_stats_read(&stats);
	EXPECT(stats.flushes > 3);
	dbt_check(g.t);
}
