#include "rt/proc/memory-file.h"

#include "rt/arch.h"
#include "rt/mm/mm.h"
#include "rt/proc/proc-files.h"
#include "rt/syscall/syscall.h"

#include <linux/fs.h>

/* Whether such a file has been opened in this memory. A descriptor may also come from elsewhere. */
static bool opened;

void memory_file_opened(void)
{
	__atomic_store_n(&opened, true, __ATOMIC_RELAXED);
}

/* Where @written bytes have gone. Who moves the position meanwhile does not know it either. */
static u64 place_of(struct thread *t, u64 written)
{
	u64 nr = guest_nr(t);

	if (nr == __NR_pwrite64 || nr == __NR_pwritev ||
	    (nr == __NR_pwritev2 && (s64)guest_arg(t, 3) != -1))
		return guest_arg(t, 3);
	return (u64)sys_lseek((int)guest_arg(t, 0), 0, SEEK_CUR) - written;
}

long guest_write_file(struct thread *t)
{
	long ret = call_kernel(t);

	if (likely(!__atomic_load_n(&opened, __ATOMIC_RELAXED)) || ret <= 0 ||
	    !proc_is_own_memory(t, (int)guest_arg(t, 0)))
		return ret;
	mm_lock(t);
	dbt_invalidate(&t->dbt, place_of(t, (u64)ret), (u64)ret);
	mm_unlock(t);
	return ret;
}
