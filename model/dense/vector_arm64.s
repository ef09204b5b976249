#include "textflag.h"

// The exponential of four elements at a time, in two vectors; n is a multiple of
// four. The assembler knows no arithmetic of vectors of floats but VFMLA and
// VFMLS: the rest is written as WORD, registers by their numbers.
#define FADD(m, n, d)   WORD $(0x4E60D400|m<<16|n<<5|d) // FADD  Vd.2D, Vn.2D, Vm.2D
#define FMUL(m, n, d)   WORD $(0x6E60DC00|m<<16|n<<5|d) // FMUL  Vd.2D, Vn.2D, Vm.2D
#define FMAX(m, n, d)   WORD $(0x4E60F400|m<<16|n<<5|d) // FMAX  Vd.2D, Vn.2D, Vm.2D
#define FMIN(m, n, d)   WORD $(0x4EE0F400|m<<16|n<<5|d) // FMIN  Vd.2D, Vn.2D, Vm.2D
#define FRINTN(n, d)    WORD $(0x4E618800|n<<5|d)       // FRINTN Vd.2D, Vn.2D
#define FCVTNS(n, d)    WORD $(0x4E61A800|n<<5|d)       // FCVTNS Vd.2D, Vn.2D
#define HALVE(n, d)     WORD $(0x4F7F0400|n<<5|d)       // SSHR  Vd.2D, Vn.2D, #1

// CONSTANTS loads expTable (exp.go), every entry in both lanes: V16 to V20 the
// bounds and logarithms, V21 to V31 and V15 the polynomial from r¹¹ down to 1;
// V14 the exponent's bias.
#define CONSTANTS \
	MOVD    $·expTable(SB), R9              \
	VLD1R.P 8(R9), [V16.D2]                 \
	VLD1R.P 8(R9), [V17.D2]                 \
	VLD1R.P 8(R9), [V18.D2]                 \
	VLD1R.P 8(R9), [V19.D2]                 \
	VLD1R.P 8(R9), [V20.D2]                 \
	VLD1R.P 8(R9), [V21.D2]                 \
	VLD1R.P 8(R9), [V22.D2]                 \
	VLD1R.P 8(R9), [V23.D2]                 \
	VLD1R.P 8(R9), [V24.D2]                 \
	VLD1R.P 8(R9), [V25.D2]                 \
	VLD1R.P 8(R9), [V26.D2]                 \
	VLD1R.P 8(R9), [V27.D2]                 \
	VLD1R.P 8(R9), [V28.D2]                 \
	VLD1R.P 8(R9), [V29.D2]                 \
	VLD1R.P 8(R9), [V30.D2]                 \
	VLD1R.P 8(R9), [V31.D2]                 \
	VLD1R   (R9), [V15.D2]                  \
	MOVD    $1023, R9                       \
	VDUP    R9, V14.D2

// TERM: one more coefficient of two chains, from p and q to r and s.
#define TERM(c, p, q, r, s) \
	VMOV  c.B16, r.B16          \
	VMOV  c.B16, s.B16          \
	VFMLA V4.D2, p.D2, r.D2     \
	VFMLA V5.D2, q.D2, s.D2

// EXP: V0, V1 = e^V0, e^V1. Uses V2 to V11. The odd part of the polynomial goes
// through V6 and V7 or V10 and V11, the even one through V8 and V9 or V2 and V3.
#define EXP \
	FMAX(16, 0, 0)                          \ // clamp; a NaN stays
	FMAX(16, 1, 1)                          \
	FMIN(17, 0, 0)                          \
	FMIN(17, 1, 1)                          \
	FMUL(18, 0, 12)                         \ // k = x/log 2, to the nearest integer
	FMUL(18, 1, 13)                         \
	FRINTN(12, 12)                          \
	FRINTN(13, 13)                          \
	VFMLS V19.D2, V12.D2, V0.D2             \ // r = x - k·log 2
	VFMLS V19.D2, V13.D2, V1.D2             \
	VFMLS V20.D2, V12.D2, V0.D2             \
	VFMLS V20.D2, V13.D2, V1.D2             \
	FMUL(0, 0, 4)                           \
	FMUL(1, 1, 5)                           \
	TERM(V23, V21, V21, V6, V7)             \
	TERM(V24, V22, V22, V8, V9)             \
	TERM(V25, V6, V7, V10, V11)             \
	TERM(V26, V8, V9, V2, V3)               \
	TERM(V27, V10, V11, V6, V7)             \
	TERM(V28, V2, V3, V8, V9)               \
	TERM(V29, V6, V7, V10, V11)             \
	TERM(V30, V8, V9, V2, V3)               \
	TERM(V31, V10, V11, V6, V7)             \
	TERM(V15, V2, V3, V8, V9)               \
	VFMLA V0.D2, V6.D2, V8.D2               \
	VFMLA V1.D2, V7.D2, V9.D2               \
	FCVTNS(12, 12)                          \ // 2^k = 2^⌊k/2⌋·2^(k-⌊k/2⌋)
	FCVTNS(13, 13)                          \
	HALVE(12, 2)                            \
	HALVE(13, 3)                            \
	VSUB  V2.D2, V12.D2, V12.D2             \
	VSUB  V3.D2, V13.D2, V13.D2             \
	VADD  V14.D2, V2.D2, V2.D2              \
	VADD  V14.D2, V3.D2, V3.D2              \
	VADD  V14.D2, V12.D2, V12.D2            \
	VADD  V14.D2, V13.D2, V13.D2            \
	VSHL  $52, V2.D2, V2.D2                 \
	VSHL  $52, V3.D2, V3.D2                 \
	VSHL  $52, V12.D2, V12.D2               \
	VSHL  $52, V13.D2, V13.D2               \
	FMUL(2, 8, 0)                           \
	FMUL(3, 9, 1)                           \
	FMUL(12, 0, 0)                          \
	FMUL(13, 1, 1)

// func expNEON(n int, dst, x *float64)
TEXT ·expNEON(SB), NOSPLIT, $0-24
	MOVD n+0(FP), R0
	MOVD dst+8(FP), R1
	MOVD x+16(FP), R2
	CONSTANTS

loop:
	VLD1.P 32(R2), [V0.D2, V1.D2]
	EXP
	VST1.P [V0.D2, V1.D2], 32(R1)
	SUBS   $4, R0
	BNE    loop
	RET

// func expSqDistNEON(n int, row *float64, amp, half float64, zz *float64)
//
// row = amp·exp(min(row + half - zz/2, 0))
TEXT ·expSqDistNEON(SB), NOSPLIT, $0-40
	MOVD  n+0(FP), R0
	MOVD  row+8(FP), R1
	MOVD  zz+32(FP), R2
	MOVD  amp+16(FP), R3
	MOVD  half+24(FP), R4
	FMOVD $0.5, F2
	FMOVD F2, R5
	CONSTANTS

loop:
	VLD1   (R1), [V0.D2, V1.D2]
	VLD1.P 32(R2), [V2.D2, V3.D2]
	VDUP   R4, V6.D2
	VDUP   R5, V7.D2
	VEOR   V8.B16, V8.B16, V8.B16
	FADD(6, 0, 0)
	FADD(6, 1, 1)
	VFMLS  V7.D2, V2.D2, V0.D2
	VFMLS  V7.D2, V3.D2, V1.D2
	FMIN(8, 0, 0)
	FMIN(8, 1, 1)
	EXP
	VDUP   R3, V6.D2
	FMUL(6, 0, 0)
	FMUL(6, 1, 1)
	VST1.P [V0.D2, V1.D2], 32(R1)
	SUBS   $4, R0
	BNE    loop
	RET
