/* --fail-if: what is a gate, and when it is broken. */
#include "cli/compare/compare-gate.h"
#include "unit/test.h"

TEST(gates)
{
	struct gate g;
	char why[200];

	ASSERT(gate_parse(&g, "instructions>+0.1%", why, sizeof(why)));
	EXPECT_STREQ(g.name, "instructions");
	EXPECT(!g.below && g.percent && !g.unit && g.limit == 0.1);
	ASSERT(gate_parse(&g, "cpu/event=0x3c,umask=1/u<-5000", why, sizeof(why)));
	EXPECT_STREQ(g.name, "cpu/event=0x3c,umask=1/u");
	EXPECT(g.below && !g.percent && g.limit == -5000);
	ASSERT(gate_parse(&g, "time>20ms", why, sizeof(why)));
	EXPECT(g.unit == 's' && g.limit == 0.02);
	ASSERT(gate_parse(&g, "peak-memory>+1.5MB", why, sizeof(why)));
	EXPECT(g.unit == 'b' && g.limit == 1.5e6);
}

TEST(what_is_no_gate)
{
	static const char *const texts[] = {
		"",        "instructions", ">5",    "instructions>", "instructions>x", "a>5x",
		"a>+",     "a>inf",        "a>nan", "a>0x10",        "a> 5",           "a>5 %",
		"a>1e999", "a>5%%",        "a>5kb", "a>>5",          "a<>5",
	};
	struct gate g;
	char why[200], longest[200];

	for (u32 i = 0; i < ARRAY_SIZE(texts); i++) {
		if (gate_parse(&g, texts[i], why, sizeof(why)))
			TEST_FAIL("taken: %s", texts[i]);
		else
			EXPECT_CONTAINS(why, "as in 'instructions>+0.1%'");
	}
	memset(longest, 'a', sizeof(longest));
	strcpy(longest + GATE_NAME_MAX, ">1");
	EXPECT(gate_parse(&g, longest, why, sizeof(why)));
	strcpy(longest + GATE_NAME_MAX, "a>1");
	EXPECT(!gate_parse(&g, longest, why, sizeof(why)));
}

static enum gate_result judge(const char *text, double low, double value, double high)
{
	struct gate_change c = {value, low, high};
	struct gate g;
	char why[200];

	EXPECT(gate_parse(&g, text, why, sizeof(why)));
	return gate_judge(&g, &c);
}

TEST(judgement)
{
	EXPECT_EQ(judge("a>5%", 5.1, 6, 7), GATE_BROKEN);
	EXPECT_EQ(judge("a>5%", 5, 6, 7), GATE_INCONCLUSIVE);
	EXPECT_EQ(judge("a>5%", 4, 5, 7), GATE_HELD);
	EXPECT_EQ(judge("a>5", 5, 5, 5), GATE_HELD);
	EXPECT_EQ(judge("a>5", 6, 6, 6), GATE_BROKEN);
	EXPECT_EQ(judge("a>0", 0, 0, 0), GATE_HELD);
	EXPECT_EQ(judge("a<-5%", -7, -6, -5.1), GATE_BROKEN);
	EXPECT_EQ(judge("a<-5%", -7, -6, -5), GATE_INCONCLUSIVE);
	EXPECT_EQ(judge("a<-5%", -7, -5, -4), GATE_HELD);
	EXPECT_EQ(judge("a<-5", 3, 3, 3), GATE_HELD);
}
