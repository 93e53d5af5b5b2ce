/* The files of callgrind and cachegrind, to the byte. */
#include "calls/callgrind-file.h"
#include "unit/test.h"

static const struct calls_fn main_fn = {
	.number = 0, .object = "/bin/p", .file = "p.c", .name = "main"};
static const struct calls_fn fib_fn = {
	.number = 1, .object = "/bin/p", .file = "p.c", .name = "fib"};
static const struct calls_fn puts_fn = {
	.number = 2, .object = "/lib/c.so", .file = "???", .name = "puts"};

/* Line 10 of the file is at 0x10 and so on; a part of its header is at 0x30. */
static void find(void *data, u64 pc, struct calls_line *line)
{
	(void)data;
	*line = (struct calls_line){
		.file = pc >= 0x100               ? NULL
			: pc >= 0x30 && pc < 0x38 ? "p.h"
						  : "p.c",
		.line = pc >= 0x100 ? 0 : (u32)(pc / 8 * 5),
		.address = pc + 0x1000,
		.function = pc >= 0x100  ? "puts"
			    : pc >= 0x20 ? "fib"
					 : "main",
	};
}

static struct calls_cost costs[] = {
	{&main_fn, 0, 0x10, 1},  {&main_fn, 0, 0x12, 1}, {&main_fn, 0, 0x18, 2},
	{&fib_fn, 0, 0x20, 4},   {&fib_fn, 0, 0x30, 3},  {&fib_fn, 1, 0x20, 6},
	{&puts_fn, 0, 0x100, 9},
};
static struct calls_call calls[] = {
	{&main_fn, &fib_fn, 0, 0, 0x12, 0x20, 1, 13},
	{&main_fn, &puts_fn, 0, 0, 0x18, 0x100, 2, 9},
	{&fib_fn, &fib_fn, 0, 1, 0x20, 0x20, 2, 6},
};
static const struct calls_profile profile = {
	.cost = costs, .nr_costs = 7, .call = calls, .nr_calls = 3, .summary = 26};

static char text[4000];

static u64 write_text(bool instr, bool line, bool compress, const char *trigger)
{
	const struct callgrind_style s = {.instr = instr,
					  .line = line,
					  .compress_strings = compress,
					  .compress_pos = compress,
					  .creator = "test",
					  .command = "./p 30",
					  .pid = 77,
					  .part = 2,
					  .trigger = trigger,
					  .find = find};
	FILE *f = fmemopen(text, sizeof(text), "w");
	struct callgrind_totals total = {0};

	callgrind_write(f, &profile, &s, &total);
	fclose(f);
	return total.instructions;
}

#define HEAD                                                                                 \
	"# callgrind format\nversion: 1\ncreator: test\npid: 77\ncmd: ./p 30\n\npart: 2\n\n" \
	"desc: I1 cache: \ndesc: D1 cache: \ndesc: LL cache: \n\n"                           \
	"desc: Timerange: Basic block 0 - 0\n"

TEST(callgrind_by_line)
{
	EXPECT_EQ(write_text(false, true, true, NULL), 26);
	EXPECT_STREQ(text, HEAD "desc: Trigger: Program termination\n\npositions: line\n"
				"events: Ir\nsummary: 26\n\n"
				"\nob=(1) /bin/p\nfl=(1) p.c\nfn=(1) main\n"
				"10 2\n"
				"cfn=(65) fib\ncalls=1 20 \n10 13\n"
				"15 2\n"
				"cob=(2) /lib/c.so\ncfi=(2) ???\ncfn=(129) puts\ncalls=2 0 \n15 9\n"
				"\nfn=(65)\n"
				"20 4\n"
				"cfn=(66) fib'2\ncalls=2 20 \n20 6\n"
				"fi=(3) p.h\n30 3\n"
				"\nfl=(1)\nfn=(66)\n"
				"20 6\n"
				"\nob=(2)\nfl=(2)\nfn=(129)\n"
				"0 9\n"
				"\ntotals: 26\n");
}

TEST(callgrind_by_instruction)
{
	EXPECT_EQ(write_text(true, true, false, "--dump-before=fib"), 26);
	EXPECT_STREQ(text, HEAD "desc: Trigger: --dump-before=fib\n\npositions: instr line\n"
				"events: Ir\nsummary: 26\n\n"
				"\nob=/bin/p\nfl=p.c\nfn=main\n"
				"0x1010 10 1\n"
				"0x1012 10 1\n"
				"cfn=fib\ncalls=1 0x1020 20 \n0x1012 10 13\n"
				"0x1018 15 2\n"
				"cob=/lib/c.so\ncfi=???\ncfn=puts\ncalls=2 0x1100 0 \n0x1018 15 9\n"
				"\nfn=fib\n"
				"0x1020 20 4\n"
				"cfn=fib'2\ncalls=2 0x1020 20 \n0x1020 20 6\n"
				"fi=p.h\n0x1030 30 3\n"
				"\nfl=p.c\nfn=fib'2\n"
				"0x1020 20 6\n"
				"\nob=/lib/c.so\nfl=???\nfn=puts\n"
				"0x1100 0 9\n"
				"\ntotals: 26\n");
}

TEST(positions_are_relative)
{
	(void)write_text(true, false, true, NULL);
	EXPECT_CONTAINS(text, "positions: instr\n");
	EXPECT_CONTAINS(text, "fn=(1) main\n0x1010 1\n+2 1\ncfn=");
	EXPECT_CONTAINS(text, "calls=1 0x1020 \n0x1012 13\n0x1018 2\n");
}

TEST(cachegrind)
{
	const struct callgrind_style s = {.command = "./p 30", .find = find};
	FILE *f = fmemopen(text, sizeof(text), "w");

	struct callgrind_totals total = {0};

	cachegrind_write(f, &profile, &s, &total);
	fclose(f);
	EXPECT_EQ(total.instructions, 26);
	EXPECT_STREQ(text, "desc: I1 cache:         \ndesc: D1 cache:         \n"
			   "desc: LL cache:         \ncmd: ./p 30\nevents: Ir\n"
			   "fl=???\nfn=puts\n0 9\n"
			   "fl=p.c\nfn=fib\n20 10\nfn=main\n10 2\n15 2\n"
			   "fl=p.h\nfn=fib\n30 3\nsummary: 26\n");
}

TEST(a_command_stays_a_line)
{
	char a[] = "a", b[] = "b\nc", c[] = "d\\e", *argv[] = {a, b, c, NULL};
	char *line = callgrind_command(argv);

	EXPECT_STREQ(line, "a b\\nc d\\\\e");
	free(line);
}
