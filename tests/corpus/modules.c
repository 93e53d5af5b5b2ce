/*
 * The dynamic linker at work: a library of the program's own, another by dlopen, lazy binding, TLS,
 * unloading.
 */
#include <dlfcn.h>
#include <stdio.h>

int module_length(const char *name);
int module_visit(const char *name);

static int visits;

int module_visit(const char *name)
{
	return visits += name[0] == 'm';
}

int main(int argc, char **argv)
{
	int sum = module_length("main") + module_length("more");

	(void)argc;
	for (int turn = 0; turn < 3; turn++) {
		void *h = dlopen(argv[1], turn ? RTLD_NOW | RTLD_LOCAL : RTLD_LAZY);
		int (*length)(const char *) = h ? dlsym(h, "module_length") : NULL;

		if (!length) {
			puts(dlerror());
			return 1;
		}
		sum += length("module");
		if (dlsym(h, "no such symbol") || !dlerror())
			return 1;
		dlclose(h);
	}
	printf("%d\n", sum);
	return 0;
}
