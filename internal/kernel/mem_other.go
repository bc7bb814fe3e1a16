//go:build !unix

package kernel

import "errors"

func mapAnonymous(int) (b, all []byte, err error) { return nil, nil, errors.ErrUnsupported }

func unmap([]byte) {}

func discard([]byte) {}
