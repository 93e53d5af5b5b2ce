/* Lines of /proc without what is the runtime's in them. */
#include <string.h>

#include "rt/proc/shown-lines.h"
#include "unit/test.h"

TEST(vm)
{
	char text[64] = "as it was";

	shown_vm_line("VmSize:\t     123 kB", 23 * 1024, text, sizeof(text));
	EXPECT_STREQ(text, "VmSize:\t     100 kB");
	/* A kernel that says less than what we have would be one that was asked too early. */
	shown_vm_line("VmData:\t       1 kB", 23 * 1024, text, sizeof(text));
	EXPECT_STREQ(text, "VmData:\t       0 kB");
	strcpy(text, "as it was");
	shown_vm_line("VmSize:", 0, text, sizeof(text));
	shown_vm_line("Vm", 0, text, sizeof(text));
	EXPECT_STREQ(text, "as it was");
}

TEST(statm)
{
	char text[SHOWN_STATM];
	size_t len = shown_statm("100 2 3 4 0 60 0", 10 * 4096, 20 * 4096, text);

	EXPECT_EQ(len, strlen("90 2 3 4 0 40 0\n"));
	EXPECT(!memcmp(text, "90 2 3 4 0 40 0\n", len));
	/* No more words than there are, however many are said to be. */
	len = shown_statm("18446744073709551615 18446744073709551615 18446744073709551615 "
			  "18446744073709551615 18446744073709551615 18446744073709551615 "
			  "18446744073709551615 18446744073709551615 18446744073709551615",
			  0, 0, text);
	EXPECT(len <= sizeof(text));
	EXPECT_EQ(shown_statm("", 0, 0, text), 1);
}

TEST(mapped)
{
	const char *line = "1-2 r-xp 0 0:0 5   /root/usr/bin/true";

	EXPECT_STREQ(shown_mapped(line, "/usr/bin/true"), "/root/usr/bin/true");
	EXPECT_STREQ(shown_mapped(line, "/root/usr/bin/true"), "/root/usr/bin/true");
	EXPECT(!shown_mapped(line, "/usr/bin/tru"));
	EXPECT(!shown_mapped(line, ""));
	EXPECT(!shown_mapped("1-2 rw-p 0 0:0 0", "/x"));
}
