package model

// Named and Near are what names mean.
var (
	Named = named
	Near  = near
)
