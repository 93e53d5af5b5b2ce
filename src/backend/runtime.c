#include "backend/runtime.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "abi/control.h"

#ifndef ANYPERF_LIBEXECDIR
#define ANYPERF_LIBEXECDIR "/usr/local/libexec"
#endif

/* What is called @relative from the directory that file @path is in; -1: nothing. */
static int open_beside(const char *path, const char *relative)
{
	const char *slash = strrchr(path, '/');
	char beside[PATH_MAX + 64];

	if (!slash || (size_t)snprintf(beside, sizeof(beside), "%.*s/%s", (int)(slash - path), path,
				       relative) >= sizeof(beside))
		return -1;
	return open(beside, O_PATH | O_CLOEXEC);
}

/* In the build directory or the prefix that file @path is in. */
static int open_around(const char *path, const char *folder, const char *name)
{
	static const char *const below[] = {"..", "../..", NULL};
	char relative[128];
	int fd;

	snprintf(relative, sizeof(relative), "../%s/%s", folder, name);
	fd = open_beside(path, relative);
	for (int i = 0; fd < 0 && below[i]; i++) {
		snprintf(relative, sizeof(relative), "%s/libexec/anyperf/%s", below[i], name);
		fd = open_beside(path, relative);
	}
	return fd;
}

static int open_around_us(const char *folder, const char *name)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	const char *executed;
	Dl_info us;
	int fd = -1;

	/* Without /proc there is the name by which we were executed. */
	executed = n > 0 ? NULL : (const char *)getauxval(AT_EXECFN);
	if (n > 0)
		path[n] = '\0';
	if (n > 0 || (executed && realpath(executed, path)))
		fd = open_around(path, folder, name);
	/* The library may be in another prefix than the program that uses it. */
	if (fd < 0 && dladdr(__func__, &us) && us.dli_fname && realpath(us.dli_fname, path))
		fd = open_around(path, folder, name);
	return fd;
}

/* The note of abi/control.h in the file of an ELF program. */
static bool find_note(int fd, struct control_note *note)
{
	Elf64_Ehdr elf;
	Elf64_Phdr ph;

	if (pread(fd, &elf, sizeof(elf), 0) != sizeof(elf) ||
	    memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0 || elf.e_ident[EI_CLASS] != ELFCLASS64 ||
	    elf.e_phentsize != sizeof(ph))
		return false;
	for (unsigned int i = 0; i < elf.e_phnum; i++) {
		if (pread(fd, &ph, sizeof(ph), (off_t)(elf.e_phoff + i * sizeof(ph))) != sizeof(ph))
			return false;
		if (ph.p_type == PT_NOTE && ph.p_filesz == sizeof(*note) &&
		    pread(fd, note, sizeof(*note), (off_t)ph.p_offset) == sizeof(*note) &&
		    note->type == CONTROL_NOTE_TYPE && note->name_size == sizeof(note->name) &&
		    memcmp(note->name, CONTROL_NOTE_NAME, sizeof(note->name)) == 0)
			return true;
	}
	return false;
}

/*
 * The one that ANYPERF_RUNTIME names, be it what it may: another would count nothing, in silence.
 */
static int open_named(const char *named, char *why, size_t len)
{
	struct control_note note;
	int fd = open(named, O_RDONLY | O_CLOEXEC | O_NONBLOCK), err;
	bool found;

	if (fd < 0) {
		err = -errno;
		snprintf(why, len, "ANYPERF_RUNTIME names '%.200s': %s", named, strerror(-err));
		return err;
	}
	found = find_note(fd, &note);
	close(fd);
	if (!found || note.version != CONTROL_VERSION) {
		snprintf(why, len, "ANYPERF_RUNTIME names '%.200s', which is %s", named,
			 found ? "the runtime of another version of anyperf"
			       : "not anyperf's runtime, anyperf-rt");
		return -EINVAL;
	}
	fd = open(named, O_PATH | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	err = -errno;
	snprintf(why, len, "ANYPERF_RUNTIME names '%.200s': %s", named, strerror(-err));
	return err;
}

int ap__runtime_check(char *why, size_t len)
{
	int fd = ap__runtime_open("rt", "anyperf-rt", why, len), file;
	struct control_note note;
	char path[64];
	bool found;

	if (fd < 0)
		return fd;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (access(path, X_OK) && errno == EACCES) {
		close(fd);
		snprintf(why, len,
			 "the runtime anyperf-rt cannot be executed: %s; install anyperf again",
			 strerror(EACCES));
		return -EACCES;
	}
	file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	close(fd);
	/* Who may not read it may execute it all the same. */
	if (file < 0)
		return 0;
	found = find_note(file, &note);
	close(file);
	if (found && note.version == CONTROL_VERSION)
		return 0;
	snprintf(why, len, "the runtime anyperf-rt is %s; install anyperf again",
		 found ? "that of another version" : "another file");
	return -EINVAL;
}

int ap__runtime_open(const char *folder, const char *name, char *why, size_t len)
{
	static const char runtime[] = "anyperf-rt";
	const char *named = secure_getenv("ANYPERF_RUNTIME");
	bool is_runtime = !strcmp(name, runtime);
	int fd;

	if (!ANYPERF_HAS_RUNTIME) {
		snprintf(why, len,
			 "the translator is for x86-64, and this machine has another CPU");
		return -ENOENT;
	}
	if (named && *named && is_runtime)
		return open_named(named, why, len);
	fd = named && *named ? open_beside(named, name) : -1;
	if (fd < 0 && named && *named)
		fd = open_around(named, folder, name);
	if (fd < 0)
		fd = open_around_us(folder, name);
	if (fd < 0) {
		char path[PATH_MAX];

		snprintf(path, sizeof(path), "%s/anyperf/%s", ANYPERF_LIBEXECDIR, name);
		fd = open(path, O_PATH | O_CLOEXEC);
	}
	if (fd >= 0)
		return fd;
	if (errno == EMFILE || errno == ENFILE) {
		int err = -errno;

		snprintf(why, len, "opening %s: %s; raise the limit of descriptors (ulimit -n)",
			 name, strerror(-err));
		return err;
	}
	snprintf(why, len,
		 "%s%s is neither beside this program nor in %s/anyperf; install it, or name %s in "
		 "ANYPERF_RUNTIME",
		 is_runtime ? "the runtime " : "", name, ANYPERF_LIBEXECDIR,
		 is_runtime ? "it" : "the runtime that it is beside");
	return -ENOENT;
}
