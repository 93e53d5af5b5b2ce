/*
 * Instructions that are rewritten, executed in both forms: natively and through the translator,
 * from the same registers, flags, vector state and memory, all of which are compared afterwards,
 * faults too.
 *
 * The instructions are random ones of every map with a rip-relative or a GS operand, their
 * addresses of 32 bits too; their code lies where the translator must use each of its forms: near
 * the code cache, below 2 GB, and out of reach of both. test_forms.c has what random instructions
 * do not come to: branches, the stack, segments, saved states that are valid.
 * test_rewrite [COUNT [SEED]]
 */
/* As in arena.c, for <signal.h>. */
#undef _GNU_SOURCE
#define _DEFAULT_SOURCE

#include "dbt/arch/x86_64/decode.h"
#include "dbt/dbt.h"
#include "unit/dbt/arena.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static u64 state = 0x72657772697465;

static u64 rnd(void)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return state * 0x2545f4914f6cdd1d;
}

/* Operands that are not in modrm's plain form, with a GS prefix. */
static bool special_operand(const struct insn *i)
{
	switch (i->special) {
	case SP_STRING:
		return i->opcode != 0x6c && i->opcode != 0x6d && i->opcode != 0x6e &&
		       i->opcode != 0x6f;
	case SP_XLAT:
	case SP_MASKMOV:
	case SP_GATHER: return true;
	case SP_MOV_FROM_SEG: return (i->modrm >> 3 & 7) == 5;
	default: return false;
	}
}

/* What is left out, because running it twice cannot give the same or would leave the test. */
static bool testable(const struct insn *i)
{
	if (i->cf != CF_NONE)
		return false;
	switch (i->special) {
	case SP_NONE:
	case SP_CMPXCHG16B:
	case SP_XSAVE:
	case SP_X87_ENV:
	case SP_ENDBR: break;
	default: return false;
	}
	if (!(i->attr & INSN_MEM) || (i->attr & INSN_VSIB))
		return false;
	/* A bit offset in a register reaches anywhere, but in rbp and r13. */
	if (i->map == MAP_0F && (i->opcode & 0xe7) == 0xa3 && (insn_reg_field(i) & 7) != 5)
		return false;
	/*
	 * Key Locker, which this test's CPUs mostly lack: its flags count as overwritten, so they
	 * are not kept for the handler of the SIGILL that it gives instead.
	 */
	if (i->map == MAP_0F38 && i->enc == ENC_LEGACY && i->pp == 2 &&
	    (i->opcode == 0xd8 || (i->opcode >= 0xdc && i->opcode <= 0xdf)))
		return false;
	/* X makes an index of the absolute form. */
	if (i->mem.base == REG_NONE && i->mem.index != REG_NONE)
		return false;
	return i->map != MAP_3DNOW && (i->attr & INSN_RIPREL || i->mem.seg == SEG_GS);
}

/*
 * One of those that special_operand() names, or cmpxchg16b, which leaves few registers, at @p; 0
 * for none.
 */
static int make_special(u8 *p, struct insn *insn)
{
	static const u8 ops[] = {0xa4, 0xa5, 0xa6, 0xa7, 0xac, 0xad, 0xaa, 0xab, 0xae, 0xaf, 0xd7};
	u64 r = rnd();
	unsigned int n = 0;
	int len;

	p[n++] = 0x65;
	switch (r & 7) {
	case 0:
	case 1:
	case 2:
		if (r >> 8 & 1)
			p[n++] = r >> 9 & 1 ? 0xf2 : 0xf3;
		if (r >> 10 & 1)
			p[n++] = 0x66;
		if (r >> 11 & 1)
			p[n++] = 0x48;
		p[n++] = ops[(r >> 16) % sizeof(ops)];
		break;
	case 3: /* maskmovq, maskmovdqu */
		if (r >> 8 & 1)
			p[n++] = 0x67;
		if (r >> 9 & 1)
			p[n++] = 0x66;
		p[n++] = 0x0f;
		p[n++] = 0xf7;
		p[n++] = (u8)(0xc0 | (r >> 16));
		break;
	case 4: /* gathers with VEX: index, base and all three registers at random */
		p[n++] = 0xc4;
		p[n++] = (u8)((r >> 8 & 0xe0) | 2);
		p[n++] = (u8)((r >> 16 & 0xfc) | 1);
		p[n++] = (u8)(0x90 | (r >> 24 & 3));
		p[n++] = (u8)((r >> 32 & 0xf8 & ~0xc0ull) | 0x44);
		p[n] = (u8)(r >> 40);
		p[n] = (p[n] & 7) == 4 ? p[n] ^ 2 : p[n];
		n++;
		break;
	case 5: /* with EVEX, scatters too */
		p[n++] = 0x62;
		p[n++] = (u8)((r >> 8 & 0xf0) | 2);
		p[n++] = (u8)((r >> 16 & 0x80) | 0x7d);
		p[n++] = (u8)((r >> 24 & 0x48) | (1 + (r >> 28) % 7));
		p[n++] = (u8)((r >> 33 & 1 ? 0x90 : 0xa0) | (r >> 34 & 3));
		p[n++] = (u8)((r >> 36 & 0x38) | (r >> 42 & 1 ? 0x44 : 0x84));
		/*
		 * What scatters write must not lie anywhere: an index register with an even number,
		 * base not rsp.
		 */
		p[n] = (u8)(r >> 48 & ~0x08ull);
		p[n] = (p[n] & 7) == 4 ? p[n] ^ 2 : p[n];
		n++;
		break;
	case 6: /* mov from GS */
		if (r >> 8 & 1)
			p[n++] = 0x66;
		if (r >> 9 & 1)
			p[n++] = (u8)(0x48 | (r >> 10 & 7));
		p[n++] = 0x8c;
		p[n++] = r >> 13 & 1 ? (u8)(0xe8 | (r >> 14 & 7)) : 0x69; /* [rcx + disp8] */
		p[n++] = 8;
		break;
	default: /* cmpxchg16b gs:[rsi + rdi] */ memcpy(p + n, "\x48\x0f\xc7\x0c\x3e", 5); n += 5;
	}
	for (unsigned int i = n; i < 24; i++)
		p[i] = (u8)(rnd() >> 40 & 0x3f);
	len = insn_decode(insn, p, 24);
	/* A displacement of 32 bits would lead away. */
	if (len > 0 && insn->disp_size == 4) {
		memset(p + insn->disp_off + 1, 0, 3);
		len = insn_decode(insn, p, 24);
	}
	return len;
}

/*
 * A random instruction for the slot at @slot, @data its rip-relative operand or, with @gs, an
 * offset from the GS base with the registers' values. Returns its length, 0 for none.
 */
static unsigned int make(u8 *slot, u64 data, bool gs, struct insn *insn)
{
	u8 p[32] = {0};
	static const u8 prefixes[] = {0x66, 0xf2, 0xf3, 0xf0};
	unsigned int n = 0;
	u64 r = rnd();
	s32 disp;
	int len;

	if (gs && rnd() % 3 == 0) {
		len = make_special(p, insn);
		if (len <= 0 || !(testable(insn) || special_operand(insn)))
			return 0;
		memcpy(slot, p, (size_t)len);
		return (unsigned int)len;
	}
	if (gs)
		p[n++] = 0x65;
	if ((r >> 20 & 7) == 0)
		p[n++] = 0x67;
	switch (r & 7) {
	case 0:
	case 1:
	case 2:
	case 3:
		if ((r >> 8 & 3) == 0)
			p[n++] = prefixes[(r >> 10) & 3];
		if (r >> 12 & 1)
			p[n++] = (u8)(0x40 | ((r >> 16) &
					      15)); /* X and B mean nothing without registers */
		if ((r & 7) >= 1)
			p[n++] = 0x0f;
		if ((r & 7) >= 2)
			p[n++] = (r & 7) == 2 ? 0x38 : 0x3a;
		break;
	case 4:
		p[n++] = 0xc5;
		p[n++] = (u8)(r >> 16);
		break;
	case 5:
		p[n++] = 0xc4;
		p[n++] = (u8)((r >> 16 & 0xe0) | (1 + (r >> 24) % 3));
		p[n++] = (u8)(r >> 32);
		break;
	default:
		p[n++] = 0x62;
		p[n++] = (u8)((r >> 16 & 0xf0) | (1 + (r >> 24) % 6));
		p[n++] = (u8)(r >> 32 | 4);
		p[n++] = (u8)(r >> 40 & 0x7f);
	}
	p[n++] = (u8)(r >> 48);
	if (gs && (r >> 5 & 1)) {
		/* [rcx or r9 + (rdx or r10) * 4 + disp8] */
		p[n++] = (u8)(0x44 | (r >> 56 & 0x38));
		p[n++] = 0x91;
		p[n++] = 0;
	} else if (gs) {
		p[n++] = (u8)(0x04 | (r >> 56 & 0x38));
		p[n++] = 0x25;
		memcpy(p + n, &(u32){64}, 4);
		n += 4;
	} else {
		p[n++] = (u8)(0x05 | (r >> 56 & 0x38));
		n += 4;
	}
	for (unsigned int i = n; i < n + 8 && i < 24; i++)
		p[i] = (u8)(rnd() >> 40);
	len = insn_decode(insn, p, 24);
	if (len <= 0 || !testable(insn))
		return 0;
	if (!gs) {
		disp = (s32)(data - ((u64)slot + (unsigned int)len));
		memcpy(p + insn->disp_off, &disp, 4);
		len = insn_decode(insn, p, 24);
		if (len <= 0)
			return 0;
	}
	memcpy(slot, p, (size_t)len);
	return (unsigned int)len;
}

/*
 * Whether an address that is cut to 32 bits leads to memory that is none of the test's, such as
 * ASan's shadow: what the first execution leaves there the second one would find.
 */
static bool leads_away(const u8 *slot, const struct insn *insn)
{
	u64 whole = (u64)slot + insn->len + (u64)(s64)insn->mem.disp, cut = (u32)whole;
	unsigned char in_core;

	if (!(insn->attr & INSN_ADDR32) || !(insn->attr & INSN_RIPREL) || cut == whole)
		return false;
	/* As far as an operand may reach: xsave's is the longest. */
	for (u64 at = ALIGN_DOWN(cut, 4096); at < cut + ARENA_DATA_SIZE; at += 4096)
		if (!mincore((void *)at, 4096, &in_core) || errno != ENOMEM)
			return true;
	return false;
}

static void show(const u8 *p, unsigned int len, const char *where, const char *what)
{
	fprintf(stderr, "%s code, %s:", where, what);
	for (unsigned int i = 0; i < len; i++)
		fprintf(stderr, " %02x", p[i]);
	fputc('\n', stderr);
}

/*
 * Gathers of 16 numbers by each register that is to hold indexes: none may fault. Scatters by them
 * would write to somewhere in the test.
 */
static unsigned long wild_indexes(struct arena *a)
{
	unsigned long wild = 0;

	for (u32 reg = 0; reg < 32; reg += 2) {
		/* vpgatherdd zmm1{k1}, gs:[rcx + zmmREG] */
		const u8 code[] = {
			0x65, 0x62, (u8)(reg & 8 ? 0xb2 : 0xf2), 0x7d, (u8)(reg & 16 ? 0x41 : 0x49),
			0x90, 0x0c, (u8)((reg & 7) << 3 | 1)};
		int sig;

		memcpy(arena_slot(a), code, sizeof(code));
		if (arena_compare(a, sizeof(code), 1 + rnd(), true, 1, &sig) || sig == SIGSEGV) {
			show(code, sizeof(code), "any", "its indexes lead away");
			wild++;
		}
	}
	return wild;
}

int main(int argc, char **argv)
{
	unsigned long count = argc > 1 ? strtoul(argv[1], NULL, 0) : 50000;
	/* The far one, cut to 32 bits, lies where ASan has its shadow. */
	static const u64 places[] = {0x10000000, 0x200080000000, 0};
	static const char *const names[] = {"low", "far", "near"};
	unsigned long done = 0, faults = 0, bad = 0, tries = 0;
	static struct arena *a[3]; /* nobody frees them: static, so that something points to them */

	if (!arena_is_a_cpu())
		return 77;
	if (argc > 2)
		state ^= strtoul(argv[2], NULL, 0) * 0x9e3779b97f4a7c15;
	for (int i = 0; i < 3; i++)
		a[i] = arena_new(places[i], 0);
	if (wild_indexes(a[1]))
		return 1;
	if (getenv("TRACED"))
		arena_mask(DBT_MASK_ALL | DBT_MASK_TRACE | DBT_MASK_MEMORY);
	while (done < count && bad < 20) {
		int at = (int)(rnd() % 3);
		bool gs = rnd() & 1;
		struct insn insn;
		const char *what;
		unsigned int len;
		int sig;

		if (++tries > count * 1000)
			break;
		len = make(arena_slot(a[at]), arena_data(a[at]) + 64 * (rnd() % 8), gs, &insn);
		if (!len || leads_away(arena_slot(a[at]), &insn))
			continue;
		what = arena_compare(a[at], len, rnd(), gs, 1, &sig);
		done++;
		faults += sig != 0;
		if (what) {
			bad++;
			show(arena_slot(a[at]), len, names[at], what);
		}
	}
	printf("%lu instructions in both forms, %lu of them fault, %lu differences\n", done, faults,
	       bad);
	return bad || done < count;
}
