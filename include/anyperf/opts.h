/*
 * PURPOSE: AP_OPTS(), which makes structs of options. In a header of its own, since it asks g++ not
 * to warn of its expansions: with -Wextra that wants all fields, also where some are named.
 */
#ifndef ANYPERF_OPTS_H
#define ANYPERF_OPTS_H

#pragma GCC system_header

/*
 * An options struct with its size filled in: &AP_OPTS(ap_open_opts, .flags = AP_OPEN_INHERIT). In
 * C++ it needs C++20, where fields stand in the order of the struct, and what & gives lives for the
 * statement.
 */
#ifdef __cplusplus
#define AP_OPTS(type, ...) (ap_lvalue<type>({.size = sizeof(type), __VA_ARGS__}))

/* A temporary as something that has an address, up to the end of the statement. */
template <class T> inline T &ap_lvalue(T &&temporary)
{
	return temporary;
}
#else
#define AP_OPTS(type, ...) ((struct type){.size = sizeof(struct type), __VA_ARGS__})
#endif

#endif
