#include "cli/help/help.h"

#include <string.h>

/* One word of a paragraph; a line break within a paragraph is a blank. */
static const char *next_word(const char *p, size_t *len)
{
	while (*p == ' ' || *p == '\n')
		p++;
	*len = strcspn(p, " \n");
	return p;
}

static void pad_to(FILE *out, int *at, int column)
{
	for (; *at < column; (*at)++)
		putc(' ', out);
}

static const char *wrap_paragraph(FILE *out, const char *p, int indent, int at, int width)
{
	bool first = true;

	while (*p && !(p[0] == '\n' && p[1] == '\n')) {
		size_t len;
		const char *word = next_word(p, &len);

		if (!len)
			return word;
		if (!first && at + 1 + (int)len > width) {
			putc('\n', out);
			at = 0;
			first = true;
		}
		if (first)
			pad_to(out, &at, indent);
		else
			at += fprintf(out, " ");
		fwrite(word, 1, len, out);
		at += (int)len;
		first = false;
		p = word + len;
	}
	putc('\n', out);
	return p;
}

static const char *verbatim(FILE *out, const char *p, int indent)
{
	while (p[0] == ' ' && p[1] == ' ') {
		size_t len = strcspn(p, "\n");

		fprintf(out, "%*s%.*s\n", indent, "", (int)len, p);
		p += len;
		if (*p == '\n' && p[1] == ' ')
			p++;
	}
	return p;
}

void help_wrap(FILE *out, const char *text, int indent, int at, int width)
{
	const char *p = text;

	while (*p) {
		if (p[0] == ' ' && p[1] == ' ')
			p = verbatim(out, p, indent);
		else
			p = wrap_paragraph(out, p, indent, at, width);
		at = 0;
		while (*p == '\n')
			p++;
		if (*p)
			putc('\n', out);
	}
}

int help_spelling(FILE *out, const struct option *o)
{
	const char *no = o->kind == OPTION_UNSET ? "no-" : "";
	int n = 0;

	if (o->letter)
		n += fprintf(out, "-%c%s", o->letter, o->name ? ", " : "");
	else
		n += fprintf(out, "    ");
	if (o->name)
		n += fprintf(out, "--%s%s", no, o->name);
	if (o->arg)
		n += fprintf(out, "%s%s", o->name ? "=" : " ", o->arg);
	else if (o->optional)
		n += fprintf(out, "[=%s]", o->optional);
	return n;
}

static void option_list(FILE *out, const struct command *cmd, bool more)
{
	const int column = 30;
	bool grouped = false;

	for (const struct option *o = cmd->options; o && o->kind; o++) {
		int n;

		if (o->hidden)
			continue;
		if (o->kind == OPTION_GROUP) {
			fprintf(out, "\n%s:\n", o->help);
			grouped = true;
			continue;
		}
		n = fprintf(out, "  ");
		n += help_spelling(out, o);
		if (n >= column - 1) {
			putc('\n', out);
			n = 0;
		}
		help_wrap(out, o->help, column, n, HELP_WIDTH);
		if (more && o->more)
			help_wrap(out, o->more, column, 0, HELP_WIDTH);
	}
	if (grouped)
		putc('\n', out);
	fprintf(out, "  -h, --help                  show this list\n");
}

static void usage(FILE *out, const struct command *cmd)
{
	const char *form = cmd->synopsis;
	const char *label = "usage:";

	while (form) {
		size_t len = strcspn(form, "\n");

		fprintf(out, "%s anyperf %s%s%.*s\n", label, cmd->name, len ? " " : "", (int)len,
			form);
		form = form[len] ? form + len + 1 : NULL;
		label = "      ";
	}
}

void help_options(FILE *out, const struct command *cmd)
{
	usage(out, cmd);
	fprintf(out, "%c%s.\n\n", cmd->summary[0] - 'a' + 'A', cmd->summary + 1);
	option_list(out, cmd, false);
	fprintf(out, "\n`anyperf help %s` says more.\n", cmd->name);
}

void help_full(FILE *out, const struct command *cmd)
{
	fprintf(out, "anyperf %s - %s\n\n", cmd->name, cmd->summary);
	usage(out, cmd);
	putc('\n', out);
	help_wrap(out, cmd->description, 0, 0, HELP_WIDTH);
	putc('\n', out);
	fprintf(out, "Options\n");
	option_list(out, cmd, true);
	for (const struct section *s = cmd->sections; s && s->title; s++) {
		fprintf(out, "\n%s\n", s->title);
		help_wrap(out, s->text, 2, 0, HELP_WIDTH);
	}
}

void help_commands(FILE *out)
{
	fprintf(out, "usage: anyperf COMMAND [options] [arguments]\n"
		     "       anyperf --version | --help\n\n"
		     "Counts what programs do, on machines with and without a hardware PMU.\n\n");
	for (size_t i = 0; commands[i]; i++)
		if (!commands[i]->hidden)
			fprintf(out, "  %-10s %s\n", commands[i]->name, commands[i]->summary);
	fprintf(out, "\n`anyperf COMMAND --help` lists a command's options, `anyperf help COMMAND` "
		     "says everything.\n");
}
