/* What a guest sees of /proc/PID/maps, on text. */
#include <sys/mman.h>

#include "rt/mm/maps.h"
#include "rt/mm/region.h"
#include "unit/test.h"

u64 region_code_start = 0x7f0000000000, region_code_end = 0x7f0004000000;

static char shown[4096];

static void put(void *to, const char *text, size_t len)
{
	(void)to;
	strncat(shown, text, len);
}

/* Code at 0x1000-0x3000 r-x, and at 0x5000-0x9000 rwx. */
static int prot_of(const void *of, u64 start, u64 *end)
{
	static const struct {
		u64 start, end;
		int prot;
	} code[] = {
		{0x1000, 0x3000, PROT_READ | PROT_EXEC},
		{0x5000, 0x9000, PROT_READ | PROT_WRITE | PROT_EXEC},
	};

	(void)of;
	for (size_t i = 0; i < ARRAY_SIZE(code); i++) {
		if (code[i].end <= start)
			continue;
		if (code[i].start > start) {
			if (code[i].start < *end)
				*end = code[i].start;
			return -1;
		}
		if (code[i].end < *end)
			*end = code[i].end;
		return code[i].prot;
	}
	return -1;
}

static const char *filtered(const char *text, bool whole)
{
	static struct maps_filter f;
	char copy[4096], *line, *save;

	memset(&f, 0, sizeof(f));
	f.put = put;
	f.prot_of = prot_of;
	f.code_start = 0x7f0000000000;
	f.code_end = 0x7f0004000000;
	f.whole = whole;
	shown[0] = '\0';
	snprintf(copy, sizeof(copy), "%s", text);
	for (line = strtok_r(copy, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		maps_line(&f, line);
	maps_end(&f);
	return shown;
}

TEST(divides_what_the_kernel_joined)
{
	EXPECT_STREQ(filtered("00000000-00004000 r--p 00000000 08:01 7    /bin/x\n", false),
		     "00000000-00001000 r--p 00000000 08:01 7    /bin/x\n"
		     "00001000-00003000 r-xp 00001000 08:01 7    /bin/x\n"
		     "00003000-00004000 r--p 00003000 08:01 7    /bin/x\n");
}

TEST(joins_what_protection_divided)
{
	EXPECT_STREQ(filtered("00005000-00006000 rw-p 00000000 00:00 0 \n"
			      "00006000-00007000 r--p 00000000 00:00 0 \n"
			      "00007000-00009000 rw-p 00000000 00:00 0 \n"
			      "00009000-0000a000 rw-p 00000000 00:00 0 \n",
			      false),
		     "00005000-00009000 rwxp 00000000 00:00 0 \n"
		     "00009000-0000a000 rw-p 00000000 00:00 0 \n");
}

TEST(hides_the_runtime)
{
	EXPECT_STREQ(filtered("5a0000000000-5a000001c000 r-xp 00000000 fe:00 1    /x/anyperf-rt\n"
			      "7f0000000000-7f0004000000 rwxp 00000000 00:00 0 \n"
			      "7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0    [stack]\n",
			      false),
		     "7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0    [stack]\n");
}

TEST(smaps_keeps_attributes_with_their_mapping)
{
	EXPECT_STREQ(filtered("5a0000000000-5a000001c000 r-xp 00000000 fe:00 1    /x/anyperf-rt\n"
			      "Size:  112 kB\n"
			      "00001000-00003000 r--p 00001000 08:01 7    /bin/x\n"
			      "Size:  8 kB\n",
			      true),
		     "00001000-00003000 r-xp 00001000 08:01 7    /bin/x\nSize:  8 kB\n");
}

TEST(a_perf_events_pages_are_named_as_the_kernel_names_them)
{
	EXPECT_STREQ(filtered("00010000-00011000 rw-s 00000000 00:01 77    "
			      "/memfd:anon_inode:[perf_event] (deleted)\n"
			      "00011000-00012000 rw-s 00000000 00:01 78    /memfd:x (deleted)\n",
			      false),
		     "00010000-00011000 rw-s 00000000 00:01 77    anon_inode:[perf_event]\n"
		     "00011000-00012000 rw-s 00000000 00:01 78    /memfd:x (deleted)\n");
}

TEST(survives_nonsense)
{
	EXPECT_STREQ(filtered("zzz\n", false), "zzz\n");
	EXPECT_STREQ(filtered("1000-\n1000-2000\n1000-2000 r\n", false), "");
}
