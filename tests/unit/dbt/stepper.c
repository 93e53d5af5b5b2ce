#include "unit/dbt/stepper.h"

#include <stdlib.h>
#include <string.h>

#include "dbt/arch/x86_64/decode.h"

#define TF 0x100u

/* Where the kernel's gregs have them; <sys/ucontext.h> has the decoder's names for these. */
static const u8 greg_of[16] = {13, 14, 12, 11, 15, 10, 9, 8, 0, 1, 2, 3, 4, 5, 6, 7};
#define GREG_PC    16
#define GREG_FLAGS 17
#define GREGS      23

static __thread struct {
	struct native_step *steps;
	u64 n, max;
	struct dbt_regs begin;
	u64 saved[GREGS];
	bool running;
} native;

static u8 taken(const struct insn *d, bool next)
{
	switch (d->cf) {
	case CF_NONE:
	case CF_SYSCALL: return 0;
	case CF_JCC:
	case CF_LOOP: return next ? 0 : TRACE_BRANCH_COND;
	case CF_JMP: return TRACE_BRANCH_JUMP;
	case CF_JMP_IND: return TRACE_BRANCH_JUMP_IND;
	case CF_CALL: return TRACE_BRANCH_CALL;
	case CF_CALL_IND: return TRACE_BRANCH_CALL_IND;
	case CF_RET:
	case CF_FAR_RET: return TRACE_BRANCH_RETURN;
	default: return TRACE_BRANCH_OTHER;
	}
}

static void count(struct native_step *s, const struct insn *d, u64 next)
{
	bool branch = d->cf != CF_NONE && d->cf != CF_SYSCALL;

	memset(s->counts, 0, sizeof(s->counts));
	s->next = next == s->pc + d->len;
	s->taken = taken(d, s->next);
	s->counts[METER_INSTRUCTIONS] = 1;
	s->counts[METER_BRANCHES] = branch;
	s->counts[METER_CONDITIONAL] = d->cf == CF_JCC || d->cf == CF_LOOP;
	s->counts[METER_TAKEN] = s->counts[METER_CONDITIONAL] && next != s->pc + d->len;
	s->counts[METER_CALLS] = d->cf == CF_CALL || d->cf == CF_CALL_IND;
	s->counts[METER_RETURNS] = d->cf == CF_RET;
	s->counts[METER_INDIRECT] = d->cf == CF_JMP_IND || d->cf == CF_CALL_IND;
}

static void on_native(u64 *gregs)
{
	struct native_step *s;
	struct insn d;
	u64 pc;

	if (!native.running) {
		native.running = true;
		memcpy(native.saved, gregs, sizeof(native.saved));
		for (u32 i = 0; i < 16; i++)
			gregs[greg_of[i]] = native.begin.gpr[i];
		gregs[GREG_PC] = native.begin.rip;
		gregs[GREG_FLAGS] = native.begin.rflags | TF;
		return;
	}
	pc = native.n ? native.steps[native.n - 1].regs.rip : native.begin.rip;
	/* The CPU traps after each iteration of a string instruction. */
	if (gregs[GREG_PC] == pc && insn_decode(&d, (const u8 *)pc, INSN_MAX) > 0 &&
	    d.special == SP_STRING)
		return;
	s = &native.steps[native.n++];
	s->pc = pc;
	for (u32 i = 0; i < 16; i++)
		s->regs.gpr[i] = gregs[greg_of[i]];
	s->regs.rip = gregs[GREG_PC];
	s->regs.rflags = gregs[GREG_FLAGS] & ~(u64)TF;
	/* The flag that makes it step is not the program's. */
	if (insn_decode(&d, (const u8 *)pc, INSN_MAX) > 0 && d.special == SP_PUSHF)
		*(u64 *)s->regs.gpr[DBT_RSP] &= ~(u64)TF;
	if (insn_decode(&d, (const u8 *)pc, INSN_MAX) > 0)
		count(s, &d, s->regs.rip);
	if (gregs[GREG_PC] != GUEST_DONE &&
	    insn_decode(&d, (const u8 *)gregs[GREG_PC], INSN_MAX) > 0 && d.cf == CF_IRET)
		((u64 *)s->regs.gpr[DBT_RSP])[2] |= TF;
	if (gregs[GREG_PC] == GUEST_DONE || native.n == native.max) {
		memcpy(gregs, native.saved, sizeof(native.saved));
		native.running = false;
	}
}

void native_begin(struct guest *g, const void *fn, const u64 *abc)
{
	u64 *sp = (u64 *)g->stack - 1;
	struct dbt_regs *r = &g->t->regs;

	guest_imaged(g, fn);
	*sp = GUEST_DONE;
	for (u32 i = 0; i < 16; i++)
		r->gpr[i] = 0x1000 + i;
	r->gpr[DBT_RSP] = (u64)sp;
	r->gpr[DBT_RDI] = abc[0];
	r->gpr[DBT_RSI] = abc[1];
	r->gpr[DBT_RDX] = abc[2];
	r->rip = (u64)fn;
	r->rflags = 0x202;
}

u64 native_steps(struct guest *g, const void *fn, const u64 *abc, u64 max,
		 struct native_step **steps)
{
	native.steps = malloc(max * sizeof(*native.steps));
	if (!native.steps)
		abort();
	native.n = 0;
	native.max = max;
	native_begin(g, fn, abc);
	native.begin = g->t->regs;
	g->on_native = on_native;
	__asm__ volatile("int3" : : : "memory");
	g->on_native = NULL;
	*steps = native.steps;
	return native.n;
}

__thread struct stops stops;

static void set_deadline(struct guest *g, u64 sum)
{
	u64 at[METER_QUANTITIES];

	for (u32 q = 0; q < METER_QUANTITIES; q++)
		at[q] = q == stops.q ? sum : DBT_NO_DEADLINE;
	dbt_deadlines(g->t, at);
}

/* Vector registers are the guest's here. */
static void on_deadline(struct guest *g)
{
	struct stop *s = &stops.at[stops.n];

	if (stops.n++ < stops.max) {
		for (u32 i = 0; i < 16; i++)
			s->regs.gpr[i] = g->t->regs.gpr[i];
		s->regs.rip = g->t->regs.rip;
		s->regs.rflags = g->t->regs.rflags;
		s->ip = dbt_deadline_ip(g->t);
		s->count = guest_count(g, stops.q);
		if (stops.branches) {
			struct stop_branches *b = &stops.branches[s - stops.at];

			b->nr = dbt_branches(g->t, stops.kinds, b->at, TRACE_LBR);
		}
	}
	if (stops.edge) {
		dbt_trace_flush(g->t);
		stops.edge[stops.n] = g->nr_traced;
		dbt_trace_on(g->t, stops.n & 1);
	}
	stops.next += stops.period;
	set_deadline(g, stops.next);
}

void stops_begin(struct guest *g, u64 period)
{
	stops.n = 0;
	stops.period = period;
	stops.next = guest_count(g, stops.q) + period;
	g->on_deadline = on_deadline;
	set_deadline(g, stops.next);
}

void stops_end(struct guest *g)
{
	set_deadline(g, DBT_NO_DEADLINE);
}
