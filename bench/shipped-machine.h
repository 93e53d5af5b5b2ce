/* PURPOSE: machines that are shipped, by name, for the programs that measure their models. */
#ifndef BENCH_SHIPPED_MACHINE_H
#define BENCH_SHIPPED_MACHINE_H

#include <string.h>

#include "base/check.h"
#include "model/machine.h"
#include "model/machines.h"

static inline struct machine machine_of(const char *name)
{
	const struct machine_shipped *s = machines_shipped;
	struct machine_mistake why;
	struct machine m;

	while (s->name && strcmp(s->name, name) != 0)
		s++;
	CHECK(s->name && !machine_parse(&m, s->text, strlen(s->text), &why));
	return m;
}

#endif
