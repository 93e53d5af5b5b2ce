#include "cli/run/virtual.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "lib/backend.h"
#include "session/observer.h"
#include "session/session.h"

int virtual_open(struct virtual_pmu *v, const struct virtual_opts *opts, char *why, size_t size)
{
	struct session_config config = {
		.ignore_kernel = opts->ignore_kernel,
		.paranoid = SESSION_PARANOID_HOST,
		.counters = opts->counters,
		.cpuid_profile = opts->cpu_model,
	};
	int err = guest_tree_open(&v->tree, 0, 64, false, why, size);

	v->session = NULL;
	if (err)
		return err;
	if (opts->deterministic)
		deterministic_apply(opts->deterministic, &v->tree);
	config.tree_fd = v->tree.fd;
	getrlimit(RLIMIT_NOFILE, &v->files);
	getrlimit(RLIMIT_FSIZE, &v->file_size);
	v->xfsz_ignored = signal(SIGXFSZ, SIG_DFL) == SIG_IGN;
	err = session_new(&config, &v->session, why, size);
	if (err)
		guest_tree_close(&v->tree);
	return err;
}

int virtual_join(struct virtual_pmu *v, const char *name, char *why, size_t size)
{
	return observer_open(name, &v->observer, why, size);
}

void virtual_close(struct virtual_pmu *v)
{
	observer_close(v->observer);
	v->observer = NULL;
	if (!v->session)
		return;
	session_free(v->session);
	guest_tree_close(&v->tree);
	v->session = NULL;
}

bool virtual_counts(const struct virtual_pmu *v)
{
	return v->session || v->observer || v->around;
}

static int be_open(void *be, struct pe_attr *attr, pid_t pid, int cpu, int leader, u64 flags)
{
	struct virtual_pmu *v = be;

	return v->observer ? observer_event(v->observer, attr, pid, cpu, leader, flags)
			   : session_open(v->session, attr, pid, cpu, leader, flags);
}

static int be_close(void *be, int handle)
{
	struct virtual_pmu *v = be;

	return v->observer ? observer_release(v->observer, handle)
			   : session_close(v->session, handle);
}

static ssize_t be_read(void *be, int handle, void *buf, size_t len)
{
	struct virtual_pmu *v = be;

	return v->observer ? observer_read(v->observer, handle, buf, len)
			   : session_read(v->session, handle, buf, len);
}

static int be_ioctl(void *be, int handle, unsigned long request, unsigned long arg)
{
	struct virtual_pmu *v = be;

	return v->observer ? observer_ioctl(v->observer, handle, request, arg)
			   : session_ioctl(v->session, handle, request, arg);
}

static const struct refusal *be_refusal(void *be)
{
	struct virtual_pmu *v = be;

	return v->observer ? observer_refusal(v->observer) : session_refusal(v->session);
}

/* Without one its files are looked for where nothing is: the machine's own would be the wrong ones. */
static const char *be_root(void *be)
{
	struct virtual_pmu *v = be;
	const char *root = v->observer ? observer_root(v->observer) : session_root(v->session);

	return root ? root : "/dev/null";
}

static const struct ap__backend_ops virtual_backend = {
	.name = "session",
	.root = be_root,
	.open = be_open,
	.close = be_close,
	.read = be_read,
	.ioctl = be_ioctl,
	.refusal = be_refusal,
};

int virtual_machine(struct virtual_pmu *v, const struct ap_machine_opts *opts,
		    struct ap_machine **machine)
{
	int err = ap_machine_new(machine, opts);

	if (!err)
		ap__machine_set_backend(*machine, &virtual_backend, v);
	return err;
}

int virtual_exec(void *pmu, char *const *argv)
{
	struct virtual_pmu *v = pmu;

	setrlimit(RLIMIT_NOFILE, &v->files);
	setrlimit(RLIMIT_FSIZE, &v->file_size);
	signal(SIGXFSZ, v->xfsz_ignored ? SIG_IGN : SIG_DFL);
	return guest_exec(&v->tree, argv, session_bootstrap_fd(v->session));
}

int virtual_adopt(struct virtual_pmu *v, pid_t pid)
{
	return session_adopt(v->session, pid);
}

int virtual_fd(const struct virtual_pmu *v)
{
	return v->session ? session_fd(v->session) : -1;
}

void virtual_serve(struct virtual_pmu *v)
{
	if (v->session)
		session_run(v->session, 0);
}

int virtual_failure(struct virtual_pmu *v, const char **text)
{
	return guest_tree_failure(&v->tree, text);
}
