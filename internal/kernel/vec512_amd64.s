//go:build amd64 && !purego

#include "textflag.h"

// Routines of AVX-512 for what takes more than a hundredth of a prompt's time. They take any number of elements, at least one: the
// last vector is masked. MASK turns the 1 to 15 elements of CX that are left into K1; DX is lost.
#define MASK \
	MOVL  $1, DX \
	SHLL  CX, DX \
	DECL  DX     \
	KMOVW DX, K1

// func dotAVX512(a, b unsafe.Pointer, n int) float32
//
// Element i of whole 64 goes to lane i mod 64, the vectors after them to the first 16 lanes, and what is left to the next 16.
TEXT ·dotAVX512(SB), NOSPLIT, $0-28
	MOVQ   a+0(FP), SI
	MOVQ   b+8(FP), DI
	MOVQ   n+16(FP), CX
	VPXORD Z0, Z0, Z0
	VPXORD Z1, Z1, Z1
	VPXORD Z2, Z2, Z2
	VPXORD Z3, Z3, Z3
	SUBQ   $64, CX
	JLT    vectors
loop:
	VMOVUPS     (SI), Z4
	VMOVUPS     64(SI), Z5
	VMOVUPS     128(SI), Z6
	VMOVUPS     192(SI), Z7
	VFMADD231PS (DI), Z4, Z0
	VFMADD231PS 64(DI), Z5, Z1
	VFMADD231PS 128(DI), Z6, Z2
	VFMADD231PS 192(DI), Z7, Z3
	ADDQ        $256, SI
	ADDQ        $256, DI
	SUBQ        $64, CX
	JGE         loop
vectors:
	ADDQ $48, CX
	JLT  rest
vector:
	VMOVUPS     (SI), Z4
	VFMADD231PS (DI), Z4, Z0
	ADDQ        $64, SI
	ADDQ        $64, DI
	SUBQ        $16, CX
	JGE         vector
rest:
	ADDQ $16, CX
	JZ   fold
	MASK
	VMOVUPS.Z   (SI), K1, Z4
	VMOVUPS.Z   (DI), K1, Z5
	VFMADD231PS Z5, Z4, Z1
fold:
	VADDPS        Z1, Z0, Z0
	VADDPS        Z3, Z2, Z2
	VADDPS        Z2, Z0, Z0
	VEXTRACTF64X4 $1, Z0, Y1
	VADDPS        Y1, Y0, Y0
	VEXTRACTF128  $1, Y0, X1
	VADDPS        X1, X0, X0
	VPSHUFD       $0x4e, X0, X1
	VADDPS        X1, X0, X0
	VPSHUFD       $0xb1, X0, X1
	VADDSS        X1, X0, X0
	VMOVSS        X0, ret+24(FP)
	VZEROUPPER
	RET

DATA exp512<>+0(SB)/4, $0x3fb8aa3b  // log2 e
DATA exp512<>+4(SB)/4, $0x3f318000  // ln 2, high part
DATA exp512<>+8(SB)/4, $0xb95e8083  // ln 2, low part
DATA exp512<>+12(SB)/4, $0x39506967 // coefficients of r^5 down to r^0
DATA exp512<>+16(SB)/4, $0x3ab743ce
DATA exp512<>+20(SB)/4, $0x3c088908
DATA exp512<>+24(SB)/4, $0x3d2aa9c1
DATA exp512<>+28(SB)/4, $0x3e2aaaaa
DATA exp512<>+32(SB)/4, $0x3f000000
DATA exp512<>+36(SB)/4, $0x3f800000 // 1
DATA exp512<>+40(SB)/4, $0xc2aeac4f // below: 0
DATA exp512<>+44(SB)/4, $0x42b0c0a5 // above: +Inf
DATA exp512<>+48(SB)/4, $0x7f800000 // +Inf
DATA exp512<>+52(SB)/4, $0x80000000 // sign
GLOBL exp512<>(SB), RODATA|NOPTR, $56

// EXP turns Z0 into e^Z0 as exp32 does; Z1 to Z4, K2 and K3 are scratch, Z16 to Z29 hold the constants. A NaN passes through
// the arithmetic.
#define EXPCONST \
	VBROADCASTSS exp512<>+0(SB), Z16  \
	VBROADCASTSS exp512<>+4(SB), Z17  \
	VBROADCASTSS exp512<>+8(SB), Z18  \
	VBROADCASTSS exp512<>+12(SB), Z19 \
	VBROADCASTSS exp512<>+16(SB), Z20 \
	VBROADCASTSS exp512<>+20(SB), Z21 \
	VBROADCASTSS exp512<>+24(SB), Z22 \
	VBROADCASTSS exp512<>+28(SB), Z23 \
	VBROADCASTSS exp512<>+32(SB), Z24 \
	VBROADCASTSS exp512<>+36(SB), Z25 \
	VBROADCASTSS exp512<>+40(SB), Z26 \
	VBROADCASTSS exp512<>+44(SB), Z27 \
	VBROADCASTSS exp512<>+48(SB), Z28 \
	VBROADCASTSS exp512<>+52(SB), Z29

#define EXP \
	VMULPS       Z16, Z0, Z4     \
	VRNDSCALEPS  $0, Z4, Z4      \ // n
	VMOVAPS      Z0, Z1          \
	VFNMADD231PS Z17, Z4, Z1     \
	VFNMADD231PS Z18, Z4, Z1     \ // r
	VMOVAPS      Z19, Z2         \
	VFMADD213PS  Z20, Z1, Z2     \
	VFMADD213PS  Z21, Z1, Z2     \
	VFMADD213PS  Z22, Z1, Z2     \
	VFMADD213PS  Z23, Z1, Z2     \
	VFMADD213PS  Z24, Z1, Z2     \
	VMULPS       Z1, Z1, Z3      \
	VFMADD213PS  Z1, Z3, Z2      \
	VADDPS       Z25, Z2, Z2     \
	VCMPPS       $21, Z26, Z0, K2 \ // not below
	VCMPPS       $30, Z27, Z0, K3 \ // above
	VSCALEFPS.Z  Z4, Z2, K2, Z0  \
	VMOVAPS      Z28, K3, Z0

#define SILU \
	VPXORD Z29, Z5, Z0 \
	EXP                \
	VADDPS Z25, Z0, Z0 \
	VDIVPS Z0, Z5, Z0

// func siluMulAVX512(dst, gate, up unsafe.Pointer, n int)
TEXT ·siluMulAVX512(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ gate+8(FP), SI
	MOVQ up+16(FP), BX
	MOVQ n+24(FP), CX
	EXPCONST
	SUBQ $16, CX
	JLT  rest
loop:
	VMOVUPS (SI), Z5
	SILU
	VMULPS  (BX), Z0, Z0
	VMOVUPS Z0, (DI)
	ADDQ    $64, SI
	ADDQ    $64, BX
	ADDQ    $64, DI
	SUBQ    $16, CX
	JGE     loop
rest:
	ADDQ $16, CX
	JZ   done
	MASK
	VMOVUPS.Z (SI), K1, Z5
	VMOVUPS.Z (BX), K1, Z6
	SILU
	VMULPS    Z6, Z0, Z0
	VMOVUPS   Z0, K1, (DI)
done:
	VZEROUPPER
	RET

DATA swish512<>+0(SB)/8, $0x3ff71547652b82fe // log2e
DATA swish512<>+8(SB)/8, $0x3fe62e42fefa39ef // ln2
DATA swish512<>+16(SB)/8, $0x4085e00000000000 // largest
DATA swish512<>+24(SB)/8, $0xc085e00000000000 // smallest
DATA swish512<>+32(SB)/8, $0x3ff0000000000000 // one
DATA swish512<>+40(SB)/8, $0x3fe0000000000000 // 1/2!
DATA swish512<>+48(SB)/8, $0x3fc5555555555555 // 1/3!
DATA swish512<>+56(SB)/8, $0x3fa5555555555555 // 1/4!
DATA swish512<>+64(SB)/8, $0x3f81111111111111 // 1/5!
DATA swish512<>+72(SB)/8, $0x3f56c16c16c16c17 // 1/6!
DATA swish512<>+80(SB)/8, $0x3f2a01a01a01a01a // 1/7!
GLOBL swish512<>(SB), RODATA|NOPTR, $88

// SWISH makes x/(1+exp(u)) of the float64 numbers of Z0, where u is -(a·x+b·x³), and leaves it in Y0 as float32. exp(u) is 2 to a
// whole number times a polynomial, to 5e-9.
#define SWISH \
	VMULPD       Z0, Z0, Z1        \
	VMINPD       Z1, Z20, Z1       \ // more makes no difference, and 0 times it is 0
	VMOVAPD      Z16, Z2           \
	VFMADD231PD  Z1, Z17, Z2       \
	VMULPD       Z0, Z2, Z2        \
	VMINPD       Z2, Z20, Z2       \ // a NaN stays
	VMAXPD       Z2, Z21, Z2       \
	VMULPD       Z18, Z2, Z3       \
	VRNDSCALEPD  $0, Z3, Z3        \
	VFNMADD231PD Z19, Z3, Z2       \
	VMOVAPD      Z28, Z4           \
	VFMADD213PD  Z27, Z2, Z4       \
	VFMADD213PD  Z26, Z2, Z4       \
	VFMADD213PD  Z25, Z2, Z4       \
	VFMADD213PD  Z24, Z2, Z4       \
	VFMADD213PD  Z23, Z2, Z4       \
	VFMADD213PD  Z22, Z2, Z4       \
	VFMADD213PD  Z22, Z2, Z4       \
	VSCALEFPD    Z3, Z4, Z4        \
	VADDPD       Z22, Z4, Z4       \
	VDIVPD       Z4, Z0, Z0        \
	VCVTPD2PS    Z0, Y0

// func swishAVX512(dst, x unsafe.Pointer, n int, a, b float64)
TEXT ·swishAVX512(SB), NOSPLIT, $0-40
	MOVQ         dst+0(FP), DI
	MOVQ         x+8(FP), SI
	MOVQ         n+16(FP), CX
	VBROADCASTSD a+24(FP), Z0
	VBROADCASTSD b+32(FP), Z1
	VPXORQ       Z2, Z2, Z2
	VSUBPD       Z0, Z2, Z16
	VSUBPD       Z1, Z2, Z17
	VBROADCASTSD swish512<>+0(SB), Z18
	VBROADCASTSD swish512<>+8(SB), Z19
	VBROADCASTSD swish512<>+16(SB), Z20
	VBROADCASTSD swish512<>+24(SB), Z21
	VBROADCASTSD swish512<>+32(SB), Z22
	VBROADCASTSD swish512<>+40(SB), Z23
	VBROADCASTSD swish512<>+48(SB), Z24
	VBROADCASTSD swish512<>+56(SB), Z25
	VBROADCASTSD swish512<>+64(SB), Z26
	VBROADCASTSD swish512<>+72(SB), Z27
	VBROADCASTSD swish512<>+80(SB), Z28
	SUBQ         $8, CX
	JLT          rest
loop:
	VCVTPS2PD (SI), Z0
	SWISH
	VMOVUPS   Y0, (DI)
	ADDQ      $32, SI
	ADDQ      $32, DI
	SUBQ      $8, CX
	JGE       loop
rest:
	ADDQ $8, CX
	JZ   done
	MASK
	VCVTPS2PD.Z (SI), K1, Z0
	SWISH
	VMOVUPS     Y0, K1, (DI)
done:
	VZEROUPPER
	RET

DATA quantize512<>+0(SB)/4, $0x7fffffff // all but the sign
DATA quantize512<>+4(SB)/4, $0x42fe0000 // 127
DATA quantize512<>+8(SB)/4, $0x0da24260 // 1e-30
GLOBL quantize512<>(SB), RODATA|NOPTR, $12

// func quantizeAVX512(q, scale, sum, offset, x unsafe.Pointer, groups, group int)
//
// It is quantizeAVX2 with vectors of sixteen. Y5 has the sum of the codes, X7 the scale.
TEXT ·quantizeAVX512(SB), NOSPLIT, $0-56
	MOVQ         q+0(FP), DI
	MOVQ         scale+8(FP), R8
	MOVQ         sum+16(FP), R9
	MOVQ         offset+24(FP), R10
	MOVQ         x+32(FP), SI
	MOVQ         groups+40(FP), BX
	MOVQ         group+48(FP), R11
	VPBROADCASTD quantize512<>+0(SB), Z15
	VMOVSS       quantize512<>+4(SB), X14
	VMOVSS       quantize512<>+8(SB), X13

group:
	MOVQ   SI, DX
	MOVQ   R11, CX
	VPXORD Z0, Z0, Z0

top:
	VPANDD  (DX), Z15, Z1
	VPANDD  64(DX), Z15, Z2
	VPMAXSD Z1, Z2, Z1
	VPMAXSD Z1, Z0, Z0
	ADDQ    $128, DX
	SUBQ    $32, CX
	JNZ     top

	VEXTRACTI64X4 $1, Z0, Y1
	VPMAXSD       Y1, Y0, Y0
	VEXTRACTI128  $1, Y0, X1
	VPMAXSD       X1, X0, X0
	VPSHUFD       $0x4e, X0, X1
	VPMAXSD       X1, X0, X0
	VPSHUFD       $0xb1, X0, X1
	VPMAXSD       X1, X0, X0
	MOVQ          R11, CX
	VPXORD        Z5, Z5, Z5
	VXORPS        X7, X7, X7
	VMULSS        X0, X7, X7          // 0, or NaN
	VUCOMISS      X13, X0
	JCS           zeros               // below 1e-30, or NaN
	VDIVSS        X0, X14, X6
	VDIVSS        X14, X0, X7         // scale
	VBROADCASTSS  X6, Z6

codes:
	VMULPS    (SI), Z6, Z1
	VMULPS    64(SI), Z6, Z2
	VCVTPS2DQ Z1, Z1
	VCVTPS2DQ Z2, Z2
	VPADDD    Z1, Z5, Z5
	VPADDD    Z2, Z5, Z5
	VPMOVSDB  Z1, X1
	VPMOVSDB  Z2, X2
	VMOVDQU   X1, (DI)
	VMOVDQU   X2, 16(DI)
	ADDQ      $128, SI
	ADDQ      $32, DI
	SUBQ      $32, CX
	JNZ       codes

sums:
	VEXTRACTI64X4 $1, Z5, Y1
	VPADDD        Y1, Y5, Y5
	VEXTRACTI128  $1, Y5, X1
	VPADDD        X1, X5, X5
	VPSHUFD       $0x4e, X5, X1
	VPADDD        X1, X5, X5
	VPSHUFD       $0xb1, X5, X1
	VPADDD        X1, X5, X5
	VCVTDQ2PS     X5, X1
	VMULSS        X7, X1, X1
	VPSLLD        $7, X5, X5
	VMOVSS        X7, (R8)
	VMOVSS        X1, (R9)
	VMOVD         X5, (R10)
	ADDQ          $4, R8
	ADDQ          $4, R9
	ADDQ          $4, R10
	DECQ          BX
	JNZ           group
	VZEROUPPER
	RET

zeros:
	VMOVDQU Y5, (DI)
	ADDQ    $128, SI
	ADDQ    $32, DI
	SUBQ    $32, CX
	JNZ     zeros
	JMP     sums
