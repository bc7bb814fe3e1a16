package hub

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Root is a folder in which models are looked for: a Hugging Face cache (models--org--name), or a folder of model folders,
// name or org/name. It need not exist.
type Root struct {
	Dir  string
	Name string // as people call it: "Hugging Face cache"
}

// Roots finds models in several folders, by every name that a model on disk goes by. Nothing outside of these folders is
// looked at: a link that leads out of them is not followed. Where two have a model of one name, the first one's is meant,
// unless only the other's is whole.
//
// It keeps what it has seen, and looks again only at folders that have changed since. Methods may be called at any time, from any
// goroutine.
type Roots struct {
	// Judge tells what models are for; nil: that is not told, and every model_type is taken for one that can be loaded.
	Judge Judge
	// Aliases give further names; nil: there are none.
	Aliases *Aliases

	list []Root

	mu   sync.Mutex
	seen map[string]seen // by folder; under mu
}

// NewRoots looks in the folders of list, in this order. Those without a Dir are left out.
func NewRoots(list ...Root) *Roots {
	return &Roots{list: slices.DeleteFunc(slices.Clone(list), func(r Root) bool { return r.Dir == "" }), seen: map[string]seen{}}
}

// Dirs are the folders that are looked in.
func (r *Roots) Dirs() []Root { return slices.Clone(r.list) }

// seen is what was found in a folder when its marks were such.
type seen struct {
	marks marks
	entry Entry
	err   error
}

// marks are the times that change when the contents of a model folder do: its own, and those of files that are rewritten in
// place.
type marks [4]time.Time

// settled is the age from which a time of a file tells that nothing has changed since: file systems count in steps, the
// coarsest of two seconds.
const settled = 2 * time.Second

func marksOf(dir, beside string) (m marks, old bool) {
	old = true
	for i, path := range []string{dir, filepath.Join(dir, configName), filepath.Join(dir, indexName), beside} {
		if path == "" {
			continue
		}
		if st, err := os.Stat(path); err == nil {
			m[i] = st.ModTime()
			old = old && time.Since(m[i]) > settled
		}
	}
	return m, old
}

// place is a model's place in a root, before anything of it is read.
type place struct {
	id   string
	root *Root
	dir  string // the model's folder; of a cache, the repository's
	repo bool   // it is one of a cache
	out  bool   // it is a link that leads out of the roots
}

// base is the last part of the id.
func (p *place) base() string { return p.id[strings.LastIndex(p.id, "/")+1:] }

// scan is one look at the roots.
type scan struct {
	r    *Roots
	real []string // the roots' folders behind all links
}

func (r *Roots) scan() *scan {
	s := &scan{r: r}
	for _, root := range r.list {
		if real, err := filepath.EvalSymlinks(root.Dir); err == nil {
			if real, err = filepath.Abs(real); err == nil {
				s.real = append(s.real, real)
			}
		}
	}
	return s
}

// inside reports whether what path leads to, links and all, is in one of the roots. What leads nowhere is inside: there is
// nothing to be read.
func (s *scan) inside(path string) bool {
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	return err == nil && slices.ContainsFunc(s.real, func(root string) bool { return under(root, real) })
}

// under reports whether path is root or in it; both are absolute and clean.
func under(root, path string) bool {
	rel, err := filepath.Rel(root, path)
	return err == nil && filepath.IsLocal(rel)
}

// insideRepo is inside for the files of a cache's snapshot, which are links into blobs.
func (s *scan) insideRepo(repo string) func(string) bool {
	blobs := filepath.Join(repo, "blobs")
	return func(path string) bool {
		to, err := os.Readlink(path)
		if err == nil && !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(path), to)
			if st, err := os.Lstat(to); filepath.Dir(to) == blobs && (err != nil || st.Mode().IsRegular()) {
				return true
			}
		}
		return s.inside(path)
	}
}

// places lists what may be models, in the order of the roots and then of names. Contents are not looked at.
func (s *scan) places(ctx context.Context) ([]place, error) {
	var all []place
	for i := range s.r.list {
		root := &s.r.list[i]
		des, err := os.ReadDir(root.Dir)
		if err != nil {
			continue
		}
		if modelFiles(des) {
			all = append(all, place{id: filepath.Base(root.Dir), root: root, dir: root.Dir})
			continue
		}
		for _, de := range des {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			all = append(all, s.child(root, de)...)
		}
	}
	return all, nil
}

// child is what a folder of a root may hold.
func (s *scan) child(root *Root, de fs.DirEntry) []place {
	name := de.Name()
	p := place{id: name, root: root, dir: filepath.Join(root.Dir, name)}
	if strings.HasPrefix(name, ".") || strings.HasPrefix(name, "datasets--") || strings.HasPrefix(name, "spaces--") {
		return nil
	}
	if repo, ok := strings.CutPrefix(name, repoPrefix); ok {
		p.id, p.repo = strings.Replace(repo, "--", "/", 1), true
		if _, _, ok := ParseID(p.id); !ok {
			return nil
		}
	}
	if !s.folder(&p, de) {
		return nil
	}
	if p.repo || p.out {
		return []place{p}
	}
	des, err := os.ReadDir(p.dir)
	if err != nil || modelFiles(des) {
		return []place{p}
	}
	var all []place
	for _, de := range des {
		q := place{id: name + "/" + de.Name(), root: root, dir: filepath.Join(p.dir, de.Name())}
		if !strings.HasPrefix(de.Name(), ".") && s.folder(&q, de) {
			all = append(all, q)
		}
	}
	return all
}

// folder reports whether a place is a folder, or a link to one.
func (s *scan) folder(p *place, de fs.DirEntry) bool {
	if de.Type()&fs.ModeSymlink == 0 {
		return de.IsDir()
	}
	if !s.inside(p.dir) {
		p.out = true
		return true
	}
	return isDir(p.dir)
}

// modelFiles reports whether files in a folder are those of a model.
func modelFiles(des []fs.DirEntry) bool {
	return slices.ContainsFunc(des, func(de fs.DirEntry) bool {
		_, rank := formatOf(de.Name())
		return (rank > 0 || de.Name() == configName) && !de.IsDir()
	})
}

// entry looks at a place, of a revision as for snapshot. errNoModel is a folder of something else.
func (s *scan) entry(p *place, rev string) (Entry, error) {
	e := Entry{ID: p.id, Dir: p.dir, Root: p.root.Name}
	if p.out {
		e.State, e.Reason = Unusable, "it is a link that leads out of the folders in which models are looked for; --models-dir names further ones"
		return e, nil
	}
	if !p.repo {
		return s.look(e, "", func(e *Entry) error { return s.fill(e, s.inside, false) })
	}
	commit, err := snapshot(p.dir, rev)
	if err != nil {
		if rev != "" || !begun(p.dir) {
			return e, err
		}
		e.State, e.Reason = Half, err.Error()
		return e, nil
	}
	e.Repo, e.Revision, e.Dir = p.dir, commit, filepath.Join(p.dir, "snapshots", commit)
	if st, err := os.Lstat(e.Dir); err == nil && st.Mode()&fs.ModeSymlink != 0 && !s.inside(e.Dir) {
		return s.entry(&place{id: p.id, root: p.root, dir: e.Dir, out: true}, "")
	}
	return s.look(e, filepath.Join(p.dir, "blobs"), func(e *Entry) error { return s.fill(e, s.insideRepo(p.dir), true) })
}

// begun reports whether a download into a repository of a cache has begun.
func begun(repo string) bool {
	des, err := os.ReadDir(filepath.Join(repo, "blobs"))
	return err == nil && len(des) > 0
}

// look gives what fill makes of e, or made of it before if nothing has changed.
func (s *scan) look(e Entry, beside string, fill func(*Entry) error) (Entry, error) {
	m, old := marksOf(e.Dir, beside)
	s.r.mu.Lock()
	was, ok := s.r.seen[e.Dir]
	s.r.mu.Unlock()
	if ok && was.marks == m {
		was.entry.ID, was.entry.Root = e.ID, e.Root
		return was.entry, was.err
	}
	err := fill(&e)
	e.Time = m[0]
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	if old && e.State != Half { // what is half there may grow without a mark
		s.r.seen[e.Dir] = seen{m, e, err}
	} else {
		delete(s.r.seen, e.Dir)
	}
	return e, err
}

func (s *scan) fill(e *Entry, inside func(string) bool, downloaded bool) (err error) {
	if e.Folder, err = inspect(e.Dir, inside); err != nil {
		return err
	}
	if !downloaded && e.Format == Other && !e.config && len(e.Missing) == 0 && e.Outside == "" {
		return errNoModel
	}
	e.judge(downloaded, s.r.Judge)
	return nil
}

// List gives every model of the folders, also those that are half there or cannot be loaded, by id; of one id, in the order
// of the folders. Of a repository of a cache it is the main revision, or the newest. The error is ctx's.
func (r *Roots) List(ctx context.Context) ([]Entry, error) {
	s := r.scan()
	places, err := s.places(ctx)
	if err != nil {
		return nil, err
	}
	var out []Entry
	for i := range places {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if e, err := s.entry(&places[i], ""); err == nil {
			out = append(out, e)
		}
	}
	slices.SortStableFunc(out, func(a, b Entry) int { return cmp.Compare(a.ID, b.ID) })
	return out, nil
}

// Find gives the model of a name: an alias, the path of a folder inside the roots, an id with or without @revision, the name of a
// folder, or the last part of an id if no other model's is the same. The entry says whether it can be loaded. The error is a
// *NotFoundError.
func (r *Roots) Find(name string) (Entry, error) {
	target := name
	if to, ok := r.Aliases.Lookup(name); ok {
		target = to
		if filepath.IsAbs(to) { // its owner has named it
			return r.named(name, to)
		}
	}
	s := r.scan()
	if filepath.IsAbs(target) {
		return s.path(target)
	}
	id, rev, ok := ParseID(target)
	if !ok {
		return Entry{}, r.missing(name, target, "it is neither a folder nor an id such as org/name")
	}
	if len(r.list) == 0 {
		return Entry{}, r.missing(name, target, "no home folder is set to look in")
	}
	found, problem := s.pick(s.direct(id), rev)
	if found == nil && problem == nil {
		all, _ := s.places(context.Background())
		same := s.called(all, id)
		if several := ids(same); len(several) > 1 {
			return Entry{}, r.missing(name, target, "several models are called that: "+strings.Join(several, ", "))
		}
		found, problem = s.pick(same, rev)
	}
	switch {
	case found != nil:
		return *found, nil
	case problem != nil:
		return Entry{}, r.missing(name, target, problem.Error())
	}
	return Entry{}, r.missing(name, target, "it was never downloaded")
}

// named is the model in a folder that an alias names.
func (r *Roots) named(name, dir string) (Entry, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return Entry{}, r.missing(name, dir, "there is no such folder")
	}
	s := r.scan()
	s.real = append(s.real, real)
	return s.path(dir)
}

// path is the model in the folder at path, if that is inside the roots.
func (s *scan) path(path string) (Entry, error) {
	path = filepath.Clean(path)
	if !s.inside(path) {
		return Entry{}, s.r.missing(path, path, "it is outside the folders in which models are looked for; --models-dir names further ones")
	}
	p, rev := place{id: filepath.Base(path), root: &Root{}, dir: path}, ""
	for i := range s.r.list {
		abs, err := filepath.Abs(s.r.list[i].Dir)
		if err != nil || !under(abs, path) {
			continue
		}
		p.root = &s.r.list[i]
		if rel, err := filepath.Rel(abs, path); err == nil && strings.Count(rel, string(filepath.Separator)) == 1 {
			p.id = filepath.ToSlash(rel)
		}
		break
	}
	if id, ok := SnapshotID(path); ok {
		p.id, p.dir, p.repo, rev = id, filepath.Dir(filepath.Dir(path)), true, filepath.Base(path)
	}
	e, err := s.entry(&p, rev)
	if err != nil {
		return Entry{}, s.r.missing(path, path, "there is no model in it")
	}
	return e, nil
}

// direct are the places where a model of an id belongs.
func (s *scan) direct(id string) []place {
	var all []place
	for i := range s.r.list {
		root := &s.r.list[i]
		repo := place{id: id, root: root, dir: Cache{Dir: root.Dir}.root(id), repo: true}
		folder := place{id: id, root: root, dir: filepath.Join(root.Dir, filepath.FromSlash(id))}
		for _, p := range []place{repo, folder} {
			if st, err := os.Lstat(p.dir); err == nil {
				if s.folder(&p, fs.FileInfoToDirEntry(st)) {
					all = append(all, p)
				}
			}
		}
	}
	return all
}

// called are the places whose id, or its last part, is name in any case; those in just this case if there are any.
func (s *scan) called(all []place, name string) []place {
	for _, same := range []func(a, b string) bool{func(a, b string) bool { return a == b }, strings.EqualFold} {
		var out []place
		for _, p := range all {
			if same(p.id, name) || same(p.base(), name) {
				out = append(out, p)
			}
		}
		if out != nil {
			return out
		}
	}
	return nil
}

func ids(places []place) []string {
	var out []string
	for _, p := range places {
		if !slices.Contains(out, p.id) {
			out = append(out, p.id)
		}
	}
	return out
}

// pick is the first of the places with a whole model, else the first with any; nil and why, if there is none. Folders that are in
// the way of a name and hold no model are passed over.
func (s *scan) pick(places []place, rev string) (*Entry, error) {
	var found *Entry
	var problem error
	for i := range places {
		p := &places[i]
		if rev != "" && !p.repo {
			continue // a folder has no revisions
		}
		e, err := s.entry(p, rev)
		switch {
		case errors.Is(err, errNoModel):
		case err != nil:
			problem = cmp.Or(problem, err)
		case e.State == Whole:
			return &e, nil
		case found == nil:
			found = &e
		}
	}
	return found, problem
}

// missing is the error about a name that was not found; target is what it stands for.
func (r *Roots) missing(name, target, reason string) error {
	e := &NotFoundError{ID: name, Reason: reason}
	if err := r.Aliases.fault(); err != nil && aliasName.MatchString(name) {
		e.Reason += "; it may be an alias, of which none is known: " + err.Error()
	}
	if target != name {
		e.Target = target
	}
	for i, root := range r.list {
		if i == 0 || isDir(root.Dir) {
			e.Dirs = append(e.Dirs, root.Dir)
		}
	}
	aliases, _ := r.Aliases.List() // said above
	for _, a := range aliases {
		if a.Name != name {
			e.Aliases = append(e.Aliases, a.Name)
		}
	}
	list, _ := r.List(context.Background())
	slices.SortStableFunc(list, func(a, b Entry) int { return a.incomplete() - b.incomplete() })
	for _, m := range list {
		if m.State != Unusable && !slices.Contains(e.Have, m.ID) {
			e.Have = append(e.Have, m.ID)
		}
	}
	id, _, _ := strings.Cut(strings.ToLower(target), "@")
	last := "/" + id[strings.LastIndex(id, "/")+1:]
	near := func(have string) int {
		switch have = strings.ToLower(have); {
		case have == id:
			return 0
		case strings.HasSuffix("/"+have, last):
			return 1
		}
		return 2
	}
	slices.SortStableFunc(e.Have, func(a, b string) int { return near(a) - near(b) })
	return e
}

// incomplete is 0 of a model that is whole, else 1.
func (e *Entry) incomplete() int {
	if e.State == Whole {
		return 0
	}
	return 1
}

// errNoModel is of folders of something else.
var errNoModel = errors.New("holds no model")
