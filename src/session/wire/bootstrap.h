/*
 * PURPOSE: sockets: the bootstrap sockets on which processes introduce themselves, the socket of
 * each process, and the name under which others find the session.
 *
 * Ownership: a struct bootstrap is the session's until the last guest with its other end has ended.
 * It is freed after the batch of epoll events.
 */
#ifndef SESSION_WIRE_BOOTSTRAP_H
#define SESSION_WIRE_BOOTSTRAP_H

#include "base/list.h"
#include "session/poll-source.h"

struct closer;
struct guest_process;
struct session;

struct bootstraps {
	struct list open; /* struct bootstrap, those that some guest still holds */
	struct list dead; /* those to be freed after the batch */
	int guest_end;    /* the guests' end of the first one; -1 once given up */
	int listen;       /* the socket with the session's name; -1: it has none */
	struct poll_source listen_poll;
	struct closer *closer; /* of what nobody known has sent; NULL: nothing yet. Owned */
};

/* The session's end of one; each who joins by name gets one for his segment. */
struct bootstrap {
	struct poll_source poll;
	struct list link; /* in bootstraps.open or bootstraps.dead */
	int sock;
};

/* A new one; *@guest_end is the caller's. */
int must_check bootstrap_open(struct session *s, int *guest_end);
/* The session reads @sock, its end of one, from now on; takes it, also on failure. */
int must_check bootstrap_add(struct session *s, int sock);
void bootstrap_free(struct bootstrap *bootstrap);
void bootstrap_read(struct session *s, struct bootstrap *bootstrap);

/* A socket for a process that WIRE_OP_FORK announces; *@guest_end is the caller's. */
int must_check guest_process_make_socket(struct guest_process *p, int *guest_end);
/*
 * @sock is not read any more, and closed with what is still in it; @closer takes descriptors that
 * others have sent.
 */
void sock_close(int sock, struct closer **closer);
/* The guest is not listened to any more: it has sent more than can be closed. */
void sock_refuse(struct guest_process *p);
/* Reads what has arrived on a process's own socket. */
void sock_read(struct guest_process *p);

int must_check listen_open(struct session *s, const char *name, char *why, size_t len);
void listen_accept(struct session *s);

#endif
