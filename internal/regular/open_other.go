//go:build !unix

package regular

const (
	nonblocking = 0 // nothing that one waits for has a place in a folder here
	nofollow    = 0
)
