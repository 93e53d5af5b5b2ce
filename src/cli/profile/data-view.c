#include "cli/profile/data-view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/modeled-profile.h"
#include "base/check.h"
#include "data/reg-names.h"

/* The stack of a thread; it is found again if its thread was seen last. */
static struct data_stack *stack_of(struct data_view *v, u32 pid, u32 tid)
{
	struct data_stack **from = &v->stacks, *s;

	while (*from && ((*from)->pid != pid || (*from)->tid != tid))
		from = &(*from)->next;
	s = *from;
	if (s) {
		*from = s->next;
	} else {
		s = calloc(1, sizeof(*s));
		CHECK(s);
		s->pid = pid;
		s->tid = tid;
		snprintf(s->name, sizeof(s->name), "[stack:%u]", tid);
	}
	s->next = v->stacks;
	v->stacks = s;
	return s;
}

static void note_stack(struct data_view *v, struct reading *r, const struct data_item *item)
{
	const struct ap_regs *regs = &item->record.sample.regs_user;
	int sp = data_reg_find(reading_arch(r), "sp");
	u32 at = 0;

	if (regs->abi == PERF_SAMPLE_REGS_ABI_NONE || sp < 0 || !(regs->mask & BIT(sp)))
		return;
	for (int i = 0; i < sp; i++)
		at += regs->mask >> i & 1;
	stack_of(v, item->record.id.pid, item->record.id.tid)->at = regs->values[at];
}

static const struct data_stack *stack_in(const struct data_view *v, u32 pid,
					 const struct sym_data *data)
{
	const struct data_stack *s = v->stacks;

	while (s && (s->pid != pid || s->at < data->start || s->at >= data->end))
		s = s->next;
	return s;
}

static struct data_place without_symbol(struct data_view *v, u32 pid, const struct sym_data *data,
					u64 addr)
{
	const struct data_stack *s = stack_in(v, pid, data);
	const char *object = data->object ? data->object : "";

	if (data->elf)
		return (struct data_place){object, "[no symbol]", 0};
	if (data->mapped && !data->anonymous && object[0] == '/')
		return (struct data_place){object, "[file]", 0};
	if (!strncmp(object, "[heap]", 6))
		return (struct data_place){"[heap]", "[heap]", 0};
	if (!s && (!strncmp(object, "[stack", 6) || data->topmost))
		s = stack_of(v, pid, pid);
	if (s)
		return (struct data_place){"[stack]", s->name, 0};
	if (data->mapped)
		return (struct data_place){data->anonymous ? "[anon]" : object, NULL, data->start};
	if (data->behind_program)
		return (struct data_place){"[heap]", "[heap]", 0};
	/* The kernel does not tell of what mremap(2) makes. Between two files there is no heap. */
	if (data->start)
		return (struct data_place){"[anon]", NULL, data->start};
	return (struct data_place){"[unknown]", NULL, addr};
}

static struct data_site *site_in(const struct data_view *v, u32 pid, u64 at)
{
	u64 hash = (at ^ (u64)pid << 40) * 0x9e3779b97f4a7c15ull;

	for (hash ^= hash >> 32;; hash++) {
		struct data_site *s = &v->sites[hash & (v->room - 1)];

		if (!s->name || (s->at == at && s->pid == pid))
			return s;
	}
}

static void grow_sites(struct data_view *v)
{
	struct data_site *old = v->sites;
	u32 n = v->room;

	v->room = n ? n * 2 : 256;
	v->sites = calloc(v->room, sizeof(*v->sites));
	CHECK(v->sites);
	for (u32 i = 0; i < n; i++)
		if (old[i].name)
			*site_in(v, old[i].pid, old[i].at) = old[i];
	free(old);
}

/* The call is in front of where it returns to. */
static char *name_of_site(struct data_view *v, struct reading *r, const struct data_item *item,
			  u64 at)
{
	struct sym_place place;
	const char *file = NULL, *slash;
	char *name;
	u32 line = 0;
	int n;

	reading_find(r, item, at - 1, false, &place);
	line_view_find(&v->lines, r, item->record.id.pid, at - 1, &file, &line);
	slash = file ? strrchr(file, '/') : NULL;
	if (place.symbol && file)
		n = asprintf(&name, "%s at %s:%u", place.symbol, slash ? slash + 1 : file, line);
	else if (place.symbol)
		n = asprintf(&name, "%s+%#llx", place.symbol, (unsigned long long)place.offset + 1);
	else
		n = asprintf(&name, "%#llx of %s", (unsigned long long)place.addr + 1,
			     place.object);
	CHECK(n >= 0);
	return name;
}

static struct data_place of_site(struct data_view *v, struct reading *r,
				 const struct data_item *item, u64 at)
{
	u32 pid = item->record.id.pid;
	struct data_site *s;

	if (v->nr_sites * 2 >= v->room)
		grow_sites(v);
	s = site_in(v, pid, at);
	if (!s->name) {
		*s = (struct data_site){at, pid, name_of_site(v, r, item, at)};
		v->nr_sites++;
	}
	return (struct data_place){"[heap]", s->name, 0};
}

void data_view_find(struct data_view *v, struct reading *r, const struct data_item *item,
		    struct data_place *place)
{
	u32 pid = item->record.id.pid;
	u64 addr = item->record.sample.addr;
	struct sym_data data;

	note_stack(v, r, item);
	if (!addr) {
		*place = (struct data_place){"[none]", "[no address]", 0};
		return;
	}
	if (addr & MODELED_SITE && addr >> 63 == 0) {
		*place = of_site(v, r, item, addr & ~MODELED_SITE);
		return;
	}
	sym_view_data(r->view, pid, addr, &data);
	if (data.symbol)
		*place = (struct data_place){data.object, data.symbol, data.symbol_start};
	else
		*place = without_symbol(v, pid, &data, addr);
}

void data_view_release(struct data_view *v)
{
	while (v->stacks) {
		struct data_stack *s = v->stacks;

		v->stacks = s->next;
		free(s);
	}
	for (u32 i = 0; i < v->room; i++)
		free(v->sites[i].name);
	free(v->sites);
	v->sites = NULL;
	v->nr_sites = v->room = 0;
	line_view_release(&v->lines);
}
