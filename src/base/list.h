/*
 * PURPOSE: doubly linked lists whose links live inside the objects. A struct list is either a head
 * or a link; an empty head and an unlinked link point to themselves, so list_del() may be repeated.
 */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include "base/types.h"

struct list {
	struct list *next, *prev;
};

static inline void list_init(struct list *l)
{
	l->next = l->prev = l;
}

static inline bool list_empty(const struct list *l)
{
	return l->next == l;
}

static inline void list__link(struct list *l, struct list *prev, struct list *next)
{
	l->prev = prev;
	l->next = next;
	prev->next = l;
	next->prev = l;
}

/* First in the list. */
static inline void list_add(struct list *l, struct list *head)
{
	list__link(l, head, head->next);
}

/* Last in the list; with a link for @head, in front of that link. */
static inline void list_add_tail(struct list *l, struct list *head)
{
	list__link(l, head->prev, head);
}

static inline void list_del(struct list *l)
{
	l->prev->next = l->next;
	l->next->prev = l->prev;
	list_init(l);
}

static inline void list_move_tail(struct list *l, struct list *head)
{
	list_del(l);
	list_add_tail(l, head);
}

#define list_entry(l, type, member) container_of(l, type, member)

#define list_first(head, type, member) \
	(list_empty(head) ? NULL : list_entry((head)->next, type, member))

#define list_for_each(pos, head) for (pos = (head)->next; pos != (head); pos = pos->next)

#define list_for_each_entry(pos, head, member)                                                 \
	for (pos = list_entry((head)->next, __typeof__(*pos), member); &pos->member != (head); \
	     pos = list_entry(pos->member.next, __typeof__(*pos), member))

/* @pos may be removed, and freed, in the body; its successor @tmp may not. */
#define list_for_each_entry_safe(pos, tmp, head, member)                  \
	for (pos = list_entry((head)->next, __typeof__(*pos), member),    \
	    tmp = list_entry(pos->member.next, __typeof__(*pos), member); \
	     &pos->member != (head);                                      \
	     pos = tmp, tmp = list_entry(tmp->member.next, __typeof__(*tmp), member))

#endif
