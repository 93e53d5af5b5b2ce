/* Numbers, JSON, and derived values: what is printed of a count. */
#include <stdlib.h>
#include <string.h>

#include "cli/json.h"
#include "cli/modeled-events.h"
#include "cli/number.h"
#include "cli/report/metric.h"
#include "unit/test.h"

static const struct number_style western = {",", ".", 1, {3, 0}};
static const struct number_style indian = {",", ".", 1, {3, 2, 0}};

static const char *text(const struct number_style *style, double value, int decimals, int width)
{
	static char buf[64];

	return number_text(style, value, decimals, width, buf, sizeof(buf));
}

TEST(numbers)
{
	EXPECT_STREQ(text(&western, 0, 0, 0), "0");
	EXPECT_STREQ(text(&western, 999, 0, 0), "999");
	EXPECT_STREQ(text(&western, 1000, 0, 0), "1,000");
	EXPECT_STREQ(text(&western, 76675414, 0, 18), "        76,675,414");
	EXPECT_STREQ(text(&western, 1234567.891, 2, 0), "1,234,567.89");
	EXPECT_STREQ(text(&western, -1234, 0, 8), "  -1,234");
	EXPECT_STREQ(text(&indian, 123456789, 0, 0), "12,34,56,789");
	EXPECT_STREQ(text(&number_plain, 76675414, 0, 10), "  76675414");
	EXPECT_STREQ(text(&western, 18446744073709551615.0, 0, 0), "18,446,744,073,709,551,616");
}

/* A separator of three bytes is one column wide. */
TEST(wide_separators)
{
	static const struct number_style french = {"\342\200\257", ",", 1, {3, 0}};

	EXPECT_STREQ(text(&french, 1234.5, 1, 9), "  1\342\200\257234,5");
}

TEST(locale_of_the_environment)
{
	struct number_style style;

	setenv("LC_ALL", "C", 1);
	number_style_init(&style);
	EXPECT_STREQ(style.separator, "");
	setenv("LC_ALL", "no_SUCH", 1);
	number_style_init(&style);
	EXPECT_STREQ(style.separator, "");
	EXPECT_STREQ(style.point, ".");
}

TEST(plus_minus_where_it_can_be_shown)
{
	static const struct {
		const char *locale, *sign;
	} cases[] = {
		{"C", "+-"},
		{"POSIX", "+-"},
		{"no_SUCH.UTF-8", "+-"},
		{"C.UTF-8", "±"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		setenv("LC_ALL", cases[i].locale, 1);
		EXPECT_STREQ(number_plus_minus(), cases[i].sign);
	}
	setenv("LC_ALL", "C", 1);
}

TEST(json)
{
	char *out = NULL;
	size_t len;
	FILE *f = open_memstream(&out, &len);
	struct json j;

	ASSERT(f);
	json_begin(&j, f);
	json_object(&j, NULL);
	json_str(&j, "a\"\\\n\1", "\303\244\xff\xed\xa0\x80");
	json_str(&j, "none", NULL);
	json_array(&j, "list");
	json_u64(&j, NULL, UINT64_MAX);
	json_s64(&j, NULL, -1);
	json_double(&j, NULL, 0.5, 3);
	json_double(&j, NULL, __builtin_nan(""), 3);
	json_object(&j, NULL);
	json_end(&j);
	json_end(&j);
	json_bool(&j, "yes", true);
	json_end(&j);
	json_finish(&j);
	fclose(f);
	EXPECT_STREQ(out, "{\"a\\\"\\\\\\n\\u0001\": \"\303\244\\ufffd\\ufffd\\ufffd\\ufffd\", "
			  "\"none\": null, \"list\": [18446744073709551615, -1, 0.500, null, {}], "
			  "\"yes\": true}\n");
	free(out);
}

TEST(series)
{
	struct series s = {0};

	series_add(&s, 10);
	EXPECT(series_error(&s) == 0);
	series_add(&s, 14);
	/* Standard deviation 2.828, of the mean of two 2.0. */
	EXPECT(s.mean == 12 && series_error(&s) > 1.999 && series_error(&s) < 2.001);
	EXPECT(series_error_percent(&s) > 16.66 && series_error_percent(&s) < 16.67);
}

/* A report of one unit whose events have the given kinds and counts. */
static void fill(struct report *r, struct report_event *events, const u64 *counts, u32 nr)
{
	static const struct report_unit whole;

	report_init(r, AGGR_GLOBAL, events, nr);
	report_find_unit(r, &whole);
	for (u32 i = 0; i < nr; i++) {
		struct ap_value v = {.value = counts[i], .enabled = 100, .running = 100};

		events[i].unit = "";
		events[i].scale = 1;
		report_add(r, i, 0, AP_STATUS_OK, &v, true);
	}
	series_add(&r->elapsed, 2.0);
	r->runs = 1;
}

TEST(metrics)
{
	struct report_event events[] = {
		{.kind = KIND_CPU_TIME},      {.kind = KIND_CYCLES},
		{.kind = KIND_INSTRUCTIONS},  {.kind = KIND_BRANCHES},
		{.kind = KIND_BRANCH_MISSES}, {.kind = KIND_OTHER},
		{.kind = KIND_STALLED_FRONT}, {.kind = KIND_INSTRUCTIONS, .modes = 2},
	};
	static const u64 counts[] = {1000000000, 3000000000, 6000000000, 1000000,
				     250000,     1500,       1500000000, 7};
	struct report_metric m[METRICS_MAX];
	struct report r;

	fill(&r, events, counts, ARRAY_SIZE(events));
	EXPECT_EQ(report_metrics(&r, 0, 0, m), 1);
	EXPECT_STREQ(m[0].unit, "CPUs utilized");
	EXPECT(m[0].value == 0.5);
	EXPECT_EQ(report_metrics(&r, 1, 0, m), 1);
	EXPECT_STREQ(m[0].unit, "GHz");
	EXPECT(m[0].value == 3);
	EXPECT_EQ(report_metrics(&r, 2, 0, m), 2);
	EXPECT_STREQ(m[0].unit, "insn per cycle");
	EXPECT(m[0].value == 2);
	EXPECT_STREQ(m[1].unit, "stalled cycles per insn");
	EXPECT(m[1].value == 0.25);
	EXPECT_EQ(report_metrics(&r, 3, 0, m), 1);
	EXPECT_STREQ(m[0].unit, "M/sec");
	EXPECT(m[0].value == 1);
	EXPECT_EQ(report_metrics(&r, 4, 0, m), 1);
	EXPECT_STREQ(m[0].unit, "of all branches");
	EXPECT(m[0].value == 25 && m[0].level == LEVEL_BAD);
	EXPECT_EQ(report_metrics(&r, 5, 0, m), 1);
	EXPECT_STREQ(m[0].unit, "K/sec");
	EXPECT(m[0].value == 1.5);
	EXPECT_EQ(report_metrics(&r, 6, 0, m), 1);
	EXPECT_STREQ(m[0].unit, "frontend cycles idle");
	/* Instructions of one mode are not divided by cycles of another. */
	EXPECT_EQ(report_metrics(&r, 7, 0, m), 1);
	EXPECT_STREQ(m[0].unit, "/sec");
	report_release(&r);
}

TEST(scaling_and_status)
{
	static const struct report_unit whole;
	struct report_event event = {.name = "x", .unit = "", .scale = 1};
	struct ap_value never = {.value = 5, .enabled = 10};
	struct ap_value half = {.value = 5, .enabled = 10, .running = 5};
	struct report r;

	report_init(&r, AGGR_GLOBAL, &event, 1);
	report_find_unit(&r, &whole);
	report_add(&r, 0, 0, AP_STATUS_OK, &never, true);
	EXPECT_EQ(report_at(&r, 0, 0)->status, AP_STATUS_NOT_COUNTED);
	/* One run of several that counted is enough. */
	report_add(&r, 0, 0, AP_STATUS_OK, &half, true);
	EXPECT_EQ(report_at(&r, 0, 0)->status, AP_STATUS_OK);
	EXPECT(report_value(&r, 0, 0) == 10);
	EXPECT(report_percent(report_at(&r, 0, 0)) == 50);
	report_release(&r);

	report_init(&r, AGGR_GLOBAL, &event, 1);
	report_find_unit(&r, &whole);
	report_add(&r, 0, 0, AP_STATUS_OK, &half, false);
	EXPECT(report_value(&r, 0, 0) == 5);
	report_release(&r);
}

static char *printed(const struct report *r, struct report_style style,
		     void (*print)(const struct report *r, const struct report_style *style))
{
	char *out = NULL;
	size_t len;

	style.out = open_memstream(&out, &len);
	if (!style.out)
		return NULL;
	print(r, &style);
	fclose(style.out);
	return out;
}

/* One heading for all: a unit that did not run has its columns too. */
TEST(metric_only)
{
	struct report_event events[] = {
		{.name = "task-clock", .unit = "msec", .scale = 1e-6, .kind = KIND_CPU_TIME},
		{.name = "cycles", .unit = "", .scale = 1, .kind = KIND_CYCLES},
		{.name = "instructions", .unit = "", .scale = 1, .kind = KIND_INSTRUCTIONS},
		{.name = "branches", .unit = "", .scale = 1, .kind = KIND_BRANCHES},
		{.name = "branch-misses", .unit = "", .scale = 1, .kind = KIND_BRANCH_MISSES},
	};
	static const u64 counts[] = {1000, 3000, 6000, 200, 50};
	struct ap_value none = {.value = 0};
	struct report_unit cpu = {.cpu = 0};
	struct report_style style = {.metric_only = true,
				     .separator = ";",
				     .numbers = {"", ",", 0, {0}},
				     .pmu = "kernel",
				     .pmu_why = ""};
	struct report r;
	char *out;

	report_init(&r, AGGR_CPU, events, ARRAY_SIZE(events));
	r.part = PART_INTERVAL;
	r.at = 1.5;
	series_add(&r.elapsed, 2e-6);
	for (; cpu.cpu < 2; cpu.cpu++) {
		u32 unit = report_find_unit(&r, &cpu);

		for (u32 e = 0; e < ARRAY_SIZE(events); e++) {
			struct ap_value v = {.value = counts[e], .enabled = 100, .running = 100};

			report_add(&r, e, unit, AP_STATUS_OK, cpu.cpu ? &none : &v, true);
		}
	}
	out = printed(&r, style, report_print_csv);
	EXPECT_STREQ(out, "time;cpu;GHz;insn per cycle;branch-misses of all branches;\n"
			  "     1.500000000;CPU0;3.000;2.00;25.00;\n"
			  "     1.500000000;CPU1;;;;\n");
	free(out);
	out = printed(&r, style, report_print_text);
	EXPECT_STREQ(out, "#           time                              GHz       insn per cycle "
			  "branch-misses of all branches\n"
			  "     1,500000000 CPU0                       3,000                 2,00 "
			  "                       25,00%\n"
			  "     1,500000000 CPU1                           -                    - "
			  "                            -\n");
	free(out);
	/* A later interval has the same columns and no heading. */
	style.brief_head = true;
	out = printed(&r, style, report_print_csv);
	EXPECT(out[0] == ' ');
	free(out);
	out = printed(&r, style, report_print_json);
	EXPECT(strstr(out, "\"insn per cycle\"") && strstr(out, "\"% of all branches\""));
	EXPECT(!strstr(out, "/sec") && !strstr(out, "CPUs utilized") && !strstr(out, "\"count\":"));
	EXPECT(!strstr(out, "task-clock") && strstr(out, "\"cycles\""));
	free(out);
	report_release(&r);
}

/* Nobody who reads a number shall take that of some CPUs for that of all. */
TEST(counts_of_a_part)
{
	struct report_event events[] = {
		{.name = "cs", .unit = "", .scale = 1, .refused = true},
		{.name = "task-clock", .unit = "msec", .scale = 1e-6, .kind = KIND_CPU_TIME},
	};
	struct ap_value v = {.value = 4242, .enabled = 100, .running = 100};
	struct ap_value clock = {.value = 77, .enabled = 100, .running = 100};
	struct report_style style = {
		.numbers = {"", ".", 0, {0}}, .pmu = "kernel", .pmu_why = "", .width = 100};
	struct report_unit whole = {.cpus = 3};
	struct report r;
	char *out;

	snprintf(events[0].error.why, sizeof(events[0].error.why), "cs: it is so");
	events[0].error.about = 4;
	report_init(&r, AGGR_GLOBAL, events, ARRAY_SIZE(events));
	r.target = "'true'";
	r.places = "CPUs";
	r.apart = "-A";
	report_find_unit(&r, &whole);
	report_add(&r, 0, 0, AP_STATUS_PARTIAL, &v, true);
	report_add(&r, 1, 0, AP_STATUS_OK, &clock, true);
	report_at(&r, 0, 0)->opened = 2;
	report_at(&r, 0, 0)->places = 3;
	out = printed(&r, style, report_print_text);
	EXPECT_CONTAINS(out, "\n         <partial>      cs                               "
			     "# 2 of 3 CPUs\n");
	EXPECT_CONTAINS(out, "\n cs: it is so; -A shows the CPUs that were counted\n");
	EXPECT(!strstr(out, "4242"));
	free(out);
	style.separator = ";";
	out = printed(&r, style, report_print_csv);
	EXPECT(!strncmp(out, "<partial>;;cs;0;100.00;;2 of 3 CPUs\n", 36));
	free(out);
	out = printed(&r, style, report_print_json);
	EXPECT_CONTAINS(out, "\"event\": \"cs\", \"status\": \"partial\", \"places\": 3, "
			     "\"opened_places\": 2, \"metrics\": []");
	EXPECT(!strstr(out, "4242"));
	free(out);
	/* A run in which it was opened everywhere has the whole count. */
	report_add(&r, 0, 0, AP_STATUS_OK, &v, true);
	EXPECT_EQ(report_at(&r, 0, 0)->status, AP_STATUS_OK);
	EXPECT(report_value(&r, 0, 0) == 4242);
	report_release(&r);
}

/* Whose model has counted what is said wherever there is a place for it, and no frequency of it. */
TEST(modeled_events)
{
	struct report_event events[] = {
		{.name = "task-clock", .unit = "msec", .scale = 1e-6, .kind = KIND_CPU_TIME},
		{.name = "cycles:u", .unit = "", .scale = 1, .kind = KIND_CYCLES, .modeled = true},
		{.name = "instructions:u", .unit = "", .scale = 1, .kind = KIND_INSTRUCTIONS},
		{.name = "bus-cycles:u", .unit = "", .scale = 1, .modeled = true, .refused = true},
	};
	static const u64 counts[] = {1000000, 3000, 6000, 0};
	struct report_style style = {.numbers = {"", ".", 0, {0}},
				     .pmu = "virtual",
				     .pmu_why = "",
				     .machine = "toy",
				     .width = 100};
	struct report r;
	char *out;

	report_init(&r, AGGR_GLOBAL, events, ARRAY_SIZE(events));
	r.target = "'true'";
	r.translated = true;
	report_find_unit(&r, &(struct report_unit){.cpu = -1});
	for (u32 e = 0; e < ARRAY_SIZE(events); e++) {
		struct ap_value v = {.value = counts[e], .enabled = 100, .running = 100};

		report_add(&r, e, 0, events[e].refused ? AP_STATUS_NOT_SUPPORTED : AP_STATUS_OK, &v,
			   true);
	}
	EXPECT(modeled_any(&r));
	out = printed(&r, style, report_print_text);
	EXPECT_CONTAINS(out, "\n (modeled: toy: cycles:u)\n");
	EXPECT_CONTAINS(out, "2.00  insn per cycle");
	EXPECT(!strstr(out, "GHz"));
	free(out);
	style.hint = "More if asked.";
	out = printed(&r, style, report_print_text);
	EXPECT_CONTAINS(out, "\n More if asked.\n");
	free(out);
	out = printed(&r, style, report_print_json);
	EXPECT_CONTAINS(out, "\"machine\": \"toy\"");
	EXPECT_CONTAINS(out, "\"event\": \"cycles:u\", \"modeled\": true,");
	EXPECT(!strstr(out, "\"instructions:u\", \"modeled\""));
	free(out);
	events[1].modeled = false;
	EXPECT(!modeled_any(&r));
	report_release(&r);
}

TEST(what_is_modeled)
{
	static const struct {
		u32 type;
		u64 config;
		bool modeled;
	} rows[] = {
		{PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, true},
		{PERF_TYPE_HARDWARE, 4ull << 32 | PERF_COUNT_HW_BRANCH_MISSES, true},
		{PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, false},
		{PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS, false},
		{PERF_TYPE_HW_CACHE, 0x10000, true},
		{PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, false},
		{PERF_TYPE_RAW, 0x5301c4, false},
		{PERF_TYPE_RAW, 0x100, false},
		{PERF_TYPE_RAW, 0x3c, true},
		{PERF_TYPE_RAW, 0xd1, false},
		{PERF_TYPE_RAW, 0x8d1, true},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct perf_event_attr attr = {.type = rows[i].type, .config = rows[i].config};

		EXPECT_EQ(modeled_event(&attr), rows[i].modeled);
	}
}

TEST(units)
{
	struct report_event events[2] = {{.name = "a", .unit = "", .scale = 1},
					 {.name = "b", .unit = "", .scale = 1}};
	struct report_unit core0 = {.socket = 0, .die = 0, .core = 0, .cpu = 0};
	struct report_unit twin = {.socket = 0, .die = 0, .core = 0, .cpu = 4};
	struct report_unit core1 = {.socket = 0, .die = 0, .core = 1, .cpu = 1};
	struct ap_value v = {.value = 7, .enabled = 1, .running = 1};
	struct report r;

	report_init(&r, AGGR_CORE, events, 2);
	EXPECT_EQ(report_find_unit(&r, &core0), 0);
	report_add(&r, 1, 0, AP_STATUS_OK, &v, true);
	EXPECT_EQ(report_find_unit(&r, &twin), 0);
	EXPECT_EQ(report_find_unit(&r, &core1), 1);
	/* What was there has kept its place in the wider table. */
	EXPECT(report_value(&r, 1, 0) == 7);
	EXPECT(!report_at(&r, 1, 1)->present);
	report_release(&r);

	report_init(&r, AGGR_THREAD, events, 2);
	for (int tid = 0; tid < 1000; tid++) {
		struct report_unit thread = {.tid = tid};

		v.value = (u64)tid;
		EXPECT_EQ(report_find_unit(&r, &thread), tid);
		report_add(&r, tid & 1, (u32)tid, AP_STATUS_OK, &v, true);
	}
	for (u32 u = 0; u < 1000; u++) {
		EXPECT(report_value(&r, u & 1, u) == u);
		EXPECT(!report_at(&r, !(u & 1), u)->present);
	}
	report_release(&r);
}
