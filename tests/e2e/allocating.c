/*
 * Walks over lists whose every step misses the first-level cache, in blocks that known functions
 * have asked for. Arguments: which of them, one after the other.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define NODES  8192 /* 512 KB */
#define SIZE   (NODES * sizeof(struct node))
#define STEPS  20000
#define MEDIUM 50000 /* more than the first-level cache has, and less than a mapping's */

struct node {
	struct node *next;
	long rest[7];
};

__attribute__((noinline)) static struct node *walk(struct node *n)
{
	for (long i = 0; i < STEPS; i++)
		n = n->next; /* every step misses */
	return n;
}

__attribute__((noinline)) static struct node *build(struct node *n)
{
	if (!n)
		exit(1);
	for (long i = 0; i < NODES; i++)
		n[i].next = &n[(i + 1237) % NODES];
	return n;
}

/* An allocator that is no part of the C library, and calls nothing of it: operator new of C++. */
static char pool[4 * SIZE] __attribute__((aligned(64)));
static size_t pool_used;

static void *from_pool(size_t size)
{
	void *at = pool + pool_used;

	pool_used += (size + 63) & ~63ul;
	return at;
}

void *_Znwm(size_t size);
__attribute__((noinline)) void *_Znwm(size_t size)
{
	return from_pool(size);
}

/* Gives nothing back: who reads there reads what is nobody's block. */
void _ZdlPv(void *at);
__attribute__((noinline)) void _ZdlPv(void *at)
{
	pool_used += !at;
}

/* What Rust's compiler calls, by the names that it has for them. */
#define RUST(name) _RNvCsfLfy6EI15iL_7___rustc##name

void *RUST(12___rust_alloc)(size_t size, size_t align);
__attribute__((noinline)) void *RUST(12___rust_alloc)(size_t size, size_t align)
{
	return from_pool(size + 0 * align);
}

void *RUST(14___rust_realloc)(void *at, size_t old, size_t align, size_t size);
__attribute__((noinline)) void *RUST(14___rust_realloc)(void *at, size_t old, size_t align,
							size_t size)
{
	return old >= size ? at : from_pool(size + 0 * align);
}

void RUST(14___rust_dealloc)(void *at, size_t size, size_t align);
__attribute__((noinline)) void RUST(14___rust_dealloc)(void *at, size_t size, size_t align)
{
	pool_used += !at && size < align;
}

/* A wrapper that is known by its name, and jumps to malloc. */
void *xmalloc(size_t size);
__attribute__((noinline)) void *xmalloc(size_t size)
{
	return malloc(size);
}

/* Compilers know what malloc gives and may leave out what nobody sees. */
static void *volatile seen;
static volatile size_t times_itself_is_0 = (size_t)1 << 32;

#define SITE(name, expression)                                               \
	__attribute__((noinline)) static struct node *name(struct node *old) \
	{                                                                    \
		(void)old;                                                   \
		seen = (expression);                                         \
		return seen;                                                 \
	}

SITE(by_malloc, malloc(SIZE))
SITE(by_calloc, calloc(NODES, sizeof(struct node)))
SITE(by_realloc, realloc(old, SIZE + (64ul << 20)))
SITE(by_array, reallocarray(old, NODES + 1, sizeof(struct node)))
SITE(by_aligned, aligned_alloc(4096, SIZE))
SITE(by_new, _Znwm(SIZE))
/* Not of a mapping of their own, which nobody has to clear or to copy. */
SITE(by_cleared, calloc(1, MEDIUM))
SITE(by_grown, realloc(old, 2 * MEDIUM))
SITE(by_xmalloc, xmalloc(SIZE))
SITE(by_rust, RUST(12___rust_alloc)(SIZE, 8))
SITE(by_rust_again, RUST(14___rust_realloc)(old, SIZE, 8, SIZE + 64))

__attribute__((noinline)) static struct node *by_memalign(void)
{
	void *at = NULL;

	return posix_memalign(&at, 4096, SIZE) ? NULL : at;
}

static void small_block(void)
{
	seen = malloc(64);
	free(seen);
}

static void *in_thread(void *arg)
{
	struct node *n = by_malloc(NULL);

	seen = walk(build(n));
	free(n);
	return arg;
}

static int in_child(struct node *n)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		seen = walk(n);
		seen = walk(build(by_calloc(NULL)));
		_exit(0);
	}
	return waitpid(pid, &status, 0) != pid || status;
}

static int run(const char *what)
{
	static struct node *last;
	pthread_t thread;

	if (!strcmp(what, "malloc"))
		last = by_malloc(NULL);
	else if (!strcmp(what, "calloc"))
		last = by_calloc(NULL);
	else if (!strcmp(what, "realloc"))
		last = by_realloc(last);
	else if (!strcmp(what, "array"))
		last = by_array(last);
	else if (!strcmp(what, "aligned"))
		last = by_aligned(NULL);
	else if (!strcmp(what, "memalign"))
		last = by_memalign();
	else if (!strcmp(what, "new"))
		last = by_new(NULL);
	else if (!strcmp(what, "xmalloc"))
		last = by_xmalloc(NULL);
	else if (!strcmp(what, "rust"))
		last = by_rust(NULL);
	else if (!strcmp(what, "rust-again"))
		last = by_rust_again(last);
	else if (!strcmp(what, "free")) { /* what lies there next is another's */
		free(last);
		return 0;
	} else if (!strcmp(what, "delete")) {
		_ZdlPv(last);
		seen = walk(last);
		return 0;
	} else if (!strcmp(what, "rust-delete")) {
		RUST(14___rust_dealloc)(last, SIZE, 8);
		seen = walk(last);
		return 0;
	} else if (!strcmp(what, "fail")) { /* the block stays, and is whose it was */
		seen = realloc(last, (size_t)1 << 62);
		return seen != NULL;
	} else if (!strcmp(what, "overflow")) { /* the same, of 2^64 bytes */
		size_t half = times_itself_is_0;

		seen = reallocarray(last, half, half);
		return seen != NULL;
	} else if (!strcmp(what, "clear")) { /* what somebody else has written to */
		seen = memset(malloc(MEDIUM), 1, MEDIUM);
		free(seen);
		last = by_cleared(NULL);
		return !last;
	} else if (!strcmp(what, "grow")) {
		seen = malloc(64); /* behind it: it has to move */
		return !by_grown(last);
	} else if (!strcmp(what, "churn")) {
		for (int i = 0; i < 3000; i++)
			small_block();
		return 0;
	} else if (!strcmp(what, "thread"))
		return pthread_create(&thread, NULL, in_thread, NULL) || pthread_join(thread, NULL);
	else if (!strcmp(what, "fork"))
		return in_child(last);
	else
		return 1;
	seen = walk(build(last));
	return 0;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (run(argv[i])) {
			fprintf(stderr, "allocating: %s failed\n", argv[i]);
			return 1;
		}
	return 0;
}
