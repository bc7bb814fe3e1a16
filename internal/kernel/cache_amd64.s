//go:build amd64 && !purego

#include "textflag.h"

// MASK fills a register with a 32-bit constant.
#define MASK(c, x, y) \
	MOVL         $c, AX \
	VMOVD        AX, x \
	VPBROADCASTD x, y

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
