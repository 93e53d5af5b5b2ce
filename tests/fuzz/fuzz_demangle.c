/* Names in symbol tables: any bytes have a name that people can read, or none. */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "sym/demangle.h"
#include "sym/rust/demangle-rust.h"

const char *const fuzz_samples[] = {
	"_RINvC1t3ptrINtNtC4core6option6OptionDNtB4_8Iteratorp4ItemhNtB4_4SendEL_EFG_QL0_dERL0_fE",
	"_RNCNvXs_C1tNtB4_1SNtB4_2Tru8gdel_5qas_0B4_",
	"_RINvC1t1fKj3_Kb1_Kc78_Kan5_KRe61_KVNtC1t1AS1xh1_EKRAh1_h2_EKTh1_EE",
	"_ZN47_$LT$u64$u20$as$u20$core..Step$GT$13steps_between17h2d8e7d8331d07579E",
	NULL,
};

const char *const fuzz_words[] = {"_R", "B_",  "B0_", "Nv", "C1a",   "T",
				  "E",  "FG_", "L0_", "u",  "$u20$", NULL};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char *name = malloc(len + 1), *text;

	CHECK(name);
	if (len)
		memcpy(name, data, len);
	name[len] = 0;
	text = sym_demangle_rust(name);
	CHECK(!text || (strlen(text) && strlen(text) < 64 << 10));
	free(text);
	CHECK(sym_rust_legacy_length(name) <= strlen(name));
	sym_rust_legacy(name);
	sym_strip_types(name);
	CHECK(strlen(name) <= len);
	free(name);
	return 0;
}
