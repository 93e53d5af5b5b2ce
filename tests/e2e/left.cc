// Functions that are left by longjmp and by exceptions, and whose open call went by way of a
// linkage table or not.
#include <csetjmp>
#include <cstdlib>

#ifdef __clang__
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noinline, noclone))
#endif

static volatile int sink;
static jmp_buf env;

extern "C" {

NOINLINE int leaf(int n)
{
	return sink += n;
}

static int by_jump(const void *, const void *)
{
	if (leaf(1) % 3 == 0)
		longjmp(env, 1);
	return 1;
}

NOINLINE int sorts(int n)
{
	int a[] = {4, 2, 3, 1};

	if (!setjmp(env))
		qsort(a, 4, sizeof(a[0]), by_jump);
	return leaf(n);
}

// The last level goes on in the third, which alone has called setjmp.
NOINLINE int again(int n)
{
	if (!n)
		longjmp(env, 1);
	if (n == 4 && setjmp(env))
		return leaf(n);
	return again(n - 1) + leaf(n);
}

NOINLINE int within(int n)
{
	if (!setjmp(env))
		longjmp(env, 1);
	return leaf(n);
}
}

struct Guard {
	NOINLINE ~Guard()
	{
		leaf(2);
	}
};

NOINLINE int thrower(int n)
{
	Guard guard;

	if (leaf(n))
		throw n;
	return n;
}

NOINLINE int deep(int n)
{
	Guard guard;

	return n ? deep(n - 1) + 1 : thrower(3);
}

NOINLINE int catcher(int n)
{
	try {
		return deep(n);
	} catch (int thrown) {
		return leaf(thrown);
	}
}

int main()
{
	for (int i = 0; i < 10; i++) {
		sorts(i);
		within(i);
		again(6);
		sink = 1;
		catcher(i % 4);
	}
	return 0;
}
