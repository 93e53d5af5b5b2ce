/*
 * PURPOSE: the PMUs of a machine and what can be asked of them: `anyperf list` is a loop over this.
 * What is enumerated is found by reading directories, so this is for showing, not for start-up.
 */
#ifndef ANYPERF_PMU_H
#define ANYPERF_PMU_H

#include <anyperf/error.h>

AP_BEGIN_DECLS

struct ap_machine;

/* Strings live until the callback returns. */
struct ap_pmu {
	const char *name;           /* directory in /sys/bus/event_source/devices */
	uint32_t type;              /* for attr.type */
	const char *cpus;           /* CPUs it can be opened on, "0-3"; "" if it does not say */
	const char *const *formats; /* "event config:0-7", NULL at the end */
	const char *const *caps;    /* "max_precise 3", NULL at the end */
	bool core; /* counts what threads do: the CPU's own PMU, or one of several */
};

typedef int ap_pmu_fn(const struct ap_pmu *pmu, void *data);

/* Calls @fn for every PMU by name. Returns 0, @fn's first non-zero value, or -errno. */
AP_API int ap_pmus_each(struct ap_machine *m, ap_pmu_fn *fn, void *data, struct ap_error *err);

enum ap_kind {
	AP_KIND_HARDWARE = 1 << 0, /* generic hardware events */
	AP_KIND_SOFTWARE = 1 << 1,
	AP_KIND_CACHE = 1 << 2, /* generic cache events */
	AP_KIND_PMU = 1 << 3,   /* events in the PMUs' events directories */
	AP_KIND_TRACEPOINT = 1 << 4,
	AP_KIND_PFM = 1 << 5,  /* names that libpfm4 knows for this CPU */
	AP_KIND_FORM = 1 << 6, /* forms to fill in: rNNN, mem:<addr>, cpu/.../ , kprobe: */
	AP_KIND_ALL = (1 << 7) - 1,
};

/* One event that a description may name. Strings live until the callback returns. */
struct ap_listed {
	const char *name;     /* ready for ap_specs_parse(); for AP_KIND_FORM a pattern */
	const char *alias;    /* another spelling, or "" */
	const char *desc;     /* one sentence */
	const char *encoding; /* "type=0 config=0x1", or "cpu/event=0xc0/"; "" for a form */
	const char *pmu;      /* the PMU's name, or "" */
	const char *unit;     /* "" or what one count times the scale is */
	enum ap_kind kind;
};

struct ap_list_opts {
	size_t size;
	unsigned int kinds; /* enum ap_kind bits; 0: all */
	const char *glob;   /* only names or aliases that match (letter case ignored); NULL: all */
};

typedef int ap_listed_fn(const struct ap_listed *event, void *data);

/*
 * Calls @fn for every event of the machine that @opts (NULL: all) selects, by kind, then by name.
 * Generic names are listed whether or not this machine counts them. A tracefs that cannot be read
 * lists nothing and is not an error. Returns 0, @fn's first non-zero value, or -errno.
 */
AP_API int ap_events_each(struct ap_machine *m, const struct ap_list_opts *opts, ap_listed_fn *fn,
			  void *data, struct ap_error *err);

/*
 * Opens the event that @name describes on the calling thread (an uncore event on its first CPU; one
 * of the virtual PMU on a command that is not started) and closes it again: 0; 1 if it opens for
 * user mode only (as NAME:u), with why not for the kernel in *@err; or -errno, with why not.
 */
AP_API AP_MUST_CHECK int ap_event_probe(struct ap_machine *m, const char *name,
					struct ap_error *err);

AP_END_DECLS

#endif
