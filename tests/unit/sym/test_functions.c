/* Functions, sections and lines of a file as Valgrind knows them: of this program. */
#include "unit/test.h"

#include <link.h>

#include "sym/function-table.h"
#include "sym/line-reader.h"

__attribute__((noinline)) void test_function_with_a_long_name(void);
__attribute__((noinline)) void test_function_with_a_long_name(void)
{
	__asm__ volatile("");
}
void test_function_short(void) __attribute__((alias("test_function_with_a_long_name")));

static u64 bias;

static int first_object(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)size;
	(void)data;
	bias = info->dlpi_addr;
	return 1;
}

TEST(functions_of_a_file)
{
	struct function_table *t = function_table_load("/proc/self/exe");
	struct function_entry f;
	const char *file = "";
	u64 at;
	u32 line = 0;

	ASSERT(t);
	dl_iterate_phdr(first_object, NULL);
	at = (u64)(uintptr_t)&test_function_with_a_long_name - bias;
	ASSERT(function_table_find(t, at, &f));
	/* Of two names the shorter one. */
	EXPECT_STREQ(f.name, "test_function_short");
	EXPECT_EQ(f.start, at);
	EXPECT(f.end > at);
	EXPECT(function_table_find(t, f.end - 1, &f) && f.start == at);
	EXPECT(!function_table_find(t, 1, &f));
	EXPECT(!function_table_find(t, UINT64_MAX, &f));
	EXPECT_EQ(function_table_section(t, at), SECTION_TEXT);
	EXPECT_EQ(function_table_section(t, 0), SECTION_UNKNOWN);
	/* clang writes no .debug_aranges, without which libdw before 0.189 knows no lines. */
#ifndef __clang__
	if (line_reader_works()) {
		ASSERT(function_table_line(t, at, &file, &line));
		EXPECT_CONTAINS(file, "test_functions.c");
		EXPECT(line > 10 && line < 18);
	}
#endif
	EXPECT(!function_table_line(t, UINT64_MAX, &file, &line));
	function_table_free(t);
}

/* Where the kernel has put us is where _start is. */
TEST(what_is_below_main_has_one_name)
{
	struct function_table *t = function_table_load("/proc/self/exe");
	extern char _start[];
	struct function_entry f;

	ASSERT(t);
	dl_iterate_phdr(first_object, NULL);
	ASSERT(function_table_find(t, (u64)(uintptr_t)_start - bias, &f));
	EXPECT_STREQ(f.name, "(below main)");
	function_table_free(t);
}

TEST(what_is_no_file_has_no_functions)
{
	EXPECT(!function_table_load("/proc/self/status"));
	EXPECT(!function_table_load("/nowhere"));
	EXPECT(!function_table_load("/"));
	function_table_free(NULL);
}
