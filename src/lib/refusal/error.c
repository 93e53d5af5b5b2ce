#include "lib/refusal/fail.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const cause_names[] = {
	[AP_CAUSE_OTHER] = "other",
	[AP_CAUSE_SYNTAX] = "syntax",
	[AP_CAUSE_UNKNOWN_EVENT] = "unknown-event",
	[AP_CAUSE_BAD_VALUE] = "bad-value",
	[AP_CAUSE_PARANOID] = "paranoid",
	[AP_CAUSE_CAPABILITY] = "capability",
	[AP_CAUSE_PTRACE] = "ptrace",
	[AP_CAUSE_NO_TASK] = "no-task",
	[AP_CAUSE_NO_PMU] = "no-pmu",
	[AP_CAUSE_UNSUPPORTED] = "unsupported",
	[AP_CAUSE_SECCOMP] = "seccomp",
	[AP_CAUSE_LSM] = "lsm",
	[AP_CAUSE_KERNEL_OLD] = "kernel-old",
	[AP_CAUSE_NO_PERF] = "no-perf",
	[AP_CAUSE_SAMPLE_RATE] = "sample-rate",
	[AP_CAUSE_MAX_STACK] = "max-stack",
	[AP_CAUSE_MLOCK] = "mlock",
	[AP_CAUSE_FD_LIMIT] = "fd-limit",
	[AP_CAUSE_MEMORY] = "memory",
	[AP_CAUSE_CPU] = "cpu",
	[AP_CAUSE_CGROUP] = "cgroup",
	[AP_CAUSE_GROUP] = "group",
	[AP_CAUSE_BUSY] = "busy",
	[AP_CAUSE_TRACEFS] = "tracefs",
	[AP_CAUSE_FILE] = "file",
	[AP_CAUSE_KERNEL_MODE] = "kernel-mode",
	[AP_CAUSE_NOT_GUEST] = "not-guest",
	[AP_CAUSE_SESSION] = "session",
};

static const u8 public_cause[CAUSE_COUNT] = {
#define CAUSE(id, public, remedy, text) [CAUSE_##id] = AP_CAUSE_##public,
#define NOTE(id, text)
#include "base/cause-table.h"
#undef CAUSE
#undef NOTE
};

const char *ap_cause_name(int cause)
{
	if (cause < 0 || (size_t)cause >= ARRAY_SIZE(cause_names))
		return cause_names[AP_CAUSE_OTHER];
	return cause_names[cause];
}

char *ap_error_text(const struct ap_error *err, char *buf, size_t len)
{
	size_t n = strlen(err->why);
	const char *between = n && err->why[n - 1] == '?' ? " " : "; ";

	if (len)
		snprintf(buf, len, "%s%s%s", err->why, err->remedy[0] ? between : "", err->remedy);
	return buf;
}

int ap__fail(struct ap_error *err, int code, enum ap_cause cause, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return code;
	err->code = code;
	err->cause = (int)cause;
	err->about = 0;
	err->remedy[0] = '\0';
	va_start(ap, fmt);
	vsnprintf(err->why, sizeof(err->why), fmt, ap);
	va_end(ap);
	return code;
}

int ap__tell(struct ap_error *err, const char *event, const struct refusal *r)
{
	if (!err)
		return r->err;
	err->code = r->err;
	err->cause = r->cause < CAUSE_COUNT ? public_cause[r->cause] : AP_CAUSE_OTHER;
	err->about = (int)refusal_why(r, event, err->why, sizeof(err->why));
	refusal_remedy(r, err->remedy, sizeof(err->remedy));
	return r->err;
}

int ap__refuse_as(struct ap_error *err, int code, const char *event, enum refusal_cause cause,
		  const struct refusal_args *args)
{
	struct refusal r;

	if (!err)
		return code;
	refusal_set(&r, code, cause, args);
	return ap__tell(err, event, &r);
}

int ap__remedy(struct ap_error *err, int code, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return code;
	va_start(ap, fmt);
	vsnprintf(err->remedy, sizeof(err->remedy), fmt, ap);
	va_end(ap);
	return code;
}

void ap__add_why(struct ap_error *err, const char *fmt, ...)
{
	size_t have;
	va_list ap;

	if (!err)
		return;
	have = strlen(err->why);
	va_start(ap, fmt);
	vsnprintf(err->why + have, sizeof(err->why) - have, fmt, ap);
	va_end(ap);
}

int ap__flags_known(struct ap_error *err, const char *field, unsigned int flags, unsigned int known)
{
	if (!(flags & ~known))
		return 0;
	ap__fail(err, -EINVAL, AP_CAUSE_BAD_VALUE,
		 "%s has bits that this library does not know: 0x%x", field, flags & ~known);
	return ap__remedy(err, -EINVAL, "this is libanyperf %s", ap_version());
}

int ap__fail_unread(struct ap_error *err, int code, enum ap_cause cause, const char *path)
{
	if (code == -ENOMEM)
		return ap__fail_memory(err);
	if (!ap__is_shortage(code))
		return ap__fail(err, code, cause, "%s cannot be read: %s", path, strerror(-code));
	ap__fail(err, code, AP_CAUSE_FD_LIMIT, "%s cannot be read: no file descriptor is left",
		 path);
	return ap__remedy(err, code, "raise the limit (ulimit -n)");
}

int ap__fail_memory(struct ap_error *err)
{
	return ap__fail(err, -ENOMEM, AP_CAUSE_MEMORY, "out of memory");
}
