/*
 * PURPOSE: predicts where indirect jumps and calls go, by tables that are found with histories of
 * growing lengths (`targets ittage` of a machine).
 */
#ifndef MODEL_TARGET_TABLES_H
#define MODEL_TARGET_TABLES_H

#include "model/predictor.h"

/* True: the prediction was @target. Learns; the history is the one of directions. */
bool target_tables_predict(struct predictor *p, u64 ip, u64 target);

#endif
