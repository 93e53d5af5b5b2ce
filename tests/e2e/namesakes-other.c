/* For namesakes.c. */
void other(long n) asm("_Z5otherl");

static volatile long things[64];

__attribute__((noinline)) static void work(long n)
{
	for (long i = 0; i < n; i++)
		asm volatile("");
}

void other(long n)
{
	for (int i = 0; i < 32; i++)
		things[i] = n;
	work(n);
	asm volatile("");
}
