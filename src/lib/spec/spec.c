/* Lists of specs: their memory. */
#include "lib/spec/spec-priv.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct ap__chunk {
	struct ap__chunk *next;
	_Alignas(16) char bytes[];
};

void *ap__specs_alloc(struct ap_specs *s, size_t size)
{
	struct ap__chunk *c = calloc(1, sizeof(*c) + size);

	if (!c)
		return NULL;
	c->next = s->chunks;
	s->chunks = c;
	return c->bytes;
}

char *ap__specs_strdup(struct ap_specs *s, const char *text)
{
	size_t n = strlen(text) + 1;
	char *p = ap__specs_alloc(s, n);

	return p ? memcpy(p, text, n) : NULL;
}

char *ap__specs_printf(struct ap_specs *s, const char *fmt, ...)
{
	va_list ap;
	char *p;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0 || !(p = ap__specs_alloc(s, (size_t)n + 1)))
		return NULL;
	va_start(ap, fmt);
	vsnprintf(p, (size_t)n + 1, fmt, ap);
	va_end(ap);
	return p;
}

void ap_specs_free(struct ap_specs *s)
{
	struct ap__chunk *c, *next;

	if (!s)
		return;
	for (c = s->chunks; c; c = next) {
		next = c->next;
		free(c);
	}
	free(s->items);
	ap_machine_free(s->own);
	free(s);
}

int ap__specs_alone(struct ap_specs **out, const char *text, struct ap_error *err)
{
	struct ap_machine *m;
	int r;

	if (ap_machine_new(&m, NULL))
		return ap__fail_memory(err);
	r = ap_specs_parse(out, m, text, err);
	if (r)
		ap_machine_free(m);
	else
		(*out)->own = m;
	return r;
}

unsigned int ap_specs_count(const struct ap_specs *s)
{
	return s->n;
}

struct ap_spec *ap_specs_at(const struct ap_specs *s, unsigned int i)
{
	return i < s->n ? &s->items[i]->pub : NULL;
}

int ap__parse_add(struct ap__parse *p, const char *name, struct ap__item **out)
{
	struct ap_specs *s = p->specs;
	struct ap__item *it;

	if (s->n == AP__MAX_SPECS)
		return ap__fail(p->err, -E2BIG, AP_CAUSE_BAD_VALUE,
				"the description stands for more than %d events", AP__MAX_SPECS);
	if (s->n == s->room) {
		unsigned int room = s->room ? 2 * s->room : 16;
		struct ap__item **more = realloc(s->items, room * sizeof(struct ap__item *));

		if (!more)
			return ap__fail_memory(p->err);
		s->items = more;
		s->room = room;
	}
	it = ap__specs_alloc(s, sizeof(*it));
	if (!it)
		return ap__fail_memory(p->err);
	it->pub.attr = (struct perf_event_attr *)&it->attr;
	it->pub.name = ap__specs_strdup(s, name);
	if (!it->pub.name)
		return ap__fail_memory(p->err);
	it->pub.pmu = "";
	it->pub.unit = "";
	it->pub.scale = 1.0;
	it->pub.group = p->in_braces ? p->next_group : p->next_group++;
	/* Always the whole struct, so that a caller may fill in any field; opening trims it. */
	it->attr.size = sizeof(it->attr);
	it->attr.exclude_guest = 1;
	s->items[s->n++] = it;
	*out = it;
	return 0;
}
