/* Machines by name and file: reads them, and says what is wrong with one. */
#include "lib/machine/machine-file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "lib/machine/host-machine.h"
#include "lib/refusal/fail.h"
#include "lib/spec/nearest.h"
#include "model/machines.h"

static const char *what_is_wrong(const struct machine_mistake *w, char *buf, size_t size)
{
	unsigned long long value = w->value, min = w->min, max = w->max;

	switch (w->fault) {
	case MACHINE_FINE: snprintf(buf, size, "nothing is wrong"); break;
	case MACHINE_TOO_LONG: snprintf(buf, size, "it is longer than %llu bytes", max); break;
	case MACHINE_BAD_CHARACTER:
		snprintf(buf, size, "the byte 0x%02llx has no place there", value);
		break;
	case MACHINE_NO_VERSION:
		snprintf(buf, size, "a machine's text begins with `anyperf-machine %u`, not '%s'",
			 MACHINE_VERSION, w->text);
		break;
	case MACHINE_NO_SUBJECT:
		snprintf(buf, size, "no part of a machine is called '%s'", w->text);
		break;
	case MACHINE_TWICE: snprintf(buf, size, "it is given twice"); break;
	case MACHINE_NO_FIELD: snprintf(buf, size, "it has no field '%s'", w->text); break;
	case MACHINE_NO_VALUE: snprintf(buf, size, "the value is missing"); break;
	case MACHINE_NOT_A_NUMBER:
		snprintf(buf, size, "'%s' is no number that it can have", w->text);
		break;
	case MACHINE_OUT_OF_RANGE:
		snprintf(buf, size, "it must be from %llu to %llu", min, max);
		break;
	case MACHINE_NO_WORD:
		snprintf(buf, size, "'%s' is none of the words that it can be", w->text);
		break;
	case MACHINE_MISSING: snprintf(buf, size, "it is missing"); break;
	case MACHINE_NOT_A_POWER: snprintf(buf, size, "it must be a power of two"); break;
	case MACHINE_GEOMETRY:
		snprintf(buf, size, "%llu cannot be divided into parts of %llu", value, max);
		break;
	case MACHINE_NOT_HERE: snprintf(buf, size, "this value is not for it"); break;
	}
	return buf;
}

char *ap__machine_mistake_text(const struct machine_mistake *why, char *buf, size_t size)
{
	char what[200];
	size_t n = 0;

	*buf = '\0';
	if (why->line)
		n = (size_t)snprintf(buf, size, "line %u: ", why->line);
	if (*why->subject && n < size)
		n += (size_t)snprintf(buf + n, size - n, "%s%s%s: ", why->subject,
				      *why->field ? " " : "", why->field);
	if (n < size)
		snprintf(buf + n, size - n, "%s", what_is_wrong(why, what, sizeof(what)));
	return buf;
}

static int read_file(struct machine *out, const char *path, struct ap_error *err)
{
	struct machine_mistake why;
	char what[300], *text;
	ssize_t n = 0, got = 1;
	int fd, rc;

	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return ap__fail(err, -errno, AP_CAUSE_FILE, "the machine '%s' cannot be read: %s",
				path, strerror(errno));
	text = malloc(MACHINE_TEXT_MAX + 1);
	while (text && n <= MACHINE_TEXT_MAX && got > 0) {
		got = read(fd, text + n, (size_t)(MACHINE_TEXT_MAX + 1 - n));
		n += got > 0 ? got : 0;
	}
	rc = got < 0 ? -errno : 0;
	close(fd);
	if (!text)
		return ap__fail_memory(err);
	if (rc) {
		free(text);
		return ap__fail(err, rc, AP_CAUSE_FILE, "the machine '%s' cannot be read: %s", path,
				strerror(-rc));
	}
	rc = machine_parse(out, text, (size_t)n, &why);
	free(text);
	if (rc)
		return ap__fail(err, rc, AP_CAUSE_SYNTAX, "the machine '%s': %s", path,
				ap__machine_mistake_text(&why, what, sizeof(what)));
	return 0;
}

static const struct machine_shipped *shipped(const char *name)
{
	for (const struct machine_shipped *s = machines_shipped; s->name; s++)
		if (!strcmp(s->name, name))
			return s;
	return NULL;
}

static void read_shipped(struct machine *out, const struct machine_shipped *s)
{
	struct machine_mistake why;

	CHECK(!machine_parse(out, s->text, strlen(s->text), &why));
}

static int no_such(const char *name, struct ap_error *err)
{
	struct ap__nearest near;
	char hint[400];

	ap__nearest_init(&near, name);
	for (const struct machine_shipped *s = machines_shipped; s->name; s++)
		ap__nearest_offer(&near, s->name);
	ap__nearest_offer(&near, MACHINE_HOST);
	ap__nearest_text(&near, hint, sizeof(hint));
	ap__fail(err, -ENOENT, AP_CAUSE_FILE, "there is no machine and no file '%s'%s%s", name,
		 *hint ? "; " : "", hint);
	return ap__remedy(err, -ENOENT, "`anyperf machine` lists those that there are");
}

int ap__model_machine(struct machine *out, const char *name, struct ap_error *err)
{
	const struct machine_shipped *s = shipped(name);

	if (s) {
		read_shipped(out, s);
		return 0;
	}
	if (!strcmp(name, MACHINE_HOST)) {
		const char *base = ap__host_base();

		s = shipped(base);
		CHECK(s);
		read_shipped(out, s);
		ap__host_machine(out);
		return 0;
	}
	if (!strchr(name, '/') && access(name, F_OK) < 0)
		return no_such(name, err);
	return read_file(out, name, err);
}

int ap__model_chosen(struct machine *out, const char *name, struct ap_error *err)
{
	memset(out, 0, sizeof(*out));
	return strcmp(name, MACHINE_NONE) == 0 ? 0 : ap__model_machine(out, name, err);
}

int ap__model_geometry(struct machine *m, enum machine_cache_id id, const char *text,
		       struct ap_error *err)
{
	unsigned long long number[3];
	const char *at = text;
	struct machine_mistake why;
	struct machine with = *m;
	char what[300];

	for (int i = 0; i < 3; i++) {
		char *end;

		errno = 0;
		number[i] = strtoull(at, &end, 10);
		if (errno || end == at || *at < '0' || *at > '9' || *end != (i < 2 ? ',' : '\0') ||
		    number[i] > MACHINE_SIZE_MAX)
			return ap__fail(err, -EINVAL, AP_CAUSE_SYNTAX,
					"'%s' is not SIZE,WAYS,LINE in bytes", text);
		at = end + 1;
	}
	if (number[2] != m->memory.line)
		return ap__fail(err, -EINVAL, AP_CAUSE_BAD_VALUE,
				"'%s': lines of %llu bytes, and %s has %u; the model has one size "
				"for all caches",
				text, number[2], m->name, m->memory.line);
	with.cache[id].size = number[0];
	with.cache[id].ways = (u32)number[1];
	if (machine_check(&with, &why))
		return ap__fail(err, -EINVAL, AP_CAUSE_BAD_VALUE, "'%s': %s", text,
				ap__machine_mistake_text(&why, what, sizeof(what)));
	*m = with;
	return 0;
}

void ap__model_machines(void (*fn)(const struct machine *m, void *data), void *data)
{
	struct machine m;

	for (const struct machine_shipped *s = machines_shipped; s->name; s++) {
		read_shipped(&m, s);
		fn(&m, data);
	}
	if (!ap__model_machine(&m, MACHINE_HOST, NULL))
		fn(&m, data);
}
