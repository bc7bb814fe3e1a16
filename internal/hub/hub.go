// Package hub finds models on disk: it turns a name into a folder of the Hugging Face cache or of other folders of models, lists
// what is there, and says of any folder what it holds and what is missing; a Client brings models there from a hub. Packages
// catalog and cli call it. Of what is on disk it reads names and the small JSON files only, never weights; it never reads the
// environment, and asks no hub by itself.
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
	"strings"
	"time"

	"hearth/internal/regular"
)

// Cache is a Hugging Face cache. It need not exist.
type Cache struct {
	Dir string
}

// Entry is a model on disk.
type Entry struct {
	ID       string // org/name, or a folder's name
	Dir      string // the model's folder; of a repository of which nothing is whole yet, that
	Repo     string // the folder of the repository in a cache; "": the model is in no cache
	Revision string // commit; "": unknown
	Root     string // name of the Root it is in
	Kind     string // what it is for, as Judge says
	State    State
	Reason   string // of a state that is not Whole, without a full stop
	Time     time.Time
	Folder
}

// Cached reports models that are in a hub cache. Others are in folders that somebody has put there.
func (e *Entry) Cached() bool {
	return e.Repo != "" || strings.HasPrefix(filepath.Base(e.Dir), repoPrefix)
}

// repoPrefix begins the name of a model's folder in a hub cache.
const repoPrefix = "models--"

// NotFoundError says where a model was looked for.
type NotFoundError struct {
	ID     string
	Target string   // what ID is an alias of, "" if it is none
	Dirs   []string // that were looked in: those that are there, and the first
	Reason string
	Have   []string // ids that are there, nearest names first, then whole models
	// Aliases are the further names that there are, whether their models are there or not.
	Aliases []string
}

func (e *NotFoundError) Error() string {
	name := regular.Quote(e.ID)
	if e.Target != "" {
		name += " (" + regular.Clip(e.Target) + ")"
	}
	where := "on this disk"
	if len(e.Dirs) > 0 {
		where = "in " + strings.Join(e.Dirs, ", ")
	}
	return fmt.Sprintf("model %s is not %s: %s", name, where, e.Reason)
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

// Find is Roots.Find in the cache alone.
func (c Cache) Find(name string) (Entry, error) {
	return NewRoots(Root{Dir: c.Dir}).Find(name)
}

// SnapshotID recovers the id of a folder inside a cache: its own name is only a commit.
func SnapshotID(path string) (id string, ok bool) {
	up := filepath.Dir(path)
	repo, ok := strings.CutPrefix(filepath.Base(filepath.Dir(up)), repoPrefix)
	if !ok || filepath.Base(up) != "snapshots" {
		return "", false
	}
	return strings.Replace(repo, "--", "/", 1), true
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

// maxSmall bounds the JSON and ref files this package reads.
const maxSmall = 64 << 20

func readSmall(path string) ([]byte, error) {
	return regular.Read(path, maxSmall)
}

func isDir(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}
