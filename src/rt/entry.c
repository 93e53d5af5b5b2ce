/*
 * The start of anyperf-rt: reads what it is told (abi/control.h), takes its own resources into the
 * region, loads the program, makes the process look like one that runs that program, and runs it.
 * Everything up to thread_loop() happens with all signals blocked.
 */
#include "rt/arch.h"
#include "rt/deterministic/deterministic-run.h"
#include "rt/load/elf.h"
#include "rt/load/execve.h"
#include "rt/load/images.h"
#include "rt/load/stack.h"
#include "rt/load/told.h"
#include "rt/load/vdso.h"
#include "rt/mm/file-code.h"
#include "rt/mm/mdwe.h"
#include "rt/mm/mm.h"
#include "rt/mm/region.h"
#include "rt/perf/perf-guest.h"
#include "rt/sample/sample.h"
#include "rt/sample/trace-hits.h"
#include "rt/sandbox/seccomp.h"
#include "rt/signal/signal.h"
#include "rt/syscall/fd.h"
#include "rt/task/alloc-sites.h"
#include "rt/task/meter-page.h"
#include "rt/task/simulate.h"
#include "rt/task/path-pages.h"
#include "rt/task/path-stream.h"
#include "rt/task/process.h"
#include "rt/task/shared-mm.h"
#include "rt/task/traces.h"
#include "rt/task/windows.h"
#include "sys/fmt.h"
#include "sys/guest-call.h"
#include "sys/string.h"

#include <asm/prctl.h>
#include <linux/auxvec.h>
#include <linux/personality.h>
#include <linux/prctl.h>
#include <linux/random.h>

__attribute__((noreturn)) void start(u64 sp);

static const struct control_note note
	__attribute__((used, section(".note.anyperf"), aligned(4))) = {
		.name_size = sizeof(note.name),
		.version_size = sizeof(note.version),
		.type = CONTROL_NOTE_TYPE,
		.name = CONTROL_NOTE_NAME,
		.version = CONTROL_VERSION,
};

/* Everything that is too large for a stack and needed only until the program runs. */
struct startup {
	struct rt_control control;
	u8 filters[CONTROL_FILTERS];
	struct stack_in in;
	struct exec_plan plan;
	Elf64_Ehdr eh, interp_eh;
	struct elf_image interp;
	Elf64_Phdr interp_phdrs[ELF_PHDRS_MAX];
	struct stack_out out;
	u64 mask;
	struct vdso vdso;
	struct rlimit64 limits[LIMITS];
	struct image_file exe_file, interp_file; /* of no inode: not known */
};

static struct dbt_ops ops = {
	.protect = mm_protect,
	.map = region_map_tables,
	.code_file = fd_for_code,
	.map_at = region_map_at,
	.reach = thread_reach,
	.takes = region_takes,
	.kick = process_kick,
	.gone = thread_gone,
	.deadline = sample_deadline,
	.place = place_hit,
	.file_byte = file_code_byte,
	.trace = traces_words,
	.trace_map = traces_map,
	.slots_map = traces_map_slots,
};

static void read_control(struct startup *s)
{
	const size_t room = sizeof(s->control) + sizeof(s->filters);
	size_t n = 0;
	long got;
	u64 fd;

	if (s->in.argc < CONTROL_ARGS || !str_u64(s->in.argv[1], 10, &fd))
		die("anyperf-rt is the inside of `anyperf run`, not a command\n");
	do {
		got = sys_read((int)fd, (u8 *)&s->control + n, room - n);
		n += got > 0 ? (size_t)got : 0;
	} while (got > 0 && n < room);
	if (!told_check(&s->control, n))
		die("descriptor %d tells nothing that this anyperf-rt understands\n", (int)fd);
	sys_close((int)fd);
	arch_load(&s->control);
}

/*
 * The first program of a run: finds what the command line names. Errors go to whoever started us.
 */
static void launch(struct startup *s)
{
	char text[128] = "";
	int ret;

	if (!deterministic_supported())
		meter_no_launch(-EOPNOTSUPP,
				"this CPU lacks some of the features that --cpu-features names");
	ret = exec_plan(AT_FDCWD, s->control.exe, 0, s->control.exe, &s->plan);
	if (ret > 0)
		fmt(text, sizeof(text), "the translator cannot run it: %s", s->plan.why);
	if (ret)
		meter_no_launch(ret < 0 ? ret : -EPERM,
				ret == -EBUSY ? "this is anyperf's own runtime" : text);
	s->control.exe_fd = s->plan.exe_fd;
	s->control.interp_fd = s->plan.interp_fd;
	memcpy(s->control.comm, s->plan.comm, sizeof(s->control.comm));
	str_put(s->control.exe, CONTROL_PATH, s->plan.exe);
	str_put(s->control.execfn, CONTROL_PATH, s->plan.execfn);
}

/* The old program is gone, so there is no way back: as the kernel, which kills the process then. */
__attribute__((noreturn)) static void cannot_load(void)
{
	sys_tgkill(sys_getpid(), sys_gettid(), SIGKILL);
	sys_exit_group(127);
}

/* As x86-64's kernels place a PIE (vm.mmap_rnd_bits), and the heap behind it. */
#define RANDOM_PIE  28
#define RANDOM_HEAP 18

static u64 random_pages(u64 bits)
{
	u64 r = 0;

	raw_call3(__NR_getrandom, (long)&r, sizeof(r), GRND_NONBLOCK);
	return (r & (BIT(bits) - 1)) << 12;
}

static bool randomized(void)
{
	char text[8];

	if (raw_call1(__NR_personality, PERSONALITY_ASK) & ADDR_NO_RANDOMIZE)
		return false;
	return fd_read_text("/proc/sys/kernel/randomize_va_space", text, sizeof(text)) < 1 ||
	       text[0] != '0';
}

#define REACH (1ul << 31) /* of a displacement of 32 bits */

/*
 * Where a PIE of @extent bytes is put that may lie anywhere: within reach of all of the code cache,
 * and below all libraries, since the order of addresses decides what the dynamic loader does.
 */
static u64 pie_place(u64 extent, u64 align)
{
	const u64 spare = 64ul << 20; /* for the extent's alignment, and what else is thereabouts */
	u64 low = region_code_end - REACH + spare, high = region_code_start - spare - extent;

	if (region_code_end <= REACH || high <= low || extent > REACH)
		return ALIGN_UP(region_code_end + random_pages(15), align);
	return ALIGN_UP(low + random_pages(RANDOM_PIE) % (high - low), align);
}

/* Code that traces, beside code that does not: a compiler fills more than CACHE_MB with it. */
#define CACHE_MB        64u
#define CACHE_TRACED_MB 192u

static u32 cache_mb(void)
{
	u32 mb = run_config()->cache_mb;

	if (mb)
		return mb;
	return paths_mask() & DBT_MASK_TRACE && !limits_are_tight() ? CACHE_TRACED_MB : CACHE_MB;
}

static void no_translator(int err)
{
	if (err == -EACCES || err == -EPERM)
		die("the translator may not have memory that is executable; allow it (SELinux's "
		    "execmem, a seccomp filter for mmap)\n");
	if (err)
		die("no memory for the translator: its cache takes %u MB of addresses; raise the "
		    "limit (ulimit -v), or take a smaller one (anyperf run --cache-size=MB)\n",
		    cache_mb());
}

/* Where all of the user's programs have @exe, or @at. */
static u64 image_place(const struct image_file *exe, u64 extent, u64 align, u64 at)
{
	u64 place = images_place(exe, extent + align, true);

	return place ? ALIGN_UP(place, align) : at;
}

static void load(struct thread *t, struct startup *s, bool random)
{
	struct elf_image *image = &s->plan.image;
	int exe, interp = s->control.interp_fd;
	u64 at = 0, interp_at = 0;

	exe = s->control.exe_fd;
	if (exe < 0)
		exe = (int)fd_open(AT_FDCWD, s->control.exe, O_RDONLY | O_CLOEXEC);
	if (exe < 0 || elf_read(exe, false, &s->eh, s->plan.phdrs, image))
		cannot_load();
	images_file(exe, 0, &s->exe_file);
	if (image->has_interp && interp >= 0) {
		images_file(interp, 0, &s->interp_file);
		interp_at = images_place(&s->interp_file, 1 << 20, false);
	}
	if (image->dyn && image->has_interp) {
		u64 align = elf_alignment(&s->eh, s->plan.phdrs);

		at = ALIGN_DOWN(ELF_ET_DYN_BASE, align);
		if (random)
			at = pie_place(elf_extent(&s->eh, s->plan.phdrs), align);
		if (images_shared())
			at = image_place(&s->exe_file, elf_extent(&s->eh, s->plan.phdrs), align,
					 at);
	}
	/* What the kernel places comes to lie where the vDSO is. */
	if (!image->dyn || !at || !interp_at)
		vdso_take(&s->vdso, (u64)s->in.argv);
	images_load(t, &s->exe_file, image->has_interp);
	no_translator(dbt_begin(&t->dbt) ? 0 : -ENOMEM);
	if (elf_map(exe, &s->eh, s->plan.phdrs, at, image))
		cannot_load();
	if (alloc_sites_wanted())
		alloc_sites_file(t, exe, image->bias);
	fd_keep_exe(exe);
	if (!image->has_interp) {
		if (alloc_sites_wanted())
			alloc_sites_complete(s->control.comm);
		return;
	}
	if (interp < 0) {
		interp = (int)fd_open(AT_FDCWD, image->interp, O_RDONLY | O_CLOEXEC);
		images_file(interp, 0, &s->interp_file);
		interp_at = images_place(&s->interp_file, 1 << 20, false);
	}
	if (interp < 0 || elf_read(interp, true, &s->interp_eh, s->interp_phdrs, NULL) ||
	    elf_map(interp, &s->interp_eh, s->interp_phdrs, interp_at, &s->interp))
		cannot_load();
	if (alloc_sites_wanted())
		alloc_sites_file(t, interp, s->interp.bias);
	sys_close(interp);
}

/*
 * Tells the kernel about the process. From here on brk works natively, and /proc shows the
 * program's arguments, environment and auxv.
 */
static void tell_kernel(struct startup *s, bool random)
{
	const struct elf_image *image = &s->plan.image;
	u64 brk = ALIGN_UP(image->brk, PAGE_SIZE);
	struct prctl_mm_map map;
	long ret;

	/*
	 * In mmap's area, where a static PIE and a randomly placed one lie, the heap could not
	 * grow: it goes where the kernel puts PIEs.
	 */
	if (image->dyn && (!image->has_interp || random))
		brk = ELF_ET_DYN_BASE + PAGE_SIZE;
	if (random && image->dyn && image->has_interp)
		brk += random_pages(RANDOM_PIE);
	if (random)
		brk += random_pages(RANDOM_HEAP);
	memset(&map, 0, sizeof(map));
	map.start_code = image->start_code;
	map.end_code = max_u64(image->end_code, image->start_code + 1);
	map.start_data = image->start_data;
	map.end_data = image->end_data;
	map.start_brk = map.brk = brk;
	map.start_stack = s->out.sp;
	map.arg_start = s->out.argv_start;
	map.arg_end = s->out.argv_end;
	map.env_start = s->out.env_start;
	map.env_end = s->out.env_end;
	map.auxv = (void *)s->out.auxv;
	map.auxv_size = (u32)s->out.auxv_len;
	map.exe_fd = -1u;
	ret = sys_prctl(PR_SET_MM, PR_SET_MM_MAP, (u64)&map, sizeof(map), 0);
	if (ret)
		mm_emulate_brk(brk);
	sys_prctl(PR_SET_NAME, (u64)s->control.comm, 0, 0, 0);
}

/*
 * Where the code cache is to lie: in mmap's area, but so far down that the program's own mappings
 * have their native addresses until there is a gigabyte of them.
 */
static u64 cache_place(u64 cache_size)
{
	long probe = sys_mmap(NULL, PAGE_SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (sys_failed(probe))
		return 0;
	sys_munmap((void *)probe, PAGE_SIZE);
	return ALIGN_DOWN((u64)probe - 0x40000000ul - cache_size, 0x200000);
}

static struct thread *first_thread(struct startup *s)
{
	struct dbt_config config = {
		.ops = &ops,
		.write_hint = region_code_write(),
		.tables_hint = region_tables(),
	};
	const struct run_config *run = run_config();
	struct thread *t;

	windows_start(&s->control.place);
	simulate_start();
	streams_start();
	config.mask = sample_first_mask(s->control.form);
	ops.arch = arch_dbt_ops;
	config.cache_size = (u64)cache_mb() << 20;
	config.cache_hint = images_cache_place(config.cache_size);
	if (!config.cache_hint)
		config.cache_hint = cache_place(config.cache_size);
	if (run->flags & SEGMENT_VERIFY)
		config.flags |= DBT_CHECKS;
	if (run->flags & SEGMENT_REQUESTS)
		config.flags |= DBT_REQUESTS;
	if (streams_wanted())
		config.flags |= DBT_LONG_PATHS;
	if (run->flags & SEGMENT_DETERMINISTIC)
		config.flags |= DBT_VIRTUAL_TIME | DBT_VIRTUAL_RANDOM;
	t = thread_alloc_with(s->control.meter);
	if (!t)
		die("no memory for the first thread\n");
	t->proc = region_map(sizeof(*t->proc));
	t->sighand = region_map(sizeof(*t->sighand));
	if (!t->proc || !t->sighand)
		die("no memory for the first thread\n");
	config.later = images_shared();
	no_translator(dbt_init(&config));
	dbt_code_range(&region_code_start, &region_code_end);
	limits_ours((s64)(region_code_end - region_code_start), 0);
	t->proc->refs = t->sighand->refs = 1;
	t->proc->pid = (u32)sys_getpid();
	t->proc->execs = s->control.execs;
	t->proc->meter = t->meter;
	t->proc->place = s->control.place;
	str_put(t->proc->exe, sizeof(t->proc->exe), s->control.exe);
	thread_know(t, (u32)sys_gettid());
	t->min_altstack = stack_aux(&s->in, AT_MINSIGSTKSZ);
	t->seccomp_mode = s->control.seccomp_mode;
	if (seccomp_load(t, s->filters, s->control.seccomp_len))
		die("no memory for the seccomp filters\n");
	thread_install(t);
	dbt_thread_add(&t->dbt, t->id);
	threads_add(t);
	if (config.mask & (DBT_MASK_PATHS | DBT_MASK_TRACE))
		paths_new_space(t);
	return t;
}

/* All of the stack, as far as it will have grown when it is executed. */
static void add_stack_code(struct thread *t, const struct stack_out *out)
{
	struct mm_range r = {
		.start = ALIGN_DOWN(out->sp, PAGE_SIZE),
		.end = out->end,
		.prot = PROT_READ | PROT_WRITE | PROT_EXEC,
		.grows = 1,
	};

	mm_exec_add(t, &r);
}

static void begin(void *arg)
{
	struct thread *t = arg;

	signal_set_mask(signal_kernel_mask(t->sigmask));
	probe_begun(t, __NR_execve);
	thread_loop(t);
}

__attribute__((noreturn)) static void set_up(struct startup *s)
{
	struct elf_image *image = &s->plan.image;
	bool random = randomized();
	size_t scratch_size;
	struct thread *t;
	void *scratch;

	s->control.segment_fd = fd_adopt(FD_SEGMENT, s->control.segment_fd);
	s->control.rt_fd = fd_adopt(FD_RT, s->control.rt_fd);
	if (s->control.session_fd >= 0)
		s->control.session_fd = fd_adopt(FD_SESSION, s->control.session_fd);
	meter_init(fd_get(FD_SEGMENT), s->control.run, &s->control.config);
	if (random && !(run_config()->flags & SEGMENT_DETERMINISTIC))
		region_randomize();
	images_init(&s->control, random && !(run_config()->flags & SEGMENT_DETERMINISTIC));
	if (images_shared())
		region_tables_at(images_tables_step());
	if (s->control.flags & CONTROL_LAUNCH)
		launch(s);
	mm_init();
	mdwe_begin(s->control.mdwe);
	t = first_thread(s);
	vdso_at(&s->vdso, stack_aux(&s->in, AT_SYSINFO_EHDR));
	deterministic_start(t, &s->in, &s->control);
	if (deterministic) {
		vdso_take(&s->vdso, (u64)s->in.argv);
		vdso_drop(&s->vdso);
	}
	if (random)
		nondet_used(NONDET_ADDRESSES);
	region_count_image();
	limits_start(t, &s->control, s->limits);
	load(t, s, random);
	vdso_put(&s->vdso);

	scratch_size = stack_scratch(&s->in, s->plan.args, s->plan.prefix, s->control.execfn);
	scratch = region_map(scratch_size);
	if (!scratch)
		cannot_load();
	vdso_add_code(t, &s->vdso);
	stack_build(&s->in, s->plan.args, s->plan.prefix, s->control.execfn, image,
		    image->has_interp ? s->interp.bias : 0, s->vdso.ehdr, scratch, &s->out);
	region_unmap(scratch, scratch_size);
	tell_kernel(s, random);
	if (image->exec_stack)
		add_stack_code(t, &s->out);
	elf_add_code(t, &s->eh, s->plan.phdrs, image->bias, &s->exe_file);
	if (image->has_interp)
		elf_add_code(t, &s->interp_eh, s->interp_phdrs, s->interp.bias, &s->interp_file);
	meter_begin(t, s->control.meter == ~0u ? METER_NEW_PROCESS : METER_SAME_PROCESS);
	perf_start(t, s->control.perf_fds, s->control.watch, s->control.flags & CONTROL_LAUNCH);
	sample_begin(t);
	/* Now that the session has told of the execve: that was before its start. */
	meter_told(t);
	paths_begin(t);
	stream_arguments(s->out.argv_start, s->out.argv_end);
	stream_begin(t);
	signal_init(t, &s->control);
	meter_kickable(t, true);
	t->sigmask = s->mask & ~SIGNALS_KILL;
	regs_start(&t->dbt.regs, image->has_interp ? s->interp.entry : image->entry, s->out.sp);
	region_unmap(s, sizeof(*s));
	start_on_stack(t, t->area + AREA_STACK_TOP, begin);
}

void start(u64 sp)
{
	struct startup *s;
	u64 mask = signal_block_all();
	struct rlimit64 limits[LIMITS];

	limits_lift(limits);
	image_populate();
	s = region_map(sizeof(*s));
	if (!s)
		die("no memory to start with\n");
	s->mask = mask;
	memcpy(s->limits, limits, sizeof(limits));
	stack_parse(sp, &s->in);
	read_control(s);
	set_up(s);
}
