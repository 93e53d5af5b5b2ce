#include "lib/machine/machine-priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/machine/machine-pmu.h"
#include "lib/refusal/fail.h"

/* What the size of the caller's struct covers; fields beyond it are zero. */
static struct ap_machine_opts opts_in(const struct ap_machine_opts *opts)
{
	struct ap_machine_opts o = {.size = sizeof(o)};

	if (opts)
		memcpy(&o, opts, opts->size < sizeof(o) ? opts->size : sizeof(o));
	return o;
}

int ap_machine_new(struct ap_machine **out, const struct ap_machine_opts *opts)
{
	struct ap_machine_opts o = opts_in(opts);
	struct ap_machine *m = calloc(1, sizeof(*m));
	int r;

	if (!m)
		return -ENOMEM;
	m->root = strdup(o.root ? o.root : "");
	if (!m->root) {
		free(m);
		return -ENOMEM;
	}
	m->log = o.log;
	m->log_data = o.log_data;
	m->log_level = o.log_level;
	m->ops = &ap__backend_kernel;
	pthread_mutex_init(&m->lock, NULL);
	r = ap__pmu_init(m, &o);
	if (r)
		ap_machine_free(m);
	else
		*out = m;
	return r;
}

static void forget(struct ap_machine *m)
{
	for (unsigned int i = 0; i < m->ncore; i++)
		free(m->core[i].cpus);
	free(m->core);
	m->core = NULL;
	m->ncore = 0;
	m->core_known = false;
}

void ap_machine_refresh(struct ap_machine *m)
{
	pthread_mutex_lock(&m->lock);
	forget(m);
	pthread_mutex_unlock(&m->lock);
}

void ap_machine_free(struct ap_machine *m)
{
	if (!m)
		return;
	forget(m);
	ap__pfm_unload(m);
	ap__virtual_free(m->virtual_pmu);
	pthread_mutex_destroy(&m->lock);
	free(m->root);
	free(m);
}

void ap__machine_set_backend(struct ap_machine *m, const struct ap__backend_ops *ops, void *be)
{
	m->ops = ops;
	m->be = be;
}

void ap__machine_set_advice(struct ap_machine *m, const struct ap__advice *advice)
{
	m->advice = advice;
}

bool ap__is_here(const struct ap_machine *m)
{
	return m->root[0] == '\0' && !m->ops->root;
}

const char *ap__root(const struct ap_machine *m)
{
	return m->ops->root ? m->ops->root(m->be) : m->root;
}

void ap__log(struct ap_machine *m, enum ap_log_level level, const char *fmt, ...)
{
	char line[1024];
	va_list ap;

	if (!m->log || level > m->log_level)
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	m->log(level, line, m->log_data);
}

/* root + path; NULL if it is too long. */
static const char *path_of(struct ap_machine *m, char *path, size_t len, const char *fmt,
			   va_list ap)
{
	const char *root = ap__root(m);
	size_t n = strlen(root);
	int more;

	if (n >= len)
		return NULL;
	memcpy(path, root, n + 1);
	more = vsnprintf(path + n, len - n, fmt, ap);
	return more < 0 || (size_t)more >= len - n ? NULL : path;
}

static ssize_t slurp(struct ap_machine *m, char *buf, size_t len, const char *path)
{
	size_t have = 0;
	ssize_t n;
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;

	if (!path)
		return -ENAMETOOLONG;
	if (fd < 0)
		return -errno;
	while ((n = read(fd, buf + have, len - have)) > 0) {
		have += (size_t)n;
		if (have == len)
			break;
	}
	if (n < 0) {
		n = -errno;
		close(fd);
		return n;
	}
	close(fd);
	if (have == len)
		return -E2BIG;
	while (have && (buf[have - 1] == '\n' || buf[have - 1] == ' '))
		have--;
	buf[have] = '\0';
	ap__log(m, AP_LOG_DEBUG, "read %s: %.80s", path, buf);
	return (ssize_t)have;
}

ssize_t ap__slurp(struct ap_machine *m, char *buf, size_t len, const char *fmt, ...)
{
	char path[4096];
	const char *p;
	va_list ap;

	va_start(ap, fmt);
	p = path_of(m, path, sizeof(path), fmt, ap);
	va_end(ap);
	return slurp(m, buf, len, p);
}

int ap__slurp_number(struct ap_machine *m, long long *out, const char *fmt, ...)
{
	char path[4096], buf[64], *end;
	const char *p;
	long long v;
	ssize_t n;
	va_list ap;

	va_start(ap, fmt);
	p = path_of(m, path, sizeof(path), fmt, ap);
	va_end(ap);
	n = slurp(m, buf, sizeof(buf), p);
	if (n < 0)
		return (int)n;
	errno = 0;
	v = strtoll(buf, &end, 0);
	if (end == buf || *end || errno)
		return -EINVAL;
	*out = v;
	return 0;
}

bool ap__exists(struct ap_machine *m, const char *fmt, ...)
{
	char path[4096];
	const char *p;
	va_list ap;

	va_start(ap, fmt);
	p = path_of(m, path, sizeof(path), fmt, ap);
	va_end(ap);
	return p && access(p, F_OK) == 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int ap__names(struct ap_machine *m, char ***names, const char *fmt, ...)
{
	char path[4096], **list = NULL;
	size_t n = 0, room = 0;
	struct dirent *d;
	const char *p;
	va_list ap;
	DIR *dir;

	va_start(ap, fmt);
	p = path_of(m, path, sizeof(path), fmt, ap);
	va_end(ap);
	if (!p)
		return -ENAMETOOLONG;
	dir = opendir(p);
	if (!dir)
		return -errno;
	while ((d = readdir(dir))) {
		if (d->d_name[0] == '.')
			continue;
		if (n + 1 >= room) {
			char **more = realloc(list, (room = room ? 2 * room : 16) * sizeof(*list));

			if (!more)
				goto nomem;
			list = more;
		}
		list[n] = strdup(d->d_name);
		if (!list[n])
			goto nomem;
		list[++n] = NULL;
	}
	closedir(dir);
	if (!list && !(list = calloc(1, sizeof(*list))))
		return -ENOMEM;
	qsort(list, n, sizeof(*list), by_name);
	*names = list;
	return (int)n;

nomem:
	closedir(dir);
	ap__names_free(list);
	return -ENOMEM;
}

void ap__names_free(char **names)
{
	for (char **p = names; p && *p; p++)
		free(*p);
	free(names);
}

const char *ap__tracefs_events(struct ap_machine *m, int *why)
{
	char header[16];
	ssize_t r;

	static const char *const dirs[] = {"/sys/kernel/tracing/events",
					   "/sys/kernel/debug/tracing/events"};

	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		if (ap__exists(m, "%s", dirs[i]))
			return dirs[i];
	/* Of debugfs nobody but root sees anything, so only the first place can tell. */
	r = ap__slurp(m, header, sizeof(header), "%s/header_page", dirs[0]);
	if (why)
		*why = r == -EACCES || ap__is_shortage((int)r) ? (int)r : -ENOENT;
	return NULL;
}

static int core_note(struct ap_machine *m, const char *name, u32 type, const char *cpus)
{
	struct ap__corepmu *more = realloc(m->core, (m->ncore + 1) * sizeof(*more));
	struct ap__corepmu *pmu;

	if (!more)
		return -ENOMEM;
	m->core = more;
	pmu = &m->core[m->ncore];
	snprintf(pmu->name, sizeof(pmu->name), "%s", name);
	pmu->type = type;
	pmu->cpus = cpus ? strdup(cpus) : NULL;
	if (cpus && !pmu->cpus)
		return -ENOMEM;
	m->ncore++;
	return 0;
}

static int core_add(struct ap_machine *m, const char *name, const char *cpus)
{
	long long type;

	if (strlen(name) >= sizeof(m->core->name) ||
	    ap__slurp_number(m, &type, AP__DEVICES "/%s/type", name))
		return 0;
	return core_note(m, name, (u32)type, cpus);
}

/*
 * "cpu" is the one core PMU of x86 and s390. Else those with a `cpus` file are: Intel's hybrid PMUs
 * and arm's; uncore PMUs have a `cpumask` file instead.
 */
static int core_find(struct ap_machine *m)
{
	char cpus[1024], **names;
	int n, r = 0;

	if (m->ops->core_pmu)
		return core_note(m, m->ops->core_pmu, PERF_TYPE_RAW, NULL);
	if (ap__exists(m, AP__DEVICES "/cpu"))
		return core_add(m, "cpu", NULL);
	n = ap__names(m, &names, AP__DEVICES);
	if (n < 0)
		return n == -ENOMEM ? n : 0;
	for (int i = 0; i < n && !r; i++)
		if (ap__slurp(m, cpus, sizeof(cpus), AP__DEVICES "/%s/cpus", names[i]) > 0)
			r = core_add(m, names[i], cpus);
	ap__names_free(names);
	return r;
}

/* Intel names the big ones cpu_core and the small ones cpu_atom; perf shows the big ones first. */
static int core_order(const void *a, const void *b)
{
	const struct ap__corepmu *x = a, *y = b;

	return x->type < y->type ? -1 : x->type > y->type;
}

unsigned int ap__core_pmus(struct ap_machine *m, const struct ap__corepmu **pmus)
{
	unsigned int n;

	pthread_mutex_lock(&m->lock);
	if (!m->core_known && core_find(m) == 0) {
		if (m->ncore > 1)
			qsort(m->core, m->ncore, sizeof(*m->core), core_order);
		m->core_known = true;
	}
	*pmus = m->core;
	n = m->ncore;
	pthread_mutex_unlock(&m->lock);
	return n;
}
