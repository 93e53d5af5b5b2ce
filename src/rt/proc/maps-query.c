/*
 * What the guest has open as /proc/PID/maps is a text, of which the kernel has no mappings to tell.
 * As the kernel does we tell of what is mapped now, whenever the file was opened; and the same as a
 * text that is read now. The kernel is asked for what that does not have.
 */
#include "rt/proc/maps-query.h"

#include "rt/mm/guest-mem.h"
#include "rt/mm/mm.h"
#include "rt/proc/proc-files.h"
#include "rt/syscall/fd.h"
#include "rt/syscall/syscall.h"
#include "sys/string.h"

#include <linux/limits.h>

#define VMA_FLAGS                                                                                 \
	(PROCMAP_QUERY_VMA_READABLE | PROCMAP_QUERY_VMA_WRITABLE | PROCMAP_QUERY_VMA_EXECUTABLE | \
	 PROCMAP_QUERY_VMA_SHARED)
#define BUILD_ID_MOST 20u

/* Takes over what the guest asks, with the kernel's checks in its order. */
static long read_query(struct procmap_query *q, u64 from)
{
	u64 size, flags = VMA_FLAGS | PROCMAP_QUERY_COVERING_OR_NEXT_VMA |
			  PROCMAP_QUERY_FILE_BACKED_VMA;
	u8 more;

	if (guest_read(&size, from, sizeof(size)))
		return -EFAULT;
	if (size > PAGE_SIZE)
		return -E2BIG;
	if (size < offsetof(struct procmap_query, vma_start))
		return -EINVAL;
	/* Of a newer program, which must not want what we do not know. */
	for (u64 at = sizeof(*q); at < size; at++) {
		if (guest_read(&more, from + at, 1))
			return -EFAULT;
		if (more)
			return -E2BIG;
	}
	memset(q, 0, sizeof(*q));
	if (guest_read(q, from, min_u64(size, sizeof(*q))))
		return -EFAULT;
	if (q->query_flags & ~flags || !q->vma_name_size != !q->vma_name_addr ||
	    !q->build_id_size != !q->build_id_addr)
		return -EINVAL;
	return 0;
}

/* Takes a line apart, NUL in place of the newline. */
static void take_line(char *line, struct procmap_query *q, char **name)
{
	u64 major, minor;

	line += str_u64(line, 16, &q->vma_start) + 1;
	line += str_u64(line, 16, &q->vma_end) + 1;
	q->vma_flags = (line[0] == 'r' ? PROCMAP_QUERY_VMA_READABLE : 0) |
		       (line[1] == 'w' ? PROCMAP_QUERY_VMA_WRITABLE : 0) |
		       (line[2] == 'x' ? PROCMAP_QUERY_VMA_EXECUTABLE : 0) |
		       (line[3] == 's' ? PROCMAP_QUERY_VMA_SHARED : 0);
	line += 5;
	line += str_u64(line, 16, &q->vma_offset) + 1;
	line += str_u64(line, 16, &major) + 1;
	line += str_u64(line, 16, &minor) + 1;
	line += str_u64(line, 10, &q->inode);
	q->dev_major = (u32)major;
	q->dev_minor = (u32)minor;
	while (*line == ' ')
		line++;
	*name = line;
}

/* The first mapping in @text that is meant; @text is changed. */
static bool find(struct shown_text *text, struct procmap_query *q, char **name)
{
	u64 want = q->query_flags & VMA_FLAGS;
	bool next = q->query_flags & PROCMAP_QUERY_COVERING_OR_NEXT_VMA;

	for (char *line = text->at, *end; line < text->at + text->used; line = end + 1) {
		end = str_chr(line, '\n');
		*end = '\0';
		take_line(line, q, name);
		/* The kernel's page for vsyscall stands in the text, but is no mapping. */
		if (q->vma_end <= q->query_addr || q->vma_start >= TASK_SIZE)
			continue;
		if (!next && q->vma_start > q->query_addr)
			return false;
		if ((want & ~q->vma_flags) == 0 &&
		    (q->inode || !(q->query_flags & PROCMAP_QUERY_FILE_BACKED_VMA)))
			return true;
		if (!next)
			return false;
	}
	return false;
}

/* Adds what is not in the text; @file is the kernel's maps. */
static long ask_kernel(int file, struct procmap_query *q, u8 id[BUILD_ID_MOST])
{
	struct procmap_query kernels = {
		.size = sizeof(kernels),
		.query_addr = q->vma_start,
		.build_id_size = q->build_id_size ? BUILD_ID_MOST : 0,
		.build_id_addr = q->build_id_size ? (u64)id : 0,
	};
	long ret = raw_call3(__NR_ioctl, file, PROCMAP_QUERY, (long)&kernels);

	if (ret)
		return ret;
	if (kernels.build_id_size > q->build_id_size)
		return -ENAMETOOLONG;
	q->vma_page_size = kernels.vma_page_size;
	q->build_id_size = kernels.build_id_size;
	return 0;
}

/* In the text a newline of a name is "\012", since it would end the line. */
static void unescape(char *name)
{
	static const char newline[] = "\\012";
	char *to = name;

	while (*name) {
		bool is = str_starts(name, newline);

		*to++ = is ? '\n' : *name;
		name += is ? sizeof(newline) - 1 : 1;
	}
	*to = '\0';
}

static long write_name(struct thread *t, struct procmap_query *q, char *name)
{
	u64 room = min_u64(q->vma_name_size, PATH_MAX), size;

	unescape(name);
	size = *name ? str_len(name) + 1 : 0;
	if (size > room)
		return -ENAMETOOLONG;
	q->vma_name_size = (u32)size;
	return guest_write(t, q->vma_name_addr, name, size);
}

static long answer(struct thread *t, int file, const char *path)
{
	struct shown_text text = {0};
	struct procmap_query q;
	u8 id[BUILD_ID_MOST];
	u64 arg = guest_arg(t, 2);
	char *name;
	long ret;

	/* Older kernels do not know the question. */
	ret = raw_call3(__NR_ioctl, file, PROCMAP_QUERY, 0);
	if (ret != -EFAULT)
		return ret;
	ret = read_query(&q, arg);
	if (ret)
		return ret;
	ret = proc_read_maps(t, path, &text);
	if (!ret && !find(&text, &q, &name))
		ret = -ENOENT;
	if (!ret)
		ret = ask_kernel(file, &q, id);
	if (!ret && q.vma_name_size)
		ret = write_name(t, &q, name);
	shown_drop(&text);
	if (ret)
		return ret;
	if (q.build_id_size && guest_write(t, q.build_id_addr, id, q.build_id_size))
		return -EFAULT;
	return guest_write(t, arg, &q, min_u64(q.size, sizeof(q)));
}

long guest_ioctl(struct thread *t)
{
	char path[PROC_MAPS_PATH];
	long file, ret;

	if ((u32)guest_arg(t, 1) != PROCMAP_QUERY ||
	    !proc_shown_maps(t, (int)guest_arg(t, 0), path))
		return call_kernel(t);
	file = fd_open(AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return -ESRCH;
	ret = answer(t, (int)file, path);
	sys_close((int)file);
	return ret;
}
