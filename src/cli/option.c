#include "cli/option.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "cli/cmd.h"
#include "cli/help/help.h"
#include "lib/spec/nearest.h"

/* An option as it was written, for messages: "-r" or "--repeat". */
struct spelled {
	char text[72];
};

static struct spelled spell_letter(char letter)
{
	struct spelled s = {{'-', letter, 0}};

	return s;
}

static struct spelled spell_name(const char *name, size_t len)
{
	struct spelled s;

	snprintf(s.text, sizeof(s.text), "--%.*s", (int)(len > 60 ? 60 : len), name);
	return s;
}

static bool is_option(const struct option *o)
{
	return o->kind != OPTION_GROUP;
}

static bool can_negate(const struct option *o)
{
	return o->name &&
	       (o->kind == OPTION_FLAG || o->kind == OPTION_UNSET || o->kind == OPTION_COUNT);
}

static int bad_argument(const struct command *cmd, const struct spelled *as, const char *why)
{
	return command_error(cmd, "%s: %s", as->text, why);
}

static int take_int(const struct command *cmd, const struct option *o, long *var, const char *arg,
		    const struct spelled *as)
{
	char why[160];
	char *end;
	long v;

	CHECK(arg);
	errno = 0;
	v = strtol(arg, &end, 10);
	if (end == arg || *end) {
		snprintf(why, sizeof(why), "'%.40s' is not a whole number", arg);
		return bad_argument(cmd, as, why);
	}
	if (errno) {
		snprintf(why, sizeof(why), "%.40s is not between %ld and %ld", arg, o->min, o->max);
		return bad_argument(cmd, as, why);
	}
	if (v < o->min || v > o->max) {
		snprintf(why, sizeof(why), "%ld is not between %ld and %ld", v, o->min, o->max);
		return bad_argument(cmd, as, why);
	}
	*var = v;
	return 0;
}

static int check_word(const struct command *cmd, const struct option *o, const char *arg,
		      const struct spelled *as)
{
	char allowed[200] = "", hint[160];
	struct ap__nearest near;
	size_t len = 0;

	ap__nearest_init(&near, arg);
	for (size_t i = 0; o->words[i]; i++) {
		if (!strcmp(arg, o->words[i]))
			return 0;
		ap__nearest_offer(&near, o->words[i]);
		if (len < sizeof(allowed))
			len += (size_t)snprintf(allowed + len, sizeof(allowed) - len, "%s%s",
						i ? ", " : "", o->words[i]);
	}
	ap__nearest_text(&near, hint, sizeof(hint));
	return command_error(cmd, "%s: '%.40s' is none of %s%s%s", as->text, arg, allowed,
			     *hint ? "; " : "", hint);
}

static int apply(const struct command *cmd, const struct option *o, void *into, const char *arg,
		 bool negated, const struct spelled *as)
{
	void *var = (char *)into + o->offset;
	char why[300] = "";

	if (arg && o->words && check_word(cmd, o, arg, as))
		return -1;
	switch (o->kind) {
	case OPTION_FLAG:
	case OPTION_UNSET: *(bool *)var = !negated; return 0;
	case OPTION_COUNT: *(int *)var = negated ? 0 : *(int *)var + 1; return 0;
	case OPTION_INT: return take_int(cmd, o, var, arg, as);
	case OPTION_STR: *(const char **)var = arg; return 0;
	case OPTION_CALL:
		if (o->call(into, arg, why, sizeof(why)))
			return bad_argument(cmd, as, why);
		return 0;
	case OPTION_GROUP:
	case OPTION_END: break;
	}
	return 0;
}

/*
 * Refuses an option of perf's that @cmd does not have; 0 if @name (of @len bytes) is none, nor
 * @letter.
 */
static int absent(const struct command *cmd, char letter, const char *name, size_t len,
		  const struct spelled *as)
{
	for (const struct absent_option *o = cmd->absent; o && o->name; o++)
		if ((letter && o->letter == letter) ||
		    (name && strlen(o->name) == len && !strncmp(o->name, name, len)))
			return bad_argument(cmd, as, o->why);
	return 0;
}

static int unknown(const struct command *cmd, const char *name, size_t len)
{
	struct spelled as = spell_name(name, len);
	struct ap__nearest near;
	char hint[200];

	if (absent(cmd, 0, name, len, &as))
		return -1;
	if (cmd->between && !strcmp(as.text, cmd->between))
		return command_error(cmd, "there is no command in front of %s", cmd->between);

	/* With the dashes on both sides, so that they are shown in the suggestion. */
	ap__nearest_init(&near, as.text);
	for (const struct option *o = cmd->options; o && o->kind; o++) {
		char full[72];

		if (!is_option(o) || !o->name || o->hidden)
			continue;
		if (o->kind != OPTION_UNSET) {
			snprintf(full, sizeof(full), "--%s", o->name);
			ap__nearest_offer(&near, full);
		}
		if (o->kind == OPTION_UNSET || (can_negate(o) && !strncmp(name, "no-", 3))) {
			snprintf(full, sizeof(full), "--no-%s", o->name);
			ap__nearest_offer(&near, full);
		}
	}
	ap__nearest_offer(&near, "--help");
	ap__nearest_text(&near, hint, sizeof(hint));
	return command_error(cmd, "there is no option '%s'%s%s", as.text, *hint ? "; " : "", hint);
}

/*
 * Finds the long option that @name (of @len bytes) is or uniquely begins. Returns NULL with
 * *ambiguous set to a second candidate if it begins several.
 */
static const struct option *find_name(const struct command *cmd, const char *name, size_t len,
				      bool *negated, const struct option *candidates[2])
{
	const struct option *begun = NULL;
	bool begun_negated = false;

	candidates[0] = candidates[1] = NULL;
	for (const struct option *o = cmd->options; o && o->kind; o++) {
		if (!is_option(o) || !o->name)
			continue;
		for (int no = 0; no <= (can_negate(o) ? 1 : 0); no++) {
			const char *typed = name;
			size_t left = len;

			if (no) {
				if (len < 3 || strncmp(name, "no-", 3) != 0)
					continue;
				typed += 3;
				left -= 3;
			}
			if (strncmp(o->name, typed, left) != 0)
				continue;
			if (!o->name[left]) {
				*negated = no;
				return o;
			}
			if (o->hidden || !left)
				continue;
			candidates[begun != NULL] = o;
			begun = begun && begun != o ? begun : o;
			begun_negated = no;
		}
	}
	if (candidates[1])
		return NULL;
	*negated = begun_negated;
	return begun;
}

/* Takes argv[*i], which begins with "--". */
static int take_long(const struct command *cmd, void *into, int argc, char **argv, int *i)
{
	const char *name = argv[*i] + 2, *equals = strchr(name, '=');
	size_t len = equals ? (size_t)(equals - name) : strlen(name);
	const struct option *candidates[2];
	const char *arg = equals ? equals + 1 : NULL;
	const struct option *o;
	struct spelled as;
	bool negated = false;

	if (len == 4 && !strncmp(name, "help", 4)) {
		help_options(stdout, cmd);
		return -2;
	}
	o = find_name(cmd, name, len, &negated, candidates);
	if (!o && candidates[1])
		return command_error(cmd, "'--%.*s' could be '--%s' or '--%s'", (int)len, name,
				     candidates[0]->name, candidates[1]->name);
	if (!o)
		return unknown(cmd, name, len);
	as = spell_name(name, len);
	if (!o->arg && !o->optional && arg)
		return command_error(cmd, "%s takes no argument", as.text);
	if (o->arg && !arg) {
		if (*i + 1 >= argc)
			return command_error(cmd, "%s needs an argument: %s", as.text, o->arg);
		arg = argv[++*i];
	}
	return apply(cmd, o, into, arg, negated, &as);
}

/* Takes argv[*i], which is "-" and letters. */
static int take_letters(const struct command *cmd, void *into, int argc, char **argv, int *i)
{
	const char *letters = argv[*i] + 1;

	while (*letters) {
		const struct option *o = cmd->options;
		char letter = *letters++;
		struct spelled as = spell_letter(letter);
		const char *arg = NULL;

		while (o && o->kind && (!is_option(o) || o->letter != letter))
			o++;
		if (!o || !o->kind) {
			if (letter == 'h') {
				help_options(stdout, cmd);
				return -2;
			}
			if (absent(cmd, letter, NULL, 0, &as))
				return -1;
			/* A long option written with one dash is the usual slip. */
			if (letters - argv[*i] == 2 && strlen(argv[*i]) > 3)
				return unknown(cmd, argv[*i] + 1, strcspn(argv[*i] + 1, "="));
			return command_error(cmd, "there is no option '%s'", as.text);
		}
		if (o->arg) {
			if (*letters)
				arg = letters;
			else if (*i + 1 < argc)
				arg = argv[++*i];
			else
				return command_error(cmd, "%s needs an argument: %s", as.text,
						     o->arg);
			return apply(cmd, o, into, arg, false, &as);
		}
		if (o->optional && *letters == '=')
			return apply(cmd, o, into, letters + 1, false, &as);
		/* `-z9`: no option is a digit. */
		if (o->optional && *letters >= '0' && *letters <= '9')
			return apply(cmd, o, into, letters, false, &as);
		if (apply(cmd, o, into, NULL, false, &as))
			return -1;
	}
	return 0;
}

int options_parse(const struct command *cmd, void *into, int argc, char **argv)
{
	int operands = 0; /* how many stand right before argv[i] */
	int i;

	for (i = 1; i < argc; i++) {
		int first = i, err;

		if (argv[i][0] != '-' || !argv[i][1]) {
			if (cmd->takes_command)
				return i;
			operands++;
			continue;
		}
		if (!strcmp(argv[i], "--")) {
			char *dashes = argv[i];

			memmove(argv + i - operands + 1, argv + i - operands,
				(size_t)operands * sizeof(*argv));
			argv[i - operands] = dashes;
			return i - operands + 1;
		}
		err = argv[i][1] == '-' ? take_long(cmd, into, argc, argv, &i)
					: take_letters(cmd, into, argc, argv, &i);
		if (err) {
			if (err == -1)
				fprintf(stderr, "`anyperf %s --help` lists the options.\n",
					cmd->name);
			return err;
		}
		/* Move what was just taken (one or two words) in front of the operands. */
		for (; operands && first <= i; first++) {
			char *word = argv[first];

			memmove(argv + first - operands + 1, argv + first - operands,
				(size_t)operands * sizeof(*argv));
			argv[first - operands] = word;
		}
	}
	return i - operands;
}
