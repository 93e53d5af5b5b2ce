#include "session/host/proc-text.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>

bool proc_line(FILE *f, char *line, size_t size)
{
	bool whole;
	size_t len;
	int c;

	do {
		if (!fgets(line, (int)size, f))
			return false;
		len = strlen(line);
		whole = (len && line[len - 1] == '\n') || len + 1 < size;
		if (len && line[len - 1] == '\n')
			line[len - 1] = '\0';
		for (c = 0; !whole && c != '\n' && c != EOF;)
			c = getc(f);
	} while (!whole);
	return true;
}

/* The next word of *@at, and *@at behind it; "" in @out if it is too long. False: none. */
static bool next_word(const char **at, char *out, size_t size)
{
	size_t len;

	*at += strspn(*at, " ");
	len = strcspn(*at, " ");
	if (!len)
		return false;
	snprintf(out, size, "%.*s", len < size ? (int)len : 0, *at);
	*at += len;
	return true;
}

bool proc_mount_parse(const char *line, struct proc_mount *m)
{
	const char *rest = strstr(line, " - "), *at = line;
	unsigned int major, minor;
	char id[32];

	if (!rest || !next_word(&at, id, sizeof(id)) || !next_word(&at, id, sizeof(id)) ||
	    !next_word(&at, id, sizeof(id)) || sscanf(id, "%u:%u", &major, &minor) != 2 ||
	    !next_word(&at, m->root, sizeof(m->root)) || !next_word(&at, m->at, sizeof(m->at)) ||
	    at > rest)
		return false;
	m->dev = makedev(major, minor);
	rest += 3;
	if (!next_word(&rest, m->type, sizeof(m->type)) || !*m->type)
		return false;
	m->options = rest;
	return true;
}

/* In base 16, and what ends it. */
static bool hex(const char **at, char end, u64 *value)
{
	size_t len = strspn(*at, "0123456789abcdef");

	if (!len || len > 16 || (*at)[len] != end)
		return false;
	*value = strtoull(*at, NULL, 16);
	*at += len + 1;
	return true;
}

bool proc_range_parse(const char *line, struct proc_range *r)
{
	const char *at = line;
	u64 major, minor;
	size_t digits;
	char perm[5];

	if (!hex(&at, '-', &r->start) || !hex(&at, ' ', &r->end) || r->end < r->start ||
	    strcspn(at, " ") != 4 || !at[4])
		return false;
	memcpy(perm, at, 5);
	at += 5;
	if (!hex(&at, ' ', &r->offset) || !hex(&at, ':', &major) || !hex(&at, ' ', &minor))
		return false;
	digits = strspn(at, "0123456789");
	if (!digits || (at[digits] && at[digits] != ' '))
		return false;
	r->ino = strtoull(at, NULL, 10);
	r->name = at + digits + strspn(at + digits, " ");
	r->major = (u32)major;
	r->minor = (u32)minor;
	r->shared = perm[3] == 's';
	r->prot = (perm[0] == 'r' ? PROT_READ : 0) | (perm[1] == 'w' ? PROT_WRITE : 0);
	return true;
}

/* A newline of a file's name is "\012", since it would end the line. */
static void unescape(char *name)
{
	static const char newline[] = "\\012";
	char *at;

	while ((at = strstr(name, newline))) {
		*at = '\n';
		memmove(at + 1, at + strlen(newline), strlen(at + strlen(newline)) + 1);
		name = at + 1;
	}
}

bool proc_range_next(FILE *maps, struct proc_range *r)
{
	while (proc_line(maps, r->line, sizeof(r->line)))
		if (proc_range_parse(r->line, r)) {
			unescape(r->line + (r->name - r->line));
			return true;
		}
	return false;
}

const char *proc_status_value(const char *line, const char *key)
{
	size_t len = strlen(key);

	return !strncmp(line, key, len) && line[len] == ':' ? line + len + 1 : NULL;
}

s32 proc_last_number(const char *text)
{
	s32 last = 0;

	for (;;) {
		text += strspn(text, " \t\n");
		if (!*text)
			return last;
		last = (s32)strtol(text, NULL, 10);
		text += strcspn(text, " \t\n");
	}
}

bool proc_limit(const char *line, const char *name, u64 *limit)
{
	unsigned long long value;

	if (strncmp(line, name, strlen(name)) != 0)
		return false;
	*limit = sscanf(line + strlen(name), "%llu", &value) == 1 ? value : ~0ull;
	return true;
}

bool proc_stat_field(const char *text, u32 field, u64 *value)
{
	/* The name may hold anything, but behind its last parenthesis are numbers. */
	const char *p = strrchr(text, ')');

	return p && field >= 3 && proc_word(p + 1, NULL, field - 3, value);
}

int proc_stat_cpu(const char *text)
{
	u64 cpu;

	return proc_stat_field(text, 39, &cpu) && cpu < 0x7fffffff ? (int)cpu : -1;
}

bool proc_word(const char *text, const char *key, u32 word, u64 *value)
{
	static const char between[] = " \t\n:";

	if (key) {
		text = strstr(text, key);
		if (!text)
			return false;
		text += strlen(key);
	}
	text += strspn(text, between);
	for (; *text && word; word--) {
		text += strcspn(text, between);
		text += strspn(text, between);
	}
	if (!*text)
		return false;
	*value = strtoull(text, NULL, 10);
	return true;
}

char *proc_perf_cgroup(char *text, bool *v1)
{
	char *unified = NULL, *save = NULL, *line;

	*v1 = false;
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *controllers = strchr(line, ':'), *path;

		path = controllers ? strchr(++controllers, ':') : NULL;
		if (!path)
			continue;
		*path++ = 0;
		if (!*controllers) {
			unified = path;
			continue;
		}
		for (char *name = strsep(&controllers, ","); name;
		     name = strsep(&controllers, ",")) {
			if (!strcmp(name, "perf_event")) {
				*v1 = true;
				return path;
			}
		}
	}
	return unified;
}
