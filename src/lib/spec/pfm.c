/*
 * Event names by libpfm4, if it is installed: it knows the events of many CPUs by their vendors'
 * names. Loaded only when a name is otherwise unknown, since loading it costs more than all the
 * rest of a start. The few declarations needed are written here after its documented ABI (pfmlib.h,
 * LIBPFM_VERSION 4.0), so that building does not need its headers.
 */
#include "lib/spec/spec-priv.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pfm_perf_arg {
	void *attr;
	char **fstr;
	size_t size;
	int idx, cpu, flags, pad0;
};

struct pfm_event_info {
	const char *name, *desc, *equiv;
	size_t size;
	u64 code;
	int pmu, dtype, idx, nattrs, reserved;
	unsigned int flags;
};

struct pfm_pmu_info {
	const char *name, *desc;
	size_t size;
	int pmu, type, nevents, first_event, max_encoding, num_cntrs, num_fixed_cntrs;
	unsigned int flags; /* bit 0: present on this host */
};

enum {
	PFM_OS_PERF_EVENT = 1,
	PFM_OS_PERF_EVENT_EXT = 2,
	PFM_PLM_KERNEL_USER = 0x01 | 0x08,
	PFM_PMUS = 1024, /* more than libpfm4 has; it refuses numbers that it does not know */
};

struct pfm {
	void *lib;
	int (*initialize)(void);
	int (*encode)(const char *str, int plm, int os, void *arg);
	int (*pmu_info)(int pmu, struct pfm_pmu_info *info);
	int (*event_info)(int idx, int os, struct pfm_event_info *info);
	int (*event_next)(int idx);
};

/* C has no cast from an object pointer to a function's; POSIX promises that this works. */
#define RESOLVE(pfm, member, symbol) (*(void **)&(pfm)->member = dlsym((pfm)->lib, symbol))

static bool load(struct pfm *f)
{
	f->lib = dlopen("libpfm.so.4", RTLD_NOW | RTLD_LOCAL);
	if (!f->lib)
		return false;
	if (RESOLVE(f, initialize, "pfm_initialize") &&
	    RESOLVE(f, encode, "pfm_get_os_event_encoding") &&
	    RESOLVE(f, pmu_info, "pfm_get_pmu_info") &&
	    RESOLVE(f, event_info, "pfm_get_event_info") &&
	    RESOLVE(f, event_next, "pfm_get_event_next") && f->initialize() == 0)
		return true;
	dlclose(f->lib);
	return false;
}

/*
 * The machine's libpfm4, or NULL. Never for another machine's tree: it looks at this CPU. Called
 * with m->lock held; libpfm4 itself is not thread-safe.
 */
static struct pfm *pfm_of(struct ap_machine *m)
{
	struct pfm *f;

	if (m->pfm_tried || !ap__is_here(m))
		return m->pfm;
	m->pfm_tried = true;
	f = calloc(1, sizeof(*f));
	if (f && load(f))
		m->pfm = f;
	else
		free(f);
	ap__log(m, AP_LOG_INFO,
		m->pfm ? "libpfm4 is loaded for event names" : "libpfm4 is not installed");
	return m->pfm;
}

void ap__pfm_unload(struct ap_machine *m)
{
	struct pfm *f = m->pfm;

	if (!f)
		return;
	dlclose(f->lib);
	free(f);
	m->pfm = NULL;
}

/* Tries @name; true with @attr filled in. @attr has room for any version of the struct. */
static bool encode(struct pfm *f, const char *name, void *attr)
{
	struct pfm_perf_arg arg = {.attr = attr, .size = sizeof(arg)};

	memset(attr, 0, 256);
	return f->encode(name, PFM_PLM_KERNEL_USER, PFM_OS_PERF_EVENT_EXT, &arg) == 0;
}

int ap__parse_pfm(struct ap__parse *p, const char *name, bool *found)
{
	_Alignas(8) char attr[256];
	struct ap__item *it;
	struct pfm *f;
	int r;

	pthread_mutex_lock(&p->m->lock);
	f = pfm_of(p->m);
	*found = f && encode(f, name, attr);
	pthread_mutex_unlock(&p->m->lock);
	if (!*found)
		return 0;
	r = ap__parse_add(p, name, &it);
	if (r)
		return r;
	memcpy(&it->attr, attr, sizeof(it->attr));
	it->attr.size = sizeof(it->attr);
	it->attr.exclude_guest = 1;
	/* Without modifiers of its own libpfm4 leaves out the hypervisor; perf does not. */
	if (!strchr(name, ':') || strstr(name, "::") == strrchr(name, ':') - 1)
		it->attr.exclude_hv = 0;
	return 0;
}

int ap__pfm_each(struct ap_machine *m,
		 int (*fn)(const char *name, const char *desc, const char *pmu, void *data),
		 void *data)
{
	struct pfm_event_info ev;
	struct pfm_pmu_info pmu;
	char name[256];
	struct pfm *f;
	int r = 0;

	pthread_mutex_lock(&m->lock);
	f = pfm_of(m);
	for (int i = 0; f && i < PFM_PMUS && !r; i++) {
		memset(&pmu, 0, sizeof(pmu));
		pmu.size = sizeof(pmu);
		/* "perf" is the generic events once more. */
		if (f->pmu_info(i, &pmu) || !(pmu.flags & 1) || strcmp(pmu.name, "perf") == 0)
			continue;
		for (int at = pmu.first_event; at != -1 && !r; at = f->event_next(at)) {
			memset(&ev, 0, sizeof(ev));
			ev.size = sizeof(ev);
			if (f->event_info(at, PFM_OS_PERF_EVENT, &ev))
				continue;
			snprintf(name, sizeof(name), "%s::%s", pmu.name, ev.name);
			r = fn(name, ev.desc ? ev.desc : "", pmu.name, data);
		}
	}
	pthread_mutex_unlock(&m->lock);
	return r;
}
