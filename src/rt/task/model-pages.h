/*
 * PURPOSE: the memory of a model is filled ahead. A virtual machine may take 30 us for a page
 * fault, and one and a half for each of many pages that it is asked for at once; and faults would
 * be counted as the program's.
 */
#ifndef RT_TASK_MODEL_PAGES_H
#define RT_TASK_MODEL_PAGES_H

#include "model/feed.h"

/* The model has been made, and nobody has used it. */
void model_pages_begin(const struct model *model);
/* More is about to be fed. *@filled: of the feed's room, bytes that are filled; 0 at first. */
void model_pages_ahead(u64 *filled, const struct feed *f);

#endif
