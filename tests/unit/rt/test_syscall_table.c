/*
 * The table that is made from syscall.tbl: each row where its number is, and no row that says
 * nothing.
 */
#include "rt/syscall/syscall-table.h"
#include "sys/uapi.h"
#include "unit/rt/syscall-names.h"
#include "unit/test.h"

static bool is_empty(const struct syscall_row *row)
{
	static const struct syscall_row none;

	return !memcmp(row, &none, sizeof(none));
}

TEST(rows_are_at_their_numbers)
{
	bool named[SYSCALLS] = {false};
	u32 rows = 0, n = 0;

	for (const struct syscall_name *s = syscall_names; s->name; s++, n++) {
		ASSERT(s->nr < SYSCALLS - 1);
		if (named[s->nr])
			TEST_FAIL("two rows have number %u, one is %s", s->nr, s->name);
		named[s->nr] = true;
		if (is_empty(&syscall_rows[s->nr]) != s->plain)
			TEST_FAIL("%s: the row does not do what the table says", s->name);
	}
	for (u32 nr = 0; nr < SYSCALLS; nr++) {
		rows += !is_empty(&syscall_rows[nr]);
		if (!is_empty(&syscall_rows[nr]) && !named[nr])
			TEST_FAIL("a row of nobody's at %u", nr);
	}
	EXPECT(n > 350);
	EXPECT(rows > 150 && rows < n);
}

TEST(rows_are_sorted)
{
	for (const struct syscall_name *s = syscall_names; s[0].name && s[1].name; s++)
		if (strcmp(s[0].name, s[1].name) >= 0)
			TEST_FAIL("%s is behind %s", s[1].name, s[0].name);
}

/* The steps that a call goes through are chosen by these bits alone. */
TEST(steps_say_what_there_is)
{
	for (const struct syscall_name *s = syscall_names; s->name; s++) {
		const struct syscall_row *row = &syscall_rows[s->nr];
		bool sends = row->steps & (SYSCALL_SENDS | SYSCALL_SENDS_MANY);
		int was = test_failures;

		EXPECT_EQ(!!(row->steps & SYSCALL_FD), row->fds || row->dirs || sends);
		EXPECT_EQ(!!(row->steps & SYSCALL_PERF), row->perf_call != NULL);
		EXPECT_EQ(!!(row->steps & SYSCALL_NONDET),
			  row->nondet || row->deterministic_call != NULL);
		EXPECT_EQ(!!(row->steps & SYSCALL_FILL), row->fill[0].kind != FILL_NONE);
		EXPECT_EQ(!!(row->steps & SYSCALL_GUEST), row->guest_call != NULL);
		EXPECT(!(row->fds & row->dirs));
		EXPECT(!(row->nondet && row->deterministic_call));
		for (u32 i = 0; i < SYSCALL_FILLS; i++) {
			EXPECT(row->fill[i].arg < 6 && row->fill[i].count < 6);
			EXPECT(row->fill[i].kind != FILL_BYTES || row->fill[i].unit);
		}
		if (test_failures != was)
			fprintf(stderr, "  in the row of %s\n", s->name);
	}
}

TEST(words_mean_what_the_head_says)
{
	const struct syscall_row *read = syscall_row(__NR_read), *wait4 = syscall_row(__NR_wait4);
	const struct syscall_row *linkat = syscall_row(__NR_linkat);
	const struct syscall_row *msgrcv = syscall_row(__NR_msgrcv);
	const struct syscall_row *pselect6 = syscall_row(__NR_pselect6);

	EXPECT_EQ(read->fds, 1);
	EXPECT_EQ(read->fill[0].arg, 1);
	EXPECT_EQ(read->fill[0].unit, 1);
	EXPECT_EQ(read->fill[0].counted, 1);
	EXPECT_EQ(read->fill[0].count, 2);
	EXPECT_EQ(wait4->fill[1].arg, 3);
	EXPECT_EQ(wait4->fill[1].unit, 144);
	EXPECT_EQ(wait4->fill[1].counted, 0);
	EXPECT_EQ(wait4->fill[2].kind, FILL_NONE);
	EXPECT_EQ(linkat->dirs, 5);
	EXPECT_EQ(msgrcv->fill[0].more, 8);
	EXPECT(pselect6->steps & SYSCALL_MASK_PAIR);
	EXPECT_EQ(pselect6->mask, 5);
}

TEST(any_number_has_a_row)
{
	EXPECT(is_empty(syscall_row(SYSCALLS)));
	EXPECT(is_empty(syscall_row(~0ull)));
	EXPECT(!is_empty(syscall_row(__NR_read)));
}
