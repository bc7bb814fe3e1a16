//go:build amd64 && !purego

#include "textflag.h"

// func scanAVX2(a *scanArgs)
//
// Y2 Y3 hold v of the token at hand, Y4 Y5 its y, Y8 g, Y9 k and Y10 q of a state row, Y12 Y13 that row.
TEXT ·scanAVX2(SB), NOSPLIT, $0-8
	MOVQ a+0(FP), AX
	MOVQ 0(AX), R8   // state
	MOVQ 8(AX), SI   // k
	MOVQ 16(AX), DX  // q
	MOVQ 24(AX), R9  // v
	MOVQ 32(AX), R10 // y
	MOVQ 40(AX), R11 // gate
	MOVQ 48(AX), R13 // n
	MOVQ 56(AX), CX  // kdim

token:
	VBROADCASTSS (R11), Y8
	VMOVUPS      0(R9), Y2
	VMOVUPS      32(R9), Y3
	VXORPS       Y4, Y4, Y4
	VXORPS       Y5, Y5, Y5
	MOVQ         R8, DI
	XORQ         BX, BX
row:
	VBROADCASTSS (SI)(BX*4), Y9
	VBROADCASTSS (DX)(BX*4), Y10
	VMULPS       0(DI), Y8, Y12
	VMULPS       32(DI), Y8, Y13
	VFMADD231PS  Y9, Y2, Y12
	VFMADD231PS  Y9, Y3, Y13
	VMOVUPS      Y12, 0(DI)
	VMOVUPS      Y13, 32(DI)
	VFMADD231PS  Y10, Y12, Y4
	VFMADD231PS  Y10, Y13, Y5
	ADDQ         $64, DI
	INCQ         BX
	CMPQ         BX, CX
	JLT          row

	VMOVUPS Y4, 0(R10)
	VMOVUPS Y5, 32(R10)
	ADDQ    64(AX), SI  // ks
	ADDQ    72(AX), DX  // qs
	ADDQ    80(AX), R9  // vs
	ADDQ    88(AX), R10 // ys
	ADDQ    96(AX), R11 // gs
	DECQ    R13
	JNZ     token
	VZEROUPPER
	RET

// func scanWideAVX2(a *scanArgs)
TEXT ·scanWideAVX2(SB), NOSPLIT, $0-8
	MOVQ a+0(FP), AX
	MOVQ 0(AX), DI   // state
	MOVQ 8(AX), SI   // k
	MOVQ 16(AX), DX  // q
	MOVQ 24(AX), R9  // v
	MOVQ 32(AX), R10 // y
	MOVQ 40(AX), R11 // gate
	MOVQ 56(AX), CX  // kdim

	VMOVUPS 0(R9), Y2
	VMOVUPS 32(R9), Y3
	VXORPS  Y4, Y4, Y4
	VXORPS  Y5, Y5, Y5
	XORQ    BX, BX
wide:
	VBROADCASTSS (SI)(BX*4), Y9
	VBROADCASTSS (DX)(BX*4), Y10
	VMOVUPS      0(R11), Y12
	VMOVUPS      32(R11), Y13
	VMULPS       0(DI), Y12, Y12
	VMULPS       32(DI), Y13, Y13
	VFMADD231PS  Y9, Y2, Y12
	VFMADD231PS  Y9, Y3, Y13
	VMOVUPS      Y12, 0(DI)
	VMOVUPS      Y13, 32(DI)
	VFMADD231PS  Y10, Y12, Y4
	VFMADD231PS  Y10, Y13, Y5
	ADDQ         $64, DI
	ADDQ         $64, R11
	INCQ         BX
	CMPQ         BX, CX
	JLT          wide

	VMOVUPS Y4, 0(R10)
	VMOVUPS Y5, 32(R10)
	VZEROUPPER
	RET

// func timesAVX2(dst, a, by unsafe.Pointer, n int)
TEXT ·timesAVX2(SB), NOSPLIT, $0-32
	MOVQ    dst+0(FP), DI
	MOVQ    a+8(FP), SI
	MOVQ    by+16(FP), DX
	MOVQ    n+24(FP), CX
	VMOVUPS 0(DX), Y2
	VMOVUPS 32(DX), Y3
times:
	VMULPS  0(SI), Y2, Y0
	VMULPS  32(SI), Y3, Y1
	VMOVUPS Y0, 0(DI)
	VMOVUPS Y1, 32(DI)
	ADDQ    $64, SI
	ADDQ    $64, DI
	SUBQ    $16, CX
	JNZ     times
	VZEROUPPER
	RET

// func keyDeltaAVX2(a *keyDeltaArgs)
//
// Y0 Y1 hold (k∘g)·S of the token at hand, Y2 Y3 its δ, Y4 Y5 its y, Y6 Y7 (k∘g)·S of the next one, Y8 g, Y9 k, Y10 q and Y11 the
// next k∘g of a state row, Y12 Y13 that row. After the last token, its own k∘g stands for the next one.
TEXT ·keyDeltaAVX2(SB), NOSPLIT, $0-8
	MOVQ a+0(FP), AX
	MOVQ 0(AX), R8   // state
	MOVQ 8(AX), SI   // k
	MOVQ 16(AX), DX  // q
	MOVQ 24(AX), R9  // v
	MOVQ 32(AX), R10 // y
	MOVQ 40(AX), R11 // gate
	MOVQ 48(AX), R12 // beta
	MOVQ 56(AX), R15 // k∘g
	MOVQ 64(AX), R13 // n
	MOVQ 72(AX), CX  // kdim

	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	MOVQ   R8, DI
	XORQ   BX, BX
first:
	VBROADCASTSS (R15)(BX*4), Y9
	VFMADD231PS  0(DI), Y9, Y0
	VFMADD231PS  32(DI), Y9, Y1
	ADDQ         $64, DI
	INCQ         BX
	CMPQ         BX, CX
	JLT          first

token:
	VBROADCASTSS (R12), Y9
	VMOVUPS      0(R9), Y2
	VMOVUPS      32(R9), Y3
	VSUBPS       Y0, Y2, Y2
	VSUBPS       Y1, Y3, Y3
	VMULPS       Y9, Y2, Y2
	VMULPS       Y9, Y3, Y3
	VXORPS       Y4, Y4, Y4
	VXORPS       Y5, Y5, Y5
	VXORPS       Y6, Y6, Y6
	VXORPS       Y7, Y7, Y7
	CMPQ         R13, $1
	JEQ          rows
	ADDQ         104(AX), R15 // gs
rows:
	MOVQ R8, DI
	XORQ BX, BX
row:
	VBROADCASTSS (R11)(BX*4), Y8
	VBROADCASTSS (SI)(BX*4), Y9
	VBROADCASTSS (DX)(BX*4), Y10
	VBROADCASTSS (R15)(BX*4), Y11
	VMULPS       0(DI), Y8, Y12
	VMULPS       32(DI), Y8, Y13
	VFMADD231PS  Y9, Y2, Y12
	VFMADD231PS  Y9, Y3, Y13
	VMOVUPS      Y12, 0(DI)
	VMOVUPS      Y13, 32(DI)
	VFMADD231PS  Y10, Y12, Y4
	VFMADD231PS  Y10, Y13, Y5
	VFMADD231PS  Y11, Y12, Y6
	VFMADD231PS  Y11, Y13, Y7
	ADDQ         $64, DI
	INCQ         BX
	CMPQ         BX, CX
	JLT          row

	VMOVUPS Y4, 0(R10)
	VMOVUPS Y5, 32(R10)
	VMOVAPS Y6, Y0
	VMOVAPS Y7, Y1
	ADDQ    80(AX), SI   // ks
	ADDQ    80(AX), DX
	ADDQ    88(AX), R9   // vs
	ADDQ    96(AX), R10  // ys
	ADDQ    104(AX), R11 // gs
	ADDQ    112(AX), R12 // bs
	DECQ    R13
	JNZ     token
	VZEROUPPER
	RET
