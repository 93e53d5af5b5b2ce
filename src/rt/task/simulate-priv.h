/*
 * What simulate.c and beside.c share. Who feeds a half of the model has its lock; what each piece
 * has counted is shown, and pieces are handed over, under one lock that is never held for long.
 * They are taken in this order, behind all other locks; the one around beginning and ending
 * (beside.c) comes before them. All signals need not be blocked: handlers
 * of ours take them only where the thread was in the code cache.
 */
#ifndef RT_TASK_SIMULATE_PRIV_H
#define RT_TASK_SIMULATE_PRIV_H

#include "rt/task/trace-pieces.h"
#include "sys/lock.h"

extern struct lock simulate_half_lock[MODEL_HALVES], simulate_lock;

/* Under simulate_lock: halves that can be beside the program; 0: nothing can. */
u32 simulate_halves(void);

/* Under the half's lock: feeds it with @p. */
void simulate_piece(struct trace_piece *p, u32 half);

/* Under simulate_lock, when all halves have been fed with it. */
void simulate_show(const struct trace_piece *p);

#endif
