/* The two halves of the documentation generator; docs_write() in help.h is its face. */
#ifndef CLI_HELP_DOCS_PRIV_H
#define CLI_HELP_DOCS_PRIV_H

#include "cli/cmd.h"

int docs_man_command(const struct command *cmd);
int docs_man_overview(void);

#endif
