/*
 * The mapping half of elf.h: what load_elf_binary() does once there is no way back, with the same
 * addresses as far as they are not random.
 */
#include "rt/load/elf.h"

#include "rt/load/images.h"
#include "rt/mm/guest-mem.h"
#include "rt/mm/mm.h"
#include "rt/mm/region.h"
#include "sys/string.h"

static bool read_at(int fd, void *buf, size_t len, u64 at)
{
	return sys_pread(fd, buf, len, at) == (long)len;
}

int elf_read(int fd, bool interp, Elf64_Ehdr *eh, Elf64_Phdr *phdrs, struct elf_image *image)
{
	long n = sys_pread(fd, eh, sizeof(*eh), 0);
	int ret;

	if (n < 0)
		return (int)n;
	ret = elf_check_header(eh, (size_t)n, interp);
	if (ret)
		return ret;
	if (!read_at(fd, phdrs, eh->e_phnum * sizeof(*phdrs), eh->e_phoff))
		return interp ? -ELIBBAD : -EIO;
	if (interp)
		return 0;
	memset(image, 0, offsetof(struct elf_image, interp));
	image->dyn = eh->e_type == ET_DYN;
	for (u32 i = 0; i < eh->e_phnum; i++) {
		const Elf64_Phdr *ph = &phdrs[i];

		if (ph->p_type == PT_GNU_STACK)
			image->exec_stack = ph->p_flags & PF_X;
		if (ph->p_type != PT_INTERP || image->has_interp)
			continue;
		if (ph->p_filesz > sizeof(image->interp) || ph->p_filesz < 2)
			return -ENOEXEC;
		if (!read_at(fd, image->interp, ph->p_filesz, ph->p_offset))
			return -EIO;
		ret = elf_check_interp(ph, image->interp);
		if (ret)
			return ret;
		image->has_interp = true;
	}
	return 0;
}

static u32 prot_of(const Elf64_Phdr *ph)
{
	return (ph->p_flags & PF_R ? PROT_READ : 0) | (ph->p_flags & PF_W ? PROT_WRITE : 0) |
	       (ph->p_flags & PF_X ? PROT_EXEC : 0);
}

/* What is really mapped: nothing executable, code readable. */
static int real_prot(u32 prot)
{
	return (int)(prot & PROT_EXEC ? (prot & ~(u32)PROT_EXEC) | PROT_READ : prot);
}

u64 elf_extent(const Elf64_Ehdr *eh, const Elf64_Phdr *phdrs)
{
	u64 low = ~0ull, high = 0;

	for (u32 i = 0; i < eh->e_phnum; i++) {
		if (phdrs[i].p_type != PT_LOAD)
			continue;
		low = min_u64(low, phdrs[i].p_vaddr);
		high = max_u64(high, phdrs[i].p_vaddr + phdrs[i].p_memsz);
	}
	return low < high ? high - low : 0;
}

u64 elf_alignment(const Elf64_Ehdr *eh, const Elf64_Phdr *phdrs)
{
	u64 align = 0;

	for (u32 i = 0; i < eh->e_phnum; i++) {
		u64 a = phdrs[i].p_align;

		if (phdrs[i].p_type == PT_LOAD && a && !(a & (a - 1)))
			align = max_u64(align, a);
	}
	return ALIGN_UP(align, PAGE_SIZE);
}

static int map_segment(int fd, const Elf64_Phdr *ph, u64 bias)
{
	u64 at = ph->p_vaddr + bias, start = ALIGN_DOWN(at, PAGE_SIZE);
	u64 file_end = at + ph->p_filesz, mem_end = at + ph->p_memsz;
	u64 file_pages = ALIGN_UP(file_end, PAGE_SIZE), mem_pages = ALIGN_UP(mem_end, PAGE_SIZE);
	int prot = real_prot(prot_of(ph));
	long ret;

	if (mem_end < at || mem_pages > TASK_SIZE ||
	    region_overlaps(start, max_u64(mem_pages - start, 1)))
		return -ENOMEM;
	if (ph->p_filesz) {
		ret = sys_mmap((void *)start, file_pages - start, prot, MAP_PRIVATE | MAP_FIXED, fd,
			       ph->p_offset - (at - start));
		if (sys_failed(ret))
			return (int)ret;
	} else {
		file_pages = start;
	}
	/* Beyond the file's part: zeros, in the last page of the file if it may be written. */
	if (ph->p_memsz > ph->p_filesz && ph->p_filesz && file_end & (PAGE_SIZE - 1) &&
	    prot & PROT_WRITE && guest_zero(file_end, file_pages - file_end))
		return -EFAULT;
	if (mem_pages > file_pages) {
		ret = sys_mmap((void *)file_pages, mem_pages - file_pages, prot,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		if (sys_failed(ret))
			return (int)ret;
	}
	return 0;
}

/* The kernel maps only the first segment over the whole extent and unmaps what lies behind it. */
static void unmap_gaps(const Elf64_Ehdr *eh, const Elf64_Phdr *phdrs, u64 bias, u64 low, u64 size)
{
	u64 at = low;

	while (at < low + size) {
		u64 next = low + size, end = 0;

		for (u32 i = 0; i < eh->e_phnum; i++) {
			u64 from = ALIGN_DOWN(phdrs[i].p_vaddr, PAGE_SIZE);

			if (phdrs[i].p_type != PT_LOAD || !phdrs[i].p_memsz || from < at ||
			    from >= next)
				continue;
			next = from;
			end = ALIGN_UP(phdrs[i].p_vaddr + phdrs[i].p_memsz, PAGE_SIZE);
		}
		if (next > at)
			sys_munmap((void *)(at + bias), next - at);
		at = end > next ? end : next;
	}
}

int elf_map(int fd, const Elf64_Ehdr *eh, const Elf64_Phdr *phdrs, u64 at, struct elf_image *image)
{
	u64 low = ~0ull, high = 0, size, align = elf_alignment(eh, phdrs);
	int ret;

	for (u32 i = 0; i < eh->e_phnum; i++) {
		const Elf64_Phdr *ph = &phdrs[i];

		if (ph->p_type != PT_LOAD)
			continue;
		if (ph->p_filesz > ph->p_memsz || ph->p_memsz > TASK_SIZE ||
		    ph->p_vaddr + ph->p_memsz < ph->p_vaddr)
			return -EINVAL;
		low = min_u64(low, ALIGN_DOWN(ph->p_vaddr, PAGE_SIZE));
		high = max_u64(high, ph->p_vaddr + ph->p_memsz);
	}
	if (low >= high)
		return -EINVAL;
	size = ALIGN_UP(high - low, PAGE_SIZE);
	image->bias = 0;
	if (eh->e_type == ET_DYN) {
		long hole;

		/* The whole extent at once, so that the segments keep their distances. */
		if (at) {
			hole = sys_mmap((void *)(at + low), size, PROT_NONE,
					MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
		} else {
			hole = sys_mmap(NULL, align > PAGE_SIZE ? size + align : size, PROT_NONE,
					MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			if (!sys_failed(hole) && align > PAGE_SIZE) {
				u64 aligned = ALIGN_UP((u64)hole, align);

				if (aligned > (u64)hole)
					sys_munmap((void *)hole, aligned - (u64)hole);
				sys_munmap((void *)(aligned + size), (u64)hole + align - aligned);
				hole = (long)aligned;
			}
		}
		if (sys_failed(hole))
			return (int)hole;
		image->bias = (u64)hole - low;
	}
	image->start_code = image->start_data = ~0ull;
	image->end_code = image->end_data = image->brk = 0;
	image->phdr = 0;
	image->phnum = eh->e_phnum;
	image->entry = eh->e_entry + image->bias;
	for (u32 i = 0; i < eh->e_phnum; i++) {
		const Elf64_Phdr *ph = &phdrs[i];
		u64 v = ph->p_vaddr + image->bias;

		if (ph->p_type != PT_LOAD || !ph->p_memsz)
			continue;
		ret = map_segment(fd, ph, image->bias);
		if (ret)
			return ret;
		if (ph->p_offset <= eh->e_phoff && eh->e_phoff < ph->p_offset + ph->p_filesz)
			image->phdr = eh->e_phoff - ph->p_offset + v;
		if (ph->p_flags & PF_X) {
			image->start_code = min_u64(image->start_code, v);
			image->end_code = max_u64(image->end_code, v + ph->p_filesz);
		}
		image->start_data = image->start_data == ~0ull ? v : max_u64(image->start_data, v);
		image->end_data = max_u64(image->end_data, v + ph->p_filesz);
		image->brk = max_u64(image->brk, v + ph->p_memsz);
	}
	/* What the kernel leaves of the extent between segments is unmapped. */
	if (eh->e_type == ET_DYN)
		unmap_gaps(eh, phdrs, image->bias, low, size);
	if (image->start_code == ~0ull)
		image->start_code = image->start_data;
	image->end_code = max_u64(image->end_code, image->start_code);
	return 0;
}

void elf_add_code(struct thread *t, const Elf64_Ehdr *eh, const Elf64_Phdr *phdrs, u64 bias,
		  const struct image_file *file)
{
	mm_lock(t);
	for (u32 i = 0; i < eh->e_phnum; i++) {
		const Elf64_Phdr *ph = &phdrs[i];
		struct image_file of;
		struct mm_range r;

		if (ph->p_type != PT_LOAD || !(ph->p_flags & PF_X) || !ph->p_memsz)
			continue;
		r = (struct mm_range){
			.start = ALIGN_DOWN(ph->p_vaddr + bias, PAGE_SIZE),
			.end = ALIGN_UP(ph->p_vaddr + bias + ph->p_memsz, PAGE_SIZE),
			.prot = prot_of(ph),
			.file = 1,
		};
		of = *file;
		of.offset = ALIGN_DOWN(ph->p_offset, PAGE_SIZE);
		images_add(t, &r, of.inode && ph->p_memsz == ph->p_filesz ? &of : NULL);
	}
	mm_unlock(t);
}
