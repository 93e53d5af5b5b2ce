/* PURPOSE: this machine as a machine of the model: the geometry it tells of, the rest of the
 * nearest one that is shipped. */
#ifndef LIB_MACHINE_HOST_MACHINE_H
#define LIB_MACHINE_HOST_MACHINE_H

#include "model/machine.h"

/* The name of the shipped machine that is the nearest. */
const char *ap__host_base(void);

/* Turns @m, that machine, into this one. */
void ap__host_machine(struct machine *m);

#endif
