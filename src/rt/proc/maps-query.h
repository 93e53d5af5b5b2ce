/*
 * PURPOSE: PROCMAP_QUERY, by which a program asks for one mapping in place of reading all of
 * /proc/PID/maps.
 */
#ifndef RT_PROC_MAPS_QUERY_H
#define RT_PROC_MAPS_QUERY_H

#include "rt/task/thread.h"

long guest_ioctl(struct thread *t);

#endif
