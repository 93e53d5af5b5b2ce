/*
 * Groups on places. A group is opened leader first in one place, then in the next; what was opened
 * is read, enabled and closed in that same order.
 */
#include <anyperf/counters.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <anyperf/self.h>

#include "base/check.h"
#include "lib/spec/cpulist.h"
#include "lib/count/event-priv.h"
#include "lib/refusal/fail.h"
#include "lib/machine/machine-pmu.h"
#include "lib/spec/spec-priv.h"
#include "lib/count/target.h"

struct cell {
	struct ap_event *event; /* owned, NULL: empty */
	bool refused;           /* empty because it could not be opened */
	struct ap_value value;
};

struct counter {
	struct ap_spec *spec;   /* borrowed */
	unsigned int leader;    /* index of its group's leader; its own if it leads */
	bool user_only;         /* AP_OPEN_USER_FALLBACK has struck */
	struct ap_error *error; /* first failure, owned, NULL: none */
};

struct ap_counters {
	struct ap_machine *m;   /* borrowed */
	struct ap_specs *specs; /* borrowed, but for own_specs */
	bool own_specs;         /* ap_counters_open_text() made them */
	unsigned int flags;
	unsigned int n; /* counters */
	struct counter *counter;
	struct ap__places places;
	bool *gone;                    /* per place: its thread has ended */
	struct cell *cells;            /* [counter * places.n + place] */
	struct ap_value *group_values; /* room for the largest group */
};

static struct cell *cell_at(const struct ap_counters *c, unsigned int i, unsigned int place)
{
	return &c->cells[(size_t)i * c->places.n + place];
}

static bool leads(const struct ap_counters *c, unsigned int i)
{
	return c->counter[i].leader == i;
}

/* One past the last counter of the group that @i leads. */
static unsigned int group_end(const struct ap_counters *c, unsigned int i)
{
	unsigned int end = i + 1;

	while (end < c->n && c->counter[end].leader == i)
		end++;
	return end;
}

static void prepare(const struct ap_counters *c, unsigned int i, struct pe_attr *a)
{
	const struct ap_spec *s = c->counter[i].spec;
	bool leader = leads(c, i),
	     grouped = group_end(c, c->counter[i].leader) > c->counter[i].leader + 1;

	memset(a, 0, sizeof(*a));
	memcpy(a, s->attr, s->attr->size < sizeof(*a) ? s->attr->size : sizeof(*a));
	a->size = sizeof(*a);
	if (c->counter[i].user_only)
		a->exclude_kernel = a->exclude_hv = 1;
	if (c->flags & AP_OPEN_AS_GIVEN)
		return;
	a->disabled = leader && !(c->flags & AP_OPEN_RUNNING);
	a->enable_on_exec = leader && (c->flags & AP_OPEN_ON_EXEC);
	if (!(s->flags & AP_SPEC_INHERIT_GIVEN))
		a->inherit = !!(c->flags & AP_OPEN_INHERIT);
	if (leader && (c->flags & AP_OPEN_PINNED))
		a->pinned = 1;
	if (!leader)
		a->pinned = a->exclusive = 0;
	a->read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	if (c->flags & AP_OPEN_LOST)
		a->read_format |= PE_FORMAT_LOST;
	if (grouped && !(c->flags & AP_OPEN_NO_GROUP_READ))
		a->read_format |= PERF_FORMAT_GROUP | PERF_FORMAT_ID;
}

/*
 * arm64 shows user mode the counters of those events alone that ask for it [ARM-13]; the PMU's
 * format has a term for that. Not where cores differ: a thread that is moved between the page and
 * the register may find that its new core has no such register, so there it has to be asked for by
 * name [ARM-16]. Returns whether that changed @a.
 */
static bool ask_for_user_access(const struct ap_counters *c, const struct ap__where *where,
				struct pe_attr *a)
{
	const struct ap__corepmu *core;
	struct pe_attr before = *a;

	if (!(c->flags & AP_OPEN_SELF_READ) || (c->flags & AP_OPEN_AS_GIVEN) || a->inherit ||
	    where->tid == -1 || where->cgroup_fd >= 0 || ap__core_pmus(c->m, &core) != 1)
		return false;
	if (a->type != PERF_TYPE_HARDWARE && a->type != PERF_TYPE_HW_CACHE &&
	    a->type != PERF_TYPE_RAW && a->type != core->type)
		return false;
	return ap__term_set(c->m, core->name, a, "rdpmc", 1) == 0 &&
	       memcmp(&before, a, sizeof(*a)) != 0;
}

/* One attempt after another, each giving up a little of what was asked for. */
static int open_attr(struct ap_counters *c, unsigned int i, struct pe_attr a,
		     const struct ap__where *where, struct ap_event **out, struct ap_error *err)
{
	struct counter *k = &c->counter[i];
	int r;

	if ((k->spec->flags & AP_SPEC_PRECISE_MAX) && a.sample_period) {
		for (a.precise_ip = 3; a.precise_ip; a.precise_ip--) {
			r = ap__event_open(out, c->m, (struct perf_event_attr *)&a, where, NULL);
			if (!r)
				return 0;
			if (r == -EACCES)
				break;
		}
	}
	/* Who leaves out user mode wants the kernel or nothing. */
	if ((c->flags & AP_OPEN_USER_FALLBACK) && !(k->spec->flags & AP_SPEC_PRIV_GIVEN) &&
	    !a.exclude_kernel && !a.exclude_user) {
		/* Without the reason: working it out costs more than the second attempt. */
		r = ap__event_open(out, c->m, (struct perf_event_attr *)&a, where, NULL);
		if (r != -EACCES)
			return r ? ap__event_open(out, c->m, (struct perf_event_attr *)&a, where,
						  err)
				 : 0;
		a.exclude_kernel = a.exclude_hv = 1;
		r = ap__event_open(out, c->m, (struct perf_event_attr *)&a, where, NULL);
		if (!r) {
			k->user_only = true;
			return 0;
		}
		/*
		 * What refuses user mode too is the reason that matters: no PMU, whole CPUs,
		 * another's task.
		 */
	}
	if (!(a.inherit && (a.read_format & PERF_FORMAT_GROUP)))
		return ap__event_open(out, c->m, (struct perf_event_attr *)&a, where, err);
	/* Before 4.13 inherited events had to be read singly [READ-13]. */
	r = ap__event_open(out, c->m, (struct perf_event_attr *)&a, where, NULL);
	if (r == -EINVAL) {
		a.read_format &= ~(u64)(PERF_FORMAT_GROUP | PERF_FORMAT_ID);
		r = ap__event_open(out, c->m, (struct perf_event_attr *)&a, where, NULL);
		if (!r)
			return 0;
		a.read_format |= PERF_FORMAT_GROUP | PERF_FORMAT_ID;
	}
	return r ? ap__event_open(out, c->m, (struct perf_event_attr *)&a, where, err) : 0;
}

static int open_flexibly(struct ap_counters *c, unsigned int i, const struct ap__where *where,
			 struct ap_event **out, struct ap_error *err)
{
	struct pe_attr a, readable;

	prepare(c, i, &a);
	readable = a;
	/*
	 * 64 bits of two counters of 32 are refused for user mode [ARM-18], and count all the same.
	 */
	if (ask_for_user_access(c, where, &readable) &&
	    open_attr(c, i, readable, where, out, NULL) == 0)
		return 0;
	return open_attr(c, i, a, where, out, err);
}

/* Whether counter @i has a cell in @place. */
static bool counts_in(const struct ap_counters *c, unsigned int i, unsigned int place)
{
	const struct ap_spec *s = c->counter[i].spec;
	int cpu = c->places.place[place].cpu;

	return !s->cpus || cpu < 0 || ap__cpulist_has(s->cpus, cpu);
}

static int open_cell(struct ap_counters *c, unsigned int i, unsigned int place,
		     struct ap_error *err)
{
	const struct ap_place *at = &c->places.place[place];
	const struct ap_spec *s = c->counter[i].spec;
	struct cell *cell = cell_at(c, i, place);
	struct ap__where where = {.tid = at->tid,
				  .cpu = at->cpu,
				  .cgroup_fd = ap__places_cgroup(&c->places, i),
				  .name = s->name};

	if (s->uncore && at->cpu < 0)
		return ap__refuse(err, -EINVAL, s->name, PMU_CPU_ONLY, .name = {s->pmu});
	if (!leads(c, i)) {
		where.leader = cell_at(c, c->counter[i].leader, place)->event;
		if (!where.leader)
			return ap__refuse(err, -EINVAL, s->name, GROUP_NO_LEADER,
					  .name = {c->counter[c->counter[i].leader].spec->name});
	}
	return open_flexibly(c, i, &where, &cell->event, err);
}

static void close_cells(struct ap_counters *c, unsigned int from, unsigned int to)
{
	/* Members before leaders: closing a leader makes its members single events [STAT-13]. */
	for (unsigned int i = to; i-- > from;)
		for (unsigned int p = 0; p < c->places.n; p++) {
			ap_event_close(cell_at(c, i, p)->event);
			cell_at(c, i, p)->event = NULL;
		}
}

/* The refused cells of @i, which count though there may be no room for their reason. */
static unsigned int refused_cells(const struct ap_counters *c, unsigned int i)
{
	unsigned int n = 0;

	for (unsigned int p = 0; p < c->places.n; p++)
		n += cell_at(c, i, p)->refused;
	return n;
}

static void remember(struct ap_counters *c, unsigned int i, const struct ap_error *err)
{
	struct counter *k = &c->counter[i];

	if (!k->error && (k->error = malloc(sizeof(*err))))
		*k->error = *err;
}

/* A weak group that does not fit: every member on its own from now on. */
static void scatter(struct ap_counters *c, unsigned int from, unsigned int to)
{
	ap__log(c->m, AP_LOG_WARN, "the group of %s does not fit: its events are counted singly",
		c->counter[from].spec->name);
	close_cells(c, from, to);
	for (unsigned int i = from; i < to; i++) {
		c->counter[i].leader = i;
		free(c->counter[i].error);
		c->counter[i].error = NULL;
		for (unsigned int p = 0; p < c->places.n; p++)
			cell_at(c, i, p)->refused = false;
	}
}

/* 0; a negative errno that ends it all; 1: begin again with this group. */
static int open_in_place(struct ap_counters *c, unsigned int from, unsigned int to,
			 unsigned int place, struct ap_error *err)
{
	for (unsigned int i = from; i < to; i++) {
		int r;

		if (c->gone[place] || !counts_in(c, i, place))
			continue;
		r = open_cell(c, i, place, err);
		if (!r)
			continue;
		if (r == -ESRCH && c->places.listed) {
			c->gone[place] = true;
			continue;
		}
		if (r == -EINVAL && to - from > 1 &&
		    (c->counter[from].spec->flags & AP_SPEC_WEAK)) {
			scatter(c, from, to);
			return 1;
		}
		if (!(c->flags & AP_OPEN_PARTIAL))
			return r;
		cell_at(c, i, place)->refused = true;
		remember(c, i, err);
	}
	return 0;
}

static int open_all(struct ap_counters *c, struct ap_error *err)
{
	for (unsigned int from = 0, to; from < c->n; from = to) {
		int r = 0;

		to = group_end(c, from);
		for (unsigned int place = 0; place < c->places.n && !r; place++)
			r = open_in_place(c, from, to, place, err);
		if (r < 0)
			return r;
		if (r > 0)
			to = from;
	}
	return 0;
}

/* After opening: every counter has a cell, or says why not. Returns how many have one. */
static unsigned int settle(struct ap_counters *c, struct ap_error *first)
{
	bool failed = false;
	unsigned int open = 0;

	/* What else keeps a counter from having either is that its reason found no room. */
	ap__fail_memory(first);
	for (unsigned int i = 0; i < c->n; i++) {
		struct counter *k = &c->counter[i];
		struct ap_error err;
		bool any = false;

		for (unsigned int p = 0; p < c->places.n; p++) {
			struct ap_event *e = cell_at(c, i, p)->event;

			any |= e != NULL;
			if (e && (c->flags & AP_OPEN_SELF_READ))
				if (ap_event_map_self(e, NULL))
					ap__log(c->m, AP_LOG_INFO, "%s: read by system call",
						e->name);
		}
		if (!any && !k->error) {
			if (k->spec->cpus && c->places.place[0].cpu >= 0)
				ap__refuse(&err, -EINVAL, k->spec->name, PMU_OTHER_CPUS,
					   .name = {k->spec->pmu, k->spec->cpus});
			else
				ap__refuse(&err, -ESRCH, k->spec->name, TASKS_ENDED);
			remember(c, i, &err);
		}
		if (k->error && !failed)
			*first = *k->error;
		failed |= k->error != NULL;
		open += any;
	}
	return open;
}

static int allocate(struct ap_counters *c, struct ap_specs *specs)
{
	unsigned int largest = 1, leader = 0;

	c->n = ap_specs_count(specs);
	CHECK(c->n > 0 && c->places.n > 0);
	c->counter = calloc(c->n, sizeof(*c->counter));
	c->cells = calloc((size_t)c->n * c->places.n, sizeof(*c->cells));
	c->gone = calloc(c->places.n, sizeof(*c->gone));
	if (!c->counter || !c->cells || !c->gone)
		return -ENOMEM;
	for (unsigned int i = 0; i < c->n; i++) {
		struct ap_spec *s = ap_specs_at(specs, i);

		if (s->flags & AP_SPEC_LEADER)
			leader = i;
		if (s->members > largest)
			largest = s->members;
		c->counter[i].spec = s;
		c->counter[i].leader = leader;
	}
	c->group_values = calloc(largest, sizeof(*c->group_values));
	return c->group_values ? 0 : -ENOMEM;
}

int ap__counters_open(struct ap_counters **out, struct ap_machine *m, struct ap_specs *specs,
		      const struct ap_target *target, const struct ap_open_opts *opts, bool probe,
		      struct ap_error *err)
{
	struct ap_open_opts o = {.size = sizeof(o)};
	struct ap_counters *c = calloc(1, sizeof(*c));
	struct ap_error first;
	int r;

	if (!c)
		return ap__fail_memory(err);
	if (!ap_specs_count(specs)) {
		r = ap__fail(err, -EINVAL, AP_CAUSE_BAD_VALUE, "there is no event in the list");
		goto fail;
	}
	if (opts)
		memcpy(&o, opts, opts->size < sizeof(o) ? opts->size : sizeof(o));
	r = ap__flags_known(err, "ap_open_opts.flags", o.flags, 2 * AP_OPEN_AS_GIVEN - 1);
	if (r)
		goto fail;
	c->m = m;
	c->specs = specs;
	c->flags = o.flags;
	r = ap__places_find(&c->places, m, target, err);
	for (unsigned int p = 0; !r && !probe && p < c->places.n; p++)
		r = ap__pmu_refuse_self(m, c->places.place[p].tid, err);
	if (r)
		goto fail;
	r = allocate(c, specs);
	if (r) {
		ap__fail_memory(err);
		goto fail;
	}
	r = open_all(c, &first);
	if (!r) {
		unsigned int open = settle(c, &first);

		if (!open || (open < c->n && !(c->flags & AP_OPEN_PARTIAL)))
			r = first.code;
	}
	if (r) {
		if (err)
			*err = first;
		goto fail;
	}
	*out = c;
	return 0;

fail:
	ap_counters_close(c);
	return r;
}

int ap_counters_open(struct ap_counters **out, struct ap_machine *m, struct ap_specs *specs,
		     const struct ap_target *target, const struct ap_open_opts *opts,
		     struct ap_error *err)
{
	return ap__counters_open(out, m, specs, target, opts, false, err);
}

void ap_counters_close(struct ap_counters *c)
{
	if (!c)
		return;
	if (c->cells)
		close_cells(c, 0, c->n);
	for (unsigned int i = 0; c->counter && i < c->n; i++)
		free(c->counter[i].error);
	ap__places_release(&c->places);
	free(c->counter);
	free(c->cells);
	free(c->gone);
	free(c->group_values);
	if (c->own_specs)
		ap_specs_free(c->specs);
	free(c);
}

int ap_counters_open_text(struct ap_counters **out, const char *text, struct ap_error *err)
{
	struct ap_specs *specs;
	int r = ap__specs_alone(&specs, text, err);

	if (r)
		return r;
	r = ap_counters_open(out, specs->own, specs, NULL, NULL, err);
	if (r)
		ap_specs_free(specs);
	else
		(*out)->own_specs = true;
	return r;
}

struct ap_specs *ap_counters_specs(const struct ap_counters *c)
{
	return c->specs;
}

static int each_leader(struct ap_counters *c, int (*act)(struct ap_event *, enum ap_scope),
		       enum ap_scope scope)
{
	int first = 0;

	for (unsigned int i = 0; i < c->n; i++) {
		if (!leads(c, i))
			continue;
		for (unsigned int p = 0; p < c->places.n; p++) {
			struct ap_event *e = cell_at(c, i, p)->event;
			int r = e ? act(e, scope) : 0;

			if (r && !first)
				first = r;
		}
	}
	return first;
}

int ap_counters_enable(struct ap_counters *c)
{
	return each_leader(c, ap_event_enable, AP_EVENT);
}

int ap_counters_disable(struct ap_counters *c)
{
	return each_leader(c, ap_event_disable, AP_EVENT);
}

int ap_counters_reset(struct ap_counters *c)
{
	return each_leader(c, ap_event_reset, AP_GROUP);
}

/* One read for all of the group's cells in @place. */
static int read_group(struct ap_counters *c, unsigned int from, unsigned int place)
{
	struct cell *lead = cell_at(c, from, place);
	unsigned int to = group_end(c, from), at = 0;
	int n;

	n = ap_event_read(lead->event, c->group_values, to - from);
	if (n < 0)
		return n;
	for (unsigned int i = from; i < to; i++) {
		struct cell *cell = cell_at(c, i, place);

		if (!cell->event)
			continue;
		/* In error state the read is empty: nothing was counted. */
		if (at < (unsigned int)n)
			cell->value = c->group_values[at++];
		else
			memset(&cell->value, 0, sizeof(cell->value));
	}
	return 0;
}

static int read_cell(struct ap_counters *c, struct cell *cell)
{
	struct ap_value v = {0};
	int r;

	r = c->flags & AP_OPEN_SELF_READ ? ap_event_read_self(cell->event, &v)
					 : ap_event_read(cell->event, &v, 1);
	if (r < 0 && r != -ENODATA)
		return r;
	cell->value = v;
	return 0;
}

int ap_counters_read(struct ap_counters *c)
{
	int first = 0;

	for (unsigned int i = 0; i < c->n; i++) {
		for (unsigned int p = 0; p < c->places.n; p++) {
			struct cell *cell = cell_at(c, i, p);
			bool grouped;
			int r = 0;

			if (!cell->event)
				continue;
			grouped = cell->event->attr->read_format & PERF_FORMAT_GROUP;
			if (grouped && !(c->flags & AP_OPEN_SELF_READ))
				r = leads(c, i) ? read_group(c, i, p) : 0;
			else
				r = read_cell(c, cell);
			if (r && !first)
				first = r;
		}
	}
	return first;
}

unsigned int ap_counters_places(const struct ap_counters *c)
{
	return c->places.n;
}

struct ap_place ap_counters_place(const struct ap_counters *c, unsigned int place)
{
	return place < c->places.n ? c->places.place[place] : (struct ap_place){-1, -1};
}

const struct ap_value *ap_counters_value(const struct ap_counters *c, unsigned int spec,
					 unsigned int place)
{
	const struct cell *cell;

	if (spec >= c->n || place >= c->places.n)
		return NULL;
	cell = cell_at(c, spec, place);
	return cell->event ? &cell->value : NULL;
}

struct ap_event *ap_counters_event(const struct ap_counters *c, unsigned int spec,
				   unsigned int place)
{
	return spec < c->n && place < c->places.n ? cell_at(c, spec, place)->event : NULL;
}

enum ap_status ap_counters_sum(const struct ap_counters *c, unsigned int spec, struct ap_value *sum)
{
	bool any = false;

	memset(sum, 0, sizeof(*sum));
	for (unsigned int p = 0; p < c->places.n; p++) {
		const struct ap_value *v = ap_counters_value(c, spec, p);

		if (!v)
			continue;
		if (!any)
			sum->id = v->id;
		any = true;
		ap_value_add(sum, v);
	}
	if (!any)
		return AP_STATUS_NOT_SUPPORTED;
	if (refused_cells(c, spec))
		return AP_STATUS_PARTIAL;
	return sum->running ? AP_STATUS_OK : AP_STATUS_NOT_COUNTED;
}

const struct ap_error *ap_counters_error(const struct ap_counters *c, unsigned int spec)
{
	return spec < c->n ? c->counter[spec].error : NULL;
}

bool ap_counters_refused(const struct ap_counters *c, unsigned int spec, unsigned int place)
{
	return spec < c->n && place < c->places.n && cell_at(c, spec, place)->refused;
}

bool ap_counters_user_only(const struct ap_counters *c, unsigned int spec)
{
	return spec < c->n && c->counter[spec].user_only;
}
