/*
 * Walks over lists whose every step misses the first-level cache, in known functions and in data of
 * known kinds. Arguments: where the lists lie (global, heap, stack, thread, mapped, moved), or
 * `fork` or `exec`, behind which others follow.
 */
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define NODES 8192 /* 512 KB */
#define STEPS 20000

struct node {
	struct node *next;
	long rest[7];
};

static struct node nodes[NODES] __attribute__((aligned(64)));
static struct node first[NODES] = {{.rest = {1}}}; /* of .data */

__attribute__((noinline)) static struct node *walk(struct node *n)
{
	for (long i = 0; i < STEPS; i++)
		n = n->next; /* every step misses */
	return n;
}

/* A ring over all of them, in an order that no line is next to the one before. */
__attribute__((noinline)) static struct node *build(struct node *n)
{
	for (long i = 0; i < NODES; i++)
		n[i].next = &n[(i + 1237) % NODES];
	return n;
}

static long on_stack(void)
{
	struct node own[NODES];

	return walk(build(own)) != NULL;
}

static void *in_thread(void *arg)
{
	return on_stack() ? arg : NULL;
}

static int mapped(void)
{
	FILE *f = tmpfile();
	void *map;

	if (!f || ftruncate(fileno(f), sizeof(nodes)))
		return 1;
	map = mmap(NULL, sizeof(nodes), PROT_READ | PROT_WRITE, MAP_SHARED, fileno(f), 0);
	return map == MAP_FAILED || !walk(build(map));
}

/* Of what mremap(2) makes no record tells. */
static int moved(void)
{
	void *map = mmap(NULL, sizeof(nodes) / 2, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	map = mremap(map, sizeof(nodes) / 2, 2 * sizeof(nodes), MREMAP_MAYMOVE);
	return map == MAP_FAILED || !walk(build(map));
}

static int thread(void)
{
	pthread_t t;
	void *ret;

	return pthread_create(&t, NULL, in_thread, nodes) || pthread_join(t, &ret) || !ret;
}

int main(int argc, char **argv)
{
	int status = 0;

	mallopt(M_MMAP_THRESHOLD, 64 << 20);
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "global"))
			status |= !walk(build(nodes));
		else if (!strcmp(argv[i], "data"))
			status |= !walk(build(first));
		else if (!strcmp(argv[i], "heap"))
			status |= !walk(build(malloc(sizeof(nodes))));
		else if (!strcmp(argv[i], "stack"))
			status |= !on_stack();
		else if (!strcmp(argv[i], "mapped"))
			status |= mapped();
		else if (!strcmp(argv[i], "moved"))
			status |= moved();
		else if (!strcmp(argv[i], "thread"))
			status |= thread();
		else if (!strcmp(argv[i], "fork") && fork())
			return wait(&status) < 0 || status != 0;
		else if (!strcmp(argv[i], "exec"))
			execv(argv[0], (char *[]){argv[0], (char *)"global", NULL});
	}
	return status;
}
