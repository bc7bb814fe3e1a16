// Package hub finds models on disk: it turns a model id into a folder of the Hugging Face cache, lists what is there, and says
// of any folder what kind of model it holds; a Client brings models there from a hub. Packages catalog and cli call it. Of
// what is on disk it reads names and the small JSON files only, never weights; it never reads the environment, and asks no hub
// by itself.
//
// The layout is that of huggingface_hub: models--<org>--<name>/refs/<ref> holds a commit, and
// models--<org>--<name>/snapshots/<commit>/ holds the files, usually as links into blobs/.
// What is half there is a file blobs/<blob>.incomplete, and .locks/ has a file that is locked (flock) while one is written.
package hub

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"hearth/internal/regular"
)

// Cache is a hub cache folder. It need not exist.
type Cache struct {
	Dir string
}

// Entry is a model of the cache.
type Entry struct {
	ID       string // org/name
	Dir      string // the snapshot's folder
	Revision string // commit
	Time     time.Time
	Folder
}

// NotFoundError says where a model was looked for.
type NotFoundError struct {
	ID, Dir string
	Reason  string   // what is wrong with what is there
	Have    []string // ids that are there, nearest names first
}

func (e *NotFoundError) Error() string {
	return fmt.Sprintf("model %q is not in %s: %s", e.ID, e.Dir, e.Reason)
}

// part is one half of an id. huggingface_hub forbids "--" and "..", which keeps ids and folder names one to one.
var part = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,95}$`)

// ParseID splits org/name or name, each with an optional @revision.
func ParseID(s string) (id, revision string, ok bool) {
	id, revision, cut := strings.Cut(s, "@")
	if cut && !validRef(revision) {
		return "", "", false
	}
	parts := strings.Split(id, "/")
	if len(parts) > 2 {
		return "", "", false
	}
	for _, p := range parts {
		if !part.MatchString(p) || strings.Contains(p, "--") || strings.Contains(p, "..") {
			return "", "", false
		}
	}
	return id, revision, true
}

// validRef accepts branch names and commits; it is joined to a path, so nothing may climb out.
func validRef(s string) bool {
	return s != "" && len(s) <= 200 && filepath.IsLocal(filepath.FromSlash(s)) && !strings.ContainsAny(s, "\\:\x00")
}

// Find returns the folder of an id. The error is a *NotFoundError unless the disk failed.
func (c Cache) Find(s string) (Entry, error) {
	id, rev, ok := ParseID(s)
	if !ok {
		return Entry{}, &NotFoundError{ID: s, Dir: c.Dir, Reason: "it is neither a folder nor an id such as org/name"}
	}
	if c.Dir == "" {
		return Entry{}, &NotFoundError{ID: s, Dir: "the Hugging Face cache", Reason: "no home folder is set to look in"}
	}
	root := filepath.Join(c.Dir, "models--"+strings.ReplaceAll(id, "/", "--"))
	if st, err := os.Stat(root); err != nil || !st.IsDir() {
		return Entry{}, c.missing(s, "it was never downloaded")
	}
	e, err := entry(id, root, rev)
	if err != nil {
		return Entry{}, c.missing(s, err.Error())
	}
	return e, nil
}

// entry is the model in the folder root, of a revision as for snapshot.
func entry(id, root, rev string) (Entry, error) {
	commit, err := snapshot(root, rev)
	if err != nil {
		return Entry{}, err
	}
	dir := filepath.Join(root, "snapshots", commit)
	f, err := Inspect(dir)
	if err != nil {
		return Entry{}, err
	}
	e := Entry{ID: id, Dir: dir, Revision: commit, Folder: f}
	if st, err := os.Stat(dir); err == nil {
		e.Time = st.ModTime()
	}
	return e, nil
}

// snapshot picks the commit of a revision; "" is main, or the newest snapshot where there is no main.
func snapshot(root, rev string) (string, error) {
	ref := cmp.Or(rev, "main")
	b, err := readSmall(filepath.Join(root, "refs", filepath.FromSlash(ref)))
	if err == nil {
		commit := strings.TrimSpace(string(b))
		if !validRef(commit) || strings.Contains(commit, "/") {
			return "", fmt.Errorf("refs/%s holds no commit", ref)
		}
		if isDir(filepath.Join(root, "snapshots", commit)) {
			return commit, nil
		}
		return "", fmt.Errorf("the download of revision %s never finished", ref)
	}
	if rev != "" {
		if !strings.Contains(rev, "/") && isDir(filepath.Join(root, "snapshots", rev)) {
			return rev, nil
		}
		return "", fmt.Errorf("revision %s was never downloaded", rev)
	}
	return newest(filepath.Join(root, "snapshots"))
}

func newest(dir string) (string, error) {
	var best string
	var when time.Time
	des, _ := os.ReadDir(dir)
	for _, de := range des {
		if st, err := os.Stat(filepath.Join(dir, de.Name())); err == nil && st.IsDir() && (best == "" || st.ModTime().After(when)) {
			best, when = de.Name(), st.ModTime()
		}
	}
	if best == "" {
		return "", errors.New("the download never finished")
	}
	return best, nil
}

func (c Cache) missing(s, reason string) error {
	e := &NotFoundError{ID: s, Dir: c.Dir, Reason: reason}
	for _, m := range c.List() {
		e.Have = append(e.Have, m.ID)
	}
	id, _, _ := strings.Cut(strings.ToLower(s), "@")
	_, name, _ := strings.Cut(id, "/")
	near := func(have string) int {
		switch have = strings.ToLower(have); {
		case have == id:
			return 0
		case name != "" && strings.HasSuffix(have, "/"+name), strings.HasSuffix(have, "/"+id):
			return 1
		}
		return 2
	}
	slices.SortStableFunc(e.Have, func(a, b string) int { return near(a) - near(b) })
	return e
}

// List gives every model of the cache that has a snapshot, by id. Folders that cannot be read are left out.
func (c Cache) List() []Entry {
	des, err := os.ReadDir(c.Dir)
	if c.Dir == "" || err != nil {
		return nil
	}
	var out []Entry
	for _, de := range des {
		name, ok := strings.CutPrefix(de.Name(), "models--")
		if !ok {
			continue
		}
		id := strings.Replace(name, "--", "/", 1)
		if _, _, ok := ParseID(id); !ok {
			continue
		}
		if e, err := entry(id, filepath.Join(c.Dir, de.Name()), ""); err == nil {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b Entry) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// maxSmall bounds the JSON and ref files this package reads.
const maxSmall = 64 << 20

func readSmall(path string) ([]byte, error) {
	return regular.Read(path, maxSmall)
}

func isDir(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}
