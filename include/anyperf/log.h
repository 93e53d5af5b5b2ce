/*
 * PURPOSE: the library's only way of saying something: a function that the program hands in through
 * struct ap_machine_opts. Nothing is logged that an error would also say; the log tells the steps.
 */
#ifndef ANYPERF_LOG_H
#define ANYPERF_LOG_H

#include <anyperf/api.h>

AP_BEGIN_DECLS

enum ap_log_level {
	AP_LOG_WARN = 0,  /* the result is not quite what was asked for: a field was dropped ... */
	AP_LOG_INFO = 1,  /* a limit was raised, a fallback was taken */
	AP_LOG_DEBUG = 2, /* every open with its attr, every file read */
};

/*
 * @text is one line without a newline, valid during the call. May be called from any thread that
 * uses the library; must not call back into the library.
 */
typedef void ap_log_fn(enum ap_log_level level, const char *text, void *data);

AP_END_DECLS

#endif
