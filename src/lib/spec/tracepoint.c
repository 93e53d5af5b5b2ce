/* Tracepoints: sys:name with patterns, from tracefs's events directory [FILE-18]. */
#include "lib/spec/spec-priv.h"

#include <errno.h>
#include <fnmatch.h>
#include <string.h>

#include "lib/spec/nearest.h"

static bool is_pattern(const char *s)
{
	return s[strcspn(s, "*?[")];
}

static bool is_component(const char *s)
{
	return *s && *s != '.' && !strchr(s, '/');
}

static int no_tracefs(struct ap__parse *p, const char *sys, const char *name, int why)
{
	if (ap__is_shortage(why))
		return ap__fail_unread(p->err, why, AP_CAUSE_TRACEFS, "tracefs");
	if (why == -EACCES || why == -EPERM) {
		ap__fail(
			p->err, -EACCES, AP_CAUSE_TRACEFS,
			"the tracepoint %.64s:%.64s cannot be looked up: tracefs is not readable for "
			"this user",
			sys, name);
		return ap__remedy(p->err, -EACCES,
				  "run as root, or let this user read it: mount -o "
				  "remount,mode=755 /sys/kernel/tracing");
	}
	ap__fail(
		p->err, -ENOENT, AP_CAUSE_TRACEFS,
		"the tracepoint %.64s:%.64s cannot be looked up: tracefs is not mounted, or this kernel "
		"has no tracepoints",
		sys, name);
	return ap__remedy(p->err, -ENOENT, "as root: mount -t tracefs tracefs /sys/kernel/tracing");
}

static int add_one(struct ap__parse *p, const char *events, const char *sys, const char *name,
		   bool expanded)
{
	struct ap__item *it;
	long long id;
	char *full;
	int r;

	r = ap__slurp_number(p->m, &id, "%s/%s/%s/id", events, sys, name);
	if (r == -EACCES || r == -EPERM || ap__is_shortage(r))
		return no_tracefs(p, sys, name, r);
	if (r || id < 0)
		return -ENOENT;
	full = ap__specs_printf(p->specs, "%s:%s", sys, name);
	if (!full)
		return ap__fail_memory(p->err);
	r = ap__parse_add(p, full, &it);
	if (r)
		return r;
	it->attr.type = PERF_TYPE_TRACEPOINT;
	it->attr.config = (u64)id;
	if (expanded)
		it->pub.flags |= AP_SPEC_EXPANDED;
	return 0;
}

static int unknown(struct ap__parse *p, const char *events, const char *sys, const char *name)
{
	struct ap__nearest near;
	char text[320], **names;
	bool sys_exists = is_component(sys) && ap__exists(p->m, "%s/%s", events, sys);
	int n;

	ap__nearest_init(&near, sys_exists ? name : sys);
	n = sys_exists ? ap__names(p->m, &names, "%s/%s", events, sys)
		       : ap__names(p->m, &names, "%s", events);
	for (int i = 0; i < n; i++)
		ap__nearest_offer(&near, names[i]);
	if (n >= 0)
		ap__names_free(names);
	ap__nearest_text(&near, text, sizeof(text));
	ap__fail(p->err, -ENOENT, AP_CAUSE_UNKNOWN_EVENT, "there is no %s \"%.64s%s%.80s\"%s%s",
		 is_pattern(name) || is_pattern(sys) ? "tracepoint that matches" : "tracepoint",
		 sys, ":", name, text[0] ? ": " : "", text);
	return ap__remedy(p->err, -ENOENT,
			  "`anyperf list '*:*'` shows the tracepoints of this machine");
}

int ap__parse_tracepoint(struct ap__parse *p, const char *sys, const char *name)
{
	unsigned int before = p->specs->n;
	char **systems, **names;
	const char *events;
	int ns, n, r = 0;

	events = ap__tracefs_events(p->m, &r);
	if (!events)
		return no_tracefs(p, sys, name, r);
	if (!is_pattern(sys) && !is_pattern(name)) {
		r = is_component(sys) && is_component(name) ? add_one(p, events, sys, name, false)
							    : -ENOENT;
		return r == -ENOENT ? unknown(p, events, sys, name) : r;
	}
	ns = ap__names(p->m, &systems, "%s", events);
	if (ns < 0)
		return no_tracefs(p, sys, name, ns);
	for (int i = 0; i < ns && !r; i++) {
		if (fnmatch(sys, systems[i], 0) != 0)
			continue;
		n = ap__names(p->m, &names, "%s/%s", events, systems[i]);
		if (ap__is_shortage(n))
			r = no_tracefs(p, sys, name, n);
		for (int j = 0; j < n && !r; j++) {
			if (fnmatch(name, names[j], 0) != 0)
				continue;
			r = add_one(p, events, systems[i], names[j], true);
			/* "enable" and "filter" stand beside the events and have no id. */
			if (r == -ENOENT)
				r = 0;
		}
		if (n >= 0)
			ap__names_free(names);
	}
	ap__names_free(systems);
	if (!r && p->specs->n == before)
		return unknown(p, events, sys, name);
	return r;
}
