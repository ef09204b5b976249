#include "textflag.h"

// Kernels for NEON, two elements to a vector. Strides arrive in elements and
// are turned into bytes on entry. The assembler has no vector addition or
// multiplication of floats: both are a VFMLA, onto zero or with ones.

// tile*NEON: C (m×W) = alpha·A·B (+ C), W = 12, 8 or 4. Rows are done four at a
// time; for each group of four a loop over k keeps the 4×W block of C in
// registers:
//
//	V0–V23   the block: V0–V5 the first row, V6–V11 the second, ...
//	V24–V29  row p of B
//	V30 V31  elements of column p of A, in both lanes
//	R0       rows left              R1  k
//	R2, R3   A, first row of the group; distance of rows
//	R9–R12   column p of A in the four rows; a row that does not exist repeats the last that does
//	R4       distance of columns of A
//	R5       B                      R13, R6  row p of B, distance to the next
//	R7, R8   C, distance of rows    R14      columns of A left
#define ARGS \
	MOVD m+0(FP), R0       \
	MOVD k+8(FP), R1       \
	MOVD a+24(FP), R2      \
	MOVD rsa+32(FP), R3    \
	MOVD csa+40(FP), R4    \
	MOVD b+48(FP), R5      \
	MOVD ldb+56(FP), R6    \
	MOVD c+64(FP), R7      \
	MOVD ldc+72(FP), R8    \
	MOVBU add+80(FP), R15  \
	LSL  $3, R3            \
	LSL  $3, R4            \
	LSL  $3, R6            \
	LSL  $3, R8

// GROUP starts a group of up to four rows.
#define GROUP \
	MOVD R2, R9                \
	ADD  R3, R9, R10           \
	CMP  $2, R0                \
	CSEL LT, R9, R10, R10      \
	ADD  R3<<1, R9, R11        \
	CMP  $3, R0                \
	CSEL LT, R10, R11, R11     \
	ADD  R3, R11, R12          \
	CMP  $4, R0                \
	CSEL LT, R11, R12, R12     \
	MOVD R5, R13               \
	MOVD R1, R14

#define ZERO2(r0, r1) \
	VEOR r0.B16, r0.B16, r0.B16 \
	VEOR r1.B16, r1.B16, r1.B16

#define ZERO6(r0, r1, r2, r3, r4, r5) \
	ZERO2(r0, r1) \
	ZERO2(r2, r3) \
	ZERO2(r4, r5)

#define FMA2(a, b0, c0, b1, c1) \
	VFMLA b0.D2, a.D2, c0.D2 \
	VFMLA b1.D2, a.D2, c1.D2

#define FMA4(a, b0, c0, b1, c1, b2, c2, b3, c3) \
	FMA2(a, b0, c0, b1, c1) \
	FMA2(a, b2, c2, b3, c3)

#define FMA6(a, c0, c1, c2, c3, c4, c5) \
	FMA4(a, V24, c0, V25, c1, V26, c2, V27, c3) \
	FMA2(a, V28, c4, V29, c5)

// One column of A times the groups of four columns named, of three, of the row
// of B.
#define STEP012 \
	FLDPQ   (R13), (F24, F25)               \
	FLDPQ   32(R13), (F26, F27)             \
	FLDPQ   64(R13), (F28, F29)             \
	VLD1R.P (R9)(R4), [V30.D2]              \
	VLD1R.P (R10)(R4), [V31.D2]             \
	FMA6(V30, V0, V1, V2, V3, V4, V5)       \
	VLD1R.P (R11)(R4), [V30.D2]             \
	FMA6(V31, V6, V7, V8, V9, V10, V11)     \
	VLD1R.P (R12)(R4), [V31.D2]             \
	FMA6(V30, V12, V13, V14, V15, V16, V17) \
	ADD     R6, R13                         \
	FMA6(V31, V18, V19, V20, V21, V22, V23)

#define STEP4(b0, b1, b2, b3, c0, c1, c2, c3, c6, c7, c8, c9, c12, c13, c14, c15, c18, c19, c20, c21) \
	VLD1R.P (R9)(R4), [V30.D2]                        \
	VLD1R.P (R10)(R4), [V31.D2]                       \
	FMA4(V30, b0, c0, b1, c1, b2, c2, b3, c3)         \
	VLD1R.P (R11)(R4), [V30.D2]                       \
	FMA4(V31, b0, c6, b1, c7, b2, c8, b3, c9)         \
	VLD1R.P (R12)(R4), [V31.D2]                       \
	FMA4(V30, b0, c12, b1, c13, b2, c14, b3, c15)     \
	ADD     R6, R13                                   \
	FMA4(V31, b0, c18, b1, c19, b2, c20, b3, c21)

#define STEP01 \
	FLDPQ (R13), (F24, F25)   \
	FLDPQ 32(R13), (F26, F27) \
	STEP4(V24, V25, V26, V27, V0, V1, V2, V3, V6, V7, V8, V9, V12, V13, V14, V15, V18, V19, V20, V21)

#define STEP12 \
	FLDPQ 32(R13), (F26, F27) \
	FLDPQ 64(R13), (F28, F29) \
	STEP4(V26, V27, V28, V29, V2, V3, V4, V5, V8, V9, V10, V11, V14, V15, V16, V17, V20, V21, V22, V23)

#define STEP2(b0, b1, c0, c1, c6, c7, c12, c13, c18, c19) \
	VLD1R.P (R9)(R4), [V30.D2]      \
	VLD1R.P (R10)(R4), [V31.D2]     \
	FMA2(V30, b0, c0, b1, c1)       \
	VLD1R.P (R11)(R4), [V30.D2]     \
	FMA2(V31, b0, c6, b1, c7)       \
	VLD1R.P (R12)(R4), [V31.D2]     \
	FMA2(V30, b0, c12, b1, c13)     \
	ADD     R6, R13                 \
	FMA2(V31, b0, c18, b1, c19)

#define STEPFIRST \
	FLDPQ (R13), (F24, F25) \
	STEP2(V24, V25, V0, V1, V6, V7, V12, V13, V18, V19)

#define STEPLAST \
	FLDPQ 64(R13), (F28, F29) \
	STEP2(V28, V29, V4, V5, V10, V11, V16, V17, V22, V23)

#define ALPHA \
	FMOVD alpha+16(FP), F30 \
	VDUP  V30.D[0], V30.D2

// A row of C: what is there, or zero, plus alpha (V30) times the block.
#define CROW2(add, r0, r1) \
	ZERO2(V24, V25)                  \
	CBZ   R15, add                   \
	FLDPQ (R7), (F24, F25)           \
add:                                 \
	FMA2(V30, r0, V24, r1, V25)      \
	FSTPQ (F24, F25), (R7)

#define CROW4(add, r0, r1, r2, r3) \
	ZERO2(V24, V25)                  \
	ZERO2(V26, V27)                  \
	CBZ   R15, add                   \
	FLDPQ (R7), (F24, F25)           \
	FLDPQ 32(R7), (F26, F27)         \
add:                                 \
	FMA4(V30, r0, V24, r1, V25, r2, V26, r3, V27) \
	FSTPQ (F24, F25), (R7)           \
	FSTPQ (F26, F27), 32(R7)

#define CROW6(add, r0, r1, r2, r3, r4, r5) \
	ZERO6(V24, V25, V26, V27, V28, V29) \
	CBZ   R15, add                   \
	FLDPQ (R7), (F24, F25)           \
	FLDPQ 32(R7), (F26, F27)         \
	FLDPQ 64(R7), (F28, F29)         \
add:                                 \
	FMA4(V30, r0, V24, r1, V25, r2, V26, r3, V27) \
	FMA2(V30, r4, V28, r5, V29)      \
	FSTPQ (F24, F25), (R7)           \
	FSTPQ (F26, F27), 32(R7)         \
	FSTPQ (F28, F29), 64(R7)

// After a row of C: the next, unless there is none.
#define ROW(n, end) \
	ADD R8, R7  \
	CMP $n, R0  \
	BLE end

// func tile12SIMD(m, k int, alpha float64, a *float64, rsa, csa int, b *float64, ldb int, c *float64, ldc int, add bool, shape int)
TEXT ·tile12SIMD(SB), NOSPLIT, $0-96
	ARGS
	MOVD shape+88(FP), R19

group:
	GROUP
	ZERO6(V0, V1, V2, V3, V4, V5)
	ZERO6(V6, V7, V8, V9, V10, V11)
	ZERO6(V12, V13, V14, V15, V16, V17)
	ZERO6(V18, V19, V20, V21, V22, V23)
	CMP $1, R19
	BEQ lower
	BGT upper
	CBZ R14, store

full:
	STEP012
	SUB  $1, R14
	CBNZ R14, full
	B    store

lower: // the first 12 rows of B are lower triangular
	STEPFIRST
	STEPFIRST
	STEPFIRST
	STEPFIRST
	STEP01
	STEP01
	STEP01
	STEP01
	SUB $8, R14
	B   full

upper: // the last 12 rows of B are upper triangular
	SUB $8, R14

head:
	STEP012
	SUB  $1, R14
	CBNZ R14, head
	STEP12
	STEP12
	STEP12
	STEP12
	STEPLAST
	STEPLAST
	STEPLAST
	STEPLAST

store:
	ALPHA
	CROW6(add0, V0, V1, V2, V3, V4, V5)
	ROW(1, end)
	CROW6(add1, V6, V7, V8, V9, V10, V11)
	ROW(2, end)
	CROW6(add2, V12, V13, V14, V15, V16, V17)
	ROW(3, end)
	CROW6(add3, V18, V19, V20, V21, V22, V23)
	ROW(4, end)
	ADD R3<<2, R2
	SUB $4, R0
	B   group

end:
	RET

// func tile8SIMD(m, k int, alpha float64, a *float64, rsa, csa int, b *float64, ldb int, c *float64, ldc int, add bool)
TEXT ·tile8SIMD(SB), NOSPLIT, $0-81
	ARGS

group:
	GROUP
	ZERO6(V0, V1, V2, V3, V6, V7)
	ZERO6(V8, V9, V12, V13, V14, V15)
	ZERO2(V18, V19)
	ZERO2(V20, V21)
	CBZ R14, store

full:
	STEP01
	SUB  $1, R14
	CBNZ R14, full

store:
	ALPHA
	CROW4(add0, V0, V1, V2, V3)
	ROW(1, end)
	CROW4(add1, V6, V7, V8, V9)
	ROW(2, end)
	CROW4(add2, V12, V13, V14, V15)
	ROW(3, end)
	CROW4(add3, V18, V19, V20, V21)
	ROW(4, end)
	ADD R3<<2, R2
	SUB $4, R0
	B   group

end:
	RET

// func tile4SIMD(m, k int, alpha float64, a *float64, rsa, csa int, b *float64, ldb int, c *float64, ldc int, add bool)
TEXT ·tile4SIMD(SB), NOSPLIT, $0-81
	ARGS

group:
	GROUP
	ZERO6(V0, V1, V6, V7, V12, V13)
	ZERO2(V18, V19)
	CBZ R14, store

full:
	STEPFIRST
	SUB  $1, R14
	CBNZ R14, full

store:
	ALPHA
	CROW2(add0, V0, V1)
	ROW(1, end)
	CROW2(add1, V6, V7)
	ROW(2, end)
	CROW2(add2, V12, V13)
	ROW(3, end)
	CROW2(add3, V18, V19)
	ROW(4, end)
	ADD R3<<2, R2
	SUB $4, R0
	B   group

end:
	RET

// func solve12SIMD(m int, n, d, a *float64, lda int)
// func solveBack12SIMD(m int, n, d, a *float64, lda int)
//
// Forward and backward substitution in rows of 12, four at a time:
// x = a∘d − Σ x_k·n_k, where row k of n is what x_k takes from the elements to
// its right (forward) or left (backward), and d the reciprocal pivots.
//
//	V0–V23   the rows, six vectors each   R0      rows left
//	V24–V29  d, then row k of n           R1, R3  n, d
//	V30      x_k in both lanes            R13     row k of n
//	R9–R12   A; a row that does not exist is the last that does, solved again
//	         from the same values and stored again
#define LOAD2(o, p, d0, d1, r0, r1) \
	FLDPQ o(p), (F30, F31)        \
	ZERO2(r0, r1)                 \
	VFMLA V30.D2, d0.D2, r0.D2    \
	VFMLA V31.D2, d1.D2, r1.D2

#define LOADROW(p, r0, r1, r2, r3, r4, r5) \
	LOAD2(0, p, V24, V25, r0, r1)  \
	LOAD2(32, p, V26, V27, r2, r3) \
	LOAD2(64, p, V28, V29, r4, r5)

#define LOADROWS \
	MOVD  R2, R9                \
	ADD   R4, R9, R10           \
	CMP   $2, R0                \
	CSEL  LT, R9, R10, R10      \
	ADD   R4<<1, R9, R11        \
	CMP   $3, R0                \
	CSEL  LT, R10, R11, R11     \
	ADD   R4, R11, R12          \
	CMP   $4, R0                \
	CSEL  LT, R11, R12, R12     \
	FLDPQ (R3), (F24, F25)      \
	FLDPQ 32(R3), (F26, F27)    \
	FLDPQ 64(R3), (F28, F29)    \
	LOADROW(R9, V0, V1, V2, V3, V4, V5)         \
	LOADROW(R10, V6, V7, V8, V9, V10, V11)      \
	LOADROW(R11, V12, V13, V14, V15, V16, V17)  \
	LOADROW(R12, V18, V19, V20, V21, V22, V23)

#define SAVEROW(p, r0, r1, r2, r3, r4, r5) \
	FSTPQ (r0, r1), (p)     \
	FSTPQ (r2, r3), 32(p)   \
	FSTPQ (r4, r5), 64(p)

#define SAVEROWS \
	SAVEROW(R9, F0, F1, F2, F3, F4, F5)         \
	SAVEROW(R10, F6, F7, F8, F9, F10, F11)      \
	SAVEROW(R11, F12, F13, F14, F15, F16, F17)  \
	SAVEROW(R12, F18, F19, F20, F21, F22, F23)  \
	ADD R4<<2, R2                               \
	SUB $4, R0                                  \
	CMP $0, R0

#define FMS1(n, r) \
	VFMLS n.D2, V30.D2, r.D2

#define FMS2(n0, r0, n1, r1) \
	FMS1(n0, r0) \
	FMS1(n1, r1)

#define FMS3(n0, r0, n1, r1, n2, r2) \
	FMS2(n0, r0, n1, r1) \
	FMS1(n2, r2)

#define FMS4(n0, r0, n1, r1, n2, r2, n3, r3) \
	FMS3(n0, r0, n1, r1, n2, r2) \
	FMS1(n3, r3)

#define FMS5(n0, r0, n1, r1, n2, r2, n3, r3, n4, r4) \
	FMS4(n0, r0, n1, r1, n2, r2, n3, r3) \
	FMS1(n4, r4)

#define DUP(x, l) \
	VDUP x.D[l], V30.D2

// SOLVEi…j takes x_k from the vectors i to j of six. Element k is lane l of x0
// to x3 in the four rows.
#define SOLVE0to5(k, l, x0, x1, x2, x3) \
	FLDPQ k*96(R1), (F24, F25)      \
	FLDPQ k*96+32(R1), (F26, F27)   \
	FLDPQ k*96+64(R1), (F28, F29)   \
	DUP(x0, l)                      \
	FMS3(V24, V0, V25, V1, V26, V2)       \
	FMS3(V27, V3, V28, V4, V29, V5)       \
	DUP(x1, l)                            \
	FMS3(V24, V6, V25, V7, V26, V8)       \
	FMS3(V27, V9, V28, V10, V29, V11)     \
	DUP(x2, l)                            \
	FMS3(V24, V12, V25, V13, V26, V14)    \
	FMS3(V27, V15, V28, V16, V29, V17)    \
	DUP(x3, l)                            \
	FMS3(V24, V18, V25, V19, V26, V20)    \
	FMS3(V27, V21, V28, V22, V29, V23)

#define SOLVE1to5(k, l, x0, x1, x2, x3) \
	FLDPQ k*96(R1), (F24, F25)      \
	FLDPQ k*96+32(R1), (F26, F27)   \
	FLDPQ k*96+64(R1), (F28, F29)   \
	DUP(x0, l)                      \
	FMS5(V25, V1, V26, V2, V27, V3, V28, V4, V29, V5)       \
	DUP(x1, l)                                              \
	FMS5(V25, V7, V26, V8, V27, V9, V28, V10, V29, V11)     \
	DUP(x2, l)                                              \
	FMS5(V25, V13, V26, V14, V27, V15, V28, V16, V29, V17)  \
	DUP(x3, l)                                              \
	FMS5(V25, V19, V26, V20, V27, V21, V28, V22, V29, V23)

#define SOLVE2to5(k, l, x0, x1, x2, x3) \
	FLDPQ k*96+32(R1), (F26, F27)   \
	FLDPQ k*96+64(R1), (F28, F29)   \
	DUP(x0, l)                      \
	FMS4(V26, V2, V27, V3, V28, V4, V29, V5)       \
	DUP(x1, l)                                     \
	FMS4(V26, V8, V27, V9, V28, V10, V29, V11)     \
	DUP(x2, l)                                     \
	FMS4(V26, V14, V27, V15, V28, V16, V29, V17)   \
	DUP(x3, l)                                     \
	FMS4(V26, V20, V27, V21, V28, V22, V29, V23)

#define SOLVE4to5(k, l, x0, x1, x2, x3) \
	FLDPQ k*96+64(R1), (F28, F29)   \
	DUP(x0, l)                      \
	FMS2(V28, V4, V29, V5)          \
	DUP(x1, l)                      \
	FMS2(V28, V10, V29, V11)        \
	DUP(x2, l)                      \
	FMS2(V28, V16, V29, V17)        \
	DUP(x3, l)                      \
	FMS2(V28, V22, V29, V23)

#define SOLVE0to3(k, l, x0, x1, x2, x3) \
	FLDPQ k*96(R1), (F24, F25)      \
	FLDPQ k*96+32(R1), (F26, F27)   \
	DUP(x0, l)                      \
	FMS4(V24, V0, V25, V1, V26, V2, V27, V3)       \
	DUP(x1, l)                                     \
	FMS4(V24, V6, V25, V7, V26, V8, V27, V9)       \
	DUP(x2, l)                                     \
	FMS4(V24, V12, V25, V13, V26, V14, V27, V15)   \
	DUP(x3, l)                                     \
	FMS4(V24, V18, V25, V19, V26, V20, V27, V21)

#define SOLVE0to1(k, l, x0, x1, x2, x3) \
	FLDPQ k*96(R1), (F24, F25)      \
	DUP(x0, l)                      \
	FMS2(V24, V0, V25, V1)          \
	DUP(x1, l)                      \
	FMS2(V24, V6, V25, V7)          \
	DUP(x2, l)                      \
	FMS2(V24, V12, V25, V13)        \
	DUP(x3, l)                      \
	FMS2(V24, V18, V25, V19)

TEXT ·solve12SIMD(SB), NOSPLIT, $0-40
	MOVD m+0(FP), R0
	MOVD n+8(FP), R1
	MOVD d+16(FP), R3
	MOVD a+24(FP), R2
	MOVD lda+32(FP), R4
	LSL  $3, R4

group:
	LOADROWS
	SOLVE0to5(0, 0, V0, V6, V12, V18)
	SOLVE1to5(1, 1, V0, V6, V12, V18)
	SOLVE1to5(2, 0, V1, V7, V13, V19)
	SOLVE2to5(3, 1, V1, V7, V13, V19)
	SOLVE2to5(4, 0, V2, V8, V14, V20)
	SOLVE2to5(5, 1, V2, V8, V14, V20)
	SOLVE2to5(6, 0, V3, V9, V15, V21)
	SOLVE4to5(7, 1, V3, V9, V15, V21)
	SOLVE4to5(8, 0, V4, V10, V16, V22)
	SOLVE4to5(9, 1, V4, V10, V16, V22)
	SOLVE4to5(10, 0, V5, V11, V17, V23)
	SAVEROWS
	BGT  group
	RET

TEXT ·solveBack12SIMD(SB), NOSPLIT, $0-40
	MOVD m+0(FP), R0
	MOVD n+8(FP), R1
	MOVD d+16(FP), R3
	MOVD a+24(FP), R2
	MOVD lda+32(FP), R4
	LSL  $3, R4

group:
	LOADROWS
	SOLVE0to5(11, 1, V5, V11, V17, V23)
	SOLVE0to5(10, 0, V5, V11, V17, V23)
	SOLVE0to5(9, 1, V4, V10, V16, V22)
	SOLVE0to3(8, 0, V4, V10, V16, V22)
	SOLVE0to3(7, 1, V3, V9, V15, V21)
	SOLVE0to3(6, 0, V3, V9, V15, V21)
	SOLVE0to3(5, 1, V2, V8, V14, V20)
	SOLVE0to1(4, 0, V2, V8, V14, V20)
	SOLVE0to1(3, 1, V1, V7, V13, V19)
	SOLVE0to1(2, 0, V1, V7, V13, V19)
	SOLVE0to1(1, 1, V0, V6, V12, V18)
	SAVEROWS
	BGT  group
	RET

// func packRowsSIMD(k int, s *float64, ss int, a *float64, lda int, dst *float64)
//
// Rows of 12, each scaled by its weight (V31), one behind the other.
TEXT ·packRowsSIMD(SB), NOSPLIT, $0-48
	MOVD k+0(FP), R0
	MOVD s+8(FP), R1
	MOVD ss+16(FP), R2
	MOVD a+24(FP), R3
	MOVD lda+32(FP), R4
	MOVD dst+40(FP), R5
	LSL  $3, R2
	LSL  $3, R4

row:
	VLD1R.P (R1)(R2), [V31.D2]
	FLDPQ (R3), (F24, F25)
	FLDPQ 32(R3), (F26, F27)
	FLDPQ 64(R3), (F28, F29)
	ZERO6(V0, V1, V2, V3, V4, V5)
	FMA6(V31, V0, V1, V2, V3, V4, V5)
	FSTPQ (F0, F1), (R5)
	FSTPQ (F2, F3), 32(R5)
	FSTPQ (F4, F5), 64(R5)
	ADD  R4, R3
	ADD  $96, R5
	SUB  $1, R0
	CBNZ R0, row
	RET

// func packColsNEON(k int, a *float64, lda int, dst *float64)
//
// The transpose of 12 rows of length k, a multiple of 2: blocks of 2×2, two
// elements of the 12 rows and then the next two.
#define TRANSPOSE(o) \
	VLD1.P (R9)(R2), [V0.D2]    \
	VLD1.P (R9)(R2), [V1.D2]    \
	VZIP1 V1.D2, V0.D2, V2.D2   \
	VZIP2 V1.D2, V0.D2, V3.D2   \
	FMOVQ F2, o(R3)             \
	FMOVQ F3, 96+o(R3)

TEXT ·packColsNEON(SB), NOSPLIT, $0-32
	MOVD k+0(FP), R0
	MOVD a+8(FP), R1
	MOVD lda+16(FP), R2
	MOVD dst+24(FP), R3
	LSL  $3, R2

block:
	MOVD R1, R9
	TRANSPOSE(0)
	TRANSPOSE(16)
	TRANSPOSE(32)
	TRANSPOSE(48)
	TRANSPOSE(64)
	TRANSPOSE(80)
	ADD  $16, R1
	ADD  $192, R3
	SUB  $2, R0
	CBNZ R0, block
	RET

#define ONES \
	FMOVD $1.0, F31        \
	VDUP  V31.D[0], V31.D2

// func dotNEON(n int, x, y *float64) float64
//
// n a multiple of 8.
TEXT ·dotNEON(SB), NOSPLIT, $0-32
	MOVD n+0(FP), R0
	MOVD x+8(FP), R1
	MOVD y+16(FP), R2
	ZERO2(V0, V1)
	ZERO2(V2, V3)

loop:
	VLD1.P 64(R1), [V4.D2, V5.D2, V6.D2, V7.D2]
	VLD1.P 64(R2), [V16.D2, V17.D2, V18.D2, V19.D2]
	VFMLA  V4.D2, V16.D2, V0.D2
	VFMLA  V5.D2, V17.D2, V1.D2
	VFMLA  V6.D2, V18.D2, V2.D2
	VFMLA  V7.D2, V19.D2, V3.D2
	SUB    $8, R0
	CBNZ   R0, loop
	ONES
	VFMLA  V31.D2, V1.D2, V0.D2
	VFMLA  V31.D2, V3.D2, V2.D2
	VFMLA  V31.D2, V2.D2, V0.D2
	VDUP   V0.D[1], V1.D2
	FADDD  F1, F0
	FMOVD  F0, ret+24(FP)
	RET

// func axpyNEON(n int, alpha float64, x, y *float64)
//
// n a multiple of 8.
TEXT ·axpyNEON(SB), NOSPLIT, $0-32
	MOVD  n+0(FP), R0
	FMOVD alpha+8(FP), F31
	VDUP  V31.D[0], V31.D2
	MOVD  x+16(FP), R1
	MOVD  y+24(FP), R2

loop:
	VLD1.P 64(R1), [V4.D2, V5.D2, V6.D2, V7.D2]
	VLD1   (R2), [V16.D2, V17.D2, V18.D2, V19.D2]
	FMA4(V31, V4, V16, V5, V17, V6, V18, V7, V19)
	VST1.P [V16.D2, V17.D2, V18.D2, V19.D2], 64(R2)
	SUB    $8, R0
	CBNZ   R0, loop
	RET

// The next two take the rows of A four at a time; the rows of a group have k
// elements (a multiple of 4), and k grows by dk from group to group.
//
//	R0      rows left     R1      k
//	R3, R4  A, distance of rows
//	R9–R12  the rows      R14     columns left

#define FOUR \
	MOVD R3, R9          \
	ADD  R4, R9, R10     \
	ADD  R4, R10, R11    \
	ADD  R4, R11, R12    \
	MOVD R1, R14

// func dotRowsNEON(m, k, dk int, alpha float64, a *float64, lda int, x, y *float64)
//
// y += alpha·A·x, m a multiple of 4.
TEXT ·dotRowsNEON(SB), NOSPLIT, $0-64
	MOVD  m+0(FP), R0
	MOVD  k+8(FP), R1
	MOVD  dk+16(FP), R2
	FMOVD alpha+24(FP), F30
	VDUP  V30.D[0], V30.D2
	ONES
	MOVD  a+32(FP), R3
	MOVD  lda+40(FP), R4
	LSL   $3, R4
	MOVD  x+48(FP), R5
	MOVD  y+56(FP), R6

group:
	FOUR
	MOVD R5, R13
	ZERO2(V0, V1)
	ZERO6(V2, V3, V4, V5, V6, V7)
	CBZ  R14, store

loop:
	VLD1.P 32(R13), [V16.D2, V17.D2]
	VLD1.P 32(R9), [V18.D2, V19.D2]
	VLD1.P 32(R10), [V20.D2, V21.D2]
	VLD1.P 32(R11), [V22.D2, V23.D2]
	VLD1.P 32(R12), [V24.D2, V25.D2]
	FMA4(V16, V18, V0, V20, V1, V22, V2, V24, V3)
	FMA4(V17, V19, V4, V21, V5, V23, V6, V25, V7)
	SUB    $4, R14
	CBNZ   R14, loop

store:
	FMA4(V31, V4, V0, V5, V1, V6, V2, V7, V3)
	VZIP1 V1.D2, V0.D2, V4.D2
	VZIP2 V1.D2, V0.D2, V5.D2
	VZIP1 V3.D2, V2.D2, V6.D2
	VZIP2 V3.D2, V2.D2, V7.D2
	VLD1  (R6), [V16.D2, V17.D2]
	FMA4(V30, V4, V16, V6, V17, V5, V16, V7, V17)
	VST1.P [V16.D2, V17.D2], 32(R6)
	ADD   R2, R1
	ADD   R4<<2, R3
	SUB   $4, R0
	CBNZ  R0, group
	RET

// func axpyRowsNEON(m, k, dk int, alpha float64, a *float64, lda int, x, y *float64)
//
// y += alpha·Aᵀ·x, m a multiple of 4. V0–V3 hold four elements of x.
#define XI(r) \
	VLD1R.P 8(R5), [V29.D2]    \
	VEOR  r.B16, r.B16, r.B16  \
	VFMLA V29.D2, V30.D2, r.D2

TEXT ·axpyRowsNEON(SB), NOSPLIT, $0-64
	MOVD  m+0(FP), R0
	MOVD  k+8(FP), R1
	MOVD  dk+16(FP), R2
	FMOVD alpha+24(FP), F30
	VDUP  V30.D[0], V30.D2
	MOVD  a+32(FP), R3
	MOVD  lda+40(FP), R4
	LSL   $3, R4
	MOVD  x+48(FP), R5
	MOVD  y+56(FP), R6

group:
	FOUR
	MOVD R6, R13
	XI(V0)
	XI(V1)
	XI(V2)
	XI(V3)
	CBZ  R14, next

loop:
	VLD1   (R13), [V16.D2, V17.D2]
	VLD1.P 32(R9), [V18.D2, V19.D2]
	VLD1.P 32(R10), [V20.D2, V21.D2]
	VLD1.P 32(R11), [V22.D2, V23.D2]
	VLD1.P 32(R12), [V24.D2, V25.D2]
	FMA2(V0, V18, V16, V19, V17)
	FMA2(V1, V20, V16, V21, V17)
	FMA2(V2, V22, V16, V23, V17)
	FMA2(V3, V24, V16, V25, V17)
	VST1.P [V16.D2, V17.D2], 32(R13)
	SUB    $4, R14
	CBNZ   R14, loop

next:
	ADD  R2, R1
	ADD  R4<<2, R3
	SUB  $4, R0
	CBNZ R0, group
	RET
