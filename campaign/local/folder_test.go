package local

import (
	"path/filepath"
	"testing"
)

// TestFolderOfAnother shows that who waits for a folder gets it when it is given back.
func TestFolderOfAnother(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "folder")
	first, err := Open(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	waited := false
	second, err := Open(t.Context(), dir, func() {
		waited = true
		first.Close()
	})
	if err != nil || !waited {
		t.Fatalf("waited: %v, %v", waited, err)
	}
	defer second.Close()
	if _, err := second.desk(Contestant{Agent: "a"}); err != nil {
		t.Error(err)
	}
}
