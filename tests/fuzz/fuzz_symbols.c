/*
 * Files that recordings name: any bytes are symbols or none, every symbol has its name within the
 * file, notes are within theirs, and formats of tracepoints within the text.
 */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "data/tracing-format.h"
#include "sym/symbols.h"

/* The smallest program with a symbol table comes from symbols.hex. */
const char *const fuzz_samples[] = {
	"\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\tfield:__data_loc char[] name;\t"
	"offset:24;\tsize:4;\tsigned:0;\nID: 7\n",
	NULL};
const char *const fuzz_words[] = {"\x7f"
				  "ELF\x02\x01\x01",
				  "field:",
				  "offset:",
				  "size:",
				  ";",
				  "\x02",
				  "\xff\xff\xff\xff\xff\xff\xff\xff",
				  "GNU",
				  NULL};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	u8 *bytes = malloc(len + 1); /* ends where the file ends */
	struct sym_symbols *s;
	struct sym_segments *segments;
	struct elf_build_id id;
	struct data_field field;
	size_t at = 0, size = 0;
	const char *format;
	u64 addr = 0;

	CHECK(bytes);
	if (len)
		memcpy(bytes, data, len);
	s = sym_symbols_of_bytes(bytes, len);
	if (s) {
		const struct sym_symbol *found = sym_symbols_find(s, 0x401000);

		CHECK(!found || strlen(found->name) < len);
		CHECK(sym_symbols_count(s) <= len);
		sym_symbols_free(s);
	}
	segments = sym_segments_of_bytes(bytes, len);
	if (segments)
		(void)sym_segments_address(segments, 0x1000, &addr);
	if (segments && sym_segments_memory(segments, 0x1000, len, &addr))
		(void)sym_segments_memory(segments, addr, UINT64_MAX - len, &addr);
	free(segments);
	(void)elf_build_id_in_notes(bytes, len, 4, &id);
	while (data_tracing_field((const char *)bytes, len, &at, &field))
		CHECK(strlen(field.name) < sizeof(field.name));
	format = data_tracing_find(bytes, len, 7, &size);
	CHECK(!format || (format >= (const char *)bytes && size <= len));
	free(bytes);
	return 0;
}
