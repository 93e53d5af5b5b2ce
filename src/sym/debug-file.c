#include "sym/debug-file.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "elf/elf-file.h"

#define DEBUG_DIR "/usr/lib/debug"

const void *sym_map_file(const char *path, size_t *len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	void *p = MAP_FAILED;

	if (fd < 0)
		return NULL;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size > 0) {
		*len = (size_t)st.st_size;
		p = mmap(NULL, *len, PROT_READ, MAP_PRIVATE, fd, 0);
	}
	close(fd);
	return p == MAP_FAILED ? NULL : p;
}

static bool by_build_id(const char *path, const struct elf_build_id *id, char *debug)
{
	struct elf_build_id own;
	char text[41];

	if (!id || !id->size) {
		if (!elf_build_id_of_file(path, &own))
			return false;
		id = &own;
	}
	if (id->size < 2)
		return false;
	elf_build_id_text(id, text);
	snprintf(debug, DEBUG_PATH_MAX, "%s/.build-id/%.2s/%s.debug", DEBUG_DIR, text, text + 2);
	return elf_build_id_is(debug, id);
}

/* What .gnu_debuglink has: a name, up to a multiple of 4, and a checksum. */
struct debug_link {
	char name[256];
	u32 crc;
};

static bool read_link(const void *bytes, size_t len, struct debug_link *link)
{
	struct elf_section s;
	struct elf_file im;
	const char *name;
	size_t at;

	if (!elf_file_open(&im, bytes, len) || !elf_file_find(&im, ".gnu_debuglink", &s))
		return false;
	name = elf_file_text(&im, &s, 0);
	at = name ? ALIGN_UP(strlen(name) + 1, 4) : 0;
	/* A file beside this one, or in folders of its own: no other may be named. */
	if (!name || !*name || strchr(name, '/') || at > sizeof(link->name) || s.size < at + 4 ||
	    s.size > len - s.offset)
		return false;
	memcpy(link->name, name, strlen(name) + 1);
	memcpy(&link->crc, im.bytes + s.offset + at, sizeof(link->crc));
	return true;
}

/* The checksum of gzip and of Ethernet. */
static u32 crc32_of(const u8 *bytes, size_t len)
{
	u32 table[256], crc = ~0u;

	for (u32 i = 0; i < ARRAY_SIZE(table); i++) {
		table[i] = i;
		for (int bit = 0; bit < 8; bit++)
			table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0xedb88320 : 0);
	}
	for (size_t i = 0; i < len; i++)
		crc = crc >> 8 ^ table[(crc ^ bytes[i]) & 0xff];
	return ~crc;
}

static bool has_crc(const char *path, u32 crc)
{
	size_t len;
	const void *map = sym_map_file(path, &len);
	bool fits;

	if (!map)
		return false;
	fits = crc32_of(map, len) == crc;
	munmap((void *)map, len);
	return fits;
}

static bool by_link(const char *path, const struct elf_build_id *id, char *debug)
{
	static const char *const places[][2] = {{"", ""}, {"", "/.debug"}, {DEBUG_DIR, ""}};
	const char *slash = strrchr(path, '/');
	struct debug_link link;
	const void *map;
	size_t len;
	bool found;

	/* Another file of this name may link to anything. */
	if (!slash || !elf_build_id_is(path, id))
		return false;
	map = sym_map_file(path, &len);
	if (!map)
		return false;
	found = read_link(map, len, &link);
	munmap((void *)map, len);
	for (size_t i = 0; found && i < ARRAY_SIZE(places); i++) {
		int n = snprintf(debug, DEBUG_PATH_MAX, "%s%.*s%s/%s", places[i][0],
				 (int)(slash - path), path, places[i][1], link.name);

		if (n < DEBUG_PATH_MAX && has_crc(debug, link.crc))
			return true;
	}
	return false;
}

bool sym_debug_file(const char *path, const struct elf_build_id *id, char debug[DEBUG_PATH_MAX])
{
	return by_build_id(path, id, debug) || by_link(path, id, debug);
}
