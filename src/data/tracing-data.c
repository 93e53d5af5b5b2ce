/*
 * The formats of tracepoints, as trace-cmd's files of version 0.6 have them and perf reads them:
 * without them nobody knows what the raw data of such a sample says. Of the parts that perf does
 * not need for that (ftrace's own events, addresses and names of the kernel) there is none.
 */
#include "data/feature.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const mounts[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};

/* What a file of tracefs holds; its size is not known before it has been read. */
static bool read_file(const char *path, struct data_piece *out)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char buf[4096];
	ssize_t n = 0;
	bool ok = fd >= 0;

	while (ok && (n = read(fd, buf, sizeof(buf))) > 0)
		ok = data_piece_add(out, buf, (size_t)n);
	if (fd >= 0)
		close(fd);
	return ok && n == 0;
}

static bool add_file(struct data_piece *p, const char *path)
{
	struct data_piece file = {0};
	bool ok = read_file(path, &file);
	u64 len = file.len;

	ok = ok && data_piece_add(p, &len, sizeof(len)) && data_piece_add(p, file.bytes, file.len);
	free(file.bytes);
	return ok;
}

static bool is_wanted(const char *event_dir, const struct data_event *events, u32 nr)
{
	char path[700];
	unsigned int id;
	bool wanted = false;
	FILE *f;

	snprintf(path, sizeof(path), "%s/id", event_dir);
	f = fopen(path, "re");
	if (f && fscanf(f, "%u", &id) == 1)
		for (u32 i = 0; i < nr; i++)
			wanted |= events[i].attr.type == PERF_TYPE_TRACEPOINT &&
				  events[i].attr.config == id;
	if (f)
		fclose(f);
	return wanted;
}

/* Adds the formats of the wanted events of one system; *@n is how many. */
static bool add_events(struct data_piece *p, const char *dir, const struct data_event *events,
		       u32 nr, u32 *n)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	bool ok = true;

	*n = 0;
	while (d && ok && (e = readdir(d))) {
		char path[640], format[660];

		snprintf(path, sizeof(path), "%.300s/%.255s", dir, e->d_name);
		if (e->d_name[0] == '.' || !is_wanted(path, events, nr))
			continue;
		snprintf(format, sizeof(format), "%s/format", path);
		ok = add_file(p, format);
		++*n;
	}
	if (d)
		closedir(d);
	return ok;
}

static bool add_systems(struct data_piece *p, const char *mount, const struct data_event *events,
			u32 nr)
{
	struct data_piece all = {0};
	char path[320];
	u32 systems = 0, n;
	struct dirent *e;
	bool ok = true;
	DIR *d;

	snprintf(path, sizeof(path), "%s/events", mount);
	d = opendir(path);
	while (d && ok && (e = readdir(d))) {
		struct data_piece formats = {0};

		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/events/%.200s", mount, e->d_name);
		ok = add_events(&formats, path, events, nr, &n);
		if (ok && n) {
			ok = data_piece_add(&all, e->d_name, strlen(e->d_name) + 1) &&
			     data_piece_add(&all, &n, sizeof(n)) &&
			     data_piece_add(&all, formats.bytes, formats.len);
			systems++;
		}
		free(formats.bytes);
	}
	if (d)
		closedir(d);
	ok = ok && systems && data_piece_add(p, &systems, sizeof(systems)) &&
	     data_piece_add(p, all.bytes, all.len);
	free(all.bytes);
	return ok;
}

static bool gather(struct data_piece *p, const char *mount, const struct data_event *events, u32 nr)
{
	static const char magic[] = "\027\010\104tracing0.6";
	static const u8 nothing[16];
	u32 page = (u32)sysconf(_SC_PAGESIZE);
	const u16 one = 1;
	u8 start[2] = {!*(const u8 *)&one, sizeof(long)};
	char path[320];

	if (!data_piece_add(p, magic, sizeof(magic)) || !data_piece_add(p, start, sizeof(start)) ||
	    !data_piece_add(p, &page, sizeof(page)))
		return false;
	snprintf(path, sizeof(path), "%s/events/header_page", mount);
	if (!data_piece_add(p, "header_page", 12) || !add_file(p, path))
		return false;
	snprintf(path, sizeof(path), "%s/events/header_event", mount);
	if (!data_piece_add(p, "header_event", 13) || !add_file(p, path))
		return false;
	/* No ftrace events; then the systems; no kallsyms, no printk formats, no command lines. */
	return data_piece_add(p, nothing, 4) && add_systems(p, mount, events, nr) &&
	       data_piece_add(p, nothing, 4 + 4 + 8);
}

bool data_tracing_gather(struct data_piece *p, const struct data_event *events, u32 nr)
{
	for (size_t i = 0; i < ARRAY_SIZE(mounts); i++) {
		free(p->bytes);
		*p = (struct data_piece){0};
		if (gather(p, mounts[i], events, nr))
			return true;
	}
	return false;
}
