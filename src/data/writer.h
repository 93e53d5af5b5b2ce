/*
 * PURPOSE: writing a perf.data file, or the same as a stream for a pipe.
 *
 *   data_writer_open(&w, fd, &opts, &err);
 *   data_writer_start(w, events, n, &features, &err);
 *   data_writer_append(w, bytes, len, &err);          as often as there are records
 *   data_writer_round(w, &err);                       whenever all buffers have been emptied
 *   data_writer_finish(w, &features, &err);
 *   data_writer_close(w);
 *
 * After each round the file's header says how far its records go, so whoever is killed leaves a
 * file that perf reads up to the last round, and data_reader up to the last whole record. When the
 * disk is full the file ends behind the last record that has room, and stays readable.
 *
 * Lifetime: open .. close. The descriptor stays the caller's. Events and features are borrowed for
 * the calls.
 */
#ifndef DATA_WRITER_H
#define DATA_WRITER_H

#include <anyperf/error.h>

#include "data/feature.h"

struct data_writer;

struct data_writer_opts {
	bool pipe; /* a stream: nothing that was written is changed later */
	int level; /* of zstd, 1 to 22; 0: records are not compressed */
};

int data_writer_open(struct data_writer **out, int fd, const struct data_writer_opts *opts,
		     struct ap_error *err) must_check;

/* Writes what stands in front of the records. @features: of a pipe, which has them here. */
int data_writer_start(struct data_writer *w, const struct data_event *events, u32 nr,
		      const struct data_features *features, struct ap_error *err) must_check;

/*
 * Adds whole records. They may stay in memory until the end of the round. -ENOSPC, -EPIPE, -EIO and
 * others of write(2): what could be written is in the file, nothing more is taken.
 */
int data_writer_append(struct data_writer *w, const void *records, size_t len,
		       struct ap_error *err) must_check;

/* Every buffer has been emptied: what comes later is not older than what came before. */
int data_writer_round(struct data_writer *w, struct ap_error *err) must_check;

/* Writes the features behind the records (of a pipe: build ids), and the final header. */
int data_writer_finish(struct data_writer *w, const struct data_features *features,
		       struct ap_error *err) must_check;

void data_writer_close(struct data_writer *w);

/* Bytes in the file or gone through the pipe, and bytes of records before they were compressed. */
u64 data_writer_bytes(const struct data_writer *w);
u64 data_writer_raw_bytes(const struct data_writer *w);

#endif
