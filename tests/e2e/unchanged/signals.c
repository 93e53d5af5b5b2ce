/* Every use of signals that is not in the corpus because its timing is not fixed. */
#include "say.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>

static volatile sig_atomic_t count, depth, deepest;
static sigjmp_buf back;

static void counts(int sig)
{
	(void)sig;
	count++;
}

static void handle(int sig, void (*h)(int), int flags)
{
	struct sigaction sa = {.sa_flags = flags};

	sa.sa_handler = h;
	sigaction(sig, &sa, NULL);
}

static void alarm_ms(long ms, long every)
{
	struct itimerval t = {{0, every * 1000}, {0, ms * 1000}};

	setitimer(ITIMER_REAL, &t, NULL);
}

static int ticks_to_fd = -1;

/* The fifth tick makes a read that was restarted until then return. */
static void ticks(int sig)
{
	(void)sig;
	if (++count == 5)
		write(ticks_to_fd, "x", 1);
}

/*
 * A read is interrupted or restarted, by SA_RESTART. The timer repeats: a single shot that came
 * while this process was kept waiting for the CPU would be over before the call that it is to
 * interrupt.
 */
static void interrupted_calls(void)
{
	struct timespec minute = {60, 0}, left;
	int p[2];
	char c;
	ssize_t n;

	pipe(p);
	handle(SIGALRM, counts, 0);
	alarm_ms(20, 20);
	n = read(p[0], &c, 1);
	SAY("read without SA_RESTART: %zd %s, a signal: %d", n, strerror(errno), count > 0);
	n = nanosleep(&minute, &left);
	SAY("nanosleep: %zd %s, rest under a minute: %d", n, strerror(errno), left.tv_sec < 60);
	n = pause();
	SAY("pause: %zd %s", n, strerror(errno));
	n = usleep(60000000);
	HOLDS(n == -1 && errno == EINTR);
	alarm_ms(0, 0);
	count = 0;
	ticks_to_fd = p[1];
	handle(SIGALRM, ticks, SA_RESTART);
	alarm_ms(20, 20);
	n = read(p[0], &c, 1);
	SAY("read with SA_RESTART: %zd %c, five signals: %d", n, c, count >= 5);
	alarm_ms(0, 0);
	close(p[0]);
	close(p[1]);
}

/* Signals at a high rate over a computation with a known result. */
static void storm(void)
{
	uint64_t v = 1;

	count = 0;
	handle(SIGALRM, counts, SA_RESTART);
	alarm_ms(1, 1);
	for (long i = 0; i < 60000000 && count < 100; i++)
		v = v * 6364136223846793005u + 1442695040888963407u;
	alarm_ms(0, 0);
	v = 1;
	alarm_ms(1, 1);
	for (long i = 0; i < 3000000; i++)
		v = v * 6364136223846793005u + 1442695040888963407u;
	alarm_ms(0, 0);
	SAY("after a storm: %llx", (unsigned long long)v);
}

static void nests(int sig)
{
	depth++;
	if (depth > deepest)
		deepest = depth;
	if (depth < 5)
		raise(sig);
	depth--;
}

static void overflow(int sig, siginfo_t *si, void *uc)
{
	(void)sig;
	(void)uc;
	(void)si;
	siglongjmp(back, 1);
}

static __attribute__((noinline)) int eat(int n)
{
	volatile char big[4096];

	big[0] = (char)n;
	if (n == -1)
		return 0;
	return eat(n + 1) + big[0];
}

static void stack_overflow(void)
{
	static char alt[65536];
	stack_t ss = {.ss_sp = alt, .ss_size = sizeof(alt)}, now;
	struct sigaction sa = {.sa_flags = SA_SIGINFO | SA_ONSTACK};
	struct rlimit rl = {1 << 20, 1 << 20};

	setrlimit(RLIMIT_STACK, &rl);
	sigaltstack(&ss, NULL);
	sa.sa_sigaction = overflow;
	sigaction(SIGSEGV, &sa, NULL);
	for (volatile int i = 0; i < 3; i++) {
		if (sigsetjmp(back, 1) == 0)
			eat(0);
		SAY("stack overflow %d survived", i);
	}
	sigaltstack(NULL, &now);
	HOLDS(now.ss_sp == alt && now.ss_flags == 0);
	handle(SIGSEGV, SIG_DFL, 0);
}

/* The least size is the kernel's oldest, not what a frame with all features takes. */
static void small_stacks(void)
{
	static const size_t sizes[] = {1, 2047, 2048, 4096, 8192};
	static char alt[8192];

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		stack_t ss = {.ss_sp = alt, .ss_size = sizes[i]}, was;

		TRY("sigaltstack", sigaltstack(&ss, NULL));
		sigaltstack(NULL, &was);
		SAY("size %zu: now %zu, flags %d", sizes[i], was.ss_size, was.ss_flags);
	}
	handle(SIGUSR1, counts, SA_ONSTACK);
	count = 0;
	raise(SIGUSR1);
	SAY("on 8 KB: %d", count);
}

static volatile int edit;
static sigjmp_buf edited_back;

static void edits(int sig, siginfo_t *si, void *context)
{
	ucontext_t *uc = context;
	greg_t *segments = &uc->uc_mcontext.gregs[REG_CSGSFS];

	if (sig == SIGSEGV) {
		SAY("edit %d: code %d, error %llx, trap %lld", edit, si->si_code,
		    (long long)uc->uc_mcontext.gregs[REG_ERR],
		    (long long)uc->uc_mcontext.gregs[REG_TRAPNO]);
		siglongjmp(edited_back, 1);
	}
	SAY("the stack's flags %d, size %zu", uc->uc_stack.ss_flags, uc->uc_stack.ss_size);
	switch (edit) {
	case 0: *segments = (*segments & ~0xffffll) | 0x10; break;
	case 1: *segments = (*segments & 0xffffffffffffll) | 0x18ll << 48; break;
	case 2:
		uc->uc_stack.ss_sp = (void *)0x123;
		uc->uc_stack.ss_size = 12;
		__attribute__((fallthrough));
	default: uc->uc_mcontext.gregs[REG_RIP] += 2;
	}
}

/*
 * Frames that a handler has edited so that they cannot be returned to, or set a stack that is none.
 */
static void edited(void)
{
	static char alt[65536];
	stack_t ss = {.ss_sp = alt, .ss_size = sizeof(alt), .ss_flags = SS_ONSTACK}, was;
	struct sigaction sa = {.sa_sigaction = edits, .sa_flags = SA_SIGINFO | SA_ONSTACK};

	sigaltstack(&ss, NULL);
	sigaltstack(NULL, &was);
	SAY("flags of a stack that was set as if on it: %d", was.ss_flags);
	sigaction(SIGILL, &sa, NULL);
	sigaction(SIGSEGV, &sa, NULL);
	for (edit = 0; edit < 4; edit++)
		if (!sigsetjmp(edited_back, 1))
			__asm__ volatile("ud2" ::: "memory");
	sigaltstack(NULL, &was);
	SAY("still that stack: %d", was.ss_sp == alt && was.ss_size == sizeof(alt));
	handle(SIGILL, SIG_DFL, 0);
	handle(SIGSEGV, SIG_DFL, 0);
}

static void signal_fd(void)
{
	struct signalfd_siginfo si[2];
	union sigval v = {.sival_int = 77};
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGRTMIN + 3);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	sigqueue(getpid(), SIGRTMIN + 3, v);
	kill(getpid(), SIGUSR1);
	HOLDS(read(fd, si, sizeof(si)) == (ssize_t)sizeof(si));
	SAY("signalfd: %u %u value %d", si[0].ssi_signo, si[1].ssi_signo - (unsigned int)SIGRTMIN,
	    si[1].ssi_int);
	HOLDS(read(fd, si, sizeof(si)) == -1 && errno == EAGAIN);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	close(fd);
}

static void posix_timer(void)
{
	struct itimerspec its = {{0, 2000000}, {0, 2000000}};
	struct sigevent se = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + 1};
	timer_t id;

	count = 0;
	handle(SIGRTMIN + 1, counts, 0);
	HOLDS(timer_create(CLOCK_MONOTONIC, &se, &id) == 0);
	timer_settime(id, 0, &its, NULL);
	while (count < 5)
		pause();
	timer_delete(id);
	SAY("posix timer ticked");
}

static int (*volatile own)(int);

static void code_in_fault(int sig, siginfo_t *si, void *context)
{
	ucontext_t *uc = context;

	SAY("signal %d code %d at own address: %d", sig, si->si_code, si->si_addr == (void *)own);
	/* Return to the caller as the function that is not there would. */
	uc->uc_mcontext.gregs[REG_RIP] = *(greg_t *)uc->uc_mcontext.gregs[REG_RSP];
	uc->uc_mcontext.gregs[REG_RSP] += 8;
	uc->uc_mcontext.gregs[REG_RAX] = 1234;
}

static void jump_into_nowhere(void)
{
	struct sigaction sa = {.sa_flags = SA_SIGINFO};

	sa.sa_sigaction = code_in_fault;
	sigaction(SIGSEGV, &sa, NULL);
	own = (int (*)(int))(uintptr_t)0x12345000;
	SAY("call of unmapped: %d", own(1));
	own = (int (*)(int))mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				 -1, 0);
	*(unsigned char *)own = 0xc3;
	SAY("call of data: %d", own(1));
	/* A non-canonical address faults on the jump itself; si_addr is then 0. */
	handle(SIGSEGV, SIG_DFL, 0);
}

#ifndef SYS_uretprobe
#define SYS_uretprobe 335
#endif

/* The kernel lets only its own return probes call it (Linux 6.11). */
static __attribute__((noipa)) long call_uretprobe(void)
{
	long ret;

	__asm__ volatile("syscall\n	.globl behind_uretprobe\nbehind_uretprobe:"
			 : "=a"(ret)
			 : "0"(SYS_uretprobe)
			 : "rcx", "r11", "memory");
	return ret;
}

extern const char behind_uretprobe[];

static void raised_by_call(int sig, siginfo_t *si, void *context)
{
	const greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;

	SAY("a call has raised signal %d code %d errno %d address %p, result %lld at %s", sig,
	    si->si_code, si->si_errno, si->si_addr, (long long)regs[REG_RAX],
	    regs[REG_RIP] == (greg_t)behind_uretprobe ? "its end" : "another place");
}

static void calls_that_raise(void)
{
	static const char *const how[] = {"handled", "default", "ignored", "blocked"};
	struct sigaction sa = {.sa_sigaction = raised_by_call, .sa_flags = SA_SIGINFO};
	sigset_t ill;
	int status;

	sigemptyset(&ill);
	sigaddset(&ill, SIGILL);
	for (int i = 0; i < 4; i++) {
		if (!fork()) {
			if (i == 0 || i == 3)
				sigaction(SIGILL, &sa, NULL);
			else
				signal(SIGILL, i == 1 ? SIG_DFL : SIG_IGN);
			if (i == 3)
				sigprocmask(SIG_BLOCK, &ill, NULL);
			SAY("uretprobe: %ld", call_uretprobe());
			_exit(0);
		}
		wait(&status);
		SAY("%s: %x", how[i], (unsigned int)status & 0x7f7f);
	}
}

static void faulted_there(int sig, siginfo_t *si, void *context)
{
	(void)context;
	SAY("signal %d code %d address %p", sig, si->si_code, si->si_addr);
	_exit(0);
}

/* Calls through the legacy page, with a pointer or a stack that cannot be accessed. */
static void bad_vsyscalls(void)
{
	static const struct {
		unsigned long entry, first, second, stack;
	} calls[] = {
		{0xffffffffff600000, 1, 0, 0}, {0xffffffffff600000, 0, 1, 0},
		{0xffffffffff600400, 1, 0, 0}, {0xffffffffff600800, 1, 0, 0},
		{0xffffffffff600000, 0, 0, 8}, {0xffffffffff600010, 0, 0, 0},
	};
	static char room[65536];
	unsigned long place[2] = {0};
	stack_t alt = {.ss_sp = room, .ss_size = sizeof(room)};
	struct sigaction sa = {.sa_sigaction = faulted_there, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[4400] = "";
	int status;

	while (!strstr(line, "[vsyscall]") && fgets(line, sizeof(line), maps))
		;
	fclose(maps);
	if (!strstr(line, "[vsyscall]")) {
		SAY("no vsyscall page");
		return;
	}
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		if (!fork()) {
			sigaltstack(&alt, NULL);
			sigaction(SIGSEGV, &sa, NULL);
			__asm__ volatile(
				"	movq	%3, %%rsp\n"
				"	jmp	*%0"
				:
				: "a"(calls[i].entry), "D"(calls[i].first), "S"(calls[i].second),
				  "d"(calls[i].stack ? calls[i].stack : (unsigned long)place)
				: "memory");
			__builtin_unreachable();
		}
		wait(&status);
		SAY("vsyscall %zu: %x", i, (unsigned int)status);
	}
}

static void inherited(char **argv)
{
	sigset_t set;
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		char *args[] = {argv[0], (char *)"inherited", NULL};

		sigemptyset(&set);
		sigaddset(&set, SIGUSR2);
		sigaddset(&set, SIGRTMIN + 5);
		sigprocmask(SIG_SETMASK, &set, NULL);
		handle(SIGUSR1, SIG_IGN, 0);
		handle(SIGINT, counts, 0);
		raise(SIGUSR2);
		execv("/proc/self/exe", args);
		_exit(1);
	}
	waitpid(pid, &status, 0);
	SAY("exec'd child: %x", (unsigned int)status);
}

static int say_inherited(void)
{
	struct sigaction sa;
	sigset_t set;

	sigprocmask(SIG_SETMASK, NULL, &set);
	SAY("blocked after exec: USR2 %d RT5 %d USR1 %d", sigismember(&set, SIGUSR2),
	    sigismember(&set, SIGRTMIN + 5), sigismember(&set, SIGUSR1));
	sigpending(&set);
	SAY("pending after exec: USR2 %d", sigismember(&set, SIGUSR2));
	sigaction(SIGUSR1, NULL, &sa);
	SAY("USR1 ignored: %d", sa.sa_handler == SIG_IGN);
	sigaction(SIGINT, NULL, &sa);
	SAY("INT default: %d", sa.sa_handler == SIG_DFL);
	return 0;
}

static void children(void)
{
	siginfo_t si;
	int status, gate[2];
	char byte = 0;
	pid_t pid;

	count = 0;
	handle(SIGCHLD, counts, SA_NOCLDSTOP | SA_RESTART);
	if (pipe(gate))
		return;
	pid = fork();
	if (pid == 0) {
		raise(SIGSTOP);
		/* That it was continued is told only while it lives. */
		(void)!read(gate[0], &byte, 1);
		_exit(5);
	}
	waitpid(pid, &status, WUNTRACED);
	SAY("stopped: %d by %d", WIFSTOPPED(status), WSTOPSIG(status));
	kill(pid, SIGCONT);
	waitid(P_PID, (id_t)pid, &si, WCONTINUED);
	SAY("continued: %d", si.si_code == CLD_CONTINUED);
	(void)!write(gate[1], &byte, 1);
	close(gate[0]);
	close(gate[1]);
	waitpid(pid, &status, 0);
	SAY("left with %d, SIGCHLD %d", WEXITSTATUS(status), count);
	for (int sig = 1; sig < 32; sig++) {
		if (sig == SIGSTOP || sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU ||
		    sig == SIGCONT)
			continue;
		pid = fork();
		if (pid == 0) {
			struct rlimit rl = {0, 0};

			setrlimit(RLIMIT_CORE, &rl);
			handle(sig, SIG_DFL, 0);
			kill(getpid(), sig);
			_exit(0);
		}
		waitpid(pid, &status, 0);
		SAY("default of %d: %s %d", sig, WIFSIGNALED(status) ? "killed by" : "exit",
		    WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	}
	handle(SIGCHLD, SIG_IGN, 0);
	pid = fork();
	if (pid == 0)
		_exit(0);
	errno = 0;
	status = waitpid(pid, &status, 0);
	SAY("no zombie: %d %s", status, strerror(errno));
	handle(SIGCHLD, SIG_DFL, 0);
}

static void *spinner(void *arg)
{
	volatile int *stop = arg;

	while (!*stop)
		;
	return NULL;
}

static pthread_t target;
static volatile int hit;

static void whose(int sig)
{
	(void)sig;
	hit = pthread_equal(pthread_self(), target) ? 1 : 2;
}

static void to_threads(void)
{
	volatile int stop = 0;

	handle(SIGUSR2, whose, SA_RESTART);
	pthread_create(&target, NULL, spinner, (void *)&stop);
	pthread_kill(target, SIGUSR2);
	while (!hit)
		sched_yield();
	stop = 1;
	pthread_join(target, NULL);
	SAY("pthread_kill reached thread %d", hit);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		return say_inherited();
	interrupted_calls();
	storm();
	handle(SIGUSR1, nests, SA_NODEFER);
	raise(SIGUSR1);
	SAY("nested %d deep", deepest);
	small_stacks();
	edited();
	signal_fd();
	posix_timer();
	jump_into_nowhere();
	calls_that_raise();
	bad_vsyscalls();
	inherited(argv);
	children();
	to_threads();
	stack_overflow();
	handle(SIGPIPE, SIG_DFL, 0);
	kill(getpid(), SIGTERM);
	return 0;
}
