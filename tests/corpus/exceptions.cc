// C++ exceptions: through frames with destructors, rethrown, nested, from a virtual call.
#include <cstdio>
#include <stdexcept>
#include <string>

static int destroyed;

struct guard {
	~guard() { destroyed++; }
};

struct base {
	virtual int run(int n) = 0;
	virtual ~base() {}
};

struct thrower : base {
	int run(int n) override
	{
		guard g;

		if (n == 0)
			throw std::runtime_error("bottom");
		return run(n - 1) + 1;
	}
};

struct catcher : base {
	base *inner;

	explicit catcher(base *b) : inner(b) {}
	int run(int n) override
	{
		try {
			return inner->run(n);
		} catch (const std::logic_error &) {
			return -1;
		} catch (...) {
			guard g;

			if (n & 1)
				throw;
			throw n;
		}
	}
};

int main()
{
	thrower t;
	catcher c(&t);
	int ints = 0, errors = 0;

	for (int i = 0; i < 2; i++) {
		try {
			c.run(i);
		} catch (int) {
			ints++;
		} catch (const std::exception &e) {
			errors += e.what()[0] == 'b';
		}
	}
	std::printf("%d ints, %d errors, %d destroyed\n", ints, errors, destroyed);
	return 0;
}
