/* The public face of src/record: sentences for its errors. */
#include <anyperf/record.h>

#include <errno.h>
#include <string.h>

#include "lib/refusal/fail.h"
#include "record/coding.h"

void ap_layout_init(struct ap_layout *layout, const struct perf_event_attr *attr)
{
	u32 size = attr->size ? attr->size : PE_ATTR_SIZE_VER0;
	struct pe_attr a = {0};

	memcpy(&a, attr, size < sizeof(a) ? size : sizeof(a));
	*layout = (struct ap_layout){.sample_type = a.sample_type,
				     .read_format = a.read_format,
				     .branch_sample_type = a.branch_sample_type,
				     .sample_regs_user = a.sample_regs_user,
				     .sample_regs_intr = a.sample_regs_intr,
				     .sample_id_all = a.sample_id_all};
}

int ap_record_decode(struct ap_record *rec, const void *bytes, size_t len,
		     const struct ap_layout *layout, struct ap_error *err)
{
	struct perf_event_header h = {0};
	struct ap_record got;
	const char *why;
	int r = ap__record_decode(&got, bytes, len, layout, &why);

	if (r > 0) {
		*rec = got;
		return r;
	}
	memcpy(&h, bytes, len < sizeof(h) ? len : sizeof(h));
	if (ap__record_name(h.type))
		return ap__fail(err, r, AP_CAUSE_OTHER,
				"a %s record of %u bytes, of which %zu are there: %s",
				ap__record_name(h.type), h.size, len, why);
	return ap__fail(err, r, AP_CAUSE_OTHER,
			"a record of unknown type %u and %u bytes, of which %zu are there: %s",
			h.type, h.size, len, why);
}

int ap_record_event_id(const void *bytes, size_t len, uint64_t *id)
{
	struct perf_event_header h;
	size_t at;

	if (len < sizeof(h))
		return -ENODATA;
	memcpy(&h, bytes, sizeof(h));
	if (h.size < sizeof(h))
		return -EBADMSG;
	if (h.size > len)
		return -ENODATA;
	if (h.type >= RECORD_USER_TYPE_START)
		return -ENOENT;
	at = ap__record_id_at(h.type, h.size);
	if (!at)
		return -EBADMSG;
	memcpy(id, (const char *)bytes + at, sizeof(*id));
	return 0;
}

const char *ap_record_name(uint32_t type)
{
	return ap__record_name(type);
}

bool ap_regs_get(const struct ap_regs *regs, unsigned int reg, uint64_t *value)
{
	if (reg > 63 || !(regs->mask >> reg & 1))
		return false;
	*value = regs->values[count_bits(regs->mask & (BIT(reg) - 1))];
	return true;
}
