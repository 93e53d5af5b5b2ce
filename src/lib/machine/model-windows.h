/*
 * PURPOSE: windows in which the model of a machine sees a program, as text: "no", "auto", or how
 * many instructions of how many, "50K/10M".
 */
#ifndef LIB_MACHINE_MODEL_WINDOWS_H
#define LIB_MACHINE_MODEL_WINDOWS_H

#include <stddef.h>

#include "abi/run-config.h"

#define MODEL_WINDOWS_TEXT 32

/* For struct run_config. NULL is "no". 0, or -EINVAL with *@why, a sentence's end. */
int ap__model_windows(const char *text, u32 *window, u32 *every, const char **why);

/* The other way round, "" for none: returns @buf. */
char *ap__model_windows_text(u32 window, u32 every, char *buf, size_t size);

#endif
