#include "rt/task/windows-draw.h"

#define TIMES_MOST (1u << 20)

static u64 mix(u64 x)
{
	x *= 0x9e3779b97f4a7c15ull;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

u64 draw_number(u64 number, u64 room)
{
	return room ? (u64)((unsigned __int128)mix(number) * room >> 64) : 0;
}

/* Who is not seen himself has so many children that are not either. */
#define UNSEEN_FIRST 3u

/* If that grew on, a script that does the same for hours would be known no better for it. */
#define SOME_MOST 12u

/*
 * Of how many children of @place, from @first on, one is seen. If it stands for many already its
 * children do, too: to draw once more would leave out what only they do.
 */
static u64 some(const struct model_place *place, u64 first)
{
	u64 before = (1ull + place->behind) * first / draw_times(place);

	return min_u64(max_u64(before / 3, 1), SOME_MOST);
}

struct model_place draw_child(struct model_place *place, bool wanted)
{
	struct model_place child = {0};
	u64 number, first = 1, n;

	if (!wanted)
		return child;
	number = __atomic_add_fetch(&place->children, 1, __ATOMIC_RELAXED);
	while (first + (n = some(place, first)) <= number)
		first += n < SOME_MOST ? n : (number - first) / SOME_MOST * SOME_MOST;
	child.key = mix(place->key + number);
	child.behind = (u32)min_u64((1ull + place->behind) * number, TIMES_MOST) - 1;
	child.unseen = number != first + draw_number(place->key ^ first, n) ||
		       (place->unseen && number <= UNSEEN_FIRST);
	if (!child.unseen)
		child.more = (u32)min_u64(draw_times(place) * n, TIMES_MOST) - 1;
	return child;
}
