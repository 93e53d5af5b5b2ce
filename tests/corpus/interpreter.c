/* A computed-goto interpreter and a table of functions: indirect jumps and calls. */
#include "corpus.h"

static uint64_t twice(uint64_t v)
{
	return v * 2;
}

static uint64_t plus(uint64_t v)
{
	return v + 12345;
}

static uint64_t fold(uint64_t v)
{
	return (v >> 32) ^ v;
}

static uint64_t (*volatile const functions[])(uint64_t) = {twice, plus, fold};

int run(void)
{
	static const unsigned char program[] = {0, 1, 2, 3, 1, 1, 2, 4};
	static const void *const labels[] = {&&add, &&shift, &&mix, &&apply, &&loop};
	const unsigned char *pc = program;
	uint64_t acc = 7, turns = 0;

	goto *labels[*pc++];
add:
	acc += turns;
	goto *labels[*pc++];
shift:
	acc = (acc << 3) | (acc >> 61);
	goto *labels[*pc++];
mix:
	acc ^= acc >> 17;
	goto *labels[*pc++];
apply:
	acc = functions[turns % 3](acc);
	goto *labels[*pc++];
loop:
	if (++turns < 400) {
		pc = program;
		goto *labels[*pc++];
	}
	say(acc);
	return 0;
}
