//go:build amd64 && !purego

#include "go_asm.h"
#include "textflag.h"

// What Acts.split computes of a group. Quads are taken in chunks of a vector, in the order that interleaving leaves them in: lane L of
// 128 bits has those of its columns in each of four vectors. A quad's rank, how many have larger numbers, is counted by comparing
// every key with all others: as many are chosen if it is the one that limits the codes.

DATA split<>+0(SB)/4, $0x7fffffff // all but the sign
DATA split<>+4(SB)/4, $31         // quadBits
DATA split<>+8(SB)/4, $0x42fe0000 // 127
DATA split<>+12(SB)/4, $0x42fc0000 // outlierReach
DATA split<>+16(SB)/4, $128       // half of highUnit
DATA split<>+20(SB)/4, $-127
DATA split<>+24(SB)/4, $8         // quads of a chunk
GLOBL split<>(SB), RODATA|NOPTR, $28

DATA quads8<>+0(SB)/4, $0
DATA quads8<>+4(SB)/4, $2
DATA quads8<>+8(SB)/4, $4
DATA quads8<>+12(SB)/4, $6
DATA quads8<>+16(SB)/4, $1
DATA quads8<>+20(SB)/4, $3
DATA quads8<>+24(SB)/4, $5
DATA quads8<>+28(SB)/4, $7
GLOBL quads8<>(SB), RODATA|NOPTR, $32
DATA places8<>+0(SB)/4, $0
DATA places8<>+4(SB)/4, $4
DATA places8<>+8(SB)/4, $1
DATA places8<>+12(SB)/4, $5
DATA places8<>+16(SB)/4, $2
DATA places8<>+20(SB)/4, $6
DATA places8<>+24(SB)/4, $3
DATA places8<>+28(SB)/4, $7
GLOBL places8<>(SB), RODATA|NOPTR, $32
DATA bytes8<>+0(SB)/4, $0
DATA bytes8<>+4(SB)/4, $4
DATA bytes8<>+8(SB)/4, $1
DATA bytes8<>+12(SB)/4, $5
DATA bytes8<>+16(SB)/4, $2
DATA bytes8<>+20(SB)/4, $6
DATA bytes8<>+24(SB)/4, $3
DATA bytes8<>+28(SB)/4, $7
GLOBL bytes8<>(SB), RODATA|NOPTR, $32

// HORIZONTAL leaves op of all lanes of Y0 in all lanes of X0.
#define HORIZONTAL(op) \
	VEXTRACTI128 $1, Y0, X1      \
	op           X1, X0, X0      \
	VPSHUFD      $0x4e, X0, X1   \
	op           X1, X0, X0      \
	VPSHUFD      $0xb1, X0, X1   \
	op           X1, X0, X0

// RANK counts the key at off(SP) for those of Y4 that are smaller, in Y5.
#define RANK(off) \
	VPBROADCASTD off(DX), Y6    \
	VPCMPGTD     Y4, Y6, Y6     \
	VPSUBD       Y6, Y5, Y5

// CODES leaves 256·high + y of 8 columns; high parts are zeros in quads that are not chosen. Sums are in Y8 and Y9.
#define CODES(off, y, high) \
	VMULPS    off(SI), Y15, y   \
	VCVTPS2DQ y, y              \
	VPADDD    Y14, y, high      \
	VPSRAD    $8, high, high    \
	VPSLLD    $8, high, Y7      \
	VPSUBD    Y7, y, y          \
	VPMAXSD   Y13, y, y         \
	VPADDD    y, Y8, Y8         \
	VPADDD    high, Y9, Y9

// func splitAVX2(a *splitArgs)
//
// General registers: AX arguments, SI x, R11 bytes of all keys, R8 where chunks are, R9 and R10 scratch. Memory: keys, then costs.
TEXT ·splitAVX2(SB), NOSPLIT, $256-8
	MOVQ         a+0(FP), AX
	MOVQ         splitArgs_x(AX), SI
	MOVQ         splitArgs_group(AX), R11
	VPBROADCASTD split<>+0(SB), Y15
	VPBROADCASTD split<>+4(SB), Y14
	VMOVDQU      quads8<>(SB), Y13
	VPXOR        Y12, Y12, Y12
	XORQ         R8, R8

keys:
	VPAND     (SI), Y15, Y0
	VPAND     32(SI), Y15, Y1
	VPAND     64(SI), Y15, Y2
	VPAND     96(SI), Y15, Y3
	VPUNPCKLDQ Y1, Y0, Y4
	VPUNPCKHDQ Y1, Y0, Y5
	VPMAXSD   Y4, Y5, Y4
	VPUNPCKLDQ Y3, Y2, Y6
	VPUNPCKHDQ Y3, Y2, Y7
	VPMAXSD   Y6, Y7, Y6
	VPUNPCKLQDQ Y6, Y4, Y5
	VPUNPCKHQDQ Y6, Y4, Y7
	VPMAXSD   Y5, Y7, Y4
	VPANDN    Y4, Y14, Y4
	VPOR      Y13, Y4, Y4
	VMOVDQU   Y4, (SP)(R8*1)
	VPMAXSD   Y4, Y12, Y12
	VPBROADCASTD split<>+24(SB), Y0
	VPADDD    Y0, Y13, Y13
	ADDQ      $128, SI
	ADDQ      $32, R8
	CMPQ      R8, R11
	JNE       keys

	VMOVDQU      Y12, Y0
	HORIZONTAL(VPMAXSD)
	VPOR         X14, X0, X0
	VDIVSS       split<>+12(SB), X0, X0
	VBROADCASTSS X0, Y11                    // the least that limits
	VBROADCASTSS splitArgs_cost(AX), Y10
	VPCMPEQD     Y8, Y8, Y8
	VPSRLD       $1, Y8, Y8                 // the least cost: what is no number is more than any
	XORQ         R8, R8

costs:
	VMOVDQU (SP)(R8*1), Y4
	VPXOR   Y5, Y5, Y5
	MOVQ    SP, DX
	MOVQ    R11, CX

rank:
	RANK(0)
	RANK(4)
	RANK(8)
	RANK(12)
	RANK(16)
	RANK(20)
	RANK(24)
	RANK(28)
	ADDQ $32, DX
	SUBQ $32, CX
	JNZ  rank
	VPOR      Y14, Y4, Y0
	VMAXPS    Y11, Y0, Y0
	VMULPS    Y0, Y0, Y0
	VCVTDQ2PS Y5, Y5
	VMULPS    Y10, Y5, Y5
	VADDPS    Y5, Y0, Y0
	VMOVDQU   Y0, 128(SP)(R8*1)
	VPMINSD   Y0, Y8, Y8                    // numbers without a sign are in the order of their bits
	ADDQ      $32, R8
	CMPQ      R8, R11
	JNE       costs

	VMOVDQU      Y8, Y0
	HORIZONTAL(VPMINSD)
	VPBROADCASTD X0, Y8
	VPXOR        Y0, Y0, Y0
	XORQ         R8, R8

best:
	VPCMPEQD 128(SP)(R8*1), Y8, Y1
	VPAND    (SP)(R8*1), Y1, Y1
	VPMAXSD  Y1, Y0, Y0
	ADDQ     $32, R8
	CMPQ     R8, R11
	JNE      best

	HORIZONTAL(VPMAXSD)
	VPBROADCASTD X0, Y12                    // the key of the quad that limits
	XORQ         R8, R8
	XORL         R9, R9
	VMOVDQU      places8<>(SB), Y3

chosen:
	VMOVDQU   (SP)(R8*1), Y0
	VPCMPGTD  Y12, Y0, Y0
	VPERMD    Y0, Y3, Y0
	VMOVMSKPS Y0, R10
	MOVQ      R8, CX
	SHRQ      $2, CX
	SHLL      CX, R10
	ORL       R10, R9
	ADDQ      $32, R8
	CMPQ      R8, R11
	JNE       chosen

	MOVL  R9, splitArgs_chosen(AX)
	TESTL R9, R9
	JEQ   done
	VPOR   X14, X12, X0
	VMAXSS X11, X0, X0
	VMOVSS X0, splitArgs_limit(AX)
	VMOVSS split<>+8(SB), X1
	VDIVSS X0, X1, X1
	VBROADCASTSS X1, Y15
	VPBROADCASTD split<>+16(SB), Y14
	VPBROADCASTD split<>+20(SB), Y13
	VMOVDQU bytes8<>(SB), Y12
	VPXOR  Y8, Y8, Y8
	VPXOR  Y9, Y9, Y9
	MOVQ   splitArgs_x(AX), SI
	MOVQ   splitArgs_q(AX), DI
	MOVQ   splitArgs_high(AX), BX
	XORQ   R8, R8

codes:
	CODES(0, Y0, Y10)
	CODES(32, Y1, Y11)
	VPACKSSDW Y1, Y0, Y0
	VPACKSSDW Y11, Y10, Y10
	CODES(64, Y1, Y11)
	CODES(96, Y2, Y3)
	VPACKSSDW Y2, Y1, Y1
	VPACKSSDW Y3, Y11, Y11
	VPACKSSWB Y1, Y0, Y0
	VPACKSSWB Y11, Y10, Y10
	VPERMD    Y0, Y12, Y0
	VPERMD    Y10, Y12, Y10
	VMOVDQU   Y0, (DI)(R8*1)
	VMOVDQU   Y10, (BX)(R8*1)
	ADDQ      $128, SI
	ADDQ      $32, R8
	CMPQ      R8, R11
	JNE       codes

	VMOVDQU Y8, Y0
	HORIZONTAL(VPADDD)
	VMOVD   X0, splitArgs_codes(AX)
	VMOVDQU X0, X2
	VMOVDQU Y9, Y0
	HORIZONTAL(VPADDD)
	VPSLLD  $8, X0, X0
	VPADDD  X2, X0, X0
	VMOVD   X0, splitArgs_all(AX)

done:
	VZEROUPPER
	RET
