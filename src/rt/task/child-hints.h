/*
 * The pages in which forked processes tell their parent what code they have translated, for the
 * translator (dbt_fork_hints()): each process has one that it shares with the children that it
 * has forked, and the one of its parent's. An execve ends both.
 */
#ifndef RT_TASK_CHILD_HINTS_H
#define RT_TASK_CHILD_HINTS_H

/* Before a fork, with no lock taken. A page that cannot be had is done without. */
void child_hints_offer(void);
/* In the child: what its parent offers its children is the parent's now. */
void child_hints_forked(void);

#endif
