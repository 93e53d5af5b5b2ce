/*
 * Breakpoints (mem:) and dynamic probes (kprobe:, uprobe: and their return forms) [TYPE-06,
 * TYPE-08].
 */
#include "lib/spec/spec-priv.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/hw_breakpoint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/spec/elf-symbol.h"
#include "lib/spec/nearest.h"

static int bad_mem(struct ap__parse *p, const char *name, const char *what)
{
	ap__fail(p->err, -EINVAL, AP_CAUSE_SYNTAX, "\"%.120s\": %s", name, what);
	return ap__remedy(p->err, -EINVAL,
			  "breakpoints are written mem:ADDR[/LEN][:ACCESS], as in "
			  "mem:0x601040/8:w; ACCESS is r, w, rw or x");
}

int ap__parse_mem(struct ap__parse *p, const char *name, const char *text)
{
	char *copy = ap__specs_strdup(p->specs, text), *access, *len;
	u64 addr, bytes = 0;
	struct ap__item *it;
	u32 type = 0;
	int r;

	if (!copy)
		return ap__fail_memory(p->err);
	access = strchr(copy, ':');
	if (access)
		*access++ = '\0';
	len = strchr(copy, '/');
	if (len)
		*len++ = '\0';
	if (ap__number(copy, &addr))
		return bad_mem(p, name, "the address is not a number");
	if (len && (ap__number(len, &bytes) || bytes == 0 || bytes > 8 || (bytes & (bytes - 1))))
		return bad_mem(p, name, "the length is not 1, 2, 4 or 8");
	for (const char *c = access; c && *c; c++) {
		u32 bit = *c == 'r'   ? HW_BREAKPOINT_R
			  : *c == 'w' ? HW_BREAKPOINT_W
			  : *c == 'x' ? HW_BREAKPOINT_X
				      : 0;

		if (!bit || (type & bit))
			return bad_mem(p, name, "the access is not r, w, rw or x");
		type |= bit;
	}
	if (!type)
		type = HW_BREAKPOINT_RW;
	if ((type & HW_BREAKPOINT_X) && type != HW_BREAKPOINT_X)
		return bad_mem(p, name, "execution cannot be combined with r or w");
	if (!bytes)
		bytes = type == HW_BREAKPOINT_X ? sizeof(long) : HW_BREAKPOINT_LEN_4;
	r = ap__parse_add(p, name, &it);
	if (r)
		return r;
	it->attr.type = PERF_TYPE_BREAKPOINT;
	it->attr.bp_type = type;
	it->attr.bp_addr = addr;
	it->attr.bp_len = bytes;
	return 0;
}

/* PLACE["+"OFFSET]: cuts the offset off. */
static int cut_offset(struct ap__parse *p, char *place, u64 *offset)
{
	char *plus = strrchr(place, '+');

	*offset = 0;
	if (!plus)
		return 0;
	*plus = '\0';
	if (ap__number(plus + 1, offset))
		return ap__fail(p->err, -EINVAL, AP_CAUSE_SYNTAX,
				"\"+%.80s\" is not an offset; give a decimal or 0x number",
				plus + 1);
	return 0;
}

struct lookup {
	const char *wanted;
	u64 offset;
	unsigned int seen;
	struct ap__nearest near;
};

static int look(const char *name, u64 offset, void *data)
{
	struct lookup *l = data;

	l->seen++;
	if (strcmp(name, l->wanted) == 0) {
		l->offset = offset;
		return 1;
	}
	ap__nearest_offer(&l->near, name);
	return 0;
}

static int file_error(struct ap__parse *p, const char *file, int e)
{
	return ap__fail(p->err, e, AP_CAUSE_FILE, "%.300s cannot be probed: %s", file,
			e == -ENOENT    ? "there is no such file"
			: e == -EACCES  ? "it is not readable for this user"
			: e == -ENOEXEC ? "it is not an ELF file of this machine's byte order"
			: e == -ENOMEM  ? "it cannot be mapped"
					: strerror(-e));
}

static int symbol_offset(struct ap__parse *p, const char *file, const char *symbol, u64 *offset)
{
	struct lookup l = {.wanted = symbol};
	int fd = open(file, O_RDONLY | O_CLOEXEC), r;
	char text[320];
	struct stat st;
	void *bytes;

	if (fd < 0)
		return file_error(p, file, -errno);
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		close(fd);
		return file_error(p, file, -ENOEXEC);
	}
	bytes = st.st_size ? mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0)
			   : MAP_FAILED;
	close(fd);
	if (bytes == MAP_FAILED)
		return file_error(p, file, st.st_size ? -ENOMEM : -ENOEXEC);
	ap__nearest_init(&l.near, symbol);
	r = ap__elf_symbols(bytes, (size_t)st.st_size, look, &l);
	munmap(bytes, (size_t)st.st_size);
	if (r < 0)
		return file_error(p, file, r);
	*offset = l.offset;
	if (r)
		return 0;
	ap__nearest_text(&l.near, text, sizeof(text));
	ap__fail(p->err, -ENOENT, AP_CAUSE_UNKNOWN_EVENT, "%.200s has no function \"%.80s\"%s%s%s",
		 file, symbol, l.seen ? "" : " (it has no symbols at all: stripped?)",
		 text[0] ? ": " : "", text);
	return ap__remedy(p->err, -ENOENT, "give a file offset instead, or a file with symbols");
}

static int probe_pmu(struct ap__parse *p, struct ap__item *it, const char *kind, bool ret)
{
	const char *pmu = kind[0] == 'k' ? "kprobe" : "uprobe";
	long long type;
	int r;

	if (ap__slurp_number(p->m, &type, AP__DEVICES "/%s/type", pmu)) {
		ap__fail(p->err, -ENOENT, AP_CAUSE_UNSUPPORTED,
			 "this kernel has no %s PMU, so \"%.100s\" cannot be probed", pmu,
			 it->pub.name);
		return ap__remedy(p->err, -ENOENT,
				  "it takes Linux 4.17 built with CONFIG_%s_EVENTS",
				  kind[0] == 'k' ? "KPROBE" : "UPROBE");
	}
	it->attr.type = (u32)type;
	it->pub.pmu = pmu;
	if (!ret)
		return 0;
	r = ap__format_set(p, pmu, &it->attr, "retprobe", 1);
	if (r == -ENOENT)
		it->attr.config |= 1;
	return r == -ENOENT ? 0 : r;
}

int ap__parse_probe(struct ap__parse *p, const char *name, const char *kind, const char *text)
{
	char *copy = ap__specs_strdup(p->specs, text), *colon, *place;
	bool ret = strstr(kind, "ret"), user = kind[0] == 'u';
	struct ap__item *it;
	u64 offset, base = 0;
	int r;

	if (!copy)
		return ap__fail_memory(p->err);
	place = copy;
	if (user) {
		colon = strrchr(copy, ':');
		if (!colon || colon == copy || !colon[1]) {
			ap__fail(p->err, -EINVAL, AP_CAUSE_SYNTAX,
				 "\"%.120s\" lacks the file or the place in it", name);
			return ap__remedy(p->err, -EINVAL, "write %s:FILE:SYMBOL[+OFFSET]", kind);
		}
		*colon = '\0';
		place = colon + 1;
	}
	r = cut_offset(p, place, &offset);
	if (r)
		return r;
	if (!*place)
		return ap__fail(p->err, -EINVAL, AP_CAUSE_SYNTAX, "\"%.120s\" names no function",
				name);
	r = ap__parse_add(p, name, &it);
	if (r)
		return r;
	r = probe_pmu(p, it, kind, ret);
	if (r)
		return r;
	if (ap__number(place, &base) == 0) {
		/* A kernel address, or an offset in the file. */
		if (user)
			it->attr.uprobe_path = (u64)(uintptr_t)copy;
		else
			it->attr.kprobe_func = 0;
		it->attr.probe_offset = base + offset;
		return 0;
	}
	if (!user) {
		/*
		 * The kernel looks the symbol up, modules' included. The string lives with the
		 * list.
		 */
		it->attr.kprobe_func = (u64)(uintptr_t)place;
		it->attr.probe_offset = offset;
		return 0;
	}
	r = symbol_offset(p, copy, place, &base);
	if (r)
		return r;
	it->attr.uprobe_path = (u64)(uintptr_t)copy;
	it->attr.probe_offset = base + offset;
	return 0;
}
