/*
 * `anyperf valgrind`: callgrind and cachegrind for those who start them: their command lines, and
 * files that their users' tools read. The program runs under the translator, which hands out what
 * is executed, in order; here that becomes a call graph.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/check.h"
#include "calls/callgrind-file.h"
#include "cli/exact-threads.h"
#include "cli/report/uncounted.h"
#include "cli/valgrind/valgrind-priv.h"
#include "lib/command.h"
#include "lib/machine/machine-file.h"
#include "lib/machine/machine-pmu.h"

static int say(const struct ap_error *err)
{
	char text[1100];

	ap_error_text(err, text, sizeof(text));
	return command_error(&cmd_valgrind, "%s", text);
}

static void take_records(void *data)
{
	struct valgrind_job *job = data;
	struct ap_record rec;
	struct ap_error err;
	int r;

	while ((r = ap_sampler_next(job->sampler, &rec, &err))) {
		if (r < 0)
			continue;
		switch (rec.type) {
		case PERF_RECORD_MMAP:
		case PERF_RECORD_MMAP2:
			code_view_map(job->trace.code, rec.mmap.pid, rec.mmap.addr, rec.mmap.len,
				      rec.mmap.pgoff, rec.mmap.filename);
			break;
		case PERF_RECORD_FORK:
			code_view_fork(job->trace.code, rec.task.pid, rec.task.ppid);
			break;
		case PERF_RECORD_COMM:
			if (rec.misc & PERF_RECORD_MISC_COMM_EXEC)
				code_view_exec(job->trace.code, rec.comm.pid);
			break;
		default: break;
		}
	}
}

/*
 * Caches of the machine `cachegrind`, with the geometry of this one, as Valgrind has it, where none
 * is given.
 */
static int choose_caches(struct valgrind_job *job, struct ap_error *err)
{
	static const enum machine_cache_id ids[] = {MACHINE_L1I, MACHINE_L1D, MACHINE_LL};
	struct machine host;
	int r;

	/* What is wrong is refused, as by Valgrind, also where nothing is simulated. */
	if (!job->opts.cache_sim && !job->opts.geometry[0] && !job->opts.geometry[1] &&
	    !job->opts.geometry[2])
		return 0;
	r = ap__model_machine(&job->caches, "cachegrind", err);
	if (!r)
		r = ap__model_machine(&host, "host", err);
	for (u32 i = 0; !r && i < ARRAY_SIZE(ids); i++) {
		struct machine_cache *c = &job->caches.cache[ids[i]];

		if (job->opts.geometry[i]) {
			r = ap__model_geometry(&job->caches, ids[i], job->opts.geometry[i], err);
		} else if (host.cache[ids[i]].size && host.memory.line == job->caches.memory.line) {
			c->size = host.cache[ids[i]].size;
			c->ways = host.cache[ids[i]].ways;
		}
	}
	return r;
}

static int prepare(struct valgrind_job *job)
{
	const struct ap_command_opts opts = child_opts(&job->signals);
	struct ap_target target = AP_OPTS(ap_target);
	struct ap_sampler_opts sampling =
		AP_OPTS(ap_sampler_opts, .period = 1,
			.flags = AP_SAMPLER_TASKS | AP_SAMPLER_SHRINK | AP_SAMPLER_LOSSLESS,
			.open_flags = AP_OPEN_INHERIT | AP_OPEN_ON_EXEC, .horizon = 1);
	struct ap_error err;

	if (ap_machine_new(&job->machine, NULL))
		return command_error(&cmd_valgrind, "out of memory");
	if (choose_caches(job, &err))
		return say(&err);
	ap__pmu_traced(job->machine, true, job->opts.cache_sim ? &job->caches : NULL);
	if (ap__pmu_want(job->machine, "asked for", &err))
		return say(&err);
	if (!ap__machine_virtual(job->machine))
		return command_error(&cmd_valgrind,
				     "this does not work in a program that runs under `anyperf "
				     "run` itself");
	if (ap__command_new(&job->child.command, job->machine, job->opts.command, &opts, 0, &err)) {
		say(&err);
		return child_failure_status(&cmd_valgrind, &err);
	}
	job->pid = (u32)child_pid(&job->child);
	signals_block(&job->signals);
	target.command = job->child.command;
	if (ap_specs_parse(&job->specs, job->machine, "dummy:u", &err) ||
	    ap_sampler_open(&job->sampler, job->machine, job->specs, &target, &sampling, &err))
		return say(&err);
	return 0;
}

#define RECORDS_EVERY 16000000u /* ns that it has waited */

/* 0, or -errno with the reason if COMMAND could not be executed. */
static int wait_for_child(struct valgrind_job *job, struct ap_error *err)
{
	struct pollfd p = {.fd = job->signals.fd, .events = POLLIN};
	u64 paused = 0;
	int r;

	for (;;) {
		struct timespec pause = {.tv_nsec = (long)call_trace_read(&job->trace)};

		paused += (u64)pause.tv_nsec;
		if (ppoll(&p, 1, &pause, NULL) > 0 &&
		    signals_take(&job->signals, child_pid(&job->child))) {
			r = child_reap(&job->child, err);
			if (r)
				return r < 0 ? r : 0;
		}
		child_follow_stop(&job->child);
		if (paused >= RECORDS_EVERY) {
			take_records(job);
			paused = 0;
		}
	}
}

/* Whether the process of @p became @other later. Either may have been seen first. */
static bool comes_after(const struct traced_program *other, const struct traced_program *p)
{
	return other->pid == p->pid && other->space != p->space &&
	       other->thread[0].start > p->thread[0].start;
}

/* A program that became another one has no profile of its own, as with Valgrind. */
static bool is_last(const struct valgrind_job *job, const struct traced_program *p)
{
	for (const struct traced_program *q = job->trace.programs; q; q = q->next)
		if (comes_after(q, p))
			return false;
	return true;
}

static bool is_first(const struct valgrind_job *job, const struct traced_program *p)
{
	for (const struct traced_program *q = job->trace.programs; q; q = q->next)
		if (comes_after(p, q))
			return false;
	return true;
}

/* What is said at the end is of all threads. It comes last in the list. */
static struct traced_program *first_thread(struct traced_program *p)
{
	struct traced_program *first = p;

	for (; p; p = p->next)
		if (p->space == first->space && p->pid == first->pid)
			first = p;
	return first;
}

static void write_all(struct valgrind_job *job)
{
	for (struct traced_program *p = job->trace.programs, *first; p; p = p->next) {
		if (!is_last(job, p) || (!job->opts.trace_children && !is_first(job, p)))
			continue;
		calls_finish(p->graph);
		valgrind_write(p, NULL);
		first = first_thread(p);
		if (first == p)
			valgrind_say_totals(p);
		else
			callgrind_totals_add(&first->total, &p->total);
	}
}

static void greet(struct valgrind_job *job)
{
	if (job->opts.tool == TOOL_CALLGRIND)
		valgrind_say(job, job->pid, "Callgrind, a call-graph generating cache profiler");
	else
		valgrind_say(job, job->pid, "Cachegrind, a cache and branch-prediction profiler");
	valgrind_say(job, job->pid, "Using anyperf-%s, not Valgrind; see anyperf-valgrind(1)",
		     ap_version());
	valgrind_say(job, job->pid, "Command: %s", job->command);
	valgrind_say(job, job->pid, "%s", "");
}

static void describe(void *data, struct calls_fn *fn, bool plt)
{
	const struct valgrind_job *job = data;
	const struct valgrind_opts *o = &job->opts;

	fn->skip = (plt && o->skip_plt) || valgrind_names(&o->skip, fn->name);
	fn->toggle = valgrind_names(&o->toggle, fn->name);
	fn->dump_before = valgrind_names(&o->dump_before, fn->name);
	fn->dump_after = valgrind_names(&o->dump_after, fn->name);
	fn->zero_before = valgrind_names(&o->zero_before, fn->name);
}

static void begin_trace(struct valgrind_job *job)
{
	const struct valgrind_opts *o = &job->opts;

	job->simulation = (struct simulation_opts){.machine = &job->caches,
						   .caches = o->cache_sim,
						   .branches = o->branch_sim,
						   .modified_is_read = o->tool == TOOL_CACHEGRIND};
	job->trace = (struct call_trace){
		.machine = job->machine,
		.code = code_view_new(),
		.instrument = o->instrument,
		.collect = o->collect,
		.recursions = (u32)o->recursions,
		.no_calls = o->tool == TOOL_CACHEGRIND,
		.by_thread = o->separate_threads,
		.simulates = o->cache_sim || o->branch_sim ? &job->simulation : NULL,
		.take_records = take_records,
		.describe = describe,
		.dump = valgrind_write,
		.print = valgrind_print,
		.data = job};
}

static int let_run(struct valgrind_job *job)
{
	struct ap_error err;

	begin_trace(job);
	greet(job);
	ap_command_start(job->child.command);
	if (signals_open(&job->signals)) {
		command_error(&cmd_valgrind, "cannot open a signalfd: %s", strerror(errno));
		return cmd_valgrind.failure;
	}
	if (wait_for_child(job, &err)) {
		say(&err);
		return child_failure_status(&cmd_valgrind, &err);
	}
	call_trace_end(&job->trace);
	exact_say_lost(&cmd_valgrind, job->trace.lost, job->trace.bad, job->trace.unknown);
	/* Nothing is told of other children either. */
	if (job->opts.trace_children)
		uncounted_text(&cmd_valgrind, job->machine, stderr, "");
	(void)ap_sampler_disable(job->sampler);
	take_records(job);
	/* From here on a signal means us: symbols can take long, and a FIFO may have no reader. */
	(void)signals_take(&job->signals, 0);
	signals_release(&job->signals);
	write_all(job);
	return job->lost ? cmd_valgrind.failure : child_exit_status(&job->child);
}

static void release(struct valgrind_job *job)
{
	call_trace_release(&job->trace);
	code_view_free(job->trace.code);
	signals_release(&job->signals);
	ap_sampler_close(job->sampler);
	ap_specs_free(job->specs);
	ap_command_free(job->child.command);
	ap_machine_free(job->machine);
	if (job->log && job->log != stderr)
		fclose(job->log);
	free(job->command);
	valgrind_opts_release(&job->opts);
}

/* Ends as the child did, without a second core. */
static void end_like(int status)
{
	struct rlimit none = {0, 0};
	sigset_t set;

	if (!WIFSIGNALED(status))
		return;
	setrlimit(RLIMIT_CORE, &none);
	signal(WTERMSIG(status), SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, WTERMSIG(status));
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	raise(WTERMSIG(status));
}

static int run(int argc, char **argv)
{
	struct valgrind_job job = {.pid = 0};
	int parsed = valgrind_opts_parse(&job.opts, argc, argv), status, ended = 0;

	if (parsed < 0) {
		valgrind_opts_release(&job.opts);
		return command_leave_status(&cmd_valgrind, parsed);
	}
	job.signals.fd = -1;
	job.command = callgrind_command(job.opts.command);
	status = prepare(&job);
	if (!status && (valgrind_open_log(&job) || valgrind_check_output(&job)))
		status = -1;
	if (status < 0)
		status = cmd_valgrind.failure;
	else if (!status) {
		status = let_run(&job);
		ended = job.child.end.status;
	}
	release(&job);
	end_like(ended);
	return status;
}

const struct command cmd_valgrind = {
	.name = "valgrind",
	.summary = "callgrind and cachegrind: exact call graphs, for the tools that read theirs",
	.synopsis = "--tool=callgrind|cachegrind [options] COMMAND [ARGUMENTS]",
	.description =
		"Runs COMMAND as Valgrind's callgrind or cachegrind do, with their options, and writes "
		"their files, for callgrind_annotate, cg_annotate, KCachegrind and benchmark harnesses "
		"that count instructions. The program runs under anyperf's translator: several times "
		"faster, and with all instructions that the CPU has.\n\n"
		"For programs that start `valgrind` by that name there is one in anyperf's libexec "
		"directory, to be put in front of PATH.",
	.options = valgrind_option_table,
	.sections = valgrind_sections,
	.see_also = "anyperf-record(1), valgrind(1), callgrind_annotate(1), cg_annotate(1)",
	.takes_command = true,
	.failure = 125,
	.run = run,
};
