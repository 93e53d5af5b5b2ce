#include "unit/dbt/guest.h"

#include "unit/dbt/held_image.h"

#include <asm/prctl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

__thread struct guest *guest_self;

#define STACK (1u << 20)
#define TF    0x100

static int protect(u64 start, u64 len, bool on)
{
	return mprotect((void *)start, len, on ? PROT_READ : PROT_READ | PROT_WRITE);
}

static bool kick(struct dbt_thread *t)
{
	syscall(SYS_tgkill, getpid(), t->id, SIGUSR2);
	return true;
}

static void deadline(struct dbt_thread *t)
{
	(void)t;
	guest_self->on_deadline(guest_self);
}

static void place(struct dbt_thread *t)
{
	(void)t;
	guest_self->on_place(guest_self);
}

static void trace(struct dbt_thread *t, const u32 *words, u32 n)
{
	struct guest *g = guest_self;

	for (u32 i = 0; i < n && g->nr_traced < g->max_traced; i++)
		g->trace[g->nr_traced++] = words[i];
	g->pieces++;
	if (g->on_trace)
		g->on_trace(g, words, n, (const u64 *)t->slots_start,
			    (t->slots_at - t->slots_start) / 8);
}

static u64 slots_map(struct dbt_thread *t)
{
	(void)t;
	return guest_self->slots_at;
}

static u64 trace_map(struct dbt_thread *t)
{
	(void)t;
	return guest_self->trace_at;
}

static const struct dbt_ops ops = {.protect = protect,
				   .kick = kick,
				   .deadline = deadline,
				   .place = place,
				   .trace = trace,
				   .trace_map = trace_map,
				   .slots_map = slots_map};

/* While SIGTRAPs of a requested single step arrive; then as any signal. */
static void on_trap(struct guest *g, ucontext_t *uc)
{
	greg_t *flags = &uc->uc_mcontext.gregs[REG_EFL];

	if (g->step && !g->t->stepping) {
		/*
		 * C code is not stepped: on the way out TF goes once dbt_exit() has saved it, in
		 * its third instruction; on the way in there are two instructions before the cache.
		 */
		g->outside = dbt_in_cache((u64)uc->uc_mcontext.gregs[REG_RIP]) ? 0 : g->outside + 1;
		if (g->outside > 3) {
			g->outside = 0;
			*flags &= ~(greg_t)TF;
			return;
		}
		if (g->on_step)
			g->on_step((const u64 *)uc->uc_mcontext.gregs);
		g->stepped++;
		if (g->stepped < g->step)
			return;
		*flags &= ~(greg_t)TF;
	}
	if (dbt_recover(g->t, &uc->uc_flags) == DBT_AT_BOUNDARY)
		g->t->regs.rflags &= ~(u64)TF;
}

static void on_signal(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	struct guest *g = guest_self;
	u64 where;

	if (sig == SIGTRAP && g->on_native) {
		g->on_native((u64 *)uc->uc_mcontext.gregs);
		return;
	}
	if (sig == SIGTRAP && (g->step || g->t->stepping)) {
		on_trap(g, uc);
		return;
	}
	if (sig == SIGUSR2 || sig == SIGALRM) {
		if (dbt_recover(g->t, &uc->uc_flags) == DBT_IN_RUNTIME)
			dbt_interrupt(g->t);
		return;
	}
	switch (dbt_fault(g->t, &uc->uc_flags, (u64)info->si_addr,
			  sig == SIGSEGV && uc->uc_mcontext.gregs[REG_ERR] & 2, &where)) {
	case DBT_RESUME: return;
	case DBT_AT_BOUNDARY:
		g->fault_pc = g->t->regs.rip;
		g->fault_addr = where;
		g->fault_sig = sig;
		return;
	default:
		fprintf(stderr, "signal %d at %#llx, address %p, is no guest's\n", sig,
			(unsigned long long)uc->uc_mcontext.gregs[REG_RIP], info->si_addr);
		_exit(1);
	}
}

void guest_init(u32 flags, u32 mask, u64 cache_size, u64 cache_at)
{
	static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGUSR2, SIGALRM};
	struct dbt_config config = {.ops = &ops,
				    .flags = flags,
				    .mask = mask,
				    .cache_size = cache_size,
				    .cache_hint = cache_at};
	struct sigaction sa = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK};

	if (dbt_init(&config)) {
		fprintf(stderr, "no memory for the code cache\n");
		exit(1);
	}
	sigfillset(&sa.sa_mask);
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		sigaction(signals[i], &sa, NULL);
}

/* The test program's own code. */
static struct {
	struct dbt_image_range at[64];
	u32 n;
} own;

static void add_own_code(struct dbt_thread *t)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512], perm[8];
	unsigned long start, end;

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx %7s", &start, &end, perm) == 3 && perm[2] == 'x' &&
		    perm[1] != 'w' && !strstr(line, "vsyscall")) {
			dbt_exec_add(t, start, end - start, 0);
			if (own.n < ARRAY_SIZE(own.at))
				own.at[own.n++] = (struct dbt_image_range){start, end};
		}
	}
	if (f)
		fclose(f);
}

static void *map(u64 size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	return p;
}

static u32 nr_threads;

static bool is_own(const void *fn)
{
	for (u32 i = 0; i < own.n; i++)
		if ((u64)fn >= own.at[i].start && (u64)fn < own.at[i].end)
			return true;
	return false;
}

/* All that was translated of the test program's own code goes through an image. */
static void through_image(struct guest *g)
{
	static struct held_image image;
	struct dbt_stats stats;

	dbt_stats_read(&stats);
	/* Others would be in the code that is replaced. */
	if (!stats.blocks || __atomic_load_n(&nr_threads, __ATOMIC_SEQ_CST) > 1)
		return;
	if (held_image_save(&image, g->t, 1, own.at, own.n) && !held_image_load(&image, g->t, 1)) {
		fprintf(stderr, "what was saved as an image is none\n");
		exit(1);
	}
}

void guest_imaged(struct guest *g, const void *fn)
{
	if (is_own(fn) && getenv("IMAGED"))
		through_image(g);
}

u64 guest_mask(u64 mask)
{
	if (getenv("IMAGED"))
		mask = (mask & ~(u64)DBT_MASK_PATHS) | DBT_MASK_WINDOWS;
	return mask;
}

void guest_thread_init(struct guest *g)
{
	static int known;
	stack_t alt = {.ss_sp = map(STACK), .ss_size = STACK};

	memset(g, 0, sizeof(*g));
	g->t = (struct dbt_thread *)((char *)map(DBT_METER_BELOW + DBT_PATHS_AT + DBT_PATHS_SIZE) +
				     DBT_METER_BELOW);
	g->trace_at = (u64)map(PATH_TRACE_SIZE + 4096);
	mprotect((void *)(g->trace_at + PATH_TRACE_SIZE), 4096, PROT_NONE);
	g->slots_at = (u64)map(PATH_SLOTS_SIZE);
	g->stack = (char *)map(STACK) + STACK - 4096;
	guest_self = g;
	sigaltstack(&alt, NULL);
	syscall(SYS_arch_prctl, ARCH_SET_GS, g->t);
	__atomic_add_fetch(&nr_threads, 1, __ATOMIC_SEQ_CST);
	dbt_thread_add(g->t, (u32)syscall(SYS_gettid));
	if (!__atomic_exchange_n(&known, 1, __ATOMIC_SEQ_CST))
		add_own_code(g->t);
}

void guest_thread_exit(struct guest *g)
{
	dbt_thread_remove(g->t, g->t->id);
	__atomic_sub_fetch(&nr_threads, 1, __ATOMIC_SEQ_CST);
}

static void do_syscall(u64 *g)
{
	register u64 r10 __asm__("r10") = g[DBT_R10];
	register u64 r8 __asm__("r8") = g[DBT_R8];
	register u64 r9 __asm__("r9") = g[DBT_R9];
	u64 ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "0"(g[DBT_RAX]), "D"(g[DBT_RDI]), "S"(g[DBT_RSI]), "d"(g[DBT_RDX]),
			   "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	g[DBT_RAX] = ret;
}

static void do_cpuid(struct dbt_thread *t)
{
	u64 *g = t->regs.gpr;
	u32 a = (u32)g[DBT_RAX], b = 0, c = (u32)g[DBT_RCX], d = 0;

	__asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
	g[DBT_RAX] = a;
	g[DBT_RBX] = b;
	g[DBT_RCX] = c;
	g[DBT_RDX] = d;
	dbt_retire(t);
}

int guest_run(struct guest *g)
{
	g->fault_sig = 0;
	g->stepped = 0;
	if (g->step)
		g->t->regs.rflags |= TF;
	for (;;) {
		enum dbt_stop stop = dbt_run(g->t);

		switch (stop) {
		case DBT_SYSCALL: do_syscall(g->t->regs.gpr); break;
		case DBT_CPUID: do_cpuid(g->t); break;
		case DBT_TRACED: break;
		case DBT_REFUSED:
		case DBT_STACK_FAULT:
			g->fault_pc = g->t->regs.rip;
			g->fault_addr = 0;
			g->fault_sig = stop == DBT_REFUSED ? SIGSEGV : SIGBUS;
			return g->fault_sig;
		case DBT_INTERRUPTED:
			g->interrupts++;
			if (g->stepped && g->stepped >= g->step)
				g->t->regs.rflags &= ~(u64)TF;
			if (g->fault_sig)
				return g->fault_sig;
			break;
		case DBT_NO_EXEC:
		case DBT_PAGE_FAULT:
			if (g->t->regs.rip == GUEST_DONE)
				return 0;
			g->fault_pc = g->t->regs.rip;
			g->fault_addr = g->t->stop_addr;
			g->fault_sig = SIGSEGV;
			return SIGSEGV;
		default:
			fprintf(stderr, "stop %d at %#llx\n", (int)stop,
				(unsigned long long)g->t->regs.rip);
			exit(1);
		}
	}
}

u64 guest_call(struct guest *g, const void *fn, u64 a, u64 b, u64 c)
{
	u64 *sp = (u64 *)g->stack - 1;

	guest_imaged(g, fn);
	*sp = GUEST_DONE;
	g->t->regs.gpr[DBT_RSP] = (u64)sp;
	g->t->regs.gpr[DBT_RDI] = a;
	g->t->regs.gpr[DBT_RSI] = b;
	g->t->regs.gpr[DBT_RDX] = c;
	g->t->regs.rip = (u64)fn;
	g->t->regs.rflags = 0x202;
	if (guest_run(g))
		return ~0ull;
	return g->t->regs.gpr[DBT_RAX];
}

struct guest *guest_main(void)
{
	static struct guest g;
	static bool ready;

	if (!ready) {
		guest_init(DBT_CHECKS | (getenv("BASELINE") ? DBT_BASELINE : 0) |
				   (getenv("WHOLE") ? DBT_WHOLE_JUMPS : 0),
			   DBT_MASK_ALL, 2 << 20, 0);
		guest_thread_init(&g);
		ready = true;
	}
	return &g;
}

u64 guest_count(struct guest *g, enum meter_quantity q)
{
	return meter_sum(dbt_meter(g->t), q);
}

u8 *guest_code(u64 size, u32 exec_flags)
{
	u8 *p = map(size);

	dbt_exec_add(guest_self->t, (u64)p, size, exec_flags);
	return p;
}
