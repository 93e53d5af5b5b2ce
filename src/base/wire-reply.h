/*
 * PURPOSE: taking a session's reply out of a call slot (abi/wire.h). Both who ask do it so: the
 * runtime in a guest, and the library. A slot is memory that the other side can write to at any
 * time: what a reply says is read once, checked, and looked at in a copy from then on.
 *
 * A reply is believed as far as it concerns the caller's own event. Lengths, places, indexes and
 * numbers of errors that no session sends make it none.
 */
#ifndef BASE_WIRE_REPLY_H
#define BASE_WIRE_REPLY_H

#include "abi/wire.h"

struct wire_reply {
	s64 ret;
	u32 flags; /* enum wire_reply_flags */
	u32 len;   /* bytes of data, which stand in the slot: at most WIRE_DATA */
	union wire_result result;
};

/*
 * The reply in @slot, whose word is WIRE_DONE, to @op. @asked: of READ how many bytes were wanted,
 * of IOCTL the command. False: a session sends no such thing; @reply is -EPROTO then and nothing
 * else.
 */
bool wire_reply_take(struct wire_reply *reply, const struct wire_slot *slot, u32 op, u64 asked);

#endif
