#include "textflag.h"

// Elementary functions of four elements at a time, in two vectors; n is a
// multiple of four. The assembler knows no arithmetic of vectors of floats but VFMLA and
// VFMLS: the rest is written as WORD, registers by their numbers.
#define FADD(m, n, d)   WORD $(0x4E60D400|m<<16|n<<5|d) // FADD  Vd.2D, Vn.2D, Vm.2D
#define FMUL(m, n, d)   WORD $(0x6E60DC00|m<<16|n<<5|d) // FMUL  Vd.2D, Vn.2D, Vm.2D
#define FSUB(m, n, d)   WORD $(0x4EE0D400|m<<16|n<<5|d) // FSUB  Vd.2D, Vn.2D, Vm.2D
#define FDIV(m, n, d)   WORD $(0x6E60FC00|m<<16|n<<5|d) // FDIV  Vd.2D, Vn.2D, Vm.2D
#define FMAX(m, n, d)   WORD $(0x4E60F400|m<<16|n<<5|d) // FMAX  Vd.2D, Vn.2D, Vm.2D
#define FMIN(m, n, d)   WORD $(0x4EE0F400|m<<16|n<<5|d) // FMIN  Vd.2D, Vn.2D, Vm.2D
#define FABS(n, d)      WORD $(0x4EE0F800|n<<5|d)       // FABS  Vd.2D, Vn.2D
#define FCMGT0(n, d)    WORD $(0x4EE0C800|n<<5|d)       // FCMGT Vd.2D, Vn.2D, #0.0
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

// func expSqDistSIMD(n int, row *float64, amp, half float64, zz *float64)
//
// row = amp·exp(min(row + half - zz/2, 0))
TEXT ·expSqDistSIMD(SB), NOSPLIT, $0-40
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

// MILLS: D, P, Q of x = min(|z|, 1e15) for z in V0 and V1.
//
//	V2 V3 x   V4 V5 x²   V8 V9 D   V12 V13 P   V16 V17 Q
//	V6 V7, V10 V11, V14 V15 scratch
//
// R9 goes through millsTable; its terms alternate between odd and even powers.
#define HORNER(p, q, r, s) \
	VLD1R.P 8(R9), [r.D2]       \
	VMOV    r.B16, s.B16        \
	VFMLA   V4.D2, p.D2, r.D2   \
	VFMLA   V5.D2, q.D2, s.D2

#define MILLS \
	MOVD    $·millsTable(SB), R9     \
	FABS(0, 2)                       \
	FABS(1, 3)                       \
	FMIN(30, 2, 2)                   \
	FMIN(30, 3, 3)                   \
	FMUL(2, 2, 4)                    \
	FMUL(3, 3, 5)                    \
	VLD1R.P 8(R9), [V6.D2]           \
	VLD1R.P 8(R9), [V8.D2]           \
	FADD(5, 8, 9)                    \
	FADD(4, 8, 8)                    \
	HORNER(V6, V6, V10, V11)         \
	HORNER(V8, V9, V12, V13)         \
	HORNER(V10, V11, V6, V7)         \
	HORNER(V12, V13, V8, V9)         \
	HORNER(V6, V7, V10, V11)         \
	HORNER(V8, V9, V12, V13)         \
	VFMLA   V2.D2, V10.D2, V12.D2    \
	VFMLA   V3.D2, V11.D2, V13.D2    \
	VMOV    V12.B16, V8.B16          \
	VMOV    V13.B16, V9.B16          \
	VLD1R.P 8(R9), [V6.D2]           \
	VLD1R.P 8(R9), [V10.D2]          \
	FADD(5, 10, 11)                  \
	FADD(4, 10, 10)                  \
	HORNER(V6, V6, V12, V13)         \
	HORNER(V10, V11, V14, V15)       \
	HORNER(V12, V13, V6, V7)         \
	HORNER(V14, V15, V10, V11)       \
	HORNER(V6, V7, V12, V13)         \
	HORNER(V10, V11, V14, V15)       \
	HORNER(V12, V13, V6, V7)         \
	VFMLA   V2.D2, V14.D2, V6.D2     \
	VFMLA   V3.D2, V15.D2, V7.D2     \
	VMOV    V6.B16, V12.B16          \
	VMOV    V7.B16, V13.B16          \
	VMOV    V8.B16, V16.B16          \
	VMOV    V9.B16, V17.B16          \
	VFMLA   V2.D2, V12.D2, V16.D2    \
	VFMLA   V3.D2, V13.D2, V17.D2

// func normalGridNEON(n int, ratio, prod *float64, s *gridNEON)
//
//	V18 V19 φ   V20 V21 φ(z+4dz)/φ(z)   V22 how that changes
//	V23 V24 indices   V25 z   V26 dz   V27 scale   V28 four   V30 1e15
TEXT ·normalGridNEON(SB), NOSPLIT, $0-32
	MOVD    n+0(FP), R0
	MOVD    ratio+8(FP), R1
	MOVD    prod+16(FP), R2
	MOVD    s+24(FP), R3
	VLD1R.P 8(R3), [V25.D2]
	VLD1R.P 8(R3), [V26.D2]
	VLD1R.P 8(R3), [V27.D2]
	VLD1R.P 8(R3), [V22.D2]
	VLD1.P  32(R3), [V18.D2, V19.D2]
	VLD1    (R3), [V20.D2, V21.D2]
	MOVD    $steps<>(SB), R3
	VLD1.P  32(R3), [V23.D2, V24.D2]
	VLD1R.P 8(R3), [V28.D2]
	VLD1R   (R3), [V30.D2]

loop:
	VMOV  V25.B16, V0.B16
	VMOV  V25.B16, V1.B16
	VFMLA V26.D2, V23.D2, V0.D2
	VFMLA V26.D2, V24.D2, V1.D2
	MILLS
	FMUL(12, 18, 4)              // φP
	FMUL(13, 19, 5)
	FSUB(4, 16, 6)               // Q-φP
	FSUB(5, 17, 7)
	FMUL(16, 18, 8)              // φQ
	FMUL(17, 19, 9)
	FCMGT0(0, 10)                // right of zero
	FCMGT0(1, 11)
	VBIT  V10.B16, V6.B16, V4.B16   // Φ·Q
	VBIT  V11.B16, V7.B16, V5.B16
	VMOV  V16.B16, V14.B16
	VMOV  V17.B16, V15.B16
	VBIT  V10.B16, V8.B16, V14.B16  // ratio: numerator
	VBIT  V11.B16, V9.B16, V15.B16
	VBIT  V10.B16, V6.B16, V12.B16  // and denominator
	VBIT  V11.B16, V7.B16, V13.B16
	VLD1  (R2), [V2.D2, V3.D2]
	FDIV(16, 4, 4)
	FDIV(17, 5, 5)
	FDIV(12, 14, 6)
	FDIV(13, 15, 7)
	FMUL(4, 2, 2)
	FMUL(5, 3, 3)
	FMUL(27, 6, 6)
	FMUL(27, 7, 7)
	VST1.P [V2.D2, V3.D2], 32(R2)
	VST1.P [V6.D2, V7.D2], 32(R1)
	FMUL(20, 18, 18)
	FMUL(21, 19, 19)
	FMUL(22, 20, 20)
	FMUL(22, 21, 21)
	FADD(28, 23, 23)
	FADD(28, 24, 24)
	SUBS  $4, R0
	BNE   loop
	RET

// indices, four, 1e15
DATA steps<>+0(SB)/8, $0.0
DATA steps<>+8(SB)/8, $1.0
DATA steps<>+16(SB)/8, $2.0
DATA steps<>+24(SB)/8, $3.0
DATA steps<>+32(SB)/8, $4.0
DATA steps<>+40(SB)/8, $1e15
GLOBL steps<>(SB), RODATA, $48
