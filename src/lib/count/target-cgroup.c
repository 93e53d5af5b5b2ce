/* Where cgroups are mounted, and opening one [FLAG-03]. */
#include "lib/count/event-priv.h"
#include "lib/refusal/fail.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Undoes /proc/mounts' octal escapes in place. */
static void unescape(char *s)
{
	char *out = s;

	while (*s) {
		if (s[0] == '\\' && s[1] && s[2] && s[3]) {
			*out++ = (char)((s[1] - '0') * 64 + (s[2] - '0') * 8 + (s[3] - '0'));
			s += 4;
		} else {
			*out++ = *s++;
		}
	}
	*out = '\0';
}

/*
 * perf counts cgroups of the hierarchy that its controller is in: the perf_event one of version 1
 * if there is such a mount, else version 2.
 */
static bool find_mount(struct ap_machine *m, char *where, size_t len)
{
	char path[512], line[4096], dir[1024], type[64], opts[1024];
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "%s/proc/self/mounts", ap__root(m));
	f = fopen(path, "re");
	if (!f)
		return false;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%*s %1023s %63s %1023s", dir, type, opts) != 3)
			continue;
		if (strcmp(type, "cgroup2") == 0 && !found) {
			snprintf(where, len, "%s", dir);
			found = true;
		} else if (strcmp(type, "cgroup") == 0 && strstr(opts, "perf_event")) {
			snprintf(where, len, "%s", dir);
			found = true;
			break;
		}
	}
	fclose(f);
	if (found)
		unescape(where);
	return found;
}

static bool is_cgroup(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && (fs.f_type == 0x27e0eb || fs.f_type == 0x63677270);
}

int ap__cgroup_open(struct ap_machine *m, const char *name, struct ap_error *err)
{
	char where[1024], path[2100];
	int fd, e, other = -1;

	/* A path of the machine's; else one below the mount, where "/" is the root cgroup. */
	if (name[0] == '/') {
		fd = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0 && is_cgroup(fd))
			return fd;
		other = fd;
	}
	if (!find_mount(m, where, sizeof(where))) {
		if (other >= 0)
			return other;
		ap__fail(err, -ENOENT, AP_CAUSE_CGROUP,
			 "cgroup \"%.120s\": no cgroup hierarchy that perf can use is mounted",
			 name);
		return ap__remedy(err, -ENOENT, "as root: mount -t cgroup2 none /sys/fs/cgroup");
	}
	snprintf(path, sizeof(path), "%s%s/%.1000s", ap__root(m), where, name);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0) {
		if (other >= 0)
			close(other);
		return fd;
	}
	e = -errno;
	/* Another directory: opening an event will say that it is no cgroup's. */
	if (other >= 0)
		return other;
	ap__fail(err, e, AP_CAUSE_CGROUP, "cgroup \"%.120s\": %s", name,
		 e == -ENOENT ? "there is none of that name" : strerror(-e));
	return ap__remedy(err, e, "give its directory, or its path below %s", where);
}
