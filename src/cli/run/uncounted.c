#include "cli/run/uncounted.h"

void uncounted_text(const struct command *cmd, const struct guest_tree *tree, FILE *out,
		    const char *mark)
{
	u32 total = guest_tree_uncounted(tree), named = 0;
	u32 lost = __atomic_load_n(&tree->head->lost, __ATOMIC_RELAXED);
	struct meter_uncounted u;

	for (u32 i = 0; i < METER_TREE_UNCOUNTED; i++) {
		if (!guest_tree_uncounted_at(tree, i, &u))
			continue;
		named++;
		fprintf(out, "%sanyperf %s: not counted: %s (%s, pid %u)\n", mark, cmd->name,
			u.path, u.why, u.pid);
	}
	if (total > named)
		fprintf(out, "%sanyperf %s: not counted: %u more programs\n", mark, cmd->name,
			total - named);
	if (lost)
		fprintf(out, "%sanyperf %s: not counted: %u threads, beyond the %u at a time\n",
			mark, cmd->name, lost, tree->slots);
}

void uncounted_json(struct json *j, const struct guest_tree *tree)
{
	struct meter_uncounted u;

	json_array(j, "uncounted");
	for (u32 i = 0; i < METER_TREE_UNCOUNTED; i++) {
		if (!guest_tree_uncounted_at(tree, i, &u))
			continue;
		json_object(j, NULL);
		json_u64(j, "pid", u.pid);
		json_str(j, "path", u.path);
		json_str(j, "why", u.why);
		json_end(j);
	}
	json_end(j);
}
