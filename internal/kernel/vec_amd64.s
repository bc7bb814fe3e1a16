//go:build amd64 && !purego

#include "textflag.h"

// func addAVX2(dst, a, b unsafe.Pointer, n int)
TEXT ·addAVX2(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), DX
	MOVQ n+24(FP), CX
loop:
	VMOVUPS (SI), Y0
	VADDPS  (DX), Y0, Y0
	VMOVUPS Y0, (DI)
	ADDQ    $32, SI
	ADDQ    $32, DX
	ADDQ    $32, DI
	SUBQ    $8, CX
	JNZ     loop
	VZEROUPPER
	RET

// func axpyAVX2(y, x unsafe.Pointer, n int, f float32)
TEXT ·axpyAVX2(SB), NOSPLIT, $0-28
	MOVQ         y+0(FP), DI
	MOVQ         x+8(FP), SI
	MOVQ         n+16(FP), CX
	VBROADCASTSS f+24(FP), Y1
loop:
	VMOVUPS     (DI), Y0
	VFMADD231PS (SI), Y1, Y0
	VMOVUPS     Y0, (DI)
	ADDQ        $32, SI
	ADDQ        $32, DI
	SUBQ        $8, CX
	JNZ         loop
	VZEROUPPER
	RET

// func dotAVX2(a, b, sum unsafe.Pointer, n int)
TEXT ·dotAVX2(SB), NOSPLIT, $0-32
	MOVQ    a+0(FP), SI
	MOVQ    b+8(FP), DX
	MOVQ    sum+16(FP), DI
	MOVQ    n+24(FP), CX
	VMOVUPS (DI), Y0
	VMOVUPS 32(DI), Y1
	VMOVUPS 64(DI), Y2
	VMOVUPS 96(DI), Y3
loop:
	VMOVUPS     (SI), Y4
	VMOVUPS     32(SI), Y5
	VMOVUPS     64(SI), Y6
	VMOVUPS     96(SI), Y7
	VFMADD231PS (DX), Y4, Y0
	VFMADD231PS 32(DX), Y5, Y1
	VFMADD231PS 64(DX), Y6, Y2
	VFMADD231PS 96(DX), Y7, Y3
	ADDQ        $128, SI
	ADDQ        $128, DX
	SUBQ        $32, CX
	JNZ         loop
	VMOVUPS     Y0, (DI)
	VMOVUPS     Y1, 32(DI)
	VMOVUPS     Y2, 64(DI)
	VMOVUPS     Y3, 96(DI)
	VZEROUPPER
	RET

// func scaleMulAVX2(dst, x, w unsafe.Pointer, n int, f float32)
TEXT ·scaleMulAVX2(SB), NOSPLIT, $0-36
	MOVQ         dst+0(FP), DI
	MOVQ         x+8(FP), SI
	MOVQ         w+16(FP), DX
	MOVQ         n+24(FP), CX
	VBROADCASTSS f+32(FP), Y1
loop:
	VMULPS  (SI), Y1, Y0
	VMULPS  (DX), Y0, Y0
	VMOVUPS Y0, (DI)
	ADDQ    $32, SI
	ADDQ    $32, DX
	ADDQ    $32, DI
	SUBQ    $8, CX
	JNZ     loop
	VZEROUPPER
	RET

// func ropeAVX2(lo, hi, cos, sin unsafe.Pointer, n int)
TEXT ·ropeAVX2(SB), NOSPLIT, $0-40
	MOVQ lo+0(FP), SI
	MOVQ hi+8(FP), DI
	MOVQ cos+16(FP), DX
	MOVQ sin+24(FP), BX
	MOVQ n+32(FP), CX
loop:
	VMOVUPS     (SI), Y0
	VMOVUPS     (DI), Y1
	VMOVUPS     (DX), Y2
	VMOVUPS     (BX), Y3
	VMULPS      Y1, Y3, Y4      // b·sin
	VMULPS      Y1, Y2, Y5      // b·cos
	VFMSUB231PS Y0, Y2, Y4      // a·cos - b·sin
	VFMADD231PS Y0, Y3, Y5      // a·sin + b·cos
	VMOVUPS     Y4, (SI)
	VMOVUPS     Y5, (DI)
	ADDQ        $32, SI
	ADDQ        $32, DI
	ADDQ        $32, DX
	ADDQ        $32, BX
	SUBQ        $8, CX
	JNZ         loop
	VZEROUPPER
	RET

DATA expConst<>+0(SB)/4, $0x3fb8aa3b  // log2 e
DATA expConst<>+4(SB)/4, $0x3f318000  // ln 2, high part
DATA expConst<>+8(SB)/4, $0xb95e8083  // ln 2, low part
DATA expConst<>+12(SB)/4, $0x39506967 // coefficients of r^5 down to r^0
DATA expConst<>+16(SB)/4, $0x3ab743ce
DATA expConst<>+20(SB)/4, $0x3c088908
DATA expConst<>+24(SB)/4, $0x3d2aa9c1
DATA expConst<>+28(SB)/4, $0x3e2aaaaa
DATA expConst<>+32(SB)/4, $0x3f000000
DATA expConst<>+36(SB)/4, $0x3f800000 // 1
DATA expConst<>+40(SB)/4, $0xc2aeac4f // below: 0
DATA expConst<>+44(SB)/4, $0x42b0c0a5 // above: +Inf
DATA expConst<>+48(SB)/4, $0x7f800000 // +Inf
DATA expConst<>+52(SB)/4, $0x80000000 // sign
GLOBL expConst<>(SB), RODATA|NOPTR, $56

// EXP turns Y0 into e^Y0 as exp32 does; Y1 to Y4 are scratch, Y8 to Y15 hold constants from EXPCONST.
// The saturated lanes are repaired at the end: NaN passes through the arithmetic and no comparison takes it.
#define EXPCONST \
	VBROADCASTSS expConst<>+0(SB), Y8   \
	VBROADCASTSS expConst<>+4(SB), Y9   \
	VBROADCASTSS expConst<>+8(SB), Y10  \
	VBROADCASTSS expConst<>+36(SB), Y11 \
	VBROADCASTSS expConst<>+40(SB), Y12 \
	VBROADCASTSS expConst<>+44(SB), Y13 \
	VBROADCASTSS expConst<>+48(SB), Y14

#define COEF(off) \
	VBROADCASTSS expConst<>+off(SB), Y3 \
	VFMADD213PS  Y3, Y1, Y2

#define EXP \
	VMULPS       Y8, Y0, Y4            \
	VROUNDPS     $0, Y4, Y4            \ // n
	VMOVAPS      Y0, Y1                \
	VFNMADD231PS Y9, Y4, Y1            \
	VFNMADD231PS Y10, Y4, Y1           \ // r
	VBROADCASTSS expConst<>+12(SB), Y2 \
	COEF(16)                           \
	COEF(20)                           \
	COEF(24)                           \
	COEF(28)                           \
	COEF(32)                           \
	VMULPS       Y1, Y1, Y3            \
	VFMADD213PS  Y1, Y3, Y2            \
	VADDPS       Y11, Y2, Y2           \
	VCVTPS2DQ    Y4, Y4                \
	VPSLLD       $23, Y4, Y4           \
	VPADDD       Y11, Y4, Y4           \ // 2^n
	VMULPS       Y4, Y2, Y2            \
	VCMPPS       $17, Y12, Y0, Y3      \ // x < low
	VANDNPS      Y2, Y3, Y2            \
	VCMPPS       $30, Y13, Y0, Y3      \ // x > high
	VBLENDVPS    Y3, Y14, Y2, Y2       \
	VCMPPS       $3, Y0, Y0, Y3        \ // NaN
	VBLENDVPS    Y3, Y0, Y2, Y0

// func expAVX2(dst, x, sum unsafe.Pointer, n int, off float32)
TEXT ·expAVX2(SB), NOSPLIT, $0-36
	MOVQ         dst+0(FP), DI
	MOVQ         x+8(FP), SI
	MOVQ         sum+16(FP), DX
	MOVQ         n+24(FP), CX
	VBROADCASTSS off+32(FP), Y6
	VMOVUPS      (DX), Y7
	EXPCONST
loop:
	VMOVUPS (SI), Y0
	VSUBPS  Y6, Y0, Y0
	EXP
	VMOVUPS Y0, (DI)
	VADDPS  Y0, Y7, Y7
	ADDQ    $32, SI
	ADDQ    $32, DI
	SUBQ    $8, CX
	JNZ     loop
	VMOVUPS Y7, (DX)
	VZEROUPPER
	RET

// func siluMulAVX2(dst, gate, up unsafe.Pointer, n int)
TEXT ·siluMulAVX2(SB), NOSPLIT, $0-32
	MOVQ         dst+0(FP), DI
	MOVQ         gate+8(FP), SI
	MOVQ         up+16(FP), DX
	MOVQ         n+24(FP), CX
	VBROADCASTSS expConst<>+52(SB), Y6
	EXPCONST
loop:
	VMOVUPS (SI), Y5
	VXORPS  Y6, Y5, Y0
	EXP
	VADDPS  Y11, Y0, Y0
	VDIVPS  Y0, Y5, Y0
	VMULPS  (DX), Y0, Y0
	VMOVUPS Y0, (DI)
	ADDQ    $32, SI
	ADDQ    $32, DX
	ADDQ    $32, DI
	SUBQ    $8, CX
	JNZ     loop
	VZEROUPPER
	RET

DATA bfConst<>+0(SB)/4, $0x7fff
DATA bfConst<>+4(SB)/4, $1
DATA bfConst<>+8(SB)/4, $0x400000
GLOBL bfConst<>(SB), RODATA|NOPTR, $12

// func toBF16AVX2(dst, src unsafe.Pointer, n int)
TEXT ·toBF16AVX2(SB), NOSPLIT, $0-24
	MOVQ         dst+0(FP), DI
	MOVQ         src+8(FP), SI
	MOVQ         n+16(FP), CX
	VPBROADCASTD bfConst<>+0(SB), Y7
	VPBROADCASTD bfConst<>+4(SB), Y6
	VPBROADCASTD bfConst<>+8(SB), Y5
loop:
	VMOVUPS      (SI), Y0
	VPSRLD       $16, Y0, Y1
	VPAND        Y6, Y1, Y1
	VPADDD       Y7, Y1, Y1
	VPADDD       Y0, Y1, Y1
	VCMPPS       $3, Y0, Y0, Y2
	VPOR         Y5, Y0, Y3
	VBLENDVPS    Y2, Y3, Y1, Y1
	VPSRLD       $16, Y1, Y1
	VEXTRACTI128 $1, Y1, X2
	VPACKUSDW    X2, X1, X1
	VMOVDQU      X1, (DI)
	ADDQ         $32, SI
	ADDQ         $16, DI
	SUBQ         $8, CX
	JNZ          loop
	VZEROUPPER
	RET

// func fromBF16AVX2(dst, src unsafe.Pointer, n int)
TEXT ·fromBF16AVX2(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
loop:
	VPMOVZXWD (SI), Y0
	VPSLLD    $16, Y0, Y0
	VMOVUPS   Y0, (DI)
	ADDQ      $16, SI
	ADDQ      $32, DI
	SUBQ      $8, CX
	JNZ       loop
	VZEROUPPER
	RET

DATA qConst<>+0(SB)/4, $0x7fffffff // all but the sign
DATA qConst<>+4(SB)/4, $0x42fe0000 // 127
DATA qConst<>+8(SB)/4, $0x0da24260 // 1e-30
GLOBL qConst<>(SB), RODATA|NOPTR, $12

// Order of dwords after two rounds of 128-bit lane packing.
DATA unpack<>+0(SB)/8, $0x0000000400000000
DATA unpack<>+8(SB)/8, $0x0000000500000001
DATA unpack<>+16(SB)/8, $0x0000000600000002
DATA unpack<>+24(SB)/8, $0x0000000700000003
GLOBL unpack<>(SB), RODATA|NOPTR, $32

// func quantizeAVX2(q, scale, sum, offset, x unsafe.Pointer, groups, group int)
// Magnitudes compare as integers, where NaN is above everything and so is not lost.
TEXT ·quantizeAVX2(SB), NOSPLIT, $0-56
	MOVQ         q+0(FP), DI
	MOVQ         scale+8(FP), R8
	MOVQ         sum+16(FP), R9
	MOVQ         offset+24(FP), R10
	MOVQ         x+32(FP), SI
	MOVQ         groups+40(FP), BX
	MOVQ         group+48(FP), R11
	VPBROADCASTD qConst<>+0(SB), Y15
	VMOVSS       qConst<>+4(SB), X14
	VMOVSS       qConst<>+8(SB), X13
	VMOVDQU      unpack<>(SB), Y12

group:
	MOVQ  SI, DX
	MOVQ  R11, CX
	VPXOR Y0, Y0, Y0

top:
	VPAND  (DX), Y15, Y1
	VPAND  32(DX), Y15, Y2
	VPAND  64(DX), Y15, Y3
	VPAND  96(DX), Y15, Y4
	VPMAXSD Y1, Y2, Y1
	VPMAXSD Y3, Y4, Y3
	VPMAXSD Y1, Y3, Y1
	VPMAXSD Y1, Y0, Y0
	ADDQ   $128, DX
	SUBQ   $32, CX
	JNZ    top

	VEXTRACTF128 $1, Y0, X1
	VPMAXSD       X1, X0, X0
	VPSHUFD      $0x4e, X0, X1
	VPMAXSD       X1, X0, X0
	VPSHUFD      $0xb1, X0, X1
	VPMAXSD       X1, X0, X0
	MOVQ         R11, CX
	VPXOR        Y5, Y5, Y5
	VXORPS       X7, X7, X7
	VMULSS       X0, X7, X7          // 0, or NaN
	VUCOMISS     X13, X0
	JCS          zeros               // below 1e-30, or NaN
	VDIVSS       X0, X14, X6
	VDIVSS       X14, X0, X7         // scale
	VBROADCASTSS X6, Y6

codes:
	VMULPS    (SI), Y6, Y1
	VMULPS    32(SI), Y6, Y2
	VMULPS    64(SI), Y6, Y3
	VMULPS    96(SI), Y6, Y4
	VCVTPS2DQ Y1, Y1
	VCVTPS2DQ Y2, Y2
	VCVTPS2DQ Y3, Y3
	VCVTPS2DQ Y4, Y4
	VPADDD    Y1, Y2, Y8
	VPADDD    Y3, Y4, Y9
	VPADDD    Y8, Y9, Y8
	VPADDD    Y8, Y5, Y5
	VPACKSSDW Y2, Y1, Y1
	VPACKSSDW Y4, Y3, Y3
	VPACKSSWB Y3, Y1, Y1
	VPERMD    Y1, Y12, Y1
	VMOVDQU   Y1, (DI)
	ADDQ      $128, SI
	ADDQ      $32, DI
	SUBQ      $32, CX
	JNZ       codes

sums:
	VEXTRACTI128 $1, Y5, X1
	VPADDD       X1, X5, X5
	VPSHUFD      $0x4e, X5, X1
	VPADDD       X1, X5, X5
	VPSHUFD      $0xb1, X5, X1
	VPADDD       X1, X5, X5
	VCVTDQ2PS    X5, X1
	VMULSS       X7, X1, X1
	VPSLLD       $7, X5, X5
	VMOVSS       X7, (R8)
	VMOVSS       X1, (R9)
	VMOVD        X5, (R10)
	ADDQ         $4, R8
	ADDQ         $4, R9
	ADDQ         $4, R10
	DECQ         BX
	JNZ          group
	VZEROUPPER
	RET

zeros:
	VMOVDQU Y5, (DI)
	ADDQ    $128, SI
	ADDQ    $32, DI
	SUBQ    $32, CX
	JNZ     zeros
	JMP     sums

// func quantize16AVX2(q, scale, sum, offset, x unsafe.Pointer, groups int)
TEXT ·quantize16AVX2(SB), NOSPLIT, $0-48
	MOVQ         q+0(FP), DI
	MOVQ         scale+8(FP), R8
	MOVQ         sum+16(FP), R9
	MOVQ         offset+24(FP), R10
	MOVQ         x+32(FP), SI
	MOVQ         groups+40(FP), BX
	VPBROADCASTD qConst<>+0(SB), Y15
	VMOVSS       qConst<>+4(SB), X14
	VMOVSS       qConst<>+8(SB), X13

group:
	VPAND        (SI), Y15, Y1
	VPAND        32(SI), Y15, Y2
	VPMAXSD      Y1, Y2, Y0
	VEXTRACTF128 $1, Y0, X1
	VPMAXSD      X1, X0, X0
	VPSHUFD      $0x4e, X0, X1
	VPMAXSD      X1, X0, X0
	VPSHUFD      $0xb1, X0, X1
	VPMAXSD      X1, X0, X0
	VXORPS       X7, X7, X7
	VPXOR        Y6, Y6, Y6
	VMULSS       X0, X7, X7          // 0, or NaN
	VPXOR        Y1, Y1, Y1
	VPXOR        Y2, Y2, Y2
	VUCOMISS     X13, X0
	JCS          store               // below 1e-30, or NaN
	VDIVSS       X0, X14, X6
	VDIVSS       X14, X0, X7         // scale
	VBROADCASTSS X6, Y6
	VMULPS       (SI), Y6, Y1
	VMULPS       32(SI), Y6, Y2
	VCVTPS2DQ    Y1, Y1
	VCVTPS2DQ    Y2, Y2

store:
	VPADDD       Y1, Y2, Y5
	VPACKSSDW    Y2, Y1, Y1
	VPERMQ       $0xd8, Y1, Y1
	VEXTRACTI128 $1, Y1, X2
	VPACKSSWB    X2, X1, X1
	VMOVDQU      X1, (DI)
	VEXTRACTI128 $1, Y5, X1
	VPADDD       X1, X5, X5
	VPSHUFD      $0x4e, X5, X1
	VPADDD       X1, X5, X5
	VPSHUFD      $0xb1, X5, X1
	VPADDD       X1, X5, X5
	VCVTDQ2PS    X5, X1
	VMULSS       X7, X1, X1
	VPSLLD       $3, X5, X2
	VPSLLD       $2, X5, X5
	VPADDD       X2, X5, X5
	VPXOR        X2, X2, X2
	VPSUBD       X5, X2, X5          // -12 times
	VMOVSS       X7, (R8)
	VMOVSS       X1, (R9)
	VMOVD        X5, (R10)
	ADDQ         $64, SI
	ADDQ         $16, DI
	ADDQ         $4, R8
	ADDQ         $4, R9
	ADDQ         $4, R10
	DECQ         BX
	JNZ          group
	VZEROUPPER
	RET

// func readAVX2(b unsafe.Pointer, n int)
TEXT ·readAVX2(SB), NOSPLIT, $0-16
	MOVQ b+0(FP), SI
	MOVQ n+8(FP), CX
loop:
	VMOVDQU (SI), Y0
	VMOVDQU 32(SI), Y1
	VMOVDQU 64(SI), Y2
	VMOVDQU 96(SI), Y3
	VMOVDQU 128(SI), Y4
	VMOVDQU 160(SI), Y5
	VMOVDQU 192(SI), Y6
	VMOVDQU 224(SI), Y7
	ADDQ    $256, SI
	SUBQ    $256, CX
	JNZ     loop
	VZEROUPPER
	RET
