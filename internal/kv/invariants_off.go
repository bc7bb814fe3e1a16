//go:build !invariants

package kv

// Invariants makes owners of an Alloc run Check after every change (-tags invariants).
const Invariants = false
