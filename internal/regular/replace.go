package regular

import (
	"cmp"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// Replace gives the file at path what write writes, in one step: whoever reads it, also after a power cut, sees what was there
// before or all of the new. Its folder must be there. A link at path is replaced, not followed. perm are the new file's rights,
// before the umask; write may set others.
func Replace(path string, perm fs.FileMode, write func(*os.File) error) error {
	dir, name := filepath.Split(path)
	tmp := fmt.Sprintf("%s.%s.%08x.tmp", dir, name, rand.Uint32()) // others may be at it
	f, err := OpenOwnAs(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	err = write(f)
	if err == nil {
		err = f.Sync()
	}
	if err = cmp.Or(err, f.Close()); err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		_ = os.Remove(tmp)
	}
	return err
}
