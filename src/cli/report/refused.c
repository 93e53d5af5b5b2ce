#include "cli/report/refused.h"

#include <ctype.h>
#include <string.h>

#include <anyperf/anyperf.h>

#include "lib/command.h"
#include "lib/refusal/fail.h"

void guest_comm(const char written[16], char comm[16])
{
	memcpy(comm, written, 15);
	comm[15] = 0;
	for (char *p = comm; *p; p++)
		if (iscntrl((unsigned char)*p))
			*p = '?';
}

static u32 refused_calls(struct ap_machine *machine)
{
	const struct guest_segment *segment = ap__machine_segment(machine);

	return segment ? ap__segment_refused(segment) : 0;
}

/* A refusal as it is told. */
struct told {
	u32 pid, count;
	char comm[16];
	char event[256]; /* "": it was not about an event */
	struct ap_error error;
};

static struct told tell(const struct meter_refusal *r)
{
	struct told t = {.pid = r->pid, .count = r->count};

	guest_comm(r->comm, t.comm);
	if (r->has_event)
		ap_attr_describe((const struct perf_event_attr *)&r->attr, NULL, t.event,
				 sizeof(t.event));
	ap__tell(&t.error, t.event, &r->refusal);
	return t;
}

/* A program that is refused an event tries others like it, mostly for the same reason. */
static bool same_but_event(const struct told *a, const struct told *b)
{
	return !strcmp(a->comm, b->comm) && a->error.code == b->error.code &&
	       !strcmp(a->error.why + a->error.about, b->error.why + b->error.about) &&
	       !strcmp(a->error.remedy, b->error.remedy);
}

/* Attrs may differ in what no name shows. */
static bool same(const struct told *a, const struct told *b)
{
	return !strcmp(a->event, b->event) && same_but_event(a, b);
}

/* All that the list has, each different one once, in the order in which they came. */
static u32 gather(struct ap_machine *machine, struct told *told)
{
	const struct guest_segment *segment = ap__machine_segment(machine);
	struct meter_refusal r;
	u32 n = 0;

	if (!refused_calls(machine))
		return 0;
	for (u32 i = 0; i < METER_REFUSALS; i++) {
		u32 at = 0;

		if (!ap__segment_refusal_at(segment, i, &r))
			continue;
		told[n] = tell(&r);
		while (!same(&told[at], &told[n]))
			at++;
		if (at < n)
			told[at].count += told[n].count;
		else
			n++;
	}
	return n;
}

/*
 * The line of told[i] and of those behind it that differ in the event alone, which are then told.
 */
static void tell_line(struct told *told, u32 i, u32 n, FILE *out)
{
	char events[600], text[1100];
	u32 count = 0;
	size_t len = 0;

	for (u32 k = i; k < n; k++) {
		if (!told[k].count || !same_but_event(&told[i], &told[k]))
			continue;
		count += told[k].count;
		if (len + sizeof(told[k].event) + 2 < sizeof(events))
			len += (size_t)snprintf(events + len, sizeof(events) - len, "%s%s",
						len ? ", " : "", told[k].event);
		if (k > i)
			told[k].count = 0;
	}
	ap_error_text(&told[i].error, text, sizeof(text));
	fprintf(out, "%s[%u]: %s%s%s", told[i].comm, told[i].pid, len ? events : "",
		len ? ": " : "", text + told[i].error.about);
	if (count > 1)
		fprintf(out, " (%u times)", count);
	putc('\n', out);
}

void refused_text(const struct command *cmd, struct ap_machine *machine, FILE *out,
		  const char *mark)
{
	static struct told told[METER_REFUSALS];
	u32 n = gather(machine, told), total = refused_calls(machine), named = 0;

	for (u32 i = 0; i < n; i++)
		named += told[i].count;
	for (u32 i = 0; i < n; i++) {
		if (!told[i].count)
			continue;
		fprintf(out, "%sanyperf %s: ", mark, cmd->name);
		tell_line(told, i, n, out);
	}
	if (total > named)
		fprintf(out, "%sanyperf %s: %u more calls were refused\n", mark, cmd->name,
			total - named);
}

void refused_hint(const struct command *cmd, struct ap_machine *machine, FILE *out)
{
	u32 total = refused_calls(machine);

	if (total)
		fprintf(out,
			"anyperf %s: %u perf call%s refused; `anyperf %s -v` says which and why\n",
			cmd->name, total, total == 1 ? " was" : "s were", cmd->name);
}

void refused_json(struct json *j, struct ap_machine *machine)
{
	static struct told told[METER_REFUSALS];
	u32 n = gather(machine, told);

	json_u64(j, "refused_calls", refused_calls(machine));
	json_array(j, "refused");
	for (u32 i = 0; i < n; i++) {
		const struct told *t = &told[i];

		json_object(j, NULL);
		json_u64(j, "pid", t->pid);
		json_str(j, "comm", t->comm);
		if (*t->event)
			json_str(j, "event", t->event);
		json_u64(j, "calls", t->count);
		json_object(j, "reason");
		json_str(j, "cause", ap_cause_name(t->error.cause));
		json_s64(j, "errno", -t->error.code);
		json_str(j, "why", t->error.why);
		json_str(j, "remedy", t->error.remedy);
		json_end(j);
		json_end(j);
	}
	json_end(j);
}
