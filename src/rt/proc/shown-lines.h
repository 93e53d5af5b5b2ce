/*
 * PURPOSE: lines of the kernel's texts below /proc, without what is the runtime's in them. Names in
 * them may be any bytes. Pure.
 */
#ifndef RT_PROC_SHOWN_LINES_H
#define RT_PROC_SHOWN_LINES_H

#include "base/types.h"

/* "VmSize:     123 kB" of status, without @own bytes; no such line: @text stays as it is. */
void shown_vm_line(const char *line, u64 own, char *text, size_t size);

#define SHOWN_STATM 160u /* bytes for seven numbers */

/*
 * The line of statm, in pages, without @all bytes of addresses and @data of them private and
 * writable. What its length is, with its end.
 */
size_t shown_statm(const char *line, u64 all, u64 data, char text[SHOWN_STATM]);

/* The name in a line of maps if it is @claimed or, seen from another root, ends so; or NULL. */
const char *shown_mapped(const char *line, const char *claimed);

#endif
