/*
 * PURPOSE: what every public header of libanyperf needs: the export mark, C++ linkage, and the
 * rules that hold for the whole library.
 *
 * Rules. Functions return 0 or a count on success and -errno on failure; results come back through
 * the first parameters, which are written only on success. A `const T *` is borrowed for the call;
 * a parameter that is kept or taken says so. Structs of options begin with `size`, set to
 * sizeof(the struct) by AP_OPTS(), so that later versions can add fields at the end; fields left
 * zero mean the default. Structs that the library hands out through a pointer may grow at the end.
 *
 * The library prints nothing, has no global state and installs no signal handlers. Objects may be
 * handed between threads; two threads may use one struct ap_machine at the same time, every other
 * object by one thread at a time. ap_event_read() and ap_event_read_self() are async-signal-safe
 * for groups of up to 80 events on a machine of the kernel's PMU.
 */
#ifndef ANYPERF_API_H
#define ANYPERF_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <anyperf/opts.h>

#define AP_VERSION_MAJOR 0
#define AP_VERSION_MINOR 1
#define AP_VERSION_PATCH 0

#ifdef __cplusplus
#define AP_BEGIN_DECLS extern "C" {
#define AP_END_DECLS   }
#else
#define AP_BEGIN_DECLS
#define AP_END_DECLS
#endif

#define AP_API        __attribute__((visibility("default")))
#define AP_MUST_CHECK __attribute__((warn_unused_result))

AP_BEGIN_DECLS

/* The version of the library that is linked in, "0.1.0"; AP_VERSION_* is that of the headers. */
AP_API const char *ap_version(void);

AP_END_DECLS

#endif
