/*
 * The code of an arena: load everything from the state block, the slot, store everything. The state
 * block lies below 2 GB, so that absolute addresses reach it from anywhere without a register.
 */
#include "unit/dbt/arena.h"

#include "unit/dbt/guest.h"

#include <asm/prctl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define STATE_AT   0x30000000ul
#define CODE_SIZE  4096u
#define DATA_SIZE  1024u
#define SLOT       15u
#define COMPONENTS 0xe7u /* x87 SSE AVX, masks, upper halves, high sixteen */
#define ARITHMETIC 0x8d5u
#define NOP        0x90

struct machine {
	u64 gpr[16];
	u64 flags;
	u64 out[16];
	u64 out_flags;
	u8 vectors[4096] __attribute__((aligned(64)));
	u8 out_vectors[4096] __attribute__((aligned(64)));
};

struct arena {
	u8 *code, *slot, *data;
};

/* All that can be seen of one run. */
struct outcome {
	int sig;
	u64 gpr[16];
	u64 flags;
	u8 vectors[4096];
	u8 data[DATA_SIZE];
};

static struct machine *const machine = (struct machine *)STATE_AT;
static struct guest guest;
static sigjmp_buf native_fault;
static volatile sig_atomic_t native;
static ucontext_t native_context; /* of the fault */
static struct sigaction harness[NSIG];

static void on_signal(int sig, siginfo_t *info, void *context)
{
	if (native) {
		memcpy(&native_context, context, sizeof(native_context));
		siglongjmp(native_fault, sig);
	}
	harness[sig].sa_sigaction(sig, info, context);
}

static void *map(u64 at, u64 size)
{
	void *p = mmap((void *)at, size, PROT_READ | PROT_WRITE | PROT_EXEC,
		       MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED_NOREPLACE : 0), -1, 0);

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

	guest_init(0, DBT_MASK_ALL, 0);
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

static void put_code(struct arena *a)
{
	u8 *p = a->code;

	p = PUT(p, "\xb8\xe7\x00\x00\x00\x31\xd2\x0f\xae\x2c\x25"); /* xrstor */
	p = put_at(p, machine->vectors);
	p = PUT(p, "\xff\x34\x25"); /* push flags; popfq */
	p = put_at(p, &machine->flags);
	*p++ = 0x9d;
	for (unsigned int reg = 0; reg < 16; reg++)
		if (reg != DBT_RSP)
			p = put_mov(p, 0x8b, reg, &machine->gpr[reg]);
	a->slot = p;
	memset(p, NOP, SLOT);
	p += SLOT;
	for (unsigned int reg = 0; reg < 16; reg++)
		if (reg != DBT_RSP)
			p = put_mov(p, 0x89, reg, &machine->out[reg]);
	p = PUT(p, "\x9c\x8f\x04\x25"); /* pushfq; pop */
	p = put_at(p, &machine->out_flags);
	p = PUT(p, "\xfc\xb8\xe7\x00\x00\x00\x31\xd2\x0f\xae\x24\x25"); /* cld; xsave */
	p = put_at(p, machine->out_vectors);
	*p = 0xc3;
}

struct arena *arena_new(u64 at)
{
	struct arena *a = calloc(1, sizeof(*a));

	if (!a)
		exit(1);
	if (!guest.t)
		start();
	a->code = map(at, CODE_SIZE + 2 * 4096);
	/* What runs over the end of the data must not get to anything else. */
	mprotect(a->code + CODE_SIZE + 4096, 4096, PROT_NONE);
	a->data = a->code + CODE_SIZE;
	put_code(a);
	dbt_exec_add(guest.t, (u64)a->code, CODE_SIZE, 0);
	return a;
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

/* Every other vector register holds numbers that are small in 32 and in 64 bits: the indexes of gathers. */
static void tame_indexes(void)
{
	static const struct {
		u16 at, each, n;
	} parts[] = {{160, 16, 16}, {576, 16, 16}, {1152, 32, 16}, {1664, 64, 16}};

	for (size_t p = 0; p < ARRAY_SIZE(parts); p++)
		for (u32 reg = 0; reg < parts[p].n; reg += 2)
			for (u32 i = 0; i < parts[p].each; i++)
				machine->vectors[parts[p].at + reg * parts[p].each + i] &=
					i % 8 ? 0 : 0x3c;
}

static void set_state(struct arena *a, u64 seed, bool gs)
{
	u64 s = seed | 1, legacy;

	memset(machine, 0, sizeof(*machine));
	for (int i = 0; i < 16; i++)
		machine->gpr[i] = next(&s);
	if (gs) {
		machine->gpr[DBT_RCX] = machine->gpr[DBT_R9] = 64;
		machine->gpr[DBT_RDX] = machine->gpr[DBT_R10] = 16;
		/* Strings: their destination has no segment; some run into the end of the page. */
		machine->gpr[DBT_RSI] = seed & 0x300 ? 208 : 4000;
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
	for (size_t i = 0; i < DATA_SIZE; i += 8) {
		legacy = next(&s);
		memcpy(a->data + i, &legacy, 8);
	}
}

static void record(struct outcome *o, const struct arena *a, int sig)
{
	o->sig = sig;
	memcpy(o->gpr, machine->out, sizeof(o->gpr));
	o->flags = machine->out_flags;
	memcpy(o->vectors, machine->out_vectors, sizeof(o->vectors));
	/* Where the last x87 instruction was, and its operand: those of the copy. */
	memset(o->vectors + 6, 0, 18);
	memcpy(o->data, a->data, DATA_SIZE);
}

static void run_native(struct outcome *o, struct arena *a, bool gs)
{
	int sig;

	if (gs)
		syscall(SYS_arch_prctl, ARCH_SET_GS, a->data);
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
				 "	fninit\n"
				 "	ldmxcsr %1\n"
				 :
				 : "a"(a->code), "m"(*(const u32 *)(machine->vectors + 24))
				 : "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12",
				   "r13", "r14", "r15", "memory", "cc");
	native = 0;
	syscall(SYS_arch_prctl, ARCH_SET_GS, guest.t);
	record(o, a, sig);
}

static void run_guest(struct outcome *o, struct arena *a)
{
	u64 *sp = (u64 *)guest.stack - 1;
	int sig;

	*sp = GUEST_DONE;
	guest.t->guest_gs = (u64)a->data;
	guest.t->regs.gpr[DBT_RSP] = (u64)sp;
	guest.t->regs.rip = (u64)a->code;
	guest.t->regs.rflags = 0x202;
	sig = guest_run(&guest);
	__asm__ volatile("fninit");
	record(o, a, sig);
}

/* A fault leaves the guest as the CPU leaves it, but for flags that the instruction was to replace. */
static const char *check_fault(const struct arena *a, u16 replaced)
{
	static const u8 order[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
				     REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
				     REG_R12, REG_R13, REG_R14, REG_R15};
	const greg_t *gregs = native_context.uc_mcontext.gregs;

	if (guest.fault_pc != (u64)a->slot)
		return "the fault is said to be elsewhere";
	for (int i = 0; i < 16; i++)
		if (i != DBT_RSP && guest.t->regs.gpr[i] != (u64)gregs[order[i]])
			return "a register after a fault";
	if ((guest.t->regs.rflags ^ (u64)gregs[REG_EFL]) & ARITHMETIC & ~(u64)replaced)
		return "the flags after a fault";
	return NULL;
}

const char *arena_compare(struct arena *a, unsigned int len, u16 replaced, u64 seed, bool gs,
			  int *sig)
{
	static struct outcome ours, theirs;
	const char *what = NULL;

	memset(a->slot + len, NOP, SLOT - len);
	set_state(a, seed, gs);
	run_native(&theirs, a, gs);
	dbt_invalidate(guest.t, (u64)a->slot, SLOT);
	set_state(a, seed, gs);
	run_guest(&ours, a);
	*sig = theirs.sig;
	if (ours.sig != theirs.sig)
		what = "the signal";
	else if (theirs.sig)
		what = check_fault(a, replaced);
	else if (memcmp(ours.gpr, theirs.gpr, sizeof(ours.gpr)))
		what = "the registers";
	else if ((ours.flags ^ theirs.flags) & ~0x10000ull)
		what = "the flags";
	else if (memcmp(ours.vectors, theirs.vectors, sizeof(ours.vectors)))
		what = "the vector state";
	if (!what && memcmp(ours.data, theirs.data, DATA_SIZE))
		what = "memory";
	return what;
}
