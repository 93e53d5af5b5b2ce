#include "model/sights.h"

/* The finalizer of splitmix64: all bits depend on all. */
static u64 mix(u64 x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

static u32 tag_of(u64 key)
{
	return (u32)(mix(key) >> 32);
}

/*
 * Keys are lines and pages, of which a program uses many that lie together; so do their sets, or
 * each line of a page that is used would touch another page here. In which order they lie there is
 * as good as chance, so that all sets fill alike.
 */
#define TOGETHER 16u

static u32 set_of(u64 number)
{
	u64 h = mix(number / TOGETHER);
	u32 in = (u32)(number ^ h >> 32) % TOGETHER;

	return ((u32)h * TOGETHER + in) % SIGHT_SETS;
}

static bool is_kept(u64 tag_bits, u32 level)
{
	return !(tag_bits & (BIT(level) - 1));
}

static void take_out(struct sights *s, const struct sight *e)
{
	struct sights_of *of = &s->of[e->kind];

	of->keys[e->times]--;
	of->weight -= e->weight;
	if (e->times == SIGHT_ONCE)
		of->once_weight -= e->weight;
}

/* Half of the keys go. The tag's own low bits decide: they say nothing of the set. */
static void keep_fewer(struct sights *s)
{
	s->level++;
	s->pairs /= 4;
	s->both /= 2;
	s->before /= 2;
	s->now /= 2;
	s->now_again /= 2;
	for (u32 set = 0; set < SIGHT_SETS; set++) {
		struct sight *from = s->sight[set], *to = from;

		for (u32 i = 0; i < SIGHT_WAYS && from[i].times; i++) {
			if (is_kept(from[i].tag, s->level))
				*to++ = from[i];
			else
				take_out(s, &from[i]);
		}
		for (; to < from + SIGHT_WAYS; to++)
			*to = (struct sight){0};
	}
}

static void see_again(struct sights *s, struct sight *e, enum sight_kind kind, u32 window)
{
	struct sights_of *of = &s->of[e->kind];

	if (e->window == window)
		return;
	s->of[kind].again++;
	s->now++;
	s->now_again += e->window + 1 == window;
	e->window = window;
	if (e->times >= SIGHT_MORE)
		return;
	if (e->times == SIGHT_ONCE)
		of->once_weight -= e->weight;
	of->keys[e->times++]--;
	of->keys[e->times]++;
}

static void see_first(struct sights *s, struct sight *e, u32 tag, enum sight_kind kind, u32 window,
		      u32 weight)
{
	struct sights_of *of = &s->of[kind];
	bool known = weight == 1;

	*e = (struct sight){.tag = tag,
			    .window = window,
			    .weight = known ? 0 : weight,
			    .times = known ? SIGHT_KNOWN : SIGHT_ONCE,
			    .kind = (u8)kind};
	s->now++;
	of->keys[e->times]++;
	of->weight += e->weight;
	of->once_weight += e->weight;
}

void sights_see(struct sights *s, u64 key, enum sight_kind kind, u32 window, u32 weight)
{
	struct sight *e = s->sight[set_of(key)];
	u32 tag = tag_of(key), i = 0;

	for (; is_kept(tag, s->level); keep_fewer(s), i = 0) {
		for (; i < SIGHT_WAYS && e[i].times; i++)
			if (e[i].tag == tag) {
				see_again(s, &e[i], kind, window);
				return;
			}
		if (i < SIGHT_WAYS) {
			see_first(s, &e[i], tag, kind, window, weight);
			return;
		}
	}
}

/* Keys that were seen once, or never, by how often others were seen twice. */
static u64 chao(const struct sights *s, const struct sights_of *of)
{
	u64 once = of->keys[SIGHT_ONCE], n = 0;

	if (once && s->windows)
		n = once * (once - 1) / (2 * (of->keys[SIGHT_TWICE] + 1));
	return once + n / max_u64(s->windows, 1) * (s->windows - 1);
}

/* If each of these was new. */
static u64 all_new(const struct sights_of *of)
{
	return max_u64(of->keys[SIGHT_ONCE], of->once_weight);
}

static u64 seen_again(const struct sights_of *of)
{
	return of->keys[SIGHT_TWICE] + of->keys[SIGHT_MORE];
}

/* Of first sights, by weight, those that were new. */
static u64 new_of(const struct sights *s, const struct sights_of *of)
{
	return min_u64(seen_again(of) + min_u64(chao(s, of), all_new(of)), of->weight);
}

static u32 share(u64 part, u64 all)
{
	return part < all ? (u32)(part * SIGHTS_ALL / all) : SIGHTS_ALL;
}

u32 sights_new(const struct sights *s, enum sight_kind kind)
{
	return share(new_of(s, &s->of[kind]), s->of[kind].weight);
}

/* Loads and stores together. */
static struct sights_of data_of(const struct sights *s)
{
	const struct sights_of *store = &s->of[SIGHT_STORE];
	struct sights_of data = s->of[SIGHT_LOAD];

	for (u32 i = 0; i < SIGHT_TIMES; i++)
		data.keys[i] += store->keys[i];
	data.weight += store->weight;
	data.once_weight += store->once_weight;
	data.again += store->again;
	return data;
}

u32 sights_new_data(const struct sights *s)
{
	struct sights_of data = data_of(s);

	return share(new_of(s, &data), data.weight);
}

u32 sights_new_by(const struct sights *s, enum sight_kind kind)
{
	struct sights_of data = data_of(s);
	u64 fresh = new_of(s, &data), old = data.weight - fresh, loads;

	if (kind == SIGHT_FETCH)
		return sights_new(s, kind);
	/* First sights by loads, without those of old lines. */
	loads = s->of[SIGHT_LOAD].weight;
	if (data.again)
		loads -= min_u64(loads, old * s->of[SIGHT_LOAD].again / data.again);
	loads = min_u64(loads, fresh);
	return share(kind == SIGHT_LOAD ? loads : fresh - loads, s->of[kind].weight);
}

void sights_window(struct sights *s, u32 window)
{
	if (window > 2) {
		s->pairs += s->before * s->now;
		s->both += s->now_again;
	}
	s->before = s->now;
	s->now = s->now_again = 0;
	s->windows = window;
}

/* As Lincoln and Petersen count animals: one catch tells how large a part the other one is. */
u64 sights_in_use(const struct sights *s)
{
	return s->pairs / (s->both + 1) << s->level;
}

u64 sights_used_again(const struct sights *s)
{
	u64 n = 0;

	for (u32 k = 0; k < SIGHT_KINDS; k++) {
		const struct sights_of *of = &s->of[k];
		u64 once = chao(s, of);

		n += of->keys[SIGHT_KNOWN] + seen_again(of) + (once < all_new(of) ? once : 0);
	}
	return n << s->level;
}

u64 sights_seen(const struct sights *s)
{
	u64 n = 0;

	for (u32 k = 0; k < SIGHT_KINDS; k++)
		for (u32 times = SIGHT_ONCE; times < SIGHT_TIMES; times++)
			n += s->of[k].keys[times];
	return n << s->level;
}
