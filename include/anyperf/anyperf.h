/*
 * PURPOSE: all of libanyperf at once.
 *
 *   struct ap_counters *c;
 *   struct ap_error err;
 *
 *   ap_counters_open_text(&c, "page-faults,{cycles,instructions}:u", &err);
 *   ap_counters_enable(c);
 *   ... the region ...
 *   ap_counters_disable(c);
 *   ap_counters_read(c);
 *   ap_counters_sum(c, 0, &value);
 *   ap_counters_close(c);
 *
 * With other targets and options: ap_machine_new(), ap_specs_parse(), ap_counters_open(). A program
 * that is started, with or without a PMU of the CPU: ap_command_new(), examples/command.c.
 * examples/region.c is the whole program; anyperf(3) has the overview.
 */
#ifndef ANYPERF_ANYPERF_H
#define ANYPERF_ANYPERF_H

#include <anyperf/api.h>
#include <anyperf/command.h>
#include <anyperf/counters.h>
#include <anyperf/error.h>
#include <anyperf/event.h>
#include <anyperf/log.h>
#include <anyperf/machine.h>
#include <anyperf/pmu.h>
#include <anyperf/read.h>
#include <anyperf/record.h>
#include <anyperf/ring.h>
#include <anyperf/sampler.h>
#include <anyperf/self.h>
#include <anyperf/spec.h>

#endif
