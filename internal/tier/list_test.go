package tier

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"hearth/internal/regular"
)

// Folders are listed with their models, and those that are open stay.
func TestList(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "with [odd] name")
	if list, err := List(dir); err != nil || list != nil {
		t.Fatal(list, err)
	}
	open, err := Open(Options{Dir: dir, Name: "org/open", Fingerprint: "model org/open in \"/x\"\nfiles 1"})
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	shut, err := Open(Options{Dir: dir, Name: "org/shut", Fingerprint: "no model's"})
	if err == nil {
		err = shut.Close()
	}
	foreign := filepath.Join(dir, "photos")
	if err = errors.Join(err, os.Mkdir(foreign, 0o700), os.WriteFile(filepath.Join(foreign, lockFile), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	list, err := List(dir)
	if err != nil || len(list) != 2 || list[0].Model != "org-shut" && list[1].Model != "org-shut" {
		t.Fatalf("%+v, %v", list, err)
	}
	for _, l := range list {
		err := Remove(l.Dir)
		if l.Model == "org/open" && (!l.InUse || !errors.Is(err, regular.ErrBusy)) || l.Model == "org-shut" && (l.InUse || err != nil || l.Bytes == 0) {
			t.Errorf("%+v: %v", l, err)
		}
	}
	if list, _ = List(dir); len(list) != 1 || list[0].Model != "org/open" {
		t.Errorf("left is %+v", list)
	}
	if Remove(foreign) == nil {
		t.Error("a folder of somebody else's is removed")
	}
}
