//go:build amd64 && !purego

#include "textflag.h"

// FOLD leaves in X0 the sum of Y0 to Y3 in the order of sumDot.
#define FOLD \
	VADDPS       Y1, Y0, Y0 \
	VADDPS       Y3, Y2, Y2 \
	VADDPS       Y2, Y0, Y0 \
	VEXTRACTF128 $1, Y0, X1 \
	VADDPS       X1, X0, X0 \
	VPSHUFD      $0x4e, X0, X1 \
	VADDPS       X1, X0, X0 \
	VPSHUFD      $0xb1, X0, X1 \
	VADDSS       X1, X0, X0

#define WIDEN(off, dst) \
	VPMOVZXWD off(R9), dst \
	VPSLLD    $16, dst, dst

#define HALF(off, dst) VCVTPH2PS off(R9), dst

// BYTES leaves eight codes as floats.
#define BYTES(off, dst) \
	VPMOVZXBD off(R9), dst \
	VCVTDQ2PS dst, dst

// NIBBLES leaves the sixteen codes of eight bytes as floats; Y15 masks the low nibbles.
#define NIBBLES(off, lo, hi) \
	VPMOVZXBD off(R9), hi \
	VPAND     Y15, hi, lo \
	VPSRLD    $4, hi, hi \
	VCVTDQ2PS lo, lo \
	VCVTDQ2PS hi, hi

// MASK fills a register with a 32-bit constant.
#define MASK(c, x, y) \
	MOVL         $c, AX \
	VMOVD        AX, x \
	VPBROADCASTD x, y

// func scoresBF16AVX2(s, q, k unsafe.Pointer, n, dim, stride int)
TEXT ·scoresBF16AVX2(SB), NOSPLIT, $0-48
	MOVQ s+0(FP), DI
	MOVQ q+8(FP), SI
	MOVQ k+16(FP), DX
	MOVQ n+24(FP), CX
	MOVQ dim+32(FP), BX
	MOVQ stride+40(FP), R10
position:
	MOVQ   SI, R8
	MOVQ   DX, R9
	MOVQ   BX, R11
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3
loop:
	WIDEN(0, Y4)
	WIDEN(16, Y5)
	WIDEN(32, Y6)
	WIDEN(48, Y7)
	VFMADD231PS (R8), Y4, Y0
	VFMADD231PS 32(R8), Y5, Y1
	VFMADD231PS 64(R8), Y6, Y2
	VFMADD231PS 96(R8), Y7, Y3
	ADDQ        $128, R8
	ADDQ        $64, R9
	SUBQ        $32, R11
	JNZ         loop
	FOLD
	VMOVSS      X0, (DI)
	ADDQ        $4, DI
	ADDQ        R10, DX
	DECQ        CX
	JNZ         position
	VZEROUPPER
	RET

// func scoresF16AVX2(s, q, k unsafe.Pointer, n, dim, stride int)
TEXT ·scoresF16AVX2(SB), NOSPLIT, $0-48
	MOVQ s+0(FP), DI
	MOVQ q+8(FP), SI
	MOVQ k+16(FP), DX
	MOVQ n+24(FP), CX
	MOVQ dim+32(FP), BX
	MOVQ stride+40(FP), R10
position:
	MOVQ   SI, R8
	MOVQ   DX, R9
	MOVQ   BX, R11
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3
loop:
	HALF(0, Y4)
	HALF(16, Y5)
	HALF(32, Y6)
	HALF(48, Y7)
	VFMADD231PS (R8), Y4, Y0
	VFMADD231PS 32(R8), Y5, Y1
	VFMADD231PS 64(R8), Y6, Y2
	VFMADD231PS 96(R8), Y7, Y3
	ADDQ        $128, R8
	ADDQ        $64, R9
	SUBQ        $32, R11
	JNZ         loop
	FOLD
	VMOVSS      X0, (DI)
	ADDQ        $4, DI
	ADDQ        R10, DX
	DECQ        CX
	JNZ         position
	VZEROUPPER
	RET

// func scoresF32AVX2(s, q, k unsafe.Pointer, n, dim, stride int)
TEXT ·scoresF32AVX2(SB), NOSPLIT, $0-48
	MOVQ s+0(FP), DI
	MOVQ q+8(FP), SI
	MOVQ k+16(FP), DX
	MOVQ n+24(FP), CX
	MOVQ dim+32(FP), BX
	MOVQ stride+40(FP), R10
position:
	MOVQ   SI, R8
	MOVQ   DX, R9
	MOVQ   BX, R11
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3
loop:
	VMOVUPS     (R9), Y4
	VMOVUPS     32(R9), Y5
	VMOVUPS     64(R9), Y6
	VMOVUPS     96(R9), Y7
	VFMADD231PS (R8), Y4, Y0
	VFMADD231PS 32(R8), Y5, Y1
	VFMADD231PS 64(R8), Y6, Y2
	VFMADD231PS 96(R8), Y7, Y3
	ADDQ        $128, R8
	ADDQ        $128, R9
	SUBQ        $32, R11
	JNZ         loop
	FOLD
	VMOVSS      X0, (DI)
	ADDQ        $4, DI
	ADDQ        R10, DX
	DECQ        CX
	JNZ         position
	VZEROUPPER
	RET

// func addValuesBF16AVX2(acc, p, v unsafe.Pointer, n, dim, stride int)
TEXT ·addValuesBF16AVX2(SB), NOSPLIT, $0-48
	MOVQ acc+0(FP), DI
	MOVQ p+8(FP), SI
	MOVQ v+16(FP), DX
	MOVQ dim+32(FP), BX
	MOVQ stride+40(FP), R10
columns:
	MOVQ    n+24(FP), CX
	MOVQ    SI, R8
	MOVQ    DX, R9
	VMOVUPS (DI), Y0
	VMOVUPS 32(DI), Y1
	VMOVUPS 64(DI), Y2
	VMOVUPS 96(DI), Y3
loop:
	VBROADCASTSS (R8), Y8
	WIDEN(0, Y4)
	WIDEN(16, Y5)
	WIDEN(32, Y6)
	WIDEN(48, Y7)
	VFMADD231PS  Y4, Y8, Y0
	VFMADD231PS  Y5, Y8, Y1
	VFMADD231PS  Y6, Y8, Y2
	VFMADD231PS  Y7, Y8, Y3
	ADDQ         $4, R8
	ADDQ         R10, R9
	DECQ         CX
	JNZ          loop
	VMOVUPS      Y0, (DI)
	VMOVUPS      Y1, 32(DI)
	VMOVUPS      Y2, 64(DI)
	VMOVUPS      Y3, 96(DI)
	ADDQ         $128, DI
	ADDQ         $64, DX
	SUBQ         $32, BX
	JNZ          columns
	VZEROUPPER
	RET

// func addValuesF16AVX2(acc, p, v unsafe.Pointer, n, dim, stride int)
TEXT ·addValuesF16AVX2(SB), NOSPLIT, $0-48
	MOVQ acc+0(FP), DI
	MOVQ p+8(FP), SI
	MOVQ v+16(FP), DX
	MOVQ dim+32(FP), BX
	MOVQ stride+40(FP), R10
columns:
	MOVQ    n+24(FP), CX
	MOVQ    SI, R8
	MOVQ    DX, R9
	VMOVUPS (DI), Y0
	VMOVUPS 32(DI), Y1
	VMOVUPS 64(DI), Y2
	VMOVUPS 96(DI), Y3
loop:
	VBROADCASTSS (R8), Y8
	HALF(0, Y4)
	HALF(16, Y5)
	HALF(32, Y6)
	HALF(48, Y7)
	VFMADD231PS  Y4, Y8, Y0
	VFMADD231PS  Y5, Y8, Y1
	VFMADD231PS  Y6, Y8, Y2
	VFMADD231PS  Y7, Y8, Y3
	ADDQ         $4, R8
	ADDQ         R10, R9
	DECQ         CX
	JNZ          loop
	VMOVUPS      Y0, (DI)
	VMOVUPS      Y1, 32(DI)
	VMOVUPS      Y2, 64(DI)
	VMOVUPS      Y3, 96(DI)
	ADDQ         $128, DI
	ADDQ         $64, DX
	SUBQ         $32, BX
	JNZ          columns
	VZEROUPPER
	RET

// func addValuesF32AVX2(acc, p, v unsafe.Pointer, n, dim, stride int)
TEXT ·addValuesF32AVX2(SB), NOSPLIT, $0-48
	MOVQ acc+0(FP), DI
	MOVQ p+8(FP), SI
	MOVQ v+16(FP), DX
	MOVQ dim+32(FP), BX
	MOVQ stride+40(FP), R10
columns:
	MOVQ    n+24(FP), CX
	MOVQ    SI, R8
	MOVQ    DX, R9
	VMOVUPS (DI), Y0
	VMOVUPS 32(DI), Y1
	VMOVUPS 64(DI), Y2
	VMOVUPS 96(DI), Y3
loop:
	VBROADCASTSS (R8), Y8
	VFMADD231PS  (R9), Y8, Y0
	VFMADD231PS  32(R9), Y8, Y1
	VFMADD231PS  64(R9), Y8, Y2
	VFMADD231PS  96(R9), Y8, Y3
	ADDQ         $4, R8
	ADDQ         R10, R9
	DECQ         CX
	JNZ          loop
	VMOVUPS      Y0, (DI)
	VMOVUPS      Y1, 32(DI)
	VMOVUPS      Y2, 64(DI)
	VMOVUPS      Y3, 96(DI)
	ADDQ         $128, DI
	ADDQ         $128, DX
	SUBQ         $32, BX
	JNZ          columns
	VZEROUPPER
	RET

// func scoresQ8AVX2(s, q, sum, k unsafe.Pointer, n, groups, lines, stride, tail int)
TEXT ·scoresQ8AVX2(SB), NOSPLIT, $0-72
	MOVQ s+0(FP), DI
	MOVQ q+8(FP), SI
	MOVQ k+24(FP), DX
	MOVQ n+32(FP), CX
	MOVQ stride+56(FP), R10
position:
	MOVQ   SI, R8
	MOVQ   DX, R9
	MOVQ   tail+64(FP), R13
	ADDQ   DX, R13
	MOVQ   sum+16(FP), R12
	MOVQ   groups+40(FP), BX
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3
	VXORPS X14, X14, X14
group:
	MOVQ   lines+48(FP), R11
	VXORPS Y4, Y4, Y4
	VXORPS Y5, Y5, Y5
	VXORPS Y6, Y6, Y6
	VXORPS Y7, Y7, Y7
line:
	BYTES(0, Y8)
	BYTES(8, Y9)
	BYTES(16, Y10)
	BYTES(24, Y11)
	VFMADD231PS (R8), Y8, Y4
	VFMADD231PS 32(R8), Y9, Y5
	VFMADD231PS 64(R8), Y10, Y6
	VFMADD231PS 96(R8), Y11, Y7
	ADDQ        $128, R8
	ADDQ        $32, R9
	DECQ        R11
	JNZ         line
	VPBROADCASTD (R13), Y12
	VPSLLD       $16, Y12, Y13
	VPSRLD       $16, Y12, Y12
	VPSLLD       $16, Y12, Y12
	VFMADD231PS  Y4, Y13, Y0
	VFMADD231PS  Y5, Y13, Y1
	VFMADD231PS  Y6, Y13, Y2
	VFMADD231PS  Y7, Y13, Y3
	VFMADD231SS  (R12), X12, X14
	ADDQ         $4, R13
	ADDQ         $4, R12
	DECQ         BX
	JNZ          group
	FOLD
	VADDSS       X14, X0, X0
	VMOVSS       X0, (DI)
	ADDQ         $4, DI
	ADDQ         R10, DX
	DECQ         CX
	JNZ          position
	VZEROUPPER
	RET

// func scoresQ4AVX2(s, q, sum, k unsafe.Pointer, n, groups, lines, stride, tail int)
TEXT ·scoresQ4AVX2(SB), NOSPLIT, $0-72
	MOVQ s+0(FP), DI
	MOVQ q+8(FP), SI
	MOVQ k+24(FP), DX
	MOVQ n+32(FP), CX
	MOVQ stride+56(FP), R10
	MASK(15, X15, Y15)
position:
	MOVQ   SI, R8
	MOVQ   DX, R9
	MOVQ   tail+64(FP), R13
	ADDQ   DX, R13
	MOVQ   sum+16(FP), R12
	MOVQ   groups+40(FP), BX
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3
	VXORPS X14, X14, X14
group:
	MOVQ   lines+48(FP), R11
	VXORPS Y4, Y4, Y4
	VXORPS Y5, Y5, Y5
	VXORPS Y6, Y6, Y6
	VXORPS Y7, Y7, Y7
line:
	NIBBLES(0, Y8, Y9)
	NIBBLES(8, Y10, Y11)
	VFMADD231PS (R8), Y8, Y4
	VFMADD231PS 32(R8), Y9, Y5
	VFMADD231PS 64(R8), Y10, Y6
	VFMADD231PS 96(R8), Y11, Y7
	ADDQ        $128, R8
	ADDQ        $16, R9
	DECQ        R11
	JNZ         line
	VPBROADCASTD (R13), Y12
	VPSLLD       $16, Y12, Y13
	VPSRLD       $16, Y12, Y12
	VPSLLD       $16, Y12, Y12
	VFMADD231PS  Y4, Y13, Y0
	VFMADD231PS  Y5, Y13, Y1
	VFMADD231PS  Y6, Y13, Y2
	VFMADD231PS  Y7, Y13, Y3
	VFMADD231SS  (R12), X12, X14
	ADDQ         $4, R13
	ADDQ         $4, R12
	DECQ         BX
	JNZ          group
	FOLD
	VADDSS       X14, X0, X0
	VMOVSS       X0, (DI)
	ADDQ         $4, DI
	ADDQ         R10, DX
	DECQ         CX
	JNZ          position
	VZEROUPPER
	RET

// func addValuesQ8AVX2(acc, p, v unsafe.Pointer, n, groups, lines, stride, tail int)
TEXT ·addValuesQ8AVX2(SB), NOSPLIT, $0-64
	MOVQ acc+0(FP), DI
	MOVQ p+8(FP), SI
	MOVQ v+16(FP), DX
	MOVQ groups+32(FP), BX
	MOVQ stride+48(FP), R10
	MOVQ tail+56(FP), R13
	ADDQ DX, R13
group:
	MOVQ lines+40(FP), R11
columns:
	MOVQ    n+24(FP), CX
	MOVQ    SI, R8
	MOVQ    DX, R9
	MOVQ    R13, R12
	VMOVUPS (DI), Y0
	VMOVUPS 32(DI), Y1
	VMOVUPS 64(DI), Y2
	VMOVUPS 96(DI), Y3
	VXORPS  Y14, Y14, Y14
loop:
	VBROADCASTSS (R8), Y8
	VPBROADCASTD (R12), Y12
	VPSLLD       $16, Y12, Y13
	VPSRLD       $16, Y12, Y12
	VPSLLD       $16, Y12, Y12
	VMULPS       Y8, Y13, Y13
	VFMADD231PS  Y12, Y8, Y14
	BYTES(0, Y4)
	BYTES(8, Y5)
	BYTES(16, Y6)
	BYTES(24, Y7)
	VFMADD231PS  Y4, Y13, Y0
	VFMADD231PS  Y5, Y13, Y1
	VFMADD231PS  Y6, Y13, Y2
	VFMADD231PS  Y7, Y13, Y3
	ADDQ         $4, R8
	ADDQ         R10, R9
	ADDQ         R10, R12
	DECQ         CX
	JNZ          loop
	VADDPS       Y14, Y0, Y0
	VADDPS       Y14, Y1, Y1
	VADDPS       Y14, Y2, Y2
	VADDPS       Y14, Y3, Y3
	VMOVUPS      Y0, (DI)
	VMOVUPS      Y1, 32(DI)
	VMOVUPS      Y2, 64(DI)
	VMOVUPS      Y3, 96(DI)
	ADDQ         $128, DI
	ADDQ         $32, DX
	DECQ         R11
	JNZ          columns
	ADDQ         $4, R13
	DECQ         BX
	JNZ          group
	VZEROUPPER
	RET

// func addValuesQ4AVX2(acc, p, v unsafe.Pointer, n, groups, lines, stride, tail int)
TEXT ·addValuesQ4AVX2(SB), NOSPLIT, $0-64
	MOVQ acc+0(FP), DI
	MOVQ p+8(FP), SI
	MOVQ v+16(FP), DX
	MOVQ groups+32(FP), BX
	MOVQ stride+48(FP), R10
	MOVQ tail+56(FP), R13
	ADDQ DX, R13
	MASK(15, X15, Y15)
group:
	MOVQ lines+40(FP), R11
columns:
	MOVQ    n+24(FP), CX
	MOVQ    SI, R8
	MOVQ    DX, R9
	MOVQ    R13, R12
	VMOVUPS (DI), Y0
	VMOVUPS 32(DI), Y1
	VMOVUPS 64(DI), Y2
	VMOVUPS 96(DI), Y3
	VXORPS  Y14, Y14, Y14
loop:
	VBROADCASTSS (R8), Y8
	VPBROADCASTD (R12), Y12
	VPSLLD       $16, Y12, Y13
	VPSRLD       $16, Y12, Y12
	VPSLLD       $16, Y12, Y12
	VMULPS       Y8, Y13, Y13
	VFMADD231PS  Y12, Y8, Y14
	NIBBLES(0, Y4, Y5)
	NIBBLES(8, Y6, Y7)
	VFMADD231PS  Y4, Y13, Y0
	VFMADD231PS  Y5, Y13, Y1
	VFMADD231PS  Y6, Y13, Y2
	VFMADD231PS  Y7, Y13, Y3
	ADDQ         $4, R8
	ADDQ         R10, R9
	ADDQ         R10, R12
	DECQ         CX
	JNZ          loop
	VADDPS       Y14, Y0, Y0
	VADDPS       Y14, Y1, Y1
	VADDPS       Y14, Y2, Y2
	VADDPS       Y14, Y3, Y3
	VMOVUPS      Y0, (DI)
	VMOVUPS      Y1, 32(DI)
	VMOVUPS      Y2, 64(DI)
	VMOVUPS      Y3, 96(DI)
	ADDQ         $128, DI
	ADDQ         $16, DX
	DECQ         R11
	JNZ          columns
	ADDQ         $4, R13
	DECQ         BX
	JNZ          group
	VZEROUPPER
	RET

// func toF16AVX2(dst, src unsafe.Pointer, n int, limit float32)
TEXT ·toF16AVX2(SB), NOSPLIT, $0-28
	MOVQ         dst+0(FP), DI
	MOVQ         src+8(FP), SI
	MOVQ         n+16(FP), CX
	VBROADCASTSS limit+24(FP), Y1
	VXORPS       Y2, Y2, Y2
	VSUBPS       Y1, Y2, Y2
loop:
	VMOVUPS   (SI), Y0
	VMINPS    Y0, Y1, Y0 // gives the last operand, here the number, if either is a NaN
	VMAXPS    Y0, Y2, Y0
	VCVTPS2PH $0, Y0, (DI)
	ADDQ      $32, SI
	ADDQ      $16, DI
	SUBQ      $8, CX
	JNZ       loop
	VZEROUPPER
	RET

// func extremesAVX2(out, x unsafe.Pointer, n int)
TEXT ·extremesAVX2(SB), NOSPLIT, $0-24
	MOVQ    out+0(FP), DI
	MOVQ    x+8(FP), SI
	MOVQ    n+16(FP), CX
	VMOVUPS (SI), Y0
	VMOVUPS Y0, Y1
	VXORPS  Y2, Y2, Y2
loop:
	VMOVUPS (SI), Y3
	VMINPS  Y3, Y0, Y0
	VMAXPS  Y3, Y1, Y1
	VSUBPS  Y3, Y3, Y4
	VORPS   Y4, Y2, Y2 // 0, or the bits of a NaN
	ADDQ    $32, SI
	SUBQ    $8, CX
	JNZ     loop

	VEXTRACTF128 $1, Y0, X3
	VMINPS       X3, X0, X0
	VPSHUFD      $0x4e, X0, X3
	VMINPS       X3, X0, X0
	VPSHUFD      $0xb1, X0, X3
	VMINPS       X3, X0, X0
	VEXTRACTF128 $1, Y1, X3
	VMAXPS       X3, X1, X1
	VPSHUFD      $0x4e, X1, X3
	VMAXPS       X3, X1, X1
	VPSHUFD      $0xb1, X1, X3
	VMAXPS       X3, X1, X1
	VEXTRACTF128 $1, Y2, X3
	VORPS        X3, X2, X2
	VPSHUFD      $0x4e, X2, X3
	VORPS        X3, X2, X2
	VPSHUFD      $0xb1, X2, X3
	VORPS        X3, X2, X2
	VMOVSS       X0, (DI)
	VMOVSS       X1, 4(DI)
	VMOVSS       X2, 8(DI)
	VZEROUPPER
	RET

// CODES leaves eight codes, from 0 to the largest, in dst: nearest to (x-bias)/scale, ties to even; 0 for a NaN.
#define CODES(off, dst) \
	VMOVUPS  off(SI), dst \
	VSUBPS   Y13, dst, dst \
	VDIVPS   Y12, dst, dst \
	VMAXPS   Y14, dst, dst \
	VMINPS   Y11, dst, dst \
	VCVTPS2DQ dst, dst

// PACK writes the low bytes of the eight numbers in Y0.
#define PACK \
	VEXTRACTI128 $1, Y0, X1 \
	VPACKUSDW    X1, X0, X0 \
	VPACKUSWB    X0, X0, X0 \
	VMOVQ        X0, (DI)

// func codes8AVX2(dst, x unsafe.Pointer, n int, scale, bias float32)
TEXT ·codes8AVX2(SB), NOSPLIT, $0-32
	MOVQ         dst+0(FP), DI
	MOVQ         x+8(FP), SI
	MOVQ         n+16(FP), CX
	VBROADCASTSS scale+24(FP), Y12
	VBROADCASTSS bias+28(FP), Y13
	VXORPS       Y14, Y14, Y14
	MASK(0x437f0000, X11, Y11) // 255
loop:
	CODES(0, Y0)
	PACK
	ADDQ $32, SI
	ADDQ $8, DI
	SUBQ $8, CX
	JNZ  loop
	VZEROUPPER
	RET

// func codes4AVX2(dst, x unsafe.Pointer, n int, scale, bias float32)
TEXT ·codes4AVX2(SB), NOSPLIT, $0-32
	MOVQ         dst+0(FP), DI
	MOVQ         x+8(FP), SI
	MOVQ         n+16(FP), CX
	VBROADCASTSS scale+24(FP), Y12
	VBROADCASTSS bias+28(FP), Y13
	VXORPS       Y14, Y14, Y14
	MASK(0x41700000, X11, Y11) // 15
loop:
	CODES(0, Y0)
	CODES(32, Y2)
	VPSLLD $4, Y2, Y2
	VPOR   Y2, Y0, Y0
	PACK
	ADDQ   $64, SI
	ADDQ   $8, DI
	SUBQ   $16, CX
	JNZ    loop
	VZEROUPPER
	RET
