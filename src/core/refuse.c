/* Why the last call failed, kept beside the errno until the next call. */
#include "core/core-priv.h"

void core_refusal_clear(struct core *core)
{
	core->refusal.cause = CAUSE_NONE;
}

const struct refusal *core_refusal(const struct core *core)
{
	return &core->refusal;
}

int core_note_refusal(struct core *core, int err, enum refusal_cause cause,
		      const struct refusal_args *args)
{
	return refusal_set(&core->refusal, err, cause, args);
}

int core_note_default(struct core *core, int err, enum refusal_cause cause,
		      const struct refusal_args *args)
{
	if (core->refusal.cause != CAUSE_NONE)
		return err;
	return refusal_set(&core->refusal, err, cause, args);
}
