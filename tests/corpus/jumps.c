/* setjmp and longjmp, swapcontext, and coroutines on stacks of their own. */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

static jmp_buf top;
static ucontext_t main_context, routine[2];
static char stacks[2][65536];
static int trace[64], traced;

static __attribute__((noinline)) void deep(int n)
{
	volatile char pad[64];

	pad[0] = (char)n;
	if (n > 0)
		deep(n - 1);
	else
		longjmp(top, 42);
	pad[1] = pad[0];
}

static void coroutine(int self)
{
	for (int i = 0; i < 10; i++) {
		trace[traced++] = self * 100 + i;
		swapcontext(&routine[self], &routine[1 - self]);
	}
}

int main(void)
{
	volatile int jumps = 0, value;
	volatile unsigned int h = 0;

	value = setjmp(top);
	if (jumps++ < 20)
		deep(jumps);
	printf("%d after %d\n", value, jumps);
	for (int i = 0; i < 2; i++) {
		getcontext(&routine[i]);
		routine[i].uc_stack.ss_sp = stacks[i];
		routine[i].uc_stack.ss_size = sizeof(stacks[i]);
		routine[i].uc_link = &main_context;
		makecontext(&routine[i], (void (*)(void))coroutine, 1, i);
	}
	swapcontext(&main_context, &routine[0]);
	for (int i = 0; i < traced; i++)
		h = h * 31 + (unsigned int)trace[i];
	printf("%d switches, %u\n", traced, h);
	return 0;
}
