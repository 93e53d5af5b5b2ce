/*
 * Loads the libraries of its arguments in turn, each where the one before has been; with AS in the
 * environment each by that name, under which it replaces the one before.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char *name_of(const char *path)
{
	const char *as = getenv("AS");

	if (!as)
		return path;
	unlink(as);
	return link(path, as) ? path : as;
}

int main(int argc, char **argv)
{
	volatile int n = 1000;

	for (int round = 0; round < 3; round++) {
		for (int i = 1; i < argc; i++) {
			void *library = dlopen(name_of(argv[i]), RTLD_NOW);
			int (*work)(int) = library ? (int (*)(int))dlsym(library, "reload_work")
						   : NULL;

			if (!work) {
				fprintf(stderr, "%s\n", dlerror());
				return 1;
			}
			work(n * i);
			dlclose(library);
		}
	}
	return 0;
}
