/*
 * The grammar of event descriptions (anyperf/spec.h). The text is copied and cut in place: items at
 * commas outside slashes, events from their modifiers at the last colon or slash.
 */
#include "lib/spec/spec-priv.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "lib/spec/names.h"
#include "lib/spec/nearest.h"

#define MODIFIERS "ukhGHIpPDeWSb"

int ap__number(const char *text, u64 *out)
{
	bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	char *end;

	/* strtoull would take signs and blanks. */
	if (!isxdigit((unsigned char)text[hex ? 2 : 0]))
		return -EINVAL;
	errno = 0;
	*out = strtoull(text, &end, hex ? 16 : 10);
	if (*end)
		return -EINVAL;
	return errno ? -ERANGE : 0;
}

static bool all_of(const char *s, const char *set)
{
	return s[strspn(s, set)] == '\0';
}

static int syntax(struct ap__parse *p, const char *fmt, const char *what)
{
	ap__fail(p->err, -EINVAL, AP_CAUSE_SYNTAX, fmt, what);
	return ap__remedy(p->err, -EINVAL,
			  "anyperf(3) and `anyperf list` show how events are written");
}

/* What may stand behind an event's colon: as perf, with each letter but p at most once. */
static int check_modifiers(struct ap__parse *p, const char *mods)
{
	size_t good = strspn(mods, MODIFIERS);

	if (mods[good])
		return ap__fail(p->err, -EINVAL, AP_CAUSE_SYNTAX,
				"\"%c\" in \"%.64s\" is not a modifier; they are u k h G H I p P D "
				"e W S b",
				mods[good], mods);
	for (const char *c = mods; *c; c++)
		if (*c != 'p' && strchr(c + 1, *c))
			return ap__fail(p->err, -EINVAL, AP_CAUSE_SYNTAX,
					"\"%.64s\" has the modifier %c twice", mods, *c);
	return 0;
}

/* Builds on what earlier modifiers, of the event or of its group, have set. */
static int modify(struct ap__parse *p, struct ap__item *it, const char *mods)
{
	struct pe_attr *a = &it->attr;
	int r = check_modifiers(p, mods);

	if (r)
		return r;
	for (const char *c = mods; *c; c++) {
		if (strchr("ukh", *c) && !(a->exclude_user | a->exclude_kernel | a->exclude_hv))
			a->exclude_user = a->exclude_kernel = a->exclude_hv = 1;
		if (strchr("ukh", *c))
			it->pub.flags |= AP_SPEC_PRIV_GIVEN;
		if (strchr("GH", *c) && !it->host_guest) {
			a->exclude_host = a->exclude_guest = 1;
			it->host_guest = true;
		}
		switch (*c) {
		case 'u': a->exclude_user = 0; break;
		case 'k': a->exclude_kernel = 0; break;
		case 'h': a->exclude_hv = 0; break;
		case 'G': a->exclude_guest = 0; break;
		case 'H': a->exclude_host = 0; break;
		case 'I': a->exclude_idle = 1; break;
		case 'D': a->pinned = 1; break;
		case 'e': a->exclusive = 1; break;
		case 'P': it->pub.flags |= AP_SPEC_PRECISE_MAX; break;
		case 'W': it->pub.flags |= AP_SPEC_WEAK; break;
		case 'S': it->pub.flags |= AP_SPEC_SAMPLE_READ; break;
		case 'b': it->pub.flags |= AP_SPEC_BPF_COUNTER; break;
		case 'p':
			if (a->precise_ip == 3)
				return ap__fail(
					p->err, -EINVAL, AP_CAUSE_BAD_VALUE,
					"\"%s\" asks for more than three times p: ppp, no skid "
					"at all, is the most precise",
					mods);
			a->precise_ip++;
			break;
		}
	}
	return 0;
}

/* The digits of a raw code "r1a8", "r0x1a8"; NULL: it is none. */
static const char *raw_digits(const char *name)
{
	if (name[0] != 'r')
		return NULL;
	name += name[1] == '0' && name[2] == 'x' ? 3 : 1;
	return *name && all_of(name, "0123456789abcdefABCDEF") ? name : NULL;
}

static bool is_raw(const char *name, u64 *config)
{
	const char *digits = raw_digits(name);

	if (!digits || strlen(digits) > 16)
		return false;
	*config = strtoull(digits, NULL, 16);
	return true;
}

/*
 * Events of the CPU's own PMU. With several such PMUs one event becomes one per PMU: a generic one
 * names it in the upper half of config [TYPE-01], a raw one by type.
 */
static int add_cpu_event(struct ap__parse *p, const char *name, u32 type, u64 config)
{
	const struct ap__corepmu *core;
	unsigned int n = ap__core_pmus(p->m, &core);
	struct ap__item *it;
	int r;

	if (n < 2) {
		r = ap__parse_add(p, name, &it);
		if (r)
			return r;
		it->attr.type = type;
		it->attr.config = config;
		return 0;
	}
	for (unsigned int i = 0; i < n; i++) {
		char *full = ap__specs_printf(p->specs, "%s/%s/", core[i].name, name);

		if (!full)
			return ap__fail_memory(p->err);
		r = ap__parse_add(p, full, &it);
		if (r)
			return r;
		if (type == PERF_TYPE_RAW) {
			it->attr.type = core[i].type;
			it->attr.config = config;
		} else {
			it->attr.type = type;
			it->attr.config = config | (u64)core[i].type << 32;
		}
		it->pub.flags |= AP_SPEC_EXPANDED;
		it->pub.pmu = ap__specs_strdup(p->specs, core[i].name);
		it->pub.cpus = core[i].cpus ? ap__specs_strdup(p->specs, core[i].cpus) : NULL;
		if (!it->pub.pmu || (core[i].cpus && !it->pub.cpus))
			return ap__fail_memory(p->err);
	}
	return 0;
}

static int unknown(struct ap__parse *p, const char *name)
{
	struct ap__nearest near;
	char text[320], cache[64], **pmus, **events;
	int n, k;

	if (raw_digits(name))
		return ap__fail(p->err, -EINVAL, AP_CAUSE_BAD_VALUE,
				"\"%.120s\": a raw code has at most 16 hexadecimal digits", name);
	ap__nearest_init(&near, name);
	for (unsigned int i = 0; i < ap__ngenerics; i++) {
		ap__nearest_offer(&near, ap__generics[i].name);
		if (ap__generics[i].alias[0])
			ap__nearest_offer(&near, ap__generics[i].alias);
	}
	for (unsigned int c = 0; c < AP__CACHES; c++)
		for (unsigned int op = 0; op < AP__CACHE_OPS; op++)
			for (unsigned int r = 0; r < 2; r++)
				if (ap__cache_name(AP__CACHE_CONFIG(c, op, r), cache,
						   sizeof(cache)))
					ap__nearest_offer(&near, cache);
	n = ap__names(p->m, &pmus, AP__DEVICES);
	for (int i = 0; i < n; i++) {
		k = ap__names(p->m, &events, AP__DEVICES "/%s/events", pmus[i]);
		for (int j = 0; j < k; j++)
			if (!strchr(events[j], '.'))
				ap__nearest_offer(&near, events[j]);
		if (k >= 0)
			ap__names_free(events);
	}
	if (n >= 0)
		ap__names_free(pmus);
	ap__nearest_text(&near, text, sizeof(text));
	ap__fail(p->err, -ENOENT, AP_CAUSE_UNKNOWN_EVENT, "there is no event \"%.120s\" here%s%s",
		 name, text[0] ? ": " : "", text);
	return ap__remedy(p->err, -ENOENT, "`anyperf list` shows the events of this machine");
}

/* An event that is a bare name. *@found false: some other form may fit. */
static int add_name(struct ap__parse *p, const char *name, bool *found)
{
	const struct ap__generic *g = ap__generic_find(name);
	struct ap__item *it;
	u64 config;
	int r;

	*found = true;
	if (g && g->type == PERF_TYPE_SOFTWARE) {
		r = ap__parse_add(p, name, &it);
		if (r)
			return r;
		it->attr.type = g->type;
		it->attr.config = g->config;
		return 0;
	}
	if (g)
		return add_cpu_event(p, name, g->type, g->config);
	if (is_raw(name, &config))
		return add_cpu_event(p, name, PERF_TYPE_RAW, config);
	r = ap__cache_find(name, &config);
	if (r == 0)
		return add_cpu_event(p, name, PERF_TYPE_HW_CACHE, config);
	if (r == -EINVAL)
		return ap__fail(p->err, -ENOENT, AP_CAUSE_UNKNOWN_EVENT,
				"\"%s\": that cache has no such operation", name);
	*found = false;
	if (!name[strcspn(name, "/*?[")])
		r = ap__parse_alias(p, name, name, "", found);
	else
		r = 0;
	return r;
}

/* "type:config" in numbers. */
static int add_numbers(struct ap__parse *p, const char *name, const char *type, const char *config)
{
	struct ap__item *it;
	u64 t, c;
	int r;

	if (ap__number(type, &t) || t > UINT32_MAX || ap__number(config, &c))
		return ap__fail(p->err, -EINVAL, AP_CAUSE_BAD_VALUE,
				"\"%s\": a type has at most 32 bits, a config 64", name);
	r = ap__parse_add(p, name, &it);
	if (r)
		return r;
	it->attr.type = (u32)t;
	it->attr.config = c;
	return 0;
}

/* Whether @name is an event that needs no looking up: a generic name or a raw code. */
static bool is_built_in(const char *name)
{
	u64 config;

	return ap__generic_find(name) || is_raw(name, &config) ||
	       ap__cache_find(name, &config) == 0;
}

/* A built-in event with something behind its colon that are no modifiers. Returns -EINVAL. */
static int bad_modifiers(struct ap__parse *p, const char *item, const char *mods)
{
	if (!strchr(mods, ':'))
		return check_modifiers(p, mods);
	return syntax(p, "the modifiers of \"%.200s\" are not in one piece, as in cs:uk", item);
}

/* "type:config" in numbers, with or without modifiers. @item is cut. */
static int add_numbered(struct ap__parse *p, char *item, const char **mods)
{
	char *config = strchr(item, ':') + 1, *more = strchr(config, ':');
	char *name;

	if (more) {
		*more = '\0';
		*mods = more + 1;
	}
	name = ap__specs_strdup(p->specs, item);
	config[-1] = '\0';
	return name ? add_numbers(p, name, item, config) : ap__fail_memory(p->err);
}

/* An item without slashes and prefixes: a name, or sys:name, with or without modifiers. */
static int add_plain(struct ap__parse *p, char *item, const char **mods)
{
	char *colon = strchr(item, ':'), *last = strrchr(item, ':');
	bool found;
	int r;

	if (!colon) {
		r = add_name(p, item, &found);
		if (r || found)
			return r;
		r = ap__parse_pfm(p, item, &found);
		return r || found ? r : unknown(p, item);
	}
	/* As with perf there may be none behind the colon. */
	if (colon == last && all_of(colon + 1, MODIFIERS)) {
		*colon = '\0';
		r = add_name(p, item, &found);
		if (r || found) {
			*mods = colon + 1;
			return r;
		}
		*colon = ':';
	}
	if (isdigit((unsigned char)item[0]))
		return add_numbered(p, item, mods);
	/* Before libpfm4, whose own spelling of modifiers this would be: cs:u:k. */
	*colon = '\0';
	found = is_built_in(item);
	*colon = ':';
	if (found)
		return bad_modifiers(p, item, colon + 1);
	r = ap__parse_pfm(p, item, &found);
	if (r || found)
		return r;
	if (strstr(item, "::"))
		return unknown(p, item);
	if (colon != last) {
		/* sys:name:modifiers */
		if (!all_of(last + 1, MODIFIERS))
			return syntax(
				p, "\"%.200s\" is neither an event with modifiers nor a tracepoint",
				item);
		*last = '\0';
		*mods = last + 1;
		if (strrchr(item, ':') != colon)
			return syntax(p, "\"%.200s\" has too many colons", item);
	} else if (all_of(colon + 1, MODIFIERS) && !ap__tracefs_events(p->m, NULL)) {
		/* cycels:u is a mistyped event rather than a tracepoint called "u". */
		*colon = '\0';
		return unknown(p, item);
	}
	*colon = '\0';
	return ap__parse_tracepoint(p, item, colon + 1);
}

static char *cut_prefix(char *item, const char *prefix)
{
	size_t n = strlen(prefix);

	return strncmp(item, prefix, n) == 0 ? item + n : NULL;
}

/* Modifiers after the last colon, if that is what stands there; cuts them off. */
static const char *cut_mods(char *text)
{
	char *colon = strrchr(text, ':');

	if (!colon || !all_of(colon + 1, MODIFIERS))
		return "";
	*colon = '\0';
	return colon + 1;
}

/* The slash that ends the terms at @s, the first one outside quotes; NULL: there is none. */
static char *closing_slash(char *s)
{
	char quote = '\0';

	for (; *s; s++) {
		if (quote && *s == quote)
			quote = '\0';
		else if (!quote && (*s == '\'' || *s == '"'))
			quote = *s;
		else if (!quote && *s == '/')
			return s;
	}
	return NULL;
}

/* NAME/TERMS/ of a built-in event, which is called @full then unless it is one per core PMU. */
static int add_with_terms(struct ap__parse *p, const char *full, const char *name,
			  const char *terms)
{
	unsigned int from = p->specs->n;
	bool found;
	int r = add_name(p, name, &found);

	for (unsigned int i = from; i < p->specs->n && !r; i++) {
		struct ap__item *it = p->specs->items[i];

		if (!(it->pub.flags & AP_SPEC_EXPANDED))
			it->pub.name = full;
		r = ap__parse_terms(p, it, terms);
	}
	return r;
}

static int add_event(struct ap__parse *p, char *item, const char **mods)
{
	static const char *const probes[] = {"kprobe", "kretprobe", "uprobe", "uretprobe"};
	char *slash, *end, *rest, *name;

	*mods = "";
	rest = cut_prefix(item, "mem:");
	if (rest) {
		*mods = cut_mods(rest);
		name = ap__specs_strdup(p->specs, item);
		return name ? ap__parse_mem(p, name, rest) : ap__fail_memory(p->err);
	}
	for (size_t i = 0; i < ARRAY_SIZE(probes); i++) {
		rest = cut_prefix(item, probes[i]);
		if (!rest || *rest != ':')
			continue;
		*mods = cut_mods(rest + 1);
		name = ap__specs_strdup(p->specs, item);
		return name ? ap__parse_probe(p, name, probes[i], rest + 1)
			    : ap__fail_memory(p->err);
	}
	slash = strchr(item, '/');
	if (!slash)
		return add_plain(p, item, mods);
	end = closing_slash(slash + 1);
	if (!end)
		return syntax(p, "\"%.200s\" lacks the closing slash", item);
	if (slash == item)
		return syntax(p, "\"%.200s\" lacks the PMU's name before the slash", item);
	name = ap__specs_printf(p->specs, "%.*s", (int)(end - item + 1), item);
	if (!name)
		return ap__fail_memory(p->err);
	*mods = end[1] == ':' && end[2] ? end + 2 : end + 1;
	*slash = *end = '\0';
	if (is_built_in(item))
		return add_with_terms(p, name, item, slash + 1);
	return ap__parse_pmu(p, name, item, slash + 1);
}

/* The modifiers that @name ends in, or NULL. They follow the last colon or slash. */
static const char *mods_of(const char *name)
{
	const char *at = name + strlen(name);

	while (at > name && strchr(MODIFIERS, at[-1]))
		at--;
	return at > name && *at && (at[-1] == ':' || at[-1] == '/') ? at : NULL;
}

/* Appends @mods to the name as perf shows them, those of a group behind the event's own. */
static const char *name_with(struct ap__parse *p, const char *name, const char *mods)
{
	const char *own = mods_of(name);
	char *full = ap__specs_printf(p->specs, "%s%s", name,
				      own || name[strlen(name) - 1] == '/' ? "" : ":");
	size_t len;
	char *more;

	if (!full || !(more = ap__specs_printf(p->specs, "%s%s", full, mods)))
		return NULL;
	len = strlen(full);
	for (const char *c = mods; *c; c++)
		if (*c == 'p' || !own || !strchr(own, *c))
			more[len++] = *c;
	more[len] = '\0';
	return more;
}

/* Applies the modifiers of an event or group to the specs from @from on. */
static int finish(struct ap__parse *p, unsigned int from, const char *mods)
{
	int r;

	if (!*mods)
		return 0;
	for (unsigned int i = from; i < p->specs->n; i++) {
		struct ap__item *it = p->specs->items[i];

		r = modify(p, it, mods);
		if (r)
			return r;
		if (it->pub.flags & AP_SPEC_NAME_GIVEN)
			continue;
		it->pub.name = name_with(p, it->pub.name, mods);
		if (!it->pub.name)
			return ap__fail_memory(p->err);
	}
	return 0;
}

/*
 * Where the item that begins at @s ends: at the next comma or closing brace, slashes in pairs
 * shielding commas. Probes and breakpoints have paths and addresses with single slashes instead.
 */
static char *item_end(char *s)
{
	static const char *const slashed[] = {
		"mem:", "kprobe:", "kretprobe:", "uprobe:", "uretprobe:"};
	bool shield = true, inside = false;
	char quote = '\0';

	for (size_t i = 0; i < ARRAY_SIZE(slashed); i++)
		if (cut_prefix(s, slashed[i]))
			shield = false;
	for (; *s; s++) {
		if (quote) {
			if (*s == quote)
				quote = '\0';
		} else if (inside && (*s == '\'' || *s == '"')) {
			quote = *s;
		} else if (shield && *s == '/') {
			inside = !inside;
		} else if (!inside && (*s == ',' || *s == '}' || *s == '{')) {
			break;
		}
	}
	return s;
}

static char *skip_blanks(char *s)
{
	while (isspace((unsigned char)*s))
		s++;
	return s;
}

static void trim(char *s, char *end)
{
	while (end > s && isspace((unsigned char)end[-1]))
		end--;
	*end = '\0';
}

/*
 * A group cannot span PMUs that count on different CPUs. When events of one have become one per
 * core PMU, make a group per PMU; events of no such PMU stay with the first.
 */
static int split_group(struct ap__parse *p, unsigned int from)
{
	struct ap_specs *s = p->specs;
	unsigned int n = s->n - from, done = 0;
	struct ap__item **sorted;
	bool expanded = false;

	for (unsigned int i = from; i < s->n; i++)
		expanded |= (s->items[i]->pub.flags & AP_SPEC_EXPANDED) && s->items[i]->pub.cpus;
	if (!expanded)
		return 0;
	sorted = calloc(n, sizeof(struct ap__item *));
	if (!sorted)
		return ap__fail_memory(p->err);
	while (done < n) {
		const char *pmu = NULL;

		for (unsigned int i = from; i < s->n; i++) {
			struct ap__item *it = s->items[i];

			if (!it)
				continue;
			if (it->pub.cpus && !pmu)
				pmu = it->pub.pmu;
			if (it->pub.cpus && strcmp(it->pub.pmu, pmu) != 0)
				continue;
			it->pub.group = p->next_group;
			sorted[done++] = it;
			s->items[i] = NULL;
		}
		p->next_group++;
	}
	p->next_group--; /* the closing brace counts the last one */
	memcpy(s->items + from, sorted, n * sizeof(struct ap__item *));
	free(sorted);
	return 0;
}

static int parse_item(struct ap__parse *p, char **at)
{
	char *s = skip_blanks(*at), *end, stop;
	unsigned int from = p->specs->n;
	const char *mods;
	int r;

	end = item_end(s);
	stop = *end;
	if (stop == '{') {
		*end = '\0';
		if (end == s)
			return syntax(p, "%s",
				      "a group begins within a group: each has its own braces");
		return syntax(p, "an opening brace follows \"%.200s\" without a comma", s);
	}
	trim(s, end);
	if (!*s)
		return syntax(p, "%s",
			      stop == '}'           ? "an event is missing before \"}\""
			      : stop || p->specs->n ? "an event is missing beside a comma"
			      : p->in_braces
				      ? "an event and the closing brace of a group are missing"
				      : "the list of events is empty");
	r = add_event(p, s, &mods);
	/* Who asked for an event is never left without both it and a reason. */
	CHECK(r || p->specs->n > from);
	if (!r)
		r = finish(p, from, mods);
	/* The item was cut here; what stopped it is put back for the caller to see. */
	*end = stop;
	*at = end;
	return r;
}

/* "{" has been read; *@at is behind it, and afterwards behind "}" and its modifiers. */
static int parse_group(struct ap__parse *p, char **at)
{
	unsigned int from = p->specs->n;
	char *s = *at, *end, stop;
	int r;

	p->in_braces = true;
	for (;;) {
		r = parse_item(p, &s);
		if (r)
			return r;
		if (*s == '}')
			break;
		if (*s != ',')
			return syntax(p, "%s", "the closing brace of a group is missing");
		s++;
	}
	r = split_group(p, from);
	if (r)
		return r;
	p->in_braces = false;
	p->next_group++;
	s = skip_blanks(s + 1);
	end = item_end(s);
	stop = *end;
	trim(s, end);
	if (*s == ':' && s[1])
		r = finish(p, from, s + 1);
	else if (*s)
		r = syntax(p, "\"%.200s\" follows a closing brace; only :modifiers or a comma may",
			   s);
	*end = stop;
	*at = end;
	return r;
}

/* Leaders, sizes, and what only a leader may have. */
static void settle_groups(struct ap__parse *p)
{
	struct ap_specs *s = p->specs;
	unsigned int i, j;

	for (i = 0; i < s->n; i = j) {
		struct ap__item *leader = s->items[i];
		unsigned int weak = 0;

		for (j = i; j < s->n && s->items[j]->pub.group == leader->pub.group; j++)
			weak |= s->items[j]->pub.flags & AP_SPEC_WEAK;
		leader->pub.flags |= AP_SPEC_LEADER | weak;
		leader->pub.members = j - i;
		for (unsigned int k = i + 1; k < j; k++) {
			struct ap__item *it = s->items[k];

			it->pub.flags |= weak;
			/*
			 * A member goes with its leader: D and e mean the group [ATTR-09, ATTR-10].
			 */
			leader->attr.pinned |= it->attr.pinned;
			leader->attr.exclusive |= it->attr.exclusive;
			it->attr.pinned = it->attr.exclusive = 0;
		}
	}
}

static int parse_list(struct ap__parse *p, char *s)
{
	int r;

	for (;;) {
		s = skip_blanks(s);
		if (*s == '{') {
			s++;
			r = parse_group(p, &s);
		} else {
			r = parse_item(p, &s);
		}
		if (r)
			return r;
		if (!*s)
			break;
		if (*s != ',')
			return syntax(p, "%s", "a closing brace has no opening one");
		s++;
	}
	settle_groups(p);
	return 0;
}

int ap_specs_parse(struct ap_specs **out, struct ap_machine *m, const char *text,
		   struct ap_error *err)
{
	struct ap__parse p = {.m = m, .err = err};
	char *copy = strdup(text);
	int r = -ENOMEM;

	p.specs = calloc(1, sizeof(*p.specs));
	if (copy && p.specs)
		r = parse_list(&p, copy);
	else
		ap__fail_memory(err);
	free(copy);
	if (r) {
		ap_specs_free(p.specs);
		return r;
	}
	*out = p.specs;
	return 0;
}
