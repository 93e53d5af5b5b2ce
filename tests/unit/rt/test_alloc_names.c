/* Functions that give memory or take it back, by the names that linkers see. */
#include "rt/task/alloc-names.h"

#include "unit/test.h"

TEST(names_of_c_and_cxx)
{
	EXPECT_EQ(alloc_kind_of("malloc"), ALLOC_SIZE);
	EXPECT_EQ(alloc_kind_of("mallocs"), ALLOC_NONE);
	EXPECT_EQ(alloc_kind_of("mallo"), ALLOC_NONE);
	EXPECT_EQ(alloc_kind_of("_Znam"), ALLOC_SIZE);
	EXPECT_EQ(alloc_kind_of("_ZdaPvm"), ALLOC_FREES);
	EXPECT_EQ(alloc_kind_of(""), ALLOC_NONE);
	EXPECT_EQ(alloc_kind_of("_"), ALLOC_NONE);
}

/* Those with a hash are of rustc 1.95 and of a nightly 1.97. */
TEST(names_of_rust)
{
	EXPECT_EQ(alloc_kind_of("__rust_alloc"), ALLOC_SIZE);
	EXPECT_EQ(alloc_kind_of("_RNvCsfLfy6EI15iL_7___rustc12___rust_alloc"), ALLOC_SIZE);
	EXPECT_EQ(alloc_kind_of("_RNvCseulmdZsCeCG_7___rustc12___rust_alloc"), ALLOC_SIZE);
	EXPECT_EQ(alloc_kind_of("_RNvCsfLfy6EI15iL_7___rustc19___rust_alloc_zeroed"), ALLOC_SIZE);
	EXPECT_EQ(alloc_kind_of("_RNvCsfLfy6EI15iL_7___rustc14___rust_realloc"),
		  ALLOC_AGAIN_ALIGNED);
	EXPECT_EQ(alloc_kind_of("_RNvCsfLfy6EI15iL_7___rustc14___rust_dealloc"), ALLOC_FREES);
	EXPECT_EQ(alloc_kind_of("_RNvCsfLfy6EI15iL_7___rustc12___rust_alloc.llvm.77"), ALLOC_SIZE);
	EXPECT_EQ(alloc_kind_of("_RNvC7___rustc12___rust_alloc"), ALLOC_SIZE);
}

TEST(names_that_are_like_them)
{
	EXPECT_EQ(alloc_kind_of("_RNvCsfLfy6EI15iL_7___rustc26___rust_alloc_error_handler"),
		  ALLOC_NONE);
	EXPECT_EQ(alloc_kind_of("_RNvCsfLfy6EI15iL_7___rustc12___rust_alloc_zeroed"), ALLOC_NONE);
	EXPECT_EQ(alloc_kind_of("_RNvCsfLfy6EI15iL_7___rustc13___rust_alloc"), ALLOC_NONE);
	EXPECT_EQ(alloc_kind_of("_RNvCsfLfy6EI15iL_7___rustc99999999999999999999___rust_alloc"),
		  ALLOC_NONE);
	EXPECT_EQ(alloc_kind_of("_RNvCsfLfy6EI15iL_4mine12___rust_alloc"), ALLOC_NONE);
	EXPECT_EQ(alloc_kind_of("_RNvCsfLfy6EI15iL_7___rustc"), ALLOC_NONE);
	EXPECT_EQ(alloc_kind_of("_RNvCsfLfy6EI15iL"), ALLOC_NONE);
	EXPECT_EQ(alloc_kind_of("_RNvC"), ALLOC_NONE);
}
