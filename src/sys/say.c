#include "base/check.h"
#include "sys/fmt.h"
#include "sys/kernel.h"

#define LINE_MAX 1000

static void say_va(const char *before, const char *format, va_list args)
{
	char line[LINE_MAX];
	size_t n = fmt(line, sizeof(line), "%s", before);

	n += fmt_va(line + n, sizeof(line) - n, format, args);
	sys_write(2, line, n < sizeof(line) ? n : sizeof(line) - 1);
}

void say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say_va("", format, args);
	va_end(args);
}

void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say_va("anyperf: ", format, args);
	va_end(args);
	sys_exit_group(125);
}

/*
 * A bug of ours. SIGABRT by its default action, sent to this thread, shows it to the parent and
 * leaves a core where cores are wanted; the guest's dispositions are not in the kernel.
 */
void check_failed(const char *file, int line, const char *what)
{
	struct sys_sigaction dfl = {0};
	u64 none = 0;

	say("anyperf: %s:%d: check failed: %s (pid %d, thread %d)\n", file, line, what,
	    sys_getpid(), sys_gettid());
	sys_rt_sigaction(6, &dfl, NULL);
	sys_rt_sigprocmask(2, &none, NULL);
	sys_tgkill(sys_getpid(), sys_gettid(), 6);
	sys_exit_group(125);
}
