/* What a runtime believes of what it is told at its start. */
#include <errno.h>
#include <linux/bpf_common.h>
#include <linux/filter.h>
#include <string.h>

#include "abi/meter.h"
#include "rt/load/told.h"
#include "unit/test.h"

static struct rt_control good(void)
{
	return (struct rt_control){
		.magic = CONTROL_MAGIC, .version = CONTROL_VERSION, .meter = ~0u};
}

TEST(a_block_as_it_should_be)
{
	struct rt_control c = good();

	EXPECT(told_check(&c, sizeof(c)));
	EXPECT(!told_check(&c, sizeof(c) - 1));
	c.version++;
	EXPECT(!told_check(&c, sizeof(c)));
	c = good();
	c.magic++;
	EXPECT(!told_check(&c, sizeof(c)));
}

/* More than was read would be read from what is behind the buffer. */
TEST(filters_that_are_not_there)
{
	struct rt_control c = good();

	c.seccomp_len = 8;
	EXPECT(told_check(&c, sizeof(c) + 8));
	EXPECT(!told_check(&c, sizeof(c) + 7));
	c.seccomp_len = CONTROL_FILTERS + 1;
	EXPECT(!told_check(&c, sizeof(c) + CONTROL_FILTERS + 1));
}

TEST(numbers_and_texts_are_bounded)
{
	struct rt_control c = good();

	memset(c.exe, 'x', sizeof(c.exe));
	memset(c.execfn, 'x', sizeof(c.execfn));
	memset(c.comm, 'x', sizeof(c.comm));
	EXPECT(told_check(&c, sizeof(c)));
	EXPECT_EQ(strlen(c.exe), sizeof(c.exe) - 1);
	EXPECT_EQ(strlen(c.execfn), sizeof(c.execfn) - 1);
	EXPECT_EQ(strlen(c.comm), sizeof(c.comm) - 1);
	c.meter = SEGMENT_SLOTS;
	EXPECT(!told_check(&c, sizeof(c)));
	c.meter--;
	EXPECT(told_check(&c, sizeof(c)));
}

TEST(filters)
{
	struct {
		u32 head;
		struct sock_filter code[2];
		u32 tail;
	} saved = {.head = 2 | TOLD_LOG};
	const u8 *bytes = (const u8 *)&saved;
	struct told_filter f;
	size_t at = 0;

	EXPECT_EQ(told_filter(bytes, 20, &at, &f), 1);
	EXPECT_EQ(f.insns, 2);
	EXPECT_EQ(f.flags, TOLD_LOG);
	EXPECT_EQ(at, 20);
	EXPECT_EQ(told_filter(bytes, 20, &at, &f), 0);
	/* Less than a number is left, or less than it says. */
	EXPECT_EQ(told_filter(bytes, 22, &at, &f), -EINVAL);
	at = 0;
	EXPECT_EQ(told_filter(bytes, 19, &at, &f), -EINVAL);
	saved.head = BPF_MAXINSNS + 1;
	EXPECT_EQ(told_filter(bytes, 20, &at, &f), -EINVAL);
	saved.head = 0;
	EXPECT_EQ(told_filter(bytes, 20, &at, &f), -EINVAL);
}
