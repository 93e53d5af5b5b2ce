/* PURPOSE: the integer names and small macros that every folder of both worlds uses. */
#ifndef BASE_TYPES_H
#define BASE_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define BIT(n)        (1ull << (n))

/* @a must be a power of two. */
#define ALIGN_UP(x, a)   (((x) + ((a)-1)) & ~((u64)(a)-1))
#define ALIGN_DOWN(x, a) ((x) & ~((u64)(a)-1))

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#define must_check __attribute__((warn_unused_result))
/* Of the runtime's memory, what a program that ends soon does not use: rt/layout.ld. */
#define used_late         __attribute__((section(".bss.late")))
#define printf_like(f, a) __attribute__((format(printf, f, a)))

#define container_of(ptr, type, member) \
	((type *)((char *)(1 ? (ptr) : &((type *)0)->member) - offsetof(type, member)))

static inline u64 min_u64(u64 a, u64 b)
{
	return a < b ? a : b;
}

static inline u64 max_u64(u64 a, u64 b)
{
	return a > b ? a : b;
}

#endif
