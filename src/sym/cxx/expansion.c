/*
 * Lengths are in characters of the mangled name: what a reference stands for counts as often as it
 * does. Those of template parameters are not known before the arguments are, so they are counted
 * apart, and an encoding ends with the product.
 */
#include "sym/cxx/expansion.h"

#include <stdlib.h>
#include <string.h>

#include "sym/cxx/reading-priv.h"

#define LENGTH_MOST ((u64)1 << 20)
#define STEPS_MOST  20000u

struct expansion cxx_so_far(const struct cxx_name *n)
{
	struct expansion now = n->referred;

	now.text += (u64)(n->at - n->begin);
	return now;
}

struct expansion cxx_since(const struct cxx_name *n, struct expansion start)
{
	struct expansion part = cxx_so_far(n);

	part.text -= start.text;
	for (u32 i = 0; i < PARAMS_APART; i++)
		part.params[i] -= start.params[i];
	return part;
}

void cxx_add(struct cxx_name *n, struct expansion part, u64 times)
{
	struct expansion *r = &n->referred;

	r->text = bounded(r->text + product_of(part.text, times));
	for (u32 i = 0; i < PARAMS_APART; i++)
		r->params[i] = bounded(r->params[i] + product_of(part.params[i], times));
}

bool cxx_keep(struct cxx_name *n, struct expansion start)
{
	if (n->nr < n->room)
		n->part[n->nr++] = cxx_since(n, start);
	return true;
}

void cxx_repeat(struct cxx_name *n, struct expansion start)
{
	/* Arguments of a conversion come behind it. */
	u64 times = n->in_conversion ? n->pack + n->room : n->pack;

	if (times > 1)
		cxx_add(n, cxx_since(n, start), times - 1);
}

void cxx_make_longer(struct expansion *longest, struct expansion other)
{
	longest->text = other.text > longest->text ? other.text : longest->text;
	for (u32 i = 0; i < PARAMS_APART; i++)
		if (other.params[i] > longest->params[i])
			longest->params[i] = other.params[i];
}

/* Whether all of it is understood and short. */
static bool is_short(struct cxx_name *n, const char *name)
{
	n->begin = name;
	n->at = name + 2;
	/* What is read again and again here is by the demangler, too. */
	n->steps = STEPS_MOST;
	return cxx_read_encoding(n) && !*n->at && cxx_so_far(n).text <= LENGTH_MOST;
}

/*
 * The same of what is not understood: with each reference, and what may look like one, all that was
 * there before may be there once more, and with each pack as often as there are characters. Some
 * names with scopes that make no sense the demangler of GCC 12 reads for ever.
 */
static bool is_short_at_worst(const char *name)
{
	u64 len = strlen(name), longest = len, begins = 0;

	if (strstr(name, "sr"))
		return false;
	for (; *name; name++) {
		/* Of letters and digits in a row each S and T may be where it begins. */
		if (is_one_of(*name, "ST"))
			begins++;
		else if (*name != '_' && !is_number(*name) && !is_upper(*name))
			begins = 0;
		for (; *name == '_' && begins; begins--)
			longest = bounded(longest * 2);
		if (!strncmp(name, "Dp", 2) || !strncmp(name, "sp", 2))
			longest = product_of(longest, len);
	}
	return longest <= LENGTH_MOST;
}

bool sym_cxx_is_short(const char *name)
{
	struct cxx_name n = {.room = (u32)strlen(name)}, old = {.old_scopes = true};
	bool fine;

	if (strncmp(name, "_Z", 2) != 0)
		return false;
	n.part = malloc(n.room * sizeof(*n.part));
	if (!n.part)
		return false;
	old.part = n.part;
	old.room = n.room;
	fine = is_short(&n, name) || (n.has_scopes && is_short(&old, name));
	free(n.part);
	return fine || is_short_at_worst(name);
}
