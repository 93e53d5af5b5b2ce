/*
 * PURPOSE: what was refused to guests, noted where the command that reports on them finds it
 * (abi/refusal-list.h). A guest gets an errno, as from a kernel, and nobody but that command can
 * tell its user why.
 *
 * Ownership: the session's own account of the list is the session's; the list itself lies in the
 * counter segment, is only written, and is the command's to read when its guests have ended.
 */
#ifndef SESSION_WIRE_REFUSALS_H
#define SESSION_WIRE_REFUSALS_H

#include "abi/refusal-list.h"

struct call;

struct refusals {
	struct meter_refusal *entry; /* METER_REFUSALS; NULL: nothing was refused yet */
};

/* Notes why @call has failed, if the reader is to know of such. Before its refusal is forgotten. */
void refusals_note(struct call *call);
void refusals_release(struct refusals *refusals);

#endif
