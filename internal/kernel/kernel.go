// Package kernel owns the CPU routines of the native engine: the packed weight layout and the products with it, and
// the small float kernels a transformer step needs. Package backend/cpu is its only caller besides benchmarks. It knows
// nothing of models, batches, pages or threads: every function works on plain slices, does its share and returns, and
// the caller splits work over panels and rows. It never allocates in a product, never starts a goroutine, reads no
// environment and does no I/O.
//
// # Matrices
//
//	m := mem.NewMatrix(kernel.Spec{Rows: n, Cols: k, Format: kernel.Codes4, Group: 64, Scales: kernel.ScaleBF16})
//	m.SetRow(i, codes, scales, biases)  // once per row; rows may come from several tensors and in any order
//	m.SetFloats(i, w), m.SetBF16(i, w)  // the same for dense formats
//	p.Reset(m, form, bits)              // or, as models are loaded, a panel's rows at once: see Packer
//	p.Pack(panel, rows, scales)
//	a.Reset(kernel.Fast, rows, k, m.Group())
//	a.SetRow(r, x)                      // once per activation row
//	m.Mul(y, ldy, a, r0, r1, p0, p1)    // rows [r0,r1) against panels [p0,p1): y[r*ldy+n] = Σ x[r,k]·W[n,k]
//
// A panel is PanelRows consecutive weight rows; m.Panels() of them make a matrix and are the unit of splitting work. Fast
// quantises activations to int8 per group and multiplies integers; Fine does so twice, the second time what the first left out,
// for the price of two rows; Outliers is Fast with the largest numbers of some groups in two parts (see outliers.go); Floats
// keeps float32 activations. Dense matrices have only Floats, and those of bfloat16 also Half, activations rounded to bfloat16,
// where the CPU multiplies such numbers: Format.Form tells.
//
// # The rest
//
// vec.go has the elementwise kernels, norms, rotation and sums over float32 slices; cache.go how rows of keys and values
// are stored; attn.go attention of blocks of query tokens over runs of them, in float32 or, where the CPU multiplies such
// numbers fast, of bfloat16 keys as attn_half.go and of 8-bit codes as attn_codes.go says; Probe measures the limits that
// products are held against.
//
// # Determinism
//
// A result depends on its activation row, its weight row and the implementation in use; never on how many rows or
// panels a call covers or where in them it stands. The product with one row and the tile of several share one order of
// summation and one epilogue (see mul_generic.go). Implementations may differ from each other in the last bits.
//
// # Implementations
//
// Every kernel has a generic twin in Go, which is the specification. Use forces one by name for tests, Current tells
// which one runs, Implementations lists what this machine can run. The build tag purego leaves the assembly out.
package kernel
