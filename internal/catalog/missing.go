package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"hearth/internal/config"
	"hearth/internal/hub"
)

// Missing says what to do about a model that is not on this disk: which name was meant, what to type to have it, what there is.
func Missing(e *hub.NotFoundError) string {
	parts := Advice(e)
	if len(parts) == 0 || strings.HasPrefix(parts[0], onDiskPart) {
		parts = slices.Insert(parts, 0, "MODEL is a folder, an id such as mlx-community/Qwen3-0.6B-4bit, an alias (hearth alias lists them), or demo")
	}
	return strings.Join(parts, "; ")
}

// Advice is the parts of that which are about the name.
func Advice(e *hub.NotFoundError) (parts []string) {
	target := cmp.Or(e.Target, e.ID)
	id, _, ok := hub.ParseID(target)
	if near := Nearest(e); near != "" {
		parts = append(parts, "did you mean "+near+"?")
	}
	if ok && strings.Contains(id, "/") {
		parts = append(parts, "to download it: hearth pull "+target)
	}
	return append(parts, onDisk(e.Have)...)
}

// Nearest is the id or the alias that was most likely meant, "" if none is near.
func Nearest(e *hub.NotFoundError) string {
	id, _, _ := hub.ParseID(cmp.Or(e.Target, e.ID))
	if near := nearest(id, e.Have); near != "" {
		return near
	}
	return config.Nearest(e.ID, e.Aliases)
}

// onDiskPart begins what says which models there are.
const onDiskPart = "on this disk"

// nearest is the id of have that is most likely meant by name, "" if none is near.
func nearest(name string, have []string) string {
	if near := config.Nearest(name, have); near != "" {
		return near
	}
	last := func(id string) string { return id[strings.LastIndex(id, "/")+1:] }
	byLast, names := map[string]string{}, make([]string, 0, len(have))
	for _, id := range have {
		byLast[last(id)] = id
		names = append(names, last(id))
	}
	return byLast[config.Nearest(last(name), names)]
}

// onDisk says which models there are.
func onDisk(ids []string) []string {
	const most = 3
	switch more := len(ids) - most; {
	case len(ids) == 0:
		return nil
	case more > 0:
		return []string{fmt.Sprintf(onDiskPart+" are %s and %d more (hearth ls)", strings.Join(ids[:most], ", "), more)}
	}
	return []string{onDiskPart + ": " + strings.Join(ids, ", ")}
}
