/* PURPOSE: the option that keeps translations for later runs, of commands that start programs. */
#ifndef CLI_TRANSLATIONS_OPTION_H
#define CLI_TRANSLATIONS_OPTION_H

#include "cli/cmd.h"

static const char *const translations_words[] = {"off", "user", NULL};

/* The row of a command's table; @type is its struct of options, @field a const char * in it. */
#define TRANSLATIONS_OPTION(type, field)                                                           \
	{                                                                                          \
		OPTION_STR, 0, "translations", "off|user",                                         \
			.offset = offsetof(type, field), .words = translations_words,              \
			.help = "keep what is translated for this user's later runs",              \
			.more = "In $XDG_CACHE_HOME/anyperf/translations, or ~/.cache; up to "     \
				"512 MB. Programs start several times faster then. With `user` a " \
				"file is at the same addresses in all of the user's runs; with "   \
				"`off`, the default, each program draws them anew. Without "       \
				"effect with --deterministic."                                     \
	}

static inline bool translations_kept(const char *word)
{
	return word && !strcmp(word, "user");
}

#endif
