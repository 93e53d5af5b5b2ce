/* libdw by dlopen; its few declarations are written here and in dwfl.h. */
#include "sym/unwind.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#include "sym/dwfl.h"

typedef struct Dwfl_Thread Dwfl_Thread;
typedef struct Dwfl_Frame Dwfl_Frame;

struct dwfl_thread_callbacks {
	pid_t (*next_thread)(Dwfl *dwfl, void *arg, void **thread);
	bool (*get_thread)(Dwfl *dwfl, pid_t tid, void *arg, void **thread);
	bool (*memory_read)(Dwfl *dwfl, u64 addr, u64 *result, void *arg);
	bool (*set_initial_registers)(Dwfl_Thread *thread, void *arg);
	void (*detach)(Dwfl *dwfl, void *arg);
	void (*thread_detach)(Dwfl_Thread *thread, void *arg);
};

enum { FRAME_OK = 0, FRAME_STOP = 1 };

struct dwfl_functions {
	Dwfl *(*begin)(const struct dwfl_callbacks *callbacks);
	void (*end)(Dwfl *dwfl);
	Dwfl_Module *(*report_elf)(Dwfl *dwfl, const char *name, const char *file, int fd, u64 base,
				   bool add_vaddr);
	Dwfl_Module *(*addrmodule)(Dwfl *dwfl, u64 addr);
	bool (*attach)(Dwfl *dwfl, void *elf, pid_t pid,
		       const struct dwfl_thread_callbacks *callbacks, void *arg);
	int (*frames)(Dwfl *dwfl, pid_t tid, int (*callback)(Dwfl_Frame *frame, void *arg),
		      void *arg);
	bool (*registers)(Dwfl_Thread *thread, int first, unsigned int n, const u64 *values);
	void (*set_pc)(Dwfl_Thread *thread, u64 pc);
	bool (*frame_pc)(Dwfl_Frame *frame, u64 *pc, bool *is_activation);
};

/* The files of one process, as libdw knows them. */
struct unwind_space {
	u32 pid;
	u64 generation; /* of the process's mappings */
	u64 used;       /* when, in samples */
	bool attached;
	Dwfl *dwfl; /* owned; NULL: free */
};

struct sym_unwinder {
	void *lib;
	struct dwfl_functions f;
	struct sym_view *view;
	struct unwind_space spaces[8];
	u64 samples;
	/* Of the sample at hand. */
	const struct sym_unwind_input *in;
	struct unwind_space *space;
	u64 sp;
	u64 *addrs;
	u32 n;
};

#define BP 6 /* the kernel's number of rbp */

/* DWARF's numbers of registers, by the kernel's numbers; the instruction pointer is apart. */
static const u8 dwarf_x86_64[] = {0, 3, 2, 1, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23};
static const u8 dwarf_arm64[] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
				 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};

static const struct {
	const u8 *order;
	u32 n, sp, pc;
} cpus[] = {
	[SYM_CPU_X86_64] = {dwarf_x86_64, ARRAY_SIZE(dwarf_x86_64), 7, 8},
	[SYM_CPU_ARM64] = {dwarf_arm64, ARRAY_SIZE(dwarf_arm64), 31, 32},
};

/* A register that was not sampled is 0. */
static u64 value_of(const struct sym_unwind_input *in, u32 reg)
{
	u64 value = 0;

	if (in->mask & BIT(reg))
		memcpy(&value,
		       (const u8 *)in->values +
			       (size_t)__builtin_popcountll(in->mask & (BIT(reg) - 1)) *
				       sizeof(u64),
		       sizeof(value));
	return value;
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *arg, void **thread)
{
	(void)dwfl;
	(void)tid;
	*thread = arg;
	return true;
}

static pid_t next_thread(Dwfl *dwfl, void *arg, void **thread)
{
	(void)dwfl;
	(void)arg;
	(void)thread;
	return 0;
}

/* Of the process's memory the sample has the top of the stack. */
static bool read_memory(Dwfl *dwfl, u64 addr, u64 *result, void *arg)
{
	const struct sym_unwinder *u = arg;
	u64 at = addr - u->sp;

	(void)dwfl;
	/*
	 * Behind `pop %rbp` and `leave` there is a `ret`, of which GCC's tables still say that rbp
	 * is where it was pushed: just below the stack now, of which the sample has nothing.
	 */
	if (at == -sizeof(*result) && u->in->cpu == SYM_CPU_X86_64 && u->in->mask & BIT(BP)) {
		*result = value_of(u->in, BP);
		return true;
	}
	if (at >= u->in->stack_len || u->in->stack_len - at < sizeof(*result))
		return false;
	memcpy(result, u->in->stack + at, sizeof(*result));
	return true;
}

static bool set_registers(Dwfl_Thread *thread, void *arg)
{
	const struct sym_unwinder *u = arg;
	u32 n = cpus[u->in->cpu].n;
	u64 values[64];

	for (u32 i = 0; i < n; i++)
		values[i] = value_of(u->in, cpus[u->in->cpu].order[i]);
	if (u->in->cpu == SYM_CPU_X86_64)
		values[n++] = value_of(u->in, cpus[u->in->cpu].pc);
	if (!u->f.registers(thread, 0, n, values))
		return false;
	u->f.set_pc(thread, value_of(u->in, cpus[u->in->cpu].pc));
	return true;
}

static const struct dwfl_thread_callbacks thread_callbacks = {
	.next_thread = next_thread,
	.get_thread = get_thread,
	.memory_read = read_memory,
	.set_initial_registers = set_registers,
};

/* Every module is reported with its file. */
static int find_no_elf(Dwfl_Module *mod, void **user, const char *name, u64 base, char **file,
		       void **elf)
{
	(void)mod;
	(void)user;
	(void)name;
	(void)base;
	(void)file;
	(void)elf;
	return -1;
}

/*
 * What unwinds is in the file itself. libdw's own search would go as far as asking servers for
 * debug files.
 */
static int find_no_debuginfo(Dwfl_Module *mod, void **user, const char *name, u64 base,
			     const char *file, const char *link, u32 crc, char **debug_file)
{
	(void)link;
	(void)crc;
	(void)debug_file;
	return find_no_elf(mod, user, name, base, (char **)&file, NULL);
}

static const struct dwfl_callbacks callbacks = {
	.find_elf = find_no_elf,
	.find_debuginfo = find_no_debuginfo,
};

/* C has no cast from an object pointer to a function's; POSIX promises that this works. */
#define RESOLVE(u, member, symbol) (*(void **)&(u)->f.member = dlsym((u)->lib, symbol))

struct sym_unwinder *sym_unwinder_new(struct sym_view *v)
{
	struct sym_unwinder *u = calloc(1, sizeof(*u));

	if (!u)
		return NULL;
	u->view = v;
	u->lib = dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);
	if (u->lib && RESOLVE(u, begin, "dwfl_begin") && RESOLVE(u, end, "dwfl_end") &&
	    RESOLVE(u, report_elf, "dwfl_report_elf") &&
	    RESOLVE(u, addrmodule, "dwfl_addrmodule") && RESOLVE(u, attach, "dwfl_attach_state") &&
	    RESOLVE(u, frames, "dwfl_getthread_frames") &&
	    RESOLVE(u, registers, "dwfl_thread_state_registers") &&
	    RESOLVE(u, set_pc, "dwfl_thread_state_register_pc") &&
	    RESOLVE(u, frame_pc, "dwfl_frame_pc"))
		return u;
	sym_unwinder_free(u);
	return NULL;
}

static void clear(struct sym_unwinder *u, struct unwind_space *s)
{
	if (s->dwfl && u->f.end)
		u->f.end(s->dwfl);
	*s = (struct unwind_space){0};
}

void sym_unwinder_free(struct sym_unwinder *u)
{
	if (!u)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(u->spaces); i++)
		clear(u, &u->spaces[i]);
	if (u->lib)
		dlclose(u->lib);
	free(u);
}

/* The space of the process, or the one that was not used for longest. */
static struct unwind_space *space_of(struct sym_unwinder *u, u32 pid)
{
	u64 generation = sym_view_generation(u->view, pid);
	struct unwind_space *s = &u->spaces[0];

	for (size_t i = 0; i < ARRAY_SIZE(u->spaces); i++) {
		struct unwind_space *other = &u->spaces[i];

		if (other->dwfl && other->pid == pid) {
			s = other;
			break;
		}
		if (other->used < s->used)
			s = other;
	}
	if (!s->dwfl || s->pid != pid || s->generation != generation) {
		clear(u, s);
		s->dwfl = u->f.begin(&callbacks);
		s->pid = pid;
		s->generation = generation;
	}
	s->used = ++u->samples;
	return s->dwfl ? s : NULL;
}

/* A file for code that has none; libdw takes the descriptor. */
static int file_of(const void *bytes, size_t len)
{
	int fd = memfd_create("anyperf-vdso", MFD_CLOEXEC);

	if (fd >= 0 && write(fd, bytes, len) != (ssize_t)len) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Files are told to libdw when a frame is in them: a process has many that never are. */
static bool report(struct sym_unwinder *u, u64 addr)
{
	struct sym_module m;
	int fd;

	if (u->f.addrmodule(u->space->dwfl, addr))
		return true;
	if (!sym_view_module(u->view, u->space->pid, addr, &m))
		return false;
	fd = m.bytes ? file_of(m.bytes, m.len) : open(m.path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	if (u->f.report_elf(u->space->dwfl, m.path, m.path, fd, m.bias, true))
		return true;
	close(fd);
	return false;
}

static int take_frame(Dwfl_Frame *frame, void *arg)
{
	struct sym_unwinder *u = arg;
	bool is_activation;
	u64 pc;

	if (!u->f.frame_pc(frame, &pc, &is_activation))
		return FRAME_STOP;
	if (!is_activation)
		pc--;
	(void)report(u, pc);
	if (pc)
		u->addrs[u->n++] = pc;
	return u->n < SYM_UNWIND_DEPTH ? FRAME_OK : FRAME_STOP;
}

u32 sym_unwind(struct sym_unwinder *u, const struct sym_unwind_input *in,
	       u64 addrs[SYM_UNWIND_DEPTH])
{
	u64 pc;

	if (in->cpu == SYM_CPU_OTHER || !in->mask)
		return 0;
	pc = value_of(in, cpus[in->cpu].pc);
	u->in = in;
	u->sp = value_of(in, cpus[in->cpu].sp);
	u->addrs = addrs;
	u->n = 0;
	u->space = space_of(u, in->pid);
	/* libdw learns from the first file which CPU it is. */
	if (u->space && report(u, pc) && !u->space->attached)
		u->space->attached = u->f.attach(u->space->dwfl, NULL, in->pid ? (pid_t)in->pid : 1,
						 &thread_callbacks, u);
	if (u->space && u->space->attached)
		(void)u->f.frames(u->space->dwfl, 1, take_frame, u);
	if (!u->n)
		addrs[u->n++] = pc;
	return u->n;
}
