/*
 * PURPOSE: which file something is, without asking the file system that it lies on. That may be one
 * that a guest plays (FUSE), which answers when it likes; the kernel knows the file's number
 * anyway. Locking: none.
 */
#ifndef SESSION_HOST_FILE_ID_H
#define SESSION_HOST_FILE_ID_H

#include <sys/types.h>

#include "base/types.h"

struct file_id {
	dev_t dev;
	u64 ino;
	mode_t mode; /* what kind of file; its permissions may be old */
};

/* Of @path below @dir, or of @dir itself if @path is ""; follows a link at its end. */
bool file_id(int dir, const char *path, struct file_id *id);
bool file_id_same(const struct file_id *a, const struct file_id *b);

/*
 * Does device @dev carry a file system whose type begins with @type, as process @pid sees what is
 * mounted (0: as we do)?
 */
bool file_system_is(pid_t pid, dev_t dev, const char *type);

#endif
