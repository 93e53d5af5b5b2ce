/*
 * Fuzzes what is read of a tracepoint: the text of a format file, behind a form feed the text
 * of a filter, which is asked for a record of zeros and for one of ones.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "pmu/tracepoint-filter.h"

static const char known[] = "field:int a;\toffset:0;\tsize:4;\tsigned:1;\n"
			    "field:char b[12];\toffset:4;\tsize:12;\tsigned:0;\n"
			    "field:unsigned char c;\toffset:16;\tsize:1;\tsigned:0;\n";

const char *const fuzz_samples[] = {
	"\fa == -5 && !(c & 0x3 || b ~ \"x*[a-c]?\")", "\f!!(((a > 1)))||COMM != 'x' && CPU<=7",
	"field:long id;\toffset:8;\tsize:8;\tsigned:1;\n\tfield:const char * s;\toffset:16;"
	"\tsize:8;\tsigned:0;\n\fid >= 9 && s.ustring == 'y'",
	NULL};
const char *const fuzz_words[] = {
	"field:", "offset:", "size:", "signed:", ";",   "\t", "\n",   "\f",         "&&",     "||",
	"(",      ")",       "!",     "==",      "~",   "[",  "]",    "*",          "\"",     "a",
	"b",      "COMM",    "cpu",   "-",       "255", "<=", "char", "__data_loc", "char[]", NULL};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct tp_context context = {.cpu = 1, .comm = "name", .size = TP_SIZE_MAX};
	char *text = calloc(1, size + 2);
	struct tp_format format;
	struct tp_filter *filter;
	u8 record[TP_SIZE_MAX];
	char *second;

	if (!text)
		return 0;
	memcpy(text, data, size);
	second = text + strcspn(text, "\f");
	if (*second)
		*second++ = '\0';
	if (tp_format_parse(text, &format) && tp_format_parse(known, &format))
		abort();
	if (!tp_filter_parse(&format, second, &filter)) {
		memset(record, 0, sizeof(record));
		(void)tp_filter_passes(filter, record, &context);
		memset(record, 0xff, sizeof(record));
		(void)tp_filter_passes(filter, record, &context);
		tp_filter_free(filter);
	}
	free(text);
	return 0;
}
