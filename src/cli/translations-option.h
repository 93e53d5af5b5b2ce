/* PURPOSE: the option that keeps translations for later runs, of commands that start programs. */
#ifndef CLI_TRANSLATIONS_OPTION_H
#define CLI_TRANSLATIONS_OPTION_H

#include <anyperf/machine.h>
#include <string.h>

#include "cli/cmd.h"

static const char *const translations_words[] = {"off", "tree", "user", NULL};

/* The row of a command's table; @type is its struct of options, @field a const char * in it. */
#define TRANSLATIONS_OPTION(type, field)                                                         \
	{                                                                                        \
		OPTION_STR, 0, "translations", "off|tree|user",                                  \
			.offset = offsetof(type, field), .words = translations_words,            \
			.help = "who may take what one program has translated",                  \
			.more = "`tree`, the default: the other programs of this run; it is "    \
				"kept in memory, up to 256 MB. `user`: later runs of this user " \
				"too; it is kept in $XDG_CACHE_HOME/anyperf/translations, or "   \
				"~/.cache, up to 512 MB. Programs start several times faster "   \
				"then. `off`: nobody. Who shares has a file at the same "        \
				"addresses in all programs; with `off` each program draws them " \
				"anew. Without effect with --deterministic."                     \
	}

/* Of enum ap_virtual_flags. */
static inline unsigned int translations_flags(const char *word)
{
	if (word && !strcmp(word, "user"))
		return AP_VIRTUAL_TRANSLATIONS;
	return word && !strcmp(word, "off") ? 0 : AP_VIRTUAL_TRANSLATIONS_TREE;
}

#endif
