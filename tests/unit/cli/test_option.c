/* The option parser: spellings, negation, abbreviations, operands, and what it says of slips. */
#include <fcntl.h>
#include <unistd.h>

#include "cli/cmd.h"
#include "unit/test.h"

struct opts {
	bool flag, scale;
	int count;
	long number;
	const char *text;
	int calls;
};

static int call(void *into, const char *arg, char *why, size_t size)
{
	struct opts *o = into;

	if (!strcmp(arg, "bad")) {
		snprintf(why, size, "that is bad");
		return -1;
	}
	o->calls++;
	return 0;
}

static const char *const colours[] = {"red", "green", NULL};

static const struct option table[] = {
	{OPTION_GROUP, .help = "A group"},
	{OPTION_FLAG, 'f', "flag", .offset = offsetof(struct opts, flag), .help = "flag"},
	{OPTION_UNSET, 0, "scale", .offset = offsetof(struct opts, scale), .help = "scale"},
	{OPTION_COUNT, 'v', "verbose", .offset = offsetof(struct opts, count), .help = "verbose"},
	{OPTION_INT, 'n', "number", "N", .offset = offsetof(struct opts, number), .min = -1,
	 .max = 9, .help = "number"},
	{OPTION_STR, 't', "text", "TEXT", .offset = offsetof(struct opts, text), .help = "text"},
	{OPTION_STR, 0, "colour", "C", .offset = offsetof(struct opts, text), .words = colours,
	 .help = "colour"},
	{OPTION_CALL, 'c', "call", "X", .call = call, .help = "call"},
	{OPTION_CALL, 0, "callback", "X", .call = call, .help = "another"},
	{0},
};

static const struct command plain = {.name = "plain",
				     .summary = "test",
				     .synopsis = "",
				     .description = "",
				     .options = table,
				     .failure = 2};
static const struct command runner = {.name = "runner",
				      .summary = "test",
				      .synopsis = "",
				      .description = "",
				      .options = table,
				      .takes_command = true,
				      .failure = 125};

static char said[1024]; /* what the last parse wrote to stderr */
static char *args[16];
static int nr_args;

/* Splits @line at blanks and parses it. */
static int parse(const struct command *cmd, struct opts *o, const char *line)
{
	static char words[256];
	int ends[2], saved = dup(2), first;
	ssize_t n;

	*o = (struct opts){.scale = true};
	snprintf(words, sizeof(words), "%s", line);
	nr_args = 0;
	for (char *w = strtok(words, " "); w; w = strtok(NULL, " "))
		args[nr_args++] = w;
	args[nr_args] = NULL;
	if (pipe(ends))
		abort();
	dup2(ends[1], 2);
	first = options_parse(cmd, o, nr_args, args);
	fflush(stderr);
	dup2(saved, 2);
	close(saved);
	close(ends[1]);
	n = read(ends[0], said, sizeof(said) - 1);
	said[n > 0 ? n : 0] = 0;
	close(ends[0]);
	return first;
}

TEST(spellings)
{
	struct opts o;

	EXPECT_EQ(parse(&plain, &o, "x -fvv -n5 --text=a"), 4);
	EXPECT(o.flag);
	EXPECT_EQ(o.count, 2);
	EXPECT_EQ(o.number, 5);
	EXPECT_STREQ(o.text, "a");
	EXPECT_EQ(parse(&plain, &o, "x -n -1 --text b -c y"), 7);
	EXPECT_EQ(o.number, -1);
	EXPECT_STREQ(o.text, "b");
	EXPECT_EQ(o.calls, 1);
	EXPECT_EQ(parse(&plain, &o, "x --text="), 2);
	EXPECT_STREQ(o.text, "");
}

TEST(negation)
{
	struct opts o;

	EXPECT_EQ(parse(&plain, &o, "x --no-scale -f --no-flag"), 4);
	EXPECT(!o.scale && !o.flag);
	EXPECT_EQ(parse(&plain, &o, "x --no-scale --scale"), 3);
	EXPECT(o.scale);
	EXPECT_EQ(parse(&plain, &o, "x -vv --no-verbose"), 3);
	EXPECT_EQ(o.count, 0);
	EXPECT_EQ(parse(&plain, &o, "x --no-number"), -1);
}

TEST(abbreviations)
{
	struct opts o;

	EXPECT_EQ(parse(&plain, &o, "x --fl --te=q --no-sc"), 4);
	EXPECT(o.flag && !o.scale);
	EXPECT_STREQ(o.text, "q");
	EXPECT_EQ(parse(&plain, &o, "x --cal y"), -1);
	EXPECT_CONTAINS(said, "'--call' or '--callback'");
	EXPECT_EQ(parse(&plain, &o, "x --call y"), 3);
	EXPECT_EQ(o.calls, 1);
}

TEST(operands_move_behind_options)
{
	struct opts o;

	EXPECT_EQ(parse(&plain, &o, "x one -f two -n 3 three"), 4);
	EXPECT(o.flag);
	EXPECT_EQ(o.number, 3);
	EXPECT_STREQ(args[4], "one");
	EXPECT_STREQ(args[5], "two");
	EXPECT_STREQ(args[6], "three");
	EXPECT_EQ(parse(&plain, &o, "x one -- -f"), 2);
	EXPECT(!o.flag);
	EXPECT_STREQ(args[2], "one");
	EXPECT_STREQ(args[3], "-f");
	EXPECT_EQ(parse(&plain, &o, "x -"), 1);
}

TEST(a_command_keeps_its_options)
{
	struct opts o;

	EXPECT_EQ(parse(&runner, &o, "x -f prog -n 3"), 2);
	EXPECT_EQ(o.number, 0);
	EXPECT_EQ(parse(&runner, &o, "x -f -- -prog -n 3"), 3);
	EXPECT_STREQ(args[3], "-prog");
}

TEST(slips_are_answered)
{
	struct opts o;

	EXPECT_EQ(parse(&plain, &o, "x --nubmer 3"), -1);
	EXPECT_CONTAINS(said, "did you mean --number?");
	EXPECT_EQ(parse(&plain, &o, "x -number 3"), -1); /* -n umber */
	EXPECT_CONTAINS(said, "'umber' is not a whole number");
	EXPECT_EQ(parse(&plain, &o, "x -n 18446744073709551616"), -1);
	EXPECT_CONTAINS(said, "18446744073709551616 is not between");
	EXPECT_EQ(parse(&plain, &o, "x --no-scael"), -1);
	EXPECT_CONTAINS(said, "did you mean --no-scale?");
	EXPECT_EQ(parse(&plain, &o, "x --zzzzzz"), -1);
	EXPECT(!strstr(said, "did you mean"));
	EXPECT_EQ(parse(&plain, &o, "x -q"), -1);
	EXPECT_CONTAINS(said, "no option '-q'");
	EXPECT_EQ(parse(&plain, &o, "x -n"), -1);
	EXPECT_CONTAINS(said, "needs an argument: N");
	EXPECT_EQ(parse(&plain, &o, "x --flag=3"), -1);
	EXPECT_CONTAINS(said, "takes no argument");
	EXPECT_EQ(parse(&plain, &o, "x -n 10"), -1);
	EXPECT_CONTAINS(said, "not between -1 and 9");
	EXPECT_EQ(parse(&plain, &o, "x -n 3x"), -1);
	EXPECT_EQ(parse(&plain, &o, "x --colour gren"), -1);
	EXPECT_CONTAINS(said, "did you mean green");
	EXPECT_EQ(parse(&plain, &o, "x --colour red"), 3);
	EXPECT_EQ(parse(&plain, &o, "x -c bad"), -1);
	EXPECT_CONTAINS(said, "-c: that is bad");
}
