//go:build amd64 && !purego

#include "go_asm.h"
#include "textflag.h"

TEXT ·splitAVX512(SB), NOSPLIT, $0-8
	RET
TEXT ·splitAVX2(SB), NOSPLIT, $0-8
	RET
