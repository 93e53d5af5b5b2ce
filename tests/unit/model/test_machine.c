/* The text of a machine: what is shipped, what is refused and where, and that it can be shown. */
#include "model/machine.h"

#include <errno.h>
#include <stdarg.h>

#include "model/machines.h"
#include "unit/test.h"

static char text[MACHINE_TEXT_MAX + 2];

/* Appends as printf() does. */
__attribute__((format(printf, 1, 2))) static void add(const char *fmt, ...)
{
	size_t n = strlen(text);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text + n, sizeof(text) - n, fmt, ap);
	va_end(ap);
}

static void show(const struct machine *m)
{
	struct machine_field f;
	bool begins = true;

	*text = '\0';
	add("anyperf-machine 1\n");
	for (u32 at = 0; machine_next_field(m, &at, &f); begins = f.ends) {
		if (begins)
			add("%s %s", f.subject, f.of);
		add(" %s %s%s", f.name, f.value, f.ends ? "\n" : "");
	}
}

TEST(every_shipped_machine_is_read_and_shown)
{
	u32 n = 0;

	for (const struct machine_shipped *s = machines_shipped; s->name; s++, n++) {
		struct machine m, again;
		struct machine_mistake why = {0};

		memset(&m, 0, sizeof(m));
		memset(&again, 0xff, sizeof(again));
		if (machine_parse(&m, s->text, strlen(s->text), &why)) {
			TEST_FAIL("%s: line %u: %s %s: fault %u", s->name, why.line, why.subject,
				  why.field, why.fault);
			continue;
		}
		EXPECT_STREQ(m.name, s->name);
		EXPECT_EQ(m.size, sizeof(m));
		show(&m);
		ASSERT(!machine_parse(&again, text, strlen(text), &why));
		EXPECT(!memcmp(&m, &again, sizeof(m)));
	}
	EXPECT_EQ(n, 11);
}

static const char base[] = "anyperf-machine 1\n"
			   "machine a\n"
			   "about b\n"
			   "l1i size 32K ways 8\n"
			   "l1d size 32K ways 8\n"
			   "ll size 33K ways 11 # no power of two\n"
			   "itlb entries 64 ways 64\n"
			   "dtlb entries 64 ways 4\n"
			   "branch direction gshare entries 1K history 7\n"
			   "core width 4\n";

/* The base with line @line replaced. */
static void with(u32 line, const char *other)
{
	const char *s = base;

	*text = '\0';
	for (u32 i = 1; *s; i++) {
		size_t n = strcspn(s, "\n") + 1;

		if (i == line)
			add("%s\n", other);
		else
			add("%.*s", (int)n, s);
		s += n;
	}
	if (line > 10)
		add("%s\n", other);
}

TEST(values)
{
	struct machine m;
	struct machine_mistake why;

	with(9, "branch direction gshare entries 1024 history 7");
	add("class int-div uops 10 throughput 6.5 latency 26.05\n\t\n  # nothing\n");
	add("memory line 64");
	ASSERT(!machine_parse(&m, text, strlen(text), &why));
	EXPECT_EQ(m.cache[MACHINE_LL].size, 33 * 1024);
	EXPECT_EQ(machine_sets(&m, MACHINE_LL), 48);
	EXPECT_EQ(machine_sets(&m, MACHINE_L2), 0);
	EXPECT_EQ(m.class[COST_INT_DIV].uops, 10);
	EXPECT_EQ(m.class[COST_INT_DIV].throughput, 650);
	EXPECT_EQ(m.class[COST_INT_DIV].latency, 2605);
	EXPECT_EQ(m.branch.returns, 16);
	EXPECT_EQ(m.branch.direction, MACHINE_GSHARE);
	EXPECT_EQ(m.tlb[MACHINE_TLB2].entries, 0);
	EXPECT_STREQ(machine_cache_name(MACHINE_L1D), "l1d");
	EXPECT_STREQ(cost_class_name(COST_SYSTEM), "system");
}

TEST(what_is_refused)
{
	static const struct {
		u32 line; /* of the base that is replaced */
		const char *by;
		enum machine_fault fault;
		const char *subject, *field, *text;
	} cases[] = {
		{9, "branch direction gshare entries 1K history 7", MACHINE_NOT_A_NUMBER, "branch",
		 "entries", "1K"},
		{1, "anyperf-machine 2", MACHINE_NO_VERSION, "", "", "anyperf-machine 2"},
		{2, "machine a b", MACHINE_BAD_CHARACTER, "machine", "", ""},
		{2, "machine ../a", MACHINE_BAD_CHARACTER, "machine", "", ""},
		{2, "machine", MACHINE_NO_VALUE, "machine", "", "machine"},
		{2, "machine 0123456789012345678901234567890123", MACHINE_TOO_LONG, "machine", "",
		 "0123456789012345678901234567890123"},
		{2, "#", MACHINE_MISSING, "machine", "", ""},
		{3, "abuot b", MACHINE_NO_SUBJECT, "", "", "abuot"},
		{4, "l1i size 32K ways 8 speed 3", MACHINE_NO_FIELD, "l1i", "", "speed"},
		{4, "l1i size 32K", MACHINE_MISSING, "l1i", "ways", "ways"},
		{4, "l1i size 32K ways", MACHINE_NO_VALUE, "l1i", "ways", "ways"},
		{4, "l1i size 32K ways 8 ways 8", MACHINE_TWICE, "l1i", "ways", "ways"},
		{4, "l1i size 32K ways 8 policy fifo", MACHINE_NO_WORD, "l1i", "policy", "fifo"},
		{4, "l1i size 32K ways 7", MACHINE_GEOMETRY, "l1i", "ways", ""},
		{4, "l1i size 33 ways 8", MACHINE_GEOMETRY, "l1i", "size", ""},
		{4, "l1i size 2G ways 8", MACHINE_OUT_OF_RANGE, "l1i", "size", "2G"},
		{4, "l1i size -1 ways 8", MACHINE_NOT_A_NUMBER, "l1i", "size", "-1"},
		{4, "l1i size 99999999999999999999 ways 8", MACHINE_NOT_A_NUMBER, "l1i", "size",
		 "99999999999999999999"},
		{4, "l1i size 32T ways 8", MACHINE_NOT_A_NUMBER, "l1i", "size", "32T"},
		{4, "l1i size 8K ways 128 policy plru", MACHINE_OUT_OF_RANGE, "l1i", "ways", ""},
		{4, "l1i size 32K ways 8 prefetch stride", MACHINE_NOT_HERE, "l1i", "prefetch", ""},
		{4, "l1i size 32K ways 8 prefetch next-line,next-line", MACHINE_NO_WORD, "l1i",
		 "prefetch", "next-line,next-line"},
		{4, "l1i size 32K ways 8 inclusion inclusive", MACHINE_NOT_HERE, "l1i", "inclusion",
		 ""},
		{4, "l1i size 32K ways 8 stores no-allocate", MACHINE_NOT_HERE, "l1i", "stores",
		 ""},
		{6, "ll size 32K ways 8 inclusion victim", MACHINE_NOT_HERE, "ll", "inclusion", ""},
		{8, "dtlb entries 64 ways 5", MACHINE_GEOMETRY, "dtlb", "ways", ""},
		{8, "dtlb entries 64 ways 4 huge-entries 32", MACHINE_GEOMETRY, "dtlb", "huge-ways",
		 ""},
		{9, "branch direction gshare entries 1000 history 7", MACHINE_NOT_A_POWER, "branch",
		 "entries", ""},
		{9, "branch direction gshare entries 1024 history 33", MACHINE_OUT_OF_RANGE,
		 "branch", "history", ""},
		{9, "branch direction tage entries 1024 history 7", MACHINE_OUT_OF_RANGE, "branch",
		 "history", ""},
		{9, "branch direction gshare entries 1024 targets ittage", MACHINE_NOT_HERE,
		 "branch", "targets", ""},
		{9, "branch direction tage entries 1024 history 64 indirect 768",
		 MACHINE_NOT_A_POWER, "branch", "indirect", ""},
		{9, "branch direction gshare entries 1024 btb 100 btb-ways 3", MACHINE_GEOMETRY,
		 "branch", "btb-ways", ""},
		{11, "core width 4", MACHINE_TWICE, "core", "", "core"},
		{11, "class int-sqrt uops 4", MACHINE_NO_SUBJECT, "", "", "int-sqrt"},
		{11, "class int latency 1.234", MACHINE_NOT_A_NUMBER, "class", "latency", "1.234"},
		{11, "class int latency 1.", MACHINE_NOT_A_NUMBER, "class", "latency", "1."},
		{11, "memory line 96", MACHINE_NOT_A_POWER, "memory", "line", ""},
		{11, "tlb2 entries 64 ways 4 huge-entries 4 huge-ways 4", MACHINE_NOT_HERE, "tlb2",
		 "huge-entries", ""},
		{11, "\x7f", MACHINE_BAD_CHARACTER, "", "", ""},
	};
	static const char good[] = "branch direction gshare entries 1024 history 7";

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct machine m;
		struct machine_mistake why;
		u32 line = cases[i].line;
		char *at;

		with(line, cases[i].by);
		/* The base's own mistake is the first case. */
		at = strstr(text, "branch direction gshare entries 1K");
		if (i && at) {
			char rest[2000];

			snprintf(rest, sizeof(rest), "%s%s", good, at + strcspn(at, "\n"));
			strcpy(at, rest);
		}
		memset(&m, 0x55, sizeof(m));
		EXPECT_EQ(machine_parse(&m, text, strlen(text), &why), -EBADMSG);
		EXPECT_EQ(m.version, 0x55555555);
		if (why.fault != cases[i].fault || strcmp(why.subject, cases[i].subject) != 0 ||
		    strcmp(why.field, cases[i].field) != 0 ||
		    strcmp(why.text, cases[i].text) != 0 ||
		    why.line != (cases[i].fault == MACHINE_MISSING && line == 2 ? 0 : line))
			TEST_FAIL("'%s': fault %u line %u subject '%s' field '%s' text '%s'",
				  cases[i].by, why.fault, why.line, why.subject, why.field,
				  why.text);
	}
}

TEST(long_texts)
{
	struct machine m;
	struct machine_mistake why;

	memset(text, '\n', sizeof(text));
	EXPECT_EQ(machine_parse(&m, text, MACHINE_TEXT_MAX + 1, &why), -EBADMSG);
	EXPECT_EQ(why.fault, MACHINE_TOO_LONG);
	EXPECT_EQ(machine_parse(&m, text, MACHINE_TEXT_MAX, &why), -EBADMSG);
	EXPECT_EQ(why.fault, MACHINE_NO_VERSION);
	memset(text, '#', MACHINE_LINE_MAX);
	EXPECT_EQ(machine_parse(&m, text, MACHINE_LINE_MAX, &why), -EBADMSG);
	EXPECT_EQ(why.fault, MACHINE_TOO_LONG);
	EXPECT_EQ(machine_parse(&m, text, MACHINE_LINE_MAX - 1, &why), -EBADMSG);
	EXPECT_EQ(why.fault, MACHINE_NO_VERSION);
}

/* What came through shared memory is held to the same. */
TEST(a_struct_is_checked)
{
	struct machine good, m;
	struct machine_mistake why;

	ASSERT(!machine_parse(&good, machines_shipped[0].text, strlen(machines_shipped[0].text),
			      &why));
	EXPECT_EQ(machine_check(&good, &why), 0);
	m = good;
	m.version++;
	EXPECT_EQ(machine_check(&m, &why), -EBADMSG);
	m = good;
	m.size--;
	EXPECT_EQ(machine_check(&m, &why), -EBADMSG);
	m = good;
	memset(m.name, 'a', sizeof(m.name));
	EXPECT_EQ(machine_check(&m, &why), -EBADMSG);
	m = good;
	m.about[0] = '\033';
	EXPECT_EQ(machine_check(&m, &why), -EBADMSG);
	m = good;
	m.cache[MACHINE_L1D].ways = 0;
	EXPECT_EQ(machine_check(&m, &why), -EBADMSG);
	m = good;
	m.cache[MACHINE_LL].policy = 2;
	EXPECT_EQ(machine_check(&m, &why), -EBADMSG);
	EXPECT_STREQ(why.field, "policy");
	m = good;
	m.memory.line = 0;
	EXPECT_EQ(machine_check(&m, &why), -EBADMSG);
}
