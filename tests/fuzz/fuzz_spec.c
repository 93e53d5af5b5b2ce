/* Event descriptions: any text gives specs that hold together, or an error with a sentence. */
#include "fuzz/fuzz.h"

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct ap_machine_opts opts = {.size = sizeof(opts), .root = FIXTURES "/intel-hybrid"};
	char *text = malloc(len + 1), described[128];
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
		ap_attr_describe(ap_specs_at(s, 0)->attr, m, described, sizeof(described));
		CHECK(described[0]);
		ap_specs_free(s);
	} else {
		CHECK(err.code < 0 && err.why[0]);
		CHECK(memchr(err.why, '\0', sizeof(err.why)));
	}
	ap_machine_free(m);
	free(text);
	return 0;
}
