/*
 * PURPOSE: marks places in a program, so that what lies between two of them can be counted without
 * what stands around it: start-up, reading of input, output.
 *
 *   #include <anyperf/mark.h>
 *
 *   ANYPERF_BEGIN(parse);
 *   parse(text);
 *   ANYPERF_END(parse);
 *
 *   $ anyperf compare --from parse.begin --to parse.end -- ./old --vs ./new
 *
 * A mark is one `nop` in the code, and a few bytes in the section .note.anyperf, which says where
 * it is. It makes no call, reads nothing and needs no library; this header includes no other. Where
 * the compiler makes several copies of the code all of them are marked.
 *
 * x86-64 and arm64, C and C++; elsewhere the marks are nothing.
 */
#ifndef ANYPERF_MARK_H
#define ANYPERF_MARK_H

#if defined(__GNUC__) && (defined(__x86_64__) || defined(__aarch64__))

/* A place called NAME. */
#define ANYPERF_MARK(name) ANYPERF_MARK_NAMED(#name)

/* The note: sizes of owner and contents, type 1, owner, how far away the place is, its name. */
#define ANYPERF_MARK_NAMED(text)                                        \
	__asm__ volatile("990:	nop\n"                                   \
			 "	.pushsection .note.anyperf, \"a?\", %note\n" \
			 "	.balign 4\n"                                 \
			 "	.4byte 8, 993f - 992f, 1\n"                  \
			 "	.asciz \"anyperf\"\n"                        \
			 "992:	.8byte 990b - 992b\n"                    \
			 "	.asciz \"" text "\"\n"                  \
			 "993:	.balign 4\n"                             \
			 "	.popsection\n")

#else

#define ANYPERF_MARK(name)       ((void)0)
#define ANYPERF_MARK_NAMED(text) ((void)0)

#endif

/* The places NAME.begin and NAME.end. */
#define ANYPERF_BEGIN(name) ANYPERF_MARK_NAMED(#name ".begin")
#define ANYPERF_END(name)   ANYPERF_MARK_NAMED(#name ".end")

#endif
