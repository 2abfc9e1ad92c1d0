package kit

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/distribution/reference"
)

// Image is a container image: programs and files under well-known names.
type Image struct {
	// Names are the repositories it is found under, in the form people write in manifests
	// ("busybox", "registry.k8s.io/pause"). Images whose tags differ may share one.
	Names []string
	// Tags is a regular expression that matches the tags which exist ("latest|1\.3\d"). None means
	// any.
	Tags string

	Entrypoint []string
	Cmd        []string
	Vars       map[string]string
	WorkDir    string // default "/"
	User       string // "uid", "uid:gid" or a name in /etc/passwd; default root

	// Programs are the executables by absolute path.
	Programs map[string]Program
	// Files are the other files by absolute path. A name that ends in a slash is a directory.
	Files map[string]string

	// Memory is what the container holds once it runs, in bytes, before it states more.
	Memory int64
	// Size is the size of the image, in bytes, as nodes report it.
	Size int64

	// What follows is set when it is registered.
	tags   *regexp.Regexp
	first  string // of its names, in full
	shares bool   // that name, with another image
}

// ID tells an image of a registry from the others: its first name, with the pattern of its tags if others share that
// name.
func (i *Image) ID() string {
	if i.shares {
		return i.Names[0] + ":" + i.Tags
	}
	return i.Names[0]
}

// Registry is a set of images. The zero value is empty and usable; it is not safe for concurrent
// registration.
type Registry struct {
	images []*Image
	byName map[string][]*Image
}

// Errors of Resolve.
var (
	ErrInvalidImage  = errors.New("invalid reference format")
	ErrNoSuchImage   = errors.New("repository does not exist")
	ErrNoSuchVersion = errors.New("manifest unknown")
)

// NewRegistry returns a registry of the given images. It panics if they do not fit together, because that is a
// mistake in the program.
func NewRegistry(images ...Image) *Registry {
	r := &Registry{}
	for _, i := range images {
		if err := r.Register(i); err != nil {
			panic("kit: " + err.Error())
		}
	}
	return r
}

// Register adds an image. It fails if a name or the pattern of tags is malformed, or if a name is taken: by an image
// that says nothing of its tags, or the same.
func (r *Registry) Register(i Image) error {
	if len(i.Names) == 0 {
		return errors.New("an image needs a name")
	}
	var names []string
	for _, n := range i.Names {
		ref, err := reference.ParseNormalizedNamed(n)
		if err != nil || !reference.IsNameOnly(ref) {
			return fmt.Errorf("%q is not the name of an image", n)
		}
		taken := func(o *Image) bool { return o.Tags == "" || i.Tags == "" || o.Tags == i.Tags }
		if slices.ContainsFunc(r.byName[ref.Name()], taken) || slices.Contains(names, ref.Name()) {
			return fmt.Errorf("there is an image %q already", n)
		}
		names = append(names, ref.Name())
	}
	var err error
	if i.tags, err = regexp.Compile("^(?:" + i.Tags + ")$"); err != nil {
		return fmt.Errorf("image %q: tags: %w", i.Names[0], err)
	}
	if r.byName == nil {
		r.byName = map[string][]*Image{}
	}
	for _, n := range names {
		r.byName[n] = append(r.byName[n], &i)
	}
	i.first = names[0]
	r.images = append(r.images, &i)
	for _, o := range r.images {
		o.shares = len(r.byName[o.first]) > 1
	}
	return nil
}

// Images returns all images in the order of their registration.
func (r *Registry) Images() []*Image { return slices.Clone(r.images) }

// ByID returns the image with an ID, or nil.
func (r *Registry) ByID(id string) *Image {
	for _, i := range r.images {
		if i.ID() == id {
			return i
		}
	}
	return nil
}

// Tags is the regular expression that matches the tags under which a manifest finds an image.
func (r *Registry) Tags(ref string) string {
	named, err := parseReference(ref)
	if err != nil {
		return ""
	}
	var all []string
	for _, i := range r.byName[named.Name()] {
		all = append(all, i.Tags)
	}
	return strings.Join(all, "|")
}

// Resolve finds the image a manifest refers to and returns the reference in its full form, such as
// "docker.io/library/busybox:latest". The error wraps one of the errors above; with ErrNoSuchVersion
// comes an image that has others.
func (r *Registry) Resolve(ref string) (full string, image *Image, err error) {
	named, err := parseReference(ref)
	if err != nil {
		return "", nil, err
	}
	full = named.String()
	found := r.byName[named.Name()]
	if len(found) == 0 {
		return full, nil, fmt.Errorf("%s: %w", full, ErrNoSuchImage)
	}
	tagged, ok := named.(reference.Tagged)
	if !ok {
		return full, found[0], nil
	}
	for _, i := range found {
		if i.hasTag(tagged.Tag()) {
			return full, i, nil
		}
	}
	return full, found[0], fmt.Errorf("%s: %w", full, ErrNoSuchVersion)
}

// Has reports whether a manifest finds an image.
func (r *Registry) Has(ref string) bool {
	_, _, err := r.Resolve(ref)
	return err == nil
}

// Program returns the path of a program that the image of a manifest finds by its name, in the directories of its PATH;
// "" if there is none.
func (r *Registry) Program(ref, name string) string {
	_, image, err := r.Resolve(ref)
	if err != nil {
		return ""
	}
	for dir := range strings.SplitSeq(cmp.Or(image.Vars["PATH"], DefaultPath), ":") {
		if file := path.Join(dir, name); image.Programs[file] != nil {
			return file
		}
	}
	return ""
}

func (i *Image) hasTag(tag string) bool {
	return i.Tags == "" || i.tags.MatchString(tag)
}

// FullName completes a reference with its registry and tag.
func FullName(ref string) (string, error) {
	named, err := parseReference(ref)
	if err != nil {
		return "", err
	}
	return named.String(), nil
}

// Under is the reference by which a registry has an image that was pushed to a prefix of it: mongo:4.4.6 under
// registry.example/lab is registry.example/lab/library/mongo:4.4.6. The path is the one that a mirror is asked for.
func Under(prefix, ref string) (string, error) {
	if registry, _, _ := strings.Cut(prefix, "/"); !strings.ContainsAny(registry, ".:") && registry != "localhost" {
		return "", fmt.Errorf("%q names no registry; write it with its host, as registry.example/lab or localhost:5000",
			prefix)
	}
	named, err := parseReference(ref)
	if err != nil {
		return "", fmt.Errorf("%s: %w", ref, err)
	}
	under := strings.TrimSuffix(prefix, "/") + strings.TrimPrefix(named.String(), reference.Domain(named))
	if _, err := parseReference(under); err != nil {
		return "", fmt.Errorf("%q is no place in a registry: %w", prefix, err)
	}
	return under, nil
}

func parseReference(ref string) (reference.Named, error) {
	named, err := reference.ParseNormalizedNamed(ref)
	if err != nil {
		// The library says "invalid reference format" too, or nearly always.
		detail := strings.TrimPrefix(strings.TrimPrefix(err.Error(), ErrInvalidImage.Error()), ": ")
		if detail == "" {
			return nil, ErrInvalidImage
		}
		return nil, fmt.Errorf("%w: %s", ErrInvalidImage, detail)
	}
	return reference.TagNameOnly(named), nil
}
