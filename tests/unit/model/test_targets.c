/* Targets of indirect branches by ITTAGE: interpreters, what directions say, and chance. */
#include "unit/model/machines.h"
#include "unit/test.h"

#define SWITCH   0x5000u
#define HANDLERS 0x8000u

static struct model *model_of(enum machine_targets targets)
{
	struct machine m = small_machine();

	m.branch.direction = MACHINE_TAGE;
	m.branch.history = 128;
	m.branch.targets = (u8)targets;
	return model_new(&m, 1, MODEL_BRANCHES);
}

static u64 misses(struct model_core *core)
{
	return model_count(core, MODEL_BRANCH_MISSES);
}

static void jump(struct model_core *core, u64 ip, u64 target)
{
	model_branch(core, ip, ip + 2, MODEL_JUMP_IND, true, target);
}

/*
 * A loop over @period operations of @kinds, each with a handler, 400 times: misses of the second
 * half. @threaded: each handler jumps on by itself. Handlers have branches that are taken.
 */
static u64 interpreter_misses(enum machine_targets targets, u32 period, u32 kinds, bool threaded)
{
	struct model *model = model_of(targets);
	struct model_core *core = model_core(model, 0);
	u64 state = 4711, before = 0, n, at = SWITCH;
	u8 code[512];

	for (u32 i = 0; i < period; i++)
		code[i] = (u8)(random_number(&state) % kinds);
	for (u32 round = 0; round < 400; round++) {
		if (round == 200)
			before = misses(core);
		for (u32 i = 0; i < period; i++) {
			u64 handler = HANDLERS + code[i] * 64u;

			jump(core, at, handler);
			for (u32 k = 0; k < code[i] % 4u; k++)
				model_branch(core, handler + 8 * k, handler + 8 * k + 2, MODEL_JUMP,
					     true, handler + 8 * (k + 1));
			at = threaded ? handler + 60 : SWITCH;
		}
	}
	n = misses(core) - before;
	model_free(model);
	return n;
}

TEST(operations_of_an_interpreter)
{
	for (u32 threaded = 0; threaded < 2; threaded++)
		for (u32 period = 1; period <= 100; period += 9)
			EXPECT_EQ(interpreter_misses(MACHINE_ITTAGE, period, 12, threaded), 0);
	/* A longer program fills the tables, of 512 entries each: some are found by too little. */
	EXPECT(interpreter_misses(MACHINE_ITTAGE, 400, 12, false) < 400u * 200 / 100);
}

/* Operations of a kind in a row: only a history that reaches before them says what follows. */
TEST(runs_of_an_operation)
{
	struct model *model = model_of(MACHINE_ITTAGE);
	struct model_core *core = model_core(model, 0);
	u64 before = 0;

	for (u32 i = 0; i < 4000; i++) {
		if (i == 2000)
			before = misses(core);
		for (u32 k = 0; k < 20; k++)
			jump(core, SWITCH, HANDLERS);
		jump(core, SWITCH, HANDLERS + 64);
	}
	EXPECT_EQ(misses(core) - before, 0);
	model_free(model);
}

TEST(targets_that_directions_foretell)
{
	struct model *model = model_of(MACHINE_ITTAGE);
	struct model_core *core = model_core(model, 0);
	u64 state = 815, of_jump = 0;

	for (u32 i = 0; i < 20000; i++) {
		bool a = random_number(&state) >> 20 & 1, b = random_number(&state) >> 20 & 1;
		u64 before;

		model_branch(core, 0x4000, 0x4002, MODEL_COND, a, 0x4100);
		model_branch(core, 0x4200, 0x4202, MODEL_COND, b, 0x4300);
		before = misses(core);
		jump(core, SWITCH, HANDLERS + a * 64u + b * 128u);
		if (i >= 10000)
			of_jump += misses(core) - before;
	}
	EXPECT(of_jump < 50);
	model_free(model);
}

/* Of @n targets by chance all but one of @n are wrong, whatever is remembered. */
TEST(targets_by_chance)
{
	for (u64 n = 2; n <= 16; n *= 2) {
		struct model *model = model_of(MACHINE_ITTAGE);
		struct model_core *core = model_core(model, 0);
		u64 state = 5, times = 40000, theory = times * (n - 1) / n;

		for (u64 i = 0; i < times; i++)
			jump(core, SWITCH, HANDLERS + random_number(&state) % n * 64);
		EXPECT(misses(core) > theory * 98 / 100 && misses(core) < theory * 102 / 100);
		model_free(model);
	}
}

/* Where nearly all go to one place, it is not worse than to foretell that. */
TEST(targets_that_are_mostly_one)
{
	struct model *model = model_of(MACHINE_ITTAGE);
	struct model_core *core = model_core(model, 0);
	u64 state = 5, others = 0;

	for (u64 i = 0; i < 40000; i++) {
		bool other = random_number(&state) % 20 == 0;

		others += other;
		jump(core, SWITCH, HANDLERS + (other ? random_number(&state) % 8 * 64 : 0));
	}
	EXPECT(misses(core) >= others * 8 / 10 && misses(core) < others * 2);
	model_free(model);
}

/* The directions behind an indirect jump are found by where it went. */
TEST(directions_that_targets_foretell)
{
	struct model *model = model_of(MACHINE_ITTAGE);
	struct model_core *core = model_core(model, 0);
	u64 state = 99, of_cond = 0;

	for (u32 i = 0; i < 20000; i++) {
		u64 where = random_number(&state) >> 20 & 7, before;

		jump(core, SWITCH, HANDLERS + where * 64);
		before = misses(core);
		model_branch(core, 0x4000, 0x4002, MODEL_COND, where & 1, 0x4100);
		if (i >= 10000)
			of_cond += misses(core) - before;
	}
	EXPECT(of_cond < 50);
	model_free(model);
}

/* What has one target is known at once, and is in no one's way, however many there are. */
TEST(branches_with_one_target)
{
	struct model *model = model_of(MACHINE_ITTAGE);
	struct model_core *core = model_core(model, 0);
	u64 state = 1, before = 0;

	for (u32 i = 0; i < 400; i++) {
		if (i == 200)
			before = misses(core);
		/* What comes in between, a hundred of them, is not between two of the switch. */
		for (u32 k = 0; k < 100; k++) {
			u64 ip = 0x20000 + k * 16u;

			model_branch(core, ip, ip + 6, MODEL_CALL_IND, true, 0x90000 + k * 64u);
		}
		jump(core, SWITCH, HANDLERS + i % 7 * 64);
	}
	EXPECT_EQ(misses(core) - before, 0);
	/* Not so of branches with two. */
	before = misses(core);
	for (u32 i = 0; i < 100; i++) {
		for (u32 k = 0; k < 100; k++)
			jump(core, 0x20000 + k * 16u,
			     0x90000 + k * 64u + (random_number(&state) >> 9 & 1) * 32);
		jump(core, SWITCH, HANDLERS + i % 7 * 64);
	}
	EXPECT(misses(core) - before > 100u * 100 * 4 / 10);
	model_free(model);
}

/* The same branches give the same misses, and cores do not learn from each other. */
TEST(nothing_but_the_branches_counts)
{
	u64 once = interpreter_misses(MACHINE_ITTAGE, 300, 30, true);

	EXPECT_EQ(interpreter_misses(MACHINE_ITTAGE, 300, 30, true), once);
	/* The last thirteen targets of all branches are what the other kind knows. */
	EXPECT(interpreter_misses(MACHINE_BY_PATH, 300, 3, false) >
	       interpreter_misses(MACHINE_ITTAGE, 300, 3, false));
}
