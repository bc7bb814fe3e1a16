// Package hubtest is a hub that stands in for Hugging Face's in tests: on loopback, with repositories made of numbers. What it
// says and how is good enough for huggingface_hub itself to download from it, which the tests of package hub hold it to: the
// answers about revisions and trees, pages of them, large files behind a redirect to another origin whose address is signed
// and ends, small ones from the hub itself, X-Repo-Commit, X-Linked-Etag and X-Linked-Size, X-Xet-Hash, ranges, tokens and
// error codes. It can also be a bad one: cut connections, stall, lie about sizes and contents, ignore ranges, let addresses
// expire, and refuse. It counts what it sends.
package hubtest

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// File is a file of a repository.
type File struct {
	Size    int64
	Content io.ReaderAt
	LFS     bool // large: behind a redirect, with its SHA-256 as name
}

// Text is a small file.
func Text(s string) File { return File{Size: int64(len(s)), Content: strings.NewReader(s)} }

// Large is a large file of numbers that seed and place alone decide.
func Large(seed uint64, size int64) File { return File{Size: size, Content: noise(seed), LFS: true} }

// noise has a byte for every place.
type noise uint64

// ReadAt implements io.ReaderAt.
func (n noise) ReadAt(p []byte, at int64) (int, error) {
	var word [8]byte
	for i := 0; i < len(p); {
		// splitmix64 of the place of eight bytes.
		x := uint64(n) + uint64(at/8+1)*0x9e3779b97f4a7c15
		x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
		x = (x ^ x>>27) * 0x94d049bb133111eb
		x ^= x >> 31
		if at%8 == 0 && len(p)-i >= 8 {
			binary.LittleEndian.PutUint64(p[i:], x)
			i, at = i+8, at+8
			continue
		}
		binary.LittleEndian.PutUint64(word[:], x)
		k := copy(p[i:], word[at%8:])
		i, at = i+k, at+int64(k)
	}
	return len(p), nil
}

// Refusal is an answer in place of the right one.
type Refusal struct {
	Status int
	Header map[string]string
	Times  int // 0: always
}

// Faults are what is wrong with a hub. Numbers that are 0 are no faults.
type Faults struct {
	CutEvery    int64         // bytes of a body after which the connection ends, at multiples of it in the file
	Stall       int64         // at this byte of a file it sends nothing more, once
	PerSecond   int64         // bytes that a body gets
	More, Less  int64         // bytes that Content-Length and Content-Range have too many, too few
	Longer      bool          // a body has a byte more than the file, and says no length
	Garbage     int           // how many times a body has another byte at its end
	NoRange     bool          // all of a file, whatever was asked for
	Gzip        bool          // says that bodies are compressed
	ExpireAfter int           // requests that a signed address is good for
	Weak        bool          // ETags are weak ones
	PageSize    int           // entries of a page of a tree; 0: 1000
	Latency     time.Duration // before each answer
	OtherCommit bool          // X-Repo-Commit is another one
	TwoHops     bool          // one redirect more, on the hub itself
}

// Hub is a hub that runs. Its fields may be changed between requests, under Lock.
type Hub struct {
	sync.Mutex
	URL    string // of the hub
	CDN    string // the other origin, for large files
	Token  string // if set, the only one that is accepted
	Faults Faults
	// Refuse has what is answered in place of what is right, by the beginning of a path. Those of the CDN begin with cdn.
	Refuse map[string]*Refusal
	Gated  map[string]bool // ids that only a token opens, and only those who were let in
	LetIn  bool

	repos    map[string]*repo
	sent     map[string]int64 // by path
	requests []string         // method, path and the first letters of Authorization
	signed   map[string]int
	stalled  map[string]bool
}

type repo struct {
	refs  map[string]string
	trees map[string]map[string]entry // by commit
}

type entry struct {
	File
	oid, sha256 string
}

// New is a hub that ends with t.
func New(t testing.TB) *Hub {
	h := &Hub{repos: map[string]*repo{}, sent: map[string]int64{}, signed: map[string]int{}, stalled: map[string]bool{},
		Refuse: map[string]*Refusal{}, Gated: map[string]bool{}}
	for _, s := range []struct {
		url     *string
		handler http.HandlerFunc
	}{{&h.URL, h.hub}, {&h.CDN, h.cdn}} {
		srv := httptest.NewUnstartedServer(s.handler)
		srv.Config.ConnState = func(c net.Conn, state http.ConnState) {
			if tcp, ok := c.(*net.TCPConn); ok && state == http.StateNew {
				_ = tcp.SetWriteBuffer(64 << 10) // what is counted as sent is soon there
			}
		}
		srv.Start()
		t.Cleanup(srv.Close)
		*s.url = srv.URL
	}
	return h
}

// Add gives a repository a commit, to which revisions then lead: main where none is named. It returns the commit.
func (h *Hub) Add(id string, files map[string]File, revisions ...string) string {
	h.Lock()
	defer h.Unlock()
	r := h.repos[id]
	if r == nil {
		r = &repo{map[string]string{}, map[string]map[string]entry{}}
		h.repos[id] = r
	}
	sum := sha1.New()
	tree := map[string]entry{}
	for _, name := range sorted(files) {
		f := files[name]
		e := entry{File: f}
		body := func() io.Reader { return io.NewSectionReader(f.Content, 0, f.Size) }
		if f.LFS {
			e.sha256 = digest256(body())
			pointer := fmt.Sprintf("version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %d\n", e.sha256, f.Size)
			e.oid = gitOID(strings.NewReader(pointer), int64(len(pointer)))
		} else {
			e.oid = gitOID(body(), f.Size)
		}
		tree[name] = e
		fmt.Fprintln(sum, name, e.oid)
	}
	fmt.Fprintln(sum, len(r.trees))
	commit := hex.EncodeToString(sum.Sum(nil))
	r.trees[commit] = tree
	if len(revisions) == 0 {
		revisions = []string{"main"}
	}
	for _, rev := range revisions {
		r.refs[rev] = commit
	}
	return commit
}

func sorted[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func digest256(r io.Reader) string {
	s := sha256.New()
	_, _ = io.Copy(s, r)
	return hex.EncodeToString(s.Sum(nil))
}

func gitOID(r io.Reader, size int64) string {
	s := sha1.New()
	fmt.Fprintf(s, "blob %d\x00", size)
	_, _ = io.Copy(s, r)
	return hex.EncodeToString(s.Sum(nil))
}

// Set changes faults.
func (h *Hub) Set(change func(h *Hub)) {
	h.Lock()
	defer h.Unlock()
	change(h)
}

// Sent is how many bytes of a file were sent, over all requests.
func (h *Hub) Sent(path string) int64 {
	h.Lock()
	defer h.Unlock()
	return h.sent[path]
}

// Requests are all that were made: method, origin, path, and whether a token was shown.
func (h *Hub) Requests() []string {
	h.Lock()
	defer h.Unlock()
	return slices.Clone(h.requests)
}

// Forget forgets what was counted.
func (h *Hub) Forget() {
	h.Lock()
	defer h.Unlock()
	h.requests, h.sent = nil, map[string]int64{}
}

// enter notes a request, and answers it if it is to be refused.
func (h *Hub) enter(w http.ResponseWriter, r *http.Request, origin string) bool {
	h.Lock()
	shown := ""
	if r.Header.Get("Authorization") != "" {
		shown = " with token"
	}
	h.requests = append(h.requests, r.Method+" "+origin+r.URL.EscapedPath()+shown)
	latency := h.Faults.Latency
	var refusal *Refusal
	for prefix, f := range h.Refuse {
		if strings.HasPrefix(origin+r.URL.Path, prefix) {
			refusal = f
			if f.Times--; f.Times == 0 {
				delete(h.Refuse, prefix)
			}
		}
	}
	h.Unlock()
	time.Sleep(latency)
	if refusal == nil {
		return false
	}
	for k, v := range refusal.Header {
		w.Header().Set(k, v)
	}
	w.WriteHeader(refusal.Status)
	return true
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	if code != "" {
		w.Header().Set("X-Error-Code", code)
	}
	w.Header().Set("X-Error-Message", message)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": message})
}

// find gives the repository of an id that a request may see; it has answered where there is none.
func (h *Hub) find(w http.ResponseWriter, r *http.Request, id string, content bool) *repo {
	token, shown := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	known := h.repos[id]
	switch {
	case shown && h.Token != "" && token != h.Token:
		refuse(w, http.StatusUnauthorized, "", "Invalid credentials in Authorization header")
	case known == nil && !shown:
		refuse(w, http.StatusUnauthorized, "RepoNotFound", "Repository not found")
	case known == nil:
		refuse(w, http.StatusNotFound, "RepoNotFound", "Repository not found")
	case h.Gated[id] && content && !shown:
		refuse(w, http.StatusUnauthorized, "GatedRepo", "Access to model "+id+" is restricted. You must have access to it and be authenticated to access it. Please log in.")
	case h.Gated[id] && content && !h.LetIn:
		refuse(w, http.StatusForbidden, "GatedRepo", "Access to model "+id+" is restricted and you are not in the authorized list. Visit "+h.URL+"/"+id+" to ask for access.")
	default:
		return known
	}
	return nil
}

func (h *Hub) hub(w http.ResponseWriter, r *http.Request) {
	if h.enter(w, r, "") {
		return
	}
	if rest, ok := strings.CutPrefix(r.URL.EscapedPath(), "/api/models/"); ok {
		h.api(w, r, rest)
		return
	}
	id, rest, ok := strings.Cut(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/resolve/")
	if !ok {
		http.NotFound(w, r)
		return
	}
	rev, path, _ := strings.Cut(rest, "/")
	rev, _ = url.PathUnescape(rev)
	path, _ = url.PathUnescape(path)
	h.resolve(w, r, id, rev, path)
}

// api answers what there is: revision/<rev> and tree/<rev>.
func (h *Hub) api(w http.ResponseWriter, r *http.Request, rest string) {
	h.Lock()
	defer h.Unlock()
	parts := strings.Split(rest, "/")
	if len(parts) < 2 {
		http.NotFound(w, r)
		return
	}
	id := parts[0] + "/" + parts[1]
	rep := h.find(w, r, id, len(parts) > 2 && parts[2] == "tree")
	if rep == nil {
		return
	}
	what, rev := "revision", "main"
	if len(parts) > 3 {
		what = parts[2]
		rev, _ = url.PathUnescape(parts[3])
	}
	commit, tree := rep.at(rev)
	if tree == nil {
		refuse(w, http.StatusNotFound, "RevisionNotFound", "Invalid rev id: "+rev)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	if what == "revision" {
		siblings := []map[string]string{}
		for _, name := range sorted(tree) {
			siblings = append(siblings, map[string]string{"rfilename": name})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"_id": "1", "id": id, "modelId": id, "sha": commit, "private": false, "gated": h.Gated[id], "tags": []string{}, "downloads": 0, "likes": 0, "siblings": siblings})
		return
	}
	list, dirs := []map[string]any{}, map[string]bool{}
	for _, name := range sorted(tree) {
		if i := strings.LastIndex(name, "/"); i > 0 && !dirs[name[:i]] {
			dirs[name[:i]] = true
			list = append(list, map[string]any{"type": "directory", "oid": strings.Repeat("d", 40), "size": 0, "path": name[:i]})
		}
		e := tree[name]
		l := map[string]any{"type": "file", "oid": e.oid, "size": e.Size, "path": name}
		if e.LFS {
			l["lfs"] = map[string]any{"oid": e.sha256, "size": e.Size, "pointerSize": 130}
			l["xetHash"] = e.xet()
		}
		list = append(list, l)
	}
	size := h.Faults.PageSize
	if size == 0 {
		size = 1000
	}
	from, _ := strconv.Atoi(r.URL.Query().Get("cursor"))
	to := min(from+size, len(list))
	if to < len(list) {
		q := r.URL.Query()
		q.Set("cursor", strconv.Itoa(to))
		w.Header().Set("Link", fmt.Sprintf(`<%s%s?%s>; rel="next"`, h.URL, r.URL.EscapedPath(), q.Encode()))
	}
	_ = json.NewEncoder(w).Encode(list[from:to])
}

func (r *repo) at(rev string) (commit string, tree map[string]entry) {
	if c, ok := r.refs[rev]; ok {
		rev = c
	}
	return rev, r.trees[rev]
}

// xet is a hash as the store of chunks has it: it only has to look like one.
func (e entry) xet() string { return digest256(strings.NewReader(e.sha256)) }

// resolve answers the address of a file: a small one as it is, a large one by where it is.
func (h *Hub) resolve(w http.ResponseWriter, r *http.Request, id, rev, path string) {
	h.Lock()
	rep := h.find(w, r, id, true)
	if rep == nil {
		h.Unlock()
		return
	}
	commit, tree := rep.at(rev)
	e, ok := tree[path]
	hd := w.Header()
	if tree != nil {
		hd.Set("X-Repo-Commit", commit)
	}
	if !ok {
		defer h.Unlock()
		if tree == nil {
			refuse(w, http.StatusNotFound, "RevisionNotFound", "Invalid rev id: "+rev)
		} else {
			refuse(w, http.StatusNotFound, "EntryNotFound", "Entry not found")
		}
		return
	}
	if h.Faults.OtherCommit {
		hd.Set("X-Repo-Commit", strings.Repeat("e", 40))
	}
	tag := func(oid string) string {
		if h.Faults.Weak {
			return `W/"` + oid + `"`
		}
		return `"` + oid + `"`
	}
	if !e.LFS {
		hd.Set("Etag", tag(e.oid))
		faults := h.Faults
		h.Unlock()
		h.send(w, r, path, e, faults)
		return
	}
	defer h.Unlock()
	if h.Faults.TwoHops && r.URL.Query().Get("hop") == "" {
		hd.Set("Location", r.URL.EscapedPath()+"?hop=1")
		w.WriteHeader(http.StatusTemporaryRedirect)
		return
	}
	hd.Set("X-Linked-Etag", tag(e.sha256))
	hd.Set("X-Linked-Size", strconv.FormatInt(e.Size, 10))
	hd.Set("Etag", tag(e.oid))
	hd.Set("X-Xet-Hash", e.xet())
	hd.Set("Link", fmt.Sprintf(`<%s/api/models/%s/xet-read-token/%s>; rel="xet-auth"`, h.URL, id, commit))
	n := len(h.signed)
	key := strconv.Itoa(n)
	h.signed[key] = h.Faults.ExpireAfter
	if h.Faults.ExpireAfter == 0 {
		h.signed[key] = -1
	}
	hd.Set("Location", fmt.Sprintf("%s/%s?Signature=%s&repo=%s&rev=%s&path=%s", h.CDN, e.sha256, key, url.QueryEscape(id), commit, url.QueryEscape(path)))
	w.WriteHeader(http.StatusFound)
}

// cdn answers for what the hub has signed.
func (h *Hub) cdn(w http.ResponseWriter, r *http.Request) {
	if h.enter(w, r, "cdn") {
		return
	}
	q := r.URL.Query()
	h.Lock()
	left, known := h.signed[q.Get("Signature")]
	if left > 0 {
		h.signed[q.Get("Signature")]--
	}
	rep := h.repos[q.Get("repo")]
	faults := h.Faults
	h.Unlock()
	if !known || left == 0 || rep == nil || r.Header.Get("Authorization") != "" {
		http.Error(w, "<Error><Code>AccessDenied</Code></Error>", http.StatusForbidden)
		return
	}
	h.Lock()
	_, tree := rep.at(q.Get("rev"))
	e := tree[q.Get("path")]
	h.Unlock()
	w.Header().Set("Etag", `"`+e.sha256[:32]+`"`)
	h.send(w, r, q.Get("path"), e, faults)
}

// send sends a file, or what was asked for of it, and counts.
func (h *Hub) send(w http.ResponseWriter, r *http.Request, path string, e entry, faults Faults) {
	hd := w.Header()
	hd.Set("Accept-Ranges", "bytes")
	hd.Set("Content-Type", "application/octet-stream")
	from, size, status := int64(0), e.Size, http.StatusOK
	claimed := size + faults.More - faults.Less
	if v, ok := strings.CutPrefix(r.Header.Get("Range"), "bytes="); ok && !faults.NoRange {
		v, _, _ = strings.Cut(v, "-")
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil || n >= size {
			hd.Set("Content-Range", fmt.Sprintf("bytes */%d", size))
			w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
			return
		}
		from, status = n, http.StatusPartialContent
		hd.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, claimed-1, claimed))
	}
	if faults.Gzip {
		hd.Set("Content-Encoding", "gzip")
	}
	if !faults.Longer {
		hd.Set("Content-Length", strconv.FormatInt(claimed-from, 10))
	}
	w.WriteHeader(status)
	if r.Method == http.MethodHead {
		return
	}
	if faults.Longer {
		_ = http.NewResponseController(w).Flush() // else the server finds out the length
	}
	buf := make([]byte, 64<<10)
	end := size
	if faults.CutEvery > 0 {
		end = min(end, (from/faults.CutEvery+1)*faults.CutEvery)
	}
	start := time.Now()
	for at := from; at < end; {
		n := min(int64(len(buf)), end-at)
		if faults.PerSecond > 0 {
			due := start.Add(time.Duration(float64(at-from) / float64(faults.PerSecond) * float64(time.Second)))
			select {
			case <-r.Context().Done():
				return
			case <-time.After(time.Until(due)):
			}
			n = min(n, max(faults.PerSecond/50, 1))
		}
		if faults.Stall > 0 && at <= faults.Stall && faults.Stall < at+n && h.stallsOnce(path) {
			if n = faults.Stall - at; n == 0 {
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
				return
			}
			h.Set(func(h *Hub) { delete(h.stalled, path) })
		}
		if _, err := e.Content.ReadAt(buf[:n], at); err != nil && err != io.EOF {
			panic(err)
		}
		if at+n == size && faults.Garbage > 0 {
			h.Lock()
			if h.Faults.Garbage > 0 {
				h.Faults.Garbage--
				buf[n-1]++
			}
			h.Unlock()
		}
		k, err := w.Write(buf[:n])
		h.Lock()
		h.sent[path] += int64(k)
		h.Unlock()
		if err != nil {
			return
		}
		at += int64(k)
	}
	if faults.Longer {
		_, _ = io.Copy(w, bytes.NewReader([]byte{0}))
	}
	if end < size {
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

// stallsOnce reports whether a file has not stalled yet.
func (h *Hub) stallsOnce(path string) bool {
	h.Lock()
	defer h.Unlock()
	was := h.stalled[path]
	h.stalled[path] = true
	return !was
}
