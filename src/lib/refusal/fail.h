/*
 * PURPOSE: filling in struct ap_error. What is refused of an event ends in `return ap__refuse(err,
 * -EINVAL, NAME, CPU_RANGE, .number = {cpu})`: the cause is a row of base/cause-table.h, which has
 * the sentence. What is wrong with a text or a name that was given ends in `return ap__fail(err,
 * -EINVAL, AP_CAUSE_SYNTAX, "what and why")`, followed, where there is one, by ap__remedy(). All
 * accept a NULL @err, so callers need not look.
 */
#ifndef LIB_REFUSAL_FAIL_H
#define LIB_REFUSAL_FAIL_H

#include <errno.h>
#include <stdbool.h>

#include <anyperf/error.h>

#include "base/refusal.h"
#include "base/types.h"

/* Fills in all of @err from @r, which is about @event, a name. Returns its errno. */
int ap__tell(struct ap_error *err, const char *event, const struct refusal *r);

/* The same for a refusal that is made on the spot: the cause without its CAUSE_. Returns @code. */
int ap__refuse_as(struct ap_error *err, int code, const char *event, enum refusal_cause cause,
		  const struct refusal_args *args);
#define ap__refuse(err, code, event, id, ...) \
	ap__refuse_as(err, code, event, CAUSE_##id, &(const struct refusal_args){__VA_ARGS__})

/* Fills in all of @err with no remedy; text that does not fit is cut. Returns @code. */
int ap__fail(struct ap_error *err, int code, enum ap_cause cause, const char *fmt, ...)
	printf_like(4, 5);

/* Sets the remedy of an @err that ap__fail() has just filled in. Returns @code, which is its. */
int ap__remedy(struct ap_error *err, int code, const char *fmt, ...) printf_like(3, 4);

/* Appends to the why of @err. */
void ap__add_why(struct ap_error *err, const char *fmt, ...) printf_like(2, 3);

/*
 * 0, or -EINVAL if @flags has more than @known: a caller made for a later library, or mistaken,
 * would believe that he got what he asked for. @field names them.
 */
int ap__flags_known(struct ap_error *err, const char *field, unsigned int flags,
		    unsigned int known);

/* Is @code of something that was not found out, as descriptors or memory are out? */
static inline bool ap__is_shortage(int code)
{
	return code == -EMFILE || code == -ENFILE || code == -ENOMEM;
}

/* That @path could not be read, by -errno @code, which is returned. @cause: of no shortage. */
int ap__fail_unread(struct ap_error *err, int code, enum ap_cause cause, const char *path);

/* -ENOMEM with its sentence. */
int ap__fail_memory(struct ap_error *err);

#endif
