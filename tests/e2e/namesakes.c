/* Two functions of one name, and a thread whose name is to steer a terminal. */
#include <sys/prctl.h>

void other(long n);

__attribute__((noinline)) static void work(long n)
{
	for (long i = 0; i < n; i++)
		asm volatile("");
}

int main(void)
{
	prctl(PR_SET_NAME, "a\033[31m\nb");
	work(300000000);
	other(150000000);
	return 0;
}
