/*
 * PURPOSE: the layouts themselves, each described once for the codec. describe-sample.c has the
 * SAMPLE, describe-other.c the records of all other types; coding.c puts the header and the trailer
 * around them.
 */
#ifndef RECORD_DESCRIBE_H
#define RECORD_DESCRIBE_H

#include <anyperf/record.h>

#include "record/codec.h"

/*
 * What is between the header and the end of a SAMPLE; @rec->id is part of it. An empty branch stack
 * and none at all cannot be told apart where they stand: @no_branches says what decoding should
 * take one for.
 */
void ap__describe_sample(struct codec *c, struct ap_record *rec, const struct ap_layout *layout,
			 bool no_branches);

/* What is between the header and the trailer of any other record; nothing for an unknown type. */
void ap__describe_other(struct codec *c, struct ap_record *rec, const struct ap_layout *layout);

/* A read block, as in SAMPLE and READ. */
void ap__describe_read(struct codec *c, struct ap_read_block *read, u64 read_format);

/* A number, and so many addresses. */
void ap__describe_callchain(struct codec *c, struct ap_callchain *chain);

#endif
