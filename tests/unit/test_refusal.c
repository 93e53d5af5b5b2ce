/* The table of causes and remedies: every row is a sentence, and any refusal is text that fits. */
#include "unit/test.h"

#include <ctype.h>

#include "base/refusal.h"

static const char *const sentences[] = {
#define CAUSE(id, public, remedy, text) text,
#define NOTE(id, text)
#include "base/cause-table.h"
#undef CAUSE
#undef NOTE
};

static const char *const notes[] = {
#define CAUSE(id, public, remedy, text)
#define NOTE(id, text) text,
#include "base/cause-table.h"
#undef CAUSE
#undef NOTE
};

static const char *const remedies[] = {
#define REMEDY(id, text) text,
#include "base/remedy-table.h"
#undef REMEDY
};

/* Places are "{", one of u, d, x and s, the index of a number or name that exists, "}". */
static bool well_formed(const char *text)
{
	for (const char *p = text; *p; p++) {
		u32 limit;

		if (*p == '}')
			return false;
		if (*p != '{')
			continue;
		limit = p[1] == 's' ? REFUSAL_NAMES : REFUSAL_NUMBERS;
		if (!p[1] || !strchr("udxs", p[1]) || p[2] < '0' || p[2] >= '0' + (int)limit ||
		    p[3] != '}')
			return false;
		p += 3;
	}
	return true;
}

static void expect_text(const char *text)
{
	if (!well_formed(text))
		TEST_FAIL("\"%s\" has a place that is none", text);
	if (!*text || text[strlen(text) - 1] == '.' || strchr(text, '\n') || strstr(text, "  "))
		TEST_FAIL("\"%s\" is no sentence", text);
}

TEST(every_cause_has_a_sentence)
{
	EXPECT_EQ(ARRAY_SIZE(sentences), CAUSE_COUNT - 1);
	for (size_t i = 0; i < ARRAY_SIZE(sentences); i++) {
		expect_text(sentences[i]);
		for (size_t j = 0; j < i; j++)
			if (!strcmp(sentences[i], sentences[j]))
				TEST_FAIL("two causes have the sentence \"%s\"", sentences[i]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(notes); i++)
		EXPECT(well_formed(notes[i]) && (notes[i][0] == ' ' || notes[i][0] == ':'));
}

TEST(every_remedy_has_a_sentence)
{
	EXPECT_EQ(ARRAY_SIZE(remedies), REMEDY_COUNT - 1);
	for (size_t i = 0; i < ARRAY_SIZE(remedies); i++) {
		expect_text(remedies[i]);
		for (size_t j = 0; j < i; j++)
			if (!strcmp(remedies[i], remedies[j]))
				TEST_FAIL("two remedies are \"%s\"", remedies[i]);
	}
}

TEST(numbers_and_names_take_their_places)
{
	struct refusal r;
	char text[512];

	EXPECT_EQ(refusal_set(&r, -22, CAUSE_CPU_RANGE,
			      &(struct refusal_args){.number = {(u64)-7, 8}}),
		  -22);
	EXPECT_EQ(r.err, -22);
	EXPECT_EQ(refusal_why(&r, "cycles:u", text, sizeof(text)), 10);
	EXPECT_STREQ(text,
		     "cycles:u: there is no CPU -7; this machine can have 8, numbered from 0");
	EXPECT_EQ(refusal_why(&r, "", text, sizeof(text)), 0);
	EXPECT_STREQ(text, "there is no CPU -7; this machine can have 8, numbered from 0");
	refusal_remedy(&r, text, sizeof(text));
	EXPECT_STREQ(text, "");
	refusal_set(&r, -22, CAUSE_ATTR_BITS,
		    &(struct refusal_args){.number = {~0ull, 24}, .name = {"sample_type"}});
	refusal_why(&r, NULL, text, sizeof(text));
	EXPECT_STREQ(text,
		     "attr.sample_type has bits 0xffffffffffffffff, only bits 0 to 24 are known");
	refusal_set(&r, -22, CAUSE_STACK_SIZE, &(struct refusal_args){.number = {~0ull}});
	refusal_why(&r, NULL, text, sizeof(text));
	EXPECT_CONTAINS(text, "is 18446744073709551615, it must");
	refusal_set(&r, -3, CAUSE_TASK_NONE, &(struct refusal_args){.number = {1ull << 63}});
	refusal_why(&r, NULL, text, sizeof(text));
	EXPECT_CONTAINS(text, "thread -9223372036854775808");
}

/* The cause's own remedy, unless another is named; and a second one. */
TEST(remedies_are_chosen_and_joined)
{
	struct refusal r;
	char text[512];

	refusal_set(&r, -13, CAUSE_CAP_UPROBE, &(struct refusal_args){.note = NOTE_NONE});
	refusal_remedy(&r, text, sizeof(text));
	EXPECT_STREQ(text, "run as root");
	refusal_set(&r, -13, CAUSE_CAP_UPROBE, &(struct refusal_args){.remedy = {REMEDY_ULIMIT_N}});
	refusal_remedy(&r, text, sizeof(text));
	EXPECT_STREQ(text, "raise RLIMIT_NOFILE (ulimit -n)");
	refusal_set(&r, -13, CAUSE_CAP_UPROBE,
		    &(struct refusal_args){.remedy = {REMEDY_NONE, REMEDY_ULIMIT_N}});
	refusal_remedy(&r, text, sizeof(text));
	EXPECT_STREQ(text, "run as root; or raise RLIMIT_NOFILE (ulimit -n)");
	refusal_set(&r, -2, CAUSE_NO_CPU_PMU, &(struct refusal_args){.note = NOTE_HYPERVISOR});
	refusal_why(&r, "cycles", text, sizeof(text));
	EXPECT_CONTAINS(text, "no CPU PMU here: this is a virtual machine whose");
}

/* Every row with the longest numbers and names is whole in the buffers of struct ap_error. */
TEST(the_longest_sentences_fit)
{
	char name[REFUSAL_NAME], why[512], remedy[500], cut[512];
	struct refusal_args args = {
		.number = {1ull << 63, 1ull << 63, 1ull << 63, 1ull << 63},
		.name = {name, name},
	};
	struct refusal r;

	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	for (int c = 1; c < CAUSE_COUNT; c++) {
		refusal_set(&r, -1, (enum refusal_cause)c, &args);
		refusal_why(&r, NULL, why, sizeof(why));
		EXPECT(strlen(why) < sizeof(why) - 32); /* an event's name fits as well */
		for (size_t len = 1; len <= strlen(why) + 1; len++) {
			memset(cut, '#', sizeof(cut));
			refusal_why(&r, NULL, cut, len);
			EXPECT(!memcmp(cut, why, len - 1) && !cut[len - 1] && cut[len] == '#');
		}
	}
	/* No longer than a list of some tasks, which is the longest of a remedy's names. */
	name[80] = 0;
	for (u16 c = 1; c < REMEDY_COUNT; c++) {
		args.remedy[0] = c;
		refusal_set(&r, -1, CAUSE_ERRNO, &args);
		refusal_remedy(&r, remedy, sizeof(remedy));
		EXPECT(strlen(remedy) < sizeof(remedy) - 1);
		memset(cut, '#', sizeof(cut));
		refusal_remedy(&r, cut, 20);
		EXPECT(strlen(cut) <= 19 && cut[20] == '#');
	}
}

/* What comes from memory that others write to is text at worst. */
TEST(any_bytes_make_a_text)
{
	char why[512], remedy[500];
	struct refusal r;
	u64 seed = 1;

	for (u32 n = 0; n < 20000; n++) {
		for (size_t i = 0; i < sizeof(r); i++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			((u8 *)&r)[i] = (u8)(seed >> 56);
		}
		/* Half of them with ids that exist. */
		if (n & 1)
			r.cause %= CAUSE_COUNT;
		if (n & 1)
			r.remedy[0] %= REMEDY_COUNT;
		(void)refusal_why(&r, "x", why, sizeof(why));
		refusal_remedy(&r, remedy, sizeof(remedy));
		EXPECT(memchr(why, 0, sizeof(why)) && memchr(remedy, 0, sizeof(remedy)));
		for (const char *p = why; *p; p++)
			EXPECT(!iscntrl((unsigned char)*p));
	}
}

TEST(names_are_cut_and_made_printable)
{
	char name[300], why[512];
	struct refusal r;

	memset(name, 'a', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	name[1] = '\33';
	refusal_set(&r, -1, CAUSE_ERRNO, &(struct refusal_args){.name = {name}});
	refusal_why(&r, NULL, why, sizeof(why));
	EXPECT_EQ(strlen(why), REFUSAL_NAME - 1);
	EXPECT(why[0] == 'a' && why[1] == '?');
}
