//go:build !unix

package mcp

import "os/exec"

// apart does nothing: this system has no process groups.
func apart(*exec.Cmd) {}

// terminate does nothing: only kill ends a program here.
func terminate(*exec.Cmd) {}

// kill ends a program.
func kill(c *exec.Cmd) { _ = c.Process.Kill() }
