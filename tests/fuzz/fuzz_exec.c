/*
 * What the runtime reads of files and filters that it did not make: ELF headers, "#!" lines, BPF,
 * maps and others of /proc.
 */
#include <string.h>

#include "base/check.h"
#include "fuzz/fuzz.h"
#include "rt/sandbox/bpf.h"
#include "rt/load/elf.h"
#include "rt/mm/maps.h"
#include "rt/mm/region.h"
#include "rt/proc/shown-lines.h"

u64 region_code_start, region_code_end;

const char *const fuzz_samples[] = {
	"#!/bin/sh -e\n",
	"#!  /usr/bin/env python3 \t\n",
	"\177ELF\2\1\1",
	"00400000-00408000 r-xp 00000000 fe:00 332383                     /usr/bin/true",
	"VmSize:\t     123 kB",
	"1234 56 7 8 9 10 11",
	"\x20\1\1\1\4\1\1\1\x06\1\1\1\1\1\xff\x7f",
	NULL,
};

const char *const fuzz_words[] = {"#!",   " ", "\t",      "\n",   "/bin/sh",
				  "rwxp", "-", "00:00 0", "\x06", NULL};

static void put(void *to, const char *text, size_t len)
{
	*(size_t *)to += len + (text ? 0 : 1);
}

static int prot_of(const void *of, u64 start, u64 *end)
{
	(void)of;
	/* Halves, so that a mapping of any size is divided into few. */
	if (*end > start + 4096)
		*end = start + (*end - start) / 2;
	return (int)(start >> 12 & 7);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	char interp[EXEC_HEAD], arg[EXEC_HEAD], line[256], text[SHOWN_STATM];
	const char *name;
	struct sock_filter code[64];
	struct seccomp_data sd = {.nr = 1};
	static struct maps_filter filter;
	size_t shown = 0, n = size < EXEC_HEAD ? size : EXEC_HEAD;
	Elf64_Ehdr eh;

	exec_classify(data, n);
	if (script_parse(data, n, interp, arg) >= 0)
		CHECK(interp[0] && strlen(interp) < EXEC_HEAD && strlen(arg) < EXEC_HEAD);
	if (size >= sizeof(eh)) {
		memcpy(&eh, data, sizeof(eh));
		if (!elf_check_header(&eh, size, false))
			CHECK(eh.e_phnum <= ELF_PHDRS_MAX);
	}
	n = size / sizeof(*code) < ARRAY_SIZE(code) ? size / sizeof(*code) : ARRAY_SIZE(code);
	memcpy(code, data, n * sizeof(*code));
	if (!bpf_check(code, (u32)n))
		bpf_run(code, (u32)n, &sd);

	memset(&filter, 0, sizeof(filter));
	filter.put = put;
	filter.to = &shown;
	filter.prot_of = prot_of;
	n = size < sizeof(line) - 1 ? size : sizeof(line) - 1;
	memcpy(line, data, n);
	line[n] = '\0';
	maps_line(&filter, line);
	maps_end(&filter);
	memcpy(line, data, n);
	shown_vm_line(line, size, text, sizeof(text));
	CHECK(shown_statm(line, size, size / 2, text) <= sizeof(text));
	name = shown_mapped(line, "/true");
	CHECK(!name || (name >= line && !strcmp(name + strlen(name) - 5, "/true")));
	return 0;
}
