package kernel

import (
	"fmt"
	"slices"
	"strings"
)

// impl is one set of routines for an instruction set. Toggles are package variables that dispatch code reads.
type impl struct {
	name   string
	usable bool   // this CPU can run it
	slower bool   // but runs the one before it faster: it is taken by name alone
	enable func() // sets the toggles
}

// impls are in ascending order of preference, but for those that are slower; an arch file appends its own before init runs the
// choice.
var impls = []impl{{name: "generic", usable: true, enable: func() { setToggles(0) }}}

var current string

func init() {
	impls = append(impls, archImpls()...)
	if err := Use(""); err != nil {
		panic(err)
	}
}

// Implementations lists what this machine can run, that of the oldest instructions first.
func Implementations() []string {
	var names []string
	for _, im := range impls {
		if im.usable {
			names = append(names, im.name)
		}
	}
	return names
}

// Current names the implementation in use.
func Current() string { return current }

// Use selects an implementation by name; "" or "auto" selects the fastest one. Call it before any work starts: kernels
// running meanwhile may see either choice.
func Use(name string) error {
	auto := name == "" || name == "auto"
	for _, im := range slices.Backward(impls) {
		if !im.usable || auto && im.slower || !auto && im.name != name {
			continue
		}
		im.enable()
		current = im.name
		return nil
	}
	return fmt.Errorf("kernel implementation %q is not available on this machine (available: %s)", name, strings.Join(Implementations(), ", "))
}
