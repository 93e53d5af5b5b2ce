#include "unit/dbt/decode_oracle.h"

#include <Zydis/Zydis.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define SHOWN_PER_KIND 3
#define TARGET_PC      0x7f0012345000 /* where relative branches lie */

unsigned long oracle_differences, oracle_compared, oracle_exceptions;

/* The same instruction as Zydis tells it, in the decoder's terms. */
struct opinion {
	u8 cf;
	bool mem, riprel;
	struct insn_mem m;
	u16 mem_read, mem_write;
	u16 gpr_read, gpr_written;
	u16 fl_read, fl_written, fl_undef;
	bool rel;
	u64 target;
};

static int gpr_number(ZydisRegister reg, unsigned int *bits)
{
	ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);

	switch (ZydisRegisterGetClass(reg)) {
	case ZYDIS_REGCLASS_GPR8:
	case ZYDIS_REGCLASS_GPR16:
	case ZYDIS_REGCLASS_GPR32:
	case ZYDIS_REGCLASS_GPR64:
		*bits = ZydisRegisterGetWidth(ZYDIS_MACHINE_MODE_LONG_64, reg);
		return whole - ZYDIS_REGISTER_RAX;
	default: return -1;
	}
}

static u8 address_reg(ZydisRegister reg)
{
	unsigned int bits;
	int n;

	if (reg == ZYDIS_REGISTER_NONE)
		return REG_NONE;
	if (reg == ZYDIS_REGISTER_RIP || reg == ZYDIS_REGISTER_EIP)
		return REG_RIP;
	n = gpr_number(reg, &bits);
	return n >= 0 ? (u8)n : (u8)ZydisRegisterGetId(reg);
}

static u8 flow(const ZydisDecodedInstruction *z, const ZydisDecodedOperand *op)
{
	bool rel = op[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE && op[0].imm.is_relative;
	bool far = z->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR;

	switch (z->mnemonic) {
	case ZYDIS_MNEMONIC_JMP: return rel ? CF_JMP : far ? CF_FAR_JMP : CF_JMP_IND;
	case ZYDIS_MNEMONIC_CALL: return rel ? CF_CALL : far ? CF_FAR_CALL : CF_CALL_IND;
	case ZYDIS_MNEMONIC_RET: return far ? CF_FAR_RET : CF_RET;
	case ZYDIS_MNEMONIC_IRET:
	case ZYDIS_MNEMONIC_IRETD:
	case ZYDIS_MNEMONIC_IRETQ: return CF_IRET;
	case ZYDIS_MNEMONIC_LOOP:
	case ZYDIS_MNEMONIC_LOOPE:
	case ZYDIS_MNEMONIC_LOOPNE:
	case ZYDIS_MNEMONIC_JRCXZ:
	case ZYDIS_MNEMONIC_JECXZ: return CF_LOOP;
	case ZYDIS_MNEMONIC_SYSCALL: return CF_SYSCALL;
	case ZYDIS_MNEMONIC_SYSENTER: return CF_SYSENTER;
	case ZYDIS_MNEMONIC_SYSRET:
	case ZYDIS_MNEMONIC_SYSEXIT: return CF_SYSRET;
	case ZYDIS_MNEMONIC_INT:
	case ZYDIS_MNEMONIC_INT1:
	case ZYDIS_MNEMONIC_INT3: return CF_INT;
	case ZYDIS_MNEMONIC_HLT: return CF_HLT;
	case ZYDIS_MNEMONIC_UD0:
	case ZYDIS_MNEMONIC_UD1:
	case ZYDIS_MNEMONIC_UD2: return CF_UD;
	case ZYDIS_MNEMONIC_XBEGIN: return CF_XBEGIN;
	case ZYDIS_MNEMONIC_XABORT: return CF_XABORT;
	case ZYDIS_MNEMONIC_UIRET: return CF_UIRET;
	case ZYDIS_MNEMONIC_XEND:
		return CF_NONE; /* Zydis files it under branches; control never leaves its line */
	default: return z->meta.category == ZYDIS_CATEGORY_COND_BR ? CF_JCC : CF_NONE;
	}
}

static void operand_registers(struct opinion *o, const ZydisDecodedOperand *op)
{
	ZydisOperandActions a = op->actions;
	unsigned int bits;
	int n;

	if (op->type == ZYDIS_OPERAND_TYPE_REGISTER) {
		n = gpr_number(op->reg.value, &bits);
		if (n < 0)
			return;
		if (a & (ZYDIS_OPERAND_ACTION_READ | ZYDIS_OPERAND_ACTION_CONDREAD))
			o->gpr_read |= BIT(n);
		if (a & (ZYDIS_OPERAND_ACTION_WRITE | ZYDIS_OPERAND_ACTION_CONDWRITE))
			o->gpr_written |= BIT(n);
		/* What survives is read: see decode.h. */
		if (((a & ZYDIS_OPERAND_ACTION_WRITE) && bits < 32) ||
		    (a & ZYDIS_OPERAND_ACTION_CONDWRITE))
			o->gpr_read |= BIT(n);
	} else if (op->type == ZYDIS_OPERAND_TYPE_MEMORY) {
		n = gpr_number(op->mem.base, &bits);
		if (n >= 0)
			o->gpr_read |= BIT(n);
		n = gpr_number(op->mem.index, &bits);
		if (n >= 0)
			o->gpr_read |= BIT(n);
	}
}

static void operand_memory(struct opinion *o, const ZydisDecodedOperand *op)
{
	bool agen = op->mem.type == ZYDIS_MEMOP_TYPE_AGEN;

	o->mem = true;
	o->m.base = address_reg(op->mem.base);
	o->m.index = address_reg(op->mem.index);
	o->m.scale = op->mem.scale == 8 ? 3 : op->mem.scale == 4 ? 2 : op->mem.scale == 2 ? 1 : 0;
	o->m.disp = op->mem.disp.has_displacement ? (s32)op->mem.disp.value : 0;
	o->m.seg = op->mem.segment == ZYDIS_REGISTER_FS   ? SEG_FS
		   : op->mem.segment == ZYDIS_REGISTER_GS ? SEG_GS
							  : SEG_NONE;
	o->riprel = o->m.base == REG_RIP;
	if (!agen && (op->actions & ZYDIS_OPERAND_ACTION_MASK_READ))
		o->mem_read = op->size / 8;
	if (!agen && (op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
		o->mem_write = op->size / 8;
}

static void form_opinion(struct opinion *o, const ZydisDecodedInstruction *z,
			 const ZydisDecodedOperand *op)
{
	const ZydisAccessedFlags *f = z->cpu_flags;
	u16 all = FL_ARITH | FL_DF;

	memset(o, 0, sizeof(*o));
	o->cf = flow(z, op);
	for (int i = 0; i < z->operand_count; i++) {
		operand_registers(o, &op[i]);
		if (op[i].type == ZYDIS_OPERAND_TYPE_MEMORY &&
		    op[i].encoding == ZYDIS_OPERAND_ENCODING_MODRM_RM)
			operand_memory(o, &op[i]);
		if (op[i].type == ZYDIS_OPERAND_TYPE_IMMEDIATE && op[i].imm.is_relative) {
			o->rel = true;
			ZydisCalcAbsoluteAddress(z, &op[i], TARGET_PC, &o->target);
		}
	}
	if (f) {
		o->fl_read = f->tested & all;
		o->fl_written = (f->modified | f->set_0 | f->set_1) & all;
		o->fl_undef = f->undefined & all;
	}
}

struct difference {
	char kind[24];
	char mnemonic[24];
	unsigned long count;
};

static void report(const char *kind, const char *mnemonic, const u8 *p, size_t n, u64 ours,
		   u64 theirs)
{
	static struct difference seen[4096];
	static int used;
	struct difference *d;
	int i;

	oracle_differences++;
	for (i = 0; i < used; i++)
		if (!strcmp(seen[i].kind, kind) && !strcmp(seen[i].mnemonic, mnemonic))
			break;
	d = &seen[i];
	if (i == used) {
		if (used == (int)ARRAY_SIZE(seen))
			return;
		used++;
		snprintf(d->kind, sizeof(d->kind), "%s", kind);
		snprintf(d->mnemonic, sizeof(d->mnemonic), "%s", mnemonic);
	}
	if (d->count++ >= SHOWN_PER_KIND)
		return;
	fprintf(stderr, "%s of %s: ours %#llx, Zydis %#llx:", kind, mnemonic,
		(unsigned long long)ours, (unsigned long long)theirs);
	for (size_t k = 0; k < n && k < INSN_MAX; k++)
		fprintf(stderr, " %02x", p[k]);
	fputc('\n', stderr);
}

/*
 * Where the two differ for a reason. Each entry: which field, when, and why ours is right or the
 * difference without consequence. Checked for every difference before it is reported.
 */
static bool is_knc(ZydisMnemonic m)
{
	static const u16 knc[] = {
		ZYDIS_MNEMONIC_CLEVICT0,      ZYDIS_MNEMONIC_CLEVICT1,
		ZYDIS_MNEMONIC_DELAY,         ZYDIS_MNEMONIC_JKNZD,
		ZYDIS_MNEMONIC_JKZD,          ZYDIS_MNEMONIC_KAND,
		ZYDIS_MNEMONIC_KANDN,         ZYDIS_MNEMONIC_KANDNR,
		ZYDIS_MNEMONIC_KCONCATH,      ZYDIS_MNEMONIC_KCONCATL,
		ZYDIS_MNEMONIC_KMERGE2L1H,    ZYDIS_MNEMONIC_KMERGE2L1L,
		ZYDIS_MNEMONIC_KOR,           ZYDIS_MNEMONIC_KNOT,
		ZYDIS_MNEMONIC_KORTEST,       ZYDIS_MNEMONIC_KXNOR,
		ZYDIS_MNEMONIC_KXOR,          ZYDIS_MNEMONIC_KMOV,
		ZYDIS_MNEMONIC_SPFLT,         ZYDIS_MNEMONIC_TZCNTI,
		ZYDIS_MNEMONIC_VPREFETCH0,    ZYDIS_MNEMONIC_VPREFETCH1,
		ZYDIS_MNEMONIC_VPREFETCH2,    ZYDIS_MNEMONIC_VPREFETCHE0,
		ZYDIS_MNEMONIC_VPREFETCHE1,   ZYDIS_MNEMONIC_VPREFETCHE2,
		ZYDIS_MNEMONIC_VPREFETCHENTA, ZYDIS_MNEMONIC_VPREFETCHNTA,
	};

	for (size_t i = 0; i < ARRAY_SIZE(knc); i++)
		if (knc[i] == m)
			return true;
	return false;
}

static bool validity_explained(const struct insn *i, int ours, ZyanStatus status,
			       const ZydisDecodedInstruction *z)
{
	if (ours > 0 && status == ZYDIS_STATUS_DECODING_ERROR)
		/*
		 * Zydis 4.0 is older than AMX-COMPLEX (VEX.0F38 6c), AMX-FP16 (f2 5c) and wrmsrns,
		 * wrmsrlist and rdmsrlist (0f 01 c6).
		 */
		return (i->enc == ENC_VEX && i->special == SP_TILE &&
			(i->opcode == 0x6c || i->opcode == 0x5c)) ||
		       (i->map == MAP_0F && i->opcode == 0x01 && i->modrm == 0xc6);
	if (ours > 0)
		/*
		 * Register combinations that the CPU refuses (gather with one register twice, cr1,
		 * k8, and MPX forms, which a CPU without MPX runs as nops): copied, the CPU itself
		 * answers.
		 */
		return status == ZYDIS_STATUS_BAD_REGISTER;
	if (!ZYAN_SUCCESS(status))
		return false;
	/* Knights Corner: its MVEX encodings are undefined on every other CPU, its VEX ones too. */
	if (z->encoding == ZYDIS_INSTRUCTION_ENCODING_MVEX)
		return true;
	if (z->encoding == ZYDIS_INSTRUCTION_ENCODING_VEX)
		return is_knc(z->mnemonic) || z->mnemonic == ZYDIS_MNEMONIC_POPCNT ||
		       z->mnemonic == ZYDIS_MNEMONIC_TZCNT || z->mnemonic == ZYDIS_MNEMONIC_LZCNT;
	return false;
}

static bool is_shift(ZydisMnemonic m)
{
	switch (m) {
	case ZYDIS_MNEMONIC_ROL:
	case ZYDIS_MNEMONIC_ROR:
	case ZYDIS_MNEMONIC_RCL:
	case ZYDIS_MNEMONIC_RCR:
	case ZYDIS_MNEMONIC_SHL:
	case ZYDIS_MNEMONIC_SHR:
	case ZYDIS_MNEMONIC_SAR:
	case ZYDIS_MNEMONIC_SHLD:
	case ZYDIS_MNEMONIC_SHRD: return true;
	default: return false;
	}
}

static bool flags_explained(const char *kind, const struct insn *i, const struct opinion *o,
			    const ZydisDecodedInstruction *z)
{
	u16 theirs = o->fl_written | o->fl_undef;

	/* #GP or #UD outside the kernel, so what it does to flags is nobody's business here. */
	if (i->special == SP_PRIVILEGED || i->cf == CF_SYSRET || i->cf == CF_SYSENTER)
		return true;
	/*
	 * Zydis describes shifts without looking at the count. By SDM: count 0 changes nothing, OF
	 * is defined for a count of 1 alone, a count in cl may be 0. test_decode_cpu asks the CPU.
	 */
	if (is_shift(z->mnemonic))
		return !(insn_fl_clobbered(i) & ~theirs) && !(i->fl_read & ~o->fl_read);
	/* Copies of the flags for the kernel: as Zydis says, but no user code sees them change. */
	if (i->cf == CF_SYSCALL)
		return true;
	if (i->special == SP_STRING && (i->attr & INSN_REP))
		/* repe tests the ZF of its own comparison; with rcx 0 nothing is written. */
		return (i->fl_read | FL_ZF) == o->fl_read &&
		       (i->fl_may | i->fl_written) == o->fl_written;
	switch (z->mnemonic) {
	case ZYDIS_MNEMONIC_SBB:
		/* Zydis: AF undefined. SDM: set according to the result. */
		return (i->fl_written ^ o->fl_written) == FL_AF ||
		       (i->fl_undef ^ o->fl_undef) == FL_AF;
	case ZYDIS_MNEMONIC_FCOMI:
	case ZYDIS_MNEMONIC_FCOMIP:
	case ZYDIS_MNEMONIC_FUCOMI:
	case ZYDIS_MNEMONIC_FUCOMIP:
		/* Whether OF, SF, AF are cleared differs between CPUs and emulators. */
		return (i->fl_written | i->fl_undef) == o->fl_written;
	case ZYDIS_MNEMONIC_RSTORSSP:
	case ZYDIS_MNEMONIC_CLRSSBSY:
	case ZYDIS_MNEMONIC_TESTUI:
		/* Zydis: none, or CF alone. SDM: CF by the outcome, the others cleared. */
		return true;
	case ZYDIS_MNEMONIC_MCOMMIT:
		/* APM: CF by the outcome; the others are not mentioned. */
		return true;
	case ZYDIS_MNEMONIC_UIRET:
		/* Loads all of the flags, DF included. */
		return true;
	default: (void)kind; return false;
	}
}

/*
 * mod 0, sib.base 5 is disp32 without a base whatever REX.B says (SDM vol. 2, table 2-5); with a 67
 * prefix and REX.B Zydis makes it r13 without a displacement. test_decode_cpu asks the CPU.
 */
static bool sib_without_base(const struct insn *i)
{
	return (i->attr & INSN_ADDR32) && i->sib_off && i->modrm < 0x40 && (i->sib & 7) == 5;
}

static bool registers_explained(const struct insn *i, const struct opinion *o,
				const ZydisDecodedInstruction *z)
{
	u16 pointers = BIT(REG_RSI) | BIT(REG_RDI);

	if (i->special == SP_PRIVILEGED || i->cf == CF_SYSRET || i->cf == CF_SYSENTER)
		return true;
	/* What the kernel may look at and change; Zydis knows the instruction only. */
	if (i->cf == CF_SYSCALL)
		return true;
	/* Undefined instructions execute nothing. */
	if (i->cf == CF_UD)
		return true;
	/* Zydis forgets that ins, outs, cmps, scas advance their pointers. */
	if (i->special == SP_STRING)
		return !((i->gpr_written ^ o->gpr_written) & ~pointers) &&
		       !((i->gpr_read ^ o->gpr_read) & ~pointers);
	/* VIA's and Zhaoxin's: all that any of them may use. */
	if (i->map == MAP_0F && (i->opcode == 0xa6 || i->opcode == 0xa7))
		return !(o->gpr_read & ~i->gpr_read) && !(o->gpr_written & ~i->gpr_written);
	if (sib_without_base(i))
		return !(i->gpr_read & ~o->gpr_read) && i->gpr_written == o->gpr_written;
	switch (z->mnemonic) {
	case ZYDIS_MNEMONIC_UIRET:
		/* Zydis forgets that it pops. */
		return true;
	case ZYDIS_MNEMONIC_BSF:
	case ZYDIS_MNEMONIC_BSR:
		/*
		 * A zero source leaves the destination as it was, on all CPUs though undocumented.
		 */
		return i->gpr_written == o->gpr_written && !(o->gpr_read & ~i->gpr_read);
	case ZYDIS_MNEMONIC_PAUSE:
		/* With REX.B it is xchg r8, rax on AMD's CPUs; test_decode_cpu asks the CPU. */
		return i->rex & 1 && o->gpr_written == 0 && o->gpr_read == 0;
	case ZYDIS_MNEMONIC_LEAVE:
		/* rsp is replaced by rbp before it is used. */
		return i->gpr_written == o->gpr_written;
	case ZYDIS_MNEMONIC_NOP:
		/*
		 * Operands of a long nop are not read, nor those of endbr, which Zydis calls nop.
		 */
		return i->gpr_written == 0 && o->gpr_written == 0;
	case ZYDIS_MNEMONIC_RDSSPD:
	case ZYDIS_MNEMONIC_RDSSPQ:
		/* Without shadow stacks a nop, which leaves the register. */
		return i->gpr_written == o->gpr_written;
	case ZYDIS_MNEMONIC_MWAITX:
		/* ebx is the timer when ecx says so. */
		return true;
	default:
		/* MPX reads a register of the reg form only in some forms: read in all of ours. */
		return i->map == MAP_0F && (i->opcode == 0x1a || i->opcode == 0x1b) &&
		       i->gpr_written == o->gpr_written;
	}
}

static bool sizes_explained(const struct insn *i, const ZydisDecodedInstruction *z)
{
	/* Zydis gives these the size of what they hint at; they access nothing. */
	if (i->attr & INSN_NOADDR)
		return true;
	if (i->cf == CF_UD || i->special == SP_PRIVILEGED)
		return true;
	/* Zydis: 8 bytes. APM, near branches: an address of 16 bits; test_forms asks the CPU. */
	if (i->attr & INSN_NEAR16)
		return i->mem_read == 2;
	/* Zydis: 576 bytes or 0; the enabled state components and tile shapes decide. */
	if (i->mem_read == INSN_SIZE_VARIES || i->mem_write == INSN_SIZE_VARIES)
		return true;
	switch (z->mnemonic) {
	case ZYDIS_MNEMONIC_NOP: return true;
	case ZYDIS_MNEMONIC_RSTORSSP: return true;
	default:
		/* MPX: nops on a CPU without it. */
		return i->map == MAP_0F && (i->opcode == 0x1a || i->opcode == 0x1b);
	}
}

static bool explained(const char *kind, const struct insn *i, const struct opinion *o,
		      const ZydisDecodedInstruction *z)
{
	bool yes = false;

	if (!strncmp(kind, "fl_", 3))
		yes = flags_explained(kind, i, o, z);
	else if (!strncmp(kind, "gpr_", 4))
		yes = registers_explained(i, o, z);
	else if (!strncmp(kind, "mem_", 4))
		yes = sizes_explained(i, z);
	else if (!strcmp(kind, "target"))
		/* Zydis cuts the displacement off, and not what becomes of rip. */
		yes = i->attr & INSN_NEAR16 && insn_target(i, TARGET_PC) == (u16)o->target;
	else if (!strcmp(kind, "base") || !strcmp(kind, "disp"))
		yes = sib_without_base(i);
	else if (!strncmp(kind, "imm_", 4))
		/* Zydis files the address of a0..a3 under displacements. */
		yes = (i->attr & INSN_MOFFS) && z->raw.disp.offset == i->imm_off &&
		      z->raw.disp.size == i->imm_size * 8;
	oracle_exceptions += yes;
	return yes;
}

static const char *failure(ZyanStatus status)
{
	switch (status) {
	case ZYDIS_STATUS_DECODING_ERROR: return "an undefined opcode";
	case ZYDIS_STATUS_INSTRUCTION_TOO_LONG: return "too long an instruction";
	case ZYDIS_STATUS_ILLEGAL_LOCK: return "an illegal lock";
	case ZYDIS_STATUS_MALFORMED_EVEX:
	case ZYDIS_STATUS_INVALID_MASK: return "malformed EVEX";
	default: return "an invalid instruction";
	}
}

/* Both as Intel's CPUs, or both as AMD's, do it. */
static unsigned int compare(const u8 *p, size_t n, bool amd)
{
	static ZydisDecoder decoders[2];
	static bool ready;
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction z;
	struct opinion o;
	struct insn insn;
	const char *name;
	ZyanStatus status;
	int len;

	if (!ready) {
		for (int i = 0; i < 2; i++)
			ZydisDecoderInit(&decoders[i], ZYDIS_MACHINE_MODE_LONG_64,
					 ZYDIS_STACK_WIDTH_64);
		ZydisDecoderEnableMode(&decoders[1], ZYDIS_DECODER_MODE_AMD_BRANCHES, ZYAN_TRUE);
		ready = true;
	}
	insn_set_near16(amd);
	status = ZydisDecoderDecodeFull(&decoders[amd], p, n < INSN_MAX ? n : INSN_MAX, &z, op);
	len = insn_decode(&insn, p, n);
	if (!ZYAN_SUCCESS(status) || len < 0) {
		if (ZYAN_SUCCESS(status) == (len > 0))
			return 1;
		if (validity_explained(&insn, len, status, &z))
			oracle_exceptions++;
		else
			report("validity",
			       ZYAN_SUCCESS(status) ? ZydisMnemonicGetString(z.mnemonic)
						    : failure(status),
			       p, n, (u64)len, ZYAN_SUCCESS(status) ? z.length : 0);
		return len > 0 ? (unsigned int)len : 1;
	}
	oracle_compared++;
	name = ZydisMnemonicGetString(z.mnemonic);
	form_opinion(&o, &z, op);
#define SAME(kind, a, b)                                              \
	do {                                                          \
		if ((a) != (b) && !explained(kind, &insn, &o, &z))    \
			report(kind, name, p, n, (u64)(a), (u64)(b)); \
	} while (0)
	SAME("length", len, z.length);
	SAME("flow", insn.cf, o.cf);
	SAME("memory", !!(insn.attr & INSN_MEM) && !(insn.attr & INSN_MOFFS), o.mem);
	if (o.mem) {
		SAME("base", insn.mem.base, o.m.base);
		SAME("index", insn.mem.index, o.m.index);
		SAME("scale", insn.mem.index == REG_NONE ? 0 : insn.mem.scale,
		     insn.mem.index == REG_NONE ? 0 : o.m.scale);
		SAME("disp", insn.mem.disp, o.m.disp);
		SAME("seg", insn.mem.seg, o.m.seg);
		SAME("riprel", !!(insn.attr & INSN_RIPREL), o.riprel);
		SAME("mem_read", insn.mem_read, o.mem_read);
		SAME("mem_write", insn.mem_write, o.mem_write);
		SAME("disp_off", insn.disp_off, z.raw.disp.offset);
		SAME("disp_size", insn.disp_size * 8, z.raw.disp.size);
	}
	SAME("imm_off", insn.imm_off, z.raw.imm[0].offset);
	SAME("imm_size", insn.imm_size * 8, z.raw.imm[0].size + z.raw.imm[1].size);
	if (o.rel)
		SAME("target", insn_target(&insn, TARGET_PC), o.target);
	SAME("gpr_read", insn.gpr_read, o.gpr_read);
	SAME("gpr_written", insn.gpr_written, o.gpr_written);
	SAME("fl_read", insn.fl_read, o.fl_read);
	SAME("fl_written", insn.fl_written, o.fl_written);
	SAME("fl_undef", insn.fl_undef, o.fl_undef);
	return (unsigned int)len;
}

unsigned int oracle_compare(const u8 *p, size_t n)
{
	for (size_t i = 0; i < n && i < INSN_MAX; i++) {
		if (p[i] == 0x66) { /* the prefix, perhaps */
			compare(p, n, true);
			break;
		}
	}
	return compare(p, n, false);
}
