/* Holds a machine against the limits of its fields, and against sense. */
#include <asm/errno.h>

#include "model/machine-table-priv.h"

int machine_wrong(struct machine_mistake *why, enum machine_fault fault, const struct subject *s,
		  const struct field *f)
{
	*why = (struct machine_mistake){.fault = fault,
					.subject = s ? s->name : "",
					.field = f   ? f->name
						 : s ? s->of
						     : ""};
	if (f) {
		why->min = f->min;
		why->max = f->max;
	}
	return -EBADMSG;
}

static bool power_of_two(u64 n)
{
	return n && !(n & (n - 1));
}

/* @entries in sets of @ways. */
static int check_sets(struct machine_mistake *why, u32 subject, u64 entries, u32 ways,
		      const char *field)
{
	int rc;

	if (ways && ways <= entries && entries % ways == 0)
		return 0;
	rc = machine_wrong(why, MACHINE_GEOMETRY, &machine_subjects[subject], NULL);
	why->field = field;
	why->value = entries;
	why->max = ways;
	return rc;
}

static int check_cache(const struct machine *m, u32 id, struct machine_mistake *why)
{
	const struct machine_cache *c = &m->cache[id];
	const struct subject *s = &machine_subjects[SUBJECT_CACHE + id];

	if (c->size % m->memory.line) {
		machine_wrong(why, MACHINE_GEOMETRY, s, &s->fields[0]);
		why->value = c->size;
		why->max = m->memory.line;
		return -EBADMSG;
	}
	if (c->policy == MACHINE_PLRU && c->ways > 64) {
		machine_wrong(why, MACHINE_OUT_OF_RANGE, s, &s->fields[1]);
		why->max = 64;
		return -EBADMSG;
	}
	if (c->prefetch & MACHINE_STRIDE && id != MACHINE_L1D)
		return machine_wrong(why, MACHINE_NOT_HERE, s, &s->fields[5]);
	if (c->inclusion != MACHINE_NEITHER && id <= MACHINE_L1D)
		return machine_wrong(why, MACHINE_NOT_HERE, s, &s->fields[4]);
	if (c->inclusion == MACHINE_VICTIM && (id != MACHINE_LL || !m->cache[MACHINE_L2].size))
		return machine_wrong(why, MACHINE_NOT_HERE, s, &s->fields[4]);
	if (c->no_allocate && id != MACHINE_L1D)
		return machine_wrong(why, MACHINE_NOT_HERE, s, &s->fields[6]);
	return check_sets(why, SUBJECT_CACHE + id, c->size / m->memory.line, c->ways, "ways");
}

static int check_tlb(const struct machine *m, u32 id, struct machine_mistake *why)
{
	const struct machine_tlb *t = &m->tlb[id];
	int rc;

	if (id == MACHINE_TLB2 && t->huge_entries)
		return machine_wrong(why, MACHINE_NOT_HERE, &machine_subjects[SUBJECT_TLB + id],
				     &machine_subjects[SUBJECT_TLB].fields[2]);
	rc = check_sets(why, SUBJECT_TLB + id, t->entries, t->ways, "ways");
	if (!rc && (t->huge_entries || t->huge_ways))
		rc = check_sets(why, SUBJECT_TLB + id, t->huge_entries, t->huge_ways, "huge-ways");
	return rc;
}

static int check_together(const struct machine *m, struct machine_mistake *why)
{
	const struct subject *memory = &machine_subjects[SUBJECT_MEMORY],
			     *branch = &machine_subjects[SUBJECT_BRANCH];
	int rc;

	for (u32 i = 0; i < 3; i++)
		if (!power_of_two(machine_value(m, memory, &memory->fields[i])))
			return machine_wrong(why, MACHINE_NOT_A_POWER, memory, &memory->fields[i]);
	if (!power_of_two(m->branch.entries))
		return machine_wrong(why, MACHINE_NOT_A_POWER, branch, &branch->fields[1]);
	if (m->branch.targets == MACHINE_ITTAGE && m->branch.direction != MACHINE_TAGE)
		return machine_wrong(why, MACHINE_NOT_HERE, branch, &branch->fields[7]);
	if (m->branch.targets != MACHINE_ITTAGE && !power_of_two(m->branch.indirect))
		return machine_wrong(why, MACHINE_NOT_A_POWER, branch, &branch->fields[6]);
	if (m->branch.direction == MACHINE_GSHARE && m->branch.history > 32) {
		machine_wrong(why, MACHINE_OUT_OF_RANGE, branch, &branch->fields[2]);
		why->max = 32;
		return -EBADMSG;
	}
	if (m->branch.direction == MACHINE_TAGE && m->branch.history < 8) {
		machine_wrong(why, MACHINE_OUT_OF_RANGE, branch, &branch->fields[2]);
		why->min = 8;
		return -EBADMSG;
	}
	if (m->memory.crossing == MACHINE_ONCE && m->cache[MACHINE_L2].size)
		return machine_wrong(why, MACHINE_NOT_HERE, memory, &memory->fields[5]);
	rc = check_sets(why, SUBJECT_BRANCH, m->branch.btb, m->branch.btb_ways, "btb-ways");
	for (u32 id = 0; !rc && id < MACHINE_CACHES; id++)
		if (id != MACHINE_L2 || m->cache[id].size)
			rc = check_cache(m, id, why);
	for (u32 id = 0; !rc && id < MACHINE_TLBS; id++)
		if (id != MACHINE_TLB2 || m->tlb[id].entries)
			rc = check_tlb(m, id, why);
	return rc;
}

static int check_text(const struct machine *m, const struct subject *s, struct machine_mistake *why)
{
	const char *text = (const char *)m + s->offset;
	u32 n = 0;

	/* What the parser would read: it is printed to terminals, and into files. */
	while (n < s->fields->bytes && text[n] >= ' ' && text[n] <= '~' && text[n] != '#')
		n++;
	if (n == s->fields->bytes)
		return machine_wrong(why, MACHINE_TOO_LONG, s, NULL);
	if (text[n]) {
		machine_wrong(why, MACHINE_BAD_CHARACTER, s, NULL);
		why->value = (u8)text[n];
		return -EBADMSG;
	}
	if (!n || text[0] == ' ' || text[n - 1] == ' ')
		return machine_wrong(why, MACHINE_NO_VALUE, s, NULL);
	for (u32 i = 0; s == machine_subjects && i < n; i++)
		if (text[i] == ' ' || text[i] == '/') {
			machine_wrong(why, MACHINE_BAD_CHARACTER, s, NULL);
			why->value = (u8)text[i];
			return -EBADMSG;
		}
	return 0;
}

int machine_check(const struct machine *m, struct machine_mistake *why)
{
	if (m->version != MACHINE_VERSION || m->size != sizeof(*m))
		return machine_wrong(why, MACHINE_NO_VERSION, NULL, NULL);
	for (size_t i = 0; i < SUBJECTS; i++) {
		const struct subject *s = &machine_subjects[i];
		int rc = s->fields->kind == FIELD_TEXT ? check_text(m, s, why) : 0;

		if (rc)
			return rc;
		for (const struct field *f = s->fields; f->name && f->kind != FIELD_TEXT; f++) {
			u64 value = machine_lacks(m, s) ? f->min : machine_value(m, s, f);

			if (value < f->min || value > f->max) {
				machine_wrong(why, MACHINE_OUT_OF_RANGE, s, f);
				why->value = value;
				return -EBADMSG;
			}
		}
	}
	return check_together(m, why);
}
