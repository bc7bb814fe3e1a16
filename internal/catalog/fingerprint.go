package catalog

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"math"
	"path"
	"slices"

	"hearth/internal/regular"
)

const (
	wholeFile = 16 << 20 // files up to this size count with all their bytes,
	samples   = 16       // larger ones with so many pieces,
	sample    = 64 << 10 // of so many bytes, with their size and their time
)

// fingerprint changes whenever the model's files do: its weights, its configuration, its tokenizer and its template.
func (s *Source) fingerprint() (string, error) {
	entries, err := fs.ReadDir(s.FS, ".")
	if err != nil {
		return "", fmt.Errorf("fingerprint %s: %w", s.Where, err)
	}
	h := sha256.New()
	for _, e := range entries {
		if !slices.Contains([]string{".json", ".jinja", ".model", ".tiktoken", ".txt", ".safetensors"}, path.Ext(e.Name())) {
			continue
		}
		if err := hashFile(h, s.FS, e.Name()); err != nil {
			return "", fmt.Errorf("fingerprint %s: %w", s.Where, err)
		}
	}
	return fmt.Sprintf("model %s in %q\nfiles %s", s.ID, s.Path, hex.EncodeToString(h.Sum(nil))), nil
}

func hashFile(h hash.Hash, fsys fs.FS, name string) error {
	if st, err := fs.Stat(fsys, name); err == nil && st.IsDir() {
		return nil
	}
	f, _, err := regular.OpenFS(fsys, name, math.MaxInt64)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	fmt.Fprintf(h, "%q %d\n", name, st.Size())
	at, ok := f.(io.ReaderAt)
	if st.Size() <= wholeFile || !ok {
		_, err := io.Copy(h, io.LimitReader(f, st.Size()))
		return err
	}
	_ = binary.Write(h, binary.LittleEndian, st.ModTime().UnixNano()) // a hash takes everything
	for i := range int64(samples) {
		if _, err := io.Copy(h, io.NewSectionReader(at, (st.Size()-sample)*i/(samples-1), sample)); err != nil {
			return err
		}
	}
	return nil
}
