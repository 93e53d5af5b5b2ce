/* PURPOSE: gathering features: feature.c all of them, feature-cpus.c those of CPUs and memory. */
#ifndef DATA_FEATURE_PRIV_H
#define DATA_FEATURE_PRIV_H

#include "data/feature.h"

/* "AMD EPYC" of "model name : AMD EPYC" in /proc/cpuinfo, or a number of /proc/meminfo. */
bool data_look_up(const char *path, const char *key, char *value, size_t size);

void data_features_gather_cpus(struct data_features *f);

#endif
