/* PURPOSE: the decoder's tables, which gen-rows.py fills, and what its two halves share. */
#ifndef DBT_ARCH_X86_64_DECODE_PRIV_H
#define DBT_ARCH_X86_64_DECODE_PRIV_H

#include "dbt/arch/x86_64/decode.h"

/* Sizes of operands, 6 bits. Those before SZ_V are constants. */
enum insn_size {
	SZ_B0 = 1, /* an operand that is not accessed; 0 means no operand */
	SZ_B1,
	SZ_B2,
	SZ_B4,
	SZ_B8,
	SZ_B10,
	SZ_B16,
	SZ_B32,
	SZ_B48,
	SZ_B64,
	SZ_B512,
	SZ_ANY,
	SZ_V,
	SZ_Z,
	SZ_Y,
	SZ_A,
	SZ_P,
	SZ_ENV,
	SZ_STATE,
	SZ_X,
	SZ_H,
	SZ_F,
	SZ_G,
	SZ_U,
};

enum insn_imm {
	IMM_NONE,
	IMM_IB,
	IMM_UB,
	IMM_IW,
	IMM_IZ,
	IMM_IV,
	IMM_ID,
	IMM_IBB,
	IMM_IWB,
	IMM_JB,
	IMM_JZ,
	IMM_MOFFS,
};

/* What the columns of a row cannot say. */
enum insn_fix {
	FIX_NONE,
	FIX_SHIFT_I, /* count is an immediate */
	FIX_SHIFT_C, /* count is cl */
	FIX_SHIFT_D, /* shld, shrd by an immediate */
	FIX_NOP90,
	FIX_LEA,
	FIX_CMPXCHG8,
	FIX_RET,
	FIX_RETF,
	FIX_CALL,
	FIX_CALLF,
	FIX_ENTER,
	FIX_LEAVE,
	FIX_LOOP,
	FIX_SYSCALL,
	FIX_UIRET,
	FIX_IMM3,
	FIX_IMM1,
};

/* Attributes that the decoder consumes; above the public INSN_* bits. */
#define X_LOCK    BIT(20) /* lock is allowed with a memory operand */
#define X_PUSH    BIT(21)
#define X_POP     BIT(22)
#define X_D64     BIT(23) /* operand size 8 unless prefix 66 */
#define X_F64     BIT(24) /* operand size 8 always */
#define X_CC      BIT(25) /* condition in the opcode's low bits */
#define X_CMOV    BIT(26)
#define X_IVAR    BIT(27) /* implicit registers are written with the operand size */
#define X_STRING  BIT(28)
#define X_REPZ    BIT(29) /* string instruction whose repetition tests ZF */
#define X_GCOND   BIT(30) /* modrm.reg may stay unwritten */
#define X_CRREG   BIT(31) /* modrm.mod is ignored: mov cr, mov dr */
#define X_BITMEM  BIT(32) /* bt with a register offset: memory operand is elsewhere */
#define X_NOTRACK BIT(33)
#define X_CMPXCHG BIT(34)
#define X_VVVV    BIT(35) /* vvvv names a register */

#define EV_K    BIT(0)
#define EV_KREQ BIT(1)
#define EV_Z    BIT(2)
#define EV_ZREG BIT(3) /* zeroing only when the destination is a register */
#define EV_RB   BIT(4) /* b with a register operand: rounding or SAE; L'L is no length then */
#define EV_BC2  BIT(5)
#define EV_BC4  BIT(6)
#define EV_BC8  BIT(7)
#define EV_N1   BIT(8) /* disp8 counts elements of this size, whatever is accessed */
#define EV_N2   BIT(9)
#define EV_N4   BIT(10)
#define EV_N8   BIT(11)

/* Register operands: enum insn_size | access << 6, access 1 read, 2 written; 0 none. */
struct insn_effect {
	u64 attr;
	u8 reg, rm, vvvv, opr, acc;
	u8 mem_r, mem_w; /* enum insn_size */
	u8 imm;
	u8 cf;
	u8 special;
	u8 fix;
	u8 gpr_r, gpr_w;
	u16 evex;
	u16 fl_r, fl_w, fl_u;
};

struct insn_row {
	u8 pp;  /* mask of 1 none, 2 66, 4 f3, 8 f2 */
	u8 wl;  /* W mask 0-1, L mask 2-4, mod mask 5 (memory) 6 (register), 7 last row */
	u8 reg; /* mask of modrm.reg */
	u8 rm;  /* mask of modrm.rm */
	u16 effect;
};

#define ROW_LAST 0x80

/* Indexes of insn_first. */
enum insn_table {
	T_1,
	T_0F,
	T_0F38,
	T_0F3A,
	T_V1,
	T_V2,
	T_V3,
	T_X8,
	T_X9,
	T_XA,
	T_E1,
	T_E2,
	T_E3,
	T_E5,
	T_E6,
	T_COUNT,
};

extern const struct insn_effect insn_effects[];
extern const struct insn_row insn_rows[];
extern const u16 insn_first[T_COUNT][256]; /* first row of the opcode; 0: undefined */

extern const u8 insn_modrm[2][32]; /* of T_1 and T_0F: a bit for each opcode that has one */

static inline bool insn_has_modrm(u32 table, u8 op)
{
	if (table <= T_0F)
		return insn_modrm[table][op / 8] & (1 << (op % 8));
	return table != T_V1 || op != 0x77;
}

/* Flags that condition @cond tests. */
static inline u16 insn_cond_flags(u32 cond)
{
	static const u16 flags[8] = {
		FL_OF, FL_CF, FL_ZF,         FL_CF | FL_ZF,
		FL_SF, FL_PF, FL_SF | FL_OF, FL_ZF | FL_SF | FL_OF,
	};

	return flags[cond >> 1];
}

/* What insn_scan() knows of an instruction from its table, opcode, prefix and modrm.reg. */
struct insn_shape {
	u16 fl_read, fl_written;
	u8 imm; /* enum insn_imm: none, ib, ub, iz or iv */
	u8 bits;
};

#define SCAN_VVVV  BIT(0)
#define SCAN_SHIFT BIT(1) /* flags by the count in the immediate; no byte operand */
#define SCAN_MODRM BIT(2)

#define SCAN_TABLES 7 /* T_1 .. T_V3 */

extern const struct insn_shape insn_shapes[]; /* 0: leave it to insn_decode() */
/* By prefix (0 none, 1 66, 2 f3, 3 f2), modrm.mod, modrm.reg. */
extern const u8 insn_scan_cells[][128];
extern const u8 insn_scan_class[SCAN_TABLES][256];

#endif
