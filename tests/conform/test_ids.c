/*
 * Whose a sample is, and whose counts it tells: of copies, of groups, and of events that share a
 * buffer or an occurrence [SAMP-01, SAMP-06..08, SAMP-10].
 */
#include "conform/records.h"

#include <sched.h>
#include <sys/prctl.h>

/* A copy's samples have the original's id, and a stream's of its own. */
CONFORM(ids_of_copies)
{
	struct pe_attr attr = fault_attr(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_ID |
					 PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU);
	u64 id, stream[2] = {0, 0}, own = 0, theirs = 0, same = 0, cpus = 0, n = 0;
	const struct perf_event_header *h;
	struct buffer b;
	pid_t child;

	run_on(0);
	/* One that is not inherited: no kernel swaps the contexts of parent and child then. */
	NEED(ev_self(sw_attr(PERF_COUNT_SW_DUMMY)) >= 0);
	attr.inherit = 1;
	b = map(ev_open(&attr, 0, 0, -1, 0));
	id = ev_id(b.fd);
	NEED(ev_ioctl(b.fd, PERF_EVENT_IOC_ENABLE, 0) == 0);
	touch_pages(1);
	for (int i = 0; i < 2; i++) {
		child = fork();
		if (!child) {
			for (int k = 0; k < 10; k++)
				touch_pages(1);
			_exit(0);
		}
		NEED(child > 0 && waitpid(child, NULL, 0) == child);
	}
	NEED(ev_ioctl(b.fd, PERF_EVENT_IOC_DISABLE, 0) == 0);
	while ((h = next(&b))) {
		const u64 *p = words_of(h);

		if (h->type != PERF_RECORD_SAMPLE)
			continue;
		n++;
		same += p[0] == id && p[2] == id;
		cpus += p[4] == 0;
		if ((u32)p[1] == (u32)getpid()) {
			own += p[3] == id;
			continue;
		}
		if (!stream[0])
			stream[0] = p[3];
		if (p[3] != stream[0])
			stream[1] = p[3];
		theirs += p[3] != id && (p[3] == stream[0] || p[3] == stream[1]);
	}
	CHECK_ROW("SAMP-06", same == n && n > 20, "ID and IDENTIFIER are the original's in all",
		  "%lu of %lu", same, n);
	CHECK_ROW("SAMP-07", own + theirs == n && own && theirs >= 20,
		  "STREAM_ID is each copy's own", "%lu and %lu of %lu", own, theirs, n);
	check_val("SAMP-07", "another one for each copy", stream[0] && stream[1], 1);
	CHECK_ROW("SAMP-08", cpus == n, "the CPU of all of them is the one", "%lu of %lu", cpus, n);
}

/* Of an event that inherits a sample tells what its own task has counted (6.12). */
CONFORM(counts_of_copies)
{
	struct pe_attr attr = fault_attr(PERF_SAMPLE_TID | PERF_SAMPLE_READ);
	u64 n[2] = {0, 0}, right = 0, all = 0;
	const struct perf_event_header *h;
	struct buffer b;
	pid_t child;

	run_on(0);
	NEED(ev_self(sw_attr(PERF_COUNT_SW_DUMMY)) >= 0);
	attr.inherit = 1;
	if (ev_open(&attr, 0, 0, -1, 0) == -EINVAL) {
		skip_row("SAMP-10", "each task's own count", "this kernel's READ excludes inherit");
		return;
	}
	b = map(ev_open(&attr, 0, 0, -1, 0));
	NEED(ev_ioctl(b.fd, PERF_EVENT_IOC_ENABLE, 0) == 0);
	touch_pages(1);
	child = fork();
	if (!child) {
		for (int k = 0; k < 500; k++)
			touch_pages(1);
		_exit(0);
	}
	NEED(child > 0 && waitpid(child, NULL, 0) == child);
	touch_pages(1);
	NEED(ev_ioctl(b.fd, PERF_EVENT_IOC_DISABLE, 0) == 0);
	for (; (h = next(&b)); all++) {
		const u64 *p = words_of(h);
		bool ours = (u32)p[0] == (u32)getpid();

		/* The runtime's faults are counted and have no sample. */
		right += virtual_world() ? p[1] > n[ours] : p[1] == n[ours] + 1;
		n[ours] = p[1];
	}
	CHECK_ROW("SAMP-10", right == all && all >= 500, "each task's own count goes on by one",
		  "%lu of %lu", right, all);
	CHECK_ROW("SAMP-10", n[0] >= 500 && n[1] < n[0], "a child's is not in its parent's",
		  "%lu and %lu", n[1], n[0]);
	CHECK_ROW("INH-03", ev_count(b.fd) >= n[0] + n[1], "but in what read gives", "%lu",
		  ev_count(b.fd));
}

/* With FORMAT_GROUP a sample of the leader's, and one of a member's, tells of both. */
CONFORM(counts_of_a_group)
{
	static const char *const texts[][5] = {
		{"the size of a leader's sample with a group", "as many as there are",
		 "the leader comes first", "then its member", "counts that go on"},
		{"the size of a member's", "the group's again", "the leader first, too",
		 "then the member that samples", "and its counts that go on"},
	};

	for (int sampler = 0; sampler < 2; sampler++) {
		struct pe_attr attr[2];
		const struct perf_event_header *h;
		u64 ids[2], n = 0, of = 0, first = 0, second = 0, on = 0, last = 0, size = 0;
		struct buffer b;
		int fd[2];

		for (int i = 0; i < 2; i++) {
			attr[i] = fault_attr(i == sampler ? PERF_SAMPLE_READ | PERF_SAMPLE_ADDR
							  : 0);
			attr[i].read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID |
					      PERF_FORMAT_TOTAL_TIME_ENABLED;
			if (i != sampler) {
				attr[i].config = PERF_COUNT_SW_DUMMY;
				attr[i].sample_period = 0;
			}
		}
		attr[1].disabled = 0;
		fd[0] = (int)ev_self(attr[0]);
		NEED(fd[0] >= 0);
		fd[1] = (int)ev_open(&attr[1], 0, -1, fd[0], 0);
		NEED(fd[1] >= 0);
		for (int i = 0; i < 2; i++)
			ids[i] = ev_id(fd[i]);
		b = map(fd[sampler]);
		NEED(ev_ioctl(fd[0], PERF_EVENT_IOC_ENABLE, 0) == 0);
		for (int i = 0; i < 20; i++)
			touch_pages(1);
		NEED(ev_ioctl(fd[0], PERF_EVENT_IOC_DISABLE, 0) == 0);
		for (; (h = next(&b)); n++) {
			const u64 *p = words_of(h) + 1; /* behind ADDR */

			size += h->size == 8 + 8 + 6 * 8;
			of += p[0] == 2 && p[1] > 0;
			first += p[3] == ids[0];
			second += p[5] == ids[1];
			on += p[2 + 2 * sampler] > last && p[2 + 2 * !sampler] == 0;
			last = p[2 + 2 * sampler];
		}
		NEED(n >= 20);
		CHECK_ROW("SAMP-10", size == n, texts[sampler][0], "%lu of %lu", size, n);
		CHECK_ROW("SAMP-10", of == n, texts[sampler][1], "%lu of %lu", of, n);
		CHECK_ROW("SAMP-10", first == n, texts[sampler][2], "%lu of %lu", first, n);
		CHECK_ROW("SAMP-10", second == n, texts[sampler][3], "%lu of %lu", second, n);
		CHECK_ROW("SAMP-10", on == n, texts[sampler][4], "%lu of %lu", on, n);
	}
}

/* Two events of different layouts in one buffer: the id at the ends tells whose a record is. */
CONFORM(taken_apart)
{
	struct pe_attr attr[2] = {
		fault_attr(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_ADDR),
		fault_attr(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
			   PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD),
	};
	static const u16 sizes[2] = {8 + 2 * 8, 8 + 6 * 8};
	/* COMM with a short name, and the words of the trailer. */
	static const u16 names[2] = {24 + 8, 24 + 4 * 8};
	u64 ids[2], n[2] = {0, 0}, named[2] = {0, 0}, right = 0, all = 0, end = 0;
	const struct perf_event_header *h;
	struct buffer b;
	long other;

	/*
	 * Another event: in 6.18 two of one kind share what is found out for a sample of theirs,
	 * and have the id of one of them in both.
	 */
	attr[1].config = PERF_COUNT_SW_PAGE_FAULTS_MIN;
	for (int i = 0; i < 2; i++) {
		attr[i].comm = attr[i].sample_id_all = 1;
		attr[i].disabled = 0;
	}
	b = map(ev_self(attr[0]));
	other = ev_self(attr[1]);
	NEED(other >= 0);
	NEED(ev_ioctl((int)other, PERF_EVENT_IOC_SET_OUTPUT, (unsigned long)b.fd) == 0);
	ids[0] = ev_id(b.fd);
	ids[1] = ev_id((int)other);
	for (int i = 0; i < 5; i++) {
		touch_pages(1);
		prctl(PR_SET_NAME, "short");
	}
	NEED(ev_ioctl(b.fd, PERF_EVENT_IOC_DISABLE, 0) == 0);
	NEED(ev_ioctl((int)other, PERF_EVENT_IOC_DISABLE, 0) == 0);
	for (; (h = next(&b)); all++, end = b.at) {
		u64 last = h->size / 8 - 2;

		for (int i = 0; i < 2; i++)
			if (h->type == PERF_RECORD_SAMPLE && words_of(h)[0] == ids[i]) {
				n[i]++;
				right += h->size == sizes[i];
			} else if (h->type == PERF_RECORD_COMM && words_of(h)[last] == ids[i]) {
				named[i]++;
				right += h->size == names[i];
			}
	}
	CHECK_ROW("SAMP-01", right == all && all >= 20,
		  "the id tells each record's event, and so its size", "%lu of %lu", right, all);
	CHECK_ROW("SAMP-01", n[0] >= 5 && n[1] >= 5, "both have samples", "%lu and %lu", n[0],
		  n[1]);
	check_val("SAMP-01", "both have other records, where it is last",
		  (long long)(named[0] * 10 + named[1]), 55);
	check_val("SAMP-32", "who goes by the sizes alone comes to the end",
		  end == b.page->data_head, 1);
}

/* Two events of one kind, which a kernel may tell of one occurrence in one breath. */
CONFORM(same_occurrence)
{
	struct pe_attr attr = fault_attr(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_ADDR);
	const struct perf_event_header *h;
	struct buffer b[2];
	u64 n = 0, own = 0;

	for (int i = 0; i < 2; i++)
		b[i] = map(ev_self(attr));
	for (int i = 0; i < 2; i++)
		NEED(ev_ioctl(b[i].fd, PERF_EVENT_IOC_ENABLE, 0) == 0);
	for (int i = 0; i < 10; i++)
		touch_pages(1);
	for (int i = 0; i < 2; i++)
		NEED(ev_ioctl(b[i].fd, PERF_EVENT_IOC_DISABLE, 0) == 0);
	for (int i = 0; i < 2; i++)
		for (; (h = next(&b[i])); n++)
			own += words_of(h)[0] == ev_id(b[i].fd);
	CHECK_ROW("SAMP-06", n >= 20 && (own == n || (!virtual_world() && own >= 10)),
		  "two events of one kind both tell of a fault, ours each with its own id",
		  "%lu of %lu", own, n);
}
