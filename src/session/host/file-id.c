#include "session/host/file-id.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "session/host/proc-text.h"

/* Nothing is asked for, and nothing is to be brought up to date: so nobody is asked. */
bool file_id(int dir, const char *path, struct file_id *id)
{
	struct statx st;

	if (statx(dir, path, AT_EMPTY_PATH | AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, 0, &st))
		return false;
	*id = (struct file_id){.dev = makedev(st.stx_dev_major, st.stx_dev_minor),
			       .ino = st.stx_ino,
			       .mode = st.stx_mode};
	return true;
}

bool file_id_same(const struct file_id *a, const struct file_id *b)
{
	return a->dev == b->dev && a->ino == b->ino;
}

bool file_system_is(pid_t pid, dev_t dev, const char *type)
{
	char path[40], line[4096];
	struct proc_mount m;
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), pid ? "/proc/%d/mountinfo" : "/proc/self/mountinfo", (int)pid);
	f = fopen(path, "re");
	while (f && !found && proc_line(f, line, sizeof(line)))
		found = proc_mount_parse(line, &m) && m.dev == dev &&
			!strncmp(m.type, type, strlen(type));
	if (f)
		fclose(f);
	return found;
}
