/* PURPOSE: from a struct ap_target to the places that it stands for. */
#ifndef LIB_COUNT_TARGET_H
#define LIB_COUNT_TARGET_H

#include <anyperf/counters.h>

struct ap__places {
	struct ap_place *place; /* owned */
	unsigned int n;
	bool listed; /* threads were found by looking at processes: one may be gone any moment */
	int *cgroup_fds;       /* owned; -1 none */
	unsigned int ncgroups; /* 1: for all counters */
};

/* *@out is undone with ap__places_release(). */
int ap__places_find(struct ap__places *out, struct ap_machine *m, const struct ap_target *target,
		    struct ap_error *err);
void ap__places_release(struct ap__places *p);

/*
 * Whether ap__places_find() would take @list as the CPUs of a target, for who wants to know before
 * anything is done. 0, or -errno with the reason.
 */
int ap__cpus_check(struct ap_machine *m, const char *list, struct ap_error *err);

/* The cgroup's descriptor for counter @i, or -1. */
int ap__places_cgroup(const struct ap__places *p, unsigned int i);

#endif
