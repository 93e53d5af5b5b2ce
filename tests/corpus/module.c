/* A shared library: loaded with the program (modules.c), and again under another name by dlopen. */
#include <stdio.h>
#include <string.h>

static __thread int calls;
static int constructed;

__attribute__((constructor)) static void construct(void)
{
	constructed++;
}

__attribute__((destructor)) static void destruct(void)
{
	fputs("destructed\n", stdout);
}

/* Defined where it is used: found by name at run time. */
int module_visit(const char *name);

int module_length(const char *name);
int module_length(const char *name)
{
	calls++;
	return constructed * 100 + calls * 10 + (int)strlen(name) + module_visit(name);
}
