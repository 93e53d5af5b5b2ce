/*
 * Records other than SAMPLE: what stands between header and trailer, as <linux/perf_event.h> has it
 * [REC-01..20]. Fields that a newer kernel adds stand behind these and are passed over; the strings
 * are the exception, they go on to the trailer, padded with zeros.
 */
#include "record/describe.h"

static void describe_string(struct codec *c, const char **s)
{
	const u8 *bytes = (const u8 *)*s;
	size_t len = 0;

	CODEC_PART(c, "its text");
	if (c->op != CODEC_DECODE) {
		while (bytes[len++])
			;
		code_bytes(c, &bytes, len);
		code_padding(c, -len % 8);
		return;
	}
	len = cursor_left(&c->in);
	code_bytes(c, &bytes, len);
	if (c->in.torn)
		return;
	for (size_t i = 0; i < len; i++)
		if (!bytes[i]) {
			*s = (const char *)bytes;
			return;
		}
	codec_fail(c, "its text has no end");
}

/* u8 size, three bytes of nothing, 20 bytes of which `size` are the build id. */
static void describe_build_id(struct codec *c, struct ap_record_mmap *m)
{
	code_u8(c, &m->build_id_size);
	code_padding(c, 3);
	if (m->build_id_size > 20)
		codec_fail(c, "its build id is longer than 20 bytes");
	code_bytes(c, &m->build_id, 20);
}

static void describe_mmap(struct codec *c, struct ap_record *rec)
{
	struct ap_record_mmap *m = &rec->mmap;

	code_u32(c, &m->pid);
	code_u32(c, &m->tid);
	code_u64(c, &m->addr);
	code_u64(c, &m->len);
	code_u64(c, &m->pgoff);
	if (rec->type == PERF_RECORD_MMAP2) {
		if (rec->misc & PERF_RECORD_MISC_MMAP_BUILD_ID) {
			describe_build_id(c, m);
		} else {
			code_u32(c, &m->maj);
			code_u32(c, &m->min);
			code_u64(c, &m->ino);
			code_u64(c, &m->ino_generation);
		}
		code_u32(c, &m->prot);
		code_u32(c, &m->flags);
	}
	describe_string(c, &m->filename);
}

static void describe_task(struct codec *c, struct ap_record_task *t)
{
	code_u32(c, &t->pid);
	code_u32(c, &t->ppid);
	code_u32(c, &t->tid);
	code_u32(c, &t->ptid);
	code_u64(c, &t->time);
}

static void describe_throttle(struct codec *c, struct ap_record_throttle *t)
{
	code_u64(c, &t->time);
	code_u64(c, &t->id);
	code_u64(c, &t->stream_id);
}

static void describe_aux(struct codec *c, struct ap_record_aux *a)
{
	code_u64(c, &a->aux_offset);
	code_u64(c, &a->aux_size);
	code_u64(c, &a->flags);
}

static void describe_namespaces(struct codec *c, struct ap_record_namespaces *n)
{
	code_u32(c, &n->pid);
	code_u32(c, &n->tid);
	code_u64(c, &n->nr);
	code_links(c, &n->links, n->nr);
}

static void describe_ksymbol(struct codec *c, struct ap_record_ksymbol *k)
{
	code_u64(c, &k->addr);
	code_u32(c, &k->len);
	code_u16(c, &k->ksym_type);
	code_u16(c, &k->flags);
	describe_string(c, &k->name);
}

static void describe_bpf_event(struct codec *c, struct ap_record_bpf_event *b)
{
	code_u16(c, &b->type);
	code_u16(c, &b->flags);
	code_u32(c, &b->id);
	code_bytes(c, &b->tag, 8);
}

static void describe_text_poke(struct codec *c, struct ap_record_text_poke *t)
{
	code_u64(c, &t->addr);
	code_u16(c, &t->old_len);
	code_u16(c, &t->new_len);
	code_bytes(c, &t->old_bytes, t->old_len);
	code_bytes(c, &t->new_bytes, t->new_len);
	/* 12 bytes, then the code, together a multiple of 8. */
	code_padding(c, -(12u + t->old_len + t->new_len) % 8);
}

void ap__describe_other(struct codec *c, struct ap_record *rec, const struct ap_layout *layout)
{
	CODEC_PART(c, "what its type asks for");
	switch (rec->type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2: describe_mmap(c, rec); break;
	case PERF_RECORD_LOST:
		code_u64(c, &rec->lost.id);
		code_u64(c, &rec->lost.lost);
		break;
	case PERF_RECORD_LOST_SAMPLES: code_u64(c, &rec->lost.lost); break;
	case PERF_RECORD_COMM:
		code_u32(c, &rec->comm.pid);
		code_u32(c, &rec->comm.tid);
		describe_string(c, &rec->comm.comm);
		break;
	case PERF_RECORD_EXIT:
	case PERF_RECORD_FORK: describe_task(c, &rec->task); break;
	case PERF_RECORD_THROTTLE:
	case PERF_RECORD_UNTHROTTLE: describe_throttle(c, &rec->throttle); break;
	case PERF_RECORD_READ:
		code_u32(c, &rec->read.pid);
		code_u32(c, &rec->read.tid);
		ap__describe_read(c, &rec->read.read, layout->read_format);
		break;
	case PERF_RECORD_AUX: describe_aux(c, &rec->aux); break;
	case PERF_RECORD_ITRACE_START:
		code_u32(c, &rec->itrace_start.pid);
		code_u32(c, &rec->itrace_start.tid);
		break;
	case PERF_RECORD_SWITCH: break;
	case PERF_RECORD_SWITCH_CPU_WIDE:
		code_u32(c, &rec->context_switch.next_prev_pid);
		code_u32(c, &rec->context_switch.next_prev_tid);
		break;
	case PERF_RECORD_NAMESPACES: describe_namespaces(c, &rec->namespaces); break;
	case PERF_RECORD_KSYMBOL: describe_ksymbol(c, &rec->ksymbol); break;
	case PERF_RECORD_BPF_EVENT: describe_bpf_event(c, &rec->bpf_event); break;
	case PERF_RECORD_CGROUP:
		code_u64(c, &rec->cgroup.id);
		describe_string(c, &rec->cgroup.path);
		break;
	case PERF_RECORD_TEXT_POKE: describe_text_poke(c, &rec->text_poke); break;
	case PERF_RECORD_AUX_OUTPUT_HW_ID: code_u64(c, &rec->aux_output_hw_id.hw_id); break;
	case AP_RECORD_CALLCHAIN_DEFERRED:
		code_u64(c, &rec->callchain_deferred.cookie);
		ap__describe_callchain(c, &rec->callchain_deferred.callchain);
		break;
	default: break; /* not known: there is nothing to say about it */
	}
}
