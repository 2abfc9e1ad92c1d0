package campaign

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/aiopslab/aiopslab/session"
)

// Leavings are what is left of a run.
type Leavings struct {
	Record []byte
	// Telemetry is what its system told, as [Pack] has it; nil if the run has kept none.
	Telemetry []byte
}

// telemetryName is the name of what belongs to a record. A run that was killed before its record was written may have
// left another, so it tells of which record it is.
func telemetryName(index int, record []byte) string {
	return fmt.Sprintf("%05d.telemetry-%s.tar", index, digest(record))
}

// Pack is the directory of a run's telemetry as one file; nil if there is none.
func Pack(dir string) ([]byte, error) {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := errors.Join(w.AddFS(os.DirFS(dir)), w.Close()); err != nil {
		return nil, fmt.Errorf("pack the telemetry: %w", err)
	}
	return b.Bytes(), nil
}

// unpack has what [Pack] has packed in a directory that is there.
func unpack(data []byte, dir string) error {
	root, err := os.OpenRoot(dir) // Nothing is written beside it, whatever the names are.
	if err != nil {
		return err
	}
	defer root.Close()
	r := tar.NewReader(bytes.NewReader(data))
	for {
		h, err := r.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		switch h.Typeflag {
		case tar.TypeDir:
			err = root.MkdirAll(filepath.Clean(h.Name), 0o755)
		case tar.TypeReg:
			err = unpackFile(root, h.Name, r)
		default:
			err = fmt.Errorf("%s is neither a file nor a directory", h.Name)
		}
		if err != nil {
			return err
		}
	}
}

func unpackFile(root *os.Root, name string, r io.Reader) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Close())
}

// fetchTelemetry puts what belongs to a record beside where the record will be. A run may have kept nothing, and its
// record says why.
func (c *Campaign) fetchTelemetry(ctx context.Context, i int) error {
	data, err := c.ask(ctx, telemetryPath+strconv.Itoa(i))
	if err != nil || len(data) == 0 {
		return err
	}
	draft, err := os.MkdirTemp(c.Dir, ".draft-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(draft) // Once it is renamed, it is not there.
	if err := os.Chmod(draft, 0o755); err != nil {
		return err
	}
	if err := unpack(data, draft); err != nil {
		return unmendable{fmt.Errorf("the telemetry of %s at %s cannot be unpacked: %w", RecordName(i), c.Records, err)}
	}
	dir := session.TelemetryDir(filepath.Join(c.Dir, RecordName(i)))
	if err := os.RemoveAll(dir); err != nil { // It was gathered before the record could be.
		return err
	}
	return os.Rename(draft, dir)
}
