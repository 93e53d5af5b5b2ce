/* Decoding the user page, on pages made up for each case: what [ARM-15] asks of a library. */
#include "unit/lib/fixture.h"

#include "lib/count/selfpage.h"

#define RDPMC BIT(2)
#define TIME  BIT(3)
#define SHORT BIT(5)

static struct perf_event_mmap_page page;
static u64 counter, clock_now;
static u32 read_index;
static int reads, changes;

/* The kernel updating the page while it is being read: @changes times. */
static u64 read_counter(u32 index)
{
	reads++;
	read_index = index;
	if (changes) {
		changes--;
		page.lock += 2;
		page.offset += 1000;
	}
	return counter;
}

static u64 read_clock(void)
{
	return clock_now;
}

static const struct ap__pmc_ops ops = {.read = read_counter, .clock = read_clock};

static bool read_page(struct ap_value *v)
{
	memset(v, 0xee, sizeof(*v));
	reads = 0;
	return ap__selfpage_read(&page, &ops, v);
}

static void fresh(u64 caps, u32 index)
{
	memset(&page, 0, sizeof(page));
	page.capabilities = caps;
	page.index = index;
	page.pmc_width = 48;
	page.offset = 1000;
	page.time_enabled = 500;
	page.time_running = 400;
	page.lock = 6;
	counter = 23;
	changes = 0;
}

/* [PAGE-03, PAGE-04, PAGE-05, PAGE-08, PAGE-21] */
TEST(count_is_offset_plus_counter)
{
	struct ap_value v;

	fresh(RDPMC, 3);
	ASSERT(read_page(&v));
	EXPECT_EQ(v.value, 1023);
	EXPECT_EQ(v.enabled, 500);
	EXPECT_EQ(v.running, 400);
	EXPECT_EQ(read_index, 3);
	EXPECT_EQ(reads, 1);
}

/* [PAGE-12] */
TEST(the_counter_is_sign_extended_from_its_width)
{
	struct ap_value v;

	fresh(RDPMC, 1);
	page.offset = 1ll << 47;
	counter = (1ull << 47) + 5; /* programmed to -2^47, 5 events ago; upper bits unknown */
	ASSERT(read_page(&v));
	EXPECT_EQ(v.value, 5);
	counter |= 0xabcdull << 48;
	ASSERT(read_page(&v));
	EXPECT_EQ(v.value, 5);
	/* arm64 has 32 and 64 bits [ARM-20]. */
	page.pmc_width = 64;
	page.offset = 7;
	counter = UINT64_MAX;
	ASSERT(read_page(&v));
	EXPECT_EQ(v.value, 6);
	page.pmc_width = 32;
	counter = 0xdeadbeef00000001;
	ASSERT(read_page(&v));
	EXPECT_EQ(v.value, 8);
}

TEST(the_system_call_is_needed)
{
	struct ap_value v;

	fresh(RDPMC, 0); /* not on a counter [PAGE-03] */
	EXPECT(!read_page(&v));
	EXPECT_EQ(reads, 0);
	fresh(BIT(1), 3); /* not allowed; the deprecated bit says nothing [PAGE-06, PAGE-07] */
	EXPECT(!read_page(&v));
	EXPECT_EQ(reads, 0);
	fresh(RDPMC, 3);
	page.pmc_width = 0;
	EXPECT(!read_page(&v));
	/* A writer that never ends must not hang the reader [PAGE-02]. */
	fresh(RDPMC, 3);
	page.lock = 7;
	EXPECT(!read_page(&v));
	EXPECT_EQ(reads, 0);
	fresh(RDPMC, 3);
	changes = 1 << 30;
	EXPECT(!read_page(&v));
}

/* [PAGE-02] */
TEST(a_changed_lock_means_again)
{
	struct ap_value v;

	fresh(RDPMC, 3);
	changes = 3;
	ASSERT(read_page(&v));
	EXPECT_EQ(reads, 4);
	EXPECT_EQ(v.value, 4023); /* the last offset, not one of those before */
}

/* [PAGE-09, PAGE-13, PAGE-22] */
TEST(times_go_on_by_the_clock)
{
	struct ap_value v;

	fresh(RDPMC | TIME, 3);
	page.time_shift = 10;
	page.time_mult = 341; /* 3 GHz: 1024/3 */
	page.time_offset = (u64)-2000000;
	clock_now = 6006000;
	ASSERT(read_page(&v));
	/* 6006000 cycles are 5865 * 1024 + 240: 5865 * 341 + (240 * 341 >> 10) = 2000044 */
	EXPECT_EQ(v.enabled, 500 + 44);
	EXPECT_EQ(v.running, 400 + 44);
	/* A shift of 31 and more needs a mask of 64 bits [PAGE-13]. */
	page.time_shift = 32;
	page.time_mult = 1431655765; /* 3 GHz */
	page.time_offset = 0;
	clock_now = 3ull << 32;
	ASSERT(read_page(&v));
	EXPECT_EQ(v.enabled, 500 + 3ull * 1431655765);
	clock_now = (3ull << 32) + 3000000000;
	ASSERT(read_page(&v));
	EXPECT_EQ(v.enabled, 500 + 3ull * 1431655765 + 999999999);
}

/* [PAGE-11] */
TEST(a_short_clock_wraps)
{
	struct ap_value v;

	fresh(RDPMC | TIME | SHORT, 3);
	page.time_mult = 1;
	page.time_mask = 0xffff;
	page.time_cycles = 0x1fff0;
	page.time_offset = (u64)-0x1fff0;
	clock_now = 0x0005; /* 0x15 cycles later, seen through 16 bits */
	ASSERT(read_page(&v));
	EXPECT_EQ(v.enabled, 500 + 0x15);
}
