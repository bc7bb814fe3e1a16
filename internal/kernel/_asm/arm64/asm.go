package main

import (
	"bytes"
	"fmt"
	"strings"
)

// asm collects Go assembler text. Go's assembler for arm64 has moves, branches and integer arithmetic, but lacks most
// vector arithmetic: those instructions are written as their words, each with its Arm spelling beside it.
type asm struct {
	bytes.Buffer
	frame int // bytes of memory of the routine at hand
}

// o writes one instruction of Go's assembler.
func (a *asm) o(f string, v ...any) { fmt.Fprintf(a, "\t"+f+"\n", v...) }

func (a *asm) label(l string) { a.WriteString(l + ":\n") }

// text opens a routine that takes one pointer, to R0.
func (a *asm) text(name, args string) {
	fmt.Fprintf(a, "// func %s(a *%s)\nTEXT ·%s(SB), NOSPLIT, $0-8\n", name, args, name)
	a.o("MOVD a+0(FP), R0")
}

func (a *asm) end() { a.o("RET\n") }

// loop closes a loop that counts a register down.
func (a *asm) loop(reg, label string) {
	a.o("SUB $1, %s", reg)
	a.o("CBNZ %s, %s", reg, label)
}

// op is an instruction on vector registers: its word with all register fields zero, and its text.
type op struct {
	bits uint32
	text string
}

func (a *asm) word(w uint32, text string) { fmt.Fprintf(a, "\tWORD $%#08x // %s\n", w, text) }

// v writes an instruction on registers d, n and, if it takes three, m.
func (a *asm) v(o op, regs ...int) {
	w := o.bits
	args := make([]any, len(regs))
	for i, r := range regs {
		w |= uint32(r) << [...]int{0, 5, 16}[i]
		args[i] = r
	}
	a.word(w, fmt.Sprintf(o.text, args...))
}

// e writes an instruction that takes 32-bit lane i of m for all lanes.
func (a *asm) e(o op, d, n, m, i int) {
	w := o.bits | uint32(d) | uint32(n)<<5 | uint32(m)<<16 | uint32(i&1)<<21 | uint32(i>>1)<<11
	a.word(w, fmt.Sprintf(o.text, d, n, m, i))
}

// i writes an instruction with an immediate, already encoded in its field; text shows it as n.
func (a *asm) i(o op, d, s int, field uint32, n int) {
	a.word(o.bits|uint32(d)|uint32(s)<<5|field, fmt.Sprintf(o.text, d, s, n))
}

func (a *asm) shl(d, n, by int)     { a.i(shl4s, d, n, uint32(32+by)<<16, by) }
func (a *asm) ushr(d, n, by int)    { a.i(ushr4s, d, n, uint32(64-by)<<16, by) }
func (a *asm) ushr16b(d, n, by int) { a.i(ushr16b, d, n, uint32(16-by)<<16, by) }
func (a *asm) shl16b(d, n, by int)  { a.i(shl16b, d, n, uint32(8+by)<<16, by) }

// sli16b puts the bytes of n, moved up, above the low bits of those of d.
func (a *asm) sli16b(d, n, by int) { a.i(sli16b, d, n, uint32(8+by)<<16, by) }

// dup spreads lane i of n over d.
func (a *asm) dup(d, n, i int) { a.i(dup4s, d, n, uint32(i<<3|4)<<16, i) }

// dupW spreads general register R(n) over d.
func (a *asm) dupW(d, n int) { a.v(dupGeneral, d, n) }

// ld1r spreads the word at R(n) over d and moves R(n) past it.
func (a *asm) ld1r(d, n int) { a.v(ld1rPost, d, n) }

func (a *asm) zero(d int) { a.v(eor, d, d, d) }

// load and store move 16 bytes at off of pointer reg, loadD eight.
func (a *asm) load(off int, reg string, d int)  { a.o("FMOVQ %d(%s), F%d", off, reg, d) }
func (a *asm) store(d, off int, reg string)     { a.o("FMOVQ F%d, %d(%s)", d, off, reg) }
func (a *asm) loadD(off int, reg string, d int) { a.o("FMOVD %d(%s), F%d", off, reg, d) }

// constant fills d with a 32-bit word, by way of R22.
func (a *asm) constant(d int, w uint32) {
	a.o("MOVW $%#x, R22", w)
	a.dupW(d, 22)
}

// three is an instruction on registers of one arrangement.
func three(name, lanes string, bits uint32) op {
	return op{bits, name + strings.Repeat(" v%d."+lanes+",", 2) + " v%d." + lanes}
}

func two(name, lanes string, bits uint32) op {
	return op{bits, name + " v%d." + lanes + ", v%d." + lanes}
}

var (
	fadd    = three("fadd", "4s", 0x4e20d400)
	fsub    = three("fsub", "4s", 0x4ea0d400)
	fmul    = three("fmul", "4s", 0x6e20dc00)
	fdiv    = three("fdiv", "4s", 0x6e20fc00)
	fmla    = three("fmla", "4s", 0x4e20cc00)
	fmls    = three("fmls", "4s", 0x4ea0cc00)
	fmax    = three("fmax", "4s", 0x4e20f400)
	fmin    = three("fmin", "4s", 0x4ea0f400)
	fmaxnmv = op{0x6e30c800, "fmaxnmv s%d, v%d.4s"}
	fmaxnm  = three("fmaxnm", "4s", 0x4e20c400)
	faddp   = three("faddp", "4s", 0x6e20d400)
	fcmgt   = three("fcmgt", "4s", 0x6ea0e400)
	fcmeq   = three("fcmeq", "4s", 0x4e20e400)
	fabs    = two("fabs", "4s", 0x4ea0f800)
	fneg    = two("fneg", "4s", 0x6ea0f800)
	frintn  = two("frintn", "4s", 0x4e218800)
	fcvtns  = two("fcvtns", "4s", 0x4e21a800)
	scvtf   = two("scvtf", "4s", 0x4e21d800)

	fmlaE = op{0x4f801000, "fmla v%d.4s, v%d.4s, v%d.s[%d]"}
	fmlsE = op{0x4f805000, "fmls v%d.4s, v%d.4s, v%d.s[%d]"}
	fmulE = op{0x4f809000, "fmul v%d.4s, v%d.4s, v%d.s[%d]"}

	and = three("and", "16b", 0x4e201c00)
	bic = three("bic", "16b", 0x4e601c00)
	orr = three("orr", "16b", 0x4ea01c00)
	orn = three("orn", "16b", 0x4ee01c00)
	eor = three("eor", "16b", 0x6e201c00)
	bsl = three("bsl", "16b", 0x6e601c00)
	bit = three("bit", "16b", 0x6ea01c00)

	add4s   = three("add", "4s", 0x4ea08400)
	sub4s   = three("sub", "4s", 0x6ea08400)
	addp4s  = three("addp", "4s", 0x4ea0bc00)
	umax4s  = three("umax", "4s", 0x6ea06400)
	umin4s  = three("umin", "4s", 0x6ea06c00)
	umaxp4s = three("umaxp", "4s", 0x6ea0a400)
	cmhi    = three("cmhi", "4s", 0x6ea03400)
	cmeq    = three("cmeq", "4s", 0x6ea08c00)
	smax16b = three("smax", "16b", 0x4e206400)
	addv    = op{0x4eb1b800, "addv s%d, v%d.4s"}
	fminv   = op{0x6eb0f800, "fminv s%d, v%d.4s"}
	fmaxv   = op{0x6e30f800, "fmaxv s%d, v%d.4s"}
	uminv   = op{0x6eb1a800, "uminv s%d, v%d.4s"}
	umaxv   = op{0x6eb0a800, "umaxv s%d, v%d.4s"}
	shl4s   = op{0x4f005400, "shl v%d.4s, v%d.4s, #%d"}
	ushr4s  = op{0x6f000400, "ushr v%d.4s, v%d.4s, #%d"}
	shl16b  = op{0x4f005400, "shl v%d.16b, v%d.16b, #%d"}
	sli16b  = op{0x6f005400, "sli v%d.16b, v%d.16b, #%d"}
	tbl     = op{0x4e000000, "tbl v%d.16b, {v%d.16b}, v%d.16b"}
	ushr16b = op{0x6f000400, "ushr v%d.16b, v%d.16b, #%d"}

	smull   = op{0x0e20c000, "smull v%d.8h, v%d.8b, v%d.8b"}
	smull2  = op{0x4e20c000, "smull2 v%d.8h, v%d.16b, v%d.16b"}
	smlal   = op{0x0e208000, "smlal v%d.8h, v%d.8b, v%d.8b"}
	smlal2  = op{0x4e208000, "smlal2 v%d.8h, v%d.16b, v%d.16b"}
	sadalp  = op{0x4e606800, "sadalp v%d.4s, v%d.8h"}
	saddlp  = op{0x4e602800, "saddlp v%d.4s, v%d.8h"}
	saddlpB = op{0x4e202800, "saddlp v%d.8h, v%d.16b"}
	sdotE   = op{0x4f80e000, "sdot v%d.4s, v%d.16b, v%d.4b[%d]"}
	usdotE  = op{0x4f80f000, "usdot v%d.4s, v%d.16b, v%d.4b[%d]"}
	usdot   = op{0x4e809c00, "usdot v%d.4s, v%d.16b, v%d.16b"}
	usmmla  = op{0x4e80ac00, "usmmla v%d.4s, v%d.16b, v%d.16b"}
	sqxtn   = op{0x0e614800, "sqxtn v%d.4h, v%d.4s"}
	sqxtn2  = op{0x4e614800, "sqxtn2 v%d.8h, v%d.4s"}
	sqxtnB  = op{0x0e214800, "sqxtn v%d.8b, v%d.8h"}
	sqxtnB2 = op{0x4e214800, "sqxtn2 v%d.16b, v%d.8h"}
	xtn     = op{0x0e612800, "xtn v%d.4h, v%d.4s"}
	xtn2    = op{0x4e612800, "xtn2 v%d.8h, v%d.4s"}
	xtnB    = op{0x0e212800, "xtn v%d.8b, v%d.8h"}
	xtnB2   = op{0x4e212800, "xtn2 v%d.16b, v%d.8h"}
	rshrn   = op{0x0f088c00, "rshrn v%d.8b, v%d.8h, #8"}
	rshrn2  = op{0x4f088c00, "rshrn2 v%d.16b, v%d.8h, #8"}
	shrn16  = op{0x0f108400, "shrn v%d.4h, v%d.4s, #16"}
	shrn162 = op{0x4f108400, "shrn2 v%d.8h, v%d.4s, #16"}
	shll    = op{0x2e613800, "shll v%d.4s, v%d.4h, #16"}
	shll2   = op{0x6e613800, "shll2 v%d.4s, v%d.8h, #16"}
	uxtlB   = op{0x2f08a400, "uxtl v%d.8h, v%d.8b"}
	uxtl    = op{0x2f10a400, "uxtl v%d.4s, v%d.4h"}
	uxtl2   = op{0x6f10a400, "uxtl2 v%d.4s, v%d.8h"}
	fcvtl   = op{0x0e217800, "fcvtl v%d.4s, v%d.4h"}
	fcvtl2  = op{0x4e217800, "fcvtl2 v%d.4s, v%d.8h"}
	fcvtn   = op{0x0e216800, "fcvtn v%d.4h, v%d.4s"}
	fcvtn2  = op{0x4e216800, "fcvtn2 v%d.8h, v%d.4s"}

	ushl4s   = three("ushl", "4s", 0x6ea04400)
	ushl16b  = three("ushl", "16b", 0x6e204400)
	dupBytes = op{0x4e010c00, "dup v%d.16b, w%d"}
	dup2d    = op{0x4e080c00, "dup v%d.2d, x%d"}

	zip1       = three("zip1", "4s", 0x4e803800)
	zip2       = three("zip2", "4s", 0x4e807800)
	zip1Bytes  = three("zip1", "16b", 0x4e003800)
	zip2Bytes  = three("zip2", "16b", 0x4e007800)
	zip1Halves = three("zip1", "8h", 0x4e403800)
	zip2Halves = three("zip2", "8h", 0x4e407800)
	zip1Pairs  = three("zip1", "2d", 0x4ec03800)
	zip2Pairs  = three("zip2", "2d", 0x4ec07800)
	uzp1       = three("uzp1", "4s", 0x4e801800)
	uzp2       = three("uzp2", "4s", 0x4e805800)

	dup4s      = op{0x4e000400, "dup v%d.4s, v%d.s[%d]"}
	dupGeneral = op{0x4e040c00, "dup v%d.4s, w%d"}
	ld1rPost   = op{0x4ddfc800, "ld1r {v%d.4s}, [x%d], #4"}
)
