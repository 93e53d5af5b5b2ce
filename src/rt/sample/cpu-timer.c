#include "rt/sample/cpu-timer.h"

#include "abi/trace.h"
#include "rt/task/process.h"
#include "sys/guest-call.h"
#include "sys/string.h"

#include <linux/time.h>

#define NSEC_PER_SEC 1000000000ull

static void end(struct cpu_timer *timer)
{
	if (timer->period)
		raw_call1(__NR_timer_delete, timer->id);
	timer->period = 0;
}

void cpu_timer_set(struct cpu_timer *timer, u32 slot, u64 period)
{
	struct sigevent event;
	struct __kernel_itimerspec when;

	if (timer->period == period)
		return;
	end(timer);
	if (!period)
		return;
	memset(&event, 0, sizeof(event));
	event.sigev_signo = SIGNAL_KICK;
	event.sigev_notify = SIGEV_SIGNAL | SIGEV_THREAD_ID;
	event._sigev_un._tid = sys_gettid();
	event.sigev_value.sival_ptr = (void *)(TRACE_SIG_TIMER + slot);
	if (sys_failed(raw_call3(__NR_timer_create, CLOCK_THREAD_CPUTIME_ID, (long)&event,
				 (long)&timer->id)))
		return;
	timer->period = period;
	when.it_interval.tv_sec = (long long)(period / NSEC_PER_SEC);
	when.it_interval.tv_nsec = (long long)(period % NSEC_PER_SEC);
	when.it_value = when.it_interval;
	if (sys_failed(raw_call4(__NR_timer_settime, timer->id, 0, (long)&when, 0)))
		end(timer);
}

bool cpu_timer_is(const siginfo_t *info, u32 *slot, u32 *periods)
{
	u64 value = (u64)info->si_ptr - TRACE_SIG_TIMER;

	if (info->si_signo != SIGNAL_KICK || info->si_code != SI_TIMER || value >= TRACE_EVENTS)
		return false;
	*slot = (u32)value;
	*periods = 1 + (info->si_overrun > 0 ? (u32)info->si_overrun : 0);
	return true;
}
