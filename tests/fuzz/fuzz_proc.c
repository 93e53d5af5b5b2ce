/*
 * Texts of /proc and of cgroups as the session reads them: mountinfo, maps, status, stat, cgroup.
 * Whatever stands there, what is taken out of it lies within it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "fuzz/fuzz.h"
#include "session/host/proc-text.h"

const char *const fuzz_samples[] = {
	"30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
	"41 30 0:33 /a /sys/fs/cgroup/perf_event rw - cgroup cgroup rw,perf_event\n",
	"7f00-8f00 rw-s 00001000 fd:02 4711                   /a b\n"
	"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n",
	"Name:\tx\nTgid:\t7\nNSpid:\t7\t1\nUid:\t0\t0\t0\t0\nvoluntary_ctxt_switches:\t5\n",
	"7 (a) S 1 2 2 0 -1 4194304 70 8 90 9 0 0 0 0 20 0 1 0 5 6 7 8 9 10 11 12 13 14 15 16 17 "
	"18 19 20 17 3 23",
	"5:cpu,perf_event:/a:b\n4:name=systemd:/x\n0::/c\n",
	NULL,
};

const char *const fuzz_words[] = {
	" - ",        "\n",   ":",       "-",      " ",    ")",
	"perf_event", "0::/", "\t",      "cgroup", "0:26", "ffffffffffff",
	"rw-p",       "(",    "status:", "\\040/", "-1",   "18446744073709551616",
	NULL};

/* What is called a part of @text is one. */
static void need_within(const char *text, const char *part)
{
	CHECK(!part || (part >= text && part <= text + strlen(text)));
}

static void read_lines(char *text, size_t len, size_t room)
{
	FILE *f = fmemopen(text, len, "r");
	struct proc_mount m;
	char *line = malloc(room);
	size_t all = 0;

	CHECK(f && line);
	while (proc_line(f, line, room)) {
		CHECK(strlen(line) < room && !strchr(line, '\n'));
		all += strlen(line) + 1;
		need_within(line, proc_status_value(line, "Tgid"));
		if (proc_mount_parse(line, &m)) {
			need_within(line, m.options);
			CHECK(strlen(m.root) < sizeof(m.root) && strlen(m.at) < sizeof(m.at) &&
			      *m.type);
		}
	}
	CHECK(all <= len + 1);
	fclose(f);
	free(line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char *text = malloc(len + 1), *path;
	struct proc_range r;
	bool v1;
	FILE *f;
	u64 n;

	CHECK(text);
	memcpy(text, data, len);
	text[len] = '\0';
	/* A kernel puts no NUL into any of them. */
	len = strlen(text);
	if (len) {
		read_lines(text, len, 4096);
		read_lines(text, len, 2 + data[0] % 30);
		f = fmemopen(text, len, "r");
		CHECK(f);
		while (proc_range_next(f, &r)) {
			CHECK(r.start <= r.end && r.prot <= 3);
			need_within(r.line, r.name);
		}
		fclose(f);
	}
	CHECK(proc_stat_cpu(text) >= -1);
	for (u32 field = 0; field < 60; field += 3)
		(void)proc_stat_field(text, field, &n);
	(void)proc_word(text, "voluntary", (u32)(len % 5), &n);
	(void)proc_last_number(text);
	path = proc_perf_cgroup(text, &v1);
	CHECK(!path || (path >= text && path <= text + len));
	free(text);
	return 0;
}
