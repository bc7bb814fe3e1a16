package config

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"hearth/internal/regular"
)

// longestName bounds the names that are looked up: no setting's is longer.
const longestName = 64

// Nearest is the name among all that is most likely meant by one that is none of them, "" if none is near.
func Nearest(name string, all []string) string {
	plain := func(s string) string { return strings.ReplaceAll(strings.ToLower(s), "_", "-") }
	n := plain(name)
	if n == "" || len(n) > longestName {
		return ""
	}
	best, least := "", max(1, len(n)/4)+1
	for _, other := range all {
		if d := distance(n, plain(other)); d < least {
			best, least = other, d
		}
	}
	if best != "" || len(n) < 4 {
		return best
	}
	for _, other := range all { // a part of a name; the shortest such name leaves the least open
		if strings.Contains(plain(other), n) && (best == "" || len(other) < len(best)) {
			best = other
		}
	}
	if best != "" {
		return best
	}
	for _, other := range all { // a name and more
		if len(other) > 4 && len(other) > len(best) && strings.HasPrefix(n, plain(other)) {
			best = other
		}
	}
	return best
}

// distance counts the letters to change, add, leave out or swap with their neighbour to get from a to b.
func distance(a, b string) int {
	var before, last []int
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, last, row = last, row, make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := last[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			row[j] = min(change, last[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return row[len(b)]
}

// NearestFlag is the flag of fs that is most likely meant by a name that is none, "" if none is near. It never means the
// contrary: where the name begins with no and the flag does not, that is a switch that is to be off.
func NearestFlag(fs *pflag.FlagSet, name string) string {
	name = strings.ReplaceAll(name, "_", "-")
	all := flagsOf(fs)
	rest, off := strings.CutPrefix(name, "no-")
	if !off {
		rest, off = strings.CutPrefix(name, "disable-")
	}
	if !off {
		return Nearest(name, slices.DeleteFunc(all, negates))
	}
	for _, other := range []string{"no-" + rest, "disable-" + rest} {
		if slices.Contains(all, other) {
			return other
		}
	}
	near := Nearest(name, all)
	if near == "" {
		near = Nearest(rest, all)
	}
	switch {
	case near == "" || negates(near):
		return near
	case fs.Lookup(near).Value.Type() == "bool":
		return near + "=false"
	}
	return "" // it would be the contrary
}

// negates tells of a flag's name that it switches something off.
func negates(name string) bool {
	return strings.HasPrefix(name, "no-") || strings.HasPrefix(name, "disable-")
}

// flagsOf are all the names that flags of fs go by.
func flagsOf(fs *pflag.FlagSet) []string {
	var all []string
	fs.VisitAll(func(f *pflag.Flag) {
		if k := knobNamed(f.Name); k != nil && k.Flag == f.Name {
			all = append(all, k.Also...)
		}
		all = append(all, f.Name)
	})
	return all
}

// settingNames are the names that a key of the file may have.
func settingNames(perModel bool) []string {
	var names []string
	for _, flag := range flagNames(perModel) {
		names = append(append(names, flag), knobNamed(flag).Also...)
	}
	if !perModel {
		for i := range Foreigners {
			names = append(names, Foreigners[i].Flag)
		}
	}
	return names
}

// ownVariables are what this program reads beside its settings, and mlxVariables what MLX, mlx-lm and their builds read. A name
// that ends in _ stands for all that begin so.
var (
	ownVariables = []string{"HEARTH_CPU", "HEARTH_BIN", "HEARTH_TEST_"}
	mlxVariables = []string{
		"MLX_BUFFER_", "MLX_BUILD_", "MLX_CONV_", "MLX_CUDA_", "MLX_IBV_", "MLX_JACCL_", "MLX_METAL_", "MLX_MPI_", "MLX_NCCL_", "MLX_RESIDENCY_", "MLX_RING_",
		"MLX_BFS_MAX_WIDTH", "MLX_CXX_FLAGS", "MLX_DIR", "MLX_DISABLE_COMPILE", "MLX_ENABLE_CACHE_THRASHING_CHECK", "MLX_ENABLE_TF32", "MLX_GDN_PACKED",
		"MLX_HOSTFILE", "MLX_INCLUDE_DIRS", "MLX_LIBRARIES", "MLX_MAX_MB_PER_BUFFER", "MLX_MAX_OPS_PER_BUFFER", "MLX_PTX_CACHE_DIR", "MLX_RANK", "MLX_ROOT",
		"MLX_SAVE_CUDA_GRAPHS_DOT_FILE", "MLX_SDPA_BLOCKS", "MLX_USE_CUDA_GRAPHS", "MLX_VISIBLE_DEVICES", "MLX_WORLD_SIZE",
	}
)

// Strays says which variables of environ, as os.Environ gives them, are called like settings and are none, a line each.
func Strays(environ []string) []string {
	var known []string
	for i := range Knobs {
		known = append(known, Knobs[i].variables()...)
	}
	for i := range Foreigners {
		known = append(append(known, Foreigners[i].own()), Foreigners[i].Env...)
	}
	var lines []string
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		own := strings.HasPrefix(name, ownPrefix)
		if value == "" || !own && !strings.HasPrefix(name, "MLX_") || slices.Contains(known, name) {
			continue
		}
		if slices.ContainsFunc(slices.Concat(ownVariables, mlxVariables), func(k string) bool {
			return name == k || strings.HasSuffix(k, "_") && strings.HasPrefix(name, k)
		}) {
			continue
		}
		line := regular.Clip(name) + " is set and is no setting"
		if near := nearestVariable(name, known); near != "" {
			line += "; did you mean " + near + "?"
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines
}

// nearestVariable compares what stands after the prefixes, names of the same prefix first.
func nearestVariable(name string, known []string) string {
	prefix, rest, _ := strings.Cut(name, "_")
	of := func(prefix string) (rests []string) {
		for _, k := range known {
			if r, ok := strings.CutPrefix(k, prefix+"_"); ok {
				rests = append(rests, r)
			}
		}
		return rests
	}
	if slices.Contains(known, ownPrefix+rest) {
		return ownPrefix + rest
	}
	for _, p := range []string{prefix, strings.TrimSuffix(ownPrefix, "_")} {
		if near := Nearest(rest, of(p)); near != "" {
			return p + "_" + near
		}
	}
	return ""
}
