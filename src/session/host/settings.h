/*
 * PURPOSE: perf's sysctls and the PMU's interval, which guests may write to. The session's are
 * changed, for all its guests; the machine's never are.
 */
#ifndef SESSION_HOST_SETTINGS_H
#define SESSION_HOST_SETTINGS_H

#include "base/types.h"

struct session;

/* The path of the @index'th sysctl and, in @text, its value; NULL: there are no more. */
const char *setting_show(struct session *s, u32 index, char *text, size_t size);
/* What guests may do with rdpmc: enum wire_rdpmc. */
u32 setting_rdpmc(const struct session *s);
/* Which setting's file @fd is, or -ENOENT. */
s64 setting_by_fd(struct session *s, int fd);

#endif
