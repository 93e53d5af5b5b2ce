/* JSON texts: what they say, and what is none. */
#include "cli/json-reader.h"
#include "unit/test.h"

static int parse(struct json_text *t, const char *text, char *why)
{
	return json_read(t, text, strlen(text), why, 100);
}

TEST(members_and_values)
{
	struct json_text t;
	const struct json_value *list, *v;
	char why[100];
	u64 n;

	ASSERT(!parse(&t,
		      " {\"a\": 18446744073709551615, \"b\":[true,null,-1.5e3],\n"
		      "\"c\" : \"\\u00e9\\ud83d\\ude00\\n\\\"x/\\/\", \"d\": {}}\n",
		      why));
	EXPECT(json_member_u64(&t, t.values, "a", &n));
	EXPECT_EQ(n, UINT64_MAX);
	EXPECT(!json_member_u64(&t, t.values, "b", &n));
	EXPECT_STREQ(json_member_text(&t, t.values, "c"), "\xc3\xa9\xf0\x9f\x98\x80\n\"x//");
	EXPECT(!json_member_text(&t, t.values, "a") && !json_member_text(&t, t.values, "z"));
	list = json_member(&t, t.values, "b", JSON_ARRAY);
	v = json_first(&t, list);
	EXPECT(v && v->kind == JSON_TRUE && !v->key);
	v = json_next(&t, v);
	EXPECT(v && v->kind == JSON_NULL);
	v = json_next(&t, v);
	EXPECT(v && v->kind == JSON_NUMBER && !json_next(&t, v));
	EXPECT_STREQ(v->text, "-1.5e3");
	EXPECT(!json_first(&t, json_member(&t, t.values, "d", JSON_OBJECT)));
	EXPECT(!json_member(&t, list, "a", JSON_NUMBER) && !json_member(&t, NULL, "a", JSON_NULL));
	json_release(&t);
}

TEST(numbers_that_do_not_fit)
{
	struct json_text t;
	char why[100];
	u64 n;

	ASSERT(!parse(&t, "{\"a\":18446744073709551616,\"b\":-1,\"c\":1.5}", why));
	EXPECT(!json_member_u64(&t, t.values, "a", &n));
	EXPECT(!json_member_u64(&t, t.values, "b", &n));
	EXPECT(!json_member_u64(&t, t.values, "c", &n));
	json_release(&t);
}

TEST(what_is_none)
{
	static const char *const texts[] = {
		"",         "{",         "[1,]",        "{\"a\":1,}",  "{\"a\" 1}",
		"{a:1}",    "[1 2]",     "01",          "1.",          "1e",
		"-",        "+1",        "nul",         "[tru]",       "\"abc",
		"\"\\x\"",  "\"\\u12\"", "\"\\ud800\"", "\"\\udc00\"", "\"\\u0000\"",
		"\"a\nb\"", "1 2",       "]",
	};
	struct json_text t;
	char why[100], deep[80];

	for (u32 i = 0; i < ARRAY_SIZE(texts); i++) {
		if (parse(&t, texts[i], why) == 0)
			TEST_FAIL("taken: %s", texts[i]);
		EXPECT_CONTAINS(why, "line ");
	}
	EXPECT(parse(&t, "{\n\"a\":\n!}", why) < 0);
	EXPECT_STREQ(why, "line 3 has something that is no value");
	memset(deep, '[', 33);
	memset(deep + 33, ']', 33);
	deep[66] = 0;
	EXPECT(parse(&t, deep + 1, why) < 0); /* one more is opened than closed */
	deep[65] = 0;
	EXPECT(!parse(&t, deep + 1, why));
	json_release(&t);
	memset(deep, '[', 40);
	EXPECT(parse(&t, deep, why) < 0);
	EXPECT_CONTAINS(why, "more than 32 lists");
}
