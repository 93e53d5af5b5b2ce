/*
 * PURPOSE: every remedy, that is what a person can do about a refusal: REMEDY(id, text). The text
 * has the numbers and names of the refusal at the places that cause-table.h describes, and may
 * stand behind another one and "; or ". Included more than once, on purpose.
 */
/* clang-format off */

/* Rights. */
REMEDY(ROOT, "run as root")
REMEDY(PARANOID,
       "as root: sysctl kernel.perf_event_paranoid={d1}; or give the program CAP_PERFMON (setcap "
       "cap_perfmon=ep FILE), or run as root")
REMEDY(USER_MODE, "count user mode only (modifier :u, exclude_kernel = 1)")
REMEDY(USER_BRANCHES, "sample branches of user mode alone (PERF_SAMPLE_BRANCH_USER)")
REMEDY(NO_NAMESPACES, "leave them out, or run as root")
REMEDY(OWN_ADDRESS, "run as root, or give an address of the program")
REMEDY(AS_ITS_USER, "run as that user or as root, or give the program CAP_PERFMON")
REMEDY(AS_ITS_USER_KILL,
       "run as that user or as root, or give the program CAP_PERFMON and CAP_KILL (sigtrap sends "
       "signals)")
REMEDY(SECCOMP,
       "in a container: docker run --cap-add PERFMON, or a seccomp profile that allows "
       "perf_event_open; under systemd: SystemCallFilter")
REMEDY(AUDIT_LOG, "look for a denial in the audit log (SELinux: class perf_event)")
REMEDY(NO_REGS_INTR, "leave out PERF_SAMPLE_REGS_INTR, or boot without lockdown")

/* Who counts. */
REMEDY(USER_SPACE, "count user mode, which anyperf can do without one")
REMEDY(USER_SPACE_RUN, "let anyperf count in user space: anyperf run")
REMEDY(NAME_SESSION,
       "name the session, for {s0} is a guest of anyperf's virtual PMU: `anyperf stat --session "
       "NAME -{s1} {s0}`, if `anyperf run --session NAME` has started it")
REMEDY(START_VIRTUAL,
       "start the program under anyperf's virtual PMU, which cannot attach to one that was not "
       "started under it: `anyperf run --session NAME -- COMMAND`, then `anyperf stat --session "
       "NAME -{s1} {s0}` with its number")
REMEDY(START_COMMAND,
       "start what is to be counted with ap_command_new(), or this program with anyperf run")
REMEDY(COUNT_STARTED,
       "count a program under anyperf's virtual PMU, which counts what is started under it and no "
       "whole CPUs: `anyperf stat -- COMMAND`")
REMEDY(GIVE_PMU,
       "give the machine a virtual PMU (KVM: -cpu host,pmu=on; clouds: a metal or larger instance)")
REMEDY(PERF_EVENTS, "it must be built with CONFIG_PERF_EVENTS")
REMEDY(MODEL_OR_KERNEL, "name a machine, as --machine=host, or use --pmu=kernel on one with a PMU")
REMEDY(SAMPLE_INSTRUCTIONS, "count it, or sample by instructions or cpu-clock")
REMEDY(LOADS_BESIDE, "open cpu/mem-loads-aux/ first, and cpu/mem-loads/ in its group")
REMEDY(KERNEL_ALONE,
       "count them in a run of their own, in which the kernel counts (anyperf stat --pmu=kernel)")
REMEDY(USER_MODE_RUN,
       "count user mode only (modifier :u, exclude_kernel = 1); under `anyperf run "
       "--kernel-mode=ignore` user mode is counted for it")
REMEDY(USER_MODE_MACHINE, "count user mode (modifier :u), or use a machine with a PMU")
REMEDY(START_UNDER, "start it in the session: `anyperf run --session NAME -- COMMAND`")
REMEDY(LIST_PMUS, "`anyperf list` shows the PMUs of this machine")
REMEDY(SEE_PMUS, "/sys/bus/event_source/devices shows the PMUs")

REMEDY(TASK_CLOCK, "task-clock is the CPU time of whatever is measured")

REMEDY(MOUNT_PROC,
       "mount the namespace's own /proc: `unshare --mount-proc`, or `mount -t proc proc /proc` in it")

/* Another target or group. */
REMEDY(NAME_PLACE, "give a task (pid 0: the caller) or a CPU")
REMEDY(NAME_TASK, "name a task")
REMEDY(PID_MEANING, "pid is a thread's id, 0 for the caller, -1 for all tasks of a CPU")
REMEDY(CPU_ONLINE, "as root: echo 1 > /sys/devices/system/cpu/cpu{d0}/online")
REMEDY(MEASURE_CPUS, "measure CPUs (-a or -C; pid -1 and no cgroup)")
REMEDY(SUBTREE_CONTROL,
       "as root, once, with any controller: echo +pids > /sys/fs/cgroup/cgroup.subtree_control")
REMEDY(PASS_LEADER, "pass the leader's descriptor, or -1 for an event by itself")
REMEDY(SPLIT_GROUP, "split it into smaller groups")
REMEDY(SMALLER_GROUPS, "use smaller groups, or :W to open the events singly then")
REMEDY(READ_SINGLY, "read the events one by one")
REMEDY(CLOSE_OTHERS, "close those events first")
REMEDY(END_TASKS, "let fewer events be inherited (attr.inherit), or have fewer tasks at a time")
REMEDY(END_OTHER, "end the other measurement first")
REMEDY(FEWER, "measure fewer of them at a time; a debugger may hold some")

/* Another attr. */
REMEDY(BRANCH_ANY, "set at least PERF_SAMPLE_BRANCH_ANY")
REMEDY(CHOOSE_ONE, "choose one")
REMEDY(SAMPLE_TID, "set TID in sample_type (Linux 6.12), which tells whose values they are")
REMEDY(CLOCK_MONOTONIC, "use CLOCK_MONOTONIC or CLOCK_MONOTONIC_RAW")
REMEDY(SAMPLE_RATE,
       "ask for at most {u1}, or as root: sysctl kernel.perf_event_max_sample_rate={u0}")
REMEDY(MAX_STACK, "ask for at most {u1}, or as root: sysctl kernel.perf_event_max_stack={u0}")
REMEDY(OLDER_FIELDS, "leave that setting out, or use a newer kernel")
REMEDY(NO_MODIFIERS, "try it without modifiers")
REMEDY(OTHER_MODIFIERS, "try other modifiers")
REMEDY(NO_EXCLUDES, "clear the exclude bits")
REMEDY(COUNT_ONLY, "set attr.sample_period to 0 to count")
REMEDY(SAMPLE_CLOCK, "count it, or sample cpu-clock instead")
REMEDY(NO_BRANCHES,
       "sample without branch stacks, or use a hardware event on a CPU that records branches")
REMEDY(FEWER_P, "use fewer p modifiers, or P for the most precise that works")
REMEDY(NO_PRECISE, "set attr.precise_ip and attr.sample_period to 0")
REMEDY(ARM64_LONG, "set config1 bit 0 (long) instead")
REMEDY(LONG_OR_RDPMC, "leave one of the two out")
REMEDY(NO_RDPMC, "leave rdpmc out, or measure a task")
REMEDY(NO_INHERIT, "clear attr.inherit")

/* Another call. */
REMEDY(UNMAP_FIRST, "unmap it before its output is redirected")
REMEDY(MAP_FIRST, "mmap it before events are redirected to it")
REMEDY(MAP_PER_CPU, "open it for each CPU, or without inherit")
REMEDY(READ_IT, "read it")
REMEDY(RAISE_MLOCK, "unmap other events, or raise one of the two limits")
REMEDY(FEWER_PAGES,
       "take at most {u2} pages ({u3} kB); or raise one of the two limits (as root: sysctl "
       "kernel.perf_event_mlock_kb; ulimit -l); or give the program CAP_IPC_LOCK")
REMEDY(IDENTIFY, "sample both with PERF_SAMPLE_IDENTIFIER and sample_id_all")
REMEDY(FILTER_FIELDS,
       "its fields are in the tracepoint's format file; strings want quotes, == and && are C's")
REMEDY(OPEN_ANOTHER, "open a new event instead")

/* Limits. */
REMEDY(RAISE_NOFILE,
       "raise the hard limit (ulimit -Hn, limits.conf, LimitNOFILE=), or measure fewer events, "
       "CPUs or threads")
REMEDY(ULIMIT_N, "raise RLIMIT_NOFILE (ulimit -n)")
REMEDY(RAISE_FILE_MAX, "as root: raise sysctl fs.file-max")
/* clang-format on */
