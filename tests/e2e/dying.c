/*
 * Dies three calls deep with known registers, so that its core can be looked at. What is in memory
 * then is `left_behind`.
 */
#include <string.h>

char left_behind[64] = "nothing";

__attribute__((noinline)) static void the_end(long n)
{
	strcpy(left_behind, "the last words of the program");
	asm volatile("movq $0x1111222233334444, %%rbx\n"
		     "movq $0x5555666677778888, %%r12\n"
		     "movq $-1, %%r13\n"
		     "movq $0x1234, %%rax\n"
		     "movq %0, %%rdx\n"
		     "xorl %%ecx, %%ecx\n"
		     "ud2"
		     :
		     : "r"(n)
		     : "rax", "rbx", "rcx", "rdx", "r12", "r13", "memory");
}

__attribute__((noinline)) static void before_it(long n)
{
	the_end(n + 1);
	asm volatile("");
}

int main(int argc, char **argv)
{
	(void)argv;
	before_it(argc);
	asm volatile("");
	return 0;
}
