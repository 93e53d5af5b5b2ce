#include "cli/profile/data-view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
	if (data->behind_elf)
		return (struct data_place){"[heap]", "[heap]", 0};
	return (struct data_place){"[unknown]", NULL, addr};
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
	sym_view_data(r->view, pid, addr, &data);
	if (data.symbol)
		*place = (struct data_place){data.object, data.symbol, 0};
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
}
