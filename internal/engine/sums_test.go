package engine

import (
	"reflect"
	"slices"
	"testing"
)

// notSummed are the figures that the sum of two engines takes from the first: no amounts, or those of one folder and one device.
var notSummed = []string{"Context", "PageTokens", "Page", "Cache.Disk.Dir", "Cache.Disk.Quota", "Device.Limit"}

// once are the figures that AddCounts leaves alone: those of the moment.
var once = []string{"Running", "Waiting", "PagesUsed", "Used", "Budget", "Step", "Stuck", "Lack", "Device.Active", "Device.Peak", "Device.Cache",
	"Cache.Enabled", "Cache.Entries", "Images.Bytes", "Speculation.Enabled", "Speculation.Bytes", "Cache.Bytes", "Cache.Idle", "Cache.Sessions", "Cache.Disk.Entries", "Cache.Disk.Bytes"}

// leaves calls f for every number, text and flag in v, with its path.
func leaves(v reflect.Value, path string, f func(path string, v reflect.Value)) {
	switch v.Kind() {
	case reflect.Struct:
	case reflect.Pointer:
		if v.IsNil() && v.CanSet() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		if !v.IsNil() {
			leaves(v.Elem(), path, f)
			return
		}
		fallthrough
	default:
		f(path, v)
		return
	case reflect.Array:
		for i := range v.Len() {
			leaves(v.Index(i), path, f)
		}
		return
	}
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		if path != "" {
			name = path + "." + name
		}
		leaves(v.Field(i), name, f)
	}
}

// fill sets every leaf of v to something that is not zero.
func fill(t *testing.T, v reflect.Value) {
	leaves(v, "", func(path string, v reflect.Value) {
		switch {
		case v.CanInt():
			v.SetInt(3)
		case v.CanUint():
			v.SetUint(3)
		case v.CanFloat():
			v.SetFloat(3)
		case v.Kind() == reflect.Bool:
			v.SetBool(true)
		case v.Kind() == reflect.String:
			v.SetString("x")
		default:
			t.Fatalf("%s is a %v, of which this test knows no sum", path, v.Kind())
		}
	})
}

// Every figure that there is, also one that is added later, is in the sum of several engines, or named as not being an amount.
func TestEveryFigureIsSummed(t *testing.T) {
	var o Stats
	fill(t, reflect.ValueOf(&o).Elem())
	for name, c := range map[string]struct {
		sum   func(s, o *Stats)
		apart []string
	}{
		"Add": {(*Stats).Add, notSummed}, "AddCounts": {(*Stats).AddCounts, slices.Concat(notSummed, once)},
	} {
		var s Stats
		c.sum(&s, &o)
		left := slices.Clone(c.apart)
		leaves(reflect.ValueOf(s), "", func(path string, v reflect.Value) {
			apart := slices.Contains(c.apart, path)
			if left = slices.DeleteFunc(left, func(p string) bool { return p == path }); v.IsZero() != apart {
				t.Errorf("%s: %s is %v; a new figure is added there, or named in this test as not an amount", name, path, v)
			}
		})
		if len(left) > 0 {
			t.Errorf("%s: there are no %v", name, left)
		}
	}
	var twice Stats
	twice.Add(&o)
	twice.Add(&o)
	if twice.Steps != 6 || twice.Cache.Bytes != 6 || twice.Stuck != 3 || twice.Cache.Disk.Hits != 6 {
		t.Errorf("%+v", twice)
	}
	var stored Stored
	fill(t, reflect.ValueOf(&stored).Elem())
	leaves(reflect.ValueOf(stored.Plus(stored)), "", func(path string, v reflect.Value) {
		if !v.CanInt() || v.Int() != 6 {
			t.Errorf("Stored.Plus: %s is %v", path, v)
		}
	})
}
