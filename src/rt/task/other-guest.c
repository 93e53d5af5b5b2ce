#include "rt/task/other-guest.h"

#include "rt/mm/mm.h"
#include "rt/syscall/fd.h"
#include "rt/task/process.h"
#include "sys/fmt.h"
#include "sys/string.h"

#define MOST_THREADS 65536u /* that are looked at: a list may be a circle */
#define DEEPEST      33u    /* pid namespaces within each other: MAX_PID_NS_LEVEL + 1 */

/* Where it stands in us it stands in every guest of the same runtime, and in nobody else. */
static const char mark[] = "a guest of anyperf's";

bool other_guest_find(u32 pid, struct other_guest *o)
{
	char text[sizeof(mark)];
	struct proc *only = NULL;
	struct thread *at;

	if (!mm_read_foreign(pid, mark, text, sizeof(text)) ||
	    memcmp(text, mark, sizeof(mark)) != 0 ||
	    !mm_read_foreign(pid, threads_list(), &at, sizeof(at)))
		return false;
	o->pid = pid;
	for (u32 n = 0; at && n < MOST_THREADS; n++) {
		struct proc *proc;
		u32 its;

		if (!mm_read_foreign(pid, &at->proc, &proc, sizeof(proc)) ||
		    !mm_read_foreign(pid, &proc->pid, &its, sizeof(its)) ||
		    !mm_read_foreign(pid, &at->all_next, &at, sizeof(at)))
			return false;
		o->at = proc;
		if (its == pid)
			return true;
		/* Of several that share their memory the number tells which is meant. */
		if (only && proc != only)
			only = (struct proc *)-1ul;
		else
			only = proc;
	}
	/* In a pid namespace of its own it calls itself something else. */
	o->at = only;
	return only && only != (struct proc *)-1ul;
}

/* The numbers behind @name in @path, from the namespace of /proc inwards; how many. */
static u32 read_numbers(const char *path, const char *name, u32 *numbers)
{
	char text[2048];
	const char *at = text;
	u32 n = 0;
	u64 number;
	int len;

	if (fd_read_text(path, text, sizeof(text)) <= 0)
		return 0;
	while (!str_starts(at, name)) {
		at = str_chr(at, '\n');
		if (!at)
			return 0;
		at++;
	}
	at += str_len(name);
	while (n < DEEPEST && *at == '\t' && (len = str_u64(at + 1, 10, &number)) > 0) {
		numbers[n++] = (u32)number;
		at += 1 + len;
	}
	return n;
}

/* Whether /proc calls @pid @number. */
static bool is_number_of(u32 number, u32 pid)
{
	u32 found[DEEPEST];
	char path[40];
	long fd = raw_call2(__NR_pidfd_open, pid, 0);
	bool same;

	if (fd < 0)
		return false;
	fmt(path, sizeof(path), "/proc/self/fdinfo/%d", (int)fd);
	same = read_numbers(path, "Pid:", found) == 1 && found[0] == number;
	sys_close((int)fd);
	return same;
}

u32 pid_of_number(struct thread *t, u32 number)
{
	u32 ours[DEEPEST], its[DEEPEST], depth;
	char text[40];
	u64 self;
	long len = sys_readlinkat(AT_FDCWD, "/proc/self", text, sizeof(text) - 1);

	if (len <= 0)
		return number;
	text[len] = '\0';
	if (str_u64(text, 10, &self) != (int)len || self == t->proc->pid)
		return number;
	/* It is a namespace's around ours. */
	if (number == self)
		return t->proc->pid;
	depth = read_numbers("/proc/self/status", "NSpid:", ours);
	fmt(text, sizeof(text), "/proc/%u/status", number);
	if (!depth || read_numbers(text, "NSpid:", its) < depth ||
	    !is_number_of(number, its[depth - 1]))
		return 0;
	return its[depth - 1];
}
