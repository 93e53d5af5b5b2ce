#include "cli/report/uncounted.h"

#include "lib/command.h"

struct uncounted_printer {
	const struct command *cmd;
	FILE *out;
	const char *mark;
	u32 named;
};

static int print_program(const struct ap_uncounted *u, void *data)
{
	struct uncounted_printer *t = data;

	t->named++;
	fprintf(t->out, "%sanyperf %s: not counted: %s (%s, pid %d)\n", t->mark, t->cmd->name,
		u->path, u->why, (int)u->pid);
	return 0;
}

void uncounted_text(const struct command *cmd, struct ap_machine *m, FILE *out, const char *mark)
{
	const struct guest_segment *segment = ap__machine_segment(m);
	struct uncounted_printer text = {cmd, out, mark, 0};
	unsigned int total;
	u32 lost;

	(void)ap_machine_uncounted(m, print_program, &text, &total);
	if (total > text.named)
		fprintf(out, "%sanyperf %s: not counted: %u more programs\n", mark, cmd->name,
			total - text.named);
	lost = segment ? __atomic_load_n(&segment->head->lost, __ATOMIC_RELAXED) : 0;
	if (lost)
		fprintf(out, "%sanyperf %s: not counted: %u threads, beyond the %u at a time\n",
			mark, cmd->name, lost, segment->config.slots);
}

static int print_json(const struct ap_uncounted *u, void *data)
{
	struct json *j = data;

	json_object(j, NULL);
	json_u64(j, "pid", (u64)u->pid);
	json_str(j, "path", u->path);
	json_str(j, "why", u->why);
	json_end(j);
	return 0;
}

void uncounted_json(struct json *j, struct ap_machine *m)
{
	unsigned int total;

	json_array(j, "uncounted");
	(void)ap_machine_uncounted(m, print_json, j, &total);
	json_end(j);
}
