/*
 * Two functions and two variables of one name, one function of C++, and a thread whose name is to
 * steer a terminal. With an argument less is to do.
 */
#include <sys/prctl.h>

void other(long n) asm("_Z5otherl"); /* other(long) of C++ */

static volatile long things[64];

__attribute__((noinline)) static void work(long n)
{
	for (long i = 0; i < n; i++)
		asm volatile("");
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? 1000 : 150000000;

	(void)argv;
	prctl(PR_SET_NAME, "a\033[31m\nb");
	for (int i = 0; i < 64; i++)
		things[i] = n;
	work(2 * n);
	other(n);
	return 0;
}
