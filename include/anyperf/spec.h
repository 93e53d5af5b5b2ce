/*
 * PURPOSE: from the text that names events, as in `-e`, to attrs that can be opened.
 *
 *   list    = item {"," item}
 *   item    = event [":" {modifier}] | "{" event {"," event} "}" [":" modifier {modifier}]
 *   event   = NAME ["/" term {"," term} "/"]
 *                                     cycles, page-faults, L1-dcache-load-misses, an event of a PMU
 *           | "r" HEX                  raw code of the CPU's PMU
 *           | PMU "/" term {"," term} "/"
 *           | TYPE ":" CONFIG          attr.type and attr.config in numbers
 *           | SYS ":" NAME             tracepoints; both may contain * ? [ ]
 *           | "mem:" ADDR ["/" LEN] [":" r w x]
 *           | ("kprobe" | "kretprobe") ":" (FUNC | ADDR) ["+" OFFSET]
 *           | ("uprobe" | "uretprobe") ":" FILE ":" (SYMBOL | OFFSET) ["+" OFFSET]
 *   term    = NAME ["=" VALUE]         config, config1 ... name, period, freq, perf's other terms;
 *                                      behind a PMU also those of its format directory, and the
 *                                      events of its events directory
 *   modifier = u k h G H I p P D e W S b, each at most once, p up to three times
 *
 * Virtual machines that run on this one (guests) are left out unless G is given. Letter case
 * matters but in the names of cache events. Hexadecimal numbers begin with 0x.
 *
 * A list of specs owns everything that its specs point to; specs are changed by nobody but the
 * owner of the list, before they are opened.
 */
#ifndef ANYPERF_SPEC_H
#define ANYPERF_SPEC_H

#include <anyperf/error.h>
#include <linux/perf_event.h>

AP_BEGIN_DECLS

struct ap_machine;
struct ap_specs;

enum ap_spec_flags {
	AP_SPEC_LEADER = 1 << 0,      /* first, or only, event of its group */
	AP_SPEC_WEAK = 1 << 1,        /* W: open the members singly if the group does not fit */
	AP_SPEC_SAMPLE_READ = 1 << 2, /* S: samples carry the group's values */
	AP_SPEC_PRIV_GIVEN = 1 << 3,  /* u, k or h was written: never fall back to user mode only */
	AP_SPEC_PRECISE_MAX = 1 << 4, /* P: attr.precise_ip is to be the highest that opens */
	AP_SPEC_PERIOD_GIVEN = 1 << 5, /* period= or freq= was written */
	AP_SPEC_BPF_COUNTER = 1 << 6,  /* b: was written; anyperf counts with ordinary events */
	AP_SPEC_INHERIT_GIVEN =
		1 << 7,            /* inherit or no-inherit was written; attr.inherit says which */
	AP_SPEC_EXPANDED = 1 << 8, /* one of several specs that one written event turned into */
	AP_SPEC_PERCORE = 1 << 9,  /* percore was written: sum the hardware threads of a core */
	AP_SPEC_TIME_GIVEN = 1 << 10, /* time= was written; sample_type's TIME bit says which */
	AP_SPEC_NAME_GIVEN = 1 << 11, /* name= was written */
};

/* One event to open. Allocated by the library only, so that it can grow. */
struct ap_spec {
	/*
	 * attr->size bytes, all that this version of the library knows (at least VER9), which may
	 * be more than the system's struct has. A caller may change any of them; the parser itself
	 * leaves disabled, inherit and read_format alone.
	 */
	struct perf_event_attr *attr;
	const char *name; /* as written with its modifiers, or name=; what output shows */
	const char *pmu;  /* directory of the PMU the event belongs to; "" for a generic event */
	const char *unit; /* "" or the unit that the PMU's events directory gives, "Joules" */
	double scale;     /* multiply the count by this to get `unit`; 1 if nothing is said */
	const char *cpus; /* the PMU counts on these CPUs only, "0,18"; NULL: on all */
	const char *call_graph; /* call-graph= as written, else NULL */
	unsigned int group;   /* number of its group, counted from 0; members stand side by side */
	unsigned int members; /* leader: size of the group, 1 if it stands alone; others 0 */
	unsigned int flags;   /* enum ap_spec_flags */
	bool uncore;          /* counts CPUs, not tasks: needs a CPU target */
};

/*
 * Parses @text for machine @m. *@out is freed with ap_specs_free(). Cost: names of generic events
 * touch no file; others read what they need of sysfs or tracefs.
 *   -EINVAL   syntax, a value too large for its field, or above the PMU's caps/<term>_max
 *   -ENOENT   unknown event, PMU, term, symbol or file; the reason names the nearest
 *   -EACCES   tracefs or a file cannot be read
 *   -ENOMEM
 */
AP_API AP_MUST_CHECK int ap_specs_parse(struct ap_specs **out, struct ap_machine *m,
					const char *text, struct ap_error *err);

AP_API void ap_specs_free(struct ap_specs *s);

/* How many specs the list holds. */
AP_API unsigned int ap_specs_count(const struct ap_specs *s);

/*
 * The spec at @i, from 0, in the order written; NULL beyond the end. Valid until ap_specs_free().
 */
AP_API struct ap_spec *ap_specs_at(const struct ap_specs *s, unsigned int i);

/*
 * What an attr asks for as one event that ap_specs_parse() would give back ("cpu/config=0x1/u" or
 * "cycles:u"), cut to @len bytes. For attrs that came from elsewhere. Returns @buf.
 */
AP_API char *ap_attr_describe(const struct perf_event_attr *attr, struct ap_machine *m, char *buf,
			      size_t len);

AP_END_DECLS

#endif
