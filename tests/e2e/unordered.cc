// What depends on addresses and on random numbers, those of the CPU too; prints what it came to.
#include <cstdio>
#include <functional>
#include <random>
#include <string>
#include <unordered_map>

static unsigned random_word()
{
	unsigned word = 0;
	unsigned char ok = 0;

	if (__builtin_cpu_supports("rdrnd"))
		__asm__ volatile("rdrand %0; setc %1" : "=r"(word), "=q"(ok));
	return ok ? word : 0;
}

static unsigned stamp()
{
	unsigned low, high;

	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
	return low;
}

int main()
{
	std::random_device device;
	std::mt19937 numbers(device());
	std::unordered_map<void *, std::string> map;
	unsigned long sum = random_word(), begin = stamp();

	for (int i = 0; i < 2000; i++)
		map[new int[numbers() % 64]] = std::to_string(numbers());
	for (const auto &entry : map)
		sum = sum * 31 + std::hash<std::string>()(entry.second) + (unsigned long)entry.first;
	for (unsigned n = random_word() % 1000; n; n--)
		sum += stamp() % 7 ? 1 : sum / 3;
	std::printf("%lx %lx\n", sum, stamp() - begin);
}
