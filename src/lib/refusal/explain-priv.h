/* PURPOSE: the parts of explain.c that have files of their own. */
#ifndef LIB_REFUSAL_EXPLAIN_PRIV_H
#define LIB_REFUSAL_EXPLAIN_PRIV_H

#include "lib/refusal/explain.h"
#include "lib/refusal/fail.h"

/* The refusal of @ask with the errno @e; see ap__refuse(). */
#define refuse(ask, e, err, id, ...) ap__refuse(err, -(e), (ask)->name, id, __VA_ARGS__)

/* EINVAL: finds the field by the kernel's own checks in their order. Returns -EINVAL. */
int ap__explain_einval(const struct ap__ask *ask, const struct ap__state *st, struct ap_error *err);

/* The name of the first field of @attr at or beyond byte @size that is not zero. */
const char *ap__attr_field_beyond(const struct pe_attr *attr, u32 size);

#endif
