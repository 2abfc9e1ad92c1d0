package cri

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/aiopslab/aiopslab/cloud/embedded/vfs"
	"github.com/aiopslab/aiopslab/kit"
)

// executable starts the content of a file that is a program. What follows names the program.
const executable = "\x7fELF\x02\x01\x01\x00aiopslab\x00"

// Images turns the images of a registry into file systems. It is shared by all nodes.
type Images struct {
	registry *kit.Registry

	mu       sync.Mutex
	trees    map[*kit.Image]*vfs.Tree
	programs map[string]kit.Program // by the name in their file
}

// NewImages returns the images of a registry.
func NewImages(r *kit.Registry) *Images {
	return &Images{registry: r, trees: map[*kit.Image]*vfs.Tree{}, programs: map[string]kit.Program{}}
}

// program returns the program whose file has the given content.
func (i *Images) program(content []byte) (kit.Program, bool) {
	name, ok := strings.CutPrefix(string(content), executable)
	if !ok {
		return nil, false
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	p, ok := i.programs[name]
	return p, ok
}

// tree returns the files of an image.
func (i *Images) tree(image *kit.Image) (*vfs.Tree, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if t := i.trees[image]; t != nil {
		return t, nil
	}
	t := vfs.NewTree(vfs.Options{Type: "overlay"})
	env := &kit.Env{FS: t.Root(), Dir: "/"}
	for _, dir := range []string{
		"/bin", "/dev", "/etc", "/home", "/proc", "/root", "/run", "/sys", "/tmp", "/usr/bin",
		"/var/run",
	} {
		if err := env.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
	}
	if err := env.FS.Chmod("/tmp", filemode(0o1777)); err != nil {
		return nil, err
	}
	files := map[string]string{
		"/etc/passwd": "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n",
		"/etc/group":  "root:x:0:\nnogroup:x:65534:\n",
	}
	maps.Copy(files, image.Files)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := add(env, name, files[name], 0o644); err != nil {
			return nil, fmt.Errorf("image %s: %w", image.ID(), err)
		}
	}
	if err := i.install(env, image.ID(), image.Programs); err != nil {
		return nil, err
	}
	t.Date(built(image))
	i.trees[image] = t
	return t, nil
}

// built is when an image was built: some time in the first half of 2025, before anybody had a container of it.
func built(image *kit.Image) time.Time {
	h := fnv.New32a()
	_, _ = h.Write([]byte(image.ID())) // It never fails.
	first := time.Date(2025, time.January, 6, 9, 0, 0, 0, time.UTC)
	return first.Add(time.Duration(h.Sum32()%(170*24*3600)) * time.Second)
}

// Install writes programs that are not an image's to files by absolute path, from which they can be
// run. The same name must come with the same programs.
func (i *Images) Install(env *kit.Env, name string, programs map[string]kit.Program) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.install(env, name, programs)
}

// install is called with i.mu held.
func (i *Images) install(env *kit.Env, image string, programs map[string]kit.Program) error {
	for _, name := range slices.Sorted(maps.Keys(programs)) {
		id := image + ":" + name
		i.programs[id] = programs[name]
		if err := add(env, name, executable+id, 0o755); err != nil {
			return fmt.Errorf("image %s: %w", image, err)
		}
	}
	return nil
}

func add(env *kit.Env, name, content string, mode uint32) error {
	if dir, ok := strings.CutSuffix(name, "/"); ok {
		if err := env.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		// An image names the directories that its programs write to. They can do so as any user.
		return env.FS.Chmod(dir, filemode(0o1777))
	}
	if err := env.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	if err := env.WriteFile(name, []byte(content), 0o755); err != nil {
		return err
	}
	return env.FS.Chmod(name, filemode(mode))
}

// pulledImage is an image a node holds.
type pulledImage struct {
	full  string // "docker.io/library/busybox:latest"
	id    string // "sha256:..."
	image *kit.Image
}

// repoDigest is what container statuses show as the image's ID.
func (p *pulledImage) repoDigest() string {
	name, _, _ := strings.Cut(p.full, "@")
	if i := strings.LastIndex(name, ":"); i > strings.LastIndex(name, "/") {
		name = name[:i]
	}
	return name + "@" + p.id
}

func (p *pulledImage) api() *runtimeapi.Image {
	i := &runtimeapi.Image{
		Id: p.id, RepoTags: []string{p.full}, RepoDigests: []string{p.repoDigest()},
		Size: uint64(p.image.Size),
	}
	user, _, _ := strings.Cut(p.image.User, ":")
	if uid, err := strconv.ParseInt(user, 10, 64); err == nil {
		i.Uid = &runtimeapi.Int64Value{Value: uid}
	} else {
		i.Username = user
	}
	return i
}

// findImage looks an image up by any of the names the kubelet uses: a reference, an ID, a digest.
func (r *Runtime) findImage(name string) *pulledImage {
	full, err := kit.FullName(name)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.images {
		if p.id == name || p.repoDigest() == name || err == nil && p.full == full {
			return p
		}
	}
	return nil
}

// PullImage implements the CRI.
func (r *Runtime) PullImage(_ context.Context, spec *runtimeapi.ImageSpec, _ *runtimeapi.AuthConfig,
	_ *runtimeapi.PodSandboxConfig,
) (string, error) {
	full, image, err := r.cfg.Images.registry.Resolve(spec.Image)
	if err != nil {
		return "", pullError(full, spec.Image, err)
	}
	p := &pulledImage{full: full, image: image}
	p.id = fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(full)))
	if _, digest, ok := strings.Cut(full, "@"); ok {
		p.id = digest
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.images[full] = p
	return p.id, nil
}

// pullError is how containerd reports that an image cannot be had.
func pullError(full, given string, err error) error {
	resolve := func(c codes.Code, cause string) error {
		return status.Errorf(c, "failed to pull and unpack image %q: failed to resolve reference %q: %s", full, full,
			cause)
	}
	registry, _, _ := strings.Cut(full, "/")
	switch {
	case errors.Is(err, kit.ErrInvalidImage):
		return status.Errorf(codes.InvalidArgument, "failed to parse image reference %q: %v", given,
			kit.ErrInvalidImage)
	case errors.Is(err, kit.ErrNoSuchVersion):
		return resolve(codes.NotFound, full+": not found")
	case slices.Contains([]string{"docker.io", "ghcr.io", "quay.io"}, registry):
		return resolve(codes.Unknown, "pull access denied, repository does not exist or may require authorization: "+
			"server message: insufficient_scope: authorization failed")
	case slices.Contains([]string{"registry.k8s.io", "gcr.io", "mcr.microsoft.com", "public.ecr.aws"}, registry):
		return resolve(codes.NotFound, full+": not found")
	}
	repository, tag := full[len(registry)+1:], "latest"
	if i := strings.LastIndexAny(repository, ":@"); i >= 0 {
		repository, tag = repository[:i], repository[i+1:]
	}
	host, _, _ := strings.Cut(registry, ":")
	return resolve(codes.Unknown, fmt.Sprintf(
		"failed to do request: Head \"https://%s/v2/%s/manifests/%s\": dial tcp: lookup %s: no such host", registry,
		repository, tag, host))
}

// ImageStatus implements the CRI.
func (r *Runtime) ImageStatus(_ context.Context, spec *runtimeapi.ImageSpec,
	_ bool,
) (*runtimeapi.ImageStatusResponse, error) {
	if p := r.findImage(spec.Image); p != nil {
		return &runtimeapi.ImageStatusResponse{Image: p.api()}, nil
	}
	return &runtimeapi.ImageStatusResponse{}, nil
}

// ListImages implements the CRI.
func (r *Runtime) ListImages(context.Context, *runtimeapi.ImageFilter) ([]*runtimeapi.Image, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []*runtimeapi.Image
	for _, name := range slices.Sorted(maps.Keys(r.images)) {
		list = append(list, r.images[name].api())
	}
	return list, nil
}

// RemoveImage implements the CRI.
func (r *Runtime) RemoveImage(_ context.Context, spec *runtimeapi.ImageSpec) error {
	if p := r.findImage(spec.Image); p != nil {
		r.mu.Lock()
		delete(r.images, p.full)
		r.mu.Unlock()
	}
	return nil
}
