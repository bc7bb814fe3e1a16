package hub

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf16"

	"hearth/internal/regular"
)

// blobs is the folder of a model's blobs.
type blobs struct{ dir string }

func (b blobs) path(blob string) string { return filepath.Join(b.dir, blob) }

// part is the name under which a blob is written until it is whole. Older releases of huggingface_hub (0.36) go on where such
// a file ends, as hearth does; 2.4 writes to files with eight digits more in the name, and goes on with none.
func (b blobs) part(blob string) string { return b.path(blob) + ".incomplete" }

// leftover is a part of a blob that was left behind.
type leftover struct {
	path string
	size int64
}

var partName = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})(\.[0-9a-f]{8})?\.incomplete$`)

// leftovers finds what downloads that ended early have left, of all blobs, the longest first.
func (b blobs) leftovers() map[string][]leftover {
	out := map[string][]leftover{}
	des, _ := os.ReadDir(b.dir)
	for _, de := range des {
		m := partName.FindStringSubmatch(de.Name())
		if m == nil || !de.Type().IsRegular() {
			continue
		}
		if st, err := de.Info(); err == nil {
			out[m[1]] = append(out[m[1]], leftover{b.path(de.Name()), st.Size()})
		}
	}
	for _, l := range out {
		slices.SortFunc(l, func(a, b leftover) int { return cmp.Compare(b.size, a.size) })
	}
	return out
}

// openPart opens the part of a blob to write, and says how many bytes of it are there. The caller has the blob's lock, so that
// nobody writes to what another process has left: left, the longest first. A part that is longer than the blob is none.
func (b blobs) openPart(f *File, left []leftover) (*os.File, int64, error) {
	path := b.part(f.Blob)
	for _, l := range left {
		if st, err := os.Lstat(l.path); err != nil || st.Size() > f.Size { // it may have grown, or gone
			continue
		}
		if l.path != path {
			if err := os.Rename(l.path, path); err != nil && !gone(err) {
				return nil, 0, err
			}
		}
		break
	}
	file, err := regular.OpenOwnAs(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, 0, err
	}
	n, err := contiguous(file)
	if err == nil && n > f.Size {
		n = 0
	}
	if err == nil {
		err = file.Truncate(n)
	}
	if err != nil {
		_ = file.Close()
		return nil, 0, err
	}
	return file, n, nil
}

// contiguous is how many bytes from the start of a file have been written. Some clients write the pieces of a file as they come:
// it then has holes, and before a hole perhaps zeros that nobody wrote.
func contiguous(f *os.File) (int64, error) {
	st, err := f.Stat()
	if err != nil {
		return 0, err
	}
	n := st.Size()
	hole, ok := firstHole(f)
	if !ok || hole >= n {
		return n, nil
	}
	page := make([]byte, min(hole, 64<<10))
	if _, err := f.ReadAt(page, hole-int64(len(page))); err != nil {
		return 0, err
	}
	zeros := len(page)
	for zeros > 0 && page[zeros-1] == 0 {
		zeros--
	}
	if zeros == 0 {
		return 0, nil // more zeros than a page has: they were not written by any piece of this file
	}
	return hole - int64(len(page)-zeros), nil
}

// link makes the snapshot's name of a blob that is there: a relative link, as huggingface_hub makes them. Where the system has
// none, the name gets the file itself, or a copy if fresh is false: the blob may then have other names.
func (c Cache) link(p *Plan, f *File, fresh bool) error {
	to := c.pointer(p, f)
	if hasSize(to, f.Size) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		return err
	}
	blob := blobs{filepath.Join(c.root(p.ID), "blobs")}.path(f.Blob)
	from, err := filepath.Rel(filepath.Dir(to), blob)
	if err != nil {
		return err
	}
	if err := os.Remove(to); !gone(err) {
		return err
	}
	err = os.Symlink(from, to)
	switch {
	case err == nil || hasSize(to, f.Size): // another process was faster
		return nil
	case fresh:
		return os.Rename(blob, to)
	}
	return copyFile(blob, to)
}

func copyFile(from, to string) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, src)
	return errors.Join(err, dst.Close())
}

// writeRef says which commit a revision is. It is written when the files are there: until then the revision is what it was.
func (c Cache) writeRef(p *Plan) error {
	if p.Revision == p.Commit {
		return nil
	}
	path := filepath.Join(c.root(p.ID), "refs", filepath.FromSlash(p.Revision))
	if b, err := readSmall(path); err == nil && string(b) == p.Commit {
		return nil
	}
	return replaceFile(path, p.Commit, 0o666)
}

// replaceFile gives a file other contents in one step. perm is before the umask.
func replaceFile(path, text string, perm os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	return regular.Replace(path, perm, func(f *os.File) error {
		_, err := f.WriteString(text)
		return err
	})
}

// cacheTag marks the cache as something that backups may leave out; the text is huggingface_hub's.
const cacheTag = "Signature: 8a477f597d28d172789f06886806bc55\n" +
	"# This file is a cache directory tag created by huggingface_hub.\n" +
	"# For information about cache directory tags, see:\n" +
	"#\thttps://bford.info/cachedir/\n"

func (c Cache) writeTag() error {
	path := filepath.Join(c.Dir, "CACHEDIR.TAG")
	if _, err := os.Lstat(path); err == nil {
		return nil
	}
	return replaceFile(path, cacheTag, 0o666)
}

// writeTree keeps the list of all files of a commit as huggingface_hub does, which tells whole snapshots by it:
// trees/<commit>.json. The bytes are those that Python's json.dump writes.
func (c Cache) writeTree(p *Plan) error {
	path := filepath.Join(c.root(p.ID), "trees", p.Commit+".json")
	if _, err := os.Lstat(path); err == nil {
		return nil
	}
	// What another says in place of a hash is not kept.
	if slices.ContainsFunc(p.listing, func(l listed) bool { return l.Xet != "" && !sha256ID.MatchString(l.Xet) }) {
		return nil
	}
	all := map[string]listed{}
	for _, l := range p.listing {
		all[l.Path] = l
	}
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return slices.Compare([]rune(a), []rune(b)) })
	var b strings.Builder
	b.WriteString("{\n \"format_version\": 1,\n \"files\": {")
	for i, name := range names {
		l := all[name]
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "\n  %s: {\n   \"size\": %d,\n   \"blob_id\": %s", pyString(name), l.Size, pyString(l.OID))
		if l.LFS != nil {
			fmt.Fprintf(&b, ",\n   \"lfs_sha256\": %s,\n   \"lfs_size\": %d", pyString(l.LFS.OID), l.LFS.Size)
		}
		if l.Xet != "" {
			fmt.Fprintf(&b, ",\n   \"xet_hash\": %s", pyString(l.Xet))
		}
		b.WriteString("\n  }")
	}
	if len(names) > 0 {
		b.WriteString("\n ")
	}
	b.WriteString("}\n}")
	return replaceFile(path, b.String(), 0o600)
}

// pyString is a string in JSON in ASCII, as Python writes it.
func pyString(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r >= ' ' && r < 0x7f:
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\b':
			b.WriteString(`\b`)
		case r == '\f':
			b.WriteString(`\f`)
		case r > 0xffff:
			hi, lo := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, hi, lo)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
