package model

import (
	"maps"
	"slices"
)

// Named and Near are what names mean.
var (
	Named = named
	Near  = near
)

// TextTypes are the types that a nest may have.
func TextTypes() []string { return slices.Sorted(maps.Keys(texts)) }
