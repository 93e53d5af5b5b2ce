#include "rt/task/alloc-names.h"

#include "sys/string.h"

static const struct {
	const char *name;
	enum alloc_kind kind;
} known[] = {
	{"malloc", ALLOC_SIZE},
	{"calloc", ALLOC_ITEMS},
	{"realloc", ALLOC_AGAIN},
	{"reallocarray", ALLOC_AGAIN_OF},
	{"free", ALLOC_FREES},
	{"cfree", ALLOC_FREES},
	{"posix_memalign", ALLOC_OUT},
	{"aligned_alloc", ALLOC_ALIGNED},
	{"memalign", ALLOC_ALIGNED},
	{"valloc", ALLOC_SIZE},
	{"pvalloc", ALLOC_SIZE},
	/* operator new and delete: those of some allocators do not call malloc and free. */
	{"_Znwm", ALLOC_SIZE},
	{"_Znam", ALLOC_SIZE},
	{"_ZnwmRKSt9nothrow_t", ALLOC_SIZE},
	{"_ZnamRKSt9nothrow_t", ALLOC_SIZE},
	{"_ZnwmSt11align_val_t", ALLOC_SIZE},
	{"_ZnamSt11align_val_t", ALLOC_SIZE},
	{"_ZnwmSt11align_val_tRKSt9nothrow_t", ALLOC_SIZE},
	{"_ZnamSt11align_val_tRKSt9nothrow_t", ALLOC_SIZE},
	{"_ZdlPv", ALLOC_FREES},
	{"_ZdaPv", ALLOC_FREES},
	{"_ZdlPvm", ALLOC_FREES},
	{"_ZdaPvm", ALLOC_FREES},
	{"_ZdlPvSt11align_val_t", ALLOC_FREES},
	{"_ZdaPvSt11align_val_t", ALLOC_FREES},
	{"_ZdlPvmSt11align_val_t", ALLOC_FREES},
	{"_ZdaPvmSt11align_val_t", ALLOC_FREES},
	/* What copies into new memory is asked for it by its caller. */
	{"strdup", ALLOC_WRAPS},
	{"__strdup", ALLOC_WRAPS},
	{"strndup", ALLOC_WRAPS},
	{"__strndup", ALLOC_WRAPS},
	{"wcsdup", ALLOC_WRAPS},
	{"asprintf", ALLOC_WRAPS},
	{"vasprintf", ALLOC_WRAPS},
	/* GNU's programs end when there is no memory. */
	{"xmalloc", ALLOC_WRAPS},
	{"xcalloc", ALLOC_WRAPS},
	{"xzalloc", ALLOC_WRAPS},
	{"xnmalloc", ALLOC_WRAPS},
	{"xrealloc", ALLOC_WRAPS},
	{"xreallocarray", ALLOC_WRAPS},
	{"xnrealloc", ALLOC_WRAPS},
	{"xstrdup", ALLOC_WRAPS},
	{"xstrndup", ALLOC_WRAPS},
	{"xmemdup", ALLOC_WRAPS},
	/* GLib */
	{"g_malloc", ALLOC_WRAPS},
	{"g_malloc0", ALLOC_WRAPS},
	{"g_malloc_n", ALLOC_WRAPS},
	{"g_malloc0_n", ALLOC_WRAPS},
	{"g_try_malloc", ALLOC_WRAPS},
	{"g_realloc", ALLOC_WRAPS},
	{"g_realloc_n", ALLOC_WRAPS},
	{"g_strdup", ALLOC_WRAPS},
	/* perl and CPython */
	{"Perl_safesysmalloc", ALLOC_WRAPS},
	{"Perl_safesyscalloc", ALLOC_WRAPS},
	{"Perl_safesysrealloc", ALLOC_WRAPS},
	{"PyMem_RawMalloc", ALLOC_WRAPS},
	{"PyMem_RawCalloc", ALLOC_WRAPS},
	{"PyMem_RawRealloc", ALLOC_WRAPS},
	{"PyMem_Malloc", ALLOC_WRAPS},
	{"PyMem_Calloc", ALLOC_WRAPS},
	{"PyMem_Realloc", ALLOC_WRAPS},
	{"PyObject_Malloc", ALLOC_WRAPS},
	{"PyObject_Calloc", ALLOC_WRAPS},
	{"PyObject_Realloc", ALLOC_WRAPS},
	/* Rust: between a program and malloc, or the allocator that it has in its place. */
	{"__rust_alloc", ALLOC_SIZE},
	{"__rust_alloc_zeroed", ALLOC_SIZE},
	{"__rust_realloc", ALLOC_AGAIN_ALIGNED},
	{"__rust_dealloc", ALLOC_FREES},
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/*
 * New compilers mangle these names of Rust: _RNvCs<hash>_7___rustc12___rust_alloc. The name inside,
 * of @len bytes; else all of @name.
 */
static const char *plain_name(const char *name, u64 *len)
{
	const char *p;
	u64 n = 0;

	*len = str_len(name);
	if (!str_starts(name, "_RNvC"))
		return name;
	p = name + 5;
	if (*p == 's') {
		while (*p && *p != '_')
			p++;
		p += *p == '_';
	}
	if (!str_starts(p, "7___rustc"))
		return name;
	for (p += 9; is_digit(*p) && n < 100; p++)
		n = n * 10 + (u64)(*p - '0');
	/* A name that begins with an underscore has another one before it. Behind it: ".llvm.1". */
	if (p[0] != '_' || p[1] != '_' || str_len(p + 1) < n || (p[1 + n] && p[1 + n] != '.'))
		return name;
	*len = n;
	return p + 1;
}

enum alloc_kind alloc_kind_of(const char *name)
{
	u64 len;

	name = plain_name(name, &len);
	for (u32 i = 0; i < ARRAY_SIZE(known); i++)
		if (known[i].name[0] == name[0] && known[i].name[1] == name[1] &&
		    str_len(known[i].name) == len && !memcmp(known[i].name, name, len))
			return known[i].kind;
	return ALLOC_NONE;
}
