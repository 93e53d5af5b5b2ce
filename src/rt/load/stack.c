/*
 * From high to low: eight zero bytes, the file name (AT_EXECFN), the environment's strings, the
 * arguments' strings, a random gap, the platform's name, 16 random bytes, then, so that rsp ends up
 * a multiple of 16: auxv, envp, argv, argc.
 */
#include "rt/load/stack.h"

#include "abi/control.h"
#include "rt/mm/mm.h"
#include "sys/string.h"

#include <linux/auxvec.h>

void stack_parse(u64 sp, struct stack_in *in)
{
	char **p;

	in->argc = *(u64 *)sp;
	in->argv = (char **)(sp + 8);
	in->envp = in->argv + in->argc + 1;
	for (p = in->envp; *p; p++)
		;
	in->envc = (u64)(p - in->envp);
	in->auxv = (u64(*)[2])(p + 1);
	for (in->auxc = 0; in->auxv[in->auxc][0] != AT_NULL; in->auxc++)
		;
	in->auxc++;
}

u64 stack_aux(const struct stack_in *in, u64 type)
{
	for (u64 i = 0; i < in->auxc; i++)
		if (in->auxv[i][0] == type)
			return in->auxv[i][1];
	return 0;
}

static u64 skipped(u32 nprefix)
{
	return CONTROL_ARGS + (nprefix ? 1 : 0);
}

static size_t strings_size(char *const *v, u64 n)
{
	size_t size = 0;

	for (u64 i = 0; i < n; i++)
		size += str_len(v[i]) + 1;
	return size;
}

/* What arch_align_stack() took from the old stack, at random, is taken from the new one. */
static u64 random_gap(const struct stack_in *in)
{
	const char *platform = (const char *)stack_aux(in, AT_PLATFORM);

	return ALIGN_DOWN((u64)in->argv[0] - ((u64)platform + str_len(platform) + 1), 16);
}

size_t stack_scratch(const struct stack_in *in, char *const *prefix, u32 nprefix,
		     const char *execfn)
{
	u64 skip = skipped(nprefix);

	return strings_size(in->argv + skip, in->argc - skip) + strings_size(prefix, nprefix) +
	       strings_size(in->envp, in->envc) + str_len(execfn) + 1 +
	       (in->argc + nprefix + in->envc + 4) * 8 + in->auxc * 16 + random_gap(in) + 256;
}

/* Builds the image from its low end in scratch memory, then copies it up in one go. */
void stack_build(const struct stack_in *in, char *const *prefix, u32 nprefix, const char *execfn,
		 const struct elf_image *image, u64 base, u64 vdso, void *scratch,
		 struct stack_out *out)
{
	u64 skip = skipped(nprefix), argc = nprefix + in->argc - skip;
	const char *old_fn = (const char *)stack_aux(in, AT_EXECFN);
	const char *platform = (const char *)stack_aux(in, AT_PLATFORM);
	const u8 *random = (const u8 *)stack_aux(in, AT_RANDOM);
	u64 top = ALIGN_UP((u64)old_fn + str_len(old_fn) + 1 + 8, PAGE_SIZE);
	u64 fn_len = str_len(execfn) + 1, platform_len = str_len(platform) + 1;
	u64 env_len = strings_size(in->envp, in->envc);
	u64 arg_len = strings_size(prefix, nprefix) +
		      strings_size(in->argv + skip, in->argc - skip);
	u64 fn_at = top - 8 - fn_len, env_at = fn_at - env_len, arg_at = env_at - arg_len;
	u64 p = ALIGN_DOWN(arg_at - random_gap(in), 16), platform_at, random_at, aux_at, sp;
	u64 words = argc + 1 + in->envc + 1 + 1;
	u64 *w;
	char *text;

	platform_at = p - platform_len;
	random_at = platform_at - 16;
	aux_at = random_at - in->auxc * 16;
	sp = ALIGN_DOWN(aux_at - words * 8, 16);
	aux_at = sp + words * 8;

	/* image byte for address x: (char *)scratch + (x - sp) */
#define AT(x) ((char *)scratch + ((x)-sp))
	memset(scratch, 0, top - sp);
	w = (u64 *)AT(sp);
	*w++ = argc;
	text = AT(arg_at);
	for (u64 i = 0; i < argc; i++) {
		const char *s = i < nprefix ? prefix[i] : in->argv[skip + i - nprefix];
		size_t len = str_len(s) + 1;

		*w++ = sp + (u64)(text - (char *)scratch);
		memcpy(text, s, len);
		text += len;
	}
	w++;
	for (u64 i = 0; i < in->envc; i++) {
		size_t len = str_len(in->envp[i]) + 1;

		*w++ = sp + (u64)(text - (char *)scratch);
		memcpy(text, in->envp[i], len);
		text += len;
	}
	memcpy(AT(fn_at), execfn, fn_len);
	memcpy(AT(platform_at), platform, platform_len);
	memcpy(AT(random_at), random, 16);
	w = (u64 *)AT(aux_at);
	for (u64 i = 0; i < in->auxc; i++) {
		u64 type = in->auxv[i][0], value = in->auxv[i][1];

		switch (type) {
		case AT_PHDR: value = image->phdr; break;
		case AT_SYSINFO_EHDR: value = vdso; break;
		case AT_PHNUM: value = image->phnum; break;
		case AT_BASE: value = base; break;
		case AT_ENTRY: value = image->entry; break;
		case AT_EXECFN: value = fn_at; break;
		case AT_PLATFORM: value = platform_at; break;
		case AT_RANDOM: value = random_at; break;
		}
		*w++ = type;
		*w++ = value;
	}
#undef AT
	/* Below the new image lies what is left of the old one; the kernel's is zero there. */
	if (sp > (u64)in->argv - 8)
		memset((void *)((u64)in->argv - 8), 0, sp - ((u64)in->argv - 8));
	memcpy((void *)sp, scratch, top - sp);
	out->sp = sp;
	out->end = top;
	out->argv_start = arg_at;
	out->argv_end = env_at;
	out->env_start = env_at;
	out->env_end = fn_at;
	out->auxv = aux_at;
	out->auxv_len = in->auxc * 16;
}
