#include "cli/script/record-text.h"

#include <inttypes.h>
#include <stdbool.h>

#include "cli/put-name.h"

static void dec(FILE *f, const char *name, uint64_t v)
{
	fprintf(f, " %s=%" PRIu64, name, v);
}

static void hex(FILE *f, const char *name, uint64_t v)
{
	fprintf(f, " %s=%#" PRIx64, name, v);
}

static void text(FILE *f, const char *name, const char *v)
{
	fprintf(f, " %s=", name);
	put_name(f, 0, v);
}

static void words(FILE *f, const char *name, const uint64_t *v, uint64_t nr)
{
	fprintf(f, " %s=[", name);
	for (uint64_t i = 0; i < nr; i++)
		fprintf(f, "%s%" PRIx64, i ? " " : "", v[i]);
	fputc(']', f);
}

static void bytes(FILE *f, const char *name, const uint8_t *v, size_t len)
{
	fprintf(f, " %s=%zu:", name, len);
	for (size_t i = 0; i < len; i++)
		fprintf(f, "%02x", v[i]);
}

static void block(FILE *f, const struct ap_read_block *b)
{
	struct ap_value v[16];
	int n = ap_read_decode(b->bytes, b->len, b->format, v, 16);

	fprintf(f, " read=%d[", n);
	for (int i = 0; i < n && i < 16; i++)
		fprintf(f,
			"%svalue=%" PRIu64 " enabled=%" PRIu64 " running=%" PRIu64 " id=%" PRIu64
			" lost=%" PRIu64,
			i ? ", " : "", v[i].value, v[i].enabled, v[i].running, v[i].id, v[i].lost);
	fputc(']', f);
}

static void branches(FILE *f, const struct ap_branch_stack *b)
{
	hex(f, "hw_idx", b->hw_idx);
	fprintf(f, " branches=%" PRIu64 "[", b->nr);
	for (uint64_t i = 0; i < b->nr; i++) {
		const struct perf_branch_entry *e = &b->entries[i];

		fprintf(f, "%s%" PRIx64 "/%" PRIx64 "/%c%c%c%c/%d/%d", i ? " " : "",
			(uint64_t)e->from, (uint64_t)e->to, e->mispred ? 'M' : '-',
			e->predicted ? 'P' : '-', e->in_tx ? 'X' : '-', e->abort ? 'A' : '-',
			(int)e->cycles, (int)e->type);
		if (e->spec || e->new_type || e->priv)
			fprintf(f, "/%d/%d/%d", (int)e->spec, (int)e->new_type, (int)e->priv);
	}
	fputc(']', f);
	if (b->counters)
		words(f, "counters", b->counters, b->nr);
}

static void regs(FILE *f, const char *name, const struct ap_regs *r)
{
	fprintf(f, " %s.abi=%" PRIu64, name, r->abi);
	words(f, name, r->values, (uint64_t)__builtin_popcountll(r->mask));
}

/* What is 0 may just not have been asked for. */
static void sample(FILE *f, const struct ap_sample *s)
{
	if (s->ip)
		hex(f, "ip", s->ip);
	if (s->addr)
		hex(f, "addr", s->addr);
	if (s->period)
		dec(f, "period", s->period);
	if (s->read.bytes)
		block(f, &s->read);
	if (s->callchain.ips)
		words(f, "callchain", s->callchain.ips, s->callchain.nr);
	if (s->raw.bytes)
		bytes(f, "raw", s->raw.bytes, s->raw.len);
	if (s->branch_stack.entries)
		branches(f, &s->branch_stack);
	if (s->regs_user.abi)
		regs(f, "regs_user", &s->regs_user);
	if (s->stack_user.len) {
		bytes(f, "stack_user", s->stack_user.bytes, s->stack_user.len);
		dec(f, "dyn_size", s->stack_user.dyn_size);
	}
	if (s->weight)
		hex(f, "weight", s->weight);
	if (s->data_src)
		hex(f, "data_src", s->data_src);
	if (s->transaction)
		hex(f, "transaction", s->transaction);
	if (s->regs_intr.abi)
		regs(f, "regs_intr", &s->regs_intr);
	if (s->phys_addr)
		hex(f, "phys_addr", s->phys_addr);
	if (s->cgroup)
		dec(f, "cgroup", s->cgroup);
	if (s->data_page_size)
		dec(f, "data_page_size", s->data_page_size);
	if (s->code_page_size)
		dec(f, "code_page_size", s->code_page_size);
	if (s->aux.len)
		bytes(f, "aux", s->aux.bytes, s->aux.len);
}

static void mmap_record(FILE *f, const struct ap_record_mmap *m, bool two)
{
	dec(f, "pid", m->pid);
	dec(f, "tid", m->tid);
	hex(f, "addr", m->addr);
	hex(f, "len", m->len);
	hex(f, "pgoff", m->pgoff);
	if (two && m->build_id) {
		bytes(f, "build_id", m->build_id, m->build_id_size);
	} else if (two) {
		fprintf(f, " dev=%02x:%02x", m->maj, m->min);
		dec(f, "ino", m->ino);
		dec(f, "ino_generation", m->ino_generation);
	}
	if (two) {
		hex(f, "prot", m->prot);
		hex(f, "flags", m->flags);
	}
	text(f, "filename", m->filename);
}

static void namespaces(FILE *f, const struct ap_record_namespaces *n)
{
	dec(f, "pid", n->pid);
	dec(f, "tid", n->tid);
	fprintf(f, " namespaces=%" PRIu64 "[", n->nr);
	for (uint64_t i = 0; i < n->nr; i++)
		fprintf(f, "%s%" PRIu64 "/%#" PRIx64, i ? " " : "", (uint64_t)n->links[i].dev,
			(uint64_t)n->links[i].ino);
	fputc(']', f);
}

static void body(FILE *f, const struct ap_record *rec)
{
	switch (rec->type) {
	case PERF_RECORD_MMAP: mmap_record(f, &rec->mmap, false); break;
	case PERF_RECORD_MMAP2: mmap_record(f, &rec->mmap, true); break;
	case PERF_RECORD_LOST:
		dec(f, "id", rec->lost.id);
		dec(f, "lost", rec->lost.lost);
		break;
	case PERF_RECORD_LOST_SAMPLES: dec(f, "lost", rec->lost.lost); break;
	case PERF_RECORD_COMM:
		dec(f, "pid", rec->comm.pid);
		dec(f, "tid", rec->comm.tid);
		text(f, "comm", rec->comm.comm);
		break;
	case PERF_RECORD_EXIT:
	case PERF_RECORD_FORK:
		dec(f, "pid", rec->task.pid);
		dec(f, "ppid", rec->task.ppid);
		dec(f, "tid", rec->task.tid);
		dec(f, "ptid", rec->task.ptid);
		dec(f, "time", rec->task.time);
		break;
	case PERF_RECORD_THROTTLE:
	case PERF_RECORD_UNTHROTTLE:
		dec(f, "time", rec->throttle.time);
		dec(f, "id", rec->throttle.id);
		dec(f, "stream_id", rec->throttle.stream_id);
		break;
	case PERF_RECORD_READ:
		dec(f, "pid", rec->read.pid);
		dec(f, "tid", rec->read.tid);
		block(f, &rec->read.read);
		break;
	case PERF_RECORD_SAMPLE: sample(f, &rec->sample); break;
	case PERF_RECORD_AUX:
		hex(f, "aux_offset", rec->aux.aux_offset);
		hex(f, "aux_size", rec->aux.aux_size);
		hex(f, "flags", rec->aux.flags);
		break;
	case PERF_RECORD_ITRACE_START:
		dec(f, "pid", rec->itrace_start.pid);
		dec(f, "tid", rec->itrace_start.tid);
		break;
	case PERF_RECORD_SWITCH_CPU_WIDE:
		dec(f, "next_prev_pid", rec->context_switch.next_prev_pid);
		dec(f, "next_prev_tid", rec->context_switch.next_prev_tid);
		break;
	case PERF_RECORD_NAMESPACES: namespaces(f, &rec->namespaces); break;
	case PERF_RECORD_KSYMBOL:
		hex(f, "addr", rec->ksymbol.addr);
		dec(f, "len", rec->ksymbol.len);
		dec(f, "ksym_type", rec->ksymbol.ksym_type);
		hex(f, "flags", rec->ksymbol.flags);
		text(f, "name", rec->ksymbol.name);
		break;
	case PERF_RECORD_BPF_EVENT:
		dec(f, "type", rec->bpf_event.type);
		dec(f, "flags", rec->bpf_event.flags);
		dec(f, "id", rec->bpf_event.id);
		bytes(f, "tag", rec->bpf_event.tag, 8);
		break;
	case PERF_RECORD_CGROUP:
		dec(f, "id", rec->cgroup.id);
		text(f, "path", rec->cgroup.path);
		break;
	case PERF_RECORD_TEXT_POKE:
		hex(f, "addr", rec->text_poke.addr);
		bytes(f, "old", rec->text_poke.old_bytes, rec->text_poke.old_len);
		bytes(f, "new", rec->text_poke.new_bytes, rec->text_poke.new_len);
		break;
	case PERF_RECORD_AUX_OUTPUT_HW_ID: hex(f, "hw_id", rec->aux_output_hw_id.hw_id); break;
	case AP_RECORD_CALLCHAIN_DEFERRED:
		hex(f, "cookie", rec->callchain_deferred.cookie);
		words(f, "callchain", rec->callchain_deferred.callchain.ips,
		      rec->callchain_deferred.callchain.nr);
		break;
	default: break;
	}
}

void show_record(FILE *f, const struct ap_record *rec)
{
	const char *name = ap_record_name(rec->type);

	if (name)
		fprintf(f, "%s", name);
	else
		fprintf(f, "unknown(%u)", rec->type);
	fprintf(f, " misc=%#x size=%u", rec->misc, rec->size);
	body(f, rec);
	if (rec->id.has & PERF_SAMPLE_TID)
		fprintf(f, " id.pid=%u id.tid=%u", rec->id.pid, rec->id.tid);
	if (rec->id.has & PERF_SAMPLE_TIME)
		dec(f, "id.time", rec->id.time);
	if (rec->id.has & (PERF_SAMPLE_ID | PERF_SAMPLE_IDENTIFIER))
		dec(f, "id.id", rec->id.id);
	if (rec->id.has & PERF_SAMPLE_STREAM_ID)
		dec(f, "id.stream_id", rec->id.stream_id);
	if (rec->id.has & PERF_SAMPLE_CPU)
		dec(f, "id.cpu", rec->id.cpu);
	fputc('\n', f);
}
