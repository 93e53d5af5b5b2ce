/*
 * PMU/term=value,.../: perf's own terms, the fields of the PMU's format directory, the events of
 * its events directory [FILE-11, FILE-12]. Only the files that a description names are opened; the
 * directories are read only to say what would have been right.
 */
#include "lib/spec/spec-priv.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/spec/names.h"
#include "lib/spec/nearest.h"

/* A name that may stand as one component of a path. */
static bool is_name(const char *s)
{
	return *s && *s != '.' && !strchr(s, '/') && strlen(s) < 200;
}

static u64 *config_word(struct pe_attr *attr, const char *name)
{
	if (strcmp(name, "config") == 0)
		return &attr->config;
	if (strcmp(name, "config1") == 0)
		return &attr->config1;
	if (strcmp(name, "config2") == 0)
		return &attr->config2;
	if (strcmp(name, "config3") == 0)
		return &attr->config3;
	if (strcmp(name, "config4") == 0)
		return &attr->config4;
	return NULL;
}

/*
 * A format file: "config1:1,6-10,44". Its bits are filled from @value's low to high. Returns the
 * number of bits, or -EINVAL if the file says something else.
 */
static int format_fill(struct pe_attr *attr, char *format, u64 value)
{
	char *bits = strchr(format, ':'), *end;
	unsigned int used = 0;
	u64 *word;

	if (!bits)
		return -EINVAL;
	*bits++ = '\0';
	word = config_word(attr, format);
	if (!word)
		return -EINVAL;
	for (;;) {
		unsigned long from = strtoul(bits, &end, 10), to = from;

		if (end == bits)
			return -EINVAL;
		if (*end == '-') {
			bits = end + 1;
			to = strtoul(bits, &end, 10);
			if (end == bits)
				return -EINVAL;
		}
		if (from > to || to > 63)
			return -EINVAL;
		for (unsigned long b = from; b <= to; b++, used++) {
			u64 bit = used < 64 ? value >> used & 1 : 0;

			*word = (*word & ~BIT(b)) | bit << b;
		}
		if (!*end)
			return (int)used;
		if (*end != ',')
			return -EINVAL;
		bits = end + 1;
	}
}

int ap__term_set(struct ap_machine *m, const char *pmu, struct pe_attr *attr, const char *term,
		 u64 value)
{
	char format[256];
	int bits;

	if (ap__slurp(m, format, sizeof(format), AP__DEVICES "/%s/format/%s", pmu, term) < 0)
		return -ENOENT;
	bits = format_fill(attr, format, value);
	return bits < 0 ? bits : 0;
}

/*
 * caps/<term>_max bounds a term where the PMU has such a file: arm64's threshold [ARM-21, ARM-24].
 */
static int check_max(struct ap__parse *p, const char *pmu, const char *term, u64 value)
{
	long long max;

	if (ap__slurp_number(p->m, &max, AP__DEVICES "/%s/caps/%s_max", pmu, term) || max < 0)
		return 0;
	if (value <= (u64)max)
		return 0;
	if (max == 0)
		return ap__fail(
			p->err, -EINVAL, AP_CAUSE_UNSUPPORTED,
			"%s=%llu: this CPU cannot do it: %s/caps/%s_max is 0%s", term,
			(unsigned long long)value, pmu, term,
			strcmp(term, "threshold") == 0 ? " (it needs FEAT_PMUv3_TH, Armv8.8)" : "");
	ap__fail(p->err, -EINVAL, AP_CAUSE_BAD_VALUE,
		 "%s=%llu is above the highest that %s takes, %lld (%s/caps/%s_max)", term,
		 (unsigned long long)value, pmu, max, pmu, term);
	return ap__remedy(p->err, -EINVAL, "use a %s of at most %lld", term, max);
}

int ap__format_set(struct ap__parse *p, const char *pmu, struct pe_attr *attr, const char *term,
		   u64 value)
{
	char format[256];
	int bits, r;
	ssize_t n;

	if (!is_name(term))
		return -ENOENT;
	n = ap__slurp(p->m, format, sizeof(format), AP__DEVICES "/%s/format/%s", pmu, term);
	if (n == -EACCES)
		return ap__fail(p->err, -EACCES, AP_CAUSE_FILE,
				"the format of %s/%s/ cannot be read", pmu, term);
	if (n < 0)
		return -ENOENT;
	r = check_max(p, pmu, term, value);
	if (r)
		return r;
	bits = format_fill(attr, format, value);
	if (bits < 0)
		return ap__fail(p->err, -EINVAL, AP_CAUSE_OTHER,
				"the format file of %s/%s/ cannot be understood", pmu, term);
	if (bits < 64 && value >> bits) {
		ap__fail(p->err, -EINVAL, AP_CAUSE_BAD_VALUE,
			 "%s=%#llx does not fit: %s/%s/ has %d bit%s", term,
			 (unsigned long long)value, pmu, term, bits, bits == 1 ? "" : "s");
		return ap__remedy(p->err, -EINVAL, "the largest value is %#llx",
				  (unsigned long long)(BIT(bits) - 1));
	}
	return 0;
}

enum fixed {
	FIXED_CONFIG,
	FIXED_NAME,
	FIXED_PERIOD,
	FIXED_FREQ,
	FIXED_PERCORE,
	FIXED_INHERIT,
	FIXED_NO_INHERIT,
	FIXED_TIME,
	FIXED_CALL_GRAPH,
	FIXED_STACK_SIZE,
	FIXED_MAX_STACK,
	FIXED_BRANCH_TYPE,
	FIXED_OVERWRITE,
	FIXED_NO_OVERWRITE,
	FIXED_AUX_OUTPUT,
	FIXED_AUX_SAMPLE_SIZE,
	FIXED_METRIC_ID,
};

static const struct fixed_term {
	const char *name;
	enum fixed term;
	bool needs_value;
	u64 max; /* of a numeric value */
} fixed_terms[] = {
	{"config", FIXED_CONFIG, true, UINT64_MAX},
	{"config1", FIXED_CONFIG, true, UINT64_MAX},
	{"config2", FIXED_CONFIG, true, UINT64_MAX},
	{"config3", FIXED_CONFIG, true, UINT64_MAX},
	{"config4", FIXED_CONFIG, true, UINT64_MAX},
	{"name", FIXED_NAME, true, 0},
	{"period", FIXED_PERIOD, true, INT64_MAX},
	{"freq", FIXED_FREQ, true, INT64_MAX},
	{"percore", FIXED_PERCORE, false, 1},
	{"inherit", FIXED_INHERIT, false, 1},
	{"no-inherit", FIXED_NO_INHERIT, false, 1},
	{"time", FIXED_TIME, false, 1},
	{"call-graph", FIXED_CALL_GRAPH, true, 0},
	{"stack-size", FIXED_STACK_SIZE, true, 65528},
	{"max-stack", FIXED_MAX_STACK, true, UINT16_MAX},
	{"branch_type", FIXED_BRANCH_TYPE, true, 0},
	{"overwrite", FIXED_OVERWRITE, false, 1},
	{"no-overwrite", FIXED_NO_OVERWRITE, false, 1},
	{"aux-output", FIXED_AUX_OUTPUT, false, 1},
	{"aux-sample-size", FIXED_AUX_SAMPLE_SIZE, true, UINT32_MAX},
	{"metric-id", FIXED_METRIC_ID, true, 0},
};

static const struct {
	const char *name;
	u64 bit;
} branch_types[] = {
	{"u", PERF_SAMPLE_BRANCH_USER},
	{"k", PERF_SAMPLE_BRANCH_KERNEL},
	{"hv", PERF_SAMPLE_BRANCH_HV},
	{"any", PERF_SAMPLE_BRANCH_ANY},
	{"any_call", PERF_SAMPLE_BRANCH_ANY_CALL},
	{"any_ret", PERF_SAMPLE_BRANCH_ANY_RETURN},
	{"ind_call", PERF_SAMPLE_BRANCH_IND_CALL},
	{"ind_jmp", PERF_SAMPLE_BRANCH_IND_JUMP},
	{"abort_tx", PERF_SAMPLE_BRANCH_ABORT_TX},
	{"in_tx", PERF_SAMPLE_BRANCH_IN_TX},
	{"no_tx", PERF_SAMPLE_BRANCH_NO_TX},
	{"cond", PERF_SAMPLE_BRANCH_COND},
	{"call", PERF_SAMPLE_BRANCH_CALL},
	{"stack", PERF_SAMPLE_BRANCH_CALL_STACK},
	{"save_type", PERF_SAMPLE_BRANCH_TYPE_SAVE},
};

/* "any|u": the kinds are separated by bars, since commas separate terms. */
static int branch_type(struct ap__parse *p, struct ap__item *it, char *value)
{
	char *save, *w;

	for (w = strtok_r(value, "|", &save); w; w = strtok_r(NULL, "|", &save)) {
		size_t i;

		for (i = 0; i < ARRAY_SIZE(branch_types); i++)
			if (strcmp(branch_types[i].name, w) == 0)
				break;
		if (i == ARRAY_SIZE(branch_types))
			return ap__fail(
				p->err, -EINVAL, AP_CAUSE_BAD_VALUE,
				"branch_type=%.80s: there is no such kind of branch; the "
				"kinds are any, any_call, any_ret, ind_call, ind_jmp, cond, "
				"call, stack, abort_tx, in_tx, no_tx, save_type, u, k, hv",
				w);
		it->attr.branch_sample_type |= branch_types[i].bit;
	}
	it->attr.sample_type |= PERF_SAMPLE_BRANCH_STACK;
	return 0;
}

static int set_fixed(struct ap__parse *p, struct ap__item *it, const struct fixed_term *t,
		     char *value)
{
	struct pe_attr *a = &it->attr;
	u64 v = 1;

	if (t->needs_value && !(value && *value))
		return ap__fail(p->err, -EINVAL, AP_CAUSE_SYNTAX, "%s needs a value: %s=...",
				t->name, t->name);
	if (value && t->max && (ap__number(value, &v) || v > t->max))
		return ap__fail(p->err, -EINVAL, AP_CAUSE_BAD_VALUE,
				"%s=%.80s is not a number from 0 to %llu", t->name, value,
				(unsigned long long)t->max);
	switch (t->term) {
	case FIXED_CONFIG: *config_word(a, t->name) = v; break;
	case FIXED_NAME:
		it->pub.name = ap__specs_strdup(p->specs, value);
		it->pub.flags |= AP_SPEC_NAME_GIVEN;
		return it->pub.name ? 0 : ap__fail_memory(p->err);
	case FIXED_PERIOD:
	case FIXED_FREQ:
		a->sample_period = v;
		a->freq = t->term == FIXED_FREQ;
		it->pub.flags |= AP_SPEC_PERIOD_GIVEN;
		break;
	case FIXED_PERCORE:
		if (v)
			it->pub.flags |= AP_SPEC_PERCORE;
		break;
	case FIXED_INHERIT:
	case FIXED_NO_INHERIT:
		a->inherit = t->term == FIXED_INHERIT ? v : !v;
		it->pub.flags |= AP_SPEC_INHERIT_GIVEN;
		break;
	case FIXED_TIME:
		a->sample_type &= ~(u64)PERF_SAMPLE_TIME;
		a->sample_type |= v ? PERF_SAMPLE_TIME : 0;
		it->pub.flags |= AP_SPEC_TIME_GIVEN;
		break;
	case FIXED_CALL_GRAPH:
		it->pub.call_graph = ap__specs_strdup(p->specs, value);
		return it->pub.call_graph ? 0 : ap__fail_memory(p->err);
	case FIXED_STACK_SIZE: a->sample_stack_user = (u32)ALIGN_UP(v, 8); break;
	case FIXED_MAX_STACK: a->sample_max_stack = (u16)v; break;
	case FIXED_BRANCH_TYPE: return branch_type(p, it, value);
	case FIXED_OVERWRITE: a->write_backward = v; break;
	case FIXED_NO_OVERWRITE: a->write_backward = !v; break;
	case FIXED_AUX_OUTPUT: a->aux_output = v; break;
	case FIXED_AUX_SAMPLE_SIZE: a->aux_sample_size = (u32)v; break;
	case FIXED_METRIC_ID: break; /* perf's own bookkeeping; nothing to measure by */
	}
	return 0;
}

static int apply_terms(struct ap__parse *p, struct ap__item *it, const char *pmu, u32 type,
		       char *terms, const char *outer);

/* Whether @terms (of the event's user) sets @name itself. */
static bool terms_set(const char *terms, const char *name)
{
	size_t n = strlen(name);

	for (const char *s = terms; s && *s; s = strchr(s, ',') ? strchr(s, ',') + 1 : NULL)
		if (strncmp(s, name, n) == 0 && s[n] == '=')
			return true;
	return false;
}

static void alias_unit(struct ap__parse *p, struct ap__item *it, const char *pmu, const char *alias)
{
	char text[64], *end;
	double scale;

	if (ap__slurp(p->m, text, sizeof(text), AP__DEVICES "/%s/events/%s.unit", pmu, alias) > 0) {
		char *unit = ap__specs_strdup(p->specs, text);

		if (unit)
			it->pub.unit = unit;
	}
	if (ap__slurp(p->m, text, sizeof(text), AP__DEVICES "/%s/events/%s.scale", pmu, alias) >
	    0) {
		scale = strtod(text, &end);
		if (end != text)
			it->pub.scale = scale;
	}
}

/*
 * An event of the PMU's events directory: its terms in place of its name. -ENOENT: there is none.
 */
static int apply_alias(struct ap__parse *p, struct ap__item *it, const char *pmu, u32 type,
		       const char *alias, const char *outer)
{
	char terms[1024];
	ssize_t n;
	int r;

	if (!is_name(alias) || strchr(alias, '.') == alias)
		return -ENOENT;
	n = ap__slurp(p->m, terms, sizeof(terms), AP__DEVICES "/%s/events/%s", pmu, alias);
	if (n < 0)
		return -ENOENT;
	if (p->depth == 4)
		return ap__fail(p->err, -EINVAL, AP_CAUSE_OTHER,
				"the events of %s refer to each other in circles", pmu);
	p->depth++;
	r = apply_terms(p, it, pmu, type, terms, outer);
	p->depth--;
	if (!r)
		alias_unit(p, it, pmu, alias);
	return r;
}

/* cpu_core/cycles/: a generic name within a core PMU. -ENOENT: not one. */
static int apply_generic(struct ap__parse *p, struct ap__item *it, u32 type, const char *name)
{
	const struct ap__generic *g = ap__generic_find(name);
	const struct ap__corepmu *core;
	unsigned int n = ap__core_pmus(p->m, &core), i;
	u64 config;
	u32 generic;

	for (i = 0; i < n && core[i].type != type; i++)
		;
	if (i == n)
		return -ENOENT;
	if (g && g->type == PERF_TYPE_HARDWARE) {
		config = g->config;
		generic = PERF_TYPE_HARDWARE;
	} else if (ap__cache_find(name, &config) == 0) {
		generic = PERF_TYPE_HW_CACHE;
	} else {
		return -ENOENT;
	}
	it->attr.type = generic;
	it->attr.config = config | (n > 1 ? (u64)type << 32 : 0);
	return 0;
}

static int unknown_term(struct ap__parse *p, const char *pmu, const char *term)
{
	static const char *const dirs[] = {"format", "events"};
	struct ap__nearest near;
	char text[320], known[256] = "";
	char **names;

	ap__nearest_init(&near, term);
	for (size_t i = 0; i < ARRAY_SIZE(fixed_terms); i++)
		ap__nearest_offer(&near, fixed_terms[i].name);
	for (size_t d = 0; d < ARRAY_SIZE(dirs); d++) {
		int n = ap__names(p->m, &names, AP__DEVICES "/%s/%s", pmu, dirs[d]);

		for (int i = 0; i < n; i++) {
			size_t have = strlen(known);

			if (strchr(names[i], '.'))
				continue;
			ap__nearest_offer(&near, names[i]);
			if (d == 0)
				snprintf(known + have, sizeof(known) - have, "%s%s",
					 have ? ", " : "", names[i]);
		}
		if (n >= 0)
			ap__names_free(names);
	}
	ap__nearest_text(&near, text, sizeof(text));
	ap__fail(p->err, -ENOENT, AP_CAUSE_UNKNOWN_EVENT,
		 "the PMU %.64s has neither a term nor an event \"%.80s\"%s%s", pmu, term,
		 text[0] ? ": " : "", text);
	if (known[0])
		return ap__remedy(p->err, -ENOENT,
				  "its terms are %s, and config, config1, config2, config3", known);
	return ap__remedy(p->err, -ENOENT,
			  "it has no terms of its own; config, config1, config2, config3 work "
			  "everywhere");
}

/* A term that every event has, or a name near to one, of an event that is no PMU's. */
static int unknown_fixed(struct ap__parse *p, const char *event, const char *term)
{
	struct ap__nearest near;
	char text[320];

	ap__nearest_init(&near, term);
	for (size_t i = 0; i < ARRAY_SIZE(fixed_terms); i++)
		ap__nearest_offer(&near, fixed_terms[i].name);
	ap__nearest_text(&near, text, sizeof(text));
	return ap__fail(
		p->err, -ENOENT, AP_CAUSE_UNKNOWN_EVENT,
		"%.80s has no term \"%.80s\", but those of every event: config, config1, name, "
		"period, freq, percore and perf's others%s%s",
		event, term, text[0] ? ": " : "", text);
}

/* @pmu NULL: of an event that is no PMU's. */
static int apply_term(struct ap__parse *p, struct ap__item *it, const char *pmu, u32 type,
		      const char *name, char *value, const char *outer)
{
	u64 v = 1;
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(fixed_terms); i++)
		if (strcmp(fixed_terms[i].name, name) == 0)
			return set_fixed(p, it, &fixed_terms[i], value);
	if (!pmu)
		return unknown_fixed(p, it->pub.name, name);
	if (value && strcmp(value, "?") == 0) {
		if (outer && terms_set(outer, name))
			return 0;
		return ap__fail(p->err, -EINVAL, AP_CAUSE_SYNTAX,
				"this event of %s needs a value for \"%s\": add %s=...", pmu, name,
				name);
	}
	if (value) {
		r = ap__number(value, &v);
		if (r)
			return ap__fail(p->err, -EINVAL, AP_CAUSE_BAD_VALUE,
					r == -ERANGE ? "%s=%.80s does not fit in 64 bits"
						     : "%s=%.80s: the value is not a decimal or 0x "
						       "number",
					name, value);
	}
	r = ap__format_set(p, pmu, &it->attr, name, v);
	if (r != -ENOENT)
		return r;
	if (!value) {
		r = apply_alias(p, it, pmu, type, name, outer);
		if (r == -ENOENT)
			r = apply_generic(p, it, type, name);
		if (r != -ENOENT)
			return r;
		/* cpu/r1a8/ */
		if (name[0] == 'r' && isxdigit((unsigned char)name[1]) && strlen(name) <= 17) {
			char *end;

			v = strtoull(name + 1, &end, 16);
			if (!*end) {
				it->attr.config = v;
				return 0;
			}
		}
	}
	return unknown_term(p, pmu, name);
}

/* Takes the quotes off name='...'. */
static char *unquote(char *value)
{
	size_t n = strlen(value);

	if (n >= 2 && (value[0] == '\'' || value[0] == '"') && value[n - 1] == value[0]) {
		value[n - 1] = '\0';
		value++;
	}
	return value;
}

/* The end of the first term in @s: a comma outside quotes. */
static char *term_end(char *s)
{
	char quote = '\0';

	for (; *s && (quote || *s != ','); s++) {
		if (quote && *s == quote)
			quote = '\0';
		else if (!quote && (*s == '\'' || *s == '"'))
			quote = *s;
	}
	return s;
}

/*
 * Applies comma-separated terms, in order, so that later ones override. @terms is cut up. @outer is
 * the user's own list while that of an alias is applied.
 */
static int apply_terms(struct ap__parse *p, struct ap__item *it, const char *pmu, u32 type,
		       char *terms, const char *outer)
{
	while (*terms) {
		char *end = term_end(terms), stop = *end, *name = terms, *value, *last;
		int r;

		*end = '\0';
		while (isspace((unsigned char)*name))
			name++;
		for (last = end; last > name && isspace((unsigned char)last[-1]); last--)
			last[-1] = '\0';
		value = strchr(name, '=');
		if (value) {
			*value++ = '\0';
			value = unquote(value);
		}
		if (!*name)
			return ap__fail(p->err, -EINVAL, AP_CAUSE_SYNTAX,
					"a term of %s/.../ is empty", pmu ? pmu : it->pub.name);
		r = apply_term(p, it, pmu, type, name, value, outer);
		if (r)
			return r;
		if (!stop)
			break;
		terms = end + 1;
	}
	return 0;
}

int ap__parse_terms(struct ap__parse *p, struct ap__item *it, const char *terms)
{
	char *copy = strdup(terms);
	int r = copy ? apply_terms(p, it, NULL, 0, copy, NULL) : ap__fail_memory(p->err);

	free(copy);
	return r;
}

/*
 * Whether PMU @name answers to @wanted: itself, a pattern, without "uncore_", without its number.
 */
static bool pmu_matches(const char *name, const char *wanted)
{
	size_t n = strlen(wanted);

	if (fnmatch(wanted, name, 0) == 0)
		return true;
	for (int i = 0; i < 2; i++) {
		if (strncmp(name, wanted, n) == 0 && name[n] == '_' && name[n + 1] &&
		    strspn(name + n + 1, "0123456789") == strlen(name + n + 1))
			return true;
		if (strncmp(name, "uncore_", 7) != 0)
			return false;
		name += 7;
		if (strcmp(name, wanted) == 0)
			return true;
	}
	return false;
}

/* Fills in where the PMU counts. */
static int place_pmu(struct ap__parse *p, struct ap__item *it, const char *pmu)
{
	char cpus[1024];

	it->pub.pmu = ap__specs_strdup(p->specs, pmu);
	if (!it->pub.pmu)
		return ap__fail_memory(p->err);
	if (ap__slurp(p->m, cpus, sizeof(cpus), AP__DEVICES "/%s/cpus", pmu) > 0) {
		it->pub.cpus = ap__specs_strdup(p->specs, cpus);
	} else if (ap__slurp(p->m, cpus, sizeof(cpus), AP__DEVICES "/%s/cpumask", pmu) > 0) {
		it->pub.cpus = ap__specs_strdup(p->specs, cpus);
		/* SPE counts tasks although it says on which CPUs it exists. */
		it->pub.uncore = strncmp(pmu, "arm_spe", 7) != 0;
	} else {
		return 0;
	}
	return it->pub.cpus ? 0 : ap__fail_memory(p->err);
}

static int add_on_pmu(struct ap__parse *p, const char *name, const char *pmu, const char *terms,
		      bool expanded)
{
	struct ap__item *it;
	long long type;
	char *copy;
	int r;

	r = ap__slurp_number(p->m, &type, AP__DEVICES "/%s/type", pmu);
	if (r || type < 0 || type > UINT32_MAX)
		return ap__fail(p->err, r ? r : -EINVAL, AP_CAUSE_FILE,
				"the type of the PMU %s cannot be read", pmu);
	r = ap__parse_add(p, name, &it);
	if (r)
		return r;
	it->attr.type = (u32)type;
	if (expanded)
		it->pub.flags |= AP_SPEC_EXPANDED;
	r = place_pmu(p, it, pmu);
	if (r)
		return r;
	copy = strdup(terms);
	if (!copy)
		return ap__fail_memory(p->err);
	r = apply_terms(p, it, pmu, (u32)type, copy, terms);
	free(copy);
	return r;
}

static int unknown_pmu(struct ap__parse *p, const char *pmu, char **names, int n)
{
	const struct ap__corepmu *core;
	struct ap__nearest near;
	char text[320];

	ap__nearest_init(&near, pmu);
	for (int i = 0; i < n; i++)
		ap__nearest_offer(&near, names[i]);
	ap__nearest_text(&near, text, sizeof(text));
	if (strncmp(pmu, "cpu", 3) == 0 && ap__core_pmus(p->m, &core) == 0)
		ap__fail(
			p->err, -ENOENT, AP_CAUSE_NO_PMU,
			"there is no PMU \"%.64s\": the kernel has no CPU PMU here, as in most virtual "
			"machines",
			pmu);
	else
		ap__fail(p->err, -ENOENT, AP_CAUSE_UNKNOWN_EVENT,
			 "there is no PMU \"%.64s\" in " AP__DEVICES "%s%s", pmu,
			 text[0] ? ": " : "", text);
	return ap__remedy(p->err, -ENOENT,
			  "`anyperf list` shows the PMUs and events of this machine");
}

int ap__parse_pmu(struct ap__parse *p, const char *name, const char *pmu, const char *terms)
{
	unsigned int matches = 0;
	bool found = false;
	char **names;
	int n, r = 0;

	if (is_name(pmu) && ap__exists(p->m, AP__DEVICES "/%s", pmu))
		return add_on_pmu(p, name, pmu, terms, false);
	n = ap__names(p->m, &names, AP__DEVICES);
	if (n == -ENOMEM)
		return ap__fail_memory(p->err);
	for (int i = 0; i < n; i++)
		matches += pmu_matches(names[i], pmu);
	for (int i = 0; i < n && !r; i++)
		if (pmu_matches(names[i], pmu))
			r = add_on_pmu(p, name, names[i], terms, matches > 1);
	/* Behind an event of a PMU terms can stand too. */
	if (!matches)
		r = ap__parse_alias(p, name, pmu, terms, &found);
	if (!matches && !r && !found)
		r = unknown_pmu(p, pmu, n > 0 ? names : NULL, n);
	if (n >= 0)
		ap__names_free(names);
	return r;
}

/*
 * Of several core PMUs each has a count of its own to show; the boxes of an uncore PMU share a
 * name.
 */
static int add_alias(struct ap__parse *p, const char *full, const char *name, const char *pmu,
		     const char *terms, bool expanded)
{
	const struct ap__corepmu *core;
	unsigned int n = expanded ? ap__core_pmus(p->m, &core) : 0;
	const char *shown = full;

	for (unsigned int i = 0; i < n; i++)
		if (strcmp(core[i].name, pmu) == 0)
			shown = ap__specs_printf(p->specs, "%s/%s/", pmu, name);
	return shown ? add_on_pmu(p, shown, pmu, terms, expanded) : ap__fail_memory(p->err);
}

int ap__parse_alias(struct ap__parse *p, const char *full, const char *name, const char *terms,
		    bool *found)
{
	const char *all = *terms ? ap__specs_printf(p->specs, "%s,%s", name, terms) : name;
	unsigned int matches = 0;
	char **names;
	int n, r = 0;

	*found = false;
	if (!all)
		return ap__fail_memory(p->err);
	if (!is_name(name))
		return 0;
	n = ap__names(p->m, &names, AP__DEVICES);
	if (n == -ENOMEM)
		return ap__fail_memory(p->err);
	for (int i = 0; i < n; i++)
		matches += ap__exists(p->m, AP__DEVICES "/%s/events/%s", names[i], name);
	for (int i = 0; i < n && !r; i++)
		if (ap__exists(p->m, AP__DEVICES "/%s/events/%s", names[i], name))
			r = add_alias(p, full, name, names[i], all, matches > 1);
	if (n >= 0)
		ap__names_free(names);
	*found = matches;
	return r;
}
