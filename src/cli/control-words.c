#include "cli/control-words.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int parse_fd(const char *text, const char **rest)
{
	char *end;
	long fd = strtol(text, &end, 10);

	if (end == text || fd < 0 || fd > 1 << 20 || (*end && *end != ','))
		return -1;
	*rest = *end ? end + 1 : end;
	return (int)fd;
}

static int open_fds(struct control *c, const char *text, char *why, size_t size)
{
	const char *rest, *end;

	c->fd = parse_fd(text, &rest);
	if (c->fd < 0) {
		snprintf(why, size, "'%s' does not begin with a descriptor's number", text);
		return -1;
	}
	if (*rest) {
		c->ack = parse_fd(rest, &end);
		if (c->ack < 0 || *end) {
			snprintf(why, size, "'%s' is not a descriptor's number", rest);
			return -1;
		}
	}
	if (fcntl(c->fd, F_GETFD) < 0 || (c->ack >= 0 && fcntl(c->ack, F_GETFD) < 0)) {
		snprintf(why, size, "descriptor %d is not open",
			 fcntl(c->fd, F_GETFD) < 0 ? c->fd : c->ack);
		return -1;
	}
	return 0;
}

/* Read and write, so that opening does not wait and the end of a writer is not the end of all. */
static int open_fifo(const char *path, char *why, size_t size)
{
	int fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		snprintf(why, size, "cannot open '%s': %s", path, strerror(errno));
	return fd;
}

static int open_fifos(struct control *c, const char *text, char *why, size_t size)
{
	const char *comma = strchr(text, ',');
	char path[4096];

	snprintf(path, sizeof(path), "%.*s", (int)(comma ? comma - text : (long)strlen(text)),
		 text);
	c->fd = open_fifo(path, why, size);
	if (c->fd < 0)
		return -1;
	c->own_fd = true;
	if (comma) {
		c->ack = open_fifo(comma + 1, why, size);
		if (c->ack < 0) {
			control_close(c);
			return -1;
		}
		c->own_ack = true;
	}
	return 0;
}

int control_open(struct control *c, const char *text, char *why, size_t size)
{
	*c = (struct control){.fd = -1, .ack = -1};
	if (!strncmp(text, "fd:", 3))
		return open_fds(c, text + 3, why, size);
	if (!strncmp(text, "fifo:", 5))
		return open_fifos(c, text + 5, why, size);
	snprintf(why, size, "'%s' begins with neither fd: nor fifo:", text);
	return -1;
}

/* Reads what is there without ever waiting, whatever the descriptor's own mode is. */
static void fill(struct control *c)
{
	struct pollfd p = {.fd = c->fd, .events = POLLIN};
	ssize_t n;

	if (c->fd < 0 || poll(&p, 1, 0) <= 0)
		return;
	n = read(c->fd, c->line + c->len, sizeof(c->line) - 1 - c->len);
	if (n > 0)
		c->len += (u32)n;
	else if (n == 0 || (errno != EINTR && errno != EAGAIN))
		c->fd = c->own_fd ? c->fd : -1;
}

enum control_word control_take(struct control *c)
{
	static const struct {
		const char *text;
		enum control_word word;
	} words[] = {
		{"enable", CONTROL_ENABLE}, {"disable", CONTROL_DISABLE}, {"ping", CONTROL_PING},
		{"evlist", CONTROL_EVLIST}, {"stop", CONTROL_STOP},
	};
	char *end;

	memmove(c->line, c->line + c->next, c->len - c->next);
	c->len -= c->next;
	c->next = 0;
	end = memchr(c->line, '\n', c->len);
	if (!end) {
		fill(c);
		end = memchr(c->line, '\n', c->len);
	}
	if (!end) {
		/* Longer than any word: give it up, or reading would stop for ever. */
		if (c->len < sizeof(c->line) - 1)
			return CONTROL_NONE;
		end = c->line + c->len - 1;
	}
	*end = 0;
	c->next = (u32)(end - c->line) + 1;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (!strcmp(c->line, words[i].text))
			return words[i].word;
	return CONTROL_UNKNOWN;
}

void control_ack(struct control *c)
{
	if (c->ack >= 0)
		(void)!write(c->ack, "ack\n", 4);
}

void control_close(struct control *c)
{
	if (c->own_fd && c->fd >= 0)
		close(c->fd);
	if (c->own_ack && c->ack >= 0)
		close(c->ack);
	c->fd = c->ack = -1;
}
