#include "textflag.h"

// Kernels for AVX2 and FMA. Strides arrive in elements and are turned into
// bytes on entry.

// tile*AVX2: C (m×W) = alpha·A·B (+ C), W = 12, 8 or 4. Rows are done four at a
// time; for each group of four a loop over k keeps the 4×W block of C in
// registers:
//
//	Y0–Y11     the block, row after row
//	Y12–Y14    row p of B
//	Y15        an element of column p of A, in every lane
//	DI         rows left            SI   k
//	R8         A, first row of the group
//	BX, CX, DX offsets of its rows 1 to 3; a row that does not exist repeats the last that does
//	AX, R10    column p of A, distance to the next
//	R11        B
//	R15, R12   row p of B, distance to the next
//	R13        C
//	R14        columns of A left

#define ARGS \
	MOVQ m+0(FP), DI        \
	MOVQ k+8(FP), SI        \
	MOVQ a+24(FP), R8       \
	MOVQ rsa+32(FP), R9     \
	MOVQ csa+40(FP), R10    \
	MOVQ b+48(FP), R11      \
	MOVQ ldb+56(FP), R12    \
	MOVQ c+64(FP), R13      \
	SHLQ $3, R9             \
	SHLQ $3, R10            \
	SHLQ $3, R12

// GROUP starts a group of up to four rows.
#define GROUP \
	MOVQ    R9, BX          \
	LEAQ    (R9)(R9*1), CX  \
	LEAQ    (R9)(R9*2), DX  \
	XORL    AX, AX          \
	CMPQ    DI, $2          \
	CMOVQLT AX, BX          \
	CMPQ    DI, $3          \
	CMOVQLT BX, CX          \
	CMPQ    DI, $4          \
	CMOVQLT CX, DX          \
	MOVQ    R8, AX          \
	MOVQ    R11, R15        \
	MOVQ    SI, R14

#define FMA1(a, b0, c0) \
	VBROADCASTSD a, Y15       \
	VFMADD231PD  b0, Y15, c0

#define FMA2(a, b0, c0, b1, c1) \
	VBROADCASTSD a, Y15       \
	VFMADD231PD  b0, Y15, c0  \
	VFMADD231PD  b1, Y15, c1

#define FMA3(a, c0, c1, c2) \
	VBROADCASTSD a, Y15       \
	VFMADD231PD  Y12, Y15, c0 \
	VFMADD231PD  Y13, Y15, c1 \
	VFMADD231PD  Y14, Y15, c2

#define NEXT \
	ADDQ R10, AX   \
	ADDQ R12, R15

// One column of A times the vectors named, of three, of the row of B.
#define STEP012 \
	VMOVUPD (R15), Y12                \
	VMOVUPD 32(R15), Y13              \
	VMOVUPD 64(R15), Y14              \
	FMA3((AX), Y0, Y1, Y2)            \
	FMA3((AX)(BX*1), Y3, Y4, Y5)      \
	FMA3((AX)(CX*1), Y6, Y7, Y8)      \
	FMA3((AX)(DX*1), Y9, Y10, Y11)    \
	NEXT

#define STEP01 \
	VMOVUPD (R15), Y12                     \
	VMOVUPD 32(R15), Y13                   \
	FMA2((AX), Y12, Y0, Y13, Y1)           \
	FMA2((AX)(BX*1), Y12, Y3, Y13, Y4)     \
	FMA2((AX)(CX*1), Y12, Y6, Y13, Y7)     \
	FMA2((AX)(DX*1), Y12, Y9, Y13, Y10)    \
	NEXT

#define STEP12 \
	VMOVUPD 32(R15), Y13                   \
	VMOVUPD 64(R15), Y14                   \
	FMA2((AX), Y13, Y1, Y14, Y2)           \
	FMA2((AX)(BX*1), Y13, Y4, Y14, Y5)     \
	FMA2((AX)(CX*1), Y13, Y7, Y14, Y8)     \
	FMA2((AX)(DX*1), Y13, Y10, Y14, Y11)   \
	NEXT

#define STEP0 \
	VMOVUPD (R15), Y12                \
	FMA1((AX), Y12, Y0)               \
	FMA1((AX)(BX*1), Y12, Y3)         \
	FMA1((AX)(CX*1), Y12, Y6)         \
	FMA1((AX)(DX*1), Y12, Y9)         \
	NEXT

#define STEP2 \
	VMOVUPD 64(R15), Y14              \
	FMA1((AX), Y14, Y2)               \
	FMA1((AX)(BX*1), Y14, Y5)         \
	FMA1((AX)(CX*1), Y14, Y8)         \
	FMA1((AX)(DX*1), Y14, Y11)        \
	NEXT

#define ZERO(r0, r1, r2, r3) \
	VXORPD r0, r0, r0 \
	VXORPD r1, r1, r1 \
	VXORPD r2, r2, r2 \
	VXORPD r3, r3, r3

// STORE scales a vector by alpha (Y12) and stores it, ADD adds it.
#define STORE(r, c) \
	VMULPD  Y12, r, r \
	VMOVUPD r, c

#define ADD(r, c) \
	VFMADD213PD c, Y12, r \
	VMOVUPD     r, c

// After a row of C: the next, unless there is none.
#define ROW(n, end) \
	ADDQ BX, R13    \
	CMPQ DI, $n     \
	JLE  end

// func tile12SIMD(m, k int, alpha float64, a *float64, rsa, csa int, b *float64, ldb int, c *float64, ldc int, add bool, shape int)
TEXT ·tile12SIMD(SB), NOSPLIT, $0-96
	ARGS

group:
	GROUP
	ZERO(Y0, Y1, Y2, Y3)
	ZERO(Y4, Y5, Y6, Y7)
	ZERO(Y8, Y9, Y10, Y11)
	CMPQ shape+88(FP), $1
	JEQ  lower
	JGT  upper
	TESTQ R14, R14
	JLE  store

full:
	STEP012
	DECQ R14
	JNZ  full
	JMP  store

lower: // the first 12 rows of B are lower triangular
	STEP0
	STEP0
	STEP0
	STEP0
	STEP01
	STEP01
	STEP01
	STEP01
	SUBQ $8, R14
	JMP  full

upper: // the last 12 rows of B are upper triangular
	SUBQ $8, R14

head:
	STEP012
	DECQ R14
	JNZ  head
	STEP12
	STEP12
	STEP12
	STEP12
	STEP2
	STEP2
	STEP2
	STEP2

store:
	VBROADCASTSD alpha+16(FP), Y12
	MOVQ ldc+72(FP), BX
	SHLQ $3, BX
	CMPB add+80(FP), $0
	JNE  sum
	STORE(Y0, (R13))
	STORE(Y1, 32(R13))
	STORE(Y2, 64(R13))
	ROW(1, end)
	STORE(Y3, (R13))
	STORE(Y4, 32(R13))
	STORE(Y5, 64(R13))
	ROW(2, end)
	STORE(Y6, (R13))
	STORE(Y7, 32(R13))
	STORE(Y8, 64(R13))
	ROW(3, end)
	STORE(Y9, (R13))
	STORE(Y10, 32(R13))
	STORE(Y11, 64(R13))
	ROW(4, end)
	JMP  next

sum:
	ADD(Y0, (R13))
	ADD(Y1, 32(R13))
	ADD(Y2, 64(R13))
	ROW(1, end)
	ADD(Y3, (R13))
	ADD(Y4, 32(R13))
	ADD(Y5, 64(R13))
	ROW(2, end)
	ADD(Y6, (R13))
	ADD(Y7, 32(R13))
	ADD(Y8, 64(R13))
	ROW(3, end)
	ADD(Y9, (R13))
	ADD(Y10, 32(R13))
	ADD(Y11, 64(R13))
	ROW(4, end)

next:
	LEAQ (R8)(R9*4), R8
	SUBQ $4, DI
	JMP  group

end:
	VZEROUPPER
	RET

// func tile8SIMD(m, k int, alpha float64, a *float64, rsa, csa int, b *float64, ldb int, c *float64, ldc int, add bool)
TEXT ·tile8SIMD(SB), NOSPLIT, $0-81
	ARGS

group:
	GROUP
	ZERO(Y0, Y1, Y3, Y4)
	ZERO(Y6, Y7, Y9, Y10)
	TESTQ R14, R14
	JLE  store

full:
	STEP01
	DECQ R14
	JNZ  full

store:
	VBROADCASTSD alpha+16(FP), Y12
	MOVQ ldc+72(FP), BX
	SHLQ $3, BX
	CMPB add+80(FP), $0
	JNE  sum
	STORE(Y0, (R13))
	STORE(Y1, 32(R13))
	ROW(1, end)
	STORE(Y3, (R13))
	STORE(Y4, 32(R13))
	ROW(2, end)
	STORE(Y6, (R13))
	STORE(Y7, 32(R13))
	ROW(3, end)
	STORE(Y9, (R13))
	STORE(Y10, 32(R13))
	ROW(4, end)
	JMP  next

sum:
	ADD(Y0, (R13))
	ADD(Y1, 32(R13))
	ROW(1, end)
	ADD(Y3, (R13))
	ADD(Y4, 32(R13))
	ROW(2, end)
	ADD(Y6, (R13))
	ADD(Y7, 32(R13))
	ROW(3, end)
	ADD(Y9, (R13))
	ADD(Y10, 32(R13))
	ROW(4, end)

next:
	LEAQ (R8)(R9*4), R8
	SUBQ $4, DI
	JMP  group

end:
	VZEROUPPER
	RET

// func tile4SIMD(m, k int, alpha float64, a *float64, rsa, csa int, b *float64, ldb int, c *float64, ldc int, add bool)
TEXT ·tile4SIMD(SB), NOSPLIT, $0-81
	ARGS

group:
	GROUP
	ZERO(Y0, Y3, Y6, Y9)
	TESTQ R14, R14
	JLE  store

full:
	STEP0
	DECQ R14
	JNZ  full

store:
	VBROADCASTSD alpha+16(FP), Y12
	MOVQ ldc+72(FP), BX
	SHLQ $3, BX
	CMPB add+80(FP), $0
	JNE  sum
	STORE(Y0, (R13))
	ROW(1, end)
	STORE(Y3, (R13))
	ROW(2, end)
	STORE(Y6, (R13))
	ROW(3, end)
	STORE(Y9, (R13))
	ROW(4, end)
	JMP  next

sum:
	ADD(Y0, (R13))
	ROW(1, end)
	ADD(Y3, (R13))
	ROW(2, end)
	ADD(Y6, (R13))
	ROW(3, end)
	ADD(Y9, (R13))
	ROW(4, end)

next:
	LEAQ (R8)(R9*4), R8
	SUBQ $4, DI
	JMP  group

end:
	VZEROUPPER
	RET

// func solve12SIMD(m int, n, d, a *float64, lda int)
// func solveBack12SIMD(m int, n, d, a *float64, lda int)
//
// Forward and backward substitution in rows of 12, four at a time:
// x = a∘d − Σ x_k·n_k, where row k of n is what x_k takes from the elements to
// its right (forward) or left (backward), and d the reciprocal pivots.
//
//	Y0–Y11         the rows           DI  rows left
//	Y12–Y14        d, then row k of n SI  n
//	Y15            x_k in every lane  R11 d
//	R8 BX CX DX    A; a row that does not exist is the last that does, solved
//	               again from the same values and stored again
#define LOADROW(p, r0, r1, r2) \
	VMULPD (p), Y12, r0    \
	VMULPD 32(p), Y13, r1  \
	VMULPD 64(p), Y14, r2

#define SAVEROW(p, r0, r1, r2) \
	VMOVUPD r0, (p)    \
	VMOVUPD r1, 32(p)  \
	VMOVUPD r2, 64(p)

#define LOADROWS \
	LEAQ    (R8)(R9*1), BX       \
	LEAQ    (R8)(R9*2), CX       \
	LEAQ    (BX)(R9*2), DX       \
	CMPQ    DI, $2               \
	CMOVQLT R8, BX               \
	CMPQ    DI, $3               \
	CMOVQLT BX, CX               \
	CMPQ    DI, $4               \
	CMOVQLT CX, DX               \
	VMOVUPD (R11), Y12           \
	VMOVUPD 32(R11), Y13         \
	VMOVUPD 64(R11), Y14         \
	LOADROW(R8, Y0, Y1, Y2)      \
	LOADROW(BX, Y3, Y4, Y5)      \
	LOADROW(CX, Y6, Y7, Y8)      \
	LOADROW(DX, Y9, Y10, Y11)

#define SAVEROWS \
	SAVEROW(R8, Y0, Y1, Y2)      \
	SAVEROW(BX, Y3, Y4, Y5)      \
	SAVEROW(CX, Y6, Y7, Y8)      \
	SAVEROW(DX, Y9, Y10, Y11)    \
	LEAQ (R8)(R9*4), R8          \
	SUBQ $4, DI

#define SUB1(x, l, n0, r0) \
	VPERMPD      l, x, Y15      \
	VFNMADD231PD n0, Y15, r0

#define SUB2(x, l, n0, r0, n1, r1) \
	VPERMPD      l, x, Y15      \
	VFNMADD231PD n0, Y15, r0    \
	VFNMADD231PD n1, Y15, r1

#define SUB3(x, l, r0, r1, r2) \
	VPERMPD      l, x, Y15      \
	VFNMADD231PD Y12, Y15, r0   \
	VFNMADD231PD Y13, Y15, r1   \
	VFNMADD231PD Y14, Y15, r2

// SOLVE takes x_k from the vectors named. Element k is lane l of x0 to x3.
#define SOLVE012(k, l, x0, x1, x2, x3) \
	VMOVUPD k*96(SI), Y12            \
	VMOVUPD k*96+32(SI), Y13         \
	VMOVUPD k*96+64(SI), Y14         \
	SUB3(x0, l, Y0, Y1, Y2)          \
	SUB3(x1, l, Y3, Y4, Y5)          \
	SUB3(x2, l, Y6, Y7, Y8)          \
	SUB3(x3, l, Y9, Y10, Y11)

#define SOLVE12(k, l, x0, x1, x2, x3) \
	VMOVUPD k*96+32(SI), Y13         \
	VMOVUPD k*96+64(SI), Y14         \
	SUB2(x0, l, Y13, Y1, Y14, Y2)    \
	SUB2(x1, l, Y13, Y4, Y14, Y5)    \
	SUB2(x2, l, Y13, Y7, Y14, Y8)    \
	SUB2(x3, l, Y13, Y10, Y14, Y11)

#define SOLVE01(k, l, x0, x1, x2, x3) \
	VMOVUPD k*96(SI), Y12            \
	VMOVUPD k*96+32(SI), Y13         \
	SUB2(x0, l, Y12, Y0, Y13, Y1)    \
	SUB2(x1, l, Y12, Y3, Y13, Y4)    \
	SUB2(x2, l, Y12, Y6, Y13, Y7)    \
	SUB2(x3, l, Y12, Y9, Y13, Y10)

#define SOLVE2(k, l, x0, x1, x2, x3) \
	VMOVUPD k*96+64(SI), Y14         \
	SUB1(x0, l, Y14, Y2)             \
	SUB1(x1, l, Y14, Y5)             \
	SUB1(x2, l, Y14, Y8)             \
	SUB1(x3, l, Y14, Y11)

#define SOLVE0(k, l, x0, x1, x2, x3) \
	VMOVUPD k*96(SI), Y12            \
	SUB1(x0, l, Y12, Y0)             \
	SUB1(x1, l, Y12, Y3)             \
	SUB1(x2, l, Y12, Y6)             \
	SUB1(x3, l, Y12, Y9)

TEXT ·solve12SIMD(SB), NOSPLIT, $0-40
	MOVQ m+0(FP), DI
	MOVQ n+8(FP), SI
	MOVQ d+16(FP), R11
	MOVQ a+24(FP), R8
	MOVQ lda+32(FP), R9
	SHLQ $3, R9

group:
	LOADROWS
	SOLVE012(0, $0x00, Y0, Y3, Y6, Y9)
	SOLVE012(1, $0x55, Y0, Y3, Y6, Y9)
	SOLVE012(2, $0xaa, Y0, Y3, Y6, Y9)
	SOLVE12(3, $0xff, Y0, Y3, Y6, Y9)
	SOLVE12(4, $0x00, Y1, Y4, Y7, Y10)
	SOLVE12(5, $0x55, Y1, Y4, Y7, Y10)
	SOLVE12(6, $0xaa, Y1, Y4, Y7, Y10)
	SOLVE2(7, $0xff, Y1, Y4, Y7, Y10)
	SOLVE2(8, $0x00, Y2, Y5, Y8, Y11)
	SOLVE2(9, $0x55, Y2, Y5, Y8, Y11)
	SOLVE2(10, $0xaa, Y2, Y5, Y8, Y11)
	SAVEROWS
	JGT  group
	VZEROUPPER
	RET

TEXT ·solveBack12SIMD(SB), NOSPLIT, $0-40
	MOVQ m+0(FP), DI
	MOVQ n+8(FP), SI
	MOVQ d+16(FP), R11
	MOVQ a+24(FP), R8
	MOVQ lda+32(FP), R9
	SHLQ $3, R9

group:
	LOADROWS
	SOLVE012(11, $0xff, Y2, Y5, Y8, Y11)
	SOLVE012(10, $0xaa, Y2, Y5, Y8, Y11)
	SOLVE012(9, $0x55, Y2, Y5, Y8, Y11)
	SOLVE01(8, $0x00, Y2, Y5, Y8, Y11)
	SOLVE01(7, $0xff, Y1, Y4, Y7, Y10)
	SOLVE01(6, $0xaa, Y1, Y4, Y7, Y10)
	SOLVE01(5, $0x55, Y1, Y4, Y7, Y10)
	SOLVE0(4, $0x00, Y1, Y4, Y7, Y10)
	SOLVE0(3, $0xff, Y0, Y3, Y6, Y9)
	SOLVE0(2, $0xaa, Y0, Y3, Y6, Y9)
	SOLVE0(1, $0x55, Y0, Y3, Y6, Y9)
	SAVEROWS
	JGT  group
	VZEROUPPER
	RET

// func eliminateAVX2(n int, f *float64)
//
// Whole rows of 12: what is below the diagonal is spoilt.
//
//	Y0–Y2  row k          Y4  reciprocal pivot   Y5  multiplier
//	SI     row k          AX  k                  Y15 ones
//	R8     row i          CX  i
TEXT ·eliminateAVX2(SB), NOSPLIT, $0-16
	MOVQ n+0(FP), DI
	MOVQ f+8(FP), SI
	XORL AX, AX
	MOVQ $0x3ff0000000000000, CX // 1
	VMOVQ CX, X15
	VBROADCASTSD X15, Y15

row:
	VBROADCASTSD (SI)(AX*8), Y4
	VDIVPD  Y4, Y15, Y4
	VMOVUPD (SI), Y0
	VMOVUPD 32(SI), Y1
	VMOVUPD 64(SI), Y2
	LEAQ 1(AX), CX
	LEAQ 96(SI), R8
	CMPQ CX, DI
	JGE  done

below:
	VBROADCASTSD (SI)(CX*8), Y5
	VMULPD       Y4, Y5, Y5
	VMOVUPD      (R8), Y6
	VMOVUPD      32(R8), Y7
	VMOVUPD      64(R8), Y8
	VFNMADD231PD Y0, Y5, Y6
	VFNMADD231PD Y1, Y5, Y7
	VFNMADD231PD Y2, Y5, Y8
	VMOVUPD      Y6, (R8)
	VMOVUPD      Y7, 32(R8)
	VMOVUPD      Y8, 64(R8)
	ADDQ $96, R8
	INCQ CX
	CMPQ CX, DI
	JLT  below
	INCQ AX
	ADDQ $96, SI
	JMP  row

done:
	VZEROUPPER
	RET

// func packRowsSIMD(k int, s *float64, ss int, a *float64, lda int, dst *float64)
//
// Rows of 12, each scaled by its weight, one behind the other.
TEXT ·packRowsSIMD(SB), NOSPLIT, $0-48
	MOVQ k+0(FP), DI
	MOVQ s+8(FP), SI
	MOVQ ss+16(FP), R9
	MOVQ a+24(FP), R8
	MOVQ lda+32(FP), R10
	MOVQ dst+40(FP), R11
	SHLQ $3, R9
	SHLQ $3, R10

row:
	VBROADCASTSD (SI), Y0
	VMULPD  (R8), Y0, Y1
	VMULPD  32(R8), Y0, Y2
	VMULPD  64(R8), Y0, Y3
	VMOVUPD Y1, (R11)
	VMOVUPD Y2, 32(R11)
	VMOVUPD Y3, 64(R11)
	ADDQ R9, SI
	ADDQ R10, R8
	ADDQ $96, R11
	DECQ DI
	JNZ  row
	VZEROUPPER
	RET

// func packColsAVX2(k int, a *float64, lda int, dst *float64)
//
// The transpose of 12 rows of length k, a multiple of 4: blocks of 4×4, four
// elements of the 12 rows and then the next four.
#define TRANSPOSE(dst) \
	VMOVUPD    (AX), Y0                  \
	VMOVUPD    (AX)(R9*1), Y1            \
	VMOVUPD    (AX)(R9*2), Y2            \
	VMOVUPD    (AX)(R10*1), Y3           \
	VUNPCKLPD  Y1, Y0, Y4                \
	VUNPCKHPD  Y1, Y0, Y5                \
	VUNPCKLPD  Y3, Y2, Y6                \
	VUNPCKHPD  Y3, Y2, Y7                \
	VPERM2F128 $0x20, Y6, Y4, Y0         \
	VPERM2F128 $0x20, Y7, Y5, Y1         \
	VPERM2F128 $0x31, Y6, Y4, Y2         \
	VPERM2F128 $0x31, Y7, Y5, Y3         \
	VMOVUPD    Y0, dst(R11)              \
	VMOVUPD    Y1, 96+dst(R11)           \
	VMOVUPD    Y2, 192+dst(R11)          \
	VMOVUPD    Y3, 288+dst(R11)

TEXT ·packColsAVX2(SB), NOSPLIT, $0-32
	MOVQ k+0(FP), DI
	MOVQ a+8(FP), R8
	MOVQ lda+16(FP), R9
	MOVQ dst+24(FP), R11
	SHLQ $3, R9
	LEAQ (R9)(R9*2), R10

block:
	MOVQ R8, AX
	TRANSPOSE(0)
	LEAQ (AX)(R9*4), AX
	TRANSPOSE(32)
	LEAQ (AX)(R9*4), AX
	TRANSPOSE(64)
	ADDQ $32, R8
	ADDQ $384, R11
	SUBQ $4, DI
	JGT  block
	VZEROUPPER
	RET

// func dotAVX2(n int, x, y *float64) float64
TEXT ·dotAVX2(SB), NOSPLIT, $0-32
	MOVQ n+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ y+16(FP), R8
	ZERO(Y0, Y1, Y2, Y3)
	SUBQ $16, DI
	JLT  rest

loop16:
	VMOVUPD     (SI), Y4
	VMOVUPD     32(SI), Y5
	VMOVUPD     64(SI), Y6
	VMOVUPD     96(SI), Y7
	VFMADD231PD (R8), Y4, Y0
	VFMADD231PD 32(R8), Y5, Y1
	VFMADD231PD 64(R8), Y6, Y2
	VFMADD231PD 96(R8), Y7, Y3
	ADDQ $128, SI
	ADDQ $128, R8
	SUBQ $16, DI
	JGE  loop16

rest:
	VADDPD Y1, Y0, Y0
	VADDPD Y3, Y2, Y2
	ADDQ $12, DI
	JLT  tail

loop4:
	VMOVUPD     (SI), Y4
	VFMADD231PD (R8), Y4, Y0
	ADDQ $32, SI
	ADDQ $32, R8
	SUBQ $4, DI
	JGE  loop4

tail:
	VADDPD       Y2, Y0, Y0
	VEXTRACTF128 $1, Y0, X1
	VADDPD       X1, X0, X0
	VHADDPD      X0, X0, X0
	ADDQ $4, DI
	JLE  done

loop1:
	VMOVSD      (SI), X4
	VFMADD231SD (R8), X4, X0
	ADDQ $8, SI
	ADDQ $8, R8
	DECQ DI
	JNZ  loop1

done:
	VMOVSD X0, ret+24(FP)
	VZEROUPPER
	RET

// func axpyAVX2(n int, alpha float64, x, y *float64)
TEXT ·axpyAVX2(SB), NOSPLIT, $0-32
	MOVQ n+0(FP), DI
	VBROADCASTSD alpha+8(FP), Y0
	MOVQ x+16(FP), SI
	MOVQ y+24(FP), R8
	SUBQ $16, DI
	JLT  rest

loop16:
	VMOVUPD     (R8), Y4
	VMOVUPD     32(R8), Y5
	VMOVUPD     64(R8), Y6
	VMOVUPD     96(R8), Y7
	VFMADD231PD (SI), Y0, Y4
	VFMADD231PD 32(SI), Y0, Y5
	VFMADD231PD 64(SI), Y0, Y6
	VFMADD231PD 96(SI), Y0, Y7
	VMOVUPD     Y4, (R8)
	VMOVUPD     Y5, 32(R8)
	VMOVUPD     Y6, 64(R8)
	VMOVUPD     Y7, 96(R8)
	ADDQ $128, SI
	ADDQ $128, R8
	SUBQ $16, DI
	JGE  loop16

rest:
	ADDQ $12, DI
	JLT  tail

loop4:
	VMOVUPD     (R8), Y4
	VFMADD231PD (SI), Y0, Y4
	VMOVUPD     Y4, (R8)
	ADDQ $32, SI
	ADDQ $32, R8
	SUBQ $4, DI
	JGE  loop4

tail:
	ADDQ $4, DI
	JLE  done

loop1:
	VMOVSD      (R8), X4
	VFMADD231SD (SI), X0, X4
	VMOVSD      X4, (R8)
	ADDQ $8, SI
	ADDQ $8, R8
	DECQ DI
	JNZ  loop1

done:
	VZEROUPPER
	RET

// Masks of t lanes, from element 4-t on.
DATA lanes<>+0(SB)/8, $-1
DATA lanes<>+8(SB)/8, $-1
DATA lanes<>+16(SB)/8, $-1
DATA lanes<>+24(SB)/8, $-1
DATA lanes<>+32(SB)/8, $0
DATA lanes<>+40(SB)/8, $0
DATA lanes<>+48(SB)/8, $0
DATA lanes<>+56(SB)/8, $0
GLOBL lanes<>(SB), RODATA, $64

// The next two take the rows of A four at a time. Row r of a group has k
// elements (a multiple of 4), and t + r·step more in a masked vector; k grows
// by dk from group to group. So t = n mod 4 and step = dk = 0 are a rectangle,
// t = step = 1 and dk = 4 a lower triangle.
//
//	Y12–Y15  masks            DI      rows left
//	R8       A, first row     R9, R10 distance to row 1, to row 3
//	SI       k                CX      columns left
//	AX       row 0 of A       BX      x or y beside it
#define MASKS \
	LEAQ lanes<>(SB), AX     \
	MOVQ t+16(FP), BX        \
	SHLQ $3, BX              \
	SUBQ BX, AX              \
	MOVQ step+24(FP), BX     \
	SHLQ $3, BX              \
	VMOVUPD 32(AX), Y12      \
	SUBQ BX, AX              \
	VMOVUPD 32(AX), Y13      \
	SUBQ BX, AX              \
	VMOVUPD 32(AX), Y14      \
	SUBQ BX, AX              \
	VMOVUPD 32(AX), Y15

#define DOT4(o, y0, y1, y2, y3) \
	VMOVUPD     o(BX), Y8              \
	VFMADD231PD o(AX), Y8, y0          \
	VFMADD231PD o(AX)(R9*1), Y8, y1    \
	VFMADD231PD o(AX)(R9*2), Y8, y2    \
	VFMADD231PD o(AX)(R10*1), Y8, y3

#define DOTMASKED(mask, a, y) \
	VMASKMOVPD  a, mask, Y8        \
	VMASKMOVPD  (BX), mask, Y9     \
	VFMADD231PD Y8, Y9, y

// func dotRowsAVX2(m, k, t, step, dk int, alpha float64, a *float64, lda int, x, y *float64, add bool)
//
// y = alpha·A·x (+ y), m a multiple of 4.
TEXT ·dotRowsAVX2(SB), NOSPLIT, $0-81
	MASKS
	MOVQ m+0(FP), DI
	MOVQ k+8(FP), SI
	MOVQ dk+32(FP), DX
	VBROADCASTSD alpha+40(FP), Y11
	MOVQ a+48(FP), R8
	MOVQ lda+56(FP), R9
	SHLQ $3, R9
	LEAQ (R9)(R9*2), R10
	MOVQ x+64(FP), R11
	MOVQ y+72(FP), R13
	MOVBLZX add+80(FP), R12

group:
	MOVQ R8, AX
	MOVQ R11, BX
	ZERO(Y0, Y1, Y2, Y3)
	ZERO(Y4, Y5, Y6, Y7)
	MOVQ SI, CX
	SUBQ $8, CX
	JLT  rest

loop8:
	DOT4(0, Y0, Y1, Y2, Y3)
	DOT4(32, Y4, Y5, Y6, Y7)
	ADDQ $64, AX
	ADDQ $64, BX
	SUBQ $8, CX
	JGE  loop8

rest:
	ADDQ $4, CX
	JLT  masked
	DOT4(0, Y0, Y1, Y2, Y3)
	ADDQ $32, AX
	ADDQ $32, BX

masked:
	DOTMASKED(Y12, (AX), Y4)
	DOTMASKED(Y13, (AX)(R9*1), Y5)
	DOTMASKED(Y14, (AX)(R9*2), Y6)
	DOTMASKED(Y15, (AX)(R10*1), Y7)
	VADDPD Y4, Y0, Y0
	VADDPD Y5, Y1, Y1
	VADDPD Y6, Y2, Y2
	VADDPD Y7, Y3, Y3
	VHADDPD    Y1, Y0, Y0
	VHADDPD    Y3, Y2, Y2
	VPERM2F128 $0x21, Y2, Y0, Y1
	VBLENDPD   $0xc, Y2, Y0, Y0
	VADDPD     Y1, Y0, Y0
	VMULPD     Y11, Y0, Y0
	TESTL R12, R12
	JEQ  store
	VADDPD (R13), Y0, Y0

store:
	VMOVUPD Y0, (R13)
	ADDQ $32, R13
	ADDQ DX, SI
	LEAQ (R8)(R9*4), R8
	SUBQ $4, DI
	JGT  group
	VZEROUPPER
	RET

#define AXPYMASKED(mask, a, x) \
	VMASKMOVPD  a, mask, Y8    \
	VFMADD231PD Y8, x, Y4

// func axpyRowsAVX2(m, k, t, step, dk int, alpha float64, a *float64, lda int, x, y *float64)
//
// y += alpha·Aᵀ·x, m a multiple of 4. Y0–Y3 hold four elements of x.
TEXT ·axpyRowsAVX2(SB), NOSPLIT, $0-80
	MASKS
	MOVQ m+0(FP), DI
	MOVQ k+8(FP), SI
	MOVQ dk+32(FP), DX
	VBROADCASTSD alpha+40(FP), Y11
	MOVQ a+48(FP), R8
	MOVQ lda+56(FP), R9
	SHLQ $3, R9
	LEAQ (R9)(R9*2), R10
	MOVQ x+64(FP), R11
	MOVQ y+72(FP), R13

group:
	VBROADCASTSD (R11), Y0
	VBROADCASTSD 8(R11), Y1
	VBROADCASTSD 16(R11), Y2
	VBROADCASTSD 24(R11), Y3
	VMULPD Y11, Y0, Y0
	VMULPD Y11, Y1, Y1
	VMULPD Y11, Y2, Y2
	VMULPD Y11, Y3, Y3
	MOVQ R8, AX
	MOVQ R13, BX
	MOVQ SI, CX
	SUBQ $4, CX
	JLT  masked

loop4:
	VMOVUPD     (BX), Y4
	VMULPD      (AX), Y0, Y5
	VFMADD231PD (AX)(R9*1), Y1, Y4
	VFMADD231PD (AX)(R9*2), Y2, Y5
	VFMADD231PD (AX)(R10*1), Y3, Y4
	VADDPD      Y5, Y4, Y4
	VMOVUPD     Y4, (BX)
	ADDQ $32, AX
	ADDQ $32, BX
	SUBQ $4, CX
	JGE  loop4

masked:
	VMASKMOVPD (BX), Y15, Y4
	AXPYMASKED(Y12, (AX), Y0)
	AXPYMASKED(Y13, (AX)(R9*1), Y1)
	AXPYMASKED(Y14, (AX)(R9*2), Y2)
	AXPYMASKED(Y15, (AX)(R10*1), Y3)
	VMASKMOVPD Y4, Y15, (BX)
	ADDQ $32, R11
	ADDQ DX, SI
	LEAQ (R8)(R9*4), R8
	SUBQ $4, DI
	JGT  group
	VZEROUPPER
	RET
