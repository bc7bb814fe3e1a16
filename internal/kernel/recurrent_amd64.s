//go:build amd64 && !purego

#include "textflag.h"

// func mulAddAVX2(y, a, b unsafe.Pointer, n int)
TEXT ·mulAddAVX2(SB), NOSPLIT, $0-32
	MOVQ y+0(FP), DI
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), DX
	MOVQ n+24(FP), CX
loop:
	VMOVUPS     (DI), Y0
	VMOVUPS     (SI), Y1
	VFMADD231PS (DX), Y1, Y0
	VMOVUPS     Y0, (DI)
	ADDQ        $32, SI
	ADDQ        $32, DX
	ADDQ        $32, DI
	SUBQ        $8, CX
	JNZ         loop
	VZEROUPPER
	RET

// func deltaAVX2(a *deltaArgs)
//
// Y0 Y1 hold k·S of the token at hand, Y2 Y3 its δ, Y4 Y5 its y, Y6 Y7 k·S of the next one, Y8 g, Y9 k, Y10 q and Y11 the
// next k of a state row, Y12 Y13 that row. After the last token, its own k stands for the next one.
TEXT ·deltaAVX2(SB), NOSPLIT, $0-8
	MOVQ a+0(FP), AX
	MOVQ 0(AX), R8   // state
	MOVQ 8(AX), SI   // k
	MOVQ 16(AX), DX  // q
	MOVQ 24(AX), R9  // v
	MOVQ 32(AX), R10 // y
	MOVQ 40(AX), R11 // gate
	MOVQ 48(AX), R12 // beta
	MOVQ 56(AX), R13 // n

	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	MOVQ   R8, DI
	MOVQ   64(AX), CX // kdim
	XORQ   BX, BX
first:
	VBROADCASTSS (SI)(BX*4), Y9
	VFMADD231PS  0(DI), Y9, Y0
	VFMADD231PS  32(DI), Y9, Y1
	ADDQ         $64, DI
	INCQ         BX
	CMPQ         BX, CX
	JLT          first

token:
	VBROADCASTSS (R11), Y8
	VBROADCASTSS (R12), Y9
	VMOVUPS      0(R9), Y2
	VMOVUPS      32(R9), Y3
	VFNMADD231PS Y0, Y8, Y2
	VFNMADD231PS Y1, Y8, Y3
	VMULPS       Y9, Y2, Y2
	VMULPS       Y9, Y3, Y3
	VXORPS       Y4, Y4, Y4
	VXORPS       Y5, Y5, Y5
	VXORPS       Y6, Y6, Y6
	VXORPS       Y7, Y7, Y7
	MOVQ         SI, R15
	CMPQ         R13, $1
	JEQ          rows
	ADDQ         72(AX), R15 // ks
rows:
	MOVQ R8, DI
	XORQ BX, BX
row:
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
	MOVQ    R15, SI
	ADDQ    72(AX), DX
	ADDQ    80(AX), R9  // vs
	ADDQ    88(AX), R10 // ys
	ADDQ    96(AX), R11 // gs
	ADDQ    96(AX), R12
	DECQ    R13
	JNZ     token
	VZEROUPPER
	RET

// func deltaAVX512(a *deltaArgs)
//
// A row of state is one register, and rows go in pairs: sums over even rows and over odd ones, added at the end, hide the latency of
// the additions. Z0 Z1 hold k·S of the token at hand, Z2 its δ, Z4 Z5 its y, Z6 Z7 k·S of the next one, Z8 g, Z12 Z13 the rows.
// After the last token, its own k stands for the next one.
TEXT ·deltaAVX512(SB), NOSPLIT, $0-8
	MOVQ a+0(FP), AX
	MOVQ 0(AX), R8   // state
	MOVQ 8(AX), SI   // k
	MOVQ 16(AX), DX  // q
	MOVQ 24(AX), R9  // v
	MOVQ 32(AX), R10 // y
	MOVQ 40(AX), R11 // gate
	MOVQ 48(AX), R12 // beta
	MOVQ 56(AX), R13 // n
	MOVQ 64(AX), CX  // kdim
	DECQ CX

	VPXORD Z0, Z0, Z0
	VPXORD Z1, Z1, Z1
	MOVQ   R8, DI
	XORQ   BX, BX
	JMP    firsts
first:
	VMOVUPS          0(DI), Z12
	VMOVUPS          64(DI), Z13
	VFMADD231PS.BCST 0(SI)(BX*4), Z12, Z0
	VFMADD231PS.BCST 4(SI)(BX*4), Z13, Z1
	ADDQ             $128, DI
	ADDQ             $2, BX
firsts:
	CMPQ             BX, CX
	JLT              first
	JGT              token
	VMOVUPS          0(DI), Z12
	VFMADD231PS.BCST 0(SI)(BX*4), Z12, Z0

token:
	VADDPS       Z1, Z0, Z0
	VBROADCASTSS (R11), Z8
	VMOVUPS      0(R9), Z2
	VFNMADD231PS Z0, Z8, Z2
	VMULPS.BCST  (R12), Z2, Z2
	VPXORD       Z4, Z4, Z4
	VPXORD       Z5, Z5, Z5
	VPXORD       Z6, Z6, Z6
	VPXORD       Z7, Z7, Z7
	MOVQ         SI, R15
	CMPQ         R13, $1
	JEQ          rows
	ADDQ         72(AX), R15 // ks
rows:
	MOVQ R8, DI
	XORQ BX, BX
	JMP  pairs
pair:
	VMULPS           0(DI), Z8, Z12
	VMULPS           64(DI), Z8, Z13
	VFMADD231PS.BCST 0(SI)(BX*4), Z2, Z12
	VFMADD231PS.BCST 4(SI)(BX*4), Z2, Z13
	VMOVUPS          Z12, 0(DI)
	VMOVUPS          Z13, 64(DI)
	VFMADD231PS.BCST 0(DX)(BX*4), Z12, Z4
	VFMADD231PS.BCST 4(DX)(BX*4), Z13, Z5
	VFMADD231PS.BCST 0(R15)(BX*4), Z12, Z6
	VFMADD231PS.BCST 4(R15)(BX*4), Z13, Z7
	ADDQ             $128, DI
	ADDQ             $2, BX
pairs:
	CMPQ             BX, CX
	JLT              pair
	JGT              done
	VMULPS           0(DI), Z8, Z12
	VFMADD231PS.BCST 0(SI)(BX*4), Z2, Z12
	VMOVUPS          Z12, 0(DI)
	VFMADD231PS.BCST 0(DX)(BX*4), Z12, Z4
	VFMADD231PS.BCST 0(R15)(BX*4), Z12, Z6

done:
	VADDPS  Z5, Z4, Z4
	VMOVUPS Z4, 0(R10)
	VMOVAPS Z6, Z0
	VMOVAPS Z7, Z1
	MOVQ    R15, SI
	ADDQ    72(AX), DX
	ADDQ    80(AX), R9  // vs
	ADDQ    88(AX), R10 // ys
	ADDQ    96(AX), R11 // gs
	ADDQ    96(AX), R12
	DECQ    R13
	JNZ     token
	VZEROUPPER
	RET
