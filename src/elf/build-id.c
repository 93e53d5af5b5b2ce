#include "elf/build-id.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cursor.h"

#define NOTES 65536 /* as much is looked at of them */

struct elf_build_id elf_build_id_made(const u8 *bytes, size_t size)
{
	struct elf_build_id id = {.size = (u8)(size < sizeof(id.bytes) ? size : sizeof(id.bytes))};

	memcpy(id.bytes, bytes, id.size);
	return id;
}

bool elf_build_id_same(const struct elf_build_id *a, const struct elf_build_id *b)
{
	/* What lies behind a shorter one is zeros in the struct, as perf pads it. */
	return a->size && b->size && !memcmp(a->bytes, b->bytes, sizeof(a->bytes));
}

bool elf_build_id_in_notes(const void *notes, size_t len, size_t align, struct elf_build_id *id)
{
	struct cursor c = cursor_over(notes, len);

	align = align == 8 ? 8 : 4;
	while (cursor_left(&c) >= sizeof(Elf64_Nhdr)) {
		u32 name_len = cursor_u32(&c), desc_len = cursor_u32(&c), type = cursor_u32(&c);
		const char *name = cursor_bytes(&c, ALIGN_UP((size_t)name_len, align));
		const u8 *desc = cursor_bytes(&c, desc_len);
		size_t rest = ALIGN_UP((size_t)desc_len, align) - desc_len;

		if (!name || !desc)
			return false;
		if (type == NT_GNU_BUILD_ID && name_len == 4 && !memcmp(name, "GNU", 4) &&
		    desc_len) {
			*id = elf_build_id_made(desc, desc_len);
			return true;
		}
		cursor_bytes(&c, rest < cursor_left(&c) ? rest : cursor_left(&c));
	}
	return false;
}

static bool in_part(int fd, u64 offset, u64 size, u64 align, struct elf_build_id *id)
{
	u8 notes[4096];
	ssize_t n;

	if (size > NOTES)
		return false;
	/* It is the first or second note where there are many. */
	n = pread(fd, notes, size < sizeof(notes) ? (size_t)size : sizeof(notes), (off_t)offset);
	return n > 0 && elf_build_id_in_notes(notes, (size_t)n, (size_t)align, id);
}

#define SEARCH(bits)                                                               \
	static bool search##bits(int fd, const u8 *head, struct elf_build_id *id)  \
	{                                                                          \
		Elf##bits##_Ehdr eh;                                               \
		Elf##bits##_Phdr ph;                                               \
                                                                                   \
		memcpy(&eh, head, sizeof(eh));                                     \
		if (eh.e_phentsize != sizeof(ph))                                  \
			return false;                                              \
		for (u32 i = 0; i < eh.e_phnum && i < 64; i++) {                   \
			off_t at = (off_t)(eh.e_phoff + i * sizeof(ph));           \
                                                                                   \
			if (pread(fd, &ph, sizeof(ph), at) != (ssize_t)sizeof(ph)) \
				return false;                                      \
			if (ph.p_type == PT_NOTE &&                                \
			    in_part(fd, ph.p_offset, ph.p_filesz, ph.p_align, id)) \
				return true;                                       \
		}                                                                  \
		return false;                                                      \
	}

SEARCH(64)
SEARCH(32)

bool elf_build_id_of_fd(int fd, struct elf_build_id *id)
{
	const u16 one = 1;
	u8 head[sizeof(Elf64_Ehdr)] = {0};

	if (pread(fd, head, sizeof(head), 0) != (ssize_t)sizeof(head) ||
	    memcmp(head, ELFMAG, SELFMAG) != 0 ||
	    head[EI_DATA] != (*(const u8 *)&one ? ELFDATA2LSB : ELFDATA2MSB))
		return false;
	return head[EI_CLASS] == ELFCLASS64 ? search64(fd, head, id) : search32(fd, head, id);
}

bool elf_build_id_of_file(const char *path, struct elf_build_id *id)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	bool found = fd >= 0 && elf_build_id_of_fd(fd, id);

	if (fd >= 0)
		close(fd);
	return found;
}

bool elf_build_id_of_kernel(struct elf_build_id *id)
{
	int fd = open("/sys/kernel/notes", O_RDONLY | O_CLOEXEC);
	bool found = fd >= 0 && in_part(fd, 0, 4096, 4, id);

	if (fd >= 0)
		close(fd);
	return found;
}

char *elf_build_id_text(const struct elf_build_id *id, char *text)
{
	*text = 0;
	for (u32 i = 0; i < id->size; i++)
		sprintf(text + 2 * i, "%02x", id->bytes[i]);
	return text;
}

bool elf_build_id_is(const char *path, const struct elf_build_id *id)
{
	struct elf_build_id own;

	return !id || !id->size ||
	       (elf_build_id_of_file(path, &own) && elf_build_id_same(&own, id));
}
