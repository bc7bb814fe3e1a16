//go:build darwin || linux

#include "textflag.h"

// withFloat is entered by C's rules with the arguments of another function, of which the fifteenth are the bits of its float and
// the sixteenth is its address: F0 gets the float, and the rest is where that function looks for it.
TEXT withFloat<>(SB), NOSPLIT|NOFRAME, $0-0
	FMOVS 48(RSP), F0
	MOVD  56(RSP), R16
	JMP   (R16)

DATA ·withFloat(SB)/8, $withFloat<>(SB)
GLOBL ·withFloat(SB), RODATA|NOPTR, $8
