/*
 * Event descriptions: any text gives specs that hold together, or an error with a sentence. The
 * parser itself holds that each item of a list gives an event or a reason.
 */
#include "fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <anyperf/anyperf.h>

#include "base/check.h"

const char *const fuzz_samples[] = {
	"cycles,instructions:u,cs",
	"{cycles,instructions}:W,{cs,faults}:u",
	"cpu_core/event=0x3c,umask=1,name='a b'/uppp",
	"cpu_atom/mem-loads,ldlat=30/",
	"uncore_imc_*/cas_count_read/,energy-pkg",
	"imc/clockticks,period=100/",
	"sched:sched_*,syscalls:sys_enter_open*:k",
	"mem:0x601040/8:rw:u",
	"kprobe:do_sys_open+8:k",
	"uretprobe:/bin/true:main+0x10",
	"uprobe:/proc/self/exe:LLVMFuzzerTestOneInput",
	"L1-dcache-load-misses,LLC-stores-miss,branch-loads",
	"r1a8,r0xffff,1:3,4294967295:0x10",
	"cpu_core/branch_type=any|u,call-graph=fp,max-stack=3,percore/",
	"cs:,instructions:u,cycles:ppp,page-faults:ukhGHIDeWSb",
	"{cs:,{r1a8:u},1:2:}:k,armv8_pmuv3/config=1/u",
	"energy-pkg:,cpu_core/mem-loads/:,sched:sched_switch:",
	"page-faults/name=foo/,cs//u,instructions/period=5/k",
	NULL,
};

const char *const fuzz_words[] = {
	",",
	"{",
	"}",
	"/",
	":",
	"=",
	"+",
	"*",
	"?",
	"[",
	"]",
	"'",
	"\"",
	" ",
	"0x",
	"-1",
	":u",
	":p",
	":u:k",
	":S,cs",
	"cs:",
	"instructions",
	"/u",
	"//",
	"/:",
	"}:",
	"..",
	"cpu_core/",
	"event=",
	"config1=",
	"18446744073709551615",
	"name=",
	"freq=",
	"sched:",
	"mem:",
	"uprobe:",
	"::",
	"cycles",
	"threshold=",
	"%s%n",
	"\xff",
	NULL,
};

static void check(struct ap_specs *s)
{
	unsigned int group = 0, left = 0;

	CHECK(ap_specs_count(s) > 0);
	for (unsigned int i = 0; i < ap_specs_count(s); i++) {
		const struct ap_spec *spec = ap_specs_at(s, i);

		CHECK(spec && spec->attr && spec->name && spec->name[0] && spec->pmu && spec->unit);
		CHECK(spec->attr->size >= 64);
		if (!left) {
			CHECK(spec->flags & AP_SPEC_LEADER);
			CHECK(spec->members >= 1);
			CHECK(i == 0 || spec->group == group + 1);
			left = spec->members;
			group = spec->group;
		} else {
			CHECK(!(spec->flags & AP_SPEC_LEADER) && spec->members == 0);
			CHECK(spec->group == group);
			CHECK(!spec->attr->pinned && !spec->attr->exclusive);
		}
		left--;
		CHECK(!spec->uncore || spec->cpus);
	}
	CHECK(left == 0);
	CHECK(ap_specs_at(s, ap_specs_count(s)) == NULL);
}

/* @text behind another event, and before one, gives what it gives alone and that event. */
static void check_lists(struct ap_machine *m, const char *text, unsigned int n)
{
	size_t room = strlen(text) + sizeof("cs,");
	char *list = malloc(room);

	CHECK(list);
	for (int before = 0; before < 2; before++) {
		struct ap_specs *s;

		snprintf(list, room, before ? "cs,%s" : "%s,cs", text);
		CHECK(ap_specs_parse(&s, m, list, NULL) == 0);
		CHECK(ap_specs_count(s) == n + 1);
		CHECK(ap_specs_at(s, before ? 0 : n)->attr->type == PERF_TYPE_SOFTWARE);
		ap_specs_free(s);
	}
	free(list);
}

/* What an attr is called can be asked for. */
static void check_described(struct ap_machine *m, const struct perf_event_attr *attr)
{
	char described[128];
	struct ap_specs *s;

	ap_attr_describe(attr, m, described, sizeof(described));
	CHECK(described[0]);
	CHECK(ap_specs_parse(&s, m, described, NULL) == 0);
	ap_specs_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct ap_machine_opts opts = {.size = sizeof(opts), .root = FIXTURES "/intel-hybrid"};
	char *text = malloc(len + 1);
	struct ap_specs *again = NULL;
	struct ap_machine *m;
	struct ap_specs *s;
	struct ap_error err;

	CHECK(text);
	memcpy(text, data, len);
	text[len] = '\0';
	memset(&err, 0, sizeof(err));
	CHECK(ap_machine_new(&m, &opts) == 0);
	if (ap_specs_parse(&s, m, text, &err) == 0) {
		check(s);
		check_lists(m, text, ap_specs_count(s));
		check_described(m, ap_specs_at(s, 0)->attr);
		ap_specs_free(s);
	} else {
		CHECK(err.code < 0 && err.why[0]);
		CHECK(memchr(err.why, '\0', sizeof(err.why)));
		CHECK(ap_specs_parse(&again, m, text, NULL) == err.code && !again);
	}
	ap_machine_free(m);
	free(text);
	return 0;
}
