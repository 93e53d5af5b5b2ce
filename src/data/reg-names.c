#include "data/reg-names.h"

#include <string.h>

/* NULL: the kernel gives none there in user mode. */
static const char *const x86_64[] = {
	"ax", "bx", "cx", "dx", "si", "di", "bp",  "sp",  "ip",  "flags", "cs",  "ss",
	NULL, NULL, NULL, NULL, "r8", "r9", "r10", "r11", "r12", "r13",   "r14", "r15",
};

static const char *const aarch64[] = {
	"x0",  "x1",  "x2",  "x3",  "x4",  "x5",  "x6",  "x7",  "x8",  "x9",  "x10",
	"x11", "x12", "x13", "x14", "x15", "x16", "x17", "x18", "x19", "x20", "x21",
	"x22", "x23", "x24", "x25", "x26", "x27", "x28", "x29", "lr",  "sp",  "pc",
};

static const char *const *names_of(const char *arch, u32 *n)
{
	if (!strcmp(arch, "x86_64")) {
		*n = ARRAY_SIZE(x86_64);
		return x86_64;
	}
	if (!strcmp(arch, "aarch64")) {
		*n = ARRAY_SIZE(aarch64);
		return aarch64;
	}
	*n = 0;
	return NULL;
}

const char *data_reg_name(const char *arch, u32 bit)
{
	u32 n;
	const char *const *names = names_of(arch, &n);

	return bit < n ? names[bit] : NULL;
}

int data_reg_find(const char *arch, const char *name)
{
	u32 n;
	const char *const *names = names_of(arch, &n);

	for (u32 i = 0; i < n; i++)
		if (names[i] && !strcasecmp(names[i], name))
			return (int)i;
	return -1;
}

u64 data_regs_all(const char *arch)
{
	u32 n;
	const char *const *names = names_of(arch, &n);
	u64 all = 0;

	for (u32 i = 0; i < n; i++)
		all |= names[i] ? BIT(i) : 0;
	return all;
}
