#include "data/feature-priv.h"

#include <errno.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <anyperf/api.h>

#include "base/cursor.h"

#define STR_(x) #x
#define STR(x)  STR_(x)
#define VERSION STR(AP_VERSION_MAJOR) "." STR(AP_VERSION_MINOR) "." STR(AP_VERSION_PATCH)

void data_features_release(struct data_features *f)
{
	for (u32 i = 0; i < DATA_FEATURES; i++)
		free(f->of[i].bytes);
	*f = (struct data_features){0};
}

bool data_piece_add(struct data_piece *p, const void *bytes, size_t len)
{
	u8 *more = realloc(p->bytes, p->len + len + 1);

	if (!more)
		return false;
	if (len)
		memcpy(more + p->len, bytes, len);
	p->bytes = more;
	p->len += len;
	return true;
}

static bool add_u32(struct data_piece *p, u32 v)
{
	return data_piece_add(p, &v, sizeof(v));
}

static bool add_u64(struct data_piece *p, u64 v)
{
	return data_piece_add(p, &v, sizeof(v));
}

bool data_piece_add_text(struct data_piece *p, const char *text)
{
	static const char zeros[DATA_NAME_ALIGN];
	size_t len = strlen(text), padded = ALIGN_UP(len + 1, DATA_NAME_ALIGN);

	return add_u32(p, (u32)padded) && data_piece_add(p, text, len) &&
	       data_piece_add(p, zeros, padded - len);
}

bool data_look_up(const char *path, const char *key, char *value, size_t size)
{
	FILE *f = fopen(path, "re");
	char line[512];
	bool found = false;

	while (f && !found && fgets(line, sizeof(line), f)) {
		char *colon = strchr(line, ':');

		if (!colon || strncmp(line, key, strlen(key)) != 0)
			continue;
		colon += 1 + strspn(colon + 1, " \t");
		colon[strcspn(colon, "\n")] = 0;
		snprintf(value, size, "%s", colon);
		found = true;
	}
	if (f)
		fclose(f);
	return found;
}

bool data_features_add_machine(struct data_features *f, const char *name, const char *windows)
{
	struct data_piece *p = &f->of[DATA_CPU_PMU_CAPS];

	return add_u32(p, windows ? 2 : 1) && data_piece_add_text(p, "machine") &&
	       data_piece_add_text(p, name) &&
	       (!windows ||
		(data_piece_add_text(p, "machine_windows") && data_piece_add_text(p, windows)));
}

static void gather_machine(struct data_features *f)
{
	struct utsname u;
	char text[512];

	if (!uname(&u)) {
		data_piece_add_text(&f->of[DATA_HOSTNAME], u.nodename);
		data_piece_add_text(&f->of[DATA_OSRELEASE], u.release);
		data_piece_add_text(&f->of[DATA_ARCH], u.machine);
	}
	data_piece_add_text(&f->of[DATA_VERSION], "anyperf " VERSION);
	add_u32(&f->of[DATA_NRCPUS], (u32)sysconf(_SC_NPROCESSORS_CONF));
	add_u32(&f->of[DATA_NRCPUS], (u32)sysconf(_SC_NPROCESSORS_ONLN));
	if (data_look_up("/proc/cpuinfo", "model name", text, sizeof(text)) ||
	    data_look_up("/proc/cpuinfo", "Processor", text, sizeof(text)))
		data_piece_add_text(&f->of[DATA_CPUDESC], text);
	if (data_look_up("/proc/meminfo", "MemTotal", text, sizeof(text)))
		add_u64(&f->of[DATA_TOTAL_MEM], strtoull(text, NULL, 10));
}

/* In front of the arguments, which begin with the command's name, stands the program. */
static void gather_command_line(struct data_piece *p, int argc, char *const *argv)
{
	char program[4096];
	ssize_t len = readlink("/proc/self/exe", program, sizeof(program) - 1);

	program[len > 0 ? len : 0] = 0;
	add_u32(p, (u32)argc + 1);
	data_piece_add_text(p, program);
	for (int i = 0; i < argc; i++)
		data_piece_add_text(p, argv[i]);
}

static void gather_events(struct data_features *f, const struct data_event *events, u32 nr)
{
	struct data_piece *p = &f->of[DATA_EVENT_DESC];
	u32 groups = 0;

	add_u32(p, nr);
	add_u32(p, PE_ATTR_SIZE_VER7);
	for (u32 i = 0; i < nr; i++) {
		struct pe_attr attr = events[i].attr;

		attr.size = PE_ATTR_SIZE_VER7;
		data_piece_add(p, &attr, PE_ATTR_SIZE_VER7);
		add_u32(p, events[i].nr_ids);
		data_piece_add_text(p, events[i].name ? events[i].name : "unknown");
		data_piece_add(p, events[i].ids, events[i].nr_ids * sizeof(u64));
		groups += events[i].members > 1;
		if (events[i].attr.branch_sample_type)
			(void)data_piece_add(&f->of[DATA_BRANCH_STACK], "", 0);
	}
	if (!groups)
		return;
	p = &f->of[DATA_GROUP_DESC];
	add_u32(p, groups);
	for (u32 i = 0; i < nr; i++) {
		if (events[i].members < 2)
			continue;
		data_piece_add_text(p, "{anon_group}");
		add_u32(p, i);
		add_u32(p, events[i].members);
	}
}

/* "software 1" for each PMU that sysfs names. */
static void gather_pmus(struct data_piece *p)
{
	static const char dir[] = "/sys/bus/event_source/devices";
	DIR *d = opendir(dir);
	struct dirent *e;
	u32 n = 0;

	if (!d)
		return;
	add_u32(p, 0);
	while ((e = readdir(d))) {
		char path[400];
		unsigned int type;
		FILE *f;

		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s/type", dir, e->d_name);
		f = fopen(path, "re");
		if (f && fscanf(f, "%u", &type) == 1 && add_u32(p, type) &&
		    data_piece_add_text(p, e->d_name))
			n++;
		if (f)
			fclose(f);
	}
	closedir(d);
	if (p->bytes)
		memcpy(p->bytes, &n, sizeof(n));
}

void data_features_gather(struct data_features *f, const struct data_event *events, u32 nr,
			  int argc, char *const *argv)
{
	gather_machine(f);
	data_features_gather_cpus(f);
	gather_command_line(&f->of[DATA_CMDLINE], argc, argv);
	gather_events(f, events, nr);
	gather_pmus(&f->of[DATA_PMU_MAPPINGS]);
	for (u32 i = 0; i < nr; i++)
		if (events[i].attr.type == PERF_TYPE_TRACEPOINT) {
			struct data_piece *p = &f->of[DATA_TRACING_DATA];

			if (!data_tracing_gather(p, events, nr)) {
				free(p->bytes);
				*p = (struct data_piece){0};
			}
			break;
		}
}

bool data_features_add_build_id(struct data_features *f, const char *path, u16 misc, const u8 *id,
				size_t size)
{
	static const char zeros[DATA_NAME_ALIGN];
	struct data_piece *p = &f->of[DATA_BUILD_ID];
	size_t len = strlen(path), padded = ALIGN_UP(len + 1, DATA_NAME_ALIGN);
	struct data_build_id e = {.pid = -1};

	if (padded > 4096 || size > sizeof(e.id))
		return false;
	e.header = (struct perf_event_header){.misc = misc | DATA_MISC_BUILD_ID_SIZE,
					      .size = (u16)(sizeof(e) + padded)};
	memcpy(e.id, id, size);
	e.size = (u8)size;
	return data_piece_add(p, &e, sizeof(e)) && data_piece_add(p, path, len) &&
	       data_piece_add(p, zeros, padded - len);
}

/* The next text, or NULL. It ends within its own bytes or is none. */
static const char *next_text(struct cursor *c)
{
	u32 len = cursor_u32(c);
	const char *text = cursor_bytes(c, len);

	return text && memchr(text, 0, len) ? text : NULL;
}

char *data_feature_text(const void *bytes, size_t len)
{
	struct cursor c = cursor_over(bytes, len);
	const char *text = next_text(&c);

	return text ? strdup(text) : NULL;
}

void data_feature_texts(const void *bytes, size_t len, void (*fn)(const char *text, void *data),
			void *data)
{
	struct cursor c = cursor_over(bytes, len);
	u32 n = cursor_u32(&c);
	const char *text;

	while (n-- && (text = next_text(&c)))
		fn(text, data);
}

char *data_feature_value(const void *bytes, size_t len, const char *name)
{
	struct cursor c = cursor_over(bytes, len);
	u32 n = cursor_u32(&c);

	while (n--) {
		const char *text = next_text(&c), *value = text ? next_text(&c) : NULL;

		if (!value)
			return NULL;
		if (!strcmp(text, name))
			return strdup(value);
	}
	return NULL;
}
