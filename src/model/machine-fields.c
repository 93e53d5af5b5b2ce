/*
 * The table of what a machine consists of: which subjects and fields there are, what they may be
 * and where they are kept. It reads, checks and shows them, so these cannot drift.
 */
#include "model/machine-table-priv.h"

#define MEMBER(type, member) \
	.bytes = sizeof(((struct type *)0)->member), .offset = offsetof(struct type, member)

static const char *const policies[] = {"lru", "plru", NULL};
static const char *const inclusions[] = {"neither", "inclusive", "victim", NULL};
static const char *const prefetches[] = {"next-line", "stride", NULL};
static const char *const stores[] = {"allocate", "no-allocate", NULL};
static const char *const crossings[] = {"each", "once", NULL};
static const char *const directions[] = {"bimodal", "gshare", "tage", NULL};
static const char *const targets[] = {"path", "ittage", NULL};

/* clang-format off */
static const struct field name_fields[] = {
	{"", FIELD_TEXT, .bytes = MACHINE_NAME, .must = true},
	{0},
};
static const struct field about_fields[] = {
	{"", FIELD_TEXT, .bytes = MACHINE_ABOUT, .must = true},
	{0},
};
static const struct field memory_fields[] = {
	{"line", FIELD_SIZE, MEMBER(machine_memory, line), .preset = 64, .min = 16, .max = 1024},
	{"page", FIELD_SIZE, MEMBER(machine_memory, page), .preset = 4096, .min = 4096, .max = 65536},
	{"huge", FIELD_SIZE, MEMBER(machine_memory, huge), .preset = 2 << 20, .min = 1 << 20, .max = 1 << 30},
	{"latency", FIELD_NUMBER, MEMBER(machine_memory, latency), .preset = 200, .min = 1, .max = 100000},
	{"snoop", FIELD_NUMBER, MEMBER(machine_memory, snoop), .preset = 100, .min = 1, .max = 100000},
	{"crossing", FIELD_WORD, MEMBER(machine_memory, crossing), .max = 1, .words = crossings},
	{0},
};
static const struct field cache_fields[] = {
	{"size", FIELD_SIZE, MEMBER(machine_cache, size), .must = true, .min = 16, .max = MACHINE_SIZE_MAX},
	{"ways", FIELD_NUMBER, MEMBER(machine_cache, ways), .must = true, .min = 1, .max = MACHINE_WAYS_MAX},
	{"latency", FIELD_NUMBER, MEMBER(machine_cache, latency), .preset = 1, .min = 1, .max = 100000},
	{"policy", FIELD_WORD, MEMBER(machine_cache, policy), .max = 1, .words = policies},
	{"inclusion", FIELD_WORD, MEMBER(machine_cache, inclusion), .max = 2, .words = inclusions},
	{"prefetch", FIELD_SET, MEMBER(machine_cache, prefetch), .max = 3, .words = prefetches},
	{"stores", FIELD_WORD, MEMBER(machine_cache, no_allocate), .max = 1, .words = stores},
	{0},
};
static const struct field tlb_fields[] = {
	{"entries", FIELD_NUMBER, MEMBER(machine_tlb, entries), .must = true, .min = 1, .max = 65536},
	{"ways", FIELD_NUMBER, MEMBER(machine_tlb, ways), .must = true, .min = 1, .max = MACHINE_WAYS_MAX},
	{"huge-entries", FIELD_NUMBER, MEMBER(machine_tlb, huge_entries), .max = 65536},
	{"huge-ways", FIELD_NUMBER, MEMBER(machine_tlb, huge_ways), .max = MACHINE_WAYS_MAX},
	{"latency", FIELD_NUMBER, MEMBER(machine_tlb, latency), .max = 100000},
	{0},
};
static const struct field branch_fields[] = {
	{"direction", FIELD_WORD, MEMBER(machine_branch, direction), .must = true, .max = 2, .words = directions},
	{"entries", FIELD_NUMBER, MEMBER(machine_branch, entries), .must = true, .min = 16, .max = 1 << 20},
	{"history", FIELD_NUMBER, MEMBER(machine_branch, history), .max = 128},
	{"btb", FIELD_NUMBER, MEMBER(machine_branch, btb), .preset = 4096, .min = 16, .max = 1 << 20},
	{"btb-ways", FIELD_NUMBER, MEMBER(machine_branch, btb_ways), .preset = 4, .min = 1, .max = 64},
	{"returns", FIELD_NUMBER, MEMBER(machine_branch, returns), .preset = 16, .min = 1, .max = 256},
	{"indirect", FIELD_NUMBER, MEMBER(machine_branch, indirect), .preset = 512, .min = 16, .max = 1 << 20},
	{"targets", FIELD_WORD, MEMBER(machine_branch, targets), .max = 1, .words = targets},
	{0},
};
static const struct field core_fields[] = {
	{"width", FIELD_NUMBER, MEMBER(machine_core, width), .must = true, .min = 1, .max = 64},
	{"window", FIELD_NUMBER, MEMBER(machine_core, window), .preset = 128, .min = 1, .max = 65536},
	{"dependence", FIELD_NUMBER, MEMBER(machine_core, dependence), .max = 100},
	{"mhz", FIELD_NUMBER, MEMBER(machine_core, mhz), .preset = 2000, .min = 1, .max = 100000},
	{"bus-mhz", FIELD_NUMBER, MEMBER(machine_core, bus_mhz), .preset = 100, .min = 1, .max = 100000},
	{0},
};
#define PENALTY(text, member) {text, FIELD_NUMBER, MEMBER(machine_penalty, member), .max = 100000}
static const struct field penalty_fields[] = {
	PENALTY("mispredict", mispredict),
	PENALTY("btb", btb),
	PENALTY("l2", l2),
	PENALTY("ll", ll),
	PENALTY("memory", memory),
	PENALTY("fetch-l2", fetch_l2),
	PENALTY("fetch-ll", fetch_ll),
	PENALTY("fetch-memory", fetch_memory),
	{"overlap", FIELD_NUMBER, MEMBER(machine_penalty, overlap), .max = 100},
	PENALTY("tlb2", tlb2),
	PENALTY("walk", walk),
	{0},
};
static const struct field class_fields[] = {
	{"uops", FIELD_NUMBER, MEMBER(machine_class, uops), .preset = 1, .min = 0, .max = 10000},
	{"throughput", FIELD_TICKS, MEMBER(machine_class, throughput), .max = 1000000},
	{"latency", FIELD_TICKS, MEMBER(machine_class, latency), .max = 1000000},
	{0},
};

#define CLASS(text, id) \
	{"class", text, offsetof(struct machine, class[COST_##id]), class_fields, false}
const struct subject machine_subjects[SUBJECTS] = {
	{"machine", "", offsetof(struct machine, name), name_fields, true},
	{"about", "", offsetof(struct machine, about), about_fields, true},
	{"memory", "", offsetof(struct machine, memory), memory_fields, false},
	{"l1i", "", offsetof(struct machine, cache[MACHINE_L1I]), cache_fields, true},
	{"l1d", "", offsetof(struct machine, cache[MACHINE_L1D]), cache_fields, true},
	{"l2", "", offsetof(struct machine, cache[MACHINE_L2]), cache_fields, false},
	{"ll", "", offsetof(struct machine, cache[MACHINE_LL]), cache_fields, true},
	{"itlb", "", offsetof(struct machine, tlb[MACHINE_ITLB]), tlb_fields, true},
	{"dtlb", "", offsetof(struct machine, tlb[MACHINE_DTLB]), tlb_fields, true},
	{"tlb2", "", offsetof(struct machine, tlb[MACHINE_TLB2]), tlb_fields, false},
	{"branch", "", offsetof(struct machine, branch), branch_fields, true},
	{"core", "", offsetof(struct machine, core), core_fields, true},
	{"penalty", "", offsetof(struct machine, penalty), penalty_fields, false},
	CLASS("nop", NOP), CLASS("int", INT), CLASS("lea", LEA), CLASS("shift", SHIFT),
	CLASS("int-mul", INT_MUL), CLASS("int-div", INT_DIV), CLASS("load", LOAD),
	CLASS("store", STORE), CLASS("branch", BRANCH), CLASS("call", CALL), CLASS("vec", VEC),
	CLASS("shuffle", SHUFFLE), CLASS("fp-add", FP_ADD), CLASS("fp-mul", FP_MUL),
	CLASS("fp-div", FP_DIV), CLASS("convert", CONVERT), CLASS("crypto", CRYPTO),
	CLASS("x87", X87), CLASS("gather", GATHER), CLASS("string", STRING),
	CLASS("atomic", ATOMIC), CLASS("fence", FENCE), CLASS("system", SYSTEM),
};
/* clang-format on */

const char *machine_cache_name(enum machine_cache_id id)
{
	return machine_subjects[SUBJECT_CACHE + id].name;
}

const char *cost_class_name(enum cost_class class)
{
	return machine_subjects[SUBJECT_CLASS + class].of;
}

bool machine_lacks(const struct machine *m, const struct subject *s)
{
	return (s == &machine_subjects[SUBJECT_CACHE + MACHINE_L2] && !m->cache[MACHINE_L2].size) ||
	       (s == &machine_subjects[SUBJECT_TLB + MACHINE_TLB2] &&
		!m->tlb[MACHINE_TLB2].entries);
}

/* Text made from the left; cut at the end. */
struct maker {
	char *to;
	size_t n, size;
};

static void put(struct maker *out, const char *s)
{
	while (*s && out->n + 1 < out->size)
		out->to[out->n++] = *s++;
	out->to[out->n] = '\0';
}

static void put_number(struct maker *out, u64 value)
{
	char text[21];
	u32 i = sizeof(text) - 1;

	text[i] = '\0';
	do {
		text[--i] = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	put(out, text + i);
}

static void put_size(struct maker *out, u64 value)
{
	u32 shift = 0;

	while (shift < 30 && value && value % 1024 == 0) {
		value /= 1024;
		shift += 10;
	}
	put_number(out, value);
	put(out, (const char *const[]){"", "K", "M", "G"}[shift / 10]);
}

static void put_ticks(struct maker *out, u64 value)
{
	put_number(out, value / MACHINE_TICKS);
	if (value % MACHINE_TICKS) {
		char decimals[4] = {'.', (char)('0' + value / 10 % 10), (char)('0' + value % 10)};

		if (decimals[2] == '0')
			decimals[2] = '\0';
		put(out, decimals);
	}
}

static void put_set(struct maker *out, const struct field *f, u64 value)
{
	bool some = false;

	for (u32 i = 0; f->words[i]; i++)
		if (value & BIT(i)) {
			put(out, some ? "," : "");
			put(out, f->words[i]);
			some = true;
		}
	if (!some)
		put(out, "none");
}

bool machine_next_field(const struct machine *m, u32 *at, struct machine_field *field)
{
	u32 subject = *at >> 8, index = *at & 0xff;
	struct maker out = {.to = field->value, .size = sizeof(field->value)};
	const struct field *f;
	const struct subject *s;
	u64 value;

	while (subject < SUBJECTS && machine_lacks(m, &machine_subjects[subject]))
		subject++;
	if (subject >= SUBJECTS)
		return false;
	s = &machine_subjects[subject];
	f = &s->fields[index];
	field->subject = s->name;
	field->of = s->of;
	field->name = f->name;
	field->scale = f->kind == FIELD_NUMBER || f->kind == FIELD_SIZE ? 1
		       : f->kind == FIELD_TICKS                         ? MACHINE_TICKS
									: 0;
	field->number = 0;
	field->ends = !f[1].name;
	*at = field->ends ? (subject + 1) << 8 : (subject << 8) + index + 1;
	if (f->kind == FIELD_TEXT) {
		put(&out, (const char *)m + s->offset);
		return true;
	}
	value = machine_value(m, s, f);
	field->number = value;
	if (f->kind == FIELD_WORD)
		put(&out, f->words[value]);
	else if (f->kind == FIELD_SET)
		put_set(&out, f, value);
	else if (f->kind == FIELD_SIZE)
		put_size(&out, value);
	else if (f->kind == FIELD_TICKS)
		put_ticks(&out, value);
	else
		put_number(&out, value);
	return true;
}
