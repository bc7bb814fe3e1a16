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

// constants holds broadcast masks (their name is their meaning) and the first code values as floats.
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
	floats := func(name string, n int, value func(i int) int) {
		for i := range n {
			a.raw(fmt.Sprintf("DATA %s<>+%d(SB)/4, $%#x\n", name, 4*i, math.Float32bits(float32(value(i)))))
		}
		a.raw(fmt.Sprintf("GLOBL %s<>(SB), RODATA|NOPTR, $%d\n\n", name, 4*n))
	}
	floats("floats", 32, func(i int) int { return i })
	floats("e2m1floats", 16, func(i int) int { return e2m1Values[i] })
	a.planeConstants()
}
