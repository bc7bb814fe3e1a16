//go:build !unix

package cli

import "net"

func takeOver(int) (net.Listener, error) { return nil, errNoPassing }

// ipVersion: the wildcard sockets of this program itself are reached over both.
func ipVersion(net.Listener) int { return 0 }
