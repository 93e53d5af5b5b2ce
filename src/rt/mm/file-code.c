#include "rt/mm/file-code.h"

#include "sys/fmt.h"
#include "sys/kernel.h"
#include "sys/string.h"

#include <asm/stat.h>
#include <linux/fcntl.h>
#include <linux/kdev_t.h>

/* A line of /proc/self/maps that has a file. */
struct file_mapping {
	u64 start, end, offset, major, minor, ino;
	const char *path;
};

/* Under the translator's lock, as all of this. */
static char lines[12288] used_late;

static const char *number(const char *p, u32 base, char after, u64 *value)
{
	int n = p ? str_u64(p, base, value) : 0;

	return n && p[n] == after ? p + n + 1 : NULL;
}

/* False: it has no file, or its pages may have been written to by the program. */
static bool parse(const char *p, struct file_mapping *m)
{
	p = number(p, 16, '-', &m->start);
	p = number(p, 16, ' ', &m->end);
	if (!p || str_len(p) < 6 || p[1] == 'w' || p[3] != 'p')
		return false;
	p = number(p + 5, 16, ' ', &m->offset);
	p = number(p, 16, ':', &m->major);
	p = number(p, 16, ' ', &m->minor);
	p = number(p, 10, ' ', &m->ino);
	while (p && *p == ' ')
		p++;
	m->path = p;
	return p && *p == '/';
}

static bool read_at(const struct file_mapping *m, u64 pc, u8 *byte)
{
	int fd = (int)sys_openat(AT_FDCWD, m->path, O_RDONLY | O_CLOEXEC, 0);
	struct stat st;
	bool ok;

	if (sys_failed(fd))
		return false;
	ok = !sys_failed(raw_call2(__NR_fstat, fd, (long)&st)) && st.st_ino == m->ino &&
	     sys_pread(fd, byte, 1, m->offset + (pc - m->start)) == 1;
	sys_close(fd);
	return ok;
}

bool file_code_byte(u64 pc, u8 *byte)
{
	int fd = (int)sys_openat(AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC, 0);
	size_t have = 0;
	bool found = false, ok = false;
	long n;

	if (sys_failed(fd))
		return false;
	while (!found && (n = sys_read(fd, lines + have, sizeof(lines) - 1 - have)) > 0) {
		char *line = lines, *end;

		have += (size_t)n;
		lines[have] = '\0';
		while (!found && (end = str_chr(line, '\n'))) {
			struct file_mapping m;

			*end = '\0';
			if (parse(line, &m) && pc >= m.start && pc < m.end) {
				found = true;
				ok = read_at(&m, pc, byte);
			}
			line = end + 1;
		}
		have -= (size_t)(line - lines);
		memmove(lines, line, have);
		if (have == sizeof(lines) - 1)
			break;
	}
	sys_close(fd);
	return ok;
}
