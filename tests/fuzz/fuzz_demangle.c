/* Names in symbol tables: any bytes have a name that people can read, or none. */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "sym/cxx/expansion.h"
#include "sym/demangle.h"
#include "sym/rust/demangle-rust.h"

const char *const fuzz_samples[] = {
	"_RINvC1t3ptrINtNtC4core6option6OptionDNtB4_8Iteratorp4ItemhNtB4_4SendEL_EFG_QL0_dERL0_fE",
	"_RNCNvXs_C1tNtB4_1SNtB4_2Tru8gdel_5qas_0B4_",
	"_RINvC1t1fKj3_Kb1_Kc78_Kan5_KRe61_KVNtC1t1AS1xh1_EKRAh1_h2_EKTh1_EE",
	"_ZN47_$LT$u64$u20$as$u20$core..Step$GT$13steps_between17h2d8e7d8331d07579E",
	"_Z1fSt4pairI1AS0_ES_IS1_S1_ES_IS2_S2_ES_IS3_S3_ES_IS4_S4_ES_IS5_S5_ES_IS6_S6_ES_IS7_S7_E",
	"_ZZN1A1fIJidEEEvDpOT_RKSt3mapIT_S3_ENKUlT_E_clIXsr3std9is_signedIS0_EE5valueEEEDaS0_",
	"_ZN1AcvT_ISt6vectorIiSaIiEEEEv",
	NULL,
};

const char *const fuzz_words[] = {"_R", "B_",    "B0_", "Nv", "C1a",  "T",   "E",  "FG_", "L0_",
				  "u",  "$u20$", "_Z",  "S_", "S0_",  "S1_", "T_", "T0_", "I",
				  "J",  "DpT_",  "sp",  "Z",  "cvT_", "X",   "L",  "fl",  "fr",
				  "fL", "fR",    "pl",  "cl", "dt",   "nw",  "tr", "il",  "Dp",
				  "sr", "gs",    "on",  "li", "qu",   "st",  "cv", "_",   NULL};

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
	/* Whatever is read by libstdc++ is not long. */
	if (sym_is_mangled(name) && name[1] == 'Z' && sym_cxx_is_short(name)) {
		text = sym_demangle_whole(name);
		CHECK(!text || strlen(text) < 16 << 20);
		free(text);
	}
	CHECK(sym_rust_legacy_length(name) <= strlen(name));
	sym_rust_legacy(name);
	sym_strip_types(name);
	CHECK(strlen(name) <= len);
	free(name);
	return 0;
}
