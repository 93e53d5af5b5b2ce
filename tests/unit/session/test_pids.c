/* What is asked of the kernel about processes. */
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "session/session-priv.h"
#include "unit/test.h"

#define NOBODY 65534

enum answer { NOT_CREDITED, CREDITED, NO_NAMESPACES };

/* A process in a user namespace of its own that nobody may look into; its pid, or 0. */
static pid_t start_hidden(void)
{
	char ready = 0;
	int fds[2];
	pid_t pid;

	if (pipe(fds))
		return 0;
	pid = fork();
	if (pid == 0) {
		ready = unshare(CLONE_NEWUSER) == 0 && prctl(PR_SET_DUMPABLE, 0) == 0;
		(void)!write(fds[1], &ready, 1);
		pause();
		_exit(0);
	}
	close(fds[1]);
	(void)!read(fds[0], &ready, 1);
	close(fds[0]);
	if (ready || pid < 0)
		return pid > 0 ? pid : 0;
	kill(pid, SIGKILL);
	return 0;
}

/* As an ordinary user: root may look into everything. */
static enum answer ask(void)
{
	enum answer answer = NOT_CREDITED;
	pid_t pid;

	if (geteuid() == 0 &&
	    (setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY)))
		return NO_NAMESPACES;
	pid = start_hidden();
	if (!pid)
		return NO_NAMESPACES;
	for (enum core_cap cap = CORE_CAP_PERFMON; cap <= CORE_CAP_IPC_LOCK; cap++)
		if (cred_capable(pid, pid, cap))
			answer = CREDITED;
	kill(pid, SIGKILL);
	return answer;
}

TEST(capabilities_of_a_namespace_count_in_it_only)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0)
		_exit((int)ask());
	EXPECT_EQ(waitpid(pid, &status, 0), pid);
	EXPECT(WIFEXITED(status));
	EXPECT(WEXITSTATUS(status) != CREDITED);
}

/* The machine's first one is the only one that root of is root [REC-15]. */
TEST(the_first_user_namespace)
{
	int status = 0;
	struct stat st;
	pid_t pid;

	if (stat("/proc/self/ns/user", &st) || st.st_ino != 0xeffffffd)
		return;
	EXPECT(cred_capable(getpid(), getpid(), CORE_CAP_INITIAL));
	pid = fork();
	if (pid == 0)
		_exit(unshare(CLONE_NEWUSER) ? 2
					     : cred_capable(getpid(), getpid(), CORE_CAP_INITIAL));
	EXPECT_EQ(waitpid(pid, &status, 0), pid);
	EXPECT(WIFEXITED(status) && WEXITSTATUS(status) != 1);
}

TEST(whose_child)
{
	EXPECT(pid_is_child(getppid(), getpid()));
	EXPECT(!pid_is_child(getpid(), getppid()));
}

/*
 * As an ordinary user, to whom /proc does not show who is another's; 2: it cannot be hidden here.
 */
static int hidden_is_a_child(void)
{
	if (geteuid() || unshare(CLONE_NEWNS) ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("proc", "/proc", "proc", 0, "hidepid=2") || setresgid(NOBODY, NOBODY, NOBODY) ||
	    setresuid(NOBODY, NOBODY, NOBODY) || prctl(PR_SET_DUMPABLE, 1) ||
	    !access("/proc/1/status", F_OK))
		return 2;
	return pid_is_child(getpid(), 1);
}

TEST(who_is_hidden_is_no_child)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0)
		_exit(hidden_is_a_child());
	EXPECT_EQ(waitpid(pid, &status, 0), pid);
	EXPECT(WIFEXITED(status) && WEXITSTATUS(status) != 1);
}
