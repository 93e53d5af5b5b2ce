/*
 * PURPOSE: which of a session's processes the model sees from their beginning. To see one costs
 * much, most of it for what is needed before anything is simulated, and a script that starts
 * hundreds of short programs does much the same in all of them. So of a process's children the
 * first are all seen. Of those behind them one of several is, drawn by chance, and counts for them
 * all: one of as many as a third of those before them, of twelve at most. Those before them are
 * also those before their parent, and as many for each of these as they have sisters: of a script
 * that starts one that starts another few are the first of their parents, and not of the script.
 * Their number is divided by how many their parent stands for, which have been left out already.
 * Who is not seen may be who starts all that does the work, so his children are drawn likewise, but
 * for the first ones, which are not seen as he is not. Nothing but the children of each process in
 * their order decides it, so it is the same each time, also where processes run at the same time.
 */
#ifndef RT_TASK_WINDOWS_DRAW_H
#define RT_TASK_WINDOWS_DRAW_H

#include "abi/modeled.h"

/* Of the next child of @place, while events of the model are open: else it is the first. */
struct model_place draw_child(struct model_place *place, bool wanted);

/* For how many processes one stands that is seen at @place. */
static inline u32 draw_times(const struct model_place *place)
{
	return 1 + place->more;
}

/* Chance that is the same each time: a number below @room, 0 if that is 0 (splitmix64). */
u64 draw_number(u64 number, u64 room);

#endif
