package tier

import (
	"cmp"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"

	"hearth/internal/regular"
)

const (
	savedSuffix = ".aside"
	savedBytes  = 256 << 20 // most that Saved reads, several times the most that is saved
)

var errSum = errors.New("its checksum is wrong")

// Save writes data to a file beside the runs, in place of an older one of that name. Like the runs it belongs to the fingerprint
// and is removed by Clear. It does not count in the quota, so it is for small data. It waits for the disk.
func (t *Tier) Save(name string, data []byte) error {
	part := filepath.Join(t.dir, name+partSuffix)
	err := replace(part, data, binary.LittleEndian.AppendUint32(nil, crc32.Checksum(data, castagnoli)))
	if err == nil {
		err = os.Rename(part, t.savedPath(name))
	}
	if err != nil {
		_ = os.Remove(part)
	}
	return err
}

// replace writes a new file under a name. What had that name is removed first, and so never written to: it may be a link.
func replace(name string, parts ...[]byte) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	f, err := createFile(name)
	if err != nil {
		return err
	}
	for _, p := range parts {
		if err == nil {
			_, err = f.Write(p)
		}
	}
	return errors.Join(err, f.Close())
}

// Saved gives what Save kept under a name, nil if there is nothing. What is damaged is removed with a line.
func (t *Tier) Saved(name string) []byte {
	b, err := regular.ReadOwn(t.savedPath(name), savedBytes)
	if err == nil && len(b) >= 4 {
		data, sum := b[:len(b)-4], b[len(b)-4:]
		if crc32.Checksum(data, castagnoli) == binary.LittleEndian.Uint32(sum) {
			return data
		}
	}
	if !errors.Is(err, os.ErrNotExist) {
		t.warnf("prefix cache: removed %s: %v", t.savedPath(name), regular.Short(cmp.Or(err, errSum)))
		t.removeFiles([]string{t.savedPath(name)})
	}
	return nil
}

func (t *Tier) savedPath(name string) string { return filepath.Join(t.dir, name+savedSuffix) }

// savedFiles lists the files of Save.
func (t *Tier) savedFiles() (files []string) {
	entries, _ := os.ReadDir(t.dir) // what stays is replaced by the next Save
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), savedSuffix) {
			files = append(files, filepath.Join(t.dir, e.Name()))
		}
	}
	return files
}
