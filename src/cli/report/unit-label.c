#include "cli/report/unit-label.h"

const char *unit_label(enum report_aggr aggr, const struct report_unit *u, char *buf, size_t size)
{
	switch (aggr) {
	case AGGR_GLOBAL: snprintf(buf, size, "%s", ""); break;
	case AGGR_SOCKET: snprintf(buf, size, "S%d", u->socket); break;
	case AGGR_DIE: snprintf(buf, size, "S%d-D%d", u->socket, u->die); break;
	case AGGR_NODE: snprintf(buf, size, "N%d", u->node); break;
	case AGGR_CORE: snprintf(buf, size, "S%d-D%d-C%d", u->socket, u->die, u->core); break;
	case AGGR_CPU: snprintf(buf, size, "CPU%d", u->cpu); break;
	case AGGR_THREAD: snprintf(buf, size, "%s-%d", u->comm, (int)u->tid); break;
	}
	return buf;
}

bool unit_counts_cpus(enum report_aggr aggr)
{
	return aggr == AGGR_SOCKET || aggr == AGGR_DIE || aggr == AGGR_NODE || aggr == AGGR_CORE;
}

bool unit_event_first(enum report_aggr aggr)
{
	return aggr == AGGR_CPU || aggr == AGGR_THREAD;
}
