/*
 * PURPOSE: every cause for which something is refused, with the sentence that tells it. refusal.h
 * makes the enums of this, refusal.c the sentences, and src/lib/refusal/error.c the public causes.
 *
 * CAUSE(id, public cause, remedy, sentence): the public cause is an AP_CAUSE_* of
 * include/anyperf/error.h; the remedy is a row of remedy-table.h, told unless whoever refuses names
 * another. NOTE(id, text): told behind the sentence of a cause.
 *
 * {u0} to {u3} stand for a number of the refusal, {d0} for a signed and {x0} for a hexadecimal one,
 * {s0} and {s1} for its names. A sentence begins small, ends without a full stop and does not name
 * the event. Included more than once, on purpose.
 */
/* clang-format off */

/* The attr, as its bytes come. */
CAUSE(ATTR_FAULT, BAD_VALUE, NONE, "the attr is at an address that cannot be read")
CAUSE(ATTR_SIZE, BAD_VALUE, NONE,
      "attr.size is {u0}, it must be 0 or from {u1} to {u2}; the size known here, {u3}, was "
      "stored into it")
CAUSE(ATTR_SHORT, BAD_VALUE, NONE, "attr.size is {u0}, but only {u1} bytes can be read")
CAUSE(ATTR_NEWER, KERNEL_OLD, NONE,
      "attr byte {u0} is set, which is newer than the {u1} bytes known here; that size was stored "
      "into attr.size")
CAUSE(ATTR_FLAGS, BAD_VALUE, NONE, "attr has a flag bit of 38 or above, none is known")
CAUSE(ATTR_RESERVED, BAD_VALUE, NONE, "attr.__reserved_2 (bytes 110 and 111) must be 0")
CAUSE(ATTR_AUX_ACTION, BAD_VALUE, NONE,
      "attr.aux_action (bytes 116 to 119) has bits {x0}, only 0 to 2 are known")
CAUSE(ATTR_BITS, BAD_VALUE, NONE, "attr.{s0} has bits {x0}, only bits 0 to {u1} are known")
CAUSE(RESERVED_BIT, BAD_VALUE, NONE,
      "a reserved bit of the attr is set; this kernel may be too old for it")
CAUSE(UNKNOWN_BIT, BAD_VALUE, NONE, "{s0} has a bit that this kernel does not know")
CAUSE(BRANCH_KIND, BAD_VALUE, BRANCH_ANY,
      "attr.branch_sample_type names no kind of branch, only privilege levels")
CAUSE(REGS_NONE, BAD_VALUE, NONE, "attr.{s0} is 0, but its registers are to be sampled")
CAUSE(REGS_UNKNOWN, BAD_VALUE, NONE,
      "attr.{s0} has bits {x0}, which are no registers of this processor")
CAUSE(STACK_DUMP, UNSUPPORTED, NONE, "this architecture cannot sample the user stack")
CAUSE(STACK_SIZE, BAD_VALUE, NONE,
      "attr.sample_stack_user is {u0}, it must be a multiple of 8 below 65535")
CAUSE(WEIGHT_TWICE, BAD_VALUE, CHOOSE_ONE,
      "attr.sample_type has WEIGHT and WEIGHT_STRUCT, which share a place and exclude each other")
CAUSE(INHERIT_THREAD, BAD_VALUE, NONE, "attr.inherit_thread needs attr.inherit")
CAUSE(EXEC_TWICE, BAD_VALUE, NONE, "attr.remove_on_exec and attr.enable_on_exec exclude each other")
CAUSE(SIGTRAP_EXEC, BAD_VALUE, NONE,
      "attr.sigtrap needs attr.remove_on_exec, so that no other program gets the signals")
CAUSE(SIGTRAP_TASK, BAD_VALUE, NONE,
      "attr.sigtrap needs a task that gets the signals, and pid is -1")
CAUSE(INHERIT_READ, BAD_VALUE, SAMPLE_TID,
      "samples that carry counts (sample_type READ) cannot be inherited, unless they carry TID too")
CAUSE(CLOCK_NMI, BAD_VALUE, CLOCK_MONOTONIC,
      "attr.clockid {d0} cannot be read in an NMI, as samples of {s0} are")
CAUSE(CLOCK_UNKNOWN, BAD_VALUE, CLOCK_MONOTONIC, "attr.clockid {d0} is none that perf takes")
CAUSE(PERIOD_HIGH, BAD_VALUE, NONE, "the period (attr.sample_period) must be below 2^63")
CAUSE(SAMPLE_RATE, SAMPLE_RATE, SAMPLE_RATE,
      "a frequency of {u0} Hz is asked for (attr.sample_freq); kernel.perf_event_max_sample_rate "
      "is {u1}")
CAUSE(MAX_STACK, MAX_STACK, MAX_STACK,
      "a call chain of {u0} frames is asked for (attr.sample_max_stack); "
      "kernel.perf_event_max_stack is {u1}")
CAUSE(OPEN_FLAGS, BAD_VALUE, NONE, "flags is {x0}, only bits 0 to 3 are known")
CAUSE(NO_MEMORY, MEMORY, NONE, "no memory for {s0}")

/* Who may. */
CAUSE(PARANOID_KERNEL, PARANOID, USER_MODE,
      "counts the kernel too, which kernel.perf_event_paranoid={d0} forbids without CAP_PERFMON")
CAUSE(PARANOID_KERNEL_ONLY, PARANOID, PARANOID,
      "counts the kernel only, which kernel.perf_event_paranoid={d0} forbids without CAP_PERFMON")
CAUSE(PARANOID_BRANCHES, PARANOID, USER_BRANCHES,
      "samples branches of the kernel (attr.branch_sample_type, or exclude_kernel or exclude_hv "
      "left 0), which kernel.perf_event_paranoid={d0} forbids without CAP_PERFMON")
CAUSE(PARANOID_PHYS_ADDR, PARANOID, PARANOID,
      "samples physical addresses (PHYS_ADDR), which kernel.perf_event_paranoid={d0} forbids "
      "without CAP_PERFMON")
CAUSE(PARANOID_CPU, PARANOID, PARANOID,
      "counts everything that runs on a CPU, which kernel.perf_event_paranoid={d0} forbids "
      "without CAP_PERFMON")
CAUSE(PARANOID_CGROUP, PARANOID, PARANOID,
      "counts a cgroup, that is everybody's tasks on a CPU, which kernel.perf_event_paranoid={d0} "
      "forbids without CAP_PERFMON")
CAUSE(PARANOID_ALL, PARANOID, PARANOID,
      "nobody but the administrator may use perf events at kernel.perf_event_paranoid={d0} "
      "(Debian's and Ubuntu's level 3 and above): it is forbidden without CAP_PERFMON")
CAUSE(PARANOID_RAW, PARANOID, PARANOID,
      "reads the raw data of a tracepoint, which kernel.perf_event_paranoid={d0} forbids without "
      "CAP_PERFMON")
CAUSE(PARANOID_FUNCTIONS, PARANOID, PARANOID,
      "is a tracepoint on the kernel's functions, which kernel.perf_event_paranoid={d0} forbids "
      "without CAP_PERFMON")
NOTE(USER_NS, " in the initial user namespace (root of a container does not have it)")
CAUSE(CAP_NAMESPACES, CAPABILITY, NO_NAMESPACES,
      "records of namespaces (attr.namespaces) are given only to CAP_PERFMON")
CAUSE(CAP_UPROBE, CAPABILITY, ROOT, "a uprobe needs CAP_SYS_ADMIN")
CAUSE(CAP_KPROBE, CAPABILITY, ROOT, "a kprobe needs CAP_PERFMON")
CAUSE(CAP_BREAKPOINT, CAPABILITY, OWN_ADDRESS,
      "a breakpoint at a kernel address needs CAP_SYS_ADMIN")
CAUSE(CAP_QUERY_BPF, CAPABILITY, NONE, "QUERY_BPF needs CAP_PERFMON")
CAUSE(CAP_SET_BPF, CAPABILITY, ROOT,
      "attaching the BPF program is not allowed: it needs CAP_PERFMON and CAP_BPF, or the program "
      "reads beyond the event's context")
CAUSE(TASK_FOREIGN, PTRACE, AS_ITS_USER, "task {d0} is not the caller's to observe")
CAUSE(TASK_SIGTRAP, PTRACE, AS_ITS_USER_KILL,
      "sending SIGTRAP to task {d0} needs the right to trace it")
NOTE(YAMA, " (yama's kernel.yama.ptrace_scope limits that)")
CAUSE(TASK_OF_USER, PTRACE, AS_ITS_USER,
      "task {d0} belongs to another user (uid {u1}, you are {u2})")
CAUSE(TASK_UNTRACEABLE, PTRACE, AS_ITS_USER,
      "task {d0} may not be traced by you: it is root's, or runs a program that changed its user "
      "or is not readable")
CAUSE(SECCOMP, SECCOMP, SECCOMP, "a seccomp filter on this process refuses perf_event_open ({s0})")
CAUSE(SANDBOX, LSM, NONE,
      "something refuses perf_event_open before the kernel's perf sees it ({s0}): a sandbox or a "
      "security module")
CAUSE(SECURITY_MODULE, LSM, AUDIT_LOG, "a security module refuses it")
NOTE(LSM_ACTIVE, " (active: {s0})")
CAUSE(LOCKDOWN_REGS, LSM, NO_REGS_INTR, "kernel lockdown forbids sampling the kernel's registers")
CAUSE(LSM_OR_LOCKDOWN, LSM, NONE, "not permitted by a security module or the kernel's lockdown")

/* Where: task, CPU, cgroup. */
CAUSE(NO_PLACE, CPU, NAME_PLACE, "neither a task nor a CPU is named (pid -1 with cpu -1)")
CAUSE(CPU_RANGE, CPU, NONE, "there is no CPU {d0}; this machine can have {u1}, numbered from 0")
CAUSE(CPU_OFFLINE, CPU, NONE, "CPU {d0} is offline")
CAUSE(CPU_FEATURE, UNSUPPORTED, NONE, "the CPU lacks the feature that this needs")
CAUSE(CGROUP_PLACE, CPU, NONE,
      "a cgroup is counted CPU by CPU: with PERF_FLAG_PID_CGROUP pid is the descriptor of its "
      "directory, and cpu a CPU")
CAUSE(CGROUP_NO_CPU, CPU, NONE, "a cgroup is counted CPU by CPU, and no CPU is named")
CAUSE(CGROUP_FD, CGROUP, NONE,
      "pid {d0} (with PERF_FLAG_PID_CGROUP) is no descriptor of a cgroup directory")
CAUSE(CGROUP_UNUSABLE, CGROUP, NONE,
      "the directory is not a cgroup that perf can use (it takes a version 2 or perf_event cgroup)")
CAUSE(CGROUP_STATELESS, CGROUP, SUBTREE_CONTROL,
      "this kernel has no state of perf for the cgroup: version 2 gets it for all cgroups when a "
      "controller is enabled for the first time, and loses it for one that is being removed")
CAUSE(CGROUP_REMOVED, CGROUP, NONE, "the cgroup has been removed")
CAUSE(CGROUP_NOT_V1, CGROUP, NONE,
      "the cgroup is not in the hierarchy of the perf_event controller, which is a version 1 "
      "hierarchy of its own")
CAUSE(CGROUP_NOT_V2, CGROUP, NONE,
      "the cgroup is not in the hierarchy of the perf_event controller, which is version 2's")
CAUSE(CGROUP_OF_GROUP, GROUP, NONE, "the group leader is of another cgroup; a group counts one")
CAUSE(TASK_NONE, NO_TASK, NONE, "there is no process or thread {d0}")
CAUSE(TASK_BAD_ID, NO_TASK, NONE, "{d0} is not a process or thread id")
CAUSE(TASK_ZOMBIE, NO_TASK, NONE, "process or thread {d0} has already ended (it is a zombie)")
CAUSE(TASK_ENDING, NO_TASK, NONE, "process or thread {d0} is just ending")
CAUSE(TASKS_ENDED, NO_TASK, NONE, "the threads to measure have ended")
CAUSE(NOT_A_GUEST, NOT_GUEST, START_UNDER,
      "process {d0} is no guest of this session: the virtual PMU counts only what was started "
      "under it")

/* Groups, and events that refer to others. */
CAUSE(GROUP_FD, GROUP, PASS_LEADER, "group_fd is no descriptor of a perf event")
CAUSE(GROUP_BAD_LEADER, GROUP, NONE, "the leader's descriptor is not an open perf event")
CAUSE(GROUP_GONE, GROUP, NONE, "group_fd counted a task that is gone; nothing can join it")
CAUSE(GROUP_MEMBER, GROUP, PASS_LEADER, "group_fd is a member of a group itself")
CAUSE(GROUP_CLOCK, GROUP, NONE, "attr.clockid differs from the group leader's; they must be equal")
CAUSE(GROUP_CPU, GROUP, NONE,
      "cpu is {d0}, the group leader's is {d1}; a group counts in one place")
CAUSE(GROUP_TARGET, GROUP, NONE,
      "the group leader counts another task or a CPU; a group counts one")
CAUSE(GROUP_INHERIT, GROUP, NONE,
      "attr.inherit is {u0}, the group leader's is {u1}; they must be equal")
CAUSE(GROUP_LEADERS_ONLY, GROUP, NONE, "attr.{s0} is for group leaders only; set it on the leader")
CAUSE(GROUP_PMU, GROUP, NONE,
      "the group is on the PMU {s0}, this event is {s1}'s; a group is on one PMU (software events "
      "join any)")
CAUSE(GROUP_LARGE, GROUP, SPLIT_GROUP,
      "the group is too large: one read would give more than {u0} bytes")
CAUSE(GROUP_COUNTERS, GROUP, NONE,
      "the group needs {u0} counters at once, the virtual PMU has {u1} (--counters)")
CAUSE(GROUP_ARM64, GROUP, NONE,
      "the group can never be on together: {s0} has {u0} counters (a 64-bit event on 32-bit "
      "counters takes two) and one for cycles")
CAUSE(GROUP_MISFIT, GROUP, SMALLER_GROUPS,
      "the group does not fit together: more hardware events than counters, or another task, CPU, "
      "cgroup, clock or inheritance than its leader's")
CAUSE(GROUP_PINNED, GROUP, NONE, "only the leader of a group can be pinned or exclusive")
CAUSE(GROUP_NO_LEADER, GROUP, NONE, "the leader of its group, {s0}, could not be opened")
CAUSE(GROUP_CHILDREN, GROUP, READ_SINGLY,
      "a child's group has another shape than this one, so their counts cannot be added")
CAUSE(EXCLUSIVE_OTHER, BUSY, CLOSE_OTHERS, "{s0} is exclusive and counts {s1} now")
CAUSE(EXCLUSIVE_HERE, BUSY, NONE, "{s0} is exclusive and has an event here already")
CAUSE(PMU_BUSY, BUSY, END_OTHER,
      "another user has the {s0} PMU for himself, or a group that is exclusive is on it")
CAUSE(AUX_PAUSE_GROUP, GROUP, NONE,
      "attr.aux_pause and aux_resume need a group whose leader writes an AUX area")
CAUSE(AUX_OUTPUT_GROUP, GROUP, NONE,
      "attr.aux_output needs a group whose leader writes an AUX area")
CAUSE(AUX_SAMPLE_GROUP, GROUP, NONE,
      "attr.aux_sample_size needs a group whose leader writes an AUX area")
CAUSE(OUTPUT_FD, BAD_VALUE, NONE, "SET_OUTPUT: the argument is no descriptor of a perf event")
CAUSE(OUTPUT_SELF, BAD_VALUE, NONE, "an event cannot be its own output target")
CAUSE(OUTPUT_CPU, BAD_VALUE, NONE,
      "the output target is on cpu {d0}, this event on {d1}; they must be equal")
CAUSE(OUTPUT_TASK, BAD_VALUE, NONE, "with cpu -1 the output target must count the same task")
CAUSE(OUTPUT_CLOCK, BAD_VALUE, NONE, "the output target has another clock; records would not sort")
CAUSE(OUTPUT_DIRECTION, BAD_VALUE, NONE, "the output target is written in the other direction")
CAUSE(OUTPUT_AUX, BAD_VALUE, NONE,
      "this event writes the AUX area of {s0}, and the output target that of {s1}")
CAUSE(OUTPUT_MAPPED, BAD_VALUE, UNMAP_FIRST, "this event is mapped itself")
CAUSE(OUTPUT_UNMAPPED, BAD_VALUE, MAP_FIRST, "the output target is not mapped")
CAUSE(OUTPUT_MISFIT, BAD_VALUE, NONE,
      "records can be sent only to another event that has a mapped buffer, is on the same CPU "
      "(or, for any CPU, the same task), has the same clock and direction, and only if this event "
      "has no mapped buffer itself")

/* Whose event it is. */
CAUSE(PMU_TYPE, UNKNOWN_EVENT, LIST_PMUS, "no PMU has the type {u0}")
CAUSE(PMU_CONFIG, UNSUPPORTED, SEE_PMUS, "no PMU counts attr.type {u0}, config {x1}")
CAUSE(CONFIG_UNKNOWN, BAD_VALUE, NONE, "attr.config {x0} is no event of {s0}")
CAUSE(TASKS_ONLY, UNSUPPORTED, NAME_TASK, "{s0} counts tasks, not CPUs, and pid is -1")
CAUSE(PMU_EXTENDED, UNSUPPORTED, NONE,
      "attr.config names the PMU {s0} in its upper half, which takes no generic hardware events")
CAUSE(PMU_REFUSES, UNSUPPORTED, NONE, "the PMU {s0} does not accept this event or config ({x0})")
CAUSE(PMU_REFUSES_MODES, UNSUPPORTED, NO_MODIFIERS,
      "the PMU {s0} does not accept this event; it may be unable to leave out modes (modifiers), "
      "or not know the config {x0}")
CAUSE(PMU_LACKS, UNSUPPORTED, NONE, "its PMU does not support this ({s0})")
CAUSE(PMU_CPU_ONLY, UNSUPPORTED, MEASURE_CPUS, "the PMU {s0} counts whole CPUs, not tasks")
CAUSE(PMU_OTHER_CPU, CPU, NONE, "the PMU {s0} does not count on CPU {d0}, only on {s1}")
CAUSE(PMU_OTHER_CPUS, CPU, NONE, "the PMU {s0} counts on the CPUs {s1} only")
CAUSE(PMU_OTHER_CORE, CPU, NONE, "CPU {d0} is a core of another kind than {s0}'s")
CAUSE(PMU_EXISTS, OTHER, NONE, "a PMU of the name {s0} or of its type is there")
CAUSE(PMU_TOO_MANY, OTHER, NONE, "a core takes {u0} PMUs")
CAUSE(PMU_LATE, OTHER, NONE, "{s0} must be registered before the first task")
CAUSE(NO_CPU_PMU, NO_PMU, USER_SPACE_RUN, "the kernel has no CPU PMU here")
NOTE(HYPERVISOR, ": this is a virtual machine whose hypervisor does not offer one")
CAUSE(NO_PERF, NO_PERF, PERF_EVENTS, "this kernel ({s0}) has no perf_event_open")
CAUSE(CPU_EVENT, UNSUPPORTED, NONE, "the CPU's PMU has no such event")
CAUSE(SOFTWARE_NEWER, KERNEL_OLD, NONE, "this kernel ({s0}) has no software event number {u0}")
CAUSE(KERNEL_FIELD, KERNEL_OLD, OLDER_FIELDS,
      "this kernel ({s0}) does not know the attr's field {s1}; it knows {u0} of {u1} bytes")
CAUSE(KERNEL_LACKS, UNSUPPORTED, NONE, "this kernel does not support it")
CAUSE(HARDWARE_ID, BAD_VALUE, NONE,
      "attr.config {u0} is no generic hardware event; they are 0 to 9")
CAUSE(CACHE_ID, BAD_VALUE, NONE,
      "attr.config {x0} is no cache event: bits 0-7 name the cache (0 to 6), 8-15 the operation "
      "(0 to 2), 16-23 the result (0, 1)")
CAUSE(SOFTWARE_ID, UNSUPPORTED, NONE, "attr.config {u0} is no software event; they are 0 to 11")
CAUSE(TRACEPOINT_ID, BAD_VALUE, NONE,
      "the kernel has no tracepoint of that number, or (function tracepoints) it may not be "
      "sampled with user call chains or stacks")
CAUSE(PROBE_PLACE, BAD_VALUE, NONE,
      "the probe has no valid place: the file, the function or the offset is wrong")
CAUSE(PROBE_LONG, BAD_VALUE, NONE, "the probe's name or path is too long")
CAUSE(PROBE_SILENT, BAD_VALUE, NONE,
      "the file system of the probe's file has not answered within half a second")
CAUSE(PROBE_PATH, BAD_VALUE, NONE, "attr.uprobe_path is NULL, it must point to the file's path")

/* What a PMU cannot do. */
CAUSE(NO_SAMPLING, UNSUPPORTED, COUNT_ONLY,
      "{s0} cannot sample: it has no interrupt, so it can count only")
CAUSE(NO_BRANCHES, UNSUPPORTED, NO_BRANCHES,
      "{s0} cannot record branches (sample_type BRANCH_STACK)")
CAUSE(NO_PRECISION, UNSUPPORTED, FEWER_P, "this event cannot be sampled with precision {u0}")
CAUSE(PRECISE_COUNT, BAD_VALUE, NONE,
      "a precise event (attr.precise_ip) must be sampled, not counted: sample_period is 0")
CAUSE(LOADS_ALONE, BAD_VALUE, LOADS_BESIDE,
      "on this CPU loads with a latency are sampled in a group with mem-loads-aux only")
CAUSE(NO_AUX_OUTPUT, UNSUPPORTED, NONE, "attr.aux_output: {s0} cannot write into an AUX area")
CAUSE(NO_AUX_PAUSE, UNSUPPORTED, NONE, "attr.aux_start_paused: {s0} has no AUX area to pause")
CAUSE(NO_MODES, UNSUPPORTED, NO_EXCLUDES, "{s0} cannot tell modes apart")
CAUSE(NO_MODE, UNSUPPORTED, NONE,
      "the PMU cannot leave out one of the modes that the modifiers exclude")
CAUSE(NO_MODE_CPU, UNSUPPORTED, OTHER_MODIFIERS,
      "this CPU's PMU cannot leave out one of user mode, kernel mode, hypervisor or idle")
CAUSE(NO_IDLE, UNSUPPORTED, NONE, "attr.exclude_idle: {s0} cannot leave out the idle task")
CAUSE(NO_VECTOR_REGS, UNSUPPORTED, NONE,
      "sample_regs_user or sample_regs_intr asks for vector registers, which {s0} does not sample")
CAUSE(NO_COUNTER, BUSY, FEWER, "the PMU has no counter left")
CAUSE(CLOCK_OF_PMU, BAD_VALUE, CLOCK_MONOTONIC,
      "this clock is not one that samples can be stamped with on this PMU")

/* Breakpoints. */
CAUSE(BREAKPOINT_TYPE, BAD_VALUE, NONE, "attr.bp_type is {u0}, it must be w (2), rw (3) or x (4)")
CAUSE(BREAKPOINT_ACCESS, BAD_VALUE, NONE, "the breakpoint's access must be r, w, rw or x alone")
CAUSE(BREAKPOINT_READ, BAD_VALUE, NONE, "this CPU cannot break on reads alone (x86: use rw)")
CAUSE(BREAKPOINT_EXEC, BAD_VALUE, NONE,
      "a breakpoint on execution has the length of a long, 8 bytes; attr.bp_len is {u0}")
CAUSE(BREAKPOINT_LENGTH, BAD_VALUE, NONE,
      "a breakpoint is 1, 2, 4 or 8 bytes long; attr.bp_len is {u0}")
CAUSE(BREAKPOINT_ALIGN, BAD_VALUE, NONE,
      "the breakpoint's address (attr.bp_addr) {x0} is not a multiple of its length, {u1}")
CAUSE(BREAKPOINT_KERNEL, BAD_VALUE, NONE,
      "the breakpoint (attr.bp_addr) is in the kernel, but kernel mode is excluded")
CAUSE(BREAKPOINT_REGISTERS, BUSY, FEWER,
      "all breakpoint registers of the CPU are in use (x86 has 4)")

/* What the virtual PMU does not see or have. */
CAUSE(VIRTUAL_MACHINE, UNSUPPORTED, MODEL_OR_KERNEL,
      "{s0} depends on how the machine executes code, which the virtual PMU does not see; it "
      "counts instructions and branches")
CAUSE(VIRTUAL_CACHE, UNSUPPORTED, MODEL_OR_KERNEL,
      "cache events depend on the machine's caches, which the virtual PMU does not see; it counts "
      "instructions and branches")
CAUSE(MODEL_CELL, UNSUPPORTED, NONE,
      "cache event {x0} is nothing that happens in the model of {s0}: instructions and translations "
      "of them are not written, and TLBs, predictors and nodes have no prefetches")
CAUSE(MODEL_SAMPLES, UNSUPPORTED, SAMPLE_INSTRUCTIONS,
      "event {x0} is counted by the model of {s0} as a sum of several things, and that is not "
      "sampled")
CAUSE(VIRTUAL_RAW_FIELDS, UNSUPPORTED, NONE,
      "raw code {x0}: edge, inv and cmask count cycles, which the virtual PMU does not see")
CAUSE(VIRTUAL_RAW, UNSUPPORTED, NONE,
      "raw code {x0} is not counted by the virtual PMU; of {s0}'s it has 0xc0 (instructions), {s1} "
      "(branches) and others in /sys/bus/event_source/devices/cpu/events")
CAUSE(VIRTUAL_KERNEL, KERNEL_MODE, USER_MODE_RUN,
      "counts the kernel too (exclude_kernel is 0), but the virtual PMU sees user mode only")
CAUSE(VIRTUAL_KERNEL_ONLY, KERNEL_MODE, USER_MODE_MACHINE,
      "only kernel mode is asked for (exclude_user = 1), which the virtual PMU does not see")
CAUSE(VIRTUAL_PRECISE, UNSUPPORTED, NO_PRECISE,
      "attr.precise_ip asks for samples, but the virtual PMU only counts")
CAUSE(VIRTUAL_BRANCHES, UNSUPPORTED, NO_BRANCHES,
      "sample_type BRANCH_STACK asks for recorded branches, but the virtual PMU only counts")
CAUSE(VIRTUAL_BRANCH_COUNTERS, BAD_VALUE, NONE,
      "the virtual PMU counts nothing between branches (PERF_SAMPLE_BRANCH_COUNTERS)")
CAUSE(CALL_STACK_ALONE, BAD_VALUE, NONE,
      "attr.branch_sample_type asks for the call stack and for kinds of branches: it is one or "
      "the other")
CAUSE(VIRTUAL_TRACEPOINT, UNSUPPORTED, KERNEL_ALONE,
      "tracepoints are served (those of system calls by the session, others by the kernel) where the "
      "session may read tracefs; it may not")
CAUSE(VIRTUAL_TRACEPOINT_HOST, UNSUPPORTED, KERNEL_ALONE,
      "the tracepoint fires in the kernel, which refuses the session an event of its own for it: "
      "{s0}")
CAUSE(VIRTUAL_FILTER, UNSUPPORTED, NONE,
      "the filter \"{s0}\" compares a string in the program's memory, which is not read here")
CAUSE(VIRTUAL_BREAKPOINT, UNSUPPORTED, KERNEL_ALONE,
      "breakpoints in the kernel need the kernel, which the virtual PMU does not see")
CAUSE(VIRTUAL_WATCHPOINT, UNSUPPORTED, NONE,
      "breakpoints on data take a debug register of the CPU, and the host's kernel gives none "
      "(errno {u0})")
CAUSE(VIRTUAL_BREAKPOINTS, BUSY, FEWER, "the thread has {u0} breakpoints on execution already")
CAUSE(VIRTUAL_KPROBE, UNSUPPORTED, KERNEL_ALONE,
      "kprobes are in the kernel, which the virtual PMU does not see")
CAUSE(VIRTUAL_UPROBE, UNSUPPORTED, KERNEL_ALONE,
      "uprobes are set by the kernel, in code that does not run here but as a translation")
CAUSE(VIRTUAL_FAULTS, UNSUPPORTED, NONE,
      "only kernel mode is asked for (exclude_user = 1), and the host tells page faults of both "
      "modes together")
CAUSE(VIRTUAL_SOFTWARE, UNSUPPORTED, NONE,
      "software event {u0} is not counted here: the host does not tell")
CAUSE(VIRTUAL_BPF, UNSUPPORTED, NONE,
      "SET_BPF: events of this PMU happen outside the kernel, where no BPF program can see them")
CAUSE(VIRTUAL_TARGET, NOT_GUEST, NONE,
      "the virtual PMU counts only what is started under it, without -p, -t, -a, -C and -G")
CAUSE(VIRTUAL_SELF, NOT_GUEST, START_COMMAND,
      "the virtual PMU counts what was started under it, and this program was not")
CAUSE(VIRTUAL_WATCHDOG, UNSUPPORTED, NONE, "the virtual PMU has no interrupt for an NMI watchdog")

/* arm64's PMU. */
CAUSE(ARM64_GENERIC, UNSUPPORTED, NONE, "generic event {u0} is mapped to no Armv8 event")
CAUSE(ARM64_CHAIN, BAD_VALUE, ARM64_LONG, "CHAIN (0x1e) makes sense only beside its other half")
CAUSE(ARM64_RDPMC_TASK, BAD_VALUE, NO_RDPMC,
      "config1 bit 1 (rdpmc) is for a task reading itself, and pid is -1")
CAUSE(ARM64_RDPMC_TYPE, UNSUPPORTED, NONE,
      "config1 bit 1 (rdpmc) on a machine of different cores needs the PMU's own attr.type, {d0}")
CAUSE(ARM64_RDPMC_LONG, UNSUPPORTED, LONG_OR_RDPMC,
      "config1 bits 0 and 1 (long, rdpmc): user space cannot read a pair of 32-bit counters, and "
      "this PMU has no 64-bit ones")
CAUSE(ARM64_THRESHOLD, BAD_VALUE, NONE,
      "the threshold {u0} (config1 bits 5-16) is above caps/threshold_max, {u1}")

/* read(2), ioctl(2), mmap(2) of an event. */
CAUSE(NO_EVENT, BAD_VALUE, NONE, "the descriptor is none of an open perf event")
CAUSE(READ_SPACE, BAD_VALUE, NONE, "a read of {u0} bytes is too small, this event gives {u1}")
CAUSE(IOCTL_UNKNOWN, BAD_VALUE, NONE, "ioctl {x0} is none of perf's")
CAUSE(NOT_SAMPLING, BAD_VALUE, NONE,
      "{s0} is about samples, but this event only counts (sample_period is 0)")
CAUSE(REFRESH_NUMBER, BAD_VALUE, NONE, "refresh takes the number of overflows, at least 1")
CAUSE(REFRESH_INHERITED, BAD_VALUE, NO_INHERIT,
      "REFRESH cannot count the overflows of inherited events")
CAUSE(PERIOD_FAULT, BAD_VALUE, NONE, "the period's address cannot be read")
CAUSE(PERIOD_ZERO, BAD_VALUE, NONE, "the period must not be 0; DISABLE stops an event")
CAUSE(PERIOD_PMU, BAD_VALUE, NONE, "{s0} cannot have that period")
CAUSE(PERIOD_BAD, BAD_VALUE, NONE, "a {s0} of {u0} is not possible")
CAUSE(FILTER_LONG, BAD_VALUE, NONE, "SET_FILTER's text is longer than a page")
CAUSE(FILTER_FAULT, BAD_VALUE, NONE, "SET_FILTER's text cannot be read")
CAUSE(FILTER_PMU, UNSUPPORTED, NONE,
      "SET_FILTER is for tracepoints and address filters; {s0} has neither")
CAUSE(FILTER_TEXT, BAD_VALUE, FILTER_FIELDS, "the kernel does not understand the filter \"{s0}\"")
CAUSE(FILTER_HAS_ONE, BUSY, OPEN_ANOTHER, "it has a filter already (SET_FILTER)")
CAUSE(FILTER_KIND, UNSUPPORTED, NONE,
      "only tracepoints and tracing PMUs take a filter, or the address filter \"{s0}\" is wrong")
CAUSE(FILTER_ERRNO, OTHER, NONE, "filter \"{s0}\": {s1}")
CAUSE(BPF_FD, BAD_VALUE, NONE, "SET_BPF: {d0} is no descriptor of a BPF program")
CAUSE(BPF_HAS_ONE, BUSY, NONE, "it has a BPF program already")
CAUSE(BPF_KIND, UNSUPPORTED, NONE, "a BPF program of this type cannot be attached to it ({s0})")
CAUSE(BPF_TRACEPOINTS, UNSUPPORTED, NONE,
      "only tracepoints can be asked for their BPF programs (QUERY_BPF), not {s0}")
CAUSE(QUERY_FAULT, BAD_VALUE, NONE, "QUERY_BPF's argument cannot be read")
CAUSE(QUERY_ROOM, BAD_VALUE, NONE, "QUERY_BPF asks for {u0} ids, a tracepoint has 64 at most")
CAUSE(BPF_ROOM, BAD_VALUE, NONE, "it has {u0} BPF programs, room is for {u1}")
CAUSE(MODIFY_TYPE, BAD_VALUE, NONE, "MODIFY_ATTRIBUTES cannot change attr.type, which is {u0}")
CAUSE(MODIFY_BREAKPOINTS, UNSUPPORTED, OPEN_ANOTHER,
      "only breakpoints can be modified (MODIFY_ATTRIBUTES)")
CAUSE(MODIFY_FIELDS, BAD_VALUE, NONE,
      "of a breakpoint only address, length and access can be modified, and they must fit together")
CAUSE(PAUSE_NO_BUFFER, BAD_VALUE, NONE, "it has no buffer to pause (PAUSE_OUTPUT)")
CAUSE(MAP_INHERITED, UNSUPPORTED, MAP_PER_CPU,
      "an inherited event on all CPUs cannot be mapped: too many would write there")
CAUSE(MAP_PRIVATE, BAD_VALUE, NONE, "the mapping must be MAP_SHARED")
CAUSE(MAP_LENGTH, BAD_VALUE, NONE, "the length must be a multiple of the page size")
CAUSE(MAP_PAGES, BAD_VALUE, NONE,
      "the length must be one page, or one and a power of two; it is {u0} pages")
CAUSE(MAP_AUX_FIRST, BAD_VALUE, NONE,
      "an offset maps the AUX area, which needs a data buffer first")
CAUSE(MAP_AUX_WORDS, BAD_VALUE, NONE,
      "an AUX area is mapped behind the data, at aux_offset and with aux_size of the user page, a "
      "power of two")
CAUSE(MAP_AUX_OTHER, BAD_VALUE, NONE,
      "the AUX area is mapped at {x0} already, with {u1} pages; map it there and as large")
CAUSE(MAP_NO_AUX, UNSUPPORTED, NONE, "{s0} has no AUX area")
CAUSE(MAP_OTHER_SIZE, BAD_VALUE, NONE, "the event is mapped with {u0} pages already; map as many")
CAUSE(MAP_REDIRECTED, BUSY, NONE, "the event's output goes to another one's buffer; map that one")
CAUSE(MAP_OUTSIDE, UNSUPPORTED, READ_IT,
      "the user page of an event of the virtual PMU cannot be mapped outside of its guests")
CAUSE(MAP_LIMIT, MLOCK, RAISE_MLOCK,
      "mapping its page goes over kernel.perf_event_mlock_kb and RLIMIT_MEMLOCK")
CAUSE(BUFFER_LIMIT, MLOCK, FEWER_PAGES,
      "{u0} pages ({u1} kB) for {s0} would go over what is left to you of {s1}")
CAUSE(BUFFER_PAGES, BAD_VALUE, NONE,
      "a buffer of {u0} pages: their number must be a power of two, and less than 2 GiB")
CAUSE(BUFFER_TWICE, BAD_VALUE, NONE, "it has a buffer already")
CAUSE(BUFFER_LAYOUTS, BAD_VALUE, IDENTIFY,
      "its records are laid out differently from those of {s0}, and could not be told apart from "
      "them in one buffer")
CAUSE(SNAPSHOT_FORWARD, BAD_VALUE, NONE, "only with write_backward is there something to snapshot")

/* Files of /proc/sys and /sys that show settings. */
CAUSE(SETTING_NUMBER, BAD_VALUE, NONE, "{s0} takes one number")
CAUSE(SETTING_LEAST, BAD_VALUE, NONE, "{s0} must be at least {d0}")
CAUSE(SETTING_RANGE, BAD_VALUE, NONE, "{s0} is from {d0} to {d1}")
CAUSE(SETTING_USED, BUSY, NONE,
      "{s0} cannot change while {u0} events sample call chains; close them")
CAUSE(RATE_UNLIMITED, BAD_VALUE, NONE,
      "perf_cpu_time_max_percent is {u0}, which switches the limit off; set it to between 1 and "
      "99 first")
CAUSE(SETTING_ROOT, CAPABILITY, NONE, "only root may write to {s0}")
CAUSE(SETTING_FIXED, UNSUPPORTED, NONE, "{s0} cannot be written to")

/* What the command line counts by itself. */
CAUSE(TOOL_TARGET, UNSUPPORTED, TASK_CLOCK,
      "it is the CPU time of a command that is started, and something else is measured here")

/* Limits of the process and the system; the rest. */
CAUSE(FD_PROCESS, FD_LIMIT, RAISE_NOFILE,
      "the process has no file descriptor left: the limit is {u0}, the hard limit {u1}; every "
      "event takes one per CPU and thread")
CAUSE(FD_NONE, FD_LIMIT, ULIMIT_N, "no descriptor is left")
CAUSE(FD_SYSTEM, FD_LIMIT, RAISE_FILE_MAX, "the system has no file descriptor left")
CAUSE(KERNEL_MEMORY, MEMORY, NONE, "the kernel is out of memory")
CAUSE(SIGNAL_CAME, BUSY, NONE,
      "a signal came while the target was in execve, or ftrace and perf want the same uprobe; try "
      "again")
CAUSE(POINTER_FAULT, BAD_VALUE, NONE, "a pointer in the attr is not readable")
CAUSE(SESSION_GONE, SESSION, NONE, "the session of the virtual PMU has ended")
CAUSE(SESSION_FD, SESSION, NONE, "the session of the virtual PMU has no descriptor left: {s0}")
CAUSE(SESSION_SHARE, SESSION, CLOSE_OTHERS,
      "the program has {d0} descriptors of the session's, which has {d1} left for all")
CAUSE(SESSION_MEMORY, SESSION, END_TASKS,
      "the program has tasks and inherited events for {d0} MB of the session's memory, which has "
      "{d1} MB left for all")
CAUSE(SESSION_AWAITS, SESSION, NONE,
      "{d0} tasks with the same page for their counts were announced, and none has begun")
CAUSE(PROC_NAMESPACE, SESSION, MOUNT_PROC,
      "/proc is that of another PID namespace, so it does not say whose process is whose")
CAUSE(NO_SESSION, SESSION, NONE, "there is no virtual PMU: {s0}{s1}")
CAUSE(SESSION_ERRNO, SESSION, NONE, "the session of the virtual PMU cannot do it: {s0}")
CAUSE(ERRNO, OTHER, NONE, "{s0}")
CAUSE(CALL_ERRNO, OTHER, NONE, "{s0}: {s1}")
/* clang-format on */
