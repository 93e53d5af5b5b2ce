/*
 * PURPOSE: the shapes of a perf.data file, as perf's own tools/perf/Documentation/
 * perf.data-file-format.txt describes them. No code.
 *
 * A file begins with a header that names three sections: the events' attrs, the records, and, right
 * behind the records, one section for each feature. A pipe has a header of 16 bytes; attrs and
 * features come as records of their own.
 */
#ifndef DATA_PERF_DATA_H
#define DATA_PERF_DATA_H

#include "abi/perf.h"

#define DATA_MAGIC      0x32454c4946524550ull /* "PERFILE2", on a little-endian machine */
#define DATA_MAGIC_SWAP 0x50455246494c4532ull

struct data_section {
	u64 offset, size;
};

struct data_pipe_header {
	u64 magic, size;
};

struct data_header {
	u64 magic;
	u64 size;      /* of this */
	u64 attr_size; /* of an entry of `attrs`: an attr, and the section of its ids */
	struct data_section attrs, data, event_types;
	u64 features[4]; /* a bit for each section behind the records */
};

/* What a file says about where it was recorded. */
enum data_feature {
	DATA_TRACING_DATA = 1, /* formats of tracepoints */
	DATA_BUILD_ID = 2,
	DATA_HOSTNAME = 3,
	DATA_OSRELEASE = 4,
	DATA_VERSION = 5,
	DATA_ARCH = 6,
	DATA_NRCPUS = 7,
	DATA_CPUDESC = 8,
	DATA_CPUID = 9,
	DATA_TOTAL_MEM = 10,
	DATA_CMDLINE = 11,
	DATA_EVENT_DESC = 12,
	DATA_CPU_TOPOLOGY = 13,
	DATA_NUMA_TOPOLOGY = 14,
	DATA_BRANCH_STACK = 15,
	DATA_PMU_MAPPINGS = 16,
	DATA_GROUP_DESC = 17,
	DATA_CACHE = 20,
	DATA_SAMPLE_TIME = 21,
	DATA_CLOCKID = 23,
	DATA_COMPRESSED = 27,
	DATA_CPU_PMU_CAPS = 28, /* names and values: of a model of a machine its name */
	DATA_FEATURES = 64,     /* more than there are */
};

/* Types of records that exist in files only. */
enum data_record_type {
	DATA_HEADER_ATTR = 64,
	DATA_HEADER_TRACING_DATA = 66, /* so many bytes follow as its first word says */
	DATA_HEADER_BUILD_ID = 67,
	DATA_FINISHED_ROUND = 68, /* every buffer has been emptied once more */
	DATA_AUXTRACE = 71,       /* as HEADER_TRACING_DATA */
	DATA_EVENT_UPDATE = 78,
	DATA_HEADER_FEATURE = 80,
	DATA_COMPRESSED_RECORDS = 81,  /* zstd: a part of one stream of records */
	DATA_FINISHED_INIT = 82,       /* what was there before has been told */
	DATA_COMPRESSED_RECORDS2 = 83, /* the same with a length, padded; perf 6.15 */
};

enum { DATA_UPDATE_NAME = 2 }; /* EVENT_UPDATE: the name of the event with this id */

/* HEADER_BUILD_ID, and an entry of the feature. */
struct data_build_id {
	struct perf_event_header header;
	s32 pid;
	u8 id[20];
	u8 size; /* of the id, if misc says so */
	u8 reserved[3];
	/* the file's name follows, padded with zeros */
};
#define DATA_MISC_BUILD_ID_SIZE (1 << 15)

/* Names in features are padded to this. */
#define DATA_NAME_ALIGN 64

#endif
