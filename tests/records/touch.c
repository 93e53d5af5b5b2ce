#include "records/touch.h"

#include <string.h>

#include "base/check.h"
#include "base/types.h"

static u64 touch(const struct ap_record *rec, const void *p, size_t len)
{
	const u8 *from = rec->bytes, *bytes = p;
	u64 sum = 0;

	if (!p) {
		CHECK(!len);
		return 0;
	}
	CHECK(bytes >= from && bytes + len <= from + rec->size);
	for (size_t i = 0; i < len; i++)
		sum = sum * 31 + bytes[i];
	return sum;
}

static u64 touch_sample(const struct ap_record *rec)
{
	const struct ap_sample *s = &rec->sample;
	const struct ap_branch_stack *b = &s->branch_stack;
	u64 sum = 0, value = 0;

	sum += touch(rec, s->read.bytes, s->read.len);
	sum += touch(rec, s->callchain.ips, s->callchain.nr * sizeof(u64));
	sum += touch(rec, s->raw.bytes, s->raw.len);
	sum += touch(rec, b->entries, b->nr * sizeof(*b->entries));
	if (b->counters)
		sum += touch(rec, b->counters, b->nr * sizeof(u64));
	sum += touch(rec, s->stack_user.bytes, s->stack_user.len);
	CHECK(s->stack_user.dyn_size <= s->stack_user.len);
	sum += touch(rec, s->aux.bytes, s->aux.len);
	for (unsigned int reg = 0; reg < 64; reg++) {
		if (ap_regs_get(&s->regs_user, reg, &value))
			sum += value;
		if (ap_regs_get(&s->regs_intr, reg, &value))
			sum += value;
	}
	return sum;
}

static u64 touch_text(const struct ap_record *rec, const char *text)
{
	return touch(rec, text, strlen(text) + 1);
}

uint64_t touch_record(const struct ap_record *rec)
{
	if (!rec->known)
		return 0;
	switch (rec->type) {
	case PERF_RECORD_SAMPLE: return touch_sample(rec);
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		CHECK(rec->mmap.build_id_size <= 20);
		return touch(rec, rec->mmap.build_id, rec->mmap.build_id ? 20 : 0) +
		       touch_text(rec, rec->mmap.filename);
	case PERF_RECORD_COMM: return touch_text(rec, rec->comm.comm);
	case PERF_RECORD_READ: return touch(rec, rec->read.read.bytes, rec->read.read.len);
	case PERF_RECORD_NAMESPACES:
		return touch(rec, rec->namespaces.links,
			     rec->namespaces.nr * sizeof(*rec->namespaces.links));
	case PERF_RECORD_KSYMBOL: return touch_text(rec, rec->ksymbol.name);
	case PERF_RECORD_BPF_EVENT: return touch(rec, rec->bpf_event.tag, 8);
	case PERF_RECORD_CGROUP: return touch_text(rec, rec->cgroup.path);
	case PERF_RECORD_TEXT_POKE:
		return touch(rec, rec->text_poke.old_bytes, rec->text_poke.old_len) +
		       touch(rec, rec->text_poke.new_bytes, rec->text_poke.new_len);
	case AP_RECORD_CALLCHAIN_DEFERRED:
		return touch(rec, rec->callchain_deferred.callchain.ips,
			     rec->callchain_deferred.callchain.nr * sizeof(u64));
	default: return 0;
	}
}
