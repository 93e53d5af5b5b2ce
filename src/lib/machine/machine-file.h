/*
 * PURPOSE: machines for the model by name or file, and this machine as one of them. What a machine
 * is stands in model/machine.h.
 */
#ifndef LIB_MACHINE_MACHINE_FILE_H
#define LIB_MACHINE_MACHINE_FILE_H

#include <anyperf/error.h>

#include "model/machine.h"

/* "host": this machine, as far as it tells. */
#define MACHINE_HOST "host"

/*
 * @name is one that is shipped, "host", or the path of a file: with a `/` always, else if nothing
 * shipped is called so. -ENOENT, -EACCES and so on of the file; -EBADMSG: it is refused, by line
 * and field.
 */
must_check int ap__model_machine(struct machine *out, const char *name, struct ap_error *err);

/* The same, and "none": *out is of version 0 then. */
#define MACHINE_NONE "none"
must_check int ap__model_chosen(struct machine *out, const char *name, struct ap_error *err);

/*
 * Changes a cache as cachegrind's --I1, --D1 and --LL do: "SIZE,WAYS,LINE", in bytes. -EINVAL: it
 * cannot be; the line is one for all caches.
 */
must_check int ap__model_geometry(struct machine *m, enum machine_cache_id id, const char *text,
				  struct ap_error *err);

/* Calls @fn with each shipped machine and with "host", by name. */
void ap__model_machines(void (*fn)(const struct machine *m, void *data), void *data);

/* "line 3: l1i: size 33K is ..." Returns @buf. */
char *ap__machine_mistake_text(const struct machine_mistake *why, char *buf, size_t size);

/*
 * What the CPU's instructions tell of its caches, and which shipped machine is the nearest. Caches
 * that it does not tell of have size 0. NULL: it tells nothing.
 */
const char *ap__host_geometry(struct machine_cache cache[MACHINE_CACHES], u32 *line);

#endif
