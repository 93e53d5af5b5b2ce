/* A library of the program beside this file: WORK is what its function is called. */
#define NOINLINE __attribute__((noinline))

int reload_work(int n);
int WORK(int n);

NOINLINE int WORK(int n)
{
	volatile int sum = 0;

	for (int i = 0; i < n; i++)
		sum += i * 3;
	return sum;
}

int reload_work(int n)
{
	return WORK(n) + 1;
}
