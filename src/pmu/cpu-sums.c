#include "pmu/cpu-sums.h"

#include <string.h>

#include "base/check.h"

/* The one counter that @sum is, or -1. */
static s32 alone(const struct cpu_sum *sum)
{
	s32 what = -1;

	for (u32 i = 0; i < CPU_MODELED_MAX; i++) {
		if (!sum->times[i])
			continue;
		if (sum->times[i] != 1 || what >= 0)
			return -1;
		what = (s32)i;
	}
	return what;
}

bool cpu_sum_is_nothing(const struct cpu_sum *sum)
{
	static const struct cpu_sum nothing;

	return !memcmp(sum, &nothing, sizeof(nothing));
}

u32 cpu_sum_take(struct cpu_sums *sums, const struct cpu_sum *sum)
{
	s32 what = alone(sum), place = -1;

	if (what >= 0)
		return (u32)what;
	for (u32 i = 0; i < CPU_SUMS_MAX; i++) {
		if (!sums->used[i].users) {
			place = place < 0 ? (s32)i : place;
		} else if (!memcmp(&sums->used[i].sum, sum, sizeof(*sum))) {
			place = (s32)i;
			break;
		}
	}
	CHECK(place >= 0);
	sums->used[place].sum = *sum;
	sums->used[place].users++;
	return CPU_SUMS + (u32)place;
}

void cpu_sum_drop(struct cpu_sums *sums, u32 what)
{
	if (what < CPU_SUMS || what >= SOURCE_MAX)
		return;
	CHECK(sums->used[what - CPU_SUMS].users);
	sums->used[what - CPU_SUMS].users--;
}

u64 cpu_sums_read(const struct cpu_sums *sums, struct task *task, u32 what)
{
	const struct pmu_source *source = sums->source;
	u64 value = 0;

	if (what < CPU_SUMS)
		return source->read(source->ctx, task, what);
	for (u32 i = 0; i < CPU_MODELED_MAX; i++) {
		s8 times = sums->used[what - CPU_SUMS].sum.times[i];

		if (times)
			value += (u64)(s64)times * source->read(source->ctx, task, i);
	}
	return value;
}

u32 cpu_sum_parts(const struct cpu_sums *sums, u32 what)
{
	u32 parts = 0;

	if (what >= SOURCE_MAX)
		return 0;
	if (what < CPU_SUMS)
		return what < CPU_MODELED
			       ? 0
			       : model_parts_of((enum model_counter)(what - CPU_MODELED));
	for (u32 i = CPU_MODELED; i < CPU_MODELED_MAX; i++)
		if (sums->used[what - CPU_SUMS].sum.times[i])
			parts |= model_parts_of((enum model_counter)(i - CPU_MODELED));
	return parts;
}

bool cpu_sum_is_modeled(const struct cpu_sums *sums, u32 what)
{
	if (what < CPU_SUMS)
		return what >= CPU_MODELED;
	for (u32 i = 0; what < SOURCE_MAX && i < CPU_MODELED; i++)
		if (sums->used[what - CPU_SUMS].sum.times[i])
			return false;
	return what < SOURCE_MAX;
}
