/*
 * Ring buffers: whatever a writer does to the shared memory, honest or not, readers crash, hang and
 * loop never, and give only what lies within what they have copied.
 *
 * The input is a program. Its first two bytes choose what events there are; then each operation is
 * a byte, with a lane in its low bits, and operands.
 */
#include "fuzz/fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "lib/sample/order.h"
#include "record/coding.h"
#include "records/touch.h"
#include "unit/lib/fake-ring.h"

#define LANES 3

const char *const fuzz_samples[] = {
	/* Honest writers, and a reader that holds back. */
	"a!0\x10\x01"
	"1\x20\x02"
	"2\x18\x03"
	"`"
	"pz"
	"`"
	"1\x11\x04"
	"`"
	"pz"
	"`a",
	/* Raw bytes, pokes, heads and tails that cannot be. */
	"c!@\x08........"
	"`"
	"P\x05xxxxxxxx"
	"`"
	"Q\x40"
	"A\xf0yyyyyyyyyyyyyyyy"
	"a"
	"R\x07"
	"`",
	/* Backward, with snapshots. */
	"d!0\x10\x01"
	"0\x10\x02"
	"1\x10\x03"
	"\x80"
	"`"
	"0\x10\x04"
	"\x80"
	"`",
	/* Two events in each buffer, told apart by their ids. */
	"b!4\x10\x01"
	"0\x20\x02"
	"5\x20\x03"
	"a",
	NULL};
const char *const fuzz_words[] = {
	"\x09\x01\x02\x10", "`", "a", "pz", "0\x10", "\x80", "P", "Q", "R", NULL};

struct reader {
	const uint8_t *in;
	size_t left;
};

static u8 byte(struct reader *in)
{
	if (!in->left)
		return 0;
	in->left--;
	return *in->in++;
}

static u64 word(struct reader *in)
{
	u64 v = 0;

	for (int i = 0; i < 8; i++)
		v = v << 8 | byte(in);
	return v;
}

static struct fake fake;
static struct ap_event *events[2 * LANES]; /* a lane's owner, then the ones that write there too */
static struct ap_ring *rings[LANES];
static struct ap__order order;
static u64 now, stamp;

static void open_lanes(u8 kind, struct ap_machine *m)
{
	static u64 bounce[RECORD_MAX / 8];
	struct pe_attr a = {.type = PERF_TYPE_SOFTWARE,
			    .config = PERF_COUNT_SW_DUMMY,
			    .size = sizeof(a),
			    .sample_type = PERF_SAMPLE_TIME | PERF_SAMPLE_IDENTIFIER,
			    .sample_id_all = 1,
			    .write_backward = kind >> 2 & 1};

	for (int i = 0; i < 2 * LANES; i++) {
		/* Each lane's second event has another layout, if it is wanted at all. */
		if (i >= LANES)
			a.sample_type |= PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW;
		CHECK(!ap_event_open(&events[i], m, (struct perf_event_attr *)&a, NULL, NULL));
		if (i < LANES)
			CHECK(!ap__ring_map(&rings[i], events[i], 1, bounce, NULL));
		if (i < LANES || (kind & 2))
			CHECK(!ap__ring_add(rings[i % LANES], events[i], (unsigned int)i, NULL));
	}
	CHECK(!ap__order_init(&order, rings, LANES, 1000));
}

static void close_lanes(void)
{
	ap__order_release(&order);
	for (int i = 0; i < LANES; i++)
		ap_ring_unmap(rings[i]);
	for (int i = 0; i < 2 * LANES; i++)
		ap_event_close(events[i]);
}

/* A sample as an honest writer would write it; its length follows from its raw data. */
static void write_sample(struct reader *in, int event)
{
	static const u8 raw[256];
	struct ap_record rec = {.type = PERF_RECORD_SAMPLE};

	rec.sample.raw = (struct ap_bytes){.len = byte(in), .bytes = raw};
	rec.id.time = stamp + byte(in) % 4;
	stamp += 2;
	fake_write(&fake, ap_event_fd(events[event]), &rec);
}

static void write_bytes(struct reader *in, int event)
{
	u8 bytes[256];
	size_t len = byte(in);

	for (size_t i = 0; i < len; i++)
		bytes[i] = byte(in);
	if (len)
		fake_write_bytes(&fake, ap_event_fd(events[event]), bytes, len);
}

static void poke(struct reader *in, int lane)
{
	size_t at = byte(in) * 16u;
	u64 v = word(in);

	memcpy((u8 *)fake_page(&fake, ap_event_fd(events[lane])) + FAKE_PAGE + at, &v, sizeof(v));
}

static void move_head(struct reader *in, int lane)
{
	struct perf_event_mmap_page *page = fake_page(&fake, ap_event_fd(events[lane]));
	u8 how = byte(in);

	if (how & 0x80)
		page->data_tail = word(in);
	else if (how & 0x40)
		page->data_head = word(in);
	else
		page->data_head += how * 8;
}

/* At most so many records can be in the buffers, and so many complaints be made about them. */
#define MOST (LANES * (FAKE_PAGE / 8 + 4))

/* A round, or @n records of it. */
static void take(bool hold, unsigned int n)
{
	struct ap_record rec;
	struct ap_ring *from;
	struct ap_error err;

	for (unsigned int i = 0; i < n; i++) {
		int r = ap__order_next(&order, hold, now, &rec, &from, &err);

		if (!r)
			return;
		CHECK(r == 1 || r == -EBADMSG || r == -EOPNOTSUPP);
		CHECK(i < MOST);
		if (r < 0) {
			CHECK(err.code == r && err.why[0]);
			continue;
		}
		touch_record(&rec);
		CHECK(rec.size <= FAKE_PAGE || rec.size <= RECORD_MAX);
		CHECK(ap__ring_tag(from, &rec) < 2 * LANES);
	}
}

static void snapshot(void)
{
	for (int i = 0; i < LANES; i++)
		if (ap_ring_snapshot(rings[i], NULL))
			return;
	ap__order_restart(&order);
}

/* The readers of single rings, on what is left. */
static void drain(int lane)
{
	struct ap_record rec;
	struct ap_error err;
	int r;

	for (unsigned int i = 0; (r = ap_ring_next(rings[lane], &rec, &err)); i++) {
		CHECK(i < MOST);
		CHECK(r == 1 || r == -EBADMSG || r == -EOPNOTSUPP);
		if (r > 0)
			touch_record(&rec);
	}
}

static int take_raw(const void *records, size_t len, void *data)
{
	const struct perf_event_header *h = records;

	(void)data;
	CHECK(len >= sizeof(*h) && h->size >= sizeof(*h) && h->size <= len);
	return 0;
}

/* Without decoding: what is whole is handed over, and nothing is left. */
static void drain_raw(int lane)
{
	struct ap_ring *r = rings[lane];
	int n;

	if (r->backward)
		return;
	n = ap__ring_drain(r, take_raw, NULL);
	CHECK(!n || n == -EBADMSG);
	CHECK(r->seen == r->end);
}

static void run(struct reader *in)
{
	u64 until;

	while (in->left) {
		u8 op = byte(in);
		int lane = op % LANES, event = op % (2 * LANES);

		switch (op >> 4) {
		case 3: write_sample(in, event); break;
		case 4: write_bytes(in, event); break;
		case 5: op & 8 ? poke(in, lane) : move_head(in, lane); break;
		case 6: take(op & 1, op & 8 ? 3 : UINT32_MAX); break;
		case 7: now += byte(in) * 50; break;
		case 8: snapshot(); break;
		default: ap__order_waits(&order, &until); break;
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct reader in = {data, len};
	struct ap_machine *m;
	bool raw;

	if (len < 2 || len > 4096)
		return 0;
	fake = (struct fake){0};
	now = 5000;
	stamp = 100;
	m = fake_machine(&fake);
	open_lanes(byte(&in), m);
	raw = byte(&in) & 1;
	run(&in);
	for (int i = 0; i < LANES && raw; i++)
		drain_raw(i);
	if (!raw) {
		take(true, UINT32_MAX);
		take(false, UINT32_MAX);
		take(false, UINT32_MAX);
	}
	ap__order_release(&order);
	for (int i = 0; i < LANES; i++)
		drain(i);
	close_lanes();
	CHECK(!fake.mapped);
	ap_machine_free(m);
	return 0;
}
