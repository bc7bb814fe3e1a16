package catalog

import (
	"fmt"
	"strings"

	"hearth/internal/config"
	"hearth/internal/hub"
)

// Missing says what to do about a model that is not on this disk: which name was meant, what to type to have it, what there is.
func Missing(e *hub.NotFoundError) string {
	target := e.ID
	if e.Target != "" {
		target = e.Target
	}
	id, _, ok := hub.ParseID(target)
	pull := ok && strings.Contains(id, "/")
	var parts []string
	switch near := nearest(id, e.Have); {
	case near != "":
		parts = append(parts, "did you mean "+near+"?")
	case !pull:
		parts = append(parts, "MODEL is a folder, an id such as mlx-community/Qwen3-0.6B-4bit, an alias (hearth alias lists them), or demo")
	}
	if pull {
		parts = append(parts, "to download it: hearth pull "+target)
	}
	return strings.Join(append(parts, onDisk(e.Have)...), "; ")
}

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
		return []string{fmt.Sprintf("on this disk are %s and %d more (hearth ls)", strings.Join(ids[:most], ", "), more)}
	}
	return []string{"on this disk: " + strings.Join(ids, ", ")}
}
