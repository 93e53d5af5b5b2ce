#include "rt/load/vdso.h"

#include "rt/load/elf.h"
#include "rt/mm/mm.h"
#include "rt/mm/region.h"
#include "rt/syscall/fd.h"
#include "rt/task/limits.h"
#include "sys/string.h"

/* The mappings [vvar], [vvar_vclock], [vdso], in this order and adjacent. */
static void find(struct vdso *v)
{
	char text[8192];

	if (fd_read_text("/proc/self/maps", text, sizeof(text)) < 0)
		return;
	for (char *line = text, *end; (end = str_chr(line, '\n')); line = end + 1) {
		const char *name;
		u64 from, to;
		int k = str_u64(line, 16, &from);

		*end = '\0';
		name = str_rchr(line, '[');
		if (!name || !str_u64(line + k + 1, 16, &to) ||
		    (!str_starts(name, "[vvar") && !str_starts(name, "[vdso")))
			continue;
		if (v->n && v->start + v->size != from) {
			v->n = 0;
			v->size = 0;
		}
		if (v->n == ARRAY_SIZE(v->pieces))
			break;
		if (!v->n)
			v->start = from;
		v->pieces[v->n++] = to - from;
		v->size += to - from;
	}
	if (v->ehdr < v->start || v->ehdr >= v->start + v->size)
		v->n = 0;
}

static bool move(struct vdso *v, u64 to)
{
	u64 at = 0;

	for (u32 i = 0; i < v->n; i++) {
		if (sys_failed(sys_mremap((void *)(v->start + at), v->pieces[i], v->pieces[i],
					  MREMAP_MAYMOVE | MREMAP_FIXED, (void *)(to + at)))) {
			/*
			 * Where none can be moved the first one fails, and all stay where they are.
			 */
			CHECK(!i);
			v->n = 0;
			return false;
		}
		at += v->pieces[i];
	}
	v->ehdr = to + (v->ehdr - v->start);
	v->start = to;
	return true;
}

void vdso_at(struct vdso *v, u64 ehdr)
{
	memset(v, 0, sizeof(*v));
	v->ehdr = ehdr;
}

void vdso_take(struct vdso *v, u64 stack)
{
	u8 *room;

	/* Older kernels put it above the stack, at random, where it is in nobody's way. */
	if (!v->ehdr || v->ehdr > stack)
		return;
	find(v);
	if (!v->n)
		return;
	room = region_map_file(v->size, -1, 0);
	if (!room)
		v->n = 0;
	else
		move(v, (u64)room);
}

void vdso_put(struct vdso *v)
{
	long room;

	if (!v->n)
		return;
	room = sys_mmap(NULL, v->size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!sys_failed(room) && move(v, (u64)room))
		limits_ours(-(s64)v->size, 0);
}

void vdso_drop(struct vdso *v)
{
	if (v->n) {
		sys_munmap((void *)v->start, v->size);
		limits_ours(-(s64)v->size, 0);
	}
	v->n = 0;
	v->ehdr = 0;
}

void vdso_add_code(struct thread *t, const struct vdso *v)
{
	const Elf64_Ehdr *eh = (const Elf64_Ehdr *)v->ehdr;
	struct mm_range r = {.start = v->ehdr, .prot = PROT_READ | PROT_EXEC};
	const Elf64_Phdr *ph;

	if (!v->ehdr)
		return;
	ph = (const Elf64_Phdr *)(v->ehdr + eh->e_phoff);
	for (u32 i = 0; i < eh->e_phnum; i++)
		if (ph[i].p_type == PT_LOAD)
			r.end = max_u64(r.end, ALIGN_UP(v->ehdr + ph[i].p_vaddr + ph[i].p_memsz,
							PAGE_SIZE));
	if (sys_mprotect((void *)r.start, r.end - r.start, PROT_READ))
		return;
	mm_lock(t);
	mm_exec_add(t, &r);
	mm_unlock(t);
}
