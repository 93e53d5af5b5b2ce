/*
 * PURPOSE: filling in struct ap_error. Every function of the library that can refuse something ends
 * in `return ap__fail(err, -EINVAL, AP_CAUSE_X, "what and why")`, followed, where there is one, by
 * ap__remedy(). Both accept a NULL @err, so callers need not look.
 */
#ifndef LIB_FAIL_H
#define LIB_FAIL_H

#include <anyperf/error.h>

#include "base/types.h"

/* Fills in all of @err with no remedy; text that does not fit is cut. Returns @code. */
int ap__fail(struct ap_error *err, int code, enum ap_cause cause, const char *fmt, ...)
	printf_like(4, 5);

/* Sets the remedy of an @err that ap__fail() has just filled in. Returns its code (0 for NULL). */
int ap__remedy(struct ap_error *err, const char *fmt, ...) printf_like(2, 3);

/* Appends to the why of @err. */
void ap__add_why(struct ap_error *err, const char *fmt, ...) printf_like(2, 3);

/* -ENOMEM with its sentence. */
int ap__fail_memory(struct ap_error *err);

#endif
