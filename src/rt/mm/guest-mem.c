#include "rt/mm/guest-mem.h"

#include "rt/mm/region.h"
#include "sys/guest-call.h"

/* An address above the user half raises a #GP; one of the runtime's is not the guest's. */
static bool foreign(u64 addr, size_t len)
{
	return addr + len < addr || addr + len > TASK_SIZE || region_overlaps(addr, len);
}

int guest_read(void *to, u64 from, size_t len)
{
	if (foreign(from, len))
		return -EFAULT;
	return guest_copy(to, (const void *)from, len) ? -EFAULT : 0;
}

int guest_write(struct thread *t, u64 to, const void *from, size_t len)
{
	size_t left;

	if (foreign(to, len))
		return -EFAULT;
	left = guest_copy((void *)to, from, len);
	if (left && dbt_unprotect(&t->dbt, to, len))
		left = guest_copy((void *)to, from, len);
	return left ? -EFAULT : 0;
}

long guest_string(char *to, u64 from, size_t size)
{
	size_t n = 0;

	while (n < size) {
		/* Up to the end of a page at a time: the next one may not exist. */
		size_t len = 4096 - ((from + n) & 4095), got;

		if (len > size - n)
			len = size - n;
		if (foreign(from + n, len))
			return -EFAULT;
		got = len - guest_copy(to + n, (const void *)(from + n), len);
		for (size_t end = n + got; n < end; n++)
			if (!to[n])
				return (long)n;
		if (got < len)
			return -EFAULT;
	}
	return -ENAMETOOLONG;
}

int guest_zero(u64 to, size_t len)
{
	static const u8 zeros[4096];

	while (len) {
		size_t n = min_u64(len, sizeof(zeros));

		if (foreign(to, n) || guest_copy((void *)to, zeros, n))
			return -EFAULT;
		to += n;
		len -= n;
	}
	return 0;
}
