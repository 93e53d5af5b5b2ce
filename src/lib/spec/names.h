/*
 * PURPOSE: the generic event names that need no file of the machine: perf's hardware, software and
 * cache names with all their spellings.
 */
#ifndef LIB_SPEC_NAMES_H
#define LIB_SPEC_NAMES_H

#include <linux/perf_event.h>

#include "base/types.h"

struct ap__generic {
	const char *name;
	const char *alias; /* or "" */
	const char *desc;
	u32 type; /* PERF_TYPE_HARDWARE or PERF_TYPE_SOFTWARE */
	u64 config;
};

extern const struct ap__generic ap__generics[];
extern const unsigned int ap__ngenerics;

/* By name or alias; NULL if there is none. */
const struct ap__generic *ap__generic_find(const char *name);

/* By type and config; NULL if there is none. */
const struct ap__generic *ap__generic_of(u32 type, u64 config);

/*
 * The config of a cache name: TYPE, TYPE-OP, TYPE-RESULT, TYPE-OP-RESULT or TYPE-RESULT-OP in any
 * of perf's spellings and any letter case [CACHE-01..04]. -ENOENT: not a cache name; -EINVAL: it is
 * one, but that cache has no such operation.
 */
int ap__cache_find(const char *name, u64 *config);

/*
 * The usual name of cache event @config: "L1-dcache-load-misses". Returns false if there is no such
 * cache, operation or result, or the cache does not have the operation.
 */
bool ap__cache_name(u64 config, char *buf, size_t len);

/*
 * What perf calls an event of which only the attr is known, with its modifiers: "cycles:u",
 * "raw 0x1a8", "mem:0x1000:rw". Of PMUs other than the kernel's fixed types the name is the type's
 * number and the config.
 */
void ap__attr_name(const struct perf_event_attr *attr, char *buf, size_t len);

#define AP__CACHES                          7
#define AP__CACHE_OPS                       3
#define AP__CACHE_CONFIG(cache, op, result) ((u64)(cache) | (u64)(op) << 8 | (u64)(result) << 16)

/* One sentence on what cache event @config counts. */
char *ap__cache_desc(u64 config, char *buf, size_t len);

#endif
