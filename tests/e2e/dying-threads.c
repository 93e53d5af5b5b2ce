/*
 * Dies while its threads are each at a place of their own: in a system call, in a loop that makes
 * none, waiting for each other. What they have in registers says which they are.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

static atomic_int ready;
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static volatile int never;

__attribute__((noinline)) static void in_a_loop(void)
{
	ready++;
	asm volatile("movq $0x1111222233334444, %%rbx\n"
		     "movq $1, %%r12\n"
		     "movq %%r12, %%xmm3\n"
		     "1: testl $1, %0\n"
		     "jz 1b\n"
		     :
		     : "m"(never)
		     : "rbx", "r12", "xmm3", "memory");
}

__attribute__((noinline)) static void in_a_call(void)
{
	ready++;
	pause();
	asm volatile("");
}

__attribute__((noinline)) static void at_a_lock(void)
{
	ready++;
	pthread_mutex_lock(&held);
	asm volatile("");
}

static void *begin(void *where)
{
	((void (*)(void))where)();
	return NULL;
}

__attribute__((noinline)) static void the_end(void)
{
	asm volatile("ud2");
}

int main(void)
{
	void (*const places[])(void) = {in_a_loop, in_a_call, at_a_lock};
	pthread_t thread;

	pthread_mutex_lock(&held);
	for (int i = 0; i < 3; i++)
		pthread_create(&thread, NULL, begin, (void *)places[i]);
	while (ready < 3)
		usleep(1000);
	usleep(300000);
	the_end();
	return 0;
}
