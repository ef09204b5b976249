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

// func tile12AVX2(m, k int, alpha float64, a *float64, rsa, csa int, b *float64, ldb int, c *float64, ldc int, add bool, shape int)
TEXT ·tile12AVX2(SB), NOSPLIT, $0-96
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

// func tile8AVX2(m, k int, alpha float64, a *float64, rsa, csa int, b *float64, ldb int, c *float64, ldc int, add bool)
TEXT ·tile8AVX2(SB), NOSPLIT, $0-81
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

// func tile4AVX2(m, k int, alpha float64, a *float64, rsa, csa int, b *float64, ldb int, c *float64, ldc int, add bool)
TEXT ·tile4AVX2(SB), NOSPLIT, $0-81
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

// func solve12AVX2(m int, n, d, a *float64, lda int)
//
// Forward substitution in four rows of 12 at a time. Row k of n holds what x_k
// takes from the elements to its right, d the reciprocal pivots; both by column
// scaled so that x = a∘d − Σ x_k n_k.
//
//	Y0–Y11   the rows
//	Y12–Y14  row k of n
//	Y15      x_k in every lane
#define SUB3(x, l, r0, r1, r2) \
	VPERMPD      l, x, Y15        \
	VFNMADD231PD Y12, Y15, r0     \
	VFNMADD231PD Y13, Y15, r1     \
	VFNMADD231PD Y14, Y15, r2

#define SUB2(x, l, r1, r2) \
	VPERMPD      l, x, Y15        \
	VFNMADD231PD Y13, Y15, r1     \
	VFNMADD231PD Y14, Y15, r2

#define SUB1(x, l, r2) \
	VPERMPD      l, x, Y15        \
	VFNMADD231PD Y14, Y15, r2

#define SOLVE3(k, l) \
	VMOVUPD k*96(SI), Y12         \
	VMOVUPD k*96+32(SI), Y13      \
	VMOVUPD k*96+64(SI), Y14      \
	SUB3(Y0, l, Y0, Y1, Y2)       \
	SUB3(Y3, l, Y3, Y4, Y5)       \
	SUB3(Y6, l, Y6, Y7, Y8)       \
	SUB3(Y9, l, Y9, Y10, Y11)

#define SOLVE2(k, l) \
	VMOVUPD k*96+32(SI), Y13      \
	VMOVUPD k*96+64(SI), Y14      \
	SUB2(Y1, l, Y1, Y2)           \
	SUB2(Y4, l, Y4, Y5)           \
	SUB2(Y7, l, Y7, Y8)           \
	SUB2(Y10, l, Y10, Y11)

#define SOLVE1(k, l) \
	VMOVUPD k*96+64(SI), Y14      \
	SUB1(Y2, l, Y2)               \
	SUB1(Y5, l, Y5)               \
	SUB1(Y8, l, Y8)               \
	SUB1(Y11, l, Y11)

#define LOADROW(p, r0, r1, r2) \
	VMULPD (p), Y12, r0    \
	VMULPD 32(p), Y13, r1  \
	VMULPD 64(p), Y14, r2

#define SAVEROW(p, r0, r1, r2) \
	VMOVUPD r0, (p)    \
	VMOVUPD r1, 32(p)  \
	VMOVUPD r2, 64(p)

TEXT ·solve12AVX2(SB), NOSPLIT, $0-40
	MOVQ m+0(FP), DI
	MOVQ n+8(FP), SI
	MOVQ d+16(FP), R11
	MOVQ a+24(FP), R8
	MOVQ lda+32(FP), R9
	SHLQ $3, R9

group:
	// R8, BX, CX, DX: the rows; one that does not exist is the last that does,
	// solved again from the same values and stored again.
	LEAQ    (R8)(R9*1), BX
	LEAQ    (R8)(R9*2), CX
	LEAQ    (BX)(R9*2), DX
	CMPQ    DI, $2
	CMOVQLT R8, BX
	CMPQ    DI, $3
	CMOVQLT BX, CX
	CMPQ    DI, $4
	CMOVQLT CX, DX
	VMOVUPD (R11), Y12
	VMOVUPD 32(R11), Y13
	VMOVUPD 64(R11), Y14
	LOADROW(R8, Y0, Y1, Y2)
	LOADROW(BX, Y3, Y4, Y5)
	LOADROW(CX, Y6, Y7, Y8)
	LOADROW(DX, Y9, Y10, Y11)
	SOLVE3(0, $0x00)
	SOLVE3(1, $0x55)
	SOLVE3(2, $0xaa)
	SOLVE3(3, $0xff)
	SOLVE2(4, $0x00)
	SOLVE2(5, $0x55)
	SOLVE2(6, $0xaa)
	SOLVE2(7, $0xff)
	SOLVE1(8, $0x00)
	SOLVE1(9, $0x55)
	SOLVE1(10, $0xaa)
	SAVEROW(R8, Y0, Y1, Y2)
	SAVEROW(BX, Y3, Y4, Y5)
	SAVEROW(CX, Y6, Y7, Y8)
	SAVEROW(DX, Y9, Y10, Y11)
	LEAQ (R8)(R9*4), R8
	SUBQ $4, DI
	JGT  group
	VZEROUPPER
	RET

// func packRowsAVX2(k int, s *float64, ss int, a *float64, lda int, dst *float64)
//
// Rows of 12, each scaled by its weight, one behind the other.
TEXT ·packRowsAVX2(SB), NOSPLIT, $0-48
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
