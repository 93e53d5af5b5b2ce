/* Texts of /proc with names in them that somebody has chosen. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>

#include "session/host/proc-text.h"
#include "unit/test.h"

static FILE *file_of(char *text)
{
	return fmemopen(text, strlen(text), "r");
}

TEST(lines)
{
	char text[] = "one\n\ntwo is too long for it\nfour\nand without an end", line[10];
	FILE *f = file_of(text);

	EXPECT(proc_line(f, line, sizeof(line)));
	EXPECT_STREQ(line, "one");
	EXPECT(proc_line(f, line, sizeof(line)));
	EXPECT_STREQ(line, "");
	/* Its pieces are no lines. */
	EXPECT(proc_line(f, line, sizeof(line)));
	EXPECT_STREQ(line, "four");
	EXPECT(!proc_line(f, line, sizeof(line)));
	fclose(f);
}

TEST(a_line_that_just_fits)
{
	char text[] = "12345678\n123456789\n1234567890\n12", line[10];
	FILE *f = file_of(text);

	EXPECT(proc_line(f, line, sizeof(line)));
	EXPECT_STREQ(line, "12345678");
	EXPECT(proc_line(f, line, sizeof(line)));
	EXPECT_STREQ(line, "12");
	EXPECT(!proc_line(f, line, sizeof(line)));
	fclose(f);
}

TEST(mounts)
{
	struct proc_mount m;

	EXPECT(proc_mount_parse("30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 "
				"rw,nsdelegate",
				&m));
	EXPECT_EQ(m.dev, makedev(0, 26));
	EXPECT_STREQ(m.root, "/");
	EXPECT_STREQ(m.at, "/sys/fs/cgroup");
	EXPECT_STREQ(m.type, "cgroup2");
	EXPECT(strstr(m.options, "nsdelegate") != NULL);
	EXPECT(proc_mount_parse("1 2 8:1 /a /b rw - ext4 /dev/sda1 rw", &m));
	EXPECT_STREQ(m.type, "ext4");
	EXPECT(!proc_mount_parse("1 2 8:1 /a /b rw", &m));
	EXPECT(!proc_mount_parse("1 2 - cgroup x", &m));
	/* No kernel's type is as long. */
	EXPECT(!proc_mount_parse("1 2 8:1 /a /b rw - "
				 "0123456789012345678901234567890123456789012345678901234567890123"
				 " /dev/sda1 rw",
				 &m));
	EXPECT(!proc_mount_parse("", &m));
}

/* As a guest has it that mounts a file system of its own at a place with a long name. */
TEST(a_mount_whose_name_goes_on_as_another)
{
	static const char lie[] = "1 2 0:99 / / rw - cgroup cgroup rw";
	char *text = malloc(9000), line[4096];
	struct proc_mount m;
	FILE *f;

	/* What fgets() would take for a line begins behind the 4,095th character. */
	memset(text, 'a', 9000);
	memcpy(text, "1 2 0:99 / /", 12);
	strcpy(text + 4095, lie);
	strcat(text, " rw - fuse fuse rw\n5 6 0:7 / /b rw - proc proc rw\n");
	f = file_of(text);
	EXPECT(proc_line(f, line, sizeof(line)));
	EXPECT(proc_mount_parse(line, &m));
	EXPECT_STREQ(m.type, "proc");
	EXPECT(!proc_line(f, line, sizeof(line)));
	fclose(f);
	free(text);
}

TEST(ranges)
{
	struct proc_range r;

	EXPECT(proc_range_parse("7f00-8f00 rw-s 00001000 fd:02 4711                   /a b", &r));
	EXPECT_EQ(r.start, 0x7f00);
	EXPECT_EQ(r.end, 0x8f00);
	EXPECT_EQ(r.offset, 0x1000);
	EXPECT_EQ(r.major, 0xfd);
	EXPECT_EQ(r.minor, 2);
	EXPECT_EQ(r.ino, 4711);
	EXPECT_EQ(r.prot, PROT_READ | PROT_WRITE);
	EXPECT(r.shared);
	EXPECT_STREQ(r.name, "/a b");
	EXPECT(proc_range_parse("ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0", &r));
	EXPECT_STREQ(r.name, "");
	EXPECT(!r.prot && !r.shared);
	EXPECT(!proc_range_parse("8f00-7f00 rw-s 00001000 fd:02 4711 /a", &r));
	EXPECT(!proc_range_parse("7f00-8f00 rw-s- 00001000 fd:02 4711 /a", &r));
	EXPECT(!proc_range_parse("-7f00-8f00 rw-s 00001000 fd:02 4711 /a", &r));
	EXPECT(!proc_range_parse("7f00-8f00 rw-s 00001000 fd:02", &r));
	EXPECT(!proc_range_parse("7f00-8f00 rw-s\0"
				 "1 1:1 1 /beyond",
				 &r));
	EXPECT(!proc_range_parse("Size:         4 kB", &r));
}

#define BEHIND_NAME                                                                                \
	"S 1 2 2 0 -1 4194304 70 8 90 9 0 0 0 0 20 0 1 0 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 " \
	"20 17 3 23"

TEST(names_of_two_lines)
{
	static const char maps[] = "1000-2000 r-xp 00000000 08:01 77 /a\\012b\\012\n"
				   "2000-3000 r-xp 00000000 08:01 78 /c\n";
	FILE *f = fmemopen((void *)maps, sizeof(maps) - 1, "r");
	struct proc_range r;

	ASSERT(f);
	EXPECT(proc_range_next(f, &r));
	EXPECT_STREQ(r.name, "/a\nb\n");
	EXPECT(proc_range_next(f, &r));
	EXPECT_STREQ(r.name, "/c");
	EXPECT(!proc_range_next(f, &r));
	fclose(f);
}

TEST(stat_of_a_thread_whose_name_lies)
{
	u64 value;

	EXPECT_EQ(proc_stat_cpu("7 (a) " BEHIND_NAME), 3);
	EXPECT(proc_stat_field("7 (a) " BEHIND_NAME, 10, &value) && value == 70);
	EXPECT(proc_stat_field("7 (a) " BEHIND_NAME, 12, &value) && value == 90);
	EXPECT(proc_stat_field("7 (x) S 1 2 3 4 5) " BEHIND_NAME, 10, &value) && value == 70);
	EXPECT_EQ(proc_stat_cpu("7 (a) S 1"), -1);
	EXPECT_EQ(proc_stat_cpu("7 a S 1"), -1);
	EXPECT_EQ(proc_stat_cpu(""), -1);
}

TEST(words_and_status)
{
	u64 value;

	EXPECT(proc_word("a 1\nkey:\t12 13", "key", 1, &value) && value == 13);
	EXPECT(!proc_word("a 1\nkey:\t12 13", "key", 2, &value));
	EXPECT(!proc_word("a 1", "key", 0, &value));
	EXPECT_STREQ(proc_status_value("PPid:\t5", "PPid"), "\t5");
	EXPECT(proc_status_value("PPidx:\t5", "PPid") == NULL);
	EXPECT_EQ(proc_last_number("\t5 6\t77\n"), 77);
	EXPECT_EQ(proc_last_number(" "), 0);
}

TEST(limits)
{
	u64 limit = 7;

	EXPECT(proc_limit("Max locked memory         8192  65536  bytes", "Max locked memory",
			  &limit));
	EXPECT_EQ(limit, 8192);
	EXPECT(proc_limit("Max locked memory  unlimited  unlimited  bytes", "Max locked memory",
			  &limit));
	EXPECT_EQ(limit, ~0ull);
	EXPECT(proc_limit("Max locked memory  0  0  bytes", "Max locked memory", &limit));
	EXPECT_EQ(limit, 0);
	limit = 7;
	EXPECT(!proc_limit("Max address space  unlimited  unlimited  bytes", "Max locked memory",
			   &limit));
	EXPECT(!proc_limit("Max", "Max locked memory", &limit));
	EXPECT_EQ(limit, 7);
}

TEST(cgroups)
{
	char v1[] = "5:cpu,perf_event:/a:b\n0::/c\n", v2[] = "3:cpu:/x\n0::/c\n",
	     none[] = "3:cpu:/x", odd[] = "junk\n::\n5:perf_eventx:/no\n";
	bool is_v1;

	EXPECT_STREQ(proc_perf_cgroup(v1, &is_v1), "/a:b");
	EXPECT(is_v1);
	EXPECT_STREQ(proc_perf_cgroup(v2, &is_v1), "/c");
	EXPECT(!is_v1);
	EXPECT(proc_perf_cgroup(none, &is_v1) == NULL);
	EXPECT_STREQ(proc_perf_cgroup(odd, &is_v1), "");
}
