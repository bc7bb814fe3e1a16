package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strconv"
	"strings"

	"hearth/internal/jsonc"
	"hearth/internal/regular"
)

// warn notes something wrong with a file that the model can do without, once.
func (c *Checkpoint) warn(file, format string, args ...any) {
	c.tell(file + ": " + regular.ClipTo(fmt.Sprintf(format, args...), 3*regular.Line))
}

// readOptional reads a JSON file that the model can do without. What is wrong with its text is a warning, which ends in what it
// means that the file is not read. A name that leads to no file, or to one that is too large or not to be read, is an error: that
// is no slip of an editor.
func (c *Checkpoint) readOptional(name string, most int64, to any, without string) (found bool, err error) {
	b, err := regular.ReadFS(c.fsys, name, most)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, &LoadError{File: name, Err: err}
	}
	fault, err := jsonc.Unmarshal(b, to)
	if err != nil {
		c.warn(name, "%v; the file is left out: %s", tidyJSON(err), without)
		return false, nil
	}
	c.readOver(name, fault)
	return true, nil
}

// readOver tells of a fault that package jsonc has read over.
func (c *Checkpoint) readOver(name, fault string) {
	if fault != "" {
		c.warn(name, "%s", jsonc.ReadOver(fault))
	}
}

// readNumber reads a number. Some exporters write it as a text, which repaired says.
func readNumber(raw json.RawMessage) (x float64, repaired bool, err error) {
	var f float
	if json.Unmarshal(raw, &f) == nil {
		return float64(f), false, nil
	}
	var s string
	if json.Unmarshal(raw, &s) == nil {
		if x, err := strconv.ParseFloat(strings.TrimSpace(s), 64); err == nil {
			return x, true, nil
		}
	}
	return 0, false, fmt.Errorf("%s is no number", regular.Clip(string(raw)))
}

// readBool reads a truth value, likewise.
func readBool(raw json.RawMessage) (on, repaired bool, err error) {
	if json.Unmarshal(raw, &on) == nil {
		return on, false, nil
	}
	var s string
	if json.Unmarshal(raw, &s) == nil {
		switch strings.ToLower(strings.TrimSpace(s)) {
		case "true":
			return true, true, nil
		case "false":
			return false, true, nil
		}
	}
	return false, false, fmt.Errorf("%s is neither true nor false", regular.Clip(string(raw)))
}

// whole is x as a whole number in a range.
func whole(x float64, least, most int) (int, bool) {
	if x != math.Trunc(x) || !(x >= float64(least) && x <= float64(most)) {
		return 0, false
	}
	return int(x), true
}
