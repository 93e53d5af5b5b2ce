#include "session/task/map-build-id.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "session/host/proc-text.h"

/*
 * A kernel looks at what it has in memory. Here the file is read, and who serves it may be a guest,
 * which waits for the session.
 */
static bool may_wait(const char *type)
{
	static const char *const remote[] = {"fuse", "nfs", "cifs", "smb", "9p", "ceph", "afs"};

	for (size_t i = 0; i < ARRAY_SIZE(remote); i++)
		if (!strncmp(type, remote[i], strlen(remote[i])))
			return true;
	return false;
}

/* Whether the device is one of a mount of @pid's that answers by itself, or of none (btrfs). */
static bool is_local(pid_t pid, u32 maj, u32 min)
{
	char path[64], line[4096];
	struct proc_mount m;
	bool local = true;
	FILE *mounts;

	snprintf(path, sizeof(path), "/proc/%d/mountinfo", pid);
	mounts = fopen(path, "re");
	if (!mounts)
		return false;
	while (local && proc_line(mounts, line, sizeof(line)))
		if (proc_mount_parse(line, &m) && m.dev == makedev(maj, min))
			local = !may_wait(m.type);
	fclose(mounts);
	return local;
}

static bool id_of(const char *path, u64 ino, struct elf_build_id *id)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	bool found;

	if (fd < 0)
		return false;
	found = !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_ino == ino &&
		elf_build_id_of_fd(fd, id);
	close(fd);
	return found;
}

bool map_build_id(pid_t pid, const char *name, u32 maj, u32 min, u64 ino, struct elf_build_id *id)
{
	char path[PATH_MAX + 64];

	if (*name != '/' || !ino || !is_local(pid, maj, min))
		return false;
	/* The name begins at the root of the namespace of mounts, or at ours if it is below. */
	snprintf(path, sizeof(path), "/proc/%d/root%s", pid, name);
	return id_of(path, ino, id) || id_of(name, ino, id);
}
