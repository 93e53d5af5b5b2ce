/* Shell completions, made from the tables; and the entry to all generated documentation. */
#include <stdio.h>
#include <string.h>

#include "cli/help/docs-priv.h"
#include "cli/help/help.h"
#include "lib/machine/machine-file.h"

/* Inside '...' of a shell; @also lists characters that want a backslash (zsh's specs). */
static void quoted(const char *s, const char *apostrophe, const char *also)
{
	for (; *s; s++) {
		if (*s == '\'')
			fputs(apostrophe, stdout);
		else if (strchr(also, *s))
			printf("\\%c", *s);
		else
			putchar(*s);
	}
}

static const char *negation(const struct option *o)
{
	return o->kind == OPTION_UNSET ? "no-" : "";
}

static bool skipped(const struct option *o)
{
	return o->kind == OPTION_GROUP || o->hidden;
}

/* " -e --event": all spellings of one option. */
static void spellings(const struct option *o, const char *between)
{
	if (o->letter)
		printf("-%c%s", o->letter, o->name ? between : "");
	if (o->name)
		printf("--%s%s", negation(o), o->name);
}

/*
 * The length of the i-th word that the argument can be, and *@word, which does not end there; 0
 * behind the last one, after which none may be asked for. Where the table has no list of them, they
 * are in the argument's name, as in "no|auto|N/EVERY", and what has other characters stands for
 * something.
 */
static size_t word_of(const struct option *o, size_t i, const char **word)
{
	static const char chars[] = "abcdefghijklmnopqrstuvwxyz0123456789-_";
	const char *p = o->arg;

	if (o->words) {
		*word = o->words[i];
		return *word ? strlen(*word) : 0;
	}
	if (!p || !strchr(p, '|'))
		return 0;
	for (;; p++) {
		size_t len = strcspn(p, "|");

		*word = p;
		if (len && strspn(p, chars) >= len && !i--)
			return len;
		p += len;
		if (!*p)
			return 0;
	}
}

static void put_machine(const struct machine *m, void *data)
{
	(void)data;
	printf(" %s", m->name);
}

static void put_machines(void)
{
	ap__model_machines(put_machine, NULL);
}

/* All of them. */
static void put_words(const struct option *o)
{
	const char *word;
	size_t len;

	for (size_t i = 0; (len = word_of(o, i, &word)); i++)
		printf("%s%.*s", i ? " " : "", (int)len, word);
	if (o->complete == COMPLETE_MACHINE)
		put_machines();
}

static bool takes_files(const struct option *o)
{
	return o->complete == COMPLETE_FILE || o->complete == COMPLETE_MACHINE;
}

static bool has_words(const struct option *o)
{
	const char *word;

	return word_of(o, 0, &word);
}

/* What stands for something may be a file. */
static void bash_words(const struct option *o)
{
	printf("COMPREPLY=($(compgen -W '");
	put_words(o);
	printf("' -- \"$cur\")%s)", takes_files(o) ? " $(compgen -f -- \"$cur\")" : "");
}

static void bash_arguments(const struct command *cmd)
{
	for (const struct option *o = cmd->options; o && o->kind; o++) {
		if (skipped(o) || !o->arg)
			continue;
		printf("\t\t");
		spellings(o, " | ");
		printf(") ");
		if (has_words(o))
			bash_words(o);
		else if (o->complete == COMPLETE_EVENT)
			printf("_anyperf_events");
		else if (o->complete == COMPLETE_FILE)
			printf("COMPREPLY=($(compgen -f -- \"$cur\"))");
		else if (o->complete == COMPLETE_PID)
			printf("COMPREPLY=($(compgen -W \"$(ps -eo pid=)\" -- \"$cur\"))");
		else if (o->complete == COMPLETE_COMMAND)
			printf("COMPREPLY=($(compgen -c -- \"$cur\"))");
		printf("\n\t\t\treturn ;;\n");
	}
}

static void bash_command(const struct command *cmd)
{
	printf("\t%s)\n\t\tcase $prev in\n", cmd->name);
	bash_arguments(cmd);
	printf("\t\tesac\n");
	if (cmd->takes_command) {
		printf("\t\t_anyperf_operand '");
		for (const struct option *o = cmd->options; o && o->kind; o++) {
			if (skipped(o) || !o->arg)
				continue;
			putchar(' ');
			spellings(o, " ");
		}
		printf(" ' '%s' && return\n", cmd->between ? cmd->between : "");
	}
	printf("\t\t[[ $cur == -* ]] && COMPREPLY=($(compgen -W '-h --help");
	for (const struct option *o = cmd->options; o && o->kind; o++) {
		if (skipped(o))
			continue;
		putchar(' ');
		spellings(o, " ");
	}
	printf("' -- \"$cur\"))\n");
	if (cmd->takes_command)
		printf("\t\t[[ $cur == -* ]] || COMPREPLY=($(compgen -c -- \"$cur\"))\n");
	else if (cmd == &cmd_list)
		printf("\t\t[[ $cur == -* ]] || _anyperf_events\n");
	else if (cmd == &cmd_help)
		printf("\t\t[[ $cur == -* ]] || COMPREPLY=($(compgen -W \"$commands\" -- \"$cur\"))\n");
	else if (cmd == &cmd_machine) {
		printf("\t\t[[ $cur == -* ]] || COMPREPLY=($(compgen -W '");
		put_machines();
		printf("' -- \"$cur\") $(compgen -f -- \"$cur\"))\n");
	}
	printf("\t\t;;\n");
}

static int bash(void)
{
	puts("# bash completion for anyperf. Generated from its option tables; do not edit.\n"
	     "# shellcheck shell=bash disable=SC2207 # names of events hold no blanks\n\n"
	     "# Event lists: what stands after the last comma or brace is completed.\n"
	     "_anyperf_events() {\n"
	     "\tlocal last=${cur##*[,\\{]}\n"
	     "\tCOMPREPLY=($(compgen -P \"${cur%\"$last\"}\" -W \"$(anyperf list --names 2>/dev/null)\" "
	     "-- \"$last\"))\n"
	     "\t((at < COMP_CWORD)) && COMPREPLY=(\"${COMPREPLY[@]#\"${cur%\"${cur##*:}\"}\"}\")\n"
	     "\tcompopt -o nospace 2>/dev/null\n"
	     "}\n\n"
	     "# $1: the options that take an argument; $2: what stands between programs, if there can be\n"
	     "# more. Succeeds if a program to run stands on the line already, and lets that program's\n"
	     "# own completion go on.\n"
	     "_anyperf_operand() {\n"
	     "\tlocal i k\n"
	     "\tfor ((i = 2; i < COMP_CWORD; i++)); do\n"
	     "\t\tcase ${COMP_WORDS[i]} in\n"
	     "\t\t--) ((i++)); break ;;\n"
	     "\t\t= | :) ((i++)) ;;\n"
	     "\t\t-*) [[ $1 == *\" ${COMP_WORDS[i]} \"* && ${COMP_WORDS[i + 1]} != = ]] && ((i++)) ;;\n"
	     "\t\t*) break ;;\n"
	     "\t\tesac\n"
	     "\tdone\n"
	     "\t((i < COMP_CWORD)) || return 1\n"
	     "\tfor ((k = i; k < COMP_CWORD; k++)); do\n"
	     "\t\t[[ $2 && ${COMP_WORDS[k]} == \"$2\" ]] && ((i = k + 1))\n"
	     "\tdone\n"
	     "\tif ((i == COMP_CWORD)); then\n"
	     "\t\tCOMPREPLY=($(compgen -c -- \"$cur\"))\n"
	     "\t\treturn\n"
	     "\tfi\n"
	     "\tif declare -F _command_offset >/dev/null; then\n"
	     "\t\t_command_offset \"$i\"\n"
	     "\telse\n"
	     "\t\tCOMPREPLY=($(compgen -f -- \"$cur\"))\n"
	     "\tfi\n"
	     "\t[[ $2 && $cur == -* ]] && COMPREPLY+=($(compgen -W \"$2\" -- \"$cur\"))\n"
	     "\treturn 0\n"
	     "}\n\n"
	     "_anyperf() {\n"
	     "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev at=$COMP_CWORD\n"
	     "\t# Readline breaks words at colons, and wants back what stands behind the last.\n"
	     "\twhile ((at > 1)) && [[ ${COMP_WORDS[at]} == : || ${COMP_WORDS[at - 1]} == : ]]; do\n"
	     "\t\t((at--))\n"
	     "\t\tcur=${COMP_WORDS[at]}$cur\n"
	     "\tdone\n"
	     "\tprev=${COMP_WORDS[at - 1]}");
	printf("\tlocal commands='");
	for (size_t i = 0; commands[i]; i++)
		if (!commands[i]->hidden)
			printf("%s%s", i ? " " : "", commands[i]->name);
	puts("'\n"
	     "\tCOMPREPLY=()\n"
	     "\t# Readline breaks `--option=value` into three words.\n"
	     "\tif [[ $cur == = ]]; then\n"
	     "\t\tcur=\n"
	     "\telif [[ $prev == = ]]; then\n"
	     "\t\tprev=${COMP_WORDS[at - 2]}\n"
	     "\tfi\n"
	     "\tif ((COMP_CWORD == 1)); then\n"
	     "\t\tCOMPREPLY=($(compgen -W \"$commands --help --version\" -- \"$cur\"))\n"
	     "\t\treturn\n"
	     "\tfi\n"
	     "\tcase ${COMP_WORDS[1]} in");
	for (size_t i = 0; commands[i]; i++)
		bash_command(commands[i]);
	puts("\tesac\n}\ncomplete -F _anyperf anyperf");
	return 0;
}

static void zsh_option(const struct option *o)
{
	const char *repeat = o->kind == OPTION_COUNT || o->kind == OPTION_CALL ? "*" : "";

	printf("\t\t\t'%s", repeat);
	if (!*repeat && o->letter && o->name)
		printf("(-%c --%s%s)", o->letter, negation(o), o->name);
	putchar('\'');
	if (o->letter && o->name)
		printf("{-%c%s,--%s%s%s}", o->letter, o->arg ? "+" : "", negation(o), o->name,
		       o->arg ? "=" : "");
	else if (o->letter)
		printf("-%c%s", o->letter, o->arg ? "+" : "");
	else
		printf("--%s%s%s", negation(o), o->name, o->arg ? "=" : "");
	printf("'[");
	quoted(o->help, "'\\''", "[]:\\");
	putchar(']');
	if (o->arg) {
		putchar(':');
		quoted(o->arg, "'\\''", "[]:\\");
		putchar(':');
		if (has_words(o) && takes_files(o)) {
			printf(" _alternative \"words\\:word\\:(");
			put_words(o);
			printf(")\" \"files\\:file\\:_files\"");
		} else if (has_words(o)) {
			putchar('(');
			put_words(o);
			putchar(')');
		} else if (o->complete == COMPLETE_EVENT)
			printf("_anyperf_events");
		else if (o->complete == COMPLETE_FILE)
			printf("_files");
		else if (o->complete == COMPLETE_PID)
			printf("_pids");
		else if (o->complete == COMPLETE_COMMAND)
			printf("_command_names -e");
	}
	puts("' \\");
}

static int zsh(void)
{
	puts("#compdef anyperf\n"
	     "# Generated from anyperf's option tables; do not edit.\n\n"
	     "_anyperf_events() {\n"
	     "\tlocal -a events\n"
	     "\tevents=(${(f)\"$(anyperf list --names 2>/dev/null)\"})\n"
	     "\tcompset -P '*[,{]'\n"
	     "\t_describe -V event events -S ''\n"
	     "}\n\n"
	     "# $1 stands between programs; words are those behind the options.\n"
	     "_anyperf_programs() {\n"
	     "\tlocal -a before=(\"${(@)words[1,CURRENT-1]}\")\n"
	     "\tlocal at=${before[(I)$1]}\n"
	     "\tif ((at)); then\n"
	     "\t\tshift at words\n"
	     "\t\t((CURRENT -= at))\n"
	     "\tfi\n"
	     "\t((CURRENT > 1)) && [[ $PREFIX == -* ]] && compadd -- $1\n"
	     "\t_normal\n"
	     "}\n\n"
	     "_anyperf() {\n"
	     "\tlocal -a commands\n"
	     "\tcommands=(");
	for (size_t i = 0; commands[i]; i++) {
		if (commands[i]->hidden)
			continue;
		printf("\t\t'%s:", commands[i]->name);
		quoted(commands[i]->summary, "'\\''", ":");
		puts("'");
	}
	puts("\t)\n"
	     "\tif ((CURRENT == 2)); then\n"
	     "\t\t_describe command commands\n"
	     "\t\treturn\n"
	     "\tfi\n"
	     "\tlocal name=${words[2]}\n"
	     "\tshift words\n"
	     "\t((CURRENT--))\n"
	     "\tcase $name in");
	for (size_t i = 0; commands[i]; i++) {
		const struct command *cmd = commands[i];

		printf("\t%s)\n\t\t_arguments -s -S \\\n", cmd->name);
		for (const struct option *o = cmd->options; o && o->kind; o++)
			if (!skipped(o))
				zsh_option(o);
		printf("\t\t\t'(- *)'{-h,--help}'[list the options]'");
		if (cmd->between)
			printf(" \\\n\t\t\t'*:: : _anyperf_programs %s'", cmd->between);
		else if (cmd->takes_command)
			printf(" \\\n\t\t\t'*:: :_normal'");
		else if (cmd == &cmd_list)
			printf(" \\\n\t\t\t'*:event:_anyperf_events'");
		else if (cmd == &cmd_help)
			printf(" \\\n\t\t\t'1:command:_describe command commands'");
		else if (cmd == &cmd_machine) {
			printf(" \\\n\t\t\t'1:machine:_alternative \"words\\:word\\:(");
			put_machines();
			printf(")\" \"files\\:file\\:_files\"'");
		}
		puts("\n\t\t;;");
	}
	puts("\tesac\n}\n\n_anyperf \"$@\"");
	return 0;
}

static void put_commands(void)
{
	for (size_t i = 0; commands[i]; i++)
		if (!commands[i]->hidden)
			printf(" %s", commands[i]->name);
}

static void fish_operands(const struct command *cmd, const char *files, void (*put)(void))
{
	printf("complete -c anyperf -n '__fish_seen_subcommand_from %s' %s -a '", cmd->name, files);
	put();
	printf("'\n");
}

static int fish(void)
{
	puts("# fish completion for anyperf. Generated from its option tables; do not edit.\n"
	     "function __anyperf_events\n"
	     "\tset -l before (string match -r '.*[,{]' -- (commandline -ct); or echo)\n"
	     "\tfor event in (anyperf list --names 2>/dev/null)\n"
	     "\t\techo $before[1]$event\n"
	     "\tend\n"
	     "end\n\n"
	     "complete -c anyperf -n __fish_use_subcommand -f -l version -d 'print the version'");
	for (size_t i = 0; commands[i]; i++) {
		const struct command *cmd = commands[i];

		if (!cmd->hidden) {
			printf("complete -c anyperf -n __fish_use_subcommand -f -a %s -d '",
			       cmd->name);
			quoted(cmd->summary, "\\'", "");
			puts("'");
		}
		for (const struct option *o = cmd->options; o && o->kind; o++) {
			if (skipped(o))
				continue;
			printf("complete -c anyperf -n '__fish_seen_subcommand_from %s'",
			       cmd->name);
			if (o->letter)
				printf(" -s %c", o->letter);
			if (o->name)
				printf(" -l %s%s", negation(o), o->name);
			if (o->arg && takes_files(o))
				printf(" -r -F");
			else if (o->arg)
				printf(" -x");
			if (has_words(o)) {
				printf(" -a '");
				put_words(o);
				printf("'");
			} else if (o->complete == COMPLETE_EVENT)
				printf(" -a '(__anyperf_events)'");
			else if (o->complete == COMPLETE_PID)
				printf(" -a '(__fish_complete_pids)'");
			else if (o->complete == COMPLETE_COMMAND)
				printf(" -a '(__fish_complete_command)'");
			printf(" -d '");
			quoted(o->help, "\\'", "");
			puts("'");
		}
		printf("complete -c anyperf -n '__fish_seen_subcommand_from %s' -s h -l help -d "
		       "'list the options'\n",
		       cmd->name);
		if (cmd->takes_command)
			printf("complete -c anyperf -n '__fish_seen_subcommand_from %s' -a "
			       "'(__fish_complete_subcommand --fcs-skip=2)'\n",
			       cmd->name);
		if (cmd->between)
			printf("complete -c anyperf -n '__fish_seen_subcommand_from %s' -l %s -x -a "
			       "'(__fish_complete_command)' -d 'another program'\n",
			       cmd->name, cmd->between + strspn(cmd->between, "-"));
		else if (cmd == &cmd_list)
			printf("complete -c anyperf -n '__fish_seen_subcommand_from list' -f -a "
			       "'(__anyperf_events)'\n");
		else if (cmd == &cmd_help)
			fish_operands(cmd, "-f", put_commands);
		else if (cmd == &cmd_machine)
			fish_operands(cmd, "-F", put_machines);
	}
	return 0;
}

int docs_write(const char *kind, const char *name)
{
	/* In one write: what fails in between has no reason any more at the end. */
	static char buffer[65536];
	const struct command *cmd;

	setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
	if (!strcmp(kind, "bash"))
		return bash();
	if (!strcmp(kind, "zsh"))
		return zsh();
	if (!strcmp(kind, "fish"))
		return fish();
	if (!strcmp(kind, "man") && name && !strcmp(name, "anyperf"))
		return docs_man_overview();
	cmd = !strcmp(kind, "man") && name ? command_find(name) : NULL;
	if (cmd)
		return docs_man_command(cmd);
	fprintf(stderr, "anyperf: --dump-docs man NAME | bash | zsh | fish\n");
	return 2;
}
