#include "unit/test.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "sym/cxx/expansion.h"
#include "sym/demangle.h"
#include "sym/rust/demangle-rust.h"

static void expect_rust(const char *mangled, const char *name)
{
	char *text = sym_demangle(mangled);

	if (name)
		EXPECT_STREQ(text ? text : "(none)", name);
	else
		EXPECT(!text);
	free(text);
}

/* Names with `_1t` are of one program and rustc 1.95; c++filt of binutils 2.40 says the same. */
TEST(rust_paths)
{
	expect_rust("_RNvC1t4main", "t::main");
	expect_rust("_RNCNvC1t4main0", "t::main::{closure#0}");
	expect_rust("_RNCNvC1t4mains_0.llvm.1234", "t::main::{closure#1}");
	expect_rust("_RNSNvC1t1f6vtable", "t::f::{shim:vtable#0}");
	expect_rust("_RNvC1t4main.cold", "t::main");
	expect_rust("_RNvNtCsjMaewn57Afh_1tu9gre_6ka8iu8lnge_loa", "t::gr\xc3\xb6\xc3\x9f"
								   "e::l\xc3\xa4nge");
	expect_rust("_RNvMs_CsjMaewn57Afh_1tINtB4_1SReE3ownB4_", "<t::S<&str>>::own");
	expect_rust("_RNvNvXCsjMaewn57Afh_1tINtB4_1SpENtB4_2Tr1m5inner",
		    "<t::S<_> as t::Tr>::m::inner");
	expect_rust("_RNvC1tu6______9", "t::punycode{_____9}");
	expect_rust("_RINvMNtCsgEmfK2I1SDS_4core5sliceSh11copy_withinINtNtNtB5_3ops5range14"
		    "RangeInclusivejEECsfEOYDRpO4Ta_11miniz_oxide",
		    "<[u8]>::copy_within::<core::ops::range::RangeInclusive<usize>>");
	expect_rust("_RNvXs_C1tNtB4_1SNtB4_2Tr1m", "<t::S as t::Tr>::m");
	expect_rust("_RNvYNtC1t1SNtB4_2Tr1m", "<t::S as t::Tr>::m");
}

TEST(rust_types)
{
	expect_rust("_RINvCsjMaewn57Afh_1t3genShEB2_", "t::gen::<[u8]>");
	expect_rust("_RINvCsjMaewn57Afh_1t3ptrThEEB2_", "t::ptr::<(u8,)>");
	expect_rust("_RINvCsjMaewn57Afh_1t3ptrFG_QL0_dnuiERL0_fEB2_",
		    "t::ptr::<for<'a> fn(&'a mut f64, i128, (), isize) -> &'a f32>");
	expect_rust("_RINvCsjMaewn57Afh_1t3ptrFUKCPhOlEuEB2_",
		    "t::ptr::<unsafe extern \"C\" fn(*const u8, *mut i32)>");
	expect_rust("_RINvC1t1fFK13C_cmse_callsEuE", NULL);
	expect_rust("_RINvC1t1fFK6C_cmseEuE", "t::f::<extern \"C-cmse\" fn()>");
	expect_rust("_RINvCsjMaewn57Afh_1t3ptrFhReEzEB2_", "t::ptr::<fn(u8, &str) -> !>");
	expect_rust("_RINvCsjMaewn57Afh_1t3ptrINtNtCsgEmfK2I1SDS_4core6option6OptionINtNtCslNYArtu"
		    "3iFV_5alloc5boxed3BoxDNtNtNtNtBr_4iter6traits8iterator8Iteratorp4ItemhNtNtBr_6"
		    "marker4SendEL_EEEB2_",
		    "t::ptr::<core::option::Option<alloc::boxed::Box<dyn core::iter::traits::"
		    "iterator::Iterator<Item = u8> + core::marker::Send>>>");
	expect_rust("_RINvC1t1fDNtC1t1AEL_E", "t::f::<dyn t::A>");
	expect_rust("_RINvC1t1fFG0_RL1_hRL0_hEuE", "t::f::<for<'a, 'b> fn(&'a u8, &'b u8)>");
	/* A lifetime that nothing binds. */
	expect_rust("_RINvC1t1fRL0_hE", NULL);
}

TEST(rust_constants)
{
	expect_rust("_RINvCsjMaewn57Afh_1t3arrKj3_Kb1_Kc78_Kan5_EB2_",
		    "t::arr::<3, true, 'x', -5>");
	expect_rust("_RINvCsjMaewn57Afh_1t3arrKj0_Kb0_Kca_Ka7f_EB2_",
		    "t::arr::<0, false, '\\n', 127>");
	expect_rust("_RINvC1t1fKnn80000000000000000000000000000000_E",
		    "t::f::<-0x80000000000000000000000000000000>");
	expect_rust("_RINvC1t1fKRe616222c3a4_E", "t::f::<\"ab\\\"\xc3\xa4\">");
	expect_rust("_RINvC1t1fKReff_E", NULL);
	expect_rust("_RINvC1t1fKe61_E", "t::f::<{*\"a\"}>");
	expect_rust("_RINvC1t1fKRAh1_h2_EE", "t::f::<{&[1, 2]}>");
	expect_rust("_RINvC1t1fKTh1_EE", "t::f::<{(1,)}>");
	expect_rust("_RINvC1t1fKVNtC1t1ASs_1xh1_1yb0_EE", "t::f::<{t::A { x: 1, y: false }}>");
	expect_rust("_RINvC1t1fKpKcd800_E", NULL);
	expect_rust("_RINvC1t1fKpE", "t::f::<_>");
}

TEST(what_is_no_name_of_rust)
{
	static const char *const wrong[] = {"_RC0",          "_R",
					    "_R0NvC1t1f",    "_RNvC1t4mai",
					    "_RNvC1t",       "_RC1t$",
					    "_RNvC1t1fxx",   "_RNv",
					    "_RB_",          "_RNvB_1f",
					    "_RINvC1t1fhE_", "_RINvC1t1fh",
					    "_RIB0_E",       "_RNvC1t99999999999999999999f"};
	char deep[4096] = "_R";

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		expect_rust(wrong[i], NULL);
	/* Anything cut off is none. */
	for (size_t i = 2; i < strlen("_RINvC1t3ptrFG_QL0_dnuiERL0_fE"); i++) {
		char cut[64];

		snprintf(cut, sizeof(cut), "%.*s", (int)i, "_RINvC1t3ptrFG_QL0_dnuiERL0_fE");
		expect_rust(cut, NULL);
	}
	/* Deep: it would need more stack than there is. */
	memset(deep + 2, 'M', sizeof(deep) - 3);
	expect_rust(deep, NULL);
}

/* Forty pairs of which each is twice the one before would have a trillion letters. */
TEST(rust_names_of_any_length)
{
	char name[1024] = "_RINvC1t1fTC1aC1bE";

	for (u32 i = 0, before = 8; i < 40; i++) {
		static const char digits[] =
			"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
		u32 at = (u32)strlen(name) - 2, n = before - 1;
		char ref[8];

		if (n >= 62)
			snprintf(ref, sizeof(ref), "%c%c", digits[n / 62], digits[n % 62]);
		else
			snprintf(ref, sizeof(ref), "%c", digits[n]);
		snprintf(name + strlen(name), sizeof(name) - strlen(name), "TB%s_B%s_E", ref, ref);
		before = at;
	}
	strcat(name, "E");
	expect_rust(name, NULL);
	expect_rust("_RINvC1t1fTC1aC1bETB7_B7_EE", "t::f::<(a, b), ((a, b), (a, b))>");
}

/* Whoever reads C++ reads these too, but for what stands for brackets. */
TEST(rust_before_v0)
{
	static const char *const names[][2] = {
		{"core::fmt::write::h0123456789abcdef", "core::fmt::write"},
		/* Chance does not give sixteen digits of which so few are different. */
		{"core::fmt::write::h0000000000000000", "core::fmt::write::h0000000000000000"},
		{"_$LT$u64$u20$as$u20$core..iter..range..Step$GT$::forward::h2d8e7d8331d07579",
		 "<u64 as core::iter::range::Step>::forward"},
		{"f::_$u7b$$u7b$closure$u7d$$u7d$::h2d8e7d8331d07579", "f::{{closure}}"},
		{"a$XX$b::h2d8e7d8331d07579", "a$XX$b"},
		{"a$::h2d8e7d8331d07579", "a$"},
		{"$u0$$uffffffff$::h2d8e7d8331d07579", "$u0$$uffffffff$"},
		{"", ""},
	};
	static const char mangled[] = "_ZN47_$LT$u64$u20$as$u20$core..iter..range..Step$GT$"
				      "13steps_between17h2d8e7d8331d07579E";
	char *text;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		char *copy = strdup(names[i][0]);

		sym_rust_legacy(copy);
		EXPECT_STREQ(copy, names[i][1]);
		free(copy);
	}
	EXPECT_EQ(sym_rust_legacy_length(mangled), strlen(mangled));
	EXPECT_EQ(sym_rust_legacy_length("_ZN1l4main17hfc665b17335c9548E.llvm.1"), 30);
	EXPECT_EQ(sym_rust_legacy_length("_ZN1l4main17hfc665b17335c9548"), 0);
	EXPECT_EQ(sym_rust_legacy_length("_ZN1l4mainE.17h"), 0);
	text = sym_demangle(mangled);
	/* NULL: there is no libstdc++. */
	EXPECT(!text || !strcmp(text, "<u64 as core::iter::range::Step>::steps_between"));
	free(text);
}

/* Parameters of f, each a pair of two of the one before: 2^@levels letters and more. */
static const char *pairs(u32 levels)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	static char name[1024];

	strcpy(name, "_Z1fSt4pairI1AS0_E");
	for (u32 i = 1; i <= levels; i++)
		snprintf(name + strlen(name), sizeof(name) - strlen(name), "S_IS%c_S%c_E",
			 digits[i], digits[i]);
	return name;
}

TEST(cxx_names_of_any_length)
{
	char *text;

	EXPECT(sym_cxx_is_short(pairs(3)));
	EXPECT(sym_cxx_is_short(pairs(12)));
	EXPECT(!sym_cxx_is_short(pairs(20)));
	/* Of 250 bytes, and what would be gigabytes. */
	EXPECT(!sym_cxx_is_short(pairs(24)));
	EXPECT(!sym_cxx_is_short(pairs(34)));
	text = sym_demangle(pairs(20));
	EXPECT(!text);
	free(text);
	/* NULL: there is no libstdc++. */
	text = sym_demangle(pairs(3));
	EXPECT(!text || !strcmp(text, "f"));
	free(text);
	text = sym_demangle_whole("_ZNSt6vectorIiSaIiEE3fooIS1_EEvT_RKS_IS1_S0_E");
	EXPECT(!text || strstr(text, "::foo<std::vector<int"));
	free(text);
}

/* As c++filt of binutils 2.40 and Valgrind show them; perf shows the function. */
TEST(clones_of_the_compiler)
{
	static const char *const names[][2] = {
		{"_Z1fi.cold", "f(int) [clone .cold]"},
		{"_Z1fi.constprop.0", "f(int) [clone .constprop.0]"},
		{"_Z1fi.part.0.isra.1", "f(int) [clone .part.0] [clone .isra.1]"},
		{"_Z1fi.constprop.0.cold", "f(int) [clone .constprop.0] [clone .cold]"},
		{"_Z1fi._omp_fn.3.cold.12", "f(int) [clone ._omp_fn.3] [clone .cold.12]"},
		{"_Z1fi.llvm.1234.56", "f(int) [clone .llvm.1234.56]"},
		{"_Z1fi@@V_1.0", "f(int)"},
		{"_Z1fi.cold@@V_1.0", "f(int) [clone .cold]"},
		{"_ZN1l4main17hfc665b17335c9548E.llvm.1", "l::main"},
	};
	static const char *const wrong[] = {"_Z1fi.", "_Z1fi.Cold", "_Z1fi.cold.", "_Z1fi.a-b"};
	char *text = sym_demangle("_Z1fi");

	/* There is no libstdc++. */
	if (!text)
		return;
	free(text);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		text = sym_demangle_whole(names[i][0]);
		EXPECT_STREQ(text ?: "(none)", names[i][1]);
		free(text);
	}
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		EXPECT(!sym_demangle_whole(wrong[i]));
	text = sym_demangle("_Z1fi.constprop.0.cold");
	EXPECT_STREQ(text ?: "(none)", "f");
	free(text);
	text = sym_demangle("_ZL1x.lto_priv.0");
	EXPECT_STREQ(text ?: "(none)", "x");
	free(text);
}

/* Whatever may be within itself: it would need more stack than there is. */
TEST(cxx_names_that_are_deep)
{
	static const char *const within[] = {"I", "J",  "P",   "N1aI", "Z1f", "Tt",   "LZ1f",
					     "F", "Dp", "Xad", "UlP",  "M",   "XdTt", "Q",
					     "A", "K",  "cv",  "G",    "C",   "DT",   "IT_I"};
	static char deep[1 << 17];

	for (size_t i = 0; i < ARRAY_SIZE(within); i++) {
		for (u32 k = 0; k < 2; k++) {
			size_t len = strlen(within[i]);
			char *at = stpcpy(deep, k ? "_Z1fI" : "_Z");

			while (at + len < deep + sizeof(deep))
				at = stpcpy(at, within[i]);
			(void)sym_cxx_is_short(deep);
		}
	}
	EXPECT(!sym_cxx_is_short(deep));
}

/* Each of these has a part that stands there many times by another way. */
TEST(cxx_names_by_what_repeats)
{
	static const char *const shorts[] = {
		"_Z1fv",
		"_ZNKSt8functionIFvvEEclEv",
		"_ZZN1A1fEvENKUlT_E_clIiEEDaS0_",
		"_Z1fIJiiiEEvDpT_",
		"_ZN1AcvT_IiEEv",
		"_ZNSt9enable_ifIXsr3std9is_signedIT_EE5valueEiE4typeE",
		"_Z1fIiQ1CIT_EEvT_",
		"_ZGVZ1fvE1a",
		"_ZThn16_N1A1fEv",
		"_ZTv0_n24_N1AD0Ev",
		"_Z1f$not a name",
		"_Z",
	};
	char name[2048] = "_Z1fIJ";

	for (size_t i = 0; i < ARRAY_SIZE(shorts); i++)
		EXPECT(sym_cxx_is_short(shorts[i]));
	EXPECT(!sym_cxx_is_short(""));
	/* Packs in packs, of a hundred elements. */
	for (u32 i = 0; i < 100; i++)
		strcat(name, "i");
	strcat(name, "EEv");
	EXPECT(sym_cxx_is_short(name));
	strcat(name, "DpSt4pairIT_DpSt4pairIT_DpSt4pairIT_DpT_EEE");
	EXPECT(!sym_cxx_is_short(name));
	/* Parameters, each of which is the arguments of the function within. */
	strcpy(name, "_Z");
	for (u32 i = 0; i < 30; i++)
		strcat(name, "1aIXL_Z");
	strcat(name, "1bIiEvT_");
	for (u32 i = 0; i < 30; i++)
		strcat(name, "EEEvT_T_");
	EXPECT(!sym_cxx_is_short(name));
	/* GCC 12's demangler does not come back from that. */
	EXPECT(!sym_cxx_is_short("_Z1fIXsr1A1vCEvv"));
	/* What is not understood, with few references and with many. */
	strcpy(name, "_Z1f$");
	for (u32 i = 0; i < 10; i++)
		strcat(name, "S_");
	EXPECT(sym_cxx_is_short(name));
	for (u32 i = 0; i < 10; i++)
		strcat(name, "S_");
	EXPECT(!sym_cxx_is_short(name));
	/* Deep, and conversions that are read twice each. */
	memset(name + 4, 'P', 1000);
	strcpy(name + 1004, "iS_S_S_S_S_S_S_S_S_S_S_S_S_S_S_S_S_S_S_S_");
	EXPECT(!sym_cxx_is_short(name));
	strcpy(name, "_Z");
	for (u32 i = 0; i < 40; i++)
		strcat(name, "N1AcvT_IZ");
	EXPECT(!sym_cxx_is_short(name));
}

/* Names that end in the middle of something, in front of a page that is not there. */
TEST(cxx_names_that_are_cut)
{
	static const char *const names[] = {
		"_Z1fIXflplT_EEvv",
		"_Z1fIXfLplT_LPi0EEEvv",
		"_Z1fIXquT_Li1ELi2EEEvv",
		"_ZNKSt8functionIFvvEE4moveIJRKiOT_EEEDTcl7declvalIS0_EEEv",
		"_ZZN1A1fEvENKUlT_E_clIiEEDaS0_",
		"_ZN1AcvT_IiEEv",
		"_ZTv0_n24_N1AD0Ev",
	};
	char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT(pages != MAP_FAILED && !mprotect(pages + 4096, 4096, PROT_NONE));
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		for (size_t n = 2; n <= strlen(names[i]); n++) {
			char *at = pages + 4096 - n - 1;

			memcpy(at, names[i], n);
			at[n] = 0;
			(void)sym_cxx_is_short(at);
		}
	munmap(pages, 8192);
}
