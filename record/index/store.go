package index

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/gob"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
)

// version is that of what an index learns from records: it goes up when the same record gives other entries. What the
// entries are made of is part of the first line by itself, see shape.
const version = 4

const suffix = ".index"

// store is the file of the index of a directory. Its first line has format, version and shape, the second the
// directory; then come the checksum of the rest, and the entries.
type store struct{ cache, dir string }

// shape tells entries of other fields apart.
var shape = func() string {
	sum := sha256.Sum256([]byte(fields(reflect.TypeFor[stored]())))
	return hex.EncodeToString(sum[:4])
}()

func fields(t reflect.Type) string {
	text := t.String()
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() == reflect.Struct {
		for i := range t.NumField() {
			text += " " + t.Field(i).Name + " " + fields(t.Field(i).Type)
		}
	}
	return text
}

// head is how the file of this program for this directory begins.
func (s store) head() (head, path string, err error) {
	if s.cache == "" {
		return "", "", errors.New("no cache")
	}
	dir, err := filepath.Abs(s.dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return "", "", err
	}
	sum := sha256.Sum256([]byte(dir))
	return fmt.Sprintf("aiopslab-index %d %s\n%q\n", version, shape, dir),
		filepath.Join(s.cache, hex.EncodeToString(sum[:16])+suffix), nil
}

// stored is an entry as the file has it. The encoding leaves out what points to a zero, so that is said apart.
type stored struct {
	Entry         entry
	Free, Harmful bool
}

func newStored(e entry) stored {
	return stored{e, e.Run.Cost != nil && *e.Run.Cost == 0, e.Run.NoHarm != nil && !*e.Run.NoHarm}
}

func (s stored) entry() entry {
	if s.Free {
		s.Entry.Run.Cost = new(float64)
	}
	if s.Harmful {
		s.Entry.Run.NoHarm = new(bool)
	}
	return s.Entry
}

// load returns the entries of the file by the names of their records: none if it cannot be believed.
func (s store) load() map[string]entry {
	head, path, err := s.head()
	if err != nil {
		return nil
	}
	b, err := os.ReadFile(path)
	if err != nil || !bytes.HasPrefix(b, []byte(head)) {
		return nil
	}
	b = b[len(head):]
	if len(b) < sha256.Size || sha256.Sum256(b[sha256.Size:]) != [sha256.Size]byte(b[:sha256.Size]) {
		return nil
	}
	var list []stored
	if gob.NewDecoder(bytes.NewReader(b[sha256.Size:])).Decode(&list) != nil {
		return nil
	}
	known := make(map[string]entry, len(list))
	for _, kept := range list {
		e := kept.entry()
		known[e.File.Name] = e
	}
	return known
}

// save writes the file anew. That it cannot be written is no reason to say anything: then the records are read again.
func (s store) save(entries []entry) {
	head, path, err := s.head()
	if err != nil || os.MkdirAll(s.cache, 0o700) != nil {
		return
	}
	list := make([]stored, len(entries))
	for i, e := range entries {
		list[i] = newStored(e)
	}
	var body bytes.Buffer
	if gob.NewEncoder(&body).Encode(list) != nil {
		return
	}
	sum := sha256.Sum256(body.Bytes())
	f, err := os.CreateTemp(s.cache, "*.new")
	if err != nil {
		return
	}
	_, err = f.Write(append(append([]byte(head), sum[:]...), body.Bytes()...))
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return
	}
	s.forget()
}

// forget removes the files of directories that are no more.
func (s store) forget() {
	files, _ := os.ReadDir(s.cache)
	for _, f := range files {
		if path := filepath.Join(s.cache, f.Name()); strings.HasSuffix(f.Name(), suffix) {
			if _, err := os.Stat(dirOf(path)); errors.Is(err, fs.ErrNotExist) {
				_ = os.Remove(path)
			}
		}
	}
}

// dirOf is the directory that a file is about, or "" if it does not tell, which is nowhere.
func dirOf(path string) (dir string) {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Scan() // It says what the file is.
	if lines.Scan() {
		_, _ = fmt.Sscanf(lines.Text(), "%q", &dir)
	}
	return dir
}
