/* Why a call failed: one sentence, kept beside the errno until the next call. */
#include "core/core-priv.h"

#include <stdarg.h>
#include <stdio.h>

void reason_clear(struct core *core)
{
	core->reason[0] = '\0';
}

const char *core_reason(const struct core *core)
{
	return core->reason;
}

int core_refuse(struct core *core, int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(core->reason, sizeof(core->reason), fmt, ap);
	va_end(ap);
	return err;
}

int core_refuse_default(struct core *core, int err, const char *fmt, ...)
{
	va_list ap;

	if (core->reason[0])
		return err;
	va_start(ap, fmt);
	vsnprintf(core->reason, sizeof(core->reason), fmt, ap);
	va_end(ap);
	return err;
}

int pmu_refuse(struct core *core, int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(core->reason, sizeof(core->reason), fmt, ap);
	va_end(ap);
	return err;
}
