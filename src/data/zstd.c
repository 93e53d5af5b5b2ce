/*
 * libzstd by dlopen, as libpfm4 is: recording without -z and reading what is not compressed must
 * not pay for it. The few declarations are written here after its stable interface (zstd.h 1.4.0
 * and later), so that building does not need its header.
 */
#include "data/zstd.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>

#include "lib/refusal/fail.h"

struct zstd_in {
	const void *src;
	size_t size, pos;
};

struct zstd_out {
	void *dst;
	size_t size, pos;
};

enum { ZSTD_LEVEL = 100, ZSTD_FLUSH = 1 };

struct data_zstd {
	void *lib;
	void *stream; /* a ZSTD_CCtx or ZSTD_DCtx */
	bool compresses;
	void *(*create)(void);
	size_t (*destroy)(void *stream);
	unsigned int (*is_error)(size_t code);
	size_t (*set)(void *stream, int parameter, int value);
	size_t (*compress)(void *stream, struct zstd_out *out, struct zstd_in *in, int end);
	size_t (*decompress)(void *stream, struct zstd_out *out, struct zstd_in *in);
};

/* C has no cast from an object pointer to a function's; POSIX promises that this works. */
#define RESOLVE(z, member, symbol) (*(void **)&(z)->member = dlsym((z)->lib, symbol))

static bool resolve(struct data_zstd *z)
{
	if (!RESOLVE(z, is_error, "ZSTD_isError"))
		return false;
	if (!z->compresses)
		return RESOLVE(z, create, "ZSTD_createDStream") &&
		       RESOLVE(z, destroy, "ZSTD_freeDStream") &&
		       RESOLVE(z, decompress, "ZSTD_decompressStream");
	return RESOLVE(z, create, "ZSTD_createCCtx") && RESOLVE(z, destroy, "ZSTD_freeCCtx") &&
	       RESOLVE(z, set, "ZSTD_CCtx_setParameter") &&
	       RESOLVE(z, compress, "ZSTD_compressStream2");
}

int data_zstd_open(struct data_zstd **out, int level, struct ap_error *err)
{
	struct data_zstd *z = calloc(1, sizeof(*z));

	if (!z)
		return ap__fail_memory(err);
	z->compresses = level > 0;
	z->lib = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!z->lib || !resolve(z)) {
		data_zstd_close(z);
		ap__fail(err, -ENOENT, AP_CAUSE_UNSUPPORTED,
			 "libzstd.so.1 is not installed, which %s records",
			 level ? "compresses" : "decompresses");
		return ap__remedy(err, -ENOENT, "install it (Debian: libzstd1)");
	}
	z->stream = z->create();
	if (!z->stream || (z->set && z->is_error(z->set(z->stream, ZSTD_LEVEL, level)))) {
		data_zstd_close(z);
		return ap__fail_memory(err);
	}
	*out = z;
	return 0;
}

void data_zstd_close(struct data_zstd *z)
{
	if (!z)
		return;
	if (z->stream)
		z->destroy(z->stream);
	if (z->lib)
		dlclose(z->lib);
	free(z);
}

long data_zstd_step(struct data_zstd *z, struct data_zstd_input *in, void *out, size_t room)
{
	struct zstd_in src = {in->bytes, in->len, 0};
	struct zstd_out dst = {out, room, 0};
	size_t r = z->compresses ? z->compress(z->stream, &dst, &src, ZSTD_FLUSH)
				 : z->decompress(z->stream, &dst, &src);

	if (z->is_error(r))
		return -EBADMSG;
	in->bytes = (const u8 *)in->bytes + src.pos;
	in->len -= src.pos;
	return (long)dst.pos;
}
