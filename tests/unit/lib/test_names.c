/* Names of events that are known by their attrs alone. */
#include <linux/hw_breakpoint.h>

#include "lib/spec/names.h"
#include "unit/test.h"

/* As perf 6.1 has them of recordings without names, but for H and G. */
TEST(names_by_attrs)
{
	static const struct {
		struct perf_event_attr attr;
		const char *name;
	} of[] = {
		{{.type = PERF_TYPE_HARDWARE, .config = 0}, "cycles"},
		{{.type = PERF_TYPE_HARDWARE, .config = 0xaull << 32 | 1}, "instructions"},
		{{.type = PERF_TYPE_HARDWARE, .config = 4, .exclude_kernel = 1}, "branches:uh"},
		{{.type = PERF_TYPE_HARDWARE, .config = 7}, "stalled-cycles-frontend"},
		{{.type = PERF_TYPE_HARDWARE, .config = 99}, "event 0x63 of PMU 0"},
		{{.type = PERF_TYPE_SOFTWARE, .config = 2, .exclude_kernel = 1, .exclude_hv = 1},
		 "page-faults:u"},
		{{.type = PERF_TYPE_SOFTWARE, .config = 1, .exclude_user = 1, .exclude_hv = 1},
		 "task-clock:k"},
		{{.type = PERF_TYPE_HW_CACHE, .config = 0x10000}, "L1-dcache-load-misses"},
		{{.type = PERF_TYPE_HW_CACHE, .config = 0xffffff}, "event 0xffffff of PMU 3"},
		{{.type = PERF_TYPE_RAW, .config = 0x1a8, .precise_ip = 2}, "raw 0x1a8:pp"},
		{{.type = PERF_TYPE_RAW, .precise_ip = 3, .exclude_hv = 1}, "raw 0x0:kuppp"},
		{{.type = PERF_TYPE_BREAKPOINT, .bp_addr = 0x1000, .bp_type = HW_BREAKPOINT_RW},
		 "mem:0x1000:rw"},
		{{.type = PERF_TYPE_BREAKPOINT, .bp_addr = ~0ull, .bp_type = HW_BREAKPOINT_X},
		 "mem:0xffffffffffffffff:x"},
		{{.type = PERF_TYPE_TRACEPOINT, .config = 314}, "tracepoint 314"},
		{{.type = 9, .config = 3}, "event 0x3 of PMU 9"},
	};
	char name[80];

	for (size_t i = 0; i < ARRAY_SIZE(of); i++) {
		ap__attr_name(&of[i].attr, name, sizeof(name));
		EXPECT_STREQ(name, of[i].name);
	}
}
