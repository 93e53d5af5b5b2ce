/*
 * PURPOSE: the inside of a reader: reader.c takes records, reader-meta.c learns events and features
 * from headers, sections and records.
 */
#ifndef DATA_READER_PRIV_H
#define DATA_READER_PRIV_H

#include "data/reader.h"

/* An id that records carry, and whose it is. */
struct data_id {
	u64 id;
	u32 event;
};

/* What a reader knows of its file. */
struct data_meta {
	struct data_event *events; /* owned */
	struct ap_layout *layouts; /* owned */
	u32 nr_events;
	struct data_id *ids; /* sorted by id unless `unsorted`; owned */
	u32 nr_ids;
	bool unsorted;
	bool alike; /* all events have one layout */
	struct data_features features;
};

/* So many events and ids are believed: perf's largest machines have thousands of CPUs. */
#define DATA_MAX_EVENTS 65536
#define DATA_MAX_IDS    (1 << 22)

void data_meta_release(struct data_meta *m);

/*
 * Adds an event: @len bytes of an attr, and @nr ids. -EBADMSG: it is none, -ENOMEM.
 */
int data_meta_add_event(struct data_meta *m, const void *attr, size_t len, const void *ids,
			size_t nr);

/* Reads the header of a file and the sections that it names. -errno with the reason. */
int data_meta_read_header(struct data_meta *m, struct data_header *h, int fd, u64 file_size,
			  const char *name, struct ap_error *err);

/* Learns from a record: HEADER_ATTR, HEADER_FEATURE, EVENT_UPDATE, HEADER_BUILD_ID. */
void data_meta_take_record(struct data_meta *m, const struct perf_event_header *h);

/* Once a section or record has brought EVENT_DESC, GROUP_DESC. */
void data_meta_take_feature(struct data_meta *m, u64 feature);

/* The event with this id, or -1. */
int data_meta_event_of(struct data_meta *m, u64 id);

#endif
