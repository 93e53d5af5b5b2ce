/*
 * Manual pages in the man(7) macros, made from the tables. The one rule of escaping: a hyphen that
 * begins a word is a minus (an option that can be copied), every backslash is doubled, and a line
 * may not begin with a control character.
 */
#include <string.h>

#include <anyperf/api.h>

#include "cli/help/docs-priv.h"
#include "cli/help/help.h"

static void escape(const char *text, size_t len)
{
	bool word_start = true;

	for (size_t i = 0; i < len; i++) {
		char c = text[i];

		if (c == '\\')
			fputs("\\e", stdout);
		else if (c == '-' && (word_start || text[i - 1] == '-'))
			fputs("\\-", stdout);
		else if (c == '\'')
			fputs("\\(aq", stdout);
		else if (c == '`')
			fputs("\\(ga", stdout);
		else if (c == '.' && i == 0)
			fputs("\\&.", stdout);
		else
			putchar(c);
		word_start = c == ' ' || c == '(' || c == '`' || c == '[' || c == '|' || c == '\'';
	}
}

/* `code` in a text is set bold. */
static void marked_line(const char *line, size_t len)
{
	const char *end = line + len;

	while (line < end) {
		const char *tick = memchr(line, '`', (size_t)(end - line));
		const char *close = tick ? memchr(tick + 1, '`', (size_t)(end - tick - 1)) : NULL;

		if (!close) {
			escape(line, (size_t)(end - line));
			break;
		}
		escape(line, (size_t)(tick - line));
		fputs("\\fB", stdout);
		escape(tick + 1, (size_t)(close - tick - 1));
		fputs("\\fR", stdout);
		line = close + 1;
	}
	putchar('\n');
}

static void text(const char *p)
{
	bool in_example = false;

	while (*p) {
		size_t len = strcspn(p, "\n");
		bool example = p[0] == ' ' && p[1] == ' ';

		if (example != in_example)
			printf("%s\n", example ? ".PP\n.in +4n\n.nf" : ".fi\n.in\n.PP");
		in_example = example;
		if (example) {
			escape(p + 2, len - 2);
			putchar('\n');
		} else if (len) {
			marked_line(p, len);
		} else if (p[1] && !(p[1] == ' ' && p[2] == ' ')) {
			puts(".PP");
		}
		p += len + (p[len] != 0);
	}
	if (in_example)
		puts(".fi\n.in");
}

static void option(const struct option *o)
{
	const char *no = o->kind == OPTION_UNSET ? "no\\-" : "";

	fputs(".TP\n", stdout);
	if (o->letter)
		printf("\\fB\\-%c\\fR%s", o->letter, o->name ? ", " : "");
	if (o->name) {
		printf("\\fB\\-\\-%s", no);
		escape(o->name, strlen(o->name));
		fputs("\\fR", stdout);
	}
	if (o->arg) {
		printf("%s\\fI", o->name ? "=" : " ");
		escape(o->arg, strlen(o->arg));
		fputs("\\fR", stdout);
	} else if (o->optional) {
		fputs("[=\\fI", stdout);
		escape(o->optional, strlen(o->optional));
		fputs("\\fR]", stdout);
	}
	putchar('\n');
	printf("%c", o->help[0] >= 'a' && o->help[0] <= 'z' ? o->help[0] - 'a' + 'A' : o->help[0]);
	marked_line(o->help + 1, strlen(o->help) - 1);
	if (o->more) {
		puts(".IP");
		text(o->more);
	}
}

static void title(const char *name, const char *summary)
{
	char upper[40] = "";

	for (size_t i = 0; name[i] && i + 1 < sizeof(upper); i++)
		upper[i] = (char)(name[i] >= 'a' && name[i] <= 'z' ? name[i] - 'a' + 'A' : name[i]);
	printf(".\\\" Generated from the option tables in src/cli; do not edit.\n"
	       ".TH \"%s\" 1 \"\" \"anyperf %s\" \"anyperf manual\"\n"
	       ".SH NAME\n%s \\- %s\n",
	       upper, ap_version(), name, summary);
}

static void heading(const char *name)
{
	fputs(".SH ", stdout);
	for (; *name; name++)
		putchar(*name >= 'a' && *name <= 'z' ? *name - 'a' + 'A' : *name);
	putchar('\n');
}

int docs_man_command(const struct command *cmd)
{
	const char *form = cmd->synopsis;
	char name[40];

	snprintf(name, sizeof(name), "anyperf-%s", cmd->name);
	title(name, cmd->summary);
	puts(".SH SYNOPSIS");
	while (form) {
		size_t len = strcspn(form, "\n");

		printf("\\fBanyperf %s\\fR ", cmd->name);
		escape(form, len);
		form = form[len] ? form + len + 1 : NULL;
		puts(form ? "\n.br" : "");
	}
	puts(".SH DESCRIPTION");
	text(cmd->description);
	puts(".SH OPTIONS");
	for (const struct option *o = cmd->options; o && o->kind; o++) {
		if (o->kind == OPTION_GROUP)
			printf(".SS %s\n", o->help);
		else if (!o->hidden)
			option(o);
	}
	puts(".TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\nList the options.");
	for (const struct section *s = cmd->sections; s && s->title; s++) {
		heading(s->title);
		text(s->text);
	}
	printf(".SH SEE ALSO\n\\fBanyperf\\fR(1)%s", cmd->see_also ? ", " : "");
	if (cmd->see_also)
		escape(cmd->see_also, strlen(cmd->see_also));
	putchar('\n');
	return 0;
}

int docs_man_overview(void)
{
	title("anyperf", "count what programs do, with or without a hardware PMU");
	puts(".SH SYNOPSIS\n\\fBanyperf\\fR \\fICOMMAND\\fR [options] [arguments]\n.br\n"
	     "\\fBanyperf\\fR \\fB\\-\\-version\\fR | \\fB\\-\\-help\\fR\n"
	     ".SH DESCRIPTION\n"
	     "anyperf is the perf_event system of Linux for every machine. Where the kernel has a\n"
	     "PMU it is a small and fast front of \\fBperf_event_open\\fR(2). Where it has none\n"
	     "(virtual machines, containers, sandboxes) anyperf brings a PMU of its own.\n"
	     ".SH COMMANDS");
	for (size_t i = 0; commands[i]; i++)
		if (!commands[i]->hidden)
			printf(".TP\n\\fBanyperf %s\\fR\n%s\n", commands[i]->name,
			       commands[i]->summary);
	puts(".SH EXIT STATUS\n"
	     "A command that runs a program exits with that program\\(aqs status, as \\fBenv\\fR(1)\n"
	     "does: 125 if anyperf itself failed, 126 if the program could not be started, 127 if it\n"
	     "was not found, 128 + N if signal N ended it. \\fBanyperf top\\fR fails with 2 itself. The\n"
	     "other commands exit with 0, with 1 if something was found wanting, and with 2 if they\n"
	     "failed or were called wrongly.\n"
	     ".SH ENVIRONMENT\n"
	     ".TP\n\\fBNO_COLOR\\fR\nIf set and not empty, nothing is coloured.\n"
	     ".TP\n\\fBLC_ALL\\fR, \\fBLC_NUMERIC\\fR, \\fBLANG\\fR\n"
	     "How thousands are separated in texts for people.\n"
	     ".SH SEE ALSO");
	for (size_t i = 0; commands[i]; i++)
		if (!commands[i]->hidden)
			printf("\\fBanyperf\\-%s\\fR(1),\n", commands[i]->name);
	puts("\\fBperf_event_open\\fR(2)");
	return 0;
}
