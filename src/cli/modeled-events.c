#include "cli/modeled-events.h"

#include <anyperf/machine.h>
#include <stdio.h>
#include <string.h>

#include "abi/perf.h"
#include "lib/machine/machine-file.h"
#include "lib/machine/model-windows.h"

const char *const model_beside_words[] = {"no", "auto", "yes", NULL};

unsigned int model_beside_flags(const char *word)
{
	if (word && !strcmp(word, "yes"))
		return AP_VIRTUAL_MODEL_BESIDE;
	return word && !strcmp(word, "no") ? 0 : AP_VIRTUAL_MODEL_BESIDE_AUTO;
}

int model_windows_check(const struct command *cmd, const char *text)
{
	const char *why;
	u32 window, every;

	if (!ap__model_windows(text, &window, &every, &why))
		return 0;
	return command_error(cmd, "--model-windows: '%s' %s", text, why);
}

int modeled_check(const struct command *cmd, const char *name)
{
	struct ap_error err;
	struct machine m;
	char text[1100];

	if (!name || !ap__model_chosen(&m, name, &err))
		return 0;
	if (*name == '-')
		return command_error(cmd,
				     "--machine: what comes next is its name, as host, and not "
				     "the option '%s'",
				     name);
	return command_error(cmd, "--machine: %s", ap_error_text(&err, text, sizeof(text)));
}

/*
 * Intel's select codes of instructions and branches, and AMD's of those, of returns and of
 * conditional branches: what the translator counts by raw code. Intel's 0xd1 has a umask.
 */
static bool is_counted_code(u64 code)
{
	switch (code & 0xff) {
	case 0x00: return code >> 8 & 1;
	case 0xc0:
	case 0xc2:
	case 0xc4:
	case 0xc8: return true;
	case 0xd1: return !(code & 0xff00);
	default: return false;
	}
}

bool modeled_event(const struct perf_event_attr *attr)
{
	/* The upper half may say of which PMU. */
	u64 id = attr->config & 0xffffffff;

	switch (attr->type) {
	case PERF_TYPE_HARDWARE:
		return id != PERF_COUNT_HW_INSTRUCTIONS && id != PERF_COUNT_HW_BRANCH_INSTRUCTIONS;
	case PERF_TYPE_HW_CACHE:
	case PE_TYPE_IBS: return true;
	case PERF_TYPE_RAW: return !is_counted_code(id);
	default: return false;
	}
}

static bool is_counted(const struct report *r, u32 event)
{
	if (!r->events[event].modeled || r->events[event].refused)
		return false;
	for (u32 u = 0; u < r->nr_units; u++)
		if (report_at(r, event, u)->status == AP_STATUS_OK)
			return true;
	return r->part == PART_INTERVAL;
}

bool modeled_any(const struct report *r)
{
	for (u32 e = 0; e < r->nr_events; e++)
		if (is_counted(r, e))
			return true;
	return false;
}

/* doc/model.md, "How far off it is" and the table of estimates. */
static const char how_far_off[] =
	"; cycles mostly within 10 %, branch misses within 30 %, far off for what is rare "
	"or few of many processes do";

char *modeled_note(const struct report *r, const struct report_style *style, char *buf, size_t size)
{
	bool estimated = style->windows && style->estimated;
	size_t len = (size_t)snprintf(buf, size,
				      estimated ? "modeled: %s, estimated from windows (%s): "
						: "modeled: %s: ",
				      style->machine, style->windows);
	u32 named = 0;

	for (u32 e = 0; e < r->nr_events && len < size; e++) {
		if (!is_counted(r, e))
			continue;
		/* A long list says no more than its beginning. */
		if (named == 6) {
			len += (size_t)snprintf(buf + len, size - len, " ...");
			break;
		}
		len += (size_t)snprintf(buf + len, size - len, "%s%s", named++ ? ", " : "",
					r->events[e].name);
	}
	if (estimated && len < size)
		snprintf(buf + len, size - len, "%s", how_far_off);
	return buf;
}
