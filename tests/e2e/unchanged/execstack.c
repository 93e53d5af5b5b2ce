/* Linked to have an executable stack, as programs with trampolines are. */
#include "say.h"

#include <pthread.h>
#include <sys/wait.h>

static __attribute__((noinline)) int on_stack(int value)
{
	unsigned char code[] = {0xb8, 0, 0, 0, 0, 0xc3};
	int (*volatile f)(void) = (int (*)(void))(void *)code;

	memcpy(code + 1, &value, sizeof(value));
	__asm__ volatile("" ::: "memory");
	return f();
}

static __attribute__((noinline)) int deep(int n)
{
	volatile char room[5000];

	room[0] = 0;
	return n ? deep(n - 1) + room[0] : on_stack(3) + on_stack(4);
}

static void *thread(void *arg)
{
	SAY("in a thread %d", on_stack(5));
	return arg;
}

int main(void)
{
	char line[300];
	pthread_t t;
	FILE *f;

	SAY("%d %d", on_stack(1), on_stack(2));
	SAY("deep %d", deep(200));
	f = fopen("/proc/self/maps", "r");
	while (fgets(line, sizeof(line), f))
		if (strstr(line, "[stack]"))
			SAY("%.4s", strchr(line, ' ') + 1);
	pthread_create(&t, NULL, thread, NULL);
	pthread_join(t, NULL);
	fflush(stdout);
	if (!fork()) {
		SAY("in a child %d", on_stack(6));
		_exit(0);
	}
	wait(NULL);
	return 0;
}
