package hub

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"hearth/internal/regular"
)

// Removal is what goes with a model: a revision of a cache with the blobs that nothing else links, or a folder.
type Removal struct {
	Entry Entry
	Files int      // names that go
	Bytes int64    // that become free
	Kept  int      // blobs that stay, because something else links them
	Left  []string // other revisions of the repository

	blobs []string // files that go with the snapshot
	refs  []string // that say this revision
	whole bool     // the repository goes: nothing of it is left
}

// ErrInUse is in the error about a model that cannot be removed now.
var ErrInUse = errors.New("it is in use")

// PlanRemoval finds out what would go with a model of List or Find. Nothing is changed. A model that is no folder of its own,
// but a link, is refused: what it leads to may be anybody's.
func (r *Roots) PlanRemoval(e Entry) (Removal, error) {
	m := Removal{Entry: e}
	dir := e.Dir
	if e.Repo != "" {
		dir = e.Repo
	} else if e.Cached() { // nothing of it is whole
		m.whole = true
	}
	if !r.holds(dir) {
		return m, fmt.Errorf("%s is not in a folder in which models are looked for", dir)
	}
	for _, d := range []string{dir, e.Dir} {
		if st, err := os.Lstat(d); err != nil {
			return m, err
		} else if !st.IsDir() {
			return m, fmt.Errorf("%s is a link to another place; what it leads to is not removed", d)
		}
	}
	if e.Repo == "" {
		return m, m.count(dir)
	}
	return m, r.planRevision(&m)
}

// holds reports whether dir is one of the roots, or in one without any link on the way.
func (r *Roots) holds(dir string) bool {
	real, err := filepath.EvalSymlinks(filepath.Dir(dir))
	if err != nil {
		return false
	}
	real = filepath.Join(real, filepath.Base(dir))
	return slices.ContainsFunc(r.scan().real, func(root string) bool { return under(root, real) })
}

// count adds up the files in dir. Links count for nothing.
func (m *Removal) count(dir string) error {
	return filepath.WalkDir(dir, func(_ string, de fs.DirEntry, err error) error {
		if err != nil || de.IsDir() {
			return err
		}
		m.Files++
		if st, err := de.Info(); err == nil && st.Mode().IsRegular() {
			m.Bytes += st.Size()
		}
		return nil
	})
}

// planRevision tells the blobs of a snapshot that go with it from those that something else in any of the roots links.
func (r *Roots) planRevision(m *Removal) error {
	repo, commit := m.Entry.Repo, m.Entry.Revision
	own, err := linked(m.Entry.Dir)
	if err != nil {
		return err
	}
	m.Files = len(own)
	des, err := os.ReadDir(filepath.Join(repo, "snapshots"))
	if err != nil {
		return err
	}
	for _, de := range des {
		if de.Name() != commit {
			m.Left = append(m.Left, de.Name())
		}
	}
	if m.whole = len(m.Left) == 0; m.whole {
		m.Files = 0
		if err := m.count(repo); err != nil {
			return err
		}
	}
	others, err := r.linkedElsewhere(m.Entry.Dir)
	if err != nil {
		return err
	}
	blobs := filepath.Join(repo, "blobs")
	for _, path := range own {
		st, err := os.Lstat(path)
		switch {
		case err != nil || !st.Mode().IsRegular():
		case filepath.Dir(path) != blobs: // a file of the snapshot itself, or a link to somewhere else
			if under(m.Entry.Dir, path) && !m.whole {
				m.Bytes += st.Size()
			}
		case others[path]:
			m.Kept++
			m.whole = false
		default:
			m.blobs = append(m.blobs, path)
			if len(m.Left) > 0 {
				m.Bytes += st.Size()
			}
		}
	}
	return m.findRefs(filepath.Join(repo, "refs"), commit)
}

// findRefs are the names of revisions that mean this commit.
func (m *Removal) findRefs(dir, commit string) error {
	err := filepath.WalkDir(dir, func(path string, de fs.DirEntry, err error) error {
		if err != nil || !de.Type().IsRegular() {
			return err
		}
		if b, err := readSmall(path); err == nil && strings.TrimSpace(string(b)) == commit {
			m.refs = append(m.refs, path)
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// linked are the files of a folder, and what those that are links lead to, one step far. The folder's folders are looked at too,
// links to folders are not.
func linked(dir string) (paths []string, err error) {
	err = filepath.WalkDir(dir, func(path string, de fs.DirEntry, err error) error {
		if err != nil || de.IsDir() {
			return err
		}
		if to, err := os.Readlink(path); err == nil {
			if !filepath.IsAbs(to) {
				to = filepath.Join(filepath.Dir(path), to)
			}
			path = filepath.Clean(to)
		}
		paths = append(paths, path)
		return nil
	})
	return paths, err
}

// linkedElsewhere are the paths that files of all models but the one in dir lead to.
func (r *Roots) linkedElsewhere(dir string) (map[string]bool, error) {
	all := map[string]bool{}
	note := func(d string) error {
		paths, err := linked(d)
		for _, p := range paths {
			all[p] = true
		}
		return err
	}
	for _, root := range r.list {
		des, err := os.ReadDir(root.Dir)
		if err != nil {
			continue
		}
		for _, de := range des {
			path := filepath.Join(root.Dir, de.Name())
			if !strings.HasPrefix(de.Name(), repoPrefix) {
				if de.IsDir() && !strings.HasPrefix(de.Name(), ".") {
					if err := note(path); err != nil {
						return nil, err
					}
				}
				continue
			}
			snaps, _ := os.ReadDir(filepath.Join(path, "snapshots"))
			for _, s := range snaps {
				if d := filepath.Join(path, "snapshots", s.Name()); d != dir && s.IsDir() {
					if err := note(d); err != nil {
						return nil, err
					}
				}
			}
		}
	}
	return all, nil
}

// Remove removes what was planned. It is an error around ErrInUse while a program has the model loaded, or downloads it. Nothing
// outside the planned folder is touched: a link in it goes, and what it leads to stays, but for blobs of its own repository.
func (r *Roots) Remove(m Removal) error {
	taken, err := m.take()
	if err != nil {
		return err
	}
	defer func() {
		for _, c := range taken {
			_ = c.Close()
		}
	}()
	e := &m.Entry
	if e.Repo == "" || m.whole {
		dir := e.Dir
		if e.Repo != "" {
			dir = e.Repo
		}
		return removeTree(dir)
	}
	// In this order what is left is a snapshot or nothing, and at worst a blob that nobody links.
	for _, ref := range m.refs {
		if err := os.Remove(ref); err != nil {
			return err
		}
	}
	if err := removeTree(e.Dir); err != nil {
		return err
	}
	for _, blob := range m.blobs {
		if err := os.Remove(blob); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// removeTree removes a folder without following any link, not even one that takes the folder's place meanwhile.
func removeTree(dir string) error {
	up, err := os.OpenRoot(filepath.Dir(dir))
	if err != nil {
		return err
	}
	defer up.Close()
	return up.RemoveAll(filepath.Base(dir))
}

// take keeps others from loading or downloading the model.
func (m *Removal) take() (taken []io.Closer, err error) {
	defer func() {
		if err != nil {
			for _, c := range taken {
				_ = c.Close()
			}
			taken = nil
		}
	}()
	folder, err := regular.Take(m.Entry.Dir)
	if errors.Is(err, regular.ErrBusy) {
		return nil, fmt.Errorf("remove %s: %w: a program has it loaded", m.Entry.ID, ErrInUse)
	}
	if err != nil {
		return nil, err
	}
	taken = append(taken, folder)
	repo := m.Entry.Repo
	if m.whole && repo == "" {
		repo = m.Entry.Dir
	}
	if repo == "" {
		return taken, nil
	}
	locks := filepath.Join(filepath.Dir(repo), ".locks", filepath.Base(repo))
	des, _ := os.ReadDir(locks) // none: nobody has downloaded it
	for _, de := range des {
		f, err := regular.OpenOwn(filepath.Join(locks, de.Name()), os.O_RDWR)
		if err != nil {
			continue
		}
		taken = append(taken, f)
		if errors.Is(regular.Lock(f), regular.ErrBusy) {
			return taken, fmt.Errorf("remove %s: %w: a program downloads it", m.Entry.ID, ErrInUse)
		}
	}
	return taken, nil
}
