/*
 * PURPOSE: --control of `stat` and `record`: words read from a descriptor or fifo that start, stop
 * and end the measurement while it runs, each answered with "ack\n" if a second descriptor is
 * given.
 */
#ifndef CLI_CONTROL_WORDS_H
#define CLI_CONTROL_WORDS_H

#include "base/types.h"

enum control_word {
	CONTROL_NONE = 0, /* nothing (more) has come */
	CONTROL_ENABLE,
	CONTROL_DISABLE,
	CONTROL_PING,   /* only the answer is wanted */
	CONTROL_EVLIST, /* print the events to stderr */
	CONTROL_STOP,
	CONTROL_UNKNOWN, /* the word is in `line` */
};

struct control {
	int fd;  /* -1: none, or its writers have all gone */
	int ack; /* -1: none */
	bool own_fd, own_ack;
	char line[64];
	u32 len;  /* bytes of an unfinished line */
	u32 next; /* the finished line that was taken ends here */
};

/* Opens what @text says ("fd:3,4", "fifo:/tmp/ctl"). 0, or -1 with a sentence in @why. */
must_check int control_open(struct control *c, const char *text, char *why, size_t size);

/* The next word that has come; does not wait. */
enum control_word control_take(struct control *c);

/* Says that the word was obeyed. */
void control_ack(struct control *c);

void control_close(struct control *c);

#endif
