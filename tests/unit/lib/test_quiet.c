/*
 * What costs no system call, held to it by a seccomp filter that kills: making a machine and
 * parsing generic software names look at no file, and reading one's own counter makes no call at
 * all.
 */
#include "unit/lib/fixture.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/count/selfpage.h"

/* Allows exactly @allowed; anything else ends the process with SIGSYS. */
static void allow_only(const unsigned int *allowed, size_t n)
{
	struct sock_filter code[32];
	unsigned short at = 0;
	struct sock_fprog prog = {.filter = code};

	code[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						  offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < n; i++) {
		code[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[i], 0,
							  1);
		code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	}
	code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	prog.len = at;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
		_exit(3);
}

static void in_child(int (*fn)(void))
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0)
		syscall(SYS_exit_group, fn()); /* past what sanitizers do in _exit() */
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status))
		TEST_FAIL("the child ended with status %#x", status);
}

/* What malloc needs, and sanitizers' allocators; nothing that has to do with files. */
static const unsigned int memory_calls[] = {SYS_brk,     SYS_mmap,    SYS_munmap,     SYS_mremap,
					    SYS_madvise, SYS_futex,   SYS_exit_group, SYS_getpid,
					    SYS_gettid,  SYS_mprotect};

static int parse_generic(void)
{
	struct ap_machine *m;
	struct ap_specs *s;

	allow_only(memory_calls, ARRAY_SIZE(memory_calls));
	if (ap_machine_new(&m, NULL) ||
	    ap_specs_parse(&s, m, "task-clock,{page-faults:u,cs}:u,cpu-migrations,1:9,mem:0x1000:u",
			   NULL))
		return 1;
	if (ap_specs_count(s) != 6)
		return 2;
	ap_specs_free(s);
	ap_machine_free(m);
	return 0;
}

TEST(software_names_touch_no_file)
{
	in_child(parse_generic);
}

static u64 counter(u32 index)
{
	return index + 40;
}

static u64 ticks(void)
{
	return 1000;
}

static int read_page(void)
{
	static const struct ap__pmc_ops ops = {.read = counter, .clock = ticks};
	static const unsigned int leave[] = {SYS_exit_group};
	struct perf_event_mmap_page page;
	struct ap_value v;

	memset(&page, 0, sizeof(page));
	page.capabilities = BIT(2) | BIT(3);
	page.index = 2;
	page.pmc_width = 48;
	page.time_mult = 1;
	allow_only(leave, ARRAY_SIZE(leave));
	for (int i = 0; i < 1000; i++)
		if (!ap__selfpage_read(&page, &ops, &v) || v.value != 42 || v.running != 1000)
			return 1;
	return 0;
}

TEST(a_self_read_makes_no_call)
{
	in_child(read_page);
}
