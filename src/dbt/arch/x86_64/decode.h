/*
 * PURPOSE: tells all that the translator has to know of an x86-64 instruction: where its parts are,
 * where control goes, which general registers, flags and memory it touches.
 *
 * Pure: reads only the bytes given, writes only *insn, so any thread and any signal handler may
 * decode at any time. What the vendors decode differently is set once for all. 64-bit mode only.
 * Facts: Intel SDM vol. 2 and AMD APM vol. 3; tests/unit/dbt/test_decode_*.c hold each field
 * against Zydis.
 */
#ifndef DBT_ARCH_X86_64_DECODE_H
#define DBT_ARCH_X86_64_DECODE_H

#include "base/types.h"

#define INSN_ABSENT 0xff
#define INSN_MAX    15 /* bytes; longer ones fault with #GP on every CPU */

/* General registers by their hardware number; masks of them have bit (1 << number). */
enum insn_reg {
	REG_RAX,
	REG_RCX,
	REG_RDX,
	REG_RBX,
	REG_RSP,
	REG_RBP,
	REG_RSI,
	REG_RDI,
	REG_R8,
	REG_R9,
	REG_R10,
	REG_R11,
	REG_R12,
	REG_R13,
	REG_R14,
	REG_R15,
	REG_RIP,
	REG_NONE = 0xff,
};

/* Opcode maps; how the map was reached is in enum insn_enc. */
enum insn_map {
	MAP_1,    /* one byte */
	MAP_0F,   /* 0f xx, VEX.mmmmm = 1 */
	MAP_0F38, /* VEX.mmmmm = 2 */
	MAP_0F3A, /* VEX.mmmmm = 3 */
	MAP_4,    /* not used without APX */
	MAP_5,    /* EVEX only: FP16 */
	MAP_6,    /* EVEX only: FP16 */
	MAP_7,    /* VEX only: urdmsr family */
	MAP_XOP8,
	MAP_XOP9,
	MAP_XOPA,
	MAP_3DNOW, /* 0f 0f; the opcode is the byte after the operands */
};

enum insn_enc {
	ENC_LEGACY,
	ENC_VEX,
	ENC_EVEX,
	ENC_XOP,
};

/* Where control goes after the instruction. All but CF_NONE end a basic block. */
enum insn_cf {
	CF_NONE,
	/* Near branches, CF_JMP to CF_CALL_IND. */
	CF_JMP,      /* jmp rel8/rel32 */
	CF_JCC,      /* cond says which */
	CF_LOOP,     /* by opcode e0 loopne, e1 loope, e2 loop, e3 jrcxz; with ADDR32 of ecx */
	CF_CALL,     /* call rel32 */
	CF_RET,      /* near; insn->imm bytes are dropped after the return address (0 for c3) */
	CF_JMP_IND,  /* ff /4; operand is memory or register insn_rm() */
	CF_CALL_IND, /* ff /2 */
	CF_FAR_JMP,  /* ff /5 */
	CF_FAR_CALL, /* ff /3 */
	CF_FAR_RET,  /* ca, cb */
	CF_IRET,
	CF_SYSCALL,
	CF_SYSENTER,
	CF_SYSRET, /* sysret, sysexit: #GP outside the kernel */
	CF_INT,    /* int n, int3, int1: insn->imm is the vector (3, 1) */
	CF_HLT,    /* hlt: #GP outside the kernel */
	CF_UD,     /* ud0, ud1, ud2: defined to be undefined */
	CF_XBEGIN, /* falls through, or goes to the target on abort */
	CF_XABORT,
	CF_UIRET,
};

/* Kinds of instructions that the translator may have to treat in its own way. */
enum insn_special {
	SP_NONE,
	SP_CPUID,
	SP_RDPMC,
	SP_RDTSC,
	SP_RDTSCP,
	SP_RDPID,
	SP_RDRAND, /* writes register insn_rm() */
	SP_RDSEED,
	SP_REQUEST,  /* xchg rbx, rbx, where it is a client request of Valgrind's */
	SP_RDFSBASE, /* register insn_rm(), opsize 4 or 8 */
	SP_RDGSBASE,
	SP_WRFSBASE,
	SP_WRGSBASE,
	SP_SWAPGS,
	SP_MOV_FROM_SEG, /* 8c: the segment (0 es .. 5 gs) is insn_reg_field() & 7 */
	SP_MOV_TO_SEG,   /* 8e */
	SP_PUSH_SEG,     /* push fs (0f a0), push gs (0f a8) */
	SP_POP_SEG,      /* pop fs (0f a1), pop gs (0f a9) */
	SP_LOAD_FAR,     /* lss, lfs, lgs */
	SP_PUSHF,
	SP_POPF,
	SP_XLAT,       /* reads seg:[rbx + al], no modrm */
	SP_STRING,     /* movs cmps stos lods scas ins outs; see the REP attributes */
	SP_MASKMOV,    /* maskmovq, maskmovdqu: writes seg:[rdi], no memory form of modrm */
	SP_CMPXCHG16B, /* cmpxchg8b too; opsize tells */
	SP_ENDBR,
	SP_XGETBV,
	SP_XSAVE,   /* xsave*, xrstor*, fxsave, fxrstor: image holds the x87 instruction pointer */
	SP_X87_ENV, /* fnstenv, fnsave, fldenv, frstor: likewise */
	SP_GATHER,  /* vgather*, vscatter*: mem.index is a vector register */
	SP_TILE,    /* AMX tile load and store: mem.index is a stride */
	SP_DIR64,   /* movdir64b, enqcmd(s): writes 64 bytes at es:[register insn_reg_field()] */
	SP_MONITOR, /* monitor, mwait, umonitor, tpause, clzero, invlpg and so on: address in rax */
	SP_XEND,
	SP_XTEST,
	SP_UINTR,      /* clui stui testui senduipi */
	SP_PKRU,       /* rdpkru, wrpkru */
	SP_SHSTK,      /* CET shadow-stack instructions: rdssp, incssp, ... */
	SP_IO,         /* in, out (not the string forms) */
	SP_PRIVILEGED, /* faults outside the kernel, and so does its copy */
};

/* Bits of insn->rex. */
#define REX_B BIT(0) /* fourth bit of modrm.rm, of the base, or of the register in the opcode */
#define REX_X BIT(1) /* of the index */
#define REX_R BIT(2) /* of modrm.reg */
#define REX_W BIT(3) /* 64-bit operands */

/* Prefixes. */
#define PREFIX_FS       0x64
#define PREFIX_GS       0x65
#define PREFIX_OPSIZE16 0x66
#define PREFIX_ADDR32   0x67

/* Attributes, in insn->attr. */
#define INSN_MODRM    BIT(0)
#define INSN_MEM      BIT(1) /* mem describes an explicit memory operand */
#define INSN_RIPREL   BIT(2) /* its base is rip: disp32 at disp_off, imm_size bytes follow it */
#define INSN_MOFFS    BIT(3) /* its address is the 8 (addr32: 4) bytes at imm_off: a0 .. a3 */
#define INSN_VSIB     BIT(4)
#define INSN_ADDR32   BIT(5)  /* prefix 67 */
#define INSN_OPSIZE16 BIT(6)  /* prefix 66 */
#define INSN_LOCK     BIT(7)  /* prefix f0 */
#define INSN_REPE     BIT(8)  /* last of f2/f3 is f3 */
#define INSN_REPNE    BIT(9)  /* ... is f2 */
#define INSN_REP      BIT(10) /* a string instruction that repeats on rcx; retires once */
#define INSN_STACK    BIT(11) /* reads or writes memory at rsp and moves rsp */
#define INSN_RSP      BIT(12) /* uses rsp in any way, explicit operand and address included */
#define INSN_COND     BIT(13) /* a branch that may fall through: jcc, loop, jrcxz */
#define INSN_BRANCH   BIT(14) /* retires as a branch instruction: what the branches event counts */
#define INSN_NOADDR   BIT(15) /* modrm has a memory form that accesses nothing: lea, nop */
#define INSN_VECTOR   BIT(16) /* touches x87, MMX, vector, mask or tile state */
#define INSN_PREFETCH BIT(17)
#define INSN_NOTRACK  BIT(18) /* 3e on an indirect branch */
#define INSN_MEM_COND BIT(19) /* may access less than mem_read, mem_write: masks, cmov, bt */
#define INSN_BRIEF    BIT(20) /* insn_scan() filled it */
#define INSN_NEAR16   BIT(21) /* a near branch of 16 bits; see insn_set_near16() */

/* Flags, with their bits in the register; the masks below use them. */
#define FL_CF    0x001
#define FL_PF    0x004
#define FL_AF    0x010
#define FL_ZF    0x040
#define FL_SF    0x080
#define FL_DF    0x400
#define FL_OF    0x800
#define FL_ARITH (FL_CF | FL_PF | FL_AF | FL_ZF | FL_SF | FL_OF)

enum insn_seg {
	SEG_NONE, /* ds or ss; their bases are zero, overrides by es cs ss ds change nothing */
	SEG_FS,
	SEG_GS,
};

#define INSN_SIZE_VARIES 0xffff /* a size that the machine's state decides: xsave, tiles, rep */

struct insn_mem {
	u8 base;  /* enum insn_reg, REG_RIP, or REG_NONE */
	u8 index; /* 0..15, 0..31 with INSN_VSIB (vector register), or REG_NONE */
	u8 scale; /* shift: 0..3 */
	u8 seg;   /* enum insn_seg */
	s32 disp; /* EVEX's compressed disp8 already multiplied */
};

struct insn {
	u8 len;
	u8 map;     /* enum insn_map */
	u8 enc;     /* enum insn_enc */
	u8 opcode;  /* the byte within the map */
	u8 cf;      /* enum insn_cf */
	u8 special; /* enum insn_special */
	u8 cond;    /* CF_JCC, setcc, cmovcc: condition 0 (o) .. 15 (g), else 0 */
	u8 opsize;  /* operand size in bytes, 1 2 4 8, of general-register instructions */

	u8 rex;  /* w8 r4 x2 b1, from REX, VEX, EVEX or XOP, not inverted */
	u8 pp;   /* mandatory prefix of VEX/EVEX/XOP: 0 none, 1 66, 2 f3, 3 f2; legacy: as seen */
	u8 vl;   /* VEX.L / EVEX.L'L: 0 128, 1 256, 2 512 */
	u8 vvvv; /* third register of VEX/EVEX/XOP, 0..31, else 0 */
	u8 evex_aaa;   /* mask register, 0 none */
	u8 evex_flags; /* z80 b10 R'2 V'1 as decoded (not inverted); else 0 */
	u8 modrm;
	u8 sib;

	/* Offsets from the first byte. Those after opcode_off are 0 when the part is absent. */
	u8 rex_off;    /* the REX byte that took effect, or first of VEX/EVEX/XOP; INSN_ABSENT */
	u8 opcode_off; /* the opcode byte; prefixes and escapes lie before it */
	u8 modrm_off;
	u8 sib_off;
	u8 disp_off;
	u8 disp_size; /* 0 1 4 */
	u8 imm_off;   /* relative branch displacements are immediates */
	u8 imm_size;  /* 0 1 2 3 (enter, extrq: two immediates) 4 8 */

	u32 attr; /* INSN_* */
	s64 imm;  /* sign-extended; moffs: the address, not extended; enter: imm16 | imm8 << 16 */
	struct insn_mem mem; /* valid with INSN_MEM (also for INSN_NOADDR forms) */

	/*
	 * Bytes read and written at mem, or, without INSN_MEM, at the implicit place that special
	 * names (string element, xlat, maskmov); 0 none. Accesses of the stack are in stack_read,
	 * stack_write. movs and cmps: read is rsi (cmps also rdi), write is rdi.
	 */
	u16 mem_read;
	u16 mem_write;
	u8 stack_read;
	u8 stack_write;

	/*
	 * Masks of general registers. Read: the value may matter, because it is an operand,
	 * addresses memory, or survives in part or on some executions (8 and 16 bit destinations,
	 * cmov, bsf). So every execution that completes replaces all 64 bits of a register that is
	 * written and not read. A register that is neither may be spilled and used around the
	 * instruction. Of syscall, read is what the kernel may read, and written are rax, rcx, r11.
	 */
	u16 gpr_read;
	u16 gpr_written;

	/*
	 * Masks of FL_*. Written: has a defined value after every execution that completes, so it
	 * is dead before unless it is read. Undef: documented as undefined afterwards; a CPU may
	 * also leave it alone. May: written on some executions only (shift by a count that may be
	 * 0, rep cmps with rcx 0).
	 */
	u16 fl_read;
	u16 fl_written;
	u16 fl_undef;
	u16 fl_may;
};

/*
 * Near branches with prefix 66 and without REX.W: AMD's CPUs make them 16 bits wide (operand,
 * displacement, return address and what becomes of rip), Intel's ignore the prefix. The decoder
 * does as Intel's until it is told otherwise, which is to be before there are threads.
 */
void insn_set_near16(bool honoured);
/* What this CPU does: asks it. */
bool insn_cpu_has_near16(void);

/*
 * Decodes the instruction at @p, of which @n bytes may be read. Returns its length (1..15);
 * -EBADMSG: not an instruction in 64-bit mode (copy nothing, raise #UD; *insn is not valid);
 * -ENODATA: the first @n bytes are a beginning of a longer one. Never reads past @n or 15 bytes.
 * An instruction that this CPU lacks decodes all the same: executing it says #UD.
 */
must_check int insn_decode(struct insn *insn, const u8 *p, size_t n);

/*
 * The same, much faster, for most of what programs execute. INSN_MAX bytes at @p may be read. Of
 * *insn only these are filled: len, map, enc, opcode, modrm (0 if there is none), cf, special,
 * cond, fl_read, fl_written, imm of branches, mem.seg, and of attr INSN_RIPREL, INSN_BRANCH,
 * INSN_COND and INSN_BRIEF, which is set. 0: ask insn_decode(). So it answers for everything that
 * is special or no instruction, for control flow other than jmp, jcc, call and ret without
 * prefixes, for GS, and where the address of an operand is a part of the instruction or has 32
 * bits.
 */
must_check int insn_scan(struct insn *insn, const u8 *p);

/* Target of CF_JMP, CF_JCC, CF_LOOP, CF_CALL, CF_XBEGIN when the instruction is at @pc. */
static inline u64 insn_target(const struct insn *insn, u64 pc)
{
	u64 target = pc + insn->len + (u64)insn->imm;

	return insn->attr & INSN_NEAR16 ? (u16)target : target;
}

/* Register number in modrm.reg, 0..15. */
static inline u8 insn_reg_field(const struct insn *insn)
{
	return ((insn->modrm >> 3) & 7) | ((insn->rex & REX_R) << 1);
}

/* Register number in modrm.rm, 0..15; meaningful when there is no INSN_MEM. */
static inline u8 insn_rm(const struct insn *insn)
{
	return (insn->modrm & 7) | ((insn->rex & REX_B) << 3);
}

/* The address of a rip-relative operand when the instruction is at @pc. */
static inline u64 insn_rip_address(const struct insn *insn, u64 pc)
{
	return pc + insn->len + (u64)(s64)insn->mem.disp;
}

/* Flags whose value after the instruction is not certainly the value before. */
static inline u16 insn_fl_clobbered(const struct insn *insn)
{
	return insn->fl_written | insn->fl_undef | insn->fl_may;
}

#endif
