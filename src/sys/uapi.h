/*
 * PURPOSE: the kernel's interface where the headers that we build with have no word for it: what is
 * newer than they are, and what is left to a C library's headers. Everything else has its name in
 * <linux/...> or <asm/...>; scripts/check-uapi finds numbers without one.
 */
#ifndef SYS_UAPI_H
#define SYS_UAPI_H

#include <asm/socket.h>
#include <asm/unistd.h>
#include <linux/fs.h>
#include <linux/uio.h>

#include "base/types.h"

/* System calls, by their first kernel. From 424 on the number is the same on every CPU. */

#ifndef __NR_cachestat
#define __NR_cachestat 451 /* 6.5 */
#endif
#ifndef __NR_fchmodat2
#define __NR_fchmodat2 452 /* 6.6 */
#endif
#ifndef __NR_mseal
#define __NR_mseal 462 /* 6.10 */
#endif
#ifndef __NR_setxattrat
#define __NR_setxattrat    463 /* 6.13 */
#define __NR_getxattrat    464
#define __NR_listxattrat   465
#define __NR_removexattrat 466
#endif
#ifndef __NR_open_tree_attr
#define __NR_open_tree_attr 467 /* 6.15 */
#endif
#ifndef __NR_file_getattr
#define __NR_file_getattr 468 /* 6.17 */
#define __NR_file_setattr 469
#endif

/* Newer than the headers. */

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u /* 6.3 */
#endif
#ifndef AT_EXECVE_CHECK
#define AT_EXECVE_CHECK 0x10000 /* of execveat, 6.14 */
#endif
#ifndef AT_RSEQ_FEATURE_SIZE
#define AT_RSEQ_FEATURE_SIZE 27 /* of the auxiliary vector, 6.3 */
#define AT_RSEQ_ALIGN        28
#endif
#ifndef AT_HWCAP3
#define AT_HWCAP3 29 /* 6.9 */
#define AT_HWCAP4 30
#endif
#ifndef PR_SET_MDWE
#define PR_SET_MDWE              65 /* of prctl, 6.3 */
#define PR_MDWE_REFUSE_EXEC_GAIN 1
#define PR_GET_MDWE              66
#endif
#ifndef PR_MDWE_NO_INHERIT
#define PR_MDWE_NO_INHERIT 2 /* 6.6 */
#endif
#ifndef PR_SYS_DISPATCH_INCLUSIVE_ON
#define PR_SYS_DISPATCH_INCLUSIVE_ON 2 /* of prctl, 6.17 */
#endif
#ifndef PROCMAP_QUERY
#define PROCMAP_QUERY                      _IOWR('f', 17, struct procmap_query) /* 6.11 */
#define PROCMAP_QUERY_VMA_READABLE         0x01
#define PROCMAP_QUERY_VMA_WRITABLE         0x02
#define PROCMAP_QUERY_VMA_EXECUTABLE       0x04
#define PROCMAP_QUERY_VMA_SHARED           0x08
#define PROCMAP_QUERY_COVERING_OR_NEXT_VMA 0x10
#define PROCMAP_QUERY_FILE_BACKED_VMA      0x20
struct procmap_query {
	u64 size, query_flags, query_addr;
	u64 vma_start, vma_end, vma_flags, vma_page_size, vma_offset, inode;
	u32 dev_major, dev_minor;
	u32 vma_name_size, build_id_size; /* of the buffers, and of what is in them */
	u64 vma_name_addr, build_id_addr;
};
#endif

/* Left to a C library: <unistd.h>, <dirent.h>, <sys/socket.h>. */

#define X_OK 1
#define W_OK 2

struct linux_dirent64 {
	u64 d_ino;
	s64 d_off;
	u16 d_reclen;
	u8 d_type;
	char d_name[];
};

#define AF_UNIX          1
#define SOCK_SEQPACKET   5
#define SCM_RIGHTS       1
#define MSG_DONTWAIT     0x40
#define MSG_NOSIGNAL     0x4000
#define MSG_CMSG_CLOEXEC 0x40000000

struct user_msghdr {
	void *msg_name;
	s32 msg_namelen;
	struct iovec *msg_iov;
	u64 msg_iovlen;
	void *msg_control;
	u64 msg_controllen;
	u32 msg_flags;
};

struct mmsghdr {
	struct user_msghdr msg_hdr;
	u32 msg_len;
};

struct cmsghdr {
	u64 cmsg_len;
	s32 cmsg_level, cmsg_type;
};

/* personality(2) changes nothing and says what it is. */
#define PERSONALITY_ASK 0xffffffff

/* A set of signals, for the calls that take its size. */
#define SIGSET_SIZE sizeof(u64)

#endif
