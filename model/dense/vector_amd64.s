#include "textflag.h"

// Elementary functions of four elements at a time; n is a multiple of four.
// R9 points to expTable, R10 to millsTable (exp.go, normal.go), every entry in
// four lanes.

// EXP: Y0 = e^Y0. Uses Y1 to Y4. The even and the odd part of the polynomial
// are chains of their own, in Y2 and Y3.
#define TERM(i, y) \
	VFMADD213PD i*32(R9), Y4, y

#define EXP \
	VMOVUPD      0*32(R9), Y1     \ // clamp; the operands' order keeps a NaN
	VMAXPD       Y0, Y1, Y0       \
	VMOVUPD      1*32(R9), Y1     \
	VMINPD       Y0, Y1, Y0       \
	VMULPD       2*32(R9), Y0, Y1 \ // k = x/log 2, to the nearest integer
	VROUNDPD     $0, Y1, Y1       \
	VFNMADD231PD 3*32(R9), Y1, Y0 \ // r = x - k·log 2
	VFNMADD231PD 4*32(R9), Y1, Y0 \
	VMULPD       Y0, Y0, Y4       \
	VMOVUPD      5*32(R9), Y3     \
	VMOVUPD      6*32(R9), Y2     \
	TERM(7, Y3)                \
	TERM(8, Y2)                \
	TERM(9, Y3)                \
	TERM(10, Y2)               \
	TERM(11, Y3)               \
	TERM(12, Y2)               \
	TERM(13, Y3)               \
	TERM(14, Y2)               \
	TERM(15, Y3)               \
	TERM(16, Y2)               \
	VFMADD231PD  Y0, Y3, Y2    \
	VCVTPD2DQY   Y1, X1        \ // 2^k = 2^⌊k/2⌋·2^(k-⌊k/2⌋)
	VPSRAD       $1, X1, X3    \
	VPSUBD       X3, X1, X1    \
	VPMOVSXDQ    X3, Y3        \
	VPMOVSXDQ    X1, Y1        \
	VPADDQ       bias<>(SB), Y3, Y3 \
	VPADDQ       bias<>(SB), Y1, Y1 \
	VPSLLQ       $52, Y3, Y3   \
	VPSLLQ       $52, Y1, Y1   \
	VMULPD       Y3, Y2, Y0    \
	VMULPD       Y1, Y0, Y0

DATA bias<>+0(SB)/8, $1023
DATA bias<>+8(SB)/8, $1023
DATA bias<>+16(SB)/8, $1023
DATA bias<>+24(SB)/8, $1023
GLOBL bias<>(SB), RODATA, $32

DATA steps<>+0(SB)/8, $0.0
DATA steps<>+8(SB)/8, $1.0
DATA steps<>+16(SB)/8, $2.0
DATA steps<>+24(SB)/8, $3.0
GLOBL steps<>(SB), RODATA, $32

// half, 1/√(2π), 1e15, 4, all but the sign
DATA consts<>+0(SB)/8, $-0.5
DATA consts<>+8(SB)/8, $0.398942280401432677939946059934
DATA consts<>+16(SB)/8, $1e15
DATA consts<>+24(SB)/8, $4.0
DATA consts<>+32(SB)/8, $0x7fffffffffffffff
GLOBL consts<>(SB), RODATA, $40

// func expSqDistSIMD(n int, row *float64, amp, half float64, zz *float64)
//
// row = amp·exp(min(row + half - zz/2, 0))
TEXT ·expSqDistSIMD(SB), NOSPLIT, $0-40
	MOVQ n+0(FP), DI
	MOVQ row+8(FP), R8
	VBROADCASTSD amp+16(FP), Y15
	VBROADCASTSD half+24(FP), Y14
	VBROADCASTSD consts<>+0(SB), Y13
	VXORPD Y12, Y12, Y12
	MOVQ zz+32(FP), SI
	LEAQ ·expLanes(SB), R9

loop:
	VADDPD      (R8), Y14, Y0
	VFMADD231PD (SI), Y13, Y0
	VMINPD      Y0, Y12, Y0
	EXP
	VMULPD  Y15, Y0, Y0
	VMOVUPD Y0, (R8)
	ADDQ $32, SI
	ADDQ $32, R8
	SUBQ $4, DI
	JNE  loop
	VZEROUPPER
	RET

// MILLS: D, P, Q of x = min(|z|, 1e15).
//
//	Y6 z   Y7 x   Y8 D   Y9 P   Y10 Q
//	Y3 scratch   Y4 x²   Y5, Y11 D's odd and P's even powers
#define HORNER(i, y) \
	VFMADD213PD i*32(R10), Y4, y

#define MILLS \
	VBROADCASTSD consts<>+32(SB), Y7  \
	VANDPD       Y7, Y6, Y7           \
	VBROADCASTSD consts<>+16(SB), Y3  \
	VMINPD       Y7, Y3, Y7           \
	VMULPD       Y7, Y7, Y4           \
	VMOVUPD      0*32(R10), Y5        \
	VADDPD       1*32(R10), Y4, Y8    \
	VMOVUPD      8*32(R10), Y11       \
	VADDPD       9*32(R10), Y4, Y9    \
	HORNER(2, Y5)                     \
	HORNER(10, Y11)                   \
	HORNER(3, Y8)                     \
	HORNER(11, Y9)                    \
	HORNER(4, Y5)                     \
	HORNER(12, Y11)                   \
	HORNER(5, Y8)                     \
	HORNER(13, Y9)                    \
	HORNER(6, Y5)                     \
	HORNER(14, Y11)                   \
	HORNER(7, Y8)                     \
	HORNER(15, Y9)                    \
	HORNER(16, Y11)                   \
	VFMADD231PD  Y5, Y7, Y8           \
	VFMADD213PD  Y11, Y7, Y9          \
	VMOVAPD      Y8, Y10              \
	VFMADD231PD  Y9, Y7, Y10

// PHI: Y0 = φ(Y6)
#define PHI \
	VMULPD       Y6, Y6, Y0           \
	VBROADCASTSD consts<>+0(SB), Y1   \
	VMULPD       Y1, Y0, Y0           \
	EXP                               \
	VBROADCASTSD consts<>+8(SB), Y1   \
	VMULPD       Y1, Y0, Y0

// func normalGridAVX2(n int, ratio, prod *float64, z, dz, scale float64)
//
// A blend by z takes the left tail where z carries a minus sign.
//
//	Y15 z   Y14 dz   Y13 scale   Y12 indices
TEXT ·normalGridAVX2(SB), NOSPLIT, $0-48
	MOVQ n+0(FP), DI
	MOVQ ratio+8(FP), R8
	MOVQ prod+16(FP), SI
	VBROADCASTSD z+24(FP), Y15
	VBROADCASTSD dz+32(FP), Y14
	VBROADCASTSD scale+40(FP), Y13
	VMOVUPD steps<>(SB), Y12
	LEAQ ·expLanes(SB), R9
	LEAQ ·millsLanes(SB), R10

loop:
	VMOVAPD     Y15, Y6
	VFMADD231PD Y14, Y12, Y6
	MILLS
	PHI
	VMULPD      Y9, Y0, Y1        // φP
	VSUBPD      Y1, Y10, Y2       // Q-φP
	VMULPD      Y10, Y0, Y3       // φQ
	VBLENDVPD   Y6, Y1, Y2, Y1    // Φ·Q
	VBLENDVPD   Y6, Y10, Y3, Y3   // ratio: numerator
	VBLENDVPD   Y6, Y9, Y2, Y2    // and denominator
	VDIVPD      Y10, Y1, Y1
	VDIVPD      Y2, Y3, Y2
	VMULPD      (SI), Y1, Y1
	VMULPD      Y13, Y2, Y2
	VMOVUPD     Y1, (SI)
	VMOVUPD     Y2, (R8)
	VBROADCASTSD consts<>+24(SB), Y1
	VADDPD      Y1, Y12, Y12
	ADDQ $32, SI
	ADDQ $32, R8
	SUBQ $4, DI
	JNE  loop
	VZEROUPPER
	RET

// func probitAVX2(n int, beta, t, alpha *float64)
TEXT ·probitAVX2(SB), NOSPLIT, $0-32
	MOVQ n+0(FP), DI
	MOVQ beta+8(FP), R8
	MOVQ t+16(FP), R11
	MOVQ alpha+24(FP), SI
	LEAQ ·expLanes(SB), R9
	LEAQ ·millsLanes(SB), R10

loop:
	VMOVUPD (SI), Y6
	MILLS
	PHI
	VMULPD      Y9, Y0, Y1        // φP
	VSUBPD      Y1, Y10, Y2       // Q-φP
	VMULPD      Y10, Y0, Y3       // φQ
	VBLENDVPD   Y6, Y10, Y3, Y1
	VBLENDVPD   Y6, Y9, Y2, Y2
	VDIVPD      Y2, Y1, Y1        // beta
	VDIVPD      Y9, Y8, Y8        // beta-x in the left tail, beta+x in the right
	VADDPD      Y7, Y1, Y3
	VBLENDVPD   Y6, Y8, Y3, Y3
	VMULPD      Y1, Y3, Y3
	VMOVUPD     Y1, (R8)
	VMOVUPD     Y3, (R11)
	ADDQ $32, SI
	ADDQ $32, R8
	ADDQ $32, R11
	SUBQ $4, DI
	JNE  loop
	VZEROUPPER
	RET
