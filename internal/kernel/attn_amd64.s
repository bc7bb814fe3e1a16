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
