/*
 * PURPOSE: --from and --to: counting what lies between two places of a program. A breakpoint at
 * each of them takes a sample with what its group has counted up to there in the thread; the
 * differences are added up. It counts the threads of a command, whose program has the places, but
 * no other processes.
 */
#ifndef CLI_COMPARE_COMPARE_REGION_H
#define CLI_COMPARE_COMPARE_REGION_H

#include "cli/compare/compare-priv.h"

/*
 * The list of events for @side, to be freed: a group for each place, with @events in all. NULL
 * after saying which place its program has not, or why it cannot be told. The command is run if
 * only that tells where its program lies.
 */
char *compare_region_events(struct compare_job *job, struct compare_side *side, const char *events);

/* Opens them on the command. 0 or -errno with the reason. */
must_check int compare_region_open(const struct compare_side *side, struct ap_command *command,
				   struct ap_sampler **s, struct ap_error *err);

/*
 * Adds up what was counted into @sums, one for each of side->nr_counts. How often the region was
 * passed; or -1 after saying why nothing can be told.
 */
must_check int compare_region_read(const struct compare_job *job, const struct compare_side *side,
				   struct ap_sampler *s, u64 *sums);

#define MARK_PLACES_MAX 16

/*
 * The addresses of the mark @name, of which there are as many as copies that the compiler has made,
 * by the notes of an ELF file that are loaded to @vaddr. Returns how many; more than
 * MARK_PLACES_MAX are not written.
 */
u32 mark_places_in(const void *notes, size_t len, u64 vaddr, const char *name,
		   u64 places[MARK_PLACES_MAX]);

#endif
