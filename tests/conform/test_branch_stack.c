/*
 * Branch stacks [SAMP-13, BR-02, BR-03, BR-05, BR-06]: of a piece of code with one branch of each
 * kind, sampled at its last one. A hardware PMU's samples come later than that, so natively nothing
 * is looked at; on the virtual PMU a sample is at the very instruction.
 */
#include "conform/region.h"

#ifdef __x86_64__

#define PAGE  4096
#define PAGES 16

/* The places that branches go from and to. */
extern const char br_cond[], br_loop[], br_call[], br_call_back[], br_ind_call[],
	br_ind_call_back[], br_ind_jump[], br_ind_jump_to[], br_jump[], br_jump_to[], br_ret[],
	br_inner[], br_open_call[], br_open[];

/*
 * In the order in which they are executed: a loop's of three rounds, of which two are taken; a
 * direct call and an indirect one of the same function, with its two returns; an indirect jump; a
 * direct one. With DISABLE's nothing follows. So many branches there are, taken or not:
 */
#define BRANCHES 9
/* clang-format off */
#define CODE                                             \
	"movl $3, %%ecx\n"                               \
	".globl br_loop\nbr_loop: decl %%ecx\n"          \
	".globl br_cond\nbr_cond: jnz br_loop\n"         \
	".globl br_call\nbr_call: call br_inner\n"       \
	".globl br_call_back\nbr_call_back:\n"           \
	"lea br_inner(%%rip), %%rax\n"                   \
	".globl br_ind_call\nbr_ind_call: call *%%rax\n" \
	".globl br_ind_call_back\nbr_ind_call_back:\n"   \
	"lea br_ind_jump_to(%%rip), %%rax\n"             \
	".globl br_ind_jump\nbr_ind_jump: jmp *%%rax\n"  \
	"ud2\n"                                          \
	".globl br_ind_jump_to\nbr_ind_jump_to:\n"       \
	".globl br_jump\nbr_jump: jmp br_jump_to\n"      \
	"ud2\n"                                          \
	".globl br_inner\nbr_inner: nop\n"               \
	".globl br_ret\nbr_ret: ret\n"                   \
	".globl br_jump_to\nbr_jump_to: nop\n"

/* Calls a function that returns, and then one in which the second branch and the last is. */
#define OPEN_BRANCHES 4
#define OPEN                                                 \
	"call br_inner\n"                                    \
	".globl br_open_call\nbr_open_call: call br_open\n"  \
	"jmp 9f\n"                                           \
	".globl br_open\nbr_open: jmp 8f\n"                  \
	"8: ret\n"                                           \
	"9: nop\n"
/* clang-format on */

struct stack {
	const struct perf_event_header *header;
	u64 ip, nr, hw_idx;
	const struct perf_branch_entry *entries;
};

static struct pe_attr at_branch(u64 period, u64 wanted)
{
	struct pe_attr attr = ev_attr(PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS);

	attr.sample_period = period;
	attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_BRANCH_STACK;
	attr.branch_sample_type = wanted;
	attr.precise_ip = 2;
	return attr;
}

static bool exact(const char *row, const char *text)
{
	if (virtual_world() && try_self(at_branch(1000, PERF_SAMPLE_BRANCH_ANY)) == 0)
		return true;
	skip_row(row, text, "samples are exact on the virtual PMU only");
	return false;
}

/* Without code that comes first it would hold what was done before. */
static __attribute__((noinline)) void code(int fd)
{
	REGION(fd, CODE);
}

static __attribute__((noinline)) void open_calls(int fd)
{
	REGION(fd, OPEN);
}

/* The first sample of @run's, which has @wanted. */
static struct stack taken(void (*run)(int), u64 period, u64 wanted)
{
	struct pe_attr attr = at_branch(period, wanted);
	struct perf_event_mmap_page *page;
	struct stack s = {.hw_idx = 77};
	const u64 *p;
	int fd = (int)ev_self(attr);

	NEED(fd >= 0);
	page = mmap(NULL, (1 + PAGES) * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	NEED(page != MAP_FAILED);
	run(fd);
	s.header = (const void *)((const u8 *)page + PAGE);
	NEED(page->data_head && s.header->type == PERF_RECORD_SAMPLE);
	p = (const u64 *)(s.header + 1);
	s.ip = *p++;
	s.nr = *p++;
	if (wanted & PERF_SAMPLE_BRANCH_HW_INDEX)
		s.hw_idx = *p++;
	s.entries = (const struct perf_branch_entry *)p;
	NEED(s.nr <= 32);
	close(fd);
	return s;
}

static bool is(const struct stack *s, u64 nr, const char *from, const char *to)
{
	return nr < s->nr && s->entries[nr].from == (u64)from && s->entries[nr].to == (u64)to;
}

/* The flags of an entry as they stand in memory. */
static u64 flags(const struct stack *s, u64 nr)
{
	u64 word;

	NEED(nr < s->nr);
	memcpy(&word, (const u8 *)&s->entries[nr] + 16, sizeof(word));
	return word;
}

CONFORM(order)
{
	struct stack s;

	if (!exact("BR-06", "the newest branch first"))
		return;
	s = taken(code, BRANCHES, PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_ANY);
	check_val("SAMP-13", "a sample at the last branch", s.ip == (u64)br_jump, 1);
	check_val("SAMP-13", "a number and so many branches of 24 bytes",
		  s.header->size == 8 + 8 + 8 + s.nr * 24, 1);
	check_val("BR-06", "that branch is the first", is(&s, 0, br_jump, br_jump_to), 1);
	check_val("BR-06", "then the one before", is(&s, 1, br_ind_jump, br_ind_jump_to), 1);
	check_val("BR-06", "then a return", is(&s, 2, br_ret, br_ind_call_back), 1);
	check_val("BR-06", "then its call", is(&s, 3, br_ind_call, br_inner), 1);
	check_val("BR-06", "then another return", is(&s, 4, br_ret, br_call_back), 1);
	check_val("BR-06", "then its call, too", is(&s, 5, br_call, br_inner), 1);
	check_val("BR-06", "then a loop's second round", is(&s, 6, br_cond, br_loop), 1);
	check_val("BR-06", "then its first", is(&s, 7, br_cond, br_loop), 1);
	check_val("BR-05", "a loop's end is no branch that was taken", !is(&s, 8, br_cond, br_loop),
		  1);
	check_val("BR-06", "nothing is known of predictions and cycles, nor of types unasked",
		  (long long)(flags(&s, 0) | flags(&s, 4) | flags(&s, 7)), 0);
}

CONFORM(index)
{
	struct stack s;

	if (!exact("SAMP-13", "the hardware's index"))
		return;
	s = taken(code, BRANCHES,
		  PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_HW_INDEX);
	check_val("SAMP-13", "with an index there is a word more",
		  s.header->size == 8 + 8 + 8 + 8 + s.nr * 24, 1);
	check_val("SAMP-13", "behind which the branches are", is(&s, 0, br_jump, br_jump_to), 1);
}

CONFORM(types)
{
	static const char *const texts[] = {
		"the type of a jump",    "of an indirect jump", "of a return",
		"of an indirect call",   "of another return",   "of a call",
		"of a conditional jump",
	};
	static const u64 types[] = {
		PERF_BR_UNCOND, PERF_BR_IND,  PERF_BR_RET,  PERF_BR_IND_CALL,
		PERF_BR_RET,    PERF_BR_CALL, PERF_BR_COND,
	};
	struct stack s;

	if (!exact("BR-05", "types"))
		return;
	s = taken(code, BRANCHES,
		  PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_TYPE_SAVE);
	for (u64 i = 0; i < sizeof(types) / sizeof(*types); i++)
		check_val("BR-05", texts[i], (long long)flags(&s, i), (long long)types[i] << 20);
}

/* Where the branches go from, the newest first, of those that the code has. */
CONFORM(kinds)
{
	static const struct {
		const char *row, *text;
		u64 kind;
		const char *from[3];
	} cases[] = {
		{"BR-02", "calls", PERF_SAMPLE_BRANCH_ANY_CALL, {br_ind_call, br_call}},
		{"BR-02", "returns", PERF_SAMPLE_BRANCH_ANY_RETURN, {br_ret, br_ret}},
		{"BR-02", "indirect calls", PERF_SAMPLE_BRANCH_IND_CALL, {br_ind_call}},
		{"BR-02", "conditional jumps", PERF_SAMPLE_BRANCH_COND, {br_cond, br_cond}},
		{"BR-03", "indirect jumps", PERF_SAMPLE_BRANCH_IND_JUMP, {br_ind_jump}},
		{"BR-03", "direct calls", PERF_SAMPLE_BRANCH_CALL, {br_call}},
		{"BR-03",
		 "direct calls and indirect jumps",
		 PERF_SAMPLE_BRANCH_CALL | PERF_SAMPLE_BRANCH_IND_JUMP,
		 {br_ind_jump, br_call}},
	};

	if (!exact("BR-02", "kinds of branches"))
		return;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct stack s = taken(code, BRANCHES, PERF_SAMPLE_BRANCH_USER | cases[i].kind);
		bool right = true;

		for (u64 n = 0; n < 3 && cases[i].from[n]; n++)
			right &= n < s.nr && s.entries[n].from == (u64)cases[i].from[n];
		check_val(cases[i].row, cases[i].text, right, 1);
	}
}

/* Of a function that was left nothing is told, of one that was not its call. */
CONFORM(call_stack)
{
	struct stack s;
	bool inner = false;

	if (!exact("BR-03", "a call stack"))
		return;
	s = taken(open_calls, OPEN_BRANCHES,
		  PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_CALL_STACK);
	check_val("BR-03", "the call that has not returned", is(&s, 0, br_open_call, br_open), 1);
	for (u64 i = 0; i < s.nr; i++)
		inner |= s.entries[i].to == (u64)br_inner;
	check_val("BR-03", "and not the one that has", inner, 0);
}

#else

CONFORM(order)
{
	skip_row("BR-06", "branch stacks", "the code is x86-64's");
}

#endif
