/*
 * PURPOSE: what the program anyperf-session is told when it is started, and what it answers. Its
 * first argument is the number of a SEQPACKET socket; others are for who looks at processes. On the
 * socket come struct session_start with the counter segment (meter.h), and a second message of one
 * byte with the session's end of the bootstrap socket (wire.h). The program answers with struct
 * session_started, and serves. Shapes only.
 */
#ifndef ABI_SESSION_START_H
#define ABI_SESSION_START_H

#include "abi/run-config.h"
#include "base/types.h"

#define SESSION_START_MAGIC 0x3454535353504e41ull /* "ANPSSST4": changes with the layout */

enum session_start_flags {
	SESSION_START_IGNORE_KERNEL = 1, /* what includes kernel mode counts user mode only */
	SESSION_START_VERBOSE = 2,       /* say on stderr why calls are refused */
};

/* `paranoid`: that of the machine, but at least 2 unless kernel mode is ignored. */
#define SESSION_PARANOID_HOST (-1000)

struct session_start {
	u64 magic;
	u32 flags;    /* enum session_start_flags */
	s32 paranoid; /* shown and checked; or SESSION_PARANOID_HOST */
	u32 counters; /* of the virtual PMU; 0: as many as wanted */
	u32 reserved; /* 0 */
	struct run_config config;
	char cpuid_profile[32]; /* what cpuid_profile_find() takes; "": auto */
	char name[96];          /* others may join under it; "": nobody can */
};

/*
 * What a session that has a name says to who joins it: with this message comes the counter segment,
 * with a second one of struct wire_fd_message the bootstrap socket for guests.
 */
struct session_joined {
	u64 magic; /* SESSION_START_MAGIC */
	struct run_config config;
};

struct session_started {
	s32 err;       /* 0, or the -errno with which there is no session */
	char why[300]; /* then a sentence */
};

#endif
