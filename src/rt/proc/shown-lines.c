#include "rt/proc/shown-lines.h"

#include "sys/fmt.h"
#include "sys/string.h"

#define VM_NAME     7u /* "VmSize:" */
#define STATM_WORDS 7u
#define PAGE        4096u

static u64 without(u64 value, u64 own)
{
	return value > own ? value - own : 0;
}

void shown_vm_line(const char *line, u64 own, char *text, size_t size)
{
	const char *at = line + VM_NAME;
	char name[VM_NAME + 1];
	u64 kb;

	if (str_len(line) < VM_NAME)
		return;
	str_put(name, sizeof(name), line);
	while (*at == '\t' || *at == ' ')
		at++;
	if (str_u64(at, 10, &kb))
		fmt(text, size, "%s\t%8lu kB", name, without(kb, own / 1024));
}

size_t shown_statm(const char *line, u64 all, u64 data, char text[SHOWN_STATM])
{
	size_t len = 0;
	u64 pages;
	int n;

	/* All of it is first, what is private and writable sixth. */
	for (u32 i = 0; i < STATM_WORDS && (n = str_u64(line, 10, &pages)); i++) {
		u64 own = i == 0 ? all : i == 5 ? data : 0;

		len += (size_t)fmt(text + len, SHOWN_STATM - len, "%s%lu", i ? " " : "",
				   without(pages, own / PAGE));
		line += n;
		line += *line == ' ';
	}
	text[len++] = '\n';
	return len;
}

const char *shown_mapped(const char *line, const char *claimed)
{
	const char *name = str_chr(line, '/');
	size_t want = str_len(claimed), len = name ? str_len(name) : 0;

	return len >= want && want && str_eq(name + len - want, claimed) ? name : NULL;
}
