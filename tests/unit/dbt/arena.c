/*
 * The code of an arena: load everything from the state block, rsp too, the slot, store everything.
 * The state block lies below 2 GB, so that absolute addresses reach it from anywhere without a
 * register.
 *
 *   0      load, to the slot        SLOT_AT        the slot, landings around it    STORE_AT   store
 *   4096   data, ARENA_DATA_SIZE    then a page that can only be read, then one that cannot
 */
/* Under _GNU_SOURCE <signal.h> names registers as decode.h does, with other numbers. */
#undef _GNU_SOURCE
#define _DEFAULT_SOURCE
#define _XOPEN_SOURCE 700

#include "unit/dbt/arena.h"

#include "dbt/arch/x86_64/decode.h"
#include "unit/dbt/guest.h"

#include <asm/prctl.h>
#include <cpuid.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define STATE_AT 0x30000000ul
/*
 * The cache has an address that ends with 32 zero bits, which an image of 32 bits cannot tell from
 * no address.
 */
#define CACHE_AT  (0x300000000000ul - 0x100000u)
#define NEAR_AT   (CACHE_AT + 0x20000000ul)
#define CODE_SIZE 4096u
#define SLOT_AT   1024u
#define STORE_AT  2048u
#define NUMBERS   1024u /* random, at the beginning of the data */
#define BEFORE    256   /* what small negative offsets may reach */
#define LANDINGS  5
/* In a signal's frame. */
#define GREG_RSP   15
#define GREG_RIP   16
#define GREG_FLAGS 17
#define COMPONENTS 0xe7u /* x87 SSE AVX, masks, upper halves, high sixteen */
#define ARITHMETIC 0x8d5u

struct machine {
	u64 sp; /* of who called the code */
	u64 gpr[16];
	u64 flags;
	u64 out[16];
	u64 out_flags;
	u32 landed; /* where it ended */
	u8 vectors[4096] __attribute__((aligned(64)));
	u8 out_vectors[4096] __attribute__((aligned(64)));
};

struct arena {
	u8 *code, *slot, *data;
};

/* All that can be seen of one run. */
struct outcome {
	int sig;
	u32 landed;
	u64 gs;
	u64 gpr[16];
	u64 flags;
	u8 vectors[4096];
	u8 data[ARENA_DATA_SIZE];
};

static struct machine *const machine = (struct machine *)STATE_AT;
static struct guest guest;
static sigjmp_buf native_fault;
static volatile sig_atomic_t native;
static ucontext_t native_context; /* of the fault */
static u64 native_address;        /* likewise */
static struct sigaction harness[NSIG];

static void on_signal(int sig, siginfo_t *info, void *context)
{
	if (native) {
		memcpy(&native_context, context, sizeof(native_context));
		native_address = (u64)info->si_addr;
		siglongjmp(native_fault, sig);
	}
	harness[sig].sa_sigaction(sig, info, context);
}

/* NULL where only the privileged may map something. */
static void *map(u64 at, u64 size)
{
	void *p = mmap((void *)(at ? at : NEAR_AT), size, PROT_READ | PROT_WRITE | PROT_EXEC,
		       MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED_NOREPLACE : 0), -1, 0);

	if (p == MAP_FAILED && errno == EPERM)
		return NULL;
	if (p == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	return p;
}

static void start(void)
{
	static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP};
	struct sigaction sa = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK};

	guest_init(0, DBT_MASK_ALL, 0, CACHE_AT);
	guest_thread_init(&guest);
	sigfillset(&sa.sa_mask);
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		sigaction(signals[i], &sa, &harness[signals[i]]);
	map(STATE_AT, ALIGN_UP(sizeof(*machine), 4096));
}

static u8 *put(u8 *p, const void *bytes, size_t n)
{
	memcpy(p, bytes, n);
	return p + n;
}

#define PUT(p, bytes) put(p, bytes, sizeof(bytes) - 1)

/* The address of a field as an absolute 32-bit displacement. */
static u8 *put_at(u8 *p, const void *field)
{
	u32 at = (u32)(uintptr_t)field;

	return put(p, &at, 4);
}

/* mov between a register and a field: opcode 8b loads, 89 stores. */
static u8 *put_mov(u8 *p, u8 opcode, unsigned int reg, const void *field)
{
	*p++ = reg & 8 ? 0x4c : 0x48;
	*p++ = opcode;
	*p++ = (u8)(0x04 | (reg & 7) << 3);
	*p++ = 0x25;
	return put_at(p, field);
}

static u8 *put_jmp(u8 *p, const u8 *to)
{
	s32 rel = (s32)(to - (p + 5));

	*p++ = 0xe9;
	return put(p, &rel, 4);
}

static const s32 landing_at[LANDINGS] = {ARENA_LANDING_0, ARENA_LANDING_1, ARENA_LANDING_2,
					 ARENA_LANDING_3, ARENA_LANDING_4};

static u64 landing(const struct arena *a, u64 k)
{
	return (u64)(a->slot + landing_at[k % LANDINGS]);
}

static void put_landing(struct arena *a, u32 k)
{
	u8 *p = (u8 *)landing(a, k);

	p = PUT(p, "\xc7\x04\x25"); /* mov dword landed, k */
	p = put_at(p, &machine->landed);
	p = put(p, &k, 4);
	if (k && k % 2 == 0)
		p = PUT(p, "\x48\x39\xd0"); /* cmp rax, rdx */
	put_jmp(p, a->code + STORE_AT);
}

static void put_code(struct arena *a)
{
	u8 *p = a->code;

	p = PUT(p, "\x48\x89\x24\x25"); /* mov sp, rsp */
	p = put_at(p, &machine->sp);
	p = PUT(p, "\xb8\xe7\x00\x00\x00\x31\xd2\x0f\xae\x2c\x25"); /* xrstor */
	p = put_at(p, machine->vectors);
	p = PUT(p, "\xff\x34\x25"); /* push flags; popfq */
	p = put_at(p, &machine->flags);
	*p++ = 0x9d;
	for (unsigned int reg = 0; reg < 16; reg++)
		p = put_mov(p, 0x8b, reg, &machine->gpr[reg]);
	a->slot = a->code + SLOT_AT;
	put_jmp(p, a->slot);
	for (u32 k = 0; k < LANDINGS; k++)
		put_landing(a, k);
	p = a->code + STORE_AT;
	for (unsigned int reg = 0; reg < 16; reg++)
		p = put_mov(p, 0x89, reg, &machine->out[reg]);
	p = put_mov(p, 0x8b, DBT_RSP, &machine->sp);
	p = PUT(p, "\x9c\x8f\x04\x25"); /* pushfq; pop */
	p = put_at(p, &machine->out_flags);
	p = PUT(p, "\xfc\xb8\xe7\x00\x00\x00\x31\xd2\x0f\xae\x24\x25"); /* cld; xsave */
	p = put_at(p, machine->out_vectors);
	*p = 0xc3;
}

bool arena_is_a_cpu(void)
{
	const u64 upper = 0xffff800012345678;
	pid_t pid = fork();
	u64 got = 0;
	int status;

	if (!pid) {
		/* Without the instruction it ends by a signal. */
		__asm__ volatile("wrgsbase %0" : : "r"(upper));
		syscall(SYS_arch_prctl, ARCH_GET_GS, &got);
		_exit(got != upper);
	}
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || !WEXITSTATUS(status))
		return true;
	fprintf(stderr, "skipped: this machine is not what its CPU is\n");
	return false;
}

struct arena *arena_new(u64 at, u32 exec_flags)
{
	struct arena *a = calloc(1, sizeof(*a));
	u8 *readable;

	if (!a)
		exit(1);
	if (!guest.t)
		start();
	a->code = map(at, CODE_SIZE + ARENA_DATA_SIZE + 2 * 4096);
	if (!a->code) {
		free(a);
		return NULL;
	}
	a->data = a->code + CODE_SIZE;
	readable = a->data + ARENA_DATA_SIZE;
	put_code(a);
	for (u64 i = 0; i < 4096 / 8; i++)
		((u64 *)readable)[i] = landing(a, i);
	/* What runs over the end of the data must not get to anything else. */
	mprotect(a->data, ARENA_DATA_SIZE, PROT_READ | PROT_WRITE);
	mprotect(readable, 4096, PROT_READ);
	mprotect(readable + 4096, 4096, PROT_NONE);
	dbt_exec_add(guest.t, (u64)a->code, CODE_SIZE, exec_flags);
	return a;
}

void arena_mask(u32 mask)
{
	static struct path_space *space;

	if (mask & DBT_MASK_TRACE && !space) {
		space = mmap(NULL, sizeof(*space), PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (space == MAP_FAILED)
			abort();
		dbt_paths(guest.t, space);
	}
	dbt_set_mask(guest.t, mask);
}

u8 *arena_slot(struct arena *a)
{
	return a->slot;
}

u64 arena_data(const struct arena *a)
{
	return (u64)a->data;
}

static u64 next(u64 *s)
{
	*s ^= *s >> 12;
	*s ^= *s << 25;
	*s ^= *s >> 27;
	return *s * 0x2545f4914f6cdd1d;
}

static void tame(u32 at, u32 each)
{
	for (u32 reg = 0; reg < 16; reg += 2)
		for (u32 i = 0; i < each; i++)
			machine->vectors[at + reg * each + i] &= i % 8 ? 0 : 0x3c;
}

/*
 * Every other vector register holds numbers that are small in 32 and in 64 bits: the indexes of
 * gathers. Where a component lies in the standard format the CPU says; Intel's and AMD's differ
 * from the masks on.
 */
static void tame_indexes(void)
{
	/* The components that hold parts of vector registers; bytes of each register. */
	static const struct {
		u32 component, each;
	} parts[] = {{2, 16}, {6, 32}, {7, 64}};
	u32 size, at, c, d;

	tame(160, 16);
	for (size_t p = 0; p < ARRAY_SIZE(parts); p++)
		if (__get_cpuid_count(0xd, parts[p].component, &size, &at, &c, &d) && size)
			tame(at, parts[p].each);
}

/* Mostly in the stack, and every now and then where pushes fail, or pops, or both. */
static u64 stack_pointer(const struct arena *a, u64 r)
{
	u64 end = (u64)a->data + ARENA_DATA_SIZE, in = (u64)a->data + ARENA_STACK + 0x800;

	switch (r & 31) {
	case 0: return end;
	case 1: return end + 64;
	case 2: return end + 4096;
	case 3: return end + 4096 + 64;
	case 4: return 0x100;
	case 5: return in - (r >> 8 & 63); /* not aligned */
	case 6: return r | 1ull << 63;     /* mostly not canonical */
	default: return in - 8 * (r >> 8 & 15);
	}
}

static void set_data(struct arena *a, u64 *s)
{
	u64 *words = (u64 *)a->data;

	memset(a->data - BEFORE, 0, BEFORE + ARENA_DATA_SIZE);
	for (u64 i = 0; i < NUMBERS / 8; i++)
		words[i] = next(s);
	for (u64 i = 0; i < LANDINGS; i++)
		words[ARENA_TABLE / 8 + i] = landing(a, i);
	for (u64 i = ARENA_STACK / 8; i < ARENA_DATA_SIZE / 8; i++)
		words[i] = landing(a, i);
}

static void set_state(struct arena *a, u64 seed, bool gs)
{
	u64 s = seed | 1, legacy;

	memset(machine, 0, sizeof(*machine));
	for (int i = 0; i < 16; i++)
		machine->gpr[i] = next(&s);
	machine->gpr[DBT_RSP] = stack_pointer(a, machine->gpr[DBT_RSP] >> 8);
	machine->gpr[DBT_RBP] = (u64)((s64)machine->gpr[DBT_RBP] % BEFORE);
	machine->gpr[DBT_R13] = (u64)((s64)machine->gpr[DBT_R13] % BEFORE);
	if (gs) {
		machine->gpr[DBT_RCX] = machine->gpr[DBT_R9] = 64;
		machine->gpr[DBT_RDX] = machine->gpr[DBT_R10] = 16;
		/*
		 * Strings: their destination has no segment; some run into the end of what can be
		 * read.
		 */
		machine->gpr[DBT_RSI] = seed & 0x300 ? 208 : ARENA_DATA_SIZE + 4096 - 96;
		machine->gpr[DBT_RDI] = seed & 0x1000 ? 304 : (u64)a->data + 512;
		machine->gpr[DBT_RBX] = 100;
		machine->gpr[DBT_R11] = 208;
	}
	machine->flags = (next(&s) & ARITHMETIC) | 0x202;
	for (size_t i = 0; i < 2688; i += 8) {
		legacy = next(&s);
		memcpy(machine->vectors + i, &legacy, 8);
	}
	if (gs)
		tame_indexes();
	/* x87 control and tags, MXCSR, the header: all components present, standard format. */
	memset(machine->vectors, 0, 32);
	machine->vectors[0] = 0x7f;
	machine->vectors[1] = 0x03;
	machine->vectors[24] = 0x80;
	machine->vectors[25] = 0x1f;
	memset(machine->vectors + 512, 0, 64);
	machine->vectors[512] = COMPONENTS;
	set_data(a, &s);
}

/* What the code may have left in the vector unit is not for our own. */
static void reset_vectors(void)
{
	static const u32 mxcsr = 0x1f80;

	__asm__ volatile("fninit\n\tldmxcsr %0" : : "m"(mxcsr));
}

static void record(struct outcome *o, const struct arena *a, int sig)
{
	o->sig = sig;
	o->landed = machine->landed;
	memcpy(o->gpr, machine->out, sizeof(o->gpr));
	o->flags = machine->out_flags;
	memcpy(o->vectors, machine->out_vectors, sizeof(o->vectors));
	/* Where the last x87 instruction was, and its operand: those of the copy. */
	memset(o->vectors + 6, 0, 18);
	memcpy(o->data, a->data, ARENA_DATA_SIZE);
}

static void run_native(struct outcome *o, struct arena *a, bool gs)
{
	int sig;

	syscall(SYS_arch_prctl, ARCH_SET_GS, gs ? a->data : NULL);
	native = 1;
	sig = sigsetjmp(native_fault, 1);
	if (!sig)
		__asm__ volatile("	pushq %%rbx\n"
				 "	pushq %%rbp\n"
				 "	subq $128, %%rsp\n"
				 "	call *%0\n"
				 "	addq $128, %%rsp\n"
				 "	popq %%rbp\n"
				 "	popq %%rbx\n"
				 :
				 : "a"(a->code)
				 : "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12",
				   "r13", "r14", "r15", "memory", "cc");
	native = 0;
	reset_vectors();
	syscall(SYS_arch_prctl, ARCH_GET_GS, &o->gs);
	syscall(SYS_arch_prctl, ARCH_SET_GS, guest.t);
	record(o, a, sig);
}

static void run_guest(struct outcome *o, struct arena *a, bool gs)
{
	u64 *sp = (u64 *)guest.stack - 1;
	int sig;

	*sp = GUEST_DONE;
	guest.t->arch.gs_base = gs ? (u64)a->data : 0;
	guest.t->arch.gs_selector = 0;
	guest.t->regs.gpr[DBT_RSP] = (u64)sp;
	guest.t->regs.rip = (u64)a->code;
	guest.t->regs.rflags = 0x202;
	sig = guest_run(&guest);
	reset_vectors();
	o->gs = guest.t->arch.gs_base;
	record(o, a, sig);
}

/* Flags that are replaced before anything reads them, from the native fault on. */
static u16 flags_dead(const struct arena *a)
{
	u64 at = (u64)native_context.uc_mcontext.gregs[GREG_RIP] - (u64)a->code;
	u16 dead = 0, live = 0;
	struct insn insn;

	for (int i = 0; i < 4 && at < CODE_SIZE - INSN_MAX; i++) {
		if (insn_decode(&insn, a->code + at, INSN_MAX) < 0)
			break;
		live |= insn.fl_read & (u16)~dead;
		dead |= (insn.fl_written | insn.fl_undef) & (u16)~live;
		if (insn.cf == CF_NONE)
			at += insn.len;
		else if (insn.cf == CF_JMP || insn.cf == CF_CALL)
			at = insn_target(&insn, at);
		else
			break;
	}
	return dead;
}

static bool canonical(u64 pc)
{
	return (u64)((s64)(pc << 16) >> 16) == pc;
}

/*
 * A gather of which one element is not mapped and another is not canonical: with a base in GS AMD's
 * CPUs take the second for the first to fault, without one they do not.
 */
static bool either_element(const struct arena *a)
{
	u64 at = (u64)native_context.uc_mcontext.gregs[GREG_RIP] - (u64)a->code;
	struct insn insn;

	return at < CODE_SIZE - INSN_MAX && insn_decode(&insn, a->code + at, INSN_MAX) > 0 &&
	       insn.attr & INSN_VSIB && !native_address != !guest.fault_addr;
}

/*
 * A fault leaves the guest as the CPU leaves it, but for flags that are dead. If a branch goes to
 * what is not canonical, which no other instruction finds in rip, we fault at its target.
 */
static const char *check_fault(const struct arena *a)
{
	/* rax rcx rdx rbx rsp rbp rsi rdi r8 to r15 in a signal's frame */
	static const u8 order[16] = {13, 14, 12, 11, 15, 10, 9, 8, 0, 1, 2, 3, 4, 5, 6, 7};
	const greg_t *gregs = native_context.uc_mcontext.gregs;

	if (!canonical(guest.fault_pc))
		return NULL;
	if (guest.fault_pc != (u64)gregs[GREG_RIP])
		return "the fault is said to be elsewhere";
	if (guest.fault_addr != native_address && !either_element(a))
		return "the address of a fault";
	for (int i = 0; i < 16; i++)
		if (guest.t->regs.gpr[i] != (u64)gregs[order[i]])
			return "a register after a fault";
	if ((guest.t->regs.rflags ^ (u64)gregs[GREG_FLAGS]) & ARITHMETIC & ~(u64)flags_dead(a))
		return "the flags after a fault";
	return NULL;
}

/*
 * The return address of a call to what is not canonical: ours has been written when we fault at the
 * target. Whether the CPU writes it before it faults at the call is its own affair: Intel's do,
 * AMD's do not.
 */
static void forget_return_address(const struct arena *a, struct outcome *ours,
				  const struct outcome *theirs)
{
	u64 sp = guest.t->regs.gpr[DBT_RSP], at = sp - (u64)a->data;
	u64 native_sp = (u64)native_context.uc_mcontext.gregs[GREG_RSP];

	if (!canonical(guest.fault_pc) && sp + 8 == native_sp && at <= ARENA_DATA_SIZE - 8)
		memcpy(ours->data + at, theirs->data + at, 8);
}

static const char *difference(const struct arena *a, struct outcome *ours,
			      const struct outcome *theirs)
{
	const char *what = NULL;

	if (ours->sig != theirs->sig)
		return "the signal";
	if (theirs->sig) {
		what = check_fault(a);
		forget_return_address(a, ours, theirs);
	} else if (ours->landed != theirs->landed) {
		what = "where it went";
	} else if (memcmp(ours->gpr, theirs->gpr, sizeof(ours->gpr))) {
		what = "the registers";
	} else if ((ours->flags ^ theirs->flags) & ~0x10000ull) {
		what = "the flags";
	} else if (memcmp(ours->vectors, theirs->vectors, sizeof(ours->vectors))) {
		what = "the vector state";
	} else if (ours->gs != theirs->gs) {
		what = "the GS base";
	}
	if (!what && memcmp(ours->data, theirs->data, ARENA_DATA_SIZE))
		what = "memory";
	return what;
}

const char *arena_compare(struct arena *a, unsigned int len, u64 seed, bool gs, u32 times, int *sig)
{
	static struct outcome ours, theirs;
	const char *what = NULL;

	if (len < ARENA_SLOT_SIZE)
		put_jmp(a->slot + len, (u8 *)landing(a, 0));
	set_state(a, seed, gs);
	run_native(&theirs, a, gs);
	*sig = theirs.sig;
	dbt_invalidate(guest.t, (u64)a->code, CODE_SIZE);
	for (u32 i = 0; i < times && !what; i++) {
		set_state(a, seed, gs);
		run_guest(&ours, a, gs);
		what = difference(a, &ours, &theirs);
	}
	return what;
}
