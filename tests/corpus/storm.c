/*
 * A known computation under a 1 kHz SIGALRM. The handler is one increment and a return, so every
 * signal costs four instructions (with the two of the restorer), of which two are branches; the
 * program says how many it took.
 */
#include "corpus.h"

static volatile uint64_t alarms;

__asm__("handler:\n"
	"	incq alarms(%rip)\n"
	"	ret\n"
	"restorer:\n"
	"	movl $15, %eax\n" /* rt_sigreturn */
	"	syscall\n");
void handler(int sig);
void restorer(void);

int run(void)
{
	struct {
		void (*handler)(int);
		uint64_t flags;
		void (*restorer)(void);
		uint64_t mask;
	} action = {handler, 0x14000000, restorer, 0}; /* SA_RESTORER | SA_RESTART */
	long timer[4] = {0, 1000, 0, 1000};
	uint64_t v = 1;

	call6(13, 14, (long)&action, 0, 8, 0, 0);
	call(38, 0, timer, 0);
	for (long i = 0; i < TURNS; i++) {
		v = v * 6364136223846793005u + 1442695040888963407u;
		v ^= v >> 29;
		if (v & 8)
			v += 3;
	}
	timer[1] = timer[3] = 0;
	call(38, 0, timer, 0);
	say(v);
	say(alarms);
	return 0;
}
