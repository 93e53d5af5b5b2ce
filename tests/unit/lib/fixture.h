/* PURPOSE: what the library's unit tests share: machines of tests/fixtures/ and parsing on them. */
#ifndef UNIT_LIB_FIXTURE_H
#define UNIT_LIB_FIXTURE_H

#include <anyperf/anyperf.h>

#include "abi/perf.h"
#include "unit/test.h"

/* A machine with tests/fixtures/@name as its root, or this one for NULL. */
static inline struct ap_machine *machine_of(const char *name)
{
	char root[1024];
	struct ap_machine_opts opts = {.size = sizeof(opts), .root = root};
	struct ap_machine *m = NULL;

	snprintf(root, sizeof(root), "%s%s%s", name ? FIXTURES : "", name ? "/" : "",
		 name ? name : "");
	if (ap_machine_new(&m, &opts))
		abort();
	return m;
}

static inline const struct pe_attr *attr_of(const struct ap_spec *s)
{
	return (const struct pe_attr *)s->attr;
}

#endif
