//go:build (amd64 || arm64) && !purego

package cpu

// pause tells the processor that this is a spin loop: it saves power and leaves a sibling thread its share of the core.
//
//go:noescape
func pause()
