/* Lines by their tables alone against those that libdwfl finds, of our own code. */
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sym/line-reader.h"
#include "sym/line-tables.h"
#include "unit/test.h"

static char packed[] = "/tmp/anyperf-lines-XXXXXX"; /* ourselves, with compressed sections */

/*
 * The linker puts it in front of _start, whose code has no lines. Its last row is of no
 * instruction, at the address where the rows end.
 */
#ifndef __clang__
__attribute__((section(".text.hot"), used)) static void ends_with_an_empty_row(void)
{
	__asm__ volatile("nop\n\t.loc 1 9999 0 view .Lempty_row");
	__builtin_unreachable();
}
#endif

static bool pack(const char *how)
{
	char command[200];
	int fd = mkstemp(strcpy(packed, "/tmp/anyperf-lines-XXXXXX"));

	if (fd < 0)
		return false;
	close(fd);
	snprintf(command, sizeof(command), "objcopy %s /proc/%d/exe %s", how, (int)getpid(),
		 packed);
	return !system(command);
}

static bool map(struct elf_file *im)
{
	struct stat st;
	int fd = open(packed, O_RDONLY | O_CLOEXEC);
	void *at = MAP_FAILED;

	if (fd >= 0 && !fstat(fd, &st))
		at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	return at != MAP_FAILED && elf_file_open(im, at, (size_t)st.st_size);
}

static void compare(const struct elf_file *im)
{
	struct line_reader *whole = line_reader_new(packed, NULL, NULL),
			   *alone = line_reader_new(packed, NULL, im);
	struct elf_section text;
	u32 known = 0;

	ASSERT(whole && alone && elf_file_find(im, ".text", &text));
	for (u64 at = text.addr; at < text.addr + text.size; at++) {
		const char *x = "", *y = "";
		u32 line_x = 0, line_y = 0;

		if (!line_reader_find(alone, at, &x, &line_x))
			continue;
		known++;
		EXPECT(line_reader_find(whole, at, &y, &line_y));
		EXPECT_STREQ(x, y);
		EXPECT_EQ(line_x, line_y);
	}
	EXPECT(known > 1000);
	line_reader_free(whole);
	line_reader_free(alone);
}

TEST(tables_alone_say_what_all_sections_say)
{
	struct line_tables *t;
	struct elf_file im;
	void *libdw = dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);

	if (!libdw)
		return;
	ASSERT(pack("--compress-debug-sections=zlib") && map(&im));
	t = line_tables_new(libdw, &im);
	/* Which DWARF it is the compiler decides: old tables are libdwfl's. */
#ifndef __clang__
	EXPECT(t);
#endif
	line_tables_free(t);
	if (t)
		compare(&im);
	unlink(packed);
}

TEST(tables_that_are_not_compressed_are_not_read_whole)
{
	struct elf_file im;
	void *libdw = dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);

	if (!libdw)
		return;
	ASSERT(pack("--decompress-debug-sections") && map(&im));
	EXPECT(!line_tables_new(libdw, &im));
	unlink(packed);
	ASSERT(pack("--strip-debug") && map(&im));
	EXPECT(!line_tables_new(libdw, &im));
	unlink(packed);
}

/* The C library's own lines, if it has some, are others. */
static void expect_no_lines_of_ours(const struct elf_file *im, bool alone)
{
	struct line_reader *r = line_reader_new(packed, NULL, alone ? im : NULL);
	const char *file = "";
	Elf64_Ehdr head;
	u32 line;

	ASSERT(r);
	memcpy(&head, im->bytes, sizeof(head));
	if (line_reader_find(r, head.e_entry, &file, &line))
		EXPECT(!strstr(file, "test_lines.c"));
	line_reader_free(r);
}

TEST(a_row_at_the_end_of_a_sequence_is_of_nothing)
{
	static const char *const how[] = {"--decompress-debug-sections",
					  "--remove-section=.debug_aranges",
					  "--compress-debug-sections=zlib"};
	struct elf_file im;

	if (!dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(how); i++) {
		ASSERT(pack(how[i]) && map(&im));
		expect_no_lines_of_ours(&im, i == 2);
		unlink(packed);
	}
}
