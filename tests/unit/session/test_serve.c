/* Whose call it is that the session serves, and for how long it looks at a caller's slot. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "session/session-priv.h"
#include "unit/session/mock-guest.h"
#include "unit/test.h"

static struct session *start(void)
{
	struct session_config config = {.paranoid = SESSION_PARANOID_HOST, .segment_fd = -1};
	struct session *s = NULL;
	char why[300];

	if (session_new(&config, &s, why, sizeof(why))) {
		fprintf(stderr, "session_new: %s\n", why);
		exit(1);
	}
	return s;
}

/* It is the same thread, and its event goes on. */
static void change_meters(struct mock *g)
{
	struct pe_attr attr = mock_attr();
	u64 h, words[1];

	NEED(mock_hello(g, -1, 0) == 0);
	attr.disabled = 0;
	NEED(mock_open(g, &attr, 0, -1, WIRE_NO_EVENT, 0, &h) >= 0);
	mock_count(g, 100, 1);
	NEED(mock_read(g, h, words, sizeof(words)) == 8 && words[0] == 100);
	mock_set_meter(g, mock_take_meter(g));
	NEED(mock_call(g, WIRE_OP_PING) == 0);
	mock_count(g, 50, 1);
	NEED(mock_read(g, h, words, sizeof(words)) == 8 && words[0] == 150);
}

TEST(a_thread_that_calls_with_another_meter_is_the_same)
{
	struct session *s = start();
	pid_t child = mock_fork(s, change_meters);
	int status = 0;

	while (waitpid(child, &status, WNOHANG) == 0)
		session_run(s, 10);
	EXPECT_EQ(status, 0);
	session_free(s);
}

/* Of two callers at different places one is on another CPU than the session. */
static void call_from_everywhere(struct mock *g)
{
	NEED(mock_hello(g, -1, 0) == 0);
	for (int i = 0; i < 20; i++) {
		g->cpu = i & 1;
		NEED(mock_call(g, WIRE_OP_PING) == 0);
	}
}

TEST(no_slot_is_looked_at_after_a_turn)
{
	struct session *s = start();
	pid_t child = mock_fork(s, call_from_everywhere);
	int status = 0;

	while (waitpid(child, &status, WNOHANG) == 0) {
		session_run(s, 10);
		EXPECT_EQ(s->busy_poll.nr, 0);
	}
	EXPECT_EQ(status, 0);
	session_free(s);
}

static int may_call[2];

static void call_once(struct mock *g)
{
	u8 cpu;

	NEED(mock_hello(g, -1, 0) == 0);
	NEED(read(may_call[0], &cpu, 1) == 1);
	g->cpu = cpu;
	mock_call(g, WIRE_OP_PING);
	pause();
}

TEST(no_slot_is_looked_at_of_who_ended_in_the_turn_of_its_call)
{
	struct guest_process *p = NULL, *at;
	struct session *s;
	struct wire_slot *sl;
	cpu_set_t before, one;
	siginfo_t info;
	u8 other;
	pid_t child;

	if (sysconf(_SC_NPROCESSORS_CONF) < 2)
		return;
	/* The session stays on one CPU, and the guest says that it is on another. */
	ASSERT(sched_getaffinity(0, sizeof(before), &before) == 0);
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	ASSERT(sched_setaffinity(0, sizeof(one), &one) == 0);
	other = CPU_ISSET(0, &one) ? 1 : 0;
	ASSERT(pipe(may_call) == 0);
	s = start();
	child = mock_fork(s, call_once);
	for (int i = 0; i < 1000 && !p; i++) {
		session_run(s, 10);
		list_for_each_entry (at, &s->guests.processes, link)
			if (at->pid == child && at->page)
				p = at;
	}
	ASSERT(p);
	sl = guest_process_slot(p, 0);
	EXPECT_EQ(write(may_call[1], &other, 1), 1);
	while (__atomic_load_n(&sl->word, __ATOMIC_ACQUIRE) == WIRE_IDLE)
		sched_yield();
	serve_slot(p, 0);
	EXPECT_EQ(s->busy_poll.nr, 1);
	kill(child, SIGKILL);
	EXPECT_EQ(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
	instant_run(s, NULL, NULL);
	EXPECT(p->sock_poll.gone);
	EXPECT_EQ(s->busy_poll.nr, 0);
	EXPECT_EQ(sl->awake, 0);
	waitpid(child, NULL, 0);
	close(may_call[0]);
	close(may_call[1]);
	session_free(s);
	sched_setaffinity(0, sizeof(before), &before);
}

/*
 * Descriptors that nobody takes: there is no room for another, and the call fails. What it says
 * then is no event's; it would be read as a size to be stored [SIZE-09].
 */
static void take_no_descriptor(struct mock *g)
{
	struct pe_attr attr = mock_attr();
	struct wire_slot *sl = g->slot;
	s64 ret = 0;

	NEED(mock_hello(g, -1, 0) == 0);
	sl = g->slot;
	for (u32 i = 0; i < 5000 && ret == 0; i++) {
		sl->args.open = (struct wire_open_args){
			.cpu = -1, .group = WIRE_NO_EVENT, .attr_size = attr.size};
		sl->len = sizeof(attr);
		memcpy(sl->data, &attr, sizeof(attr));
		ret = mock_call(g, WIRE_OP_OPEN);
	}
	NEED(ret == -EMFILE);
	NEED(sl->refusal.cause == CAUSE_SESSION_FD);
	NEED(!sl->result.open_refusal.attr_size && !(sl->reply_flags & WIRE_REPLY_FD));
}

TEST(a_descriptor_that_cannot_be_sent)
{
	struct session *s = start();
	pid_t child = mock_fork(s, take_no_descriptor);
	int status = 0;

	while (waitpid(child, &status, WNOHANG) == 0)
		session_run(s, 10);
	EXPECT_EQ(status, 0);
	session_free(s);
}
