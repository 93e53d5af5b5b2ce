/*
 * PURPOSE: names for the slots of a procedure linkage table, through which a file calls functions
 * of others: "puts@plt". They have no symbols; the relocations of the table tell whose each is.
 */
#ifndef SYM_PLT_H
#define SYM_PLT_H

#include "elf/elf-file.h"

/*
 * Gets one slot: @size bytes at the virtual address @start. Takes @name, which is to be freed.
 * False: no memory, stop.
 */
typedef bool (*sym_slot_fn)(void *to, u64 start, u64 size, char *name);

/* False: @add has said so. A file whose tables cannot be read has no slots. */
bool sym_plt_slots(const struct elf_file *im, sym_slot_fn add, void *to);

#endif
