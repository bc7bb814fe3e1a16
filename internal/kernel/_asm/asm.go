package main

import (
	"bytes"
	"fmt"
	"math"
	"strings"
)

// asm collects Go assembler text.
type asm struct {
	bytes.Buffer
	macros []string          // of the routine being written
	bodies map[string]string // names of all by what they say
}

func (a *asm) raw(s ...string) {
	for _, t := range s {
		a.WriteString(t)
	}
}

// o writes one instruction.
func (a *asm) o(f string, v ...any) { fmt.Fprintf(a, "\t"+f+"\n", v...) }

// macro defines what body writes until forget: instructions that a routine repeats for other operands, the names of which are its
// parameters. Macros that say the same are written once.
func (a *asm) macro(name, params string, body func()) {
	text := a.text(body)
	full, ok := a.bodies[text]
	if !ok {
		full = sprint("%s_%d", name, len(a.bodies))
		a.define(full, params, text)
		a.remember(full, text)
	}
	a.raw("#define ", name, "(", params, ") ", full, "(", params, ")\n")
	a.macros = append(a.macros, name)
}

// forget ends a routine's macros.
func (a *asm) forget() {
	for _, m := range a.macros {
		a.raw("#undef ", m, "\n")
	}
	a.macros = nil
}

// shared writes what body does as a macro that all routines use for which it does the same. It may use macros of theirs.
func (a *asm) shared(name string, body func()) {
	text := a.text(body)
	full, ok := a.bodies[text]
	if !ok {
		full = sprint("%s_%d", name, len(a.bodies))
		a.define(full, "", text)
		a.remember(full, text)
	}
	a.o("%s()", full)
}

func (a *asm) remember(name, text string) {
	if a.bodies == nil {
		a.bodies = map[string]string{}
	}
	a.bodies[text] = name
}

// text takes back what body writes.
func (a *asm) text(body func()) string {
	from := a.Len()
	body()
	text := strings.TrimSpace(string(a.Bytes()[from:]))
	a.Truncate(from)
	return text
}

func (a *asm) define(name, params, text string) {
	a.raw("#define ", name, "(", params, ") \\\n\t", strings.ReplaceAll(text, "\n\t", "; \\\n\t"), "\n")
}

func (a *asm) label(l string) { a.raw(l, ":\n") }

// constants holds broadcast masks (their name is their meaning) and the first code values as floats.
func (a *asm) constants() {
	for _, c := range []struct {
		name string
		v    uint32
	}{
		{"nibbles", 0x0f0f0f0f}, {"signs", 0x80808080}, {"ones16", 0x00010001}, {"sixteens16", 0x00100010},
		{"low4", 15}, {"low8", 255}, {"high16", 0xffff0000}, {"e4m3", 0x87f00000}, {"two120", math.Float32bits(0x1p120)},
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
	floats("e2m1signedfloats", 16, func(i int) int { return e2m1Values[i] - 12 })
	a.planeConstants()
}
