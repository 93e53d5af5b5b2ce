/* PURPOSE: struct ap_command, and starting one in ways that only anyperf itself uses. */
#ifndef LIB_COMMAND_PRIV_H
#define LIB_COMMAND_PRIV_H

#include <sys/resource.h>

#include "lib/command.h"

struct ap_command {
	struct ap_machine *m;
	struct virtual_pmu *virtual_pmu; /* the machine's, if it is to count; else NULL */
	struct guest_launch *launch;     /* then: what it takes to become a guest; owned */
	char *name;                      /* argv[0], for sentences; owned */
	pid_t pid;                       /* 0: there is no process, or no longer */
	bool started;
	int start_pipe;      /* our end of the socket on which the child waits; -1 once closed */
	int child_end;       /* the child's, which we close when it is let go; -1 then */
	int exec_errno;      /* of become(), or the runtime's; 0: it was, or is not known */
	int status;          /* as wait4(2) gives it; valid once it was waited for */
	struct rusage usage; /* likewise */
};

#endif
