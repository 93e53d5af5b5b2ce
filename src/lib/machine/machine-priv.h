/*
 * PURPOSE: struct ap_machine and reading the small files of sysfs, procfs and tracefs below its
 * root.
 */
#ifndef LIB_MACHINE_MACHINE_PRIV_H
#define LIB_MACHINE_MACHINE_PRIV_H

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>

#include <anyperf/machine.h>

#include "backend/backend.h"
#include "backend/virtual.h"

#define AP__DEVICES "/sys/bus/event_source/devices"

struct ap__corepmu {
	char name[64];
	u32 type;
	char *cpus; /* owned; its `cpus` file, NULL if there is none */
};

struct ap_machine {
	char *root; /* opts.root; ap__root() says what is in force; owned */
	ap_log_fn *log;
	void *log_data;
	enum ap_log_level log_level;

	const struct ap__backend_ops *ops;
	void *be;
	const struct ap__advice *advice; /* NULL: what can be done on any machine */

	enum ap_machine_pmu asked; /* opts.pmu */
	bool around; /* the kernel that we see is a session, whose guest this program is */
	struct virtual_opts virtual_opts;
	struct virtual_pmu *virtual_pmu; /* owned; NULL: not made */
	char pmu_why[400];

	/* AP__MISSING_* that an open has found out; they only ever grow. */
	atomic_uint missing;

	pthread_mutex_t lock; /* guards all below */
	bool core_known;
	struct ap__corepmu *core; /* PMUs that count what threads do, owned */
	unsigned int ncore;
	void *pfm; /* libpfm4's handle once asked for; NULL: not yet, or not there */
	bool pfm_tried;
};

/*
 * Makes events of @m live in another backend from now on. @ops and @be are borrowed and must
 * outlive the machine. For tests.
 */
void ap__machine_set_backend(struct ap_machine *m, const struct ap__backend_ops *ops, void *be);

/* Calls the program's log function if @level is wanted. */
void ap__log(struct ap_machine *m, enum ap_log_level level, const char *fmt, ...) printf_like(3, 4);

/*
 * Reads the file at root + the formatted path into @buf as a string without its closing newline.
 * Returns its length, -E2BIG if it does not fit, or -errno.
 */
ssize_t ap__slurp(struct ap_machine *m, char *buf, size_t len, const char *fmt, ...)
	printf_like(4, 5);

/* The same for a file that holds one decimal or 0x number. -EINVAL if it does not. */
int ap__slurp_number(struct ap_machine *m, long long *out, const char *fmt, ...) printf_like(3, 4);

/* Whether root + path exists. */
bool ap__exists(struct ap_machine *m, const char *fmt, ...) printf_like(2, 3);

/*
 * The names in a directory, sorted, without those that begin with a dot. *@names is freed with
 * ap__names_free(). Returns their number or -errno.
 */
int ap__names(struct ap_machine *m, char ***names, const char *fmt, ...) printf_like(3, 4);
void ap__names_free(char **names);

/*
 * The PMUs that count what threads do, found at the first call: one on most machines, none in most
 * virtual machines, several on hybrid ones. Returns their number; *@pmus stays valid until
 * ap_machine_refresh().
 */
unsigned int ap__core_pmus(struct ap_machine *m, const struct ap__corepmu **pmus);

/*
 * The directory with tracefs's events, without the root: "/sys/kernel/tracing/events". NULL if
 * there is none, with *@why -EACCES if this user may just not look, else -ENOENT. @why may be NULL.
 */
const char *ap__tracefs_events(struct ap_machine *m, int *why);

/* Unloads libpfm4 if something has loaded it. */
void ap__pfm_unload(struct ap_machine *m);

/* Whether the machine is the one that we run on. */
bool ap__is_here(const struct ap_machine *m);

/* What goes in front of every path; "" for this machine. */
const char *ap__root(const struct ap_machine *m);

#endif
