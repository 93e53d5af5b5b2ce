/* How long who reads traces sleeps: as long as streams take to be read before they are full. */
#include "cli/call-trace.h"
#include "unit/test.h"

/* What a stream has after @pause whose thread tells @words in a millisecond. */
static u32 words_after(u64 pause, u64 words)
{
	return (u32)min_u64(pause * words / 1000000, PATH_STREAM_WORDS);
}

static u64 pause_for(u64 words)
{
	u64 pause = TRACE_PAUSE_MOST;

	for (u32 i = 0; i < 20; i++)
		pause = call_trace_pause(pause, words_after(pause, words));
	return pause;
}

TEST(a_stream_does_not_fill_meanwhile)
{
	for (u64 words = 1000; words < 40 * PATH_STREAM_WORDS / 2; words *= 2)
		EXPECT(words_after(pause_for(words), words) <= PATH_STREAM_WORDS / 2);
}

TEST(who_has_little_to_tell_is_looked_for_rarely)
{
	EXPECT_EQ(pause_for(0), TRACE_PAUSE_MOST);
	EXPECT_EQ(pause_for(PATH_STREAM_WORDS / 3), TRACE_PAUSE_MOST);
	/* Also when he had much to tell before. */
	EXPECT(call_trace_pause(TRACE_PAUSE_LEAST, 0) > TRACE_PAUSE_LEAST);
}

TEST(it_is_not_looked_for_all_the_time)
{
	EXPECT_EQ(pause_for(1000ull * PATH_STREAM_WORDS), TRACE_PAUSE_LEAST);
	/* What half fills a stream each time is good. */
	EXPECT_EQ(call_trace_pause(100000, PATH_STREAM_WORDS / 3), 100000);
}
