package kept

import (
	"crypto/sha256"
	"debug/elf"
	"io"
	"os"
)

// buildID is the section in which Go's linker notes what an executable was made of and what it contains.
const buildID = ".note.go.buildid"

// minID is shorter than any note with a build's ID: one without has only the header.
const minID = 64

// Program returns what tells the program of a file from others: Go's build ID, which has a hash of all of it, or a
// hash that is made here, which takes longer.
func Program(name string) ([]byte, error) {
	if f, err := elf.Open(name); err == nil {
		defer f.Close()
		if s := f.Section(buildID); s != nil && s.Size >= minID && s.Size < 1<<10 {
			return s.Data()
		}
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return nil, err
	}
	return h.Sum(nil), nil
}
