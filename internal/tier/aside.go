package tier

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
)

const asideSuffix = ".aside"

// Save keeps data beside the runs under a plain name, in place of what was there. It belongs to the same model in the same
// form as they do, goes with Clear, and does not count in the quota: it is for what is small. It waits for the disk.
func (t *Tier) Save(name string, data []byte) error {
	part := filepath.Join(t.dir, name+partSuffix)
	f, err := os.OpenFile(part, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	_, err2 := f.Write(binary.LittleEndian.AppendUint32(nil, crc32.Checksum(data, castagnoli)))
	if err = errors.Join(err, err2, f.Close()); err == nil {
		err = os.Rename(part, t.aside(name))
	}
	if err != nil {
		_ = os.Remove(part)
	}
	return err
}

// Saved gives what Save kept under a name, nil if there is nothing. What is damaged is removed with a line.
func (t *Tier) Saved(name string) []byte {
	b, err := os.ReadFile(t.aside(name))
	if err == nil && len(b) >= 4 {
		data, sum := b[:len(b)-4], b[len(b)-4:]
		if crc32.Checksum(data, castagnoli) == binary.LittleEndian.Uint32(sum) {
			return data
		}
	}
	if !errors.Is(err, os.ErrNotExist) {
		t.warnf("prefix cache: removed %s: it cannot be read, or its checksum is wrong", t.aside(name))
		t.removeFiles([]string{t.aside(name)})
	}
	return nil
}

func (t *Tier) aside(name string) string { return filepath.Join(t.dir, name+asideSuffix) }

// asides lists the files of Save.
func (t *Tier) asides() (files []string) {
	entries, _ := os.ReadDir(t.dir) // what stays is replaced by the next Save
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), asideSuffix) {
			files = append(files, filepath.Join(t.dir, e.Name()))
		}
	}
	return files
}
