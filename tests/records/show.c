#include "records/show.h"

#include <inttypes.h>
#include <stdbool.h>

#define LAYOUT                                                                                    \
	"layout sample_type=%" PRIx64 " read_format=%" PRIx64 " branch=%" PRIx64 " user=%" PRIx64 \
	" intr=%" PRIx64 " id_all=%d"

void show_layout(FILE *f, const struct ap_layout *layout)
{
	fprintf(f, LAYOUT "\n", layout->sample_type, layout->read_format,
		layout->branch_sample_type, layout->sample_regs_user, layout->sample_regs_intr,
		layout->sample_id_all);
}

int read_layout(const char *line, struct ap_layout *layout)
{
	int all;

	if (sscanf(line,
		   "layout sample_type=%" SCNx64 " read_format=%" SCNx64 " branch=%" SCNx64
		   " user=%" SCNx64 " intr=%" SCNx64 " id_all=%d",
		   &layout->sample_type, &layout->read_format, &layout->branch_sample_type,
		   &layout->sample_regs_user, &layout->sample_regs_intr, &all) != 6)
		return -1;
	layout->sample_id_all = all;
	return 0;
}
