/*
 * PURPOSE: decoding the user page of an event [PAGE-01..24]. The counter and clock are handed in,
 * so that it can be tested on made-up pages.
 */
#ifndef LIB_COUNT_SELFPAGE_H
#define LIB_COUNT_SELFPAGE_H

#include <anyperf/read.h>

#include "abi/perf.h"

struct ap__pmc_ops {
	u64 (*read)(u32 index);
	u64 (*clock)(void);
};

/*
 * Reads count and times consistently. True: @v has value, enabled and running as of now. False: the
 * page does not offer the counter (index 0, no capability), or its writer was busy for too long.
 */
bool ap__selfpage_read(const volatile struct perf_event_mmap_page *page,
		       const struct ap__pmc_ops *ops, struct ap_value *v);

#endif
