package mongo

import (
	"io/fs"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/aiopslab/aiopslab/cloud/embedded/vfs"
	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/kittest"
)

func TestUsage(t *testing.T) {
	for _, tt := range []struct {
		args []string
		conf string
		err  string
	}{
		{[]string{"--frob"}, "", "Error parsing command line: unrecognised option '--frob'"},
		{[]string{"--port", "x"}, "", "Error parsing command line: the argument ('x') for option '--port' is invalid"},
		{[]string{"--dbpath"}, "", "Error parsing command line: the required argument for option '--dbpath' is missing"},
		{[]string{"--tlsMode", "requireTLS"}, "", "BadValue: need tlsCertificateKeyFile or certificateSelector when TLS is enabled"},
		{[]string{"-f", "/c"}, "net:\n  prot: 1\n", "Unrecognized option: net.prot"},
		{[]string{"-f", "/c"}, "security:\n  authorization: yes please\n", `security.authorization must be either "enabled" or "disabled"`},
		{[]string{"-f", "/none"}, "", "Error opening config file: /none"},
		{[]string{"--replSet", "rs0"}, "", "--replSet is not supported"},
	} {
		b := newBox(t)
		b.server.Write("/c", tt.conf)
		r := b.server.Start(Mongod, append([]string{"mongod"}, tt.args...)...)
		if code := r.Wait(); code != 2 || !strings.HasPrefix(r.Stderr.String(), tt.err) || !strings.HasSuffix(r.Stderr.String(), "try 'mongod --help' for more information\n") {
			t.Errorf("%q: exit %d, %s", tt.args, code, r.Stderr)
		}
	}
}

func TestConfigFile(t *testing.T) {
	b := newBox(t)
	b.server.Write("/etc/mongod.conf", "net:\n  port: 27018\n  bindIp: 0.0.0.0\n  tls:\n    mode: disabled\n    certificateKeyFile:\nsecurity:\n  authorization: enabled\nstorage:\n  dbPath: /var/lib/mongodb\nsystemLog:\n  destination: file\n  path: /var/log/mongodb/mongod.log\n  logAppend: true\n")
	b.server.Write("/var/lib/mongodb/", "")
	r := b.server.Start(Mongod, "mongod", "--config", "/etc/mongod.conf", "--port", "27019")
	b.server.WaitListen("10.244.0.2:27019")
	if err := errorOf(t, b.connect("mongodb://db:27019").Database("d"), bson.D{{Key: "find", Value: "c"}}); err.Code != 13 {
		t.Errorf("%v", err)
	}
	if r.Stdout.String() != "" {
		t.Errorf("logs on standard output:\n%s", r.Stdout)
	}
	r.Signal(syscall.SIGTERM)
	if code := r.Wait(); code != 0 {
		t.Errorf("exit %d", code)
	}
	if log := b.server.Read("/var/log/mongodb/mongod.log"); !strings.Contains(log, `"options":{"net":{"bindIp":"0.0.0.0","port":27019,"tls":{"mode":"disabled"}},"security":{"authorization":"enabled"}`) || !strings.Contains(log, `"msg":"Shutting down","attr":{"exitCode":0}`) {
		t.Errorf("log:\n%s", log)
	}
}

func TestDataDirectory(t *testing.T) {
	b := startBox(t)
	second := b.server.Start(Mongod, "mongod", "--port", "27018")
	if code := second.Wait(); code != 100 || !strings.Contains(second.Stdout.String(), "DBPathInUse: Unable to lock the lock file: /data/db/mongod.lock (resource temporarily unavailable). Another mongod instance is already running on the /data/db directory") {
		t.Errorf("exit %d\n%s", code, second.Stdout)
	}
	none := b.client.Start(Mongod, "mongod", "--dbpath", "/none")
	if code := none.Wait(); code != 100 || !strings.Contains(none.Stdout.String(), "NonExistentPath: Data directory /none not found.") {
		t.Errorf("exit %d\n%s", code, none.Stdout)
	}
	b.server.Write("/other/", "")
	port := b.server.Start(Mongod, "mongod", "--dbpath", "/other")
	if code := port.Wait(); code != 48 || !strings.Contains(port.Stdout.String(), `"errmsg":"Address already in use"`) {
		t.Errorf("exit %d\n%s", code, port.Stdout)
	}
}

func TestUncleanShutdown(t *testing.T) {
	b := startBox(t)
	b.stop(syscall.SIGKILL)
	b.start()
	b.run.Await("Detected unclean shutdown - Lock file is not empty")
}

// failingFS fails all writes once it is told to.
type failingFS struct {
	kit.FS
	err *atomic.Pointer[syscall.Errno]
}

type failingFile struct {
	kit.File
	err *atomic.Pointer[syscall.Errno]
}

func (f failingFS) OpenFile(name string, flag int, perm fs.FileMode) (kit.File, error) {
	file, err := f.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return failingFile{file, f.err}, nil
}

func (f failingFile) Write(p []byte) (int, error) {
	if e := f.err.Load(); e != nil {
		return 0, &fs.PathError{Op: "write", Path: f.Name(), Err: *e}
	}
	return f.File.Write(p)
}

func TestDiskFailure(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EIO, syscall.ENOSPC} {
		t.Run(errno.Error(), func(t *testing.T) {
			b := newBox(t)
			env := b.server.Env("mongod", "--bind_ip_all")
			var failing atomic.Pointer[syscall.Errno]
			env.FS = failingFS{env.FS, &failing}
			r := b.server.Run(Mongod, env)
			r.Await("Waiting for connections")
			client := b.connect(plainURI)
			c := client.Database("d").Collection("c")
			if _, err := c.InsertOne(t.Context(), bson.M{"_id": 1}); err != nil {
				t.Fatal(err)
			}
			failing.Store(&errno)
			if _, err := c.InsertOne(t.Context(), bson.M{"_id": 2}); err == nil {
				t.Error("a write that failed was acknowledged")
			}
			if code := r.Wait(); code != 14 {
				t.Errorf("exit %d", code)
			}
			if out := r.Stdout.String(); !strings.Contains(out, `"msg":"Fatal assertion","attr":{"msgid":50853`) || !strings.Contains(strings.ToLower(out), errno.Error()) {
				t.Errorf("%s", out)
			}
		})
	}
}

func TestNoMemory(t *testing.T) {
	b := newBox(t)
	env := b.server.Env("mongod", "--bind_ip_all")
	memory := &kittest.ScarceMemory{Memory: env.Memory}
	env.Memory = memory
	r := b.server.Run(Mongod, env)
	r.Await("Waiting for connections")
	c := b.connect(plainURI).Database("d").Collection("c")
	if _, err := c.InsertOne(t.Context(), bson.M{"_id": 1}); err != nil {
		t.Fatal(err)
	}
	memory.Refuses.Store(true)
	c.InsertOne(t.Context(), bson.M{"_id": 2, "text": strings.Repeat("x", 1<<20)})
	if code := r.Wait(); code != 134 || !strings.Contains(r.Stdout.String(), `"attr":{"message":"Out of memory\n"}`) {
		t.Errorf("exit %d: %s", code, r.Stdout)
	}
}

func TestVolume(t *testing.T) {
	// What is on a volume outlives the container; what is not, does not.
	w := kittest.New(t)
	volume := vfs.NewTree(vfs.Options{Type: "ext4"})
	count := func(name, addr string, mounted bool) int64 {
		t.Helper()
		b := &box{t: t, world: w, server: w.Machine(name, addr)}
		b.server.Install(Image(nil))
		if mounted {
			if err := b.server.Namespace.Mount("/data/db", volume, vfs.MountOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		b.client = b.server
		b.start()
		client := b.connect("mongodb://127.0.0.1:27017")
		c := client.Database("d").Collection("c")
		n, err := c.CountDocuments(t.Context(), bson.M{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.InsertOne(t.Context(), bson.M{}); err != nil {
			t.Fatal(err)
		}
		client.Disconnect(t.Context())
		b.stop(syscall.SIGTERM)
		return n
	}
	for i, want := range []int64{0, 1, 2} {
		if n := count("db"+string(rune('a'+i)), "10.244.1."+string(rune('1'+i)), true); n != want {
			t.Errorf("start %d with a volume: %d documents", i, n)
		}
	}
	if n := count("dbx", "10.244.1.9", false); n != 0 {
		t.Errorf("%d documents without a volume", n)
	}
}

func TestResources(t *testing.T) {
	b := startBox(t)
	idle := b.server.Resources.Memory()
	client := b.connect(plainURI)
	c := client.Database("d").Collection("c")
	if _, err := c.InsertOne(t.Context(), bson.M{"_id": 1, "x": strings.Repeat("x", 1<<20)}); err != nil {
		t.Fatal(err)
	}
	if held := b.server.Resources.Memory() - idle; held < 1<<20 || held > 1<<20+100 {
		t.Errorf("%d bytes held for a megabyte", held)
	}
	used := b.server.Resources.Info().Used
	for range 100 {
		if _, err := c.Find(t.Context(), bson.M{"x": "y"}); err != nil {
			t.Fatal(err)
		}
	}
	if cost := b.server.Resources.Info().Used - used; cost < 3*time.Millisecond || cost > 20*time.Millisecond {
		t.Errorf("100 queries cost %v of CPU time", cost)
	}
	if _, err := c.DeleteMany(t.Context(), bson.M{}); err != nil {
		t.Fatal(err)
	}
	if held := b.server.Resources.Memory() - idle; held != 0 {
		t.Errorf("%d bytes held for nothing", held)
	}
	client.Disconnect(t.Context())
	b.stop(syscall.SIGTERM)
	if held := b.server.Resources.Memory(); held != 0 {
		t.Errorf("%d bytes held by a server that has ended", held)
	}
}
