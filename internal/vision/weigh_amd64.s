//go:build amd64 && !purego

#include "textflag.h"

// func weighAVX2(dst, src *byte, stride, n int, weights *int32, taps int)
TEXT ·weighAVX2(SB), NOSPLIT, $0-48
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ stride+16(FP), DX
	MOVQ n+24(FP), CX
	MOVQ weights+32(FP), R8
	MOVQ taps+40(FP), R9

	// 0.5 in each of the 8 sums of a register
	MOVL         $(1<<21), AX
	VMOVD        AX, X5
	VPBROADCASTD X5, Y5
	XORQ         R10, R10

next:
	LEAQ 16(R10), R11
	CMPQ R11, CX
	JGT  tail

block:
	VMOVDQA Y5, Y0
	VMOVDQA Y5, Y1
	LEAQ    (SI)(R10*1), R12
	MOVQ    R8, R13
	MOVQ    R9, BX

tap:
	VPBROADCASTD (R13), Y4
	VPMOVZXBD    (R12), Y2
	VPMOVZXBD    8(R12), Y3
	VPMULLD      Y4, Y2, Y2
	VPMULLD      Y4, Y3, Y3
	VPADDD       Y2, Y0, Y0
	VPADDD       Y3, Y1, Y1
	ADDQ         DX, R12
	ADDQ         $4, R13
	DECQ         BX
	JNZ          tap

	// whole parts, kept to 16 bits and then to 0 … 255
	VPSRAD       $22, Y0, Y0
	VPSRAD       $22, Y1, Y1
	VPACKSSDW    Y1, Y0, Y0
	VPERMQ       $0xD8, Y0, Y0
	VEXTRACTI128 $1, Y0, X1
	VPACKUSWB    X1, X0, X0
	VMOVDQU      X0, (DI)(R10*1)
	ADDQ         $16, R10
	JMP          next

tail:
	CMPQ R10, CX
	JGE  done
	LEAQ -16(CX), R10
	JMP  block

done:
	VZEROUPPER
	RET
