/*
 * PURPOSE: what libdwfl's functions take, written after its stable interface (elfutils 0.158 and
 * later). The library is opened by dlopen where it is needed, for reading other recordings must not
 * pay for it, and building does not need its headers.
 */
#ifndef SYM_DWFL_H
#define SYM_DWFL_H

#include "base/types.h"

typedef struct Dwfl Dwfl;
typedef struct Dwfl_Module Dwfl_Module;

struct dwfl_callbacks {
	int (*find_elf)(Dwfl_Module *mod, void **user, const char *name, u64 base, char **file,
			void **elf);
	int (*find_debuginfo)(Dwfl_Module *mod, void **user, const char *name, u64 base,
			      const char *file, const char *link, u32 crc, char **debug_file);
	int (*section_address)(Dwfl_Module *mod, void **user, const char *name, u64 base,
			       const char *section, u32 index, const void *header, u64 *addr);
	char **debuginfo_path;
};

#endif
