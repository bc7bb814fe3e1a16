//go:build unix

package regular

import "golang.org/x/sys/unix"

// nonblocking keeps opening a pipe from waiting for who writes into it. Reading a file is the same with it.
const nonblocking = unix.O_NONBLOCK

const nofollow = unix.O_NOFOLLOW
