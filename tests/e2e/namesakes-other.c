/* For namesakes.c. */
void other(long n);

__attribute__((noinline)) static void work(long n)
{
	for (long i = 0; i < n; i++)
		asm volatile("");
}

void other(long n)
{
	work(n);
	asm volatile("");
}
