/*
 * Instructions that are rewritten, executed in both forms: natively and through the translator, from the same
 * registers, flags, vector state and memory, all of which are compared afterwards, faults too.
 *
 * The instructions are random ones of every map with a rip-relative or a GS operand; their code lies where the
 * translator must use each of its forms: near the code cache, below 2 GB, and out of reach of both.
 * test_rewrite [COUNT [SEED]]
 */
#include "dbt/arch/x86_64/decode.h"
#include "unit/dbt/arena.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static u64 state = 0x72657772697465;

static u64 rnd(void)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return state * 0x2545f4914f6cdd1d;
}

/* What is left out, because running it twice cannot give the same or would leave the test. */
static bool testable(const struct insn *i)
{
	if (i->cf != CF_NONE || (i->attr & INSN_RSP))
		return false;
	switch (i->special) {
	case SP_NONE:
	case SP_CMPXCHG16B:
	case SP_ENDBR: break;
	default: return false;
	}
	/* 0f ae and 0f c7 with an operand: control words whose reserved bits fault, saved states. */
	if (i->map == MAP_0F && (i->opcode == 0xae || i->opcode == 0xc7) && !(i->modrm == 0x0d))
		return false;
	if (!(i->attr & INSN_MEM) || (i->attr & (INSN_ADDR32 | INSN_VSIB)))
		return false;
	/* A bit offset in a register reaches anywhere. */
	if (i->map == MAP_0F && (i->opcode & 0xe7) == 0xa3)
		return false;
	/*
	 * Key Locker, which this test's CPUs mostly lack: its flags count as overwritten, so they are not
	 * kept for the handler of the SIGILL that it gives instead.
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
 * A random instruction for the slot at @slot, @data its rip-relative operand or, with @gs, an offset from the GS base with
 * the registers' values. Returns its length, 0 for none.
 */
static unsigned int make(u8 *slot, u64 data, bool gs, struct insn *insn)
{
	u8 p[32] = {0};
	static const u8 prefixes[] = {0x66, 0xf2, 0xf3, 0xf0};
	unsigned int n = 0;
	u64 r = rnd();
	s32 disp;
	int len;

	if (gs)
		p[n++] = 0x65;
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

static void show(const u8 *p, unsigned int len, const char *where, const char *what)
{
	fprintf(stderr, "%s code, %s:", where, what);
	for (unsigned int i = 0; i < len; i++)
		fprintf(stderr, " %02x", p[i]);
	fputc('\n', stderr);
}

int main(int argc, char **argv)
{
	unsigned long count = argc > 1 ? strtoul(argv[1], NULL, 0) : 50000;
	static const u64 places[] = {0x10000000, 0x200000000000, 0};
	static const char *const names[] = {"low", "far", "near"};
	unsigned long done = 0, faults = 0, bad = 0, tries = 0;
	struct arena *a[3];

	if (argc > 2)
		state ^= strtoul(argv[2], NULL, 0) * 0x9e3779b97f4a7c15;
	for (int i = 0; i < 3; i++)
		a[i] = arena_new(places[i]);
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
		if (!len)
			continue;
		what = arena_compare(a[at], len, rnd(), gs, &sig);
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
