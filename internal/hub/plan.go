package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"hearth/internal/regular"
)

const (
	// maxPages and maxListed bound the list of a repository's files; a page has a thousand.
	maxPages  = 200
	maxListed = 100_000
	// maxFiles bounds those that are fetched of them.
	maxFiles = 4096
	// maxFileBytes bounds one of them: a hub's largest are a tenth of it.
	maxFileBytes = 1 << 42
)

// File is a file of a repository.
type File struct {
	Path string // in the repository, with slashes
	Size int64  // bytes
	Blob string // its name in blobs/: the SHA-256 of a large file, the git object of a small one
	Have int64  // bytes of it that are on disk already
}

// Plan is what Fetch brings: the files of a commit that hearth reads.
type Plan struct {
	ID       string // org/name
	Revision string // as it was asked for: a branch, a tag or a commit
	Commit   string
	Files    []File // small ones first
	Others   int    // files that are left out

	listing []listed
}

// Bytes is the size of all files.
func (p *Plan) Bytes() (n int64) {
	for _, f := range p.Files {
		n += f.Size
	}
	return n
}

// Missing is how many of them are not on disk yet.
func (p *Plan) Missing() (n int64) {
	for _, f := range p.Files {
		n += f.Size - f.Have
	}
	return n
}

// Weights is the size of the weight files.
func (p *Plan) Weights() (n int64) {
	for _, f := range p.Files {
		if path.Ext(f.Path) == ".safetensors" {
			n += f.Size
		}
	}
	return n
}

// listed is an entry of the hub's list of files.
type listed struct {
	Type string `json:"type"`
	Path string `json:"path"`
	Size int64  `json:"size"`
	OID  string `json:"oid"`
	LFS  *struct {
		OID  string `json:"oid"`
		Size int64  `json:"size"`
	} `json:"lfs"`
	Xet string `json:"xetHash"`
}

var (
	commitID = regexp.MustCompile(`^[0-9a-f]{40}$`)
	blobID   = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)
	sha256ID = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// Plan asks the hub what a model's files are, and looks which of them are there. name is an id, perhaps with @revision; without
// one it is main. Errors are *FetchError, but for those of ctx and of the disk.
func (c *Client) Plan(ctx context.Context, name string) (Plan, error) {
	id, rev, ok := ParseID(name)
	if !ok || !strings.Contains(id, "/") {
		return Plan{}, &FetchError{ID: regular.Clip(name), Reason: "is no name of a model on the hub", Advice: "a name is org/name, or org/name@revision"}
	}
	if c.Cache.Dir == "" {
		return Plan{}, &FetchError{ID: id, Reason: "no home folder is set to keep it in", Advice: "give a folder with --hf-hub-cache"}
	}
	s, err := c.open(id)
	if err != nil {
		return Plan{}, err
	}
	defer s.close()
	p := Plan{ID: id, Revision: rev, Commit: rev}
	if p.Revision == "" {
		p.Revision = "main"
	}
	if !commitID.MatchString(p.Revision) {
		if p.Commit, err = s.resolve(ctx, p.Revision); err != nil {
			return Plan{}, err
		}
	}
	if p.listing, err = s.list(ctx, p.Commit); err != nil {
		return Plan{}, err
	}
	if err := s.choose(&p); err != nil {
		return Plan{}, err
	}
	c.Cache.look(&p)
	return p, nil
}

// resolve gives the commit that a revision is now.
func (s *session) resolve(ctx context.Context, rev string) (string, error) {
	var info struct {
		SHA string `json:"sha"`
	}
	if _, err := s.getJSON(ctx, s.address("/api/models/"+s.id+"/revision/"+url.PathEscape(rev), ""), rev, &info); err != nil {
		return "", err
	}
	if !commitID.MatchString(info.SHA) {
		return "", &FetchError{ID: s.id, Reason: s.base.Host + " names no commit of " + rev + ": it does not answer as a Hugging Face hub does", Advice: "check HF_ENDPOINT"}
	}
	return info.SHA, nil
}

// list gives all files of a commit.
func (s *session) list(ctx context.Context, commit string) ([]listed, error) {
	var all []listed
	next := s.address("/api/models/"+s.id+"/tree/"+commit, "recursive=true&expand=false")
	for range maxPages {
		var page []listed
		header, err := s.getJSON(ctx, next, commit, &page)
		if err != nil {
			return nil, err
		}
		for _, l := range page {
			if l.Type == "file" {
				all = append(all, l)
			}
		}
		if len(all) > maxListed {
			break
		}
		link := nextPage(header)
		if link == "" {
			return all, nil
		}
		u, err := next.Parse(link)
		if err != nil || !s.own(u) {
			return nil, &FetchError{ID: s.id, Reason: "the hub's list of files goes on elsewhere, at " + regular.Quote(link)}
		}
		next = u
	}
	return nil, &FetchError{ID: s.id, Reason: fmt.Sprintf("has more than %d files", maxListed)}
}

// link finds an address and its relation in a Link header.
var link = regexp.MustCompile(`<([^<>]*)>\s*;\s*rel\s*=\s*"?next"?`)

func nextPage(h http.Header) string {
	for _, v := range h.Values("Link") {
		if m := link.FindStringSubmatch(v); m != nil {
			return m[1]
		}
	}
	return ""
}

// read are the files beside the weights that hearth reads in a model's own folder.
var read = strings.Fields(`config.json generation_config.json hf_quant_config.json tokenizer.json tokenizer_config.json tokenizer.model tiktoken.model
	tekken.json vocab.json vocab.txt merges.txt added_tokens.json special_tokens_map.json chat_template.json model.safetensors.index.json
	preprocessor_config.json processor_config.json video_preprocessor_config.json modules.json sentence_bert_config.json config_sentence_transformers.json`)

// module is a folder of sentence-transformers: 1_Pooling.
var module = regexp.MustCompile(`^\d{1,3}_\w+/$`)

// reads reports whether hearth reads a file of this path beside the weights.
func reads(file string) bool {
	dir, name := path.Split(file)
	switch {
	case dir == "":
		return slices.Contains(read, name) || path.Ext(name) == ".jinja" || path.Ext(name) == ".tiktoken"
	case dir == "additional_chat_templates/":
		return path.Ext(name) == ".jinja"
	}
	return module.MatchString(dir) && (name == "config.json" || name == "model.safetensors")
}

// weightsOf are the files of weights in a list: model*.safetensors, or whatever an index may name where there are none.
func weightsOf(all []listed) []listed {
	var named, others []listed
	for _, l := range all {
		switch {
		case strings.Contains(l.Path, "/") || path.Ext(l.Path) != ".safetensors":
		case strings.HasPrefix(l.Path, "model"):
			named = append(named, l)
		case !strings.HasPrefix(l.Path, "adapter") && !strings.HasPrefix(l.Path, "consolidated"):
			others = append(others, l)
		}
	}
	if named == nil {
		return others
	}
	return named
}

// choose takes the files that hearth reads, and refuses repositories that have no model for it.
func (s *session) choose(p *Plan) error {
	weights := weightsOf(p.listing)
	has, rank, config := Other, 0, false
	seen, weight := map[string]bool{}, map[string]bool{}
	for _, w := range weights {
		weight[w.Path] = true
	}
	for _, l := range p.listing {
		if k, r := formatOf(path.Base(l.Path)); r > rank && (k != Safetensors || weights != nil) {
			has, rank = k, r
		}
		config = config || l.Path == "config.json"
		if reads(l.Path) || weight[l.Path] {
			f, err := s.file(l)
			if err == nil && seen[l.Path] {
				err = &FetchError{ID: s.id, Reason: "the hub lists " + l.Path + " twice"}
			}
			if err != nil {
				return err
			}
			seen[l.Path] = true
			p.Files = append(p.Files, f)
		}
	}
	p.Others = len(p.listing) - len(p.Files)
	e := &FetchError{ID: s.id, Advice: "look for a conversion to MLX or safetensors, such as those of mlx-community"}
	switch {
	case len(p.Files) > maxFiles:
		e.Reason, e.Advice = fmt.Sprintf("has %d files of a model, more than %d", len(p.Files), maxFiles), ""
	case has == GGUF:
		e.Reason = "holds GGUF files, which hearth does not read"
	case has == PyTorch:
		e.Reason = "holds PyTorch weights (.bin, .pt), which hearth does not read"
	case has == Adapter:
		e.Reason, e.Advice = "holds an adapter without its model", "pull the model it was made for, and give the adapter's folder as --adapter-path"
	case has != Safetensors:
		e.Reason = "holds no weights that hearth reads"
	case !config:
		e.Reason, e.Advice = "has no config.json: its weights are no model that hearth could load", ""
	default:
		slices.SortStableFunc(p.Files, func(a, b File) int {
			return cmp.Or(cmp.Compare(len(a.Blob), len(b.Blob)), strings.Compare(a.Path, b.Path)) // large ones have the longer hash
		})
		return nil
	}
	return e
}

// file takes an entry of the hub's list, which may say anything.
func (s *session) file(l listed) (File, error) {
	f := File{Path: l.Path, Size: l.Size, Blob: l.OID}
	if l.LFS != nil {
		f.Size, f.Blob = l.LFS.Size, l.LFS.OID
		if !sha256ID.MatchString(f.Blob) {
			f.Blob = ""
		}
	}
	switch {
	case !safePath(l.Path):
		return f, &FetchError{ID: s.id, Reason: "the hub lists a file by a name that none may have: " + regular.Quote(l.Path)}
	case !blobID.MatchString(f.Blob):
		return f, &FetchError{ID: s.id, Reason: "the hub gives no checksum of " + l.Path}
	case f.Size < 0 || f.Size > maxFileBytes:
		return f, &FetchError{ID: s.id, Reason: fmt.Sprintf("the hub says that %s has %d bytes", l.Path, f.Size)}
	}
	return f, nil
}

// safePath accepts paths that stay in the folder that they are joined to, on any system.
func safePath(p string) bool {
	if p == "" || len(p) > 512 || path.Clean(p) != p || !filepath.IsLocal(filepath.FromSlash(p)) || strings.ContainsAny(p, "\\:") {
		return false
	}
	for part := range strings.SplitSeq(p, "/") {
		if part == "." || part == ".." || len(part) > 255 || strings.HasSuffix(part, ".") || strings.HasSuffix(part, " ") {
			return false
		}
	}
	return !strings.ContainsFunc(p, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// root is the folder of a model in the cache.
func (c Cache) root(id string) string {
	return filepath.Join(c.Dir, repoPrefix+strings.ReplaceAll(id, "/", "--"))
}

// look fills in which bytes of the files are there.
func (c Cache) look(p *Plan) {
	b := blobs{filepath.Join(c.root(p.ID), "blobs")}
	left := b.leftovers()
	for i := range p.Files {
		f := &p.Files[i]
		switch f.Have = 0; {
		case hasSize(c.pointer(p, f), f.Size), hasSize(b.path(f.Blob), f.Size):
			f.Have = f.Size
		default:
			for _, l := range left[f.Blob] {
				f.Have = max(f.Have, min(l.size, f.Size))
			}
		}
	}
}

// pointer is where a file of the plan is found: the link in its snapshot.
func (c Cache) pointer(p *Plan, f *File) string {
	return filepath.Join(c.root(p.ID), "snapshots", p.Commit, filepath.FromSlash(f.Path))
}

// hasSize reports whether there is a file of so many bytes, behind links or not.
func hasSize(path string, size int64) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular() && st.Size() == size
}

// gone reports that what was to be done is done already.
func gone(err error) bool { return err == nil || errors.Is(err, os.ErrNotExist) }
