package main

import (
	"bytes"
	"fmt"
	"math"
)

// asm collects Go assembler text.
type asm struct{ bytes.Buffer }

func (a *asm) raw(s ...string) {
	for _, t := range s {
		a.WriteString(t)
	}
}

// o writes one instruction.
func (a *asm) o(f string, v ...any) { fmt.Fprintf(a, "\t"+f+"\n", v...) }

func (a *asm) label(l string) { a.raw(l, ":\n") }

// constants holds broadcast masks (their name is their meaning) and the sixteen code values as floats.
func (a *asm) constants() {
	for _, c := range []struct {
		name string
		v    uint32
	}{
		{"nibbles", 0x0f0f0f0f}, {"signs", 0x80808080}, {"ones16", 0x00010001}, {"sixteens16", 0x00100010},
		{"low4", 15}, {"low8", 255}, {"high16", 0xffff0000},
	} {
		a.raw(fmt.Sprintf("DATA %s<>+0(SB)/4, $%#x\nGLOBL %s<>(SB), RODATA|NOPTR, $4\n", c.name, c.v, c.name))
	}
	for i := range 16 {
		a.raw(fmt.Sprintf("DATA floats<>+%d(SB)/4, $%#x\n", 4*i, math.Float32bits(float32(i))))
	}
	a.raw("GLOBL floats<>(SB), RODATA|NOPTR, $64\n\n")
	a.planeConstants()
}
